"""A labelled data set of any size for ``benchmarks.scale``: short texts in twenty languages and scores of two models. No text but our own.

The words are those of the embedded sample, by language and capability, drawn anew into every text, so that texts have the letters, lengths
and kinds of work of real prompts and mean nothing. What a prompt needs depends on its words, its length, its kind of work and a little on
its language; scores are drawn from it. Some prompts are translations of one another, some nearly repeat another one, as in real tables.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from zlib import crc32

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from training.prompts import load_prompts, to_conversations

SAMPLE: Final = Path(__file__).parents[1] / "data" / "sample"
SOURCES: Final = ("scale_a", "scale_b", "scale_c", "scale_d")
RECIPE: Final = """title = "Generated prompts"
[[pair]]
weak = "small"
strong = "large"
sources = ["scale_a", "scale_b", "scale_c", "scale_d"]
[[parallel]]
sources = ["interlock_sample"]
"""
_CHUNK: Final = 20_000
_UNSPACED: Final = frozenset({"zh", "ja", "th"})
_TASK_DIFFICULTY: Final = {"reasoning": 0.2, "code_gen": 1.0, "debugging": 0.6, "tool_use": -0.4}
_LANGUAGE_DIFFICULTY: Final = {"sw": 0.8, "ta": 0.6, "en": -0.3}
_GROUP: Final = 4  # translations of one prompt
_TRANSLATED, _REPEATED = 0.12, 0.02  # shares of the prompts

Words = dict[tuple[str, str], list[str]]


@dataclass(frozen=True)
class _Chunk:
    """Prompts ``first`` to ``first + count`` and the words they are made of; each chunk is drawn from a generator of its own."""

    words: Words
    first: int
    count: int

    def frames(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Prompts and outcomes."""
        rng = np.random.default_rng([7, self.first])
        prompts = self._prompts(rng)
        difficulty = prompts.pop("difficulty_logit").to_numpy()
        outcomes = []
        for model, ability, price in (("small", 0.9, 2e-7), ("large", 2.6, 3e-6)):
            right = rng.random(self.count) < 1 / (1 + np.exp(difficulty - ability))
            tokens = prompts["turns"].str.len().to_numpy() / 4 + rng.integers(50, 900, self.count)
            scores = {"model": model, "score_kind": "pass", "score": right.astype(float), "cost_usd": tokens * price}
            outcomes.append(prompts[["source", "prompt_id"]].assign(**scores))
        return prompts, pd.concat(outcomes, ignore_index=True)

    def _prompts(self, rng: np.random.Generator) -> pd.DataFrame:
        keys = list(self.words)
        kind = rng.integers(0, len(keys), self.count)
        length = np.clip(rng.lognormal(2.3, 0.7, self.count), 5, 80).astype(int)
        translated, repeated = rng.random(self.count) < _TRANSLATED, rng.random(self.count) < _REPEATED
        own = rng.normal(0, 0.6, self.count)
        rows: list[dict[str, Any]] = []
        texts: list[str] = []
        for i in range(self.count):
            number = self.first + i
            language, capability = keys[kind[i]]
            group = f"parallel-{number // _GROUP}" if translated[i - number % _GROUP] else None
            text = _text(self.words[language, capability], length[i], language, rng)
            if repeated[i] and texts:
                text = f"{texts[int(rng.integers(0, len(texts)))]} {number % 10}"
            texts.append(text)
            rows.append(
                {
                    "source": SOURCES[crc32(str(number // _GROUP).encode()) % len(SOURCES)],
                    "prompt_id": f"p{number}",
                    "language": language,
                    "capability": capability,
                    "turns": json.dumps([{"role": "user", "content": text}], ensure_ascii=False),
                    "group": group,
                    "difficulty_logit": _difficulty(text, capability, language) + own[i],
                }
            )
        return pd.DataFrame(rows)


def write_data(folder: Path, rows: int) -> None:
    """Write ``prompts.parquet``, ``outcomes.parquet`` and ``recipe.toml``, chunk by chunk; equal numbers of rows give equal files."""
    folder.mkdir(parents=True, exist_ok=True)
    writers: dict[str, pq.ParquetWriter] = {}
    for frames in _frames(rows):
        for name, frame in zip(("prompts", "outcomes"), frames, strict=True):
            table = pa.Table.from_pandas(frame, preserve_index=False)
            if name not in writers:
                writers[name] = pq.ParquetWriter(folder / f"{name}.parquet", table.schema, compression="zstd")
            writers[name].write_table(table)
    for writer in writers.values():
        writer.close()
    (folder / "recipe.toml").write_text(RECIPE, encoding="utf-8")


def _frames(rows: int) -> Iterator[tuple[pd.DataFrame, pd.DataFrame]]:
    words = _sample_words()
    for first in range(0, rows, _CHUNK):
        yield _Chunk(words, first, min(_CHUNK, rows - first)).frames()


def _sample_words() -> Words:
    """Words of the embedded sample by language and capability; of scripts without spaces, runs of two and three characters."""
    prompts = load_prompts(SAMPLE)
    words: Words = {}
    for language, capability, conversation in zip(prompts["language"], prompts["capability"], to_conversations(prompts), strict=True):
        found = words.setdefault((str(language), str(capability)), [])
        for text in conversation.user_texts:
            pieces = [text[i : i + 2 + i % 2] for i in range(0, len(text), 3)] if language in _UNSPACED else text.split()
            found.extend(piece for piece in pieces if piece.strip())
    return {key: sorted(set(found)) for key, found in words.items()}


def _text(words: list[str], length: int, language: str, rng: np.random.Generator) -> str:
    drawn = rng.integers(0, len(words), length)
    text = ("" if language in _UNSPACED else " ").join([words[i] for i in drawn])
    return f"{text} {rng.integers(2, 10 ** rng.integers(1, 6))}"


def _difficulty(text: str, capability: str, language: str) -> float:
    """Log-odds: of the kind of work, of the language, of the length, and of the words (a hash says which are hard)."""
    words = text.split()
    of_words = float(sum(crc32(word.encode()) % 1000 / 1000 - 0.5 for word in words) / max(1, len(words)) ** 0.5)
    return _TASK_DIFFICULTY[capability] + _LANGUAGE_DIFFICULTY.get(language, 0.0) + 1.2 * float(np.log(len(text) / 60)) + 2.0 * of_words
