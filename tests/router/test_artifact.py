"""An artefact comes back as it was, or not at all."""

import dataclasses
import io
import json
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from router.artifact import MANIFEST, RouterArtifact, artifact_id, dump_artifact, load_artifact
from router.catalog import Bands, ModelCatalog
from router.confidence import ResidualSample
from router.encoder import EncoderSpec, TextEncoder
from router.errors import ArtifactError, EncoderError
from router.features import FEATURE_NAMES
from router.files.artifacts import read_artifact, write_artifact
from router.route import Router

ARRAYS = "heads.npz"


@pytest.fixture(scope="module")
def parts(artifact: RouterArtifact) -> dict[str, bytes]:
    return dump_artifact(artifact)


def forged(parts: dict[str, bytes], change: Callable[[dict], None], arrays: bytes | None = None) -> dict[str, bytes]:
    """A manifest with another content and all its checksums right, as somebody who means it would write."""
    import hashlib

    from router.artifact import _checksum

    manifest = json.loads(parts[MANIFEST])
    data = parts[ARRAYS] if arrays is None else arrays
    manifest["parts"][ARRAYS]["sha256"] = hashlib.sha256(data).hexdigest()
    change(manifest)
    manifest["checksum"] = _checksum(manifest)
    return {MANIFEST: json.dumps(manifest).encode(), ARRAYS: data}


def repacked(parts: dict[str, bytes], change: Callable[[dict], None]) -> dict[str, bytes]:
    arrays = dict(np.load(io.BytesIO(parts[ARRAYS])))
    change(arrays)
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return forged(parts, lambda manifest: None, buffer.getvalue())


def test_round_trip_predicts_identically(artifact: RouterArtifact, parts: dict[str, bytes]) -> None:
    loaded = load_artifact(parts)
    x = np.random.default_rng(0).normal(size=(200, artifact.encoder.dimension + len(FEATURE_NAMES)))
    assert np.array_equal(loaded.predictor.predict(x), artifact.predictor.predict(x))
    assert np.array_equal(loaded.bands.low, artifact.bands.low)
    assert np.array_equal(loaded.residuals.residuals, artifact.residuals.residuals)
    assert (loaded.encoder, loaded.budget, loaded.card, loaded.metrics) == (
        artifact.encoder,
        artifact.budget,
        artifact.card,
        artifact.metrics,
    )


def test_thresholds_of_families_come_back(artifact: RouterArtifact, parts: dict[str, bytes]) -> None:
    own = dataclasses.replace(artifact, family_thresholds={"Japonic": 0.05, "Other": 0.0})
    assert load_artifact(dump_artifact(own)).family_thresholds == {"Japonic": 0.05, "Other": 0.0}
    assert load_artifact(parts).family_thresholds == {}
    for wrong in ({"Japanese": 0.1}, {"Japonic": -1.0}, {"Japonic": "low"}, ["Japonic"]):
        with pytest.raises(ArtifactError):
            load_artifact(forged(dump_artifact(own), lambda manifest, wrong=wrong: manifest.update(family_thresholds=wrong)))


def test_equal_artefacts_give_equal_bytes(artifact: RouterArtifact, parts: dict[str, bytes]) -> None:
    assert dump_artifact(load_artifact(parts)) == parts
    assert artifact_id(parts) == artifact_id(dump_artifact(artifact))
    assert artifact_id(dump_artifact(dataclasses.replace(artifact, default_threshold=0.2))) != artifact_id(parts)


def test_a_card_with_numbers_as_keys_and_nan_as_a_metric_can_be_loaded(artifact: RouterArtifact) -> None:
    used = dataclasses.replace(artifact, card={2: "b", 10: ["a"]}, metrics={"auc": float("nan")})
    assert load_artifact(dump_artifact(used)).card == {"2": "b", "10": ["a"]}


