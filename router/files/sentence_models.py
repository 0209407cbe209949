"""SentenceTransformers from a folder or the Hugging Face hub, pinned: a folder by its bytes, a hub model by its commit."""

from __future__ import annotations

import hashlib
import importlib.util
import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from router.encoders.sentence import SentenceEncoder
from router.errors import EncoderError

log = logging.getLogger("interlock.encoder")

FOLDER_REVISION: Final = "sha256-"
_DESCRIBES_A_MODEL: Final = ("modules.json", "config.json")
_HUB_ORGANISATION: Final = "sentence-transformers"  # of names without one
_HUB_TIMEOUT_SECONDS: Final = 10.0
# Other formats of the same weights, which PyTorch does not read.
_OTHER_BACKENDS: Final = frozenset({"onnx", "openvino"})


@dataclass(frozen=True, slots=True)
class SentenceModel:
    """A model that was found; ``name`` and ``revision`` go into the encoder's spec."""

    name: str
    revision: str
    folder: Path | None = None
    cached: bool = True


def find_model(name: str) -> SentenceModel:
    """Find a model by folder or by name on the hub.

    What is in the Hugging Face cache is used without asking the network.

    Raises
    ------
    EncoderError
        There is no such folder or model, the hub cannot be reached, or sentence-transformers is not installed.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder_model(folder)
    if folder.exists() or _is_path(name):
        raise EncoderError(f"no encoder folder {name}: give a SentenceTransformer's folder or hub name, or 'fast' or 'full'")
    return hub_model(name if "/" in name else f"{_HUB_ORGANISATION}/{name}")


def find_pinned_model(name: str, revision: str, kept: Path) -> SentenceModel:
    """The very model that a router was trained with; a folder may have moved into ``kept``, since its bytes say what it is.

    Raises
    ------
    EncoderError
        It is not there, or there is another in its place.
    """
    if not revision.startswith(FOLDER_REVISION):
        return hub_model(name, revision)
    places = (Path(name), kept / Path(name).name)
    found = [folder_model(folder) for folder in places if folder.is_dir()]
    for model in found:
        if model.revision == revision:
            return replace(model, name=name)
    if not found:
        raise EncoderError(f"the encoder folder {name} of this router is not there; put it back, or into {kept}, or train again")
    raise EncoderError(
        f"{found[0].name} is not the encoder that this router was trained with: its files give {found[0].revision}, "
        f"expected {revision}; put its files back, or train again"
    )


def hub_model(name: str, revision: str = "") -> SentenceModel:
    """A model of the hub at a commit, or as the cache, or else the hub, has it now."""
    _require_extra(name)
    commit = _cached_commit(name, revision)
    return SentenceModel(name, commit or _hub_commit(name, revision), cached=commit is not None)


def folder_model(folder: Path) -> SentenceModel:
    """The model in a folder; its revision is the SHA-256 of the names and bytes of all files but hidden ones and ``*.md``.

    Raises
    ------
    EncoderError
        The folder holds no model, or cannot be read.
    """
    folder = folder.resolve()
    if not any((folder / name).is_file() for name in _DESCRIBES_A_MODEL):
        raise EncoderError(f"{folder} is not a SentenceTransformer folder: it has neither {' nor '.join(_DESCRIBES_A_MODEL)}")
    whole = hashlib.sha256()
    try:
        for path in _model_files(folder):
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            whole.update(f"{path.relative_to(folder).as_posix()}\0{digest}\n".encode())
    except OSError as error:
        raise EncoderError(f"encoder file {error.filename} cannot be read: {error.strerror}") from error
    return SentenceModel(str(folder), FOLDER_REVISION + whole.hexdigest()[:16], folder)


def load_model(
    model: SentenceModel, prefix: str | None = None, max_tokens: int | None = None, *, threads: int = 1, quiet: bool = False
) -> SentenceEncoder:
    """Load what :func:`find_model` found. PyTorch keeps one number of threads for the whole process.

    Raises
    ------
    EncoderError
        sentence-transformers is not installed, or the model cannot be loaded.
    """
    _require_extra(model.name)
    if not model.cached:
        log.warning("downloading the SentenceTransformer %s (%s) from the Hugging Face hub", model.name, model.revision[:12])
    try:
        import torch
        from sentence_transformers import SentenceTransformer

        torch.set_num_threads(threads)
        with _without_reports(quiet and model.cached):
            loaded = SentenceTransformer(
                str(model.folder or model.name),
                revision=None if model.folder else model.revision,
                device="cpu",
                local_files_only=model.cached,
            )
    except Exception as error:  # hub, file and configuration errors come in many types
        raise EncoderError(f"cannot load the SentenceTransformer {model.name!r}: {_first_line(error)}") from error
    return SentenceEncoder.of(loaded, model.name, model.revision, prefix, max_tokens)


def _is_path(name: str) -> bool:
    """Whether a name can only be that of a folder: the hub's are ``name`` or ``organisation/name``."""
    return name.startswith((".", "~", "/")) or name.endswith("/") or name.count("/") > 1 or "\\" in name


def _model_files(folder: Path) -> Iterator[Path]:
    """In an order that is the same everywhere."""
    found = []
    for root, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _OTHER_BACKENDS]
        found += [Path(root) / name for name in files if not name.startswith(".") and not name.endswith(".md")]
    yield from sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def _require_extra(name: str) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        raise EncoderError(
            f"encoder {name!r} needs sentence-transformers; run: pip install 'interlock[encoders]', or use the encoders 'fast' or 'full'"
        )


def _cached_commit(name: str, revision: str) -> str | None:
    """The commit that the Hugging Face cache has, if it has the model at all."""
    from huggingface_hub import try_to_load_from_cache

    for file in _DESCRIBES_A_MODEL:
        try:
            found = try_to_load_from_cache(name, file, revision=revision or None)
        except ValueError as error:
            raise EncoderError(f"{name!r} is neither a folder nor a model name: {_first_line(error)}") from error
        if isinstance(found, str):
            return Path(found).parent.name
    return None


def _hub_commit(name: str, revision: str) -> str:
    """The commit that the hub has; one short question instead of minutes of retries where there is no network."""
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    log.warning("the SentenceTransformer %s is not in the Hugging Face cache; asking the hub", name)
    try:
        found = HfApi().model_info(name, revision=revision or None, timeout=_HUB_TIMEOUT_SECONDS).sha
    except (RepositoryNotFoundError, RevisionNotFoundError) as error:
        at = f" at {revision}" if revision else ""
        raise EncoderError(
            f"the Hugging Face hub has no model {name!r}{at} that may be read; give a folder or another name, or 'fast' or 'full'"
        ) from error
    except Exception as error:  # each version of the hub's client has its own network errors
        raise EncoderError(
            f"the SentenceTransformer {name!r} is not on this machine and the Hugging Face hub cannot be asked ({_first_line(error)}); "
            "download it where there is a network and give its folder, or use 'fast' or 'full'"
        ) from error
    if not found:
        raise EncoderError(f"the Hugging Face hub does not say the commit of {name!r}; download it and give its folder")
    return str(found)


@contextmanager
def _without_reports(quiet: bool) -> Iterator[None]:
    """Without what is reported of every load: it was seen when the router was trained, and the weights are pinned."""
    if not quiet:
        yield
        return
    reports: Any = importlib.import_module("transformers.utils.logging")
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "transformers")]
    levels = [logger.level for logger in loggers]
    bars = reports.is_progress_bar_enabled()
    reports.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            reports.enable_progress_bar()


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__
