"""Does a router decide the same for the same request in another language? Measured on translations, against one reference language.

Nothing here needs outcomes: the need of a prompt (the weak model's shortfall, as ``Router.route`` reports it) is compared with that of its
original. Some translated benchmarks lack parts of their texts; a pair of very different length, or whose numbers are gone, is set aside as
faulty and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput
from router.languages import family_of
from training.bootstrap import MIN_ROWS

Array = NDArray[np.float64]
FAULTY_LOG_RATIO: Final = 0.7
"""A translation half or twice as long as its original, in letters that say equally much, is not a translation of all of it."""
_FAULTY_DIGITS: Final = (6, 1.0)
"""Nor is one whose digits are so many fewer or more, where one of the two has at least 6: a table is missing, or there is an answer too."""


@dataclass(frozen=True)
class LanguageAgreement:
    """Agreement of a router with itself across languages.

    Attributes
    ----------
    languages
        One row a language: ``language``, ``family``, ``n`` (pairs compared), ``faulty`` (set aside), ``correlation`` of the needs
        (Pearson), ``shift`` (mean need less the reference's), and one column ``agreement@<name>`` a threshold. NaN below ``min_pairs``.
    thresholds
        Name of each operating point and its tau.
    reference
        The language that all others are compared with.
    """

    languages: pd.DataFrame
    thresholds: dict[str, float]
    reference: str

    def summary(self) -> pd.DataFrame:
        """Mean and least favourable language of every figure: columns ``mean``, ``worst``, ``language``."""
        table = self.languages.set_index("language").drop(columns=["family", "n", "faulty", "shift"]).dropna(how="all")
        return pd.DataFrame({"mean": table.mean(), "worst": table.min(), "language": table.idxmin()})


def language_agreement(
    need: ArrayLike,
    letters: ArrayLike,
    meaning: Sequence[str],
    language: Sequence[str],
    thresholds: dict[str, float] | None = None,
    *,
    digits: ArrayLike | None = None,
    reference: str = "en",
    min_pairs: int = MIN_ROWS,
) -> LanguageAgreement:
    """Compare every translation with the prompt of the same meaning in the reference language.

    Parameters
    ----------
    need, letters
        Need of each prompt and its length in comparable letters (:attr:`router.languages.ScriptStatistics.latin_letters`), shape (n,).
    meaning, language
        Translation group and language of each prompt.
    thresholds
        Operating points by name; ``median``, the reference's median need, where agreement is hardest, is always one of them.
    digits
        Number of digits of each prompt, shape (n,), where translations that lost theirs should be set aside as well.
    min_pairs
        Fewer sound pairs than this give a language no figure.

    Raises
    ------
    InvalidInput
        If the reference language is absent, a (meaning, language) stands twice, or a need is not a number.
    """
    table = pd.DataFrame({"meaning": list(meaning), "language": list(language), "need": np.asarray(need, float), "letters": letters})
    table["digits"] = 0 if digits is None else np.asarray(digits)
    if not np.isfinite(table["need"]).all():
        row = int(np.flatnonzero(~np.isfinite(table["need"]))[0])
        raise InvalidInput(f"need of row {row} is {table['need'].iloc[row]!r}: a finite number was expected")
    twice = table.duplicated(["meaning", "language"])
    if twice.any():
        first = table[twice].iloc[0]
        raise InvalidInput(f"meaning {first['meaning']!r} is there twice in language {first['language']!r}")
    original = table[table["language"] == reference].set_index("meaning")
    if original.empty:
        there = ", ".join(sorted(table["language"].unique()))
        raise InvalidInput(f"no prompt is in the reference language {reference!r}: there are {there}")
    points = {**(thresholds or {}), "median": float(original["need"].median())}
    originals = original[["need", "letters", "digits"]].add_suffix("_original")
    others = table[table["language"] != reference].join(originals, on="meaning", how="inner")
    others["faulty"] = _faulty(others)
    rows = [_row(str(name), part, points, min_pairs) for name, part in others.groupby("language", sort=True)]
    return LanguageAgreement(pd.DataFrame(rows), points, reference)


def _faulty(pairs: pd.DataFrame) -> pd.Series[bool]:
    apart = {name: (np.log1p(pairs[name]) - np.log1p(pairs[f"{name}_original"])).abs() for name in ("letters", "digits")}
    fewest, ratio = _FAULTY_DIGITS
    many = pairs[["digits", "digits_original"]].max(axis=1) >= fewest
    return (apart["letters"] > FAULTY_LOG_RATIO) | (many & (apart["digits"] > ratio))


def _row(language: str, part: pd.DataFrame, points: dict[str, float], min_pairs: int) -> dict[str, object]:
    sound = part[~part["faulty"]]
    ours, original = sound["need"].to_numpy(), sound["need_original"].to_numpy()
    row: dict[str, object] = {"language": language, "family": family_of(language), "n": len(sound), "faulty": int(part["faulty"].sum())}
    if len(sound) < min_pairs:
        return {**row, **dict.fromkeys(["correlation", "shift", *(f"agreement@{name}" for name in points)], np.nan)}
    varies = np.ptp(ours) > 0 and np.ptp(original) > 0
    row["correlation"] = float(np.corrcoef(ours, original)[0, 1]) if varies else np.nan
    row["shift"] = float((ours - original).mean())
    return row | {f"agreement@{name}": float(((ours > tau) == (original > tau)).mean()) for name, tau in points.items()}
