"""A word list between English and every other language, learned from the parallel text itself, at the level of pieces.

Why: all prompts but a few are English, and all other languages are mostly news. Left alone, the student learns that a text in another
language *is* news. Prompts whose pieces are swapped for their translations take that shortcut away.

The list is IBM Model 1 (Brown et al., 1993) without the empty word, a few rounds of EM for t(other | English).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.student.texts import Texts

ROUNDS = 4
LEAST_COUNT = 3  # English occurrences below this tell nothing
LEAST_PROBABILITY = 0.2


@dataclass(frozen=True)
class Lexicon:
    """``swaps[language row, English piece]`` is the piece to put in, or -1."""

    languages: tuple[str, ...]
    swaps: NDArray[np.int32]

    def swap(self, ids: NDArray[np.int64], generator: np.random.Generator, share: float) -> NDArray[np.int64]:
        """The pieces with a share of them swapped for one randomly drawn language."""
        other = self.swaps[generator.integers(len(self.languages))][ids]
        chosen = (other >= 0) & (generator.random(len(ids)) < share)
        return np.where(chosen, other, ids)


def learn_lexicon(texts: Texts, ids: NDArray[np.int64], offsets: NDArray[np.int64], size: int) -> Lexicon:
    """From sentences that share a group with an English one; ``ids[offsets[i]:offsets[i + 1]]`` are the pieces of text ``i``."""
    english = {group: row for row, group in enumerate(texts.group) if texts.language[row] == "en"}
    languages = tuple(sorted(set(texts.language.tolist()) - {"en"}))
    swaps = np.full((len(languages), size), -1, np.int32)
    for index, language in enumerate(languages):
        rows = [row for row in np.flatnonzero(texts.language == language) if texts.group[row] in english]
        pairs = [
            (
                np.unique(ids[slice(*offsets[[english[texts.group[row]], english[texts.group[row]] + 1]])]),
                np.unique(ids[slice(*offsets[[row, row + 1]])]),
            )
            for row in rows
        ]
        if pairs:
            swaps[index] = _model_one(pairs, size)
    return Lexicon(languages, swaps)


def _model_one(pairs: list[tuple[NDArray[np.int64], NDArray[np.int64]]], size: int) -> NDArray[np.int32]:
    source = np.concatenate([np.repeat(english, len(other)) for english, other in pairs])
    target = np.concatenate([np.tile(other, len(english)) for english, other in pairs])
    # One column per piece of one other sentence: EM shares each out among the English pieces of its sentence.
    widths = [len(other) for _, other in pairs]
    starts = np.cumsum([0, *widths[:-1]])
    columns = [np.tile(np.arange(start, start + len(other)), len(english)) for start, (english, other) in zip(starts, pairs, strict=True)]
    column = np.concatenate(columns)
    keys, entry = np.unique(source * size + target, return_inverse=True)
    entry_source = keys // size
    probability = np.ones(len(keys))
    for _ in range(ROUNDS):
        weight = probability[entry]
        weight /= np.bincount(column, weight)[column]
        expected = np.bincount(entry, weight)
        probability = expected / np.bincount(entry_source, expected, minlength=size)[entry_source]
    seen = np.bincount(np.concatenate([english for english, _ in pairs]), minlength=size)
    good = (probability >= LEAST_PROBABILITY) & (seen[entry_source] >= LEAST_COUNT)
    order = np.argsort(probability[good], kind="stable")  # the likeliest is written last and stays
    best = np.full(size, -1, np.int32)
    best[entry_source[good][order]] = (keys % size)[good][order]
    return best
