import os
from pathlib import Path

import pytest

from router.errors import InvalidInput
from router.files.atomic import (
    require_replaceable,
    require_writable,
    write_atomically,
    write_folder_atomically,
    write_together,
)

ABOVE = ("report", "runs/report", "a/b/c/report")


@pytest.mark.parametrize("name", ABOVE)
def test_a_folder_that_can_be_made_passes_and_is_not_made(name: str, tmp_path: Path) -> None:
    require_writable(tmp_path / name)
    require_replaceable(tmp_path / name, "results.json", "evaluation")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ABOVE)
def test_a_path_at_or_below_a_file_is_refused(name: str, tmp_path: Path) -> None:
    file = tmp_path / name.split("/")[0]
    file.write_text("mine")
    for check in (require_writable, lambda folder: require_replaceable(folder, "results.json", "evaluation")):
        with pytest.raises(InvalidInput, match=rf"^output .*{file.name}.* is a file: name a folder$"):
            check(tmp_path / name)
    assert file.read_text() == "mine"


def test_a_link_to_nowhere_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "gone")
    with pytest.raises(InvalidInput, match="link is a file"):
        require_writable(tmp_path / "link")


def test_the_parent_of_a_link_is_that_of_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "far" / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "far" / "below")
    parent = tmp_path / "link" / ".."
    require_writable(parent / "new")
    write_folder_atomically(parent / "folder", {"a": b"1"})
    write_folder_atomically(parent / "folder", {"a": b"2"})
    write_together(parent, {"b": b"3"})
    write_atomically(parent / "c", b"4")
    found = {name: (tmp_path / "far" / name).read_bytes() for name in ("folder/a", "b", "c")}
    assert found == {"folder/a": b"2", "b": b"3", "c": b"4"}


def test_what_the_system_refuses_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"cannot be written in .*name another folder") as caught:
        require_writable(tmp_path / ("x" * 250))
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_refused(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(InvalidInput, match="Permission denied"):
        require_writable(tmp_path / "report")


def test_a_folder_that_cannot_be_renamed_is_not_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="is the folder you are in"):
        require_replaceable(Path("."), "results.json", "evaluation")
    require_writable(Path("."))
    (tmp_path / "volume").mkdir()
    monkeypatch.setattr(os.path, "ismount", lambda path: Path(path).name == "volume")
    with pytest.raises(InvalidInput, match="volume is a mount point, which cannot be replaced: name a folder inside it"):
        require_replaceable(tmp_path / "volume", "results.json", "evaluation")
    require_replaceable(tmp_path / "volume" / "report", "results.json", "evaluation")


def read_all(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_change_together_and_others_stay(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"mine")
    (tmp_path / "b").write_bytes(b"old")
    write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert read_all(tmp_path) == {"notes.txt": b"mine", "a": b"1", "b": b"2"}


@pytest.mark.parametrize("call", range(5))
def test_an_interruption_anywhere_leaves_the_old_files(call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Renames in order: two files into the staging folder, one old file out, two new ones in."""
    (tmp_path / "b").write_bytes(b"old")
    replace, calls = os.replace, iter(range(100))

    def interrupted(source: Path, target: Path) -> None:
        if next(calls) == call:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert read_all(tmp_path) == {"b": b"old"}


def test_a_folder_in_the_place_of_a_file_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    with pytest.raises(InvalidInput, match=r"b is a folder, and a file is written there"):
        write_together(tmp_path, {"a": b"1", "b": b"2"})
    assert [path.name for path in tmp_path.iterdir()] == ["b"]