@pytest.mark.parametrize("name", [MANIFEST, ARRAYS])
def test_no_byte_can_be_changed(parts: dict[str, bytes], name: str) -> None:
    original = parts[name]
    rng = np.random.default_rng(3)
    positions = range(len(original)) if name == MANIFEST else rng.choice(len(original), 300, replace=False).tolist()
    for position in positions:
        data = bytearray(original)
        data[position] ^= 1 << int(rng.integers(8))
        try:
            loaded = load_artifact(parts | {name: bytes(data)})
        except ArtifactError as error:
            assert "\n" not in str(error)  # noqa: PT017
        else:  # white space between two fields of the manifest says nothing
            assert name == MANIFEST
            assert json.loads(bytes(data)) == json.loads(original)
            assert loaded.default_threshold == 0.1


@pytest.mark.parametrize("cut", [0, 1, 10, -1])
def test_no_part_can_be_cut_short(parts: dict[str, bytes], cut: int) -> None:
    with pytest.raises(ArtifactError):
        load_artifact(parts | {ARRAYS: parts[ARRAYS][:cut]})


@pytest.mark.parametrize("name", [MANIFEST, ARRAYS])
def test_a_removed_part_is_named(parts: dict[str, bytes], name: str) -> None:
    with pytest.raises(ArtifactError, match=name):
        load_artifact({key: data for key, data in parts.items() if key != name})


def test_a_listed_part_must_be_there(parts: dict[str, bytes]) -> None:
    with pytest.raises(ArtifactError, match=r"part 'more\.npz' of the artefact is missing"):
        load_artifact(forged(parts, lambda manifest: manifest["parts"].update({"more.npz": {}})))


@pytest.mark.parametrize(
    "manifest", [b"", b"[]", b"null", b"\xff", b"{}", b"[" * 100_000, b'{"format": 2}', b'{"format": "1"}', b'{"format": 1}']
)
def test_what_is_no_manifest_is_refused(parts: dict[str, bytes], manifest: bytes) -> None:
    with pytest.raises(ArtifactError) as error:
        load_artifact(parts | {MANIFEST: manifest})
    assert "\n" not in str(error.value)


def test_another_format_says_what_to_do(parts: dict[str, bytes]) -> None:
    with pytest.raises(ArtifactError, match="artefact format 99 is not 1, the one this version reads: train it again"):
        load_artifact(forged(parts, lambda manifest: manifest.update(format=99)))


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.update(features=m["features"][:-1]),
        lambda m: m.update(features=5),
        lambda m: m.update(capabilities=["reasoning"]),
        lambda m: m.update(capabilities=[]),
        lambda m: m.update(capabilities=None),
        lambda m: m.update(capabilities=["reasoning"] * 4),
        lambda m: m.update(encoder={"kind": "psychic"}),
        lambda m: m["encoder"].update(dimension=10**12),
        lambda m: m["encoder"].update(dimension=-1),
        lambda m: m.update(budget={"request_tokens": -5}),
        lambda m: m.update(budget={"appetite": 5}),
        lambda m: m.update(budget=[]),
        lambda m: m.update(default_threshold=float("nan")),
        lambda m: m.update(default_threshold=-1),
        lambda m: m.update(default_threshold="low"),
        lambda m: m.pop("default_threshold"),
        lambda m: m.update(parts=[]),
    ],
)
def test_a_manifest_that_contradicts_itself_is_refused(parts: dict[str, bytes], change: Callable[[dict], None]) -> None:
    with pytest.raises(ArtifactError) as error:
        load_artifact(forged(parts, change))
    assert "\n" not in str(error.value)


def _tree(name: str, value: int) -> Callable[[dict], None]:
    def change(arrays: dict) -> None:
        arrays[f"head/code_gen/{name}"][0, 0] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        _tree("feature", 16 + len(FEATURE_NAMES)),
        _tree("feature", -1),
        _tree("left", 5),
        _tree("right", 10**9),
        lambda a: a.pop("head/reasoning/bias"),
        lambda a: a.pop("calibration/reasoning/x"),
        lambda a: a.pop("bands.low"),
        lambda a: a.update({"calibration/reasoning/y": np.array([0.0, np.nan, 1.0])}),
        lambda a: a.update({"calibration/reasoning/y": np.array([0.0, 0.5, 1e9])}),
        lambda a: a.update({"calibration/reasoning/x": np.array([-np.inf, 0.0, 1.0])}),
        lambda a: a.update({"bands.low": np.zeros(3), "bands.high": np.ones(3)}),
        lambda a: a.update({"bands.low": np.full(4, np.nan)}),
        lambda a: a.update({"bands.high": np.full(4, 7.0)}),
        lambda a: a.update({"residuals.values": np.zeros((2, 0, 4))}),
        lambda a: a.update({"residuals.values": np.zeros((2, 5, 3))}),
        lambda a: a.update({"residuals.values": np.full((2, 5, 4), np.nan)}),
        lambda a: a.update({"residuals.edges": np.array([0.7, 0.2]), "residuals.values": np.zeros((3, 5, 4))}),
        lambda a: a.update({"residuals.values": np.array("text")}),
    ],
)
def test_arrays_that_would_mislead_are_refused(parts: dict[str, bytes], change: Callable[[dict], None]) -> None:
    with pytest.raises(ArtifactError):
        load_artifact(repacked(parts, change))


