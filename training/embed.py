"""An encoder that remembers: vectors on disk, keyed by the encoder's fingerprint and the SHA-256 of the text."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from router.encoder import EncoderSpec, TextEncoder
from router.errors import EncoderError, InvalidInput
from router.files.encoders import cache_dir
from training.progress import counting

Precision = Literal["float16", "float32"]
_BUSY_SECONDS: Final = 60.0
_KEYS_A_QUERY: Final = 500
# Large pages and a rowid table: with SQLite's defaults most of the file would be overflow pages.
_TABLES: Final = """
PRAGMA page_size = 16384;
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (text BLOB PRIMARY KEY, vector BLOB NOT NULL);
"""


class CachedEncoder:
    """A :class:`~router.encoder.TextEncoder` around another one that embeds no text twice.

    One SQLite file an encoder and precision. Each batch is one transaction, so several processes may share the file, and a run that was
    interrupted goes on after its last whole batch. The vectors of texts used recently are kept in memory as well.

    Parameters
    ----------
    encoder
        What embeds the texts that are new.
    folder
        Where the files are; by default ``embeddings`` in the user's cache.
    precision
        ``float32`` gives the encoder's vectors back exactly; ``float16`` halves the file and rounds, the same on the first call as later.
    batch_size
        Texts a batch; a batch holds texts of like length.
    progress
        Show a progress bar on standard error when more than one batch is new.
    memory_rows
        Vectors kept in memory at most.

    Raises
    ------
    InvalidInput
        If the file is damaged or cannot be written.
    """

    def __init__(
        self,
        encoder: TextEncoder,
        folder: Path | None = None,
        *,
        precision: Precision = "float32",
        batch_size: int = 64,
        progress: bool = False,
        memory_rows: int = 200_000,
    ) -> None:
        if precision not in ("float16", "float32"):
            raise InvalidInput(f"precision {precision!r}: float16 or float32 is allowed")
        if batch_size < 1:
            raise InvalidInput(f"batch_size {batch_size}: at least 1 is needed")
        self._encoder = encoder
        self._dtype = np.dtype(precision)
        self._batch_size = batch_size
        self._progress = progress
        self._memory: dict[bytes, NDArray[np.float32]] = {}
        self._memory_rows = memory_rows
        self.path = (folder or cache_dir() / "embeddings") / f"{encoder.spec.fingerprint}-{precision}.sqlite"
        self._prepare()

    @property
    def spec(self) -> EncoderSpec:
        """What the encoder inside is: cached vectors are its vectors."""
        return self._encoder.spec

    @property
    def inside(self) -> TextEncoder:
        """The encoder that embeds what is new."""
        return self._encoder

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), spec.dimension)`` in the order of ``texts``; only texts never seen are embedded."""
        keys = [_key(text) for text in texts]
        found = {key: self._memory[key] for key in keys if key in self._memory}
        lacking = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
        if lacking:
            found.update(self._stored(list(lacking)))
            found.update(self._embedded({key: text for key, text in lacking.items() if key not in found}))
            self._remember({key: found[key] for key in lacking})
        vectors = [found[key] for key in keys]
        return np.stack(vectors) if vectors else np.zeros((0, self.spec.dimension), dtype=np.float32)

    def __len__(self) -> int:
        """Vectors on disk."""
        with self._open() as database:
            return int(database.execute("SELECT count(*) FROM vectors").fetchone()[0])

    def _prepare(self) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInput(f"{self.path.parent}: the embedding cache cannot be made ({error.strerror}); name another folder") from error
        with self._open() as database:
            database.executescript(_TABLES)
            spec = json.dumps(self.spec.to_mapping(), sort_keys=True)
            database.execute("INSERT OR IGNORE INTO about VALUES ('encoder', ?)", (spec,))
            database.commit()

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        """A connection of its own a call: safe across threads and forks, and cheap beside embedding."""
        try:
            with closing(sqlite3.connect(self.path, timeout=_BUSY_SECONDS)) as database:
                yield database
        except sqlite3.DatabaseError as error:
            raise InvalidInput(f"{self.path}: the embedding cache cannot be used ({error}); delete the file to start it anew") from error

    def _stored(self, keys: Sequence[bytes]) -> dict[bytes, NDArray[np.float32]]:
        vectors: dict[bytes, NDArray[np.float32]] = {}
        size = self.spec.dimension * self._dtype.itemsize
        with self._open() as database:
            for start in range(0, len(keys), _KEYS_A_QUERY):
                some = keys[start : start + _KEYS_A_QUERY]
                query = f"SELECT text, vector FROM vectors WHERE text IN ({','.join('?' * len(some))})"  # noqa: S608 - only question marks
                for key, blob in database.execute(query, some):
                    if len(blob) == size:
                        vectors[key] = self._decoded(blob)
        return vectors

    def _embedded(self, texts: dict[bytes, str]) -> dict[bytes, NDArray[np.float32]]:
        """Embed, longest first so that memory peaks and the time left shows at the start, and store batch by batch."""
        order = sorted(texts, key=lambda key: len(texts[key]), reverse=True)
        batches = [order[start : start + self._batch_size] for start in range(0, len(order), self._batch_size)]
        vectors: dict[bytes, NDArray[np.float32]] = {}
        for batch in self._watched(batches, len(order)):
            rows = self._encoder.encode([texts[key] for key in batch])
            if rows.shape != (len(batch), self.spec.dimension):
                raise EncoderError(
                    f"encoder {self.spec.name!r} gave shape {rows.shape} for {len(batch)} texts of {self.spec.dimension} dimensions"
                )
            blobs = [np.ascontiguousarray(row, dtype=self._dtype).tobytes() for row in rows]
            with self._open() as database:
                database.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?)", zip(batch, blobs, strict=True))
                database.commit()
            vectors.update((key, self._decoded(blob)) for key, blob in zip(batch, blobs, strict=True))
        return vectors

    def _decoded(self, blob: bytes) -> NDArray[np.float32]:
        return np.frombuffer(blob, dtype=self._dtype).astype(np.float32)

    def _remember(self, vectors: dict[bytes, NDArray[np.float32]]) -> None:
        self._memory.update(vectors)
        for key in list(self._memory)[: max(0, len(self._memory) - self._memory_rows)]:
            del self._memory[key]

    def _watched(self, batches: list[list[bytes]], total: int) -> Iterator[list[bytes]]:
        if not self._progress or len(batches) < 2:
            yield from batches
            return
        with counting(f"embedding ({self.spec.name})", total) as advance:
            for batch in batches:
                yield batch
                advance(len(batch))


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
