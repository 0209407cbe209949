"""Input rows of the heads: in memory for a table of usual size, chunk by chunk into a file for a large one.

The file is memory-mapped, so that what a step reads of it need not stay in memory, and holds single precision. A chunk that is there is not
made again: a run that was interrupted goes on after its last chunk.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

import router.envelope
import router.features
import router.languages
import router.plain
import router.text
from router.encoder import EncoderSpec, TextEncoder
from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.encoders import cache_dir, load_encoder
from router.route import model_input
from router.text import TextBudget, classify_text
from router.types import Conversation
from training.embed import CachedEncoder
from training.engine import Engine, LocalEngine
from training.progress import Advance, counting, uncounted

Array = NDArray[np.float64]
Inputs = NDArray[np.floating]
MANY_ROWS: Final = 50_000
"""From so many rows on, inputs are a file of single precision."""
CHUNK_ROWS: Final = 5_000
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class EncoderSource:
    """An encoder for another process, which loads it there by its description; weights do not travel."""

    spec: EncoderSpec
    threads: int = 1

    def load(self) -> TextEncoder:
        """The encoder; an :class:`~router.errors.EncoderError` where the process has other weights, or none."""
        return load_encoder(self.spec, self.threads)


def inputs_of(encoder: TextEncoder, conversations: Sequence[Conversation], budget: TextBudget) -> Array:
    """Input rows of the heads, shape (n, embedding + features), exactly as serving makes them."""
    listed = list(conversations)
    return model_input(encoder, listed, [classify_text(conversation, budget) for conversation in listed])


@contextmanager
def training_inputs(
    encoder: TextEncoder, conversations: Sequence[Conversation], budget: TextBudget, engine: Engine
) -> Iterator[NDArray[np.floating]]:
    """Inputs of the rows while the block runs: an array, or for :data:`MANY_ROWS`, or on a cluster, the file of :func:`large_inputs`."""
    here = isinstance(engine, LocalEngine)
    if len(conversations) < MANY_ROWS and here:
        yield inputs_of(encoder, conversations, budget)
        return
    # The file of inputs remembers vectors; to keep them a second time is of no use.
    source: TextEncoder | EncoderSource = encoder.inside if isinstance(encoder, CachedEncoder) else encoder
    if engine.workers > 1 or not here:
        source = EncoderSource(encoder.spec)
    with ExitStack() as stack:
        with counting(f"embedding ({encoder.spec.name})", len(conversations)) as progress:
            made = large_inputs(source, conversations, budget, engine=engine, progress=progress)
            inputs = stack.enter_context(made)
        yield inputs


@contextmanager
def large_inputs(
    source: EncoderSource | TextEncoder,
    conversations: Sequence[Conversation],
    budget: TextBudget,
    *,
    engine: Engine | None = None,
    folder: Path | None = None,
    progress: Advance = uncounted,
) -> Iterator[NDArray[np.float32]]:
    """:func:`inputs_of` as a memory-mapped float32 array, made in chunks wherever the engine runs them.

    The file lies in ``folder`` (by default ``inputs`` in the user's cache) while the block runs. It is deleted when the block ends well and
    kept when it does not, for the next run to go on with.

    Parameters
    ----------
    source
        The encoder, or where it has to travel to other processes how they load it.
    """
    folder = folder or cache_dir() / "inputs"
    store = _Store.open(folder, _key(source, budget, len(conversations)), (len(conversations), source.spec.dimension + len(FEATURE_NAMES)))
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


def _embedded(shared: tuple[EncoderSource | TextEncoder, TextBudget], conversations: Sequence[Conversation]) -> NDArray[np.float32]:
    source, budget = shared
    encoder = _loaded(source) if isinstance(source, EncoderSource) else source
    return inputs_of(encoder, conversations, budget).astype(np.float32)


@lru_cache(maxsize=1)
def _loaded(source: EncoderSource) -> TextEncoder:
    return source.load()


def _key(source: EncoderSource | TextEncoder, budget: TextBudget, rows: int) -> str:
    """Names the file by all that decides its content but the conversations: encoder, budget, and the code that reads text."""
    code = "".join(inspect.getsource(module) for module in (router.features, router.languages, router.text, router.envelope, router.plain))
    return hashlib.sha256(f"{source.spec.fingerprint} {budget} {rows} {code}".encode()).hexdigest()[:16]


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
        shapes = shape, (-(-shape[0] // CHUNK_ROWS), _DIGEST_BYTES)
        sizes = 4 * shape[0] * shape[1], shapes[1][0] * shapes[1][1]
        try:
            folder.mkdir(parents=True, exist_ok=True)
            there = all(path.is_file() and path.stat().st_size == size for path, size in zip(paths, sizes, strict=True))
            mode: Literal["r+", "w+"] = "r+" if there else "w+"
            rows = np.memmap(paths[0], np.float32, mode, shape=shapes[0])
            done = np.memmap(paths[1], np.uint8, mode, shape=shapes[1])
        except OSError as error:
            raise InvalidInput(f"{folder}: inputs cannot be kept there ({error.strerror}); set INTERLOCK_CACHE") from error
        return cls(rows, done, paths)

    def has(self, start: int, digest: bytes) -> bool:
        return bool(self.done[start // CHUNK_ROWS].tobytes() == digest)

    def put(self, start: int, rows: NDArray[np.float32], digest: bytes) -> None:
        """The rows first and then that they are there, so that an interruption in between costs a chunk and nothing else."""
        self.rows[start : start + len(rows)] = rows
        self.done[start // CHUNK_ROWS] = np.frombuffer(digest, dtype=np.uint8)

    def remove(self) -> None:
        for path in self.paths:
            path.unlink(missing_ok=True)
