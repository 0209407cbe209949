"""Vectors of the teacher, kept on disk so that a second run with other parameters costs nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from router.encoder import TextEncoder

CHUNK = 1024


def teach(encoder: TextEncoder, texts: Sequence[str], cache: Path | None) -> NDArray[np.float32]:
    """Vectors of shape ``(len(texts), dimension)``, computed in chunks; each chunk is a file named by encoder and texts."""
    starts = track(range(0, len(texts), CHUNK), "teacher vectors")
    return np.concatenate([_chunk(encoder, texts[start : start + CHUNK], cache) for start in starts]).astype(np.float32)


def _chunk(encoder: TextEncoder, texts: Sequence[str], cache: Path | None) -> NDArray[np.float16]:
    if cache is None:
        return encoder.encode(texts).astype(np.float16)
    path = cache / f"{chunk_key(encoder.spec.fingerprint, texts)}.npy"
    if path.is_file():
        return np.asarray(np.load(path, allow_pickle=False), np.float16)
    vectors = encoder.encode(texts).astype(np.float16)
    cache.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    with temporary.open("wb") as file:
        np.save(file, vectors)
    os.replace(temporary, path)
    return vectors


def chunk_key(fingerprint: str, texts: Sequence[str]) -> str:
    """24 hex digits over the encoder and the texts in order."""
    digest = hashlib.sha256(fingerprint.encode())
    for text in texts:
        digest.update(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())
    return digest.hexdigest()[:24]
