"""Which prompts a router was fitted on, as numbers: so that nothing is promised on the strength of prompts it has seen.

An artefact folder holds the file :data:`SEEN`: 32-bit hashes of the texts and the groups of the fitted prompts, sorted. A prompt that was
not fitted on is taken for one that was with a probability of about hashes / 2^31, which costs a calibration row and nothing else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import ArtifactError
from training.split import prompt_texts

SEEN: Final = "seen.bin"
Hashes = NDArray[np.uint32]


def seen_bytes(rows: pd.DataFrame) -> bytes:
    """Content of the file for rows with ``turns`` and ``group``."""
    return np.unique(np.concatenate([_text_hashes(rows), _group_hashes(rows)])).astype("<u4").tobytes()


def read_seen(folder: Path) -> Hashes | None:
    """The hashes of an artefact folder, or None where it has none.

    Raises
    ------
    ArtifactError
        If the file is not a whole number of hashes.
    """
    path = folder / SEEN
    if not path.is_file():
        return None
    data = path.read_bytes()
    if len(data) % 4:
        raise ArtifactError(f"{path} has {len(data)} bytes, which is no whole number of hashes: train the router again")
    return np.frombuffer(data, dtype="<u4").astype(np.uint32)


def was_seen(rows: pd.DataFrame, seen: Hashes) -> NDArray[np.bool_]:
    """Rows whose text or group was fitted on, and all others of their groups, shape (n,)."""
    direct = np.isin(_text_hashes(rows), seen) | np.isin(_group_hashes(rows), seen)
    group = rows["group"].astype(str).to_numpy()
    return np.isin(group, np.unique(group[direct]))


def _text_hashes(rows: pd.DataFrame) -> Hashes:
    return _hashes("text " + " ".join(text.split()) for text in prompt_texts(rows))


def _group_hashes(rows: pd.DataFrame) -> Hashes:
    return _hashes("group " + str(group) for group in rows["group"])


def _hashes(texts: Iterable[str]) -> Hashes:
    digests = b"".join(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=4).digest() for text in texts)
    return np.frombuffer(digests, dtype="<u4").astype(np.uint32)
