"""Prunes the teacher's 250,000 pieces to those that earn their bytes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPECIALS = {"<s>", "<pad>", "</s>", "<mask>"}
UNKNOWN = "<unk>"
FREQUENT_ANYWHERE = 8_000  # the teacher's pieces are sorted by frequency; its first ones serve languages that the texts lack
HAN_AND_HANGUL = ((0x3400, 0x9FFF), (0xAC00, 0xD7A3), (0x20000, 0x3FFFF))


def count_pieces(tokenizer: Any, texts: Sequence[str], size: int, batch: int = 2048) -> NDArray[np.int64]:
    """How often the teacher's tokenizer uses each piece."""
    counts = np.zeros(size, np.int64)
    for start in range(0, len(texts), batch):
        encoded = tokenizer.encode_batch(list(texts[start : start + batch]), add_special_tokens=False)
        ids = [np.asarray(encoding.ids, np.int64) for encoding in encoded]
        counts += np.bincount(np.concatenate(ids), minlength=size)[:size]
    return counts


def choose_pieces(pieces: Sequence[tuple[str, float]], counts: NDArray[np.int64], limit: int) -> NDArray[np.int64]:
    """Teacher's ids to keep, the unknown first.

    Single characters come first (so that hardly any text is unknown; rare Han and Hangul only where they occur), then the
    teacher's most frequent pieces, then the most frequent in the texts.
    """
    unknown = next(index for index, (text, _) in enumerate(pieces) if text == UNKNOWN)
    usable = [index for index, (text, _) in enumerate(pieces) if text not in SPECIALS and index != unknown]
    single = [index for index in usable if _is_single(pieces[index][0]) and (counts[index] > 0 or not _is_han(pieces[index][0][-1]))]
    frequent = usable[:FREQUENT_ANYWHERE]
    by_count = sorted((index for index in usable if counts[index] > 0), key=lambda index: (-int(counts[index]), index))
    return np.array([unknown, *_first_distinct([single, frequent, by_count], limit - 1)], np.int64)


def _first_distinct(lists: Iterable[Sequence[int]], limit: int) -> list[int]:
    kept = dict.fromkeys(index for values in lists for index in values)
    return sorted(list(kept)[:limit])


def _is_single(piece: str) -> bool:
    return len(piece) == 1 or (len(piece) == 2 and piece[0] == "▁")


def _is_han(character: str) -> bool:
    return any(low <= ord(character) <= high for low, high in HAN_AND_HANGUL)
