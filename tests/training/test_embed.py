from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from router.encoder import EncoderSpec, TextEncoder, l2_normalise
from router.errors import EncoderError, InvalidInput
from training.embed import CachedEncoder

TEXTS = ["short", "a longer text than that", "日本語の文", "", "short", "ünïcode \ud800"]


class ToyEncoder:
    """Vectors from the characters of a text; counts what it was asked."""

    def __init__(self, revision: str = "1", fails_after: int | None = None) -> None:
        self.spec = EncoderSpec("fast", "toy", revision, "", 64, 8)
        self.asked: list[str] = []
        self.fails_after = fails_after

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.fails_after is not None and len(self.asked) + len(texts) > self.fails_after:
            raise KeyboardInterrupt
        self.asked += texts
        rows = [np.random.default_rng([ord(c) for c in text]).standard_normal(8) * bool(text) for text in texts]
        return l2_normalise(np.array(rows, dtype=np.float32).reshape(-1, 8))


def test_same_vectors_in_the_same_order_and_each_text_once(tmp_path: Path) -> None:
    plain, inner = ToyEncoder().encode(TEXTS), ToyEncoder()
    cached = CachedEncoder(inner, tmp_path, batch_size=2)
    assert isinstance(cached, TextEncoder)
    assert cached.spec == inner.spec
    np.testing.assert_array_equal(cached.encode(TEXTS), plain)
    np.testing.assert_array_equal(cached.encode(TEXTS[::-1]), plain[::-1])
    assert sorted(inner.asked) == sorted(set(TEXTS))
    assert len(cached) == 5


def test_a_second_run_embeds_nothing(tmp_path: Path) -> None:
    first = CachedEncoder(ToyEncoder(), tmp_path).encode(TEXTS)
    again = ToyEncoder()
    np.testing.assert_array_equal(CachedEncoder(again, tmp_path).encode(TEXTS), first)
    assert again.asked == []


def test_batches_hold_texts_of_like_length(tmp_path: Path) -> None:
    inner = ToyEncoder()
    CachedEncoder(inner, tmp_path, batch_size=2).encode(["x" * n for n in (5, 90, 7, 80, 6)])
    assert [len(text) for text in inner.asked] == [90, 80, 7, 6, 5]


def test_another_encoder_has_its_own_file(tmp_path: Path) -> None:
    CachedEncoder(ToyEncoder("1"), tmp_path).encode(TEXTS)
    other = ToyEncoder("2")
    CachedEncoder(other, tmp_path).encode(TEXTS)
    assert other.asked
    assert len(list(tmp_path.glob("*.sqlite"))) == 2


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    texts = [f"text number {i}" for i in range(10)]
    with pytest.raises(KeyboardInterrupt):
        CachedEncoder(ToyEncoder(fails_after=6), tmp_path, batch_size=2).encode(texts)
    rest = ToyEncoder()
    vectors = CachedEncoder(rest, tmp_path, batch_size=2).encode(texts)
    assert len(rest.asked) == 4
    np.testing.assert_array_equal(vectors, ToyEncoder().encode(texts))


def test_half_precision_is_the_same_on_the_first_call_as_later(tmp_path: Path) -> None:
    first = CachedEncoder(ToyEncoder(), tmp_path, precision="float16").encode(TEXTS)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(CachedEncoder(ToyEncoder(), tmp_path, precision="float16").encode(TEXTS), first)
    np.testing.assert_allclose(first, ToyEncoder().encode(TEXTS), atol=1e-3)


def test_many_writers_share_a_file(tmp_path: Path) -> None:
    texts = [f"shared {i}" for i in range(60)]

    def work(start: int) -> NDArray[np.float32]:
        return CachedEncoder(ToyEncoder(), tmp_path, batch_size=7).encode(texts[start:] + texts[:start])

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(work, (0, 10, 20, 30)))
    expected = ToyEncoder().encode(texts)
    for start, vectors in zip((0, 10, 20, 30), results, strict=True):
        np.testing.assert_array_equal(vectors, np.roll(expected, -start, axis=0))
    assert len(CachedEncoder(ToyEncoder(), tmp_path)) == 60


def test_memory_is_bounded(tmp_path: Path) -> None:
    inner = ToyEncoder()
    cached = CachedEncoder(inner, tmp_path, memory_rows=3)
    texts = [f"text {i}" for i in range(20)]
    np.testing.assert_array_equal(cached.encode(texts), cached.encode(texts))
    assert len(inner.asked) == 20
    assert len(cached._memory) == 3


def test_a_vector_of_another_length_is_embedded_anew(tmp_path: Path) -> None:
    cached = CachedEncoder(ToyEncoder(), tmp_path)
    expected = cached.encode(["a"])
    with sqlite3.connect(cached.path) as database:
        database.execute("UPDATE vectors SET vector = x'0001'")
    database.close()
    np.testing.assert_array_equal(CachedEncoder(ToyEncoder(), tmp_path).encode(["a"]), expected)


def test_nothing_to_embed(tmp_path: Path) -> None:
    assert CachedEncoder(ToyEncoder(), tmp_path).encode([]).shape == (0, 8)


def test_progress_goes_to_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    CachedEncoder(ToyEncoder(), tmp_path, batch_size=1, progress=True).encode(TEXTS)
    out, err = capsys.readouterr()
    assert out == ""
    assert "embedding (toy)" in err


def test_a_damaged_file_is_a_clear_error(tmp_path: Path) -> None:
    path = CachedEncoder(ToyEncoder(), tmp_path).path
    path.write_bytes(b"not a database, " * 100)
    with pytest.raises(InvalidInput, match=r"embedding cache cannot be used .*; delete the file to start it anew"):
        CachedEncoder(ToyEncoder(), tmp_path)


def test_wrong_arguments(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="precision 'int8': float16 or float32"):
        CachedEncoder(ToyEncoder(), tmp_path, precision="int8")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="batch_size 0"):
        CachedEncoder(ToyEncoder(), tmp_path, batch_size=0)


def test_an_encoder_that_gives_another_shape(tmp_path: Path) -> None:
    inner = ToyEncoder()
    inner.spec = EncoderSpec("fast", "toy", "1", "", 64, 9)
    with pytest.raises(EncoderError, match=r"'toy' gave shape \(1, 8\) for 1 texts of 9 dimensions"):
        CachedEncoder(inner, tmp_path).encode(["a"])