@pytest.mark.parametrize("data", [b"", b"PK", b"not a zip at all", np.lib.format.magic(1, 0)])
def test_what_is_no_archive_is_refused(parts: dict[str, bytes], data: bytes) -> None:
    with pytest.raises(ArtifactError):
        load_artifact(forged(parts, lambda manifest: None, data))


def test_pickled_arrays_are_never_read(parts: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    np.savez(buffer, **{"bands.low": np.array([print], dtype=object)})
    with pytest.raises(ArtifactError, match="not a readable npz"):
        load_artifact(forged(parts, lambda manifest: None, buffer.getvalue()))


def test_an_array_larger_than_its_bytes_is_refused(parts: dict[str, bytes]) -> None:
    buffer = io.BytesIO()
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**15,)})
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("bands.low.npy", header.getvalue())
    with pytest.raises(ArtifactError, match="not a readable npz"):
        load_artifact(forged(parts, lambda manifest: None, buffer.getvalue()))


def test_another_encoder_is_refused_by_name(artifact: RouterArtifact, catalog: ModelCatalog, router: Router) -> None:
    class Other:
        spec = EncoderSpec("fast", "toy", "2", "", 256, 16)
        encode = router.encoder.encode

    encoder: TextEncoder = Other()
    with pytest.raises(EncoderError, match=r"trained with encoder fast toy .*: load that encoder or train again"):
        Router(artifact, encoder, catalog)


def test_shapes_that_do_not_belong_together_are_not_written(artifact: RouterArtifact) -> None:
    for wrong in (
        dataclasses.replace(artifact, bands=Bands(np.zeros(3), np.ones(3))),
        dataclasses.replace(artifact, residuals=ResidualSample(np.empty(0), np.zeros((1, 3, 2)))),
        dataclasses.replace(artifact, default_threshold=float("nan")),
    ):
        with pytest.raises(ArtifactError):
            dump_artifact(wrong)


def test_a_folder_comes_back_and_replaces_an_older_one_whole(artifact: RouterArtifact, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "router"
    first = write_artifact(artifact, folder, {"README.md": b"card"})
    loaded, name = read_artifact(folder)
    assert name == first
    assert loaded.capabilities == artifact.capabilities
    second = write_artifact(dataclasses.replace(artifact, default_threshold=0.3), folder)
    assert read_artifact(folder)[1] == second != first
    assert sorted(path.name for path in folder.iterdir()) == [ARRAYS, MANIFEST]
    assert [path.name for path in folder.parent.iterdir()] == ["router"]


def test_a_write_that_fails_leaves_the_old_folder(artifact: RouterArtifact, tmp_path: Path) -> None:
    folder = tmp_path / "router"
    name = write_artifact(artifact, folder)
    with pytest.raises(OSError, match="No such file"):
        write_artifact(artifact, folder, {"no/such/folder.md": b""})
    assert read_artifact(folder)[1] == name
    assert [path.name for path in tmp_path.iterdir()] == ["router"]


def test_a_folder_that_is_no_artefact_is_named(tmp_path: Path) -> None:
    for folder in (tmp_path, tmp_path / "none", tmp_path / "file"):
        (tmp_path / "file").touch()
        with pytest.raises(ArtifactError, match=r"no router artefact in .*: give a folder that `interlock train` wrote"):
            read_artifact(folder)
