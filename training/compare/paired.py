"""Tests of paired differences: from resamples of whole groups, McNemar's on decisions, and Holm's correction for many of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from training.bootstrap import FEW_GROUPS, Array

_TOLERATED_UNDEFINED: Final = 0.025


def bootstrap_p_value(samples: Array) -> float | None:
    """Two-sided p that a difference is 0, from its values on resamples; None where they hardly exist.

    Twice the share of resamples on the rarer side of 0, which is what the percentile interval is the inverse of (Davison and Hinkley 1997,
    section 5.2). One is added to both counts, so that B resamples never claim less than 2 / (B + 1).
    """
    known = samples[np.isfinite(samples)]
    if samples.size == 0 or known.size < (1 - _TOLERATED_UNDEFINED) * samples.size:
        return None
    rarer = min(int((known <= 1e-12).sum()), int((known >= -1e-12).sum()))
    return min(1.0, 2 * (rarer + 1) / (known.size + 1))


def holm(p: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values (Holm, Scand. J. Statist. 6, 1979), None where there is none: together they err with at most the level of one."""
    known = sorted((value, i) for i, value in enumerate(p) if value is not None)
    adjusted: list[float | None] = [None] * len(p)
    largest = 0.0
    for rank, (value, i) in enumerate(known):
        largest = max(largest, min(1.0, (len(known) - rank) * value))
        adjusted[i] = largest
    return adjusted


@dataclass(frozen=True, slots=True)
class McNemar:
    """Prompts that one router sends to the right model and the other does not, and the test that both are right equally often."""

    only_a: int
    only_b: int
    p: float | None
    note: str


def mcnemar(right_a: NDArray[np.bool_], right_b: NDArray[np.bool_], group: NDArray[np.intp]) -> McNemar:
    """McNemar's test on prompts in groups.

    Exact (binomial) where no group has more than one prompt that they disagree on. Otherwise by the sums d of the groups, because prompts
    of a group stand or fall together: ``(sum d)^2 / sum d^2`` is chi-squared with one degree of freedom, and McNemar's own statistic where
    groups have one prompt (Durkalski et al., Stat. Med. 22, 2003, unweighted).
    """
    only_a, only_b = int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum())
    differ = right_a != right_b
    if not differ.any():
        return McNemar(0, 0, None, "undefined: both are right on the same prompts")
    if np.bincount(group[differ]).max() == 1:
        return McNemar(only_a, only_b, float(stats.binomtest(only_a, only_a + only_b).pvalue), "exact")
    sums = np.bincount(group, weights=right_b.astype(float) - right_a.astype(float))
    groups = int(np.unique(group[differ]).size)
    if groups < FEW_GROUPS:
        return McNemar(only_a, only_b, None, f"undefined: they differ in only {groups} groups, and at least {FEW_GROUPS} are needed")
    squares = float((sums**2).sum())
    statistic = float(sums.sum()) ** 2 / squares if squares > 0 else 0.0
    return McNemar(only_a, only_b, float(stats.chi2.sf(statistic, 1)), "by group sums")


def with_holm(table: pd.DataFrame, family: Sequence[str]) -> pd.DataFrame:
    """The table with a column ``p_holm``: ``p`` corrected within every combination of the columns ``family``."""
    adjusted = pd.Series(index=table.index, dtype=object)
    for _, part in table.groupby(list(family), sort=False):
        values = [None if pd.isna(p) else float(p) for p in part["p"]]
        adjusted.loc[part.index] = pd.Series(holm(values), index=part.index, dtype=object)
    return table.assign(p_holm=adjusted)
