"""Input rows of the heads: in memory for a table of usual size, chunk by chunk into a file for a large one.

The file is memory-mapped, so that what a step reads of it need not stay in memory, and holds single precision. A chunk that is there is not
made again: a run that was interrupted goes on after its last chunk.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

import router.features
import router.languages
import router.text
from router.encoder import TextEncoder
from router.errors import EncoderError, InvalidInput
from router.features import FEATURE_NAMES
from router.files.encoders import cache_dir, load_encoder
from router.route import model_input
from router.text import TextBudget, classify_text
from router.types import Conversation
from training.engine import Engine, LocalEngine

Array = NDArray[np.float64]
Inputs = NDArray[np.floating]
MANY_ROWS: Final = 50_000
"""From so many rows on, inputs are a file of single precision."""
CHUNK_ROWS: Final = 5_000
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """How a worker loads the encoder, which itself need not travel: as ``load_encoder`` is told, and what it must turn out to be."""

    name: str
    prefix: str | None
    fingerprint: str
    threads: int = 1

    def load(self) -> TextEncoder:
        """The encoder.

        Raises
        ------
        EncoderError
            If this machine has other weights under the name.
        """
        encoder = load_encoder(self.name, self.threads, prefix=self.prefix)
        if encoder.spec.fingerprint != self.fingerprint:
            raise EncoderError(
                f"encoder {self.name!r} is {encoder.spec.fingerprint} on this worker and {self.fingerprint} where training began: "
                "install the same weights on both"
            )
        return encoder


def inputs_of(encoder: TextEncoder, conversations: Sequence[Conversation], budget: TextBudget) -> Array:
    """Input rows of the heads, shape (n, embedding + features), exactly as serving makes them."""
    listed = list(conversations)
    return model_input(encoder, listed, [classify_text(conversation, budget) for conversation in listed])


@contextmanager
def large_inputs(
    source: EncoderSource,
    dimension: int,
    conversations: Sequence[Conversation],
    budget: TextBudget,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
    progress: Callable[[int], None] = lambda rows: None,
) -> Iterator[NDArray[np.float32]]:
    """:func:`inputs_of` as a memory-mapped float32 array, made in chunks wherever the engine runs them.

    The file lies in ``folder`` (by default ``inputs`` in the user's cache) while the block runs. It is deleted when the block ends well and
    kept when it does not, for the next run to go on with.

    Parameters
    ----------
    dimension
        Of the encoder's vectors.
    progress
        Told the number of further rows that are done.
    """
    folder = folder or cache_dir() / "inputs"
    store = _Store.open(folder, _key(source, budget, len(conversations)), (len(conversations), dimension + len(FEATURE_NAMES)))
    starts = range(0, len(conversations), CHUNK_ROWS)
    digests = {start: _digest(conversations[start : start + CHUNK_ROWS]) for start in starts}
    missing = [start for start in starts if not store.has(start, digests[start])]
    progress(len(conversations) - sum(min(CHUNK_ROWS, len(conversations) - start) for start in missing))
    chunks = (conversations[start : start + CHUNK_ROWS] for start in missing)
    for start, rows in zip(missing, (engine or LocalEngine()).map(_embedded, (source, budget), chunks), strict=True):
        store.put(start, rows, digests[start])
        progress(len(rows))
    yield store.rows
    store.remove()


def _embedded(shared: tuple[EncoderSource, TextBudget], conversations: Sequence[Conversation]) -> NDArray[np.float32]:
    source, budget = shared
    return inputs_of(_encoder(source), conversations, budget).astype(np.float32)


_LOADED: dict[EncoderSource, TextEncoder] = {}


def _encoder(source: EncoderSource) -> TextEncoder:
    """Loaded once a process."""
    if source not in _LOADED:
        _LOADED[source] = source.load()
    return _LOADED[source]


def _key(source: EncoderSource, budget: TextBudget, rows: int) -> str:
    """Names the file by all that decides its content but the conversations: encoder, budget, and the code that reads text."""
    code = "".join(inspect.getsource(module) for module in (router.features, router.languages, router.text))
    return hashlib.sha256(f"{source.fingerprint} {budget} {rows} {code}".encode()).hexdigest()[:16]


def _digest(conversations: Sequence[Conversation]) -> bytes:
    said = "\0".join(map(repr, conversations)).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=_DIGEST_BYTES).digest()


@dataclass(frozen=True, slots=True)
class _Store:
    """The array and, of every chunk that is in it, the digest of the conversations it was made from (zeros where it is not)."""

    rows: NDArray[np.float32]
    done: NDArray[np.uint8]
    paths: tuple[Path, Path]

    @classmethod
    def open(cls, folder: Path, key: str, shape: tuple[int, int]) -> _Store:
        paths = folder / f"{key}.f32", folder / f"{key}.done"
        shapes = (shape, np.float32), ((-(-shape[0] // CHUNK_ROWS), _DIGEST_BYTES), np.uint8)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            fresh = not all(path.is_file() and path.stat().st_size == _bytes(*of) for path, of in zip(paths, shapes, strict=True))
            arrays = [np.memmap(path, kind, "w+" if fresh else "r+", shape=of) for path, (of, kind) in zip(paths, shapes, strict=True)]
        except OSError as error:
            raise InvalidInput(f"{folder}: inputs cannot be kept there ({error.strerror}); set INTERLOCK_CACHE to another folder") from error
        return cls(arrays[0], arrays[1], paths)

    def has(self, start: int, digest: bytes) -> bool:
        return self.done[start // CHUNK_ROWS].tobytes() == digest

    def put(self, start: int, rows: NDArray[np.float32], digest: bytes) -> None:
        """The rows first and then that they are there, so that an interruption in between costs a chunk and nothing else."""
        self.rows[start : start + len(rows)] = rows
        self.done[start // CHUNK_ROWS] = np.frombuffer(digest, dtype=np.uint8)

    def remove(self) -> None:
        for path in self.paths:
            path.unlink(missing_ok=True)


def _bytes(shape: tuple[int, int], kind: type[np.generic]) -> int:
    return shape[0] * shape[1] * np.dtype(kind).itemsize
