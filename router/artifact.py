"""A trained router as bytes: a manifest and checked parts, no pickle anywhere."""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.basis import HatBasis
from router.catalog import Bands
from router.confidence import ResidualSample
from router.encoder import EncoderSpec
from router.errors import ArtifactError, InvalidInput, RouterError
from router.features import FEATURE_NAMES
from router.language_effects import LanguageEffects
from router.requirements import Calibration, RequirementsPredictor, head_from_arrays
from router.selection import check_family_thresholds, check_threshold
from router.text import TextBudget

ARTIFACT_FORMAT: Final = 1
MANIFEST: Final = "manifest.json"
_ARRAYS: Final = "heads.npz"


@dataclass(frozen=True, slots=True)
class RouterArtifact:
    """Everything a router learned. ``card`` describes the training data, ``metrics`` what was measured; both are plain JSON data.

    ``family_thresholds`` holds tau for language families that have their own; the others have ``default_threshold``.
    """

    encoder: EncoderSpec
    predictor: RequirementsPredictor
    bands: Bands
    residuals: ResidualSample
    budget: TextBudget = field(default_factory=TextBudget)
    default_threshold: float = 0.1
    family_thresholds: Mapping[str, float] = field(default_factory=dict)
    language_effects: LanguageEffects = field(default_factory=LanguageEffects)
    card: Mapping[str, Any] = field(default_factory=dict)
    metrics: Mapping[str, Any] = field(default_factory=dict)

    @property
    def capabilities(self) -> tuple[str, ...]:
        """Names of the K capabilities, in the order of the heads."""
        return self.predictor.capabilities


def dump_artifact(artifact: RouterArtifact) -> dict[str, bytes]:
    """The artefact as named parts; equal artefacts give equal bytes."""
    arrays: dict[str, NDArray[np.generic]] = {
        "bands.low": artifact.bands.low,
        "bands.high": artifact.bands.high,
        "residuals.edges": artifact.residuals.edges,
        "residuals.values": artifact.residuals.residuals,
    }
    predictor = artifact.predictor
    _check_shapes(artifact)
    if predictor.basis is not None:
        arrays |= {"basis/low": predictor.basis.low, "basis/high": predictor.basis.high, "basis/knots": np.array(predictor.basis.knots)}
    for name, head, calibration in zip(predictor.capabilities, predictor.heads, predictor.calibrations, strict=True):
        arrays |= {f"head/{name}/{key}": array for key, array in head.to_arrays().items()}
        arrays |= {f"calibration/{name}/x": calibration.x, f"calibration/{name}/y": calibration.y}
    parts = {_ARRAYS: _dump_arrays(arrays)}
    manifest: dict[str, Any] = {
        "format": ARTIFACT_FORMAT,
        "encoder": artifact.encoder.to_mapping(),
        "capabilities": list(predictor.capabilities),
        "features": list(FEATURE_NAMES),
        "budget": {name: getattr(artifact.budget, name) for name in TextBudget.__dataclass_fields__},
        "default_threshold": artifact.default_threshold,
        **({"family_thresholds": dict(artifact.family_thresholds)} if artifact.family_thresholds else {}),
        **({"language_effects": asdict(artifact.language_effects)} if artifact.language_effects else {}),
        "card": dict(artifact.card),
        "metrics": dict(artifact.metrics),
        "parts": {name: {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)} for name, data in parts.items()},
    }
    manifest = json.loads(json.dumps(manifest))  # as it will be read: keys are strings
    manifest["checksum"] = _checksum(manifest)
    return {MANIFEST: json.dumps(manifest, indent=2, ensure_ascii=False, sort_keys=True).encode() + b"\n", **parts}


def artifact_id(parts: Mapping[str, bytes]) -> str:
    """Short name of an artefact: the first 12 hex digits of its manifest's SHA-256, which covers every part."""
    return hashlib.sha256(parts[MANIFEST]).hexdigest()[:12]


def load_artifact(parts: Mapping[str, bytes]) -> RouterArtifact:
    """Check every part against the manifest, then read it.

    Raises
    ------
    ArtifactError
        Naming the part: missing, tampered with, of another format, or made for other features.
    """
    manifest = _manifest(parts)
    arrays = _load_arrays(_checked(parts, manifest, _ARRAYS))
    try:
        return _build(manifest, arrays)
    except ArtifactError:
        raise
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError, RouterError) as error:
        raise ArtifactError(f"the artefact cannot be read: {type(error).__name__}: {error}") from error


