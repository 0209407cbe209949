"""Prompts that are the same, or nearly: normalised text, and MinHash over character n-grams, which needs no word boundaries.

MinHash after Broder 1997, "On the resemblance and containment of documents"; banding after Leskovec, Rajaraman and Ullman, "Mining of
massive datasets", section 3.4. Candidates are confirmed by their exact Jaccard similarity, so a reported pair is never a hash accident.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.languages import code_points

NGRAM: Final = 5
_BANDS: Final = 16
_ROWS: Final = 4  # pairs of similarity 0.8 meet in some band with probability 1 - (1 - 0.8^4)^16 > 0.999
_KEPT: Final = 10_000  # texts whose n-grams are remembered
_CROWD: Final = 200  # texts with a band in common from which on they are compared with the first of a cluster only
_LEADERS: Final = 1_000  # clusters of such a crowd
_LONGEST: Final = 8_000  # characters read of a text, half from either end
_MIX: Final = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def normalise(text: str) -> str:
    """Text as it counts for comparison: NFKC, caseless, runs of white space as one space."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def text_key(text: str) -> str:
    """SHA-256 (hex) of the normalised text: equal for exact duplicates."""
    return hashlib.sha256(normalise(text).encode("utf-8", "surrogatepass")).hexdigest()


def exact_duplicates(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs (first occurrence, later one) of texts that are equal once normalised."""
    first: dict[str, int] = {}
    pairs = []
    for position, text in enumerate(texts):
        earlier = first.setdefault(text_key(text), position)
        if earlier != position:
            pairs.append((earlier, position))
    return pairs


def near_duplicates(texts: Sequence[str], *, similarity: float = 0.8, seed: int = 0) -> list[tuple[int, int]]:
    """Pairs of texts whose character n-grams have at least this Jaccard similarity, exact duplicates included.

    Joined transitively the pairs give clusters; of k equal texts only k - 1 pairs are listed, and of more than 200 texts that are alike
    enough to be compared at once only pairs with the first text of each of the first 1,000 clusters, so that work grows with the number of
    texts and not with its square.

    Parameters
    ----------
    texts
        Texts in any script.
    similarity
        From which on two texts are near duplicates, in (0, 1].
    seed
        Of the hash functions.
    """
    pairs = exact_duplicates(texts)
    repeated = {later for _, later in pairs}
    unique = [position for position in range(len(texts)) if position not in repeated]
    multipliers = _hashes(seed)
    signatures, sizes = np.empty((len(unique), _BANDS * _ROWS), np.uint32), np.empty(len(unique), np.int64)
    for row, position in enumerate(unique):
        gram = shingles(texts[position])
        signatures[row], sizes[row] = _signature(gram, multipliers), gram.size
    # Only the n-grams of candidates are needed again, and those of one after the other: to make them anew is cheaper than to keep all.
    grams = lru_cache(_KEPT)(lambda row: shingles(texts[unique[row]]))
    for left, right in _candidates(signatures, sizes, similarity):
        if jaccard(grams(left), grams(right)) >= similarity:
            pairs.append((unique[left], unique[right]))
    return sorted(pairs)


def shingles(text: str) -> NDArray[np.uint64]:
    """Sorted hashes of the distinct character n-grams of a text, without white space; a shorter text is one n-gram."""
    plain = normalise(text if len(text) <= _LONGEST else text[: _LONGEST // 2] + text[-_LONGEST // 2 :]).replace(" ", "")
    points = code_points(plain).astype(np.uint64)
    width = min(NGRAM, len(points))
    if not width:
        return np.empty(0, dtype=np.uint64)
    total = np.zeros(len(points) - width + 1, dtype=np.uint64)
    for offset in range(width):
        total = _mix(total + points[offset : len(points) - width + 1 + offset])
    return np.unique(total)


def jaccard(left: NDArray[np.uint64], right: NDArray[np.uint64]) -> float:
    """Shared n-grams over all n-grams of two sorted sets; 0 where both are empty."""
    shared = np.intersect1d(left, right, assume_unique=True).size
    total = left.size + right.size - shared
    return shared / total if total else 0.0


def _mix(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Finaliser of SplitMix64 (Steele, Lea and Flood 2014)."""
    values = values + _MIX[0]
    values = (values ^ (values >> np.uint64(30))) * _MIX[1]
    values = (values ^ (values >> np.uint64(27))) * _MIX[2]
    return values ^ (values >> np.uint64(31))


def _hashes(seed: int) -> NDArray[np.uint64]:
    """Odd multipliers, one a hash function."""
    draw = np.random.default_rng(seed).integers(0, 2**63, size=_BANDS * _ROWS, dtype=np.uint64)
    return draw * np.uint64(2) + np.uint64(1)


def _signature(grams: NDArray[np.uint64], multipliers: NDArray[np.uint64]) -> NDArray[np.uint32]:
    """MinHash signature: for each multiply-shift hash (Dietzfelbinger et al. 1997) the least value over the n-grams."""
    if not grams.size:
        return np.zeros(multipliers.size, dtype=np.uint32)
    least = ((multipliers[:, None] * grams[None, :]) >> np.uint64(32)).min(axis=1)
    return np.asarray(least, dtype=np.uint32)


def _candidates(signatures: NDArray[np.uint32], sizes: NDArray[np.int64], similarity: float) -> list[tuple[int, int]]:
    """Pairs that agree in all rows of some band and may be similar enough, each pair once.

    A pair is dropped if one set is too small for the similarity (it cannot exceed the ratio of sizes), or if so few hashes agree that
    the similarity lies four standard errors lower.
    """
    least_agreement = similarity - 4 * (similarity * (1 - similarity) / signatures.shape[1]) ** 0.5
    found: set[tuple[int, int]] = set()
    for band in range(_BANDS):
        for members in _buckets(signatures[:, band * _ROWS : (band + 1) * _ROWS]):
            left_over = members
            crowd = members.size > _CROWD
            for _ in range(min(members.size - 1, _LEADERS) if crowd else members.size - 1):
                if left_over.size < 2:
                    break
                left, others = left_over[0], left_over[1:]
                ratio = np.minimum(sizes[others], sizes[left]) / np.maximum(1, np.maximum(sizes[others], sizes[left]))
                near = others[ratio >= similarity]
                near = near[(signatures[near] == signatures[left]).mean(axis=1) >= least_agreement]
                found.update((int(left), int(right)) for right in near)
                left_over = others[~np.isin(others, near)] if crowd else others
    return sorted(found)


def _buckets(band: NDArray[np.uint32]) -> Iterator[NDArray[np.intp]]:
    """Rows with equal values, as ascending row numbers, wherever there are at least two."""
    if not len(band):
        return
    order = np.lexsort(band.T)
    alike = np.append((band[order[1:]] == band[order[:-1]]).all(axis=1), False)
    starts = np.flatnonzero(alike & ~np.append(False, alike[:-1]))
    ends = np.flatnonzero(~alike & np.append(False, alike[:-1])) + 1
    yield from (np.sort(order[start:end]) for start, end in zip(starts, ends, strict=True))
