"""The run folder: refused before any work is done for it, held by one run at a time, and not left behind empty."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from router.errors import LabelError

if sys.platform != "win32":
    import fcntl

WRITTEN = (
    "answers.jsonl",
    "judgements.jsonl",
    "scores.jsonl",
    "failures.jsonl",
    "run.json",
    "prompts.parquet",
    "outcomes.parquet",
    "deltas.parquet",
)


def require_files(out: Path) -> None:
    """Refuse a run folder in which something other than a file bears the name of one that a run writes."""
    for name in WRITTEN:
        if (out / name).exists() and not (out / name).is_file():
            raise LabelError(f"output {out / name} is not a file, and a file is written there: move it, or name another folder with --out")


def require_apart(out: Path, prompts: Path) -> None:
    """Refuse a run folder that is the folder of prompts, or whose files would take the place of the prompts.

    Tables in a folder of prompts would be read in their stead the next time.
    """
    if prompts.is_dir() and _same(out, prompts):
        raise LabelError(f"--out {out} is the folder that the prompts are read from; name another folder")
    if prompts.name in WRITTEN and _same(out / prompts.name, prompts):
        raise LabelError(f"--out {out} would overwrite the prompts {prompts}; name another folder")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


@contextmanager
def held(out: Path) -> Iterator[None]:
    """Make the run folder if need be and keep other runs out of it; folders that were made and stay empty go again."""
    made = [folder for folder in (out, *out.parents) if not folder.exists()]
    try:
        handle = _lock(out)
        try:
            yield
        finally:
            if handle is not None:
                os.close(handle)
    finally:
        _remove_empty(made)


def _lock(out: Path) -> int | None:
    """Lock the folder itself: no lock file stays behind, and the lock ends with its process."""
    while True:
        out.mkdir(parents=True, exist_ok=True)
        if sys.platform == "win32":  # two runs into one folder are not told apart there
            return None
        handle = os.open(out, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(handle)
            raise LabelError(f"another run is writing to {out}: wait until it ends, or name another folder with --out") from error
        except OSError:  # a file system without locks
            os.close(handle)
            return None
        if out.exists() and os.fstat(handle).st_ino == out.stat().st_ino:
            return handle
        os.close(handle)  # the run that held it has just removed the folder


def _remove_empty(folders: list[Path]) -> None:
    for folder in folders:
        try:
            folder.rmdir()
        except OSError:
            return
