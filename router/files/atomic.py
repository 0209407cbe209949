"""Files that are either there whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from router.errors import InvalidInput


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that a reader, or a crash, never sees half of it. Parent folders are made; errors name the file."""
    with errors_name(path):
        _write_atomically(path, data)


@contextmanager
def errors_name(path: Path) -> Iterator[None]:
    """Let errors of the system name what was to be written, not a temporary file or nothing."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _write_atomically(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent.resolve(), prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(name, 0o644)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def write_together(folder: Path, parts: Mapping[str, bytes]) -> None:
    """Write files of a folder all or none: every one is on disk before the first takes its place, and other files stay.

    What stood there is moved out before anything new is moved in, so that not even a crash leaves old beside new.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in parts:
        if (folder / name).is_dir():
            raise InvalidInput(f"output {folder / name} is a folder, and a file is written there: move it, or name another folder")
    with errors_name(folder):
        _write_together(folder, parts)


def _write_together(folder: Path, parts: Mapping[str, bytes]) -> None:
    staging = Path(tempfile.mkdtemp(dir=folder.resolve(), prefix=".new."))
    old = staging / "old"
    try:
        old.mkdir()
        for name, data in parts.items():
            write_atomically(staging / name, data)
        try:
            for name in parts:
                if (folder / name).exists():
                    os.replace(folder / name, old / name)
            for name in parts:
                os.replace(staging / name, folder / name)
        except BaseException:
            for name in parts:
                if (old / name).exists():
                    os.replace(old / name, folder / name)
                elif not (staging / name).exists():
                    (folder / name).unlink()
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def write_folder_atomically(folder: Path, parts: Mapping[str, bytes]) -> None:
    """Write a folder of files and put it in place with one rename; what stood there before is gone only after that."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(dir=folder.parent.resolve(), prefix=f".{folder.name}."))
    try:
        for name, data in parts.items():
            (staging / name).write_bytes(data)
        staging.chmod(0o755)
        replace_folder(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def require_writable(folder: Path) -> None:
    """Refuse an output folder that cannot be made or written to, before any work is done for it. Nothing is left behind.

    Raises
    ------
    InvalidInput
        The path, or one above it, is a file; or the nearest folder that there is may not be written to.
    """
    nearest = next(place for place in (folder, *folder.parents) if os.path.lexists(place))
    if not nearest.is_dir():
        raise InvalidInput(f"output {folder}{'' if nearest == folder else f': {nearest}'} is a file: name a folder")
    try:
        # The name is part of what may be refused: it can be too long.
        os.rmdir(tempfile.mkdtemp(dir=nearest.resolve(), prefix=f".{folder.name}."))
    except OSError as error:
        raise InvalidInput(
            f"output {folder} cannot be written in {nearest} ({error.strerror}): name another folder, or change its permissions"
        ) from error


def require_replaceable(folder: Path, marker: str, what: str) -> None:
    """Refuse to replace a folder that holds anything but an earlier ``what``, known by its file ``marker``, or that cannot be replaced.

    Raises
    ------
    InvalidInput
        The path is a file, a folder of other files, one that cannot be renamed, or one below which nothing can be written.
    """
    require_writable(folder)
    if folder.is_dir() and any(folder.iterdir()) and not (folder / marker).is_file():
        raise InvalidInput(f"output {folder} holds other files: name a new or empty folder, or one of an earlier {what}")
    if os.path.ismount(folder) or Path.cwd().is_relative_to(folder.resolve()):
        why = "a mount point" if os.path.ismount(folder) else "the folder you are in"
        raise InvalidInput(f"output {folder} is {why}, which cannot be replaced: name a folder inside it")
    require_writable(folder.parent)


def replace_folder(staging: Path, folder: Path) -> None:
    """Move ``staging`` to ``folder``, keeping the old one until the new one is in place."""
    if not folder.exists():
        os.replace(staging, folder)
        return
    old = Path(tempfile.mkdtemp(dir=folder.parent.resolve(), prefix=f".{folder.name}.old."))
    os.replace(folder, old / "old")
    try:
        os.replace(staging, folder)
    except OSError:
        os.replace(old / "old", folder)
        raise
    finally:
        shutil.rmtree(old, ignore_errors=True)
