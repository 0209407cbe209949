"""An output that cannot be used is refused before anything is read, let alone computed."""

import sys
from pathlib import Path

import pytest

from interlock import cli

COMMANDS = {
    "train": ("train", "--data", "nowhere", "--output"),
    "evaluate": ("evaluate", "--data", "nowhere", "--output"),
    "audit": ("audit", "nowhere", "--output"),
    "compare": ("compare", "nowhere", "nowhere", "--output"),
    "robustness": ("robustness", "--data", "nowhere", "--output"),
    "label": ("label", "nowhere", "--weak-url", "http://h/v1", "--strong-url", "http://h/v1", "--out"),
    "convert": ("data", "convert", "routellm", "nowhere.parquet", "--output"),
    "build": ("encoder", "build", "--wheel", "nowhere.whl", "--output"),
}


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("place", ["taken", "taken/below"])
def test_an_unusable_output_is_the_first_error(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "taken").write_text("mine")
    monkeypatch.setattr(sys, "argv", ["interlock", *COMMANDS[name], str(tmp_path / place)])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    said = capsys.readouterr().err
    assert (stopped.value.code, said.count("\n")) == (2, 1)
    assert said.startswith(f"error: output {tmp_path / place}")
    assert "is a file: name a folder" in said
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]
    assert (tmp_path / "taken").read_text() == "mine"
