"""Inputs in a file: equal to those in memory, resumed after an interruption, never mistaken for those of other prompts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from router.encoder import EncoderSpec
from router.errors import InvalidInput
from router.text import TextBudget
from router.types import Conversation
from training import inputs
from training.embed import CachedEncoder
from training.engine import LocalEngine
from training.inputs import EncoderSource, inputs_of, large_inputs, training_inputs

CONVERSATIONS = [Conversation.from_text(f"sort list number {i} of {i % 7}") for i in range(57)]
BUDGET = TextBudget()


class CountingEncoder:
    """Vectors from lengths; counts texts and is interrupted after so many."""

    spec = EncoderSpec("fast", "counting", "1", "", 64, 4)

    def __init__(self, fails_after: int = 10**9) -> None:
        self.texts = 0
        self.fails_after = fails_after

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        if self.texts > self.fails_after:
            raise KeyboardInterrupt
        return np.array([[len(text), text.count("1"), text.count("t"), 1.0] for text in texts], dtype=np.float32)


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "CHUNK_ROWS", 10)


def test_the_file_holds_what_memory_would_and_goes_when_it_is_done_with(tmp_path: Path) -> None:
    with large_inputs(CountingEncoder(), CONVERSATIONS, BUDGET, folder=tmp_path) as rows:
        assert len(list(tmp_path.iterdir())) == 2
        np.testing.assert_array_equal(rows, inputs_of(CountingEncoder(), CONVERSATIONS, BUDGET).astype(np.float32))
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_run_goes_on_after_its_last_chunk(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), large_inputs(CountingEncoder(35), CONVERSATIONS, BUDGET, folder=tmp_path):
        pass
    rest, done = CountingEncoder(), []
    with large_inputs(rest, CONVERSATIONS, BUDGET, folder=tmp_path, progress=done.append) as rows:
        np.testing.assert_array_equal(rows, inputs_of(CountingEncoder(), CONVERSATIONS, BUDGET).astype(np.float32))
    assert rest.texts == 27
    assert (done[0], sum(done)) == (30, 57)


def test_a_run_that_fails_later_need_not_embed_again(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="later"), large_inputs(CountingEncoder(), CONVERSATIONS, BUDGET, folder=tmp_path):
        raise RuntimeError("later")
    again = CountingEncoder()
    with large_inputs(again, CONVERSATIONS, BUDGET, folder=tmp_path):
        assert again.texts == 0


def test_only_chunks_with_other_prompts_are_made_again(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), large_inputs(CountingEncoder(), CONVERSATIONS, BUDGET, folder=tmp_path):
        raise RuntimeError
    changed = [*CONVERSATIONS[:-1], Conversation.from_text("another one")]
    encoder = CountingEncoder()
    with large_inputs(encoder, changed, BUDGET, folder=tmp_path) as rows:
        np.testing.assert_array_equal(rows, inputs_of(CountingEncoder(), changed, BUDGET).astype(np.float32))
    assert encoder.texts == 7


def test_many_rows_take_the_file_and_do_not_fill_the_cache_of_vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_CACHE", str(tmp_path / "cache"))
    encoder = CachedEncoder(CountingEncoder(), tmp_path / "vectors")
    with training_inputs(encoder, CONVERSATIONS, BUDGET, LocalEngine()) as few:
        assert few.dtype == np.float64
    kept = len(encoder)
    monkeypatch.setattr(inputs, "MANY_ROWS", 50)
    other = [Conversation.from_text(f"other {i}") for i in range(50)]
    with training_inputs(encoder, other, BUDGET, LocalEngine()) as many:
        assert many.dtype == np.float32
    assert len(encoder) == kept


def test_other_processes_load_the_encoder_by_its_description(tmp_path: Path) -> None:
    from router.files.encoders import load_encoder

    encoder = load_encoder("fast")
    source = EncoderSource(encoder.spec)
    with large_inputs(source, CONVERSATIONS, BUDGET, engine=LocalEngine(2), folder=tmp_path) as rows:
        np.testing.assert_array_equal(rows, inputs_of(encoder, CONVERSATIONS, BUDGET).astype(np.float32))


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.raises(InvalidInput, match=r"inputs cannot be kept there .*set INTERLOCK_CACHE"),
        large_inputs(CountingEncoder(), CONVERSATIONS, BUDGET, folder=tmp_path / "file"),
    ):
        pass