def _build(manifest: Mapping[str, Any], arrays: Mapping[str, NDArray[np.generic]]) -> RouterArtifact:
    encoder = EncoderSpec.from_mapping(manifest["encoder"])
    if tuple(manifest["features"]) != FEATURE_NAMES:
        raise ArtifactError("the artefact was trained on other features than this version extracts: train it again")
    names = tuple(str(name) for name in manifest["capabilities"])
    basis = _basis(arrays, encoder.dimension)
    dimension = encoder.dimension + len(FEATURE_NAMES) + (basis.dimension if basis else 0)
    heads = tuple(head_from_arrays(_below(arrays, f"head/{name}/"), dimension) for name in names)
    calibrations = tuple(Calibration(_f64(arrays[f"calibration/{name}/x"]), _f64(arrays[f"calibration/{name}/y"])) for name in names)
    artifact = RouterArtifact(
        encoder=encoder,
        predictor=RequirementsPredictor(names, heads, calibrations, basis),
        bands=Bands(_f64(arrays["bands.low"]), _f64(arrays["bands.high"])),
        residuals=ResidualSample(_f64(arrays["residuals.edges"]), _f64(arrays["residuals.values"])),
        budget=TextBudget(**{name: int(value) for name, value in manifest["budget"].items()}),
        default_threshold=float(manifest["default_threshold"]),
        family_thresholds={str(family): float(tau) for family, tau in manifest.get("family_thresholds", {}).items()},
        language_effects=_language_effects(manifest.get("language_effects", {})),
        card=manifest.get("card", {}),
        metrics=manifest.get("metrics", {}),
    )
    _check_shapes(artifact)
    return artifact


def _language_effects(raw: Mapping[str, Any]) -> LanguageEffects:
    languages, families = ({str(name): float(effect) for name, effect in raw.get(kind, {}).items()} for kind in ("languages", "families"))
    return LanguageEffects(languages, families)


def _basis(arrays: Mapping[str, NDArray[np.generic]], first: int) -> HatBasis | None:
    if "basis/low" not in arrays:
        return None
    basis = HatBasis(first, _f64(arrays["basis/low"]), _f64(arrays["basis/high"]), int(arrays["basis/knots"]))
    if basis.low.size != len(FEATURE_NAMES):
        raise ArtifactError(f"a basis over {basis.low.size} columns does not fit the {len(FEATURE_NAMES)} that are extracted")
    return basis


def _check_shapes(artifact: RouterArtifact) -> None:
    """What belongs together has one size, and every number is where it must be."""
    capabilities = len(artifact.capabilities)
    low, high = artifact.bands.low, artifact.bands.high
    if low.shape != (capabilities,) or low.min() < 0 or high.max() > 1:
        raise ArtifactError(f"the bands {low.tolist()} to {high.tolist()} are not {capabilities} ranges within [0, 1]")
    if artifact.residuals.residuals.shape[2] != capabilities:
        raise ArtifactError(f"residuals of shape {artifact.residuals.residuals.shape} are not those of {capabilities} capabilities")
    try:
        check_threshold("default_threshold", artifact.default_threshold)
        check_family_thresholds(artifact.family_thresholds)
    except InvalidInput as error:
        raise ArtifactError(str(error)) from error


def _manifest(parts: Mapping[str, bytes]) -> dict[str, Any]:
    if MANIFEST not in parts:
        raise ArtifactError(f"no {MANIFEST}: this is not a router artefact")
    try:
        manifest = json.loads(parts[MANIFEST])
    except (ValueError, RecursionError) as error:
        raise ArtifactError(f"{MANIFEST} is not JSON: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != ARTIFACT_FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else None
        raise ArtifactError(f"artefact format {found!r} is not {ARTIFACT_FORMAT}, the one this version reads: train it again")
    if manifest.get("checksum") != _checksum(manifest):
        raise ArtifactError(f"{MANIFEST} was changed: its content does not match its checksum")
    missing = next((name for name in manifest.get("parts", {}) if name not in parts), None)
    if missing is not None:
        raise ArtifactError(f"part {missing!r} of the artefact is missing")
    return manifest


def _checksum(manifest: Mapping[str, Any]) -> str:
    """SHA-256 of the manifest's content without the checksum itself, independent of white space."""
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _checked(parts: Mapping[str, bytes], manifest: Mapping[str, Any], name: str) -> bytes:
    if name not in parts:
        raise ArtifactError(f"part {name!r} of the artefact is missing")
    listed = manifest.get("parts")
    entry = listed.get(name) if isinstance(listed, dict) else None
    expected = entry.get("sha256") if isinstance(entry, dict) else None
    found = hashlib.sha256(parts[name]).hexdigest()
    if found != expected:
        raise ArtifactError(f"part {name!r} was changed: its SHA-256 is {found[:12]}…, the manifest says {str(expected)[:12]}…")
    return parts[name]


def _dump_arrays(arrays: Mapping[str, NDArray[np.generic]]) -> bytes:
    """An npz whose bytes depend on nothing but the arrays (fixed time stamps, sorted names)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(arrays):
            member = io.BytesIO()
            np.lib.format.write_array(member, np.asarray(arrays[name], order="C"), allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0)), member.getvalue(), zipfile.ZIP_DEFLATED)
    return buffer.getvalue()


def _load_arrays(data: bytes) -> dict[str, NDArray[np.generic]]:
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, KeyError, MemoryError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        raise ArtifactError(f"part {_ARRAYS!r} is not a readable npz: {error}") from error


def _below(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> dict[str, NDArray[np.generic]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _f64(array: NDArray[np.generic]) -> NDArray[np.float64]:
    return np.asarray(array, dtype=np.float64)
