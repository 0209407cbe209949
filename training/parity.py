"""Is a language family served as well as English? An equivalence test, corrected for the number of families.

Two one-sided tests (Schuirmann 1987): a family is equivalent if a difference of the margin or more is refuted on both sides. A difference
that is merely not significant proves nothing, so with few prompts the answer is "inconclusive". The tests are t tests on the linearised
ratio, with the split group as the unit: what English and the family share of a group (translations of one task) cancels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.bootstrap import MIN_ROWS, Array, group_index
from training.metrics import adds_value, quality_of

OUTCOMES: Final[Mapping[str, str]] = {
    "equivalent": "the difference is within the margin",
    "different": "not shown to be within the margin, and significantly different",
    "inconclusive": "neither shown: more prompts would tell",
    "too few rows": "too few prompts or groups to test",
    "no baseline": "nothing to compare with",
    "baseline": "what the others are compared with",
}
"""Outcome of a family and what it means."""
PARITY_COLUMNS: Final = (
    "family", "outcome", "n", "n_groups", "value", "baseline_value", "difference", "low", "high", "p_equivalence", "p_difference", "note",
)  # fmt: skip
_MIN_GROUPS: Final = 10
_ENOUGH_POWER: Final = 0.8

Ratio = tuple[Array, Array]


def _quality_vs_strong(weak: Array, strong: Array, chosen: Array, _p: Array, _t: Array) -> Ratio:
    return quality_of(weak, strong, chosen), strong


def _routing_accuracy(weak: Array, strong: Array, chosen: Array, _p: Array, _t: Array) -> Ratio:
    wanted = adds_value(weak, strong).astype(np.float64)
    return chosen * wanted + (1 - chosen) * (1 - wanted), np.ones(len(wanted))


def _quality_retention(weak: Array, strong: Array, chosen: Array, _p: Array, _t: Array) -> Ratio:
    return quality_of(weak, strong, chosen), np.maximum(weak, strong)


def _calibration_bias(_w: Array, _s: Array, _c: Array, probability: Array, target: Array) -> Ratio:
    return probability - target, np.ones(len(target))


PARITY_METRICS: Final[Mapping[str, Callable[[Array, Array, Array, Array, Array], Ratio]]] = {
    "quality_vs_strong": _quality_vs_strong,
    "routing_accuracy": _routing_accuracy,
    "quality_retention": _quality_retention,
    "calibration_bias": _calibration_bias,
}
"""What can be compared, as a sum over a sum of prompts: quality as a share of always-strong's; share of prompts for which the strong model
was called exactly if it was better; quality as a share of the pair's best; mean requirement minus mean need."""

PARITY_TITLES: Final[Mapping[str, str]] = {
    "quality_vs_strong": "quality kept of always-strong", "routing_accuracy": "routing accuracy",
    "quality_retention": "quality kept of the pair's best", "calibration_bias": "requirement less need",
}  # fmt: skip
_SHARES: Final = frozenset(PARITY_METRICS) - {"calibration_bias"}


@dataclass(frozen=True, slots=True)
class ParityOptions:
    """What counts as equal: the metric, the margin in its unit, the level of the tests, the family to compare with, and prompts needed."""

    metric: str = "quality_vs_strong"
    margin: float = 0.02
    alpha: float = 0.05
    baseline: str = "English"
    min_rows: int = MIN_ROWS

    def __post_init__(self) -> None:
        if self.metric not in PARITY_METRICS:
            raise InvalidInput(unknown_name("metric of parity", str(self.metric), PARITY_METRICS))
        for name, high in (("margin", 1.0), ("alpha", 0.5)):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < high:
                raise InvalidInput(f"{name} of parity is {value!r}: a number between 0 and {high:g} was expected")
        if not isinstance(self.min_rows, int) or self.min_rows < 2:
            raise InvalidInput(f"min_rows of parity is {self.min_rows!r}: a whole number of at least 2 was expected")


@dataclass(frozen=True, slots=True)
class _Family:
    """One family's line before it is corrected for the number of families."""

    family: str
    outcome: str
    n: int
    n_groups: int
    note: str = ""
    value: float | None = None
    baseline_value: float | None = None
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_equivalence: float | None = None
    p_difference: float | None = None


def parity_table(
    rows: pd.DataFrame, chosen: Array, probability: Array, target: Array, options: ParityOptions | None = None
) -> pd.DataFrame:
    """One row a family, the baseline first: outcome, values, difference with the interval of the equivalence test, corrected p-values.

    Parameters
    ----------
    rows
        Columns ``family``, ``group``, ``weak``, ``strong``.
    chosen
        The router's choice, 1 for the strong model, shape (n,).
    probability, target
        Requirement of the capability that a prompt exercises, and what it should be, shape (n,).

    Returns
    -------
    pandas.DataFrame
        Columns :data:`PARITY_COLUMNS`. ``low`` and ``high`` bound the difference at level 1 - 2 alpha, which lies within the margin exactly
        if a single test says "equivalent". p-values are Holm's, over the families that could be tested. A missing number has its reason in
        ``note``.
    """
    options = options or ParityOptions()
    weak, strong = (rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
    top, bottom = PARITY_METRICS[options.metric](weak, strong, chosen, probability, target)
    family, group = rows["family"].astype(str).to_numpy(), group_index(rows["group"])
    parts = {name: np.flatnonzero(family == name) for name in sorted(set(family), key=lambda name: (name != options.baseline, name))}
    base = _Sums.of(top, bottom, group, parts.get(options.baseline, np.empty(0, dtype=np.intp)))
    lines = []
    for name, part in parts.items():
        own = _Sums.of(top, bottom, group, part)
        known = _Family(name, "", len(part), own.n_groups, value=own.value, baseline_value=base.value)
        lines.append(_compared(known, own, base, options))
    return pd.DataFrame([_record(line) for line in _corrected(lines, options)], columns=list(PARITY_COLUMNS))


@dataclass(frozen=True, slots=True)
class _Sums:
    """A ratio over the rows of a family, by groups: shape (groups of all rows,)."""

    top: Array
    bottom: Array
    rows: Array

    @classmethod
    def of(cls, top: Array, bottom: Array, group: NDArray[np.intp], part: NDArray[np.intp]) -> _Sums:
        count = int(group.max()) + 1 if group.size else 0
        number = group[part]
        values = (top[part], bottom[part], np.ones(len(part)))
        return cls(*(np.asarray(np.bincount(number, weights=v, minlength=count), dtype=np.float64) for v in values))

    @property
    def n_groups(self) -> int:
        return int((self.rows > 0).sum())

    @property
    def effective_groups(self) -> float:
        """Groups of equal weight that would say as much."""
        return float(self.bottom.sum() ** 2 / (self.bottom**2).sum())

    @property
    def value(self) -> float | None:
        return float(self.top.sum() / self.bottom.sum()) if self.bottom.sum() > 0 else None

    def influence(self) -> Array:
        """How much each group moves the ratio, to first order."""
        assert self.value is not None
        return np.asarray((self.top - self.value * self.bottom) / self.bottom.sum())


def _compared(line: _Family, own: _Sums, base: _Sums, options: ParityOptions) -> _Family:
    if line.family == options.baseline:
        return replace(line, outcome="baseline", baseline_value=None)
    if reason := _untestable(base, options, f"no prompt is in {options.baseline}", f"{options.baseline}: "):
        return replace(line, outcome="no baseline", note=reason)
    if reason := _untestable(own, options, "no prompt", ""):
        return replace(line, outcome="too few rows", note=reason)
    if own.value is None or base.value is None:
        who = line.family if own.value is None else options.baseline
        return replace(line, outcome="too few rows", note=f"undefined: the strong model scores 0 on every prompt of {who}")
    difference, error = own.value - base.value, _standard_error(own, base, options)
    t = stats.t(min(own.n_groups, base.n_groups) - 1)
    half = float(t.ppf(1 - options.alpha)) * error
    return replace(
        line,
        difference=difference,
        low=difference - half,
        high=difference + half,
        p_equivalence=float(t.sf((options.margin - abs(difference)) / error)),
        p_difference=float(2 * t.sf(abs(difference) / error)),
        note=_needed(own, error, options),
    )


def _untestable(sums: _Sums, options: ParityOptions, none: str, who: str) -> str:
    rows = int(sums.rows.sum())
    if rows == 0:
        return f"{none}, so there is nothing to compare with"
    if rows < options.min_rows:
        return f"{who}too few rows: {rows}, at least {options.min_rows} are needed"
    if sums.n_groups < _MIN_GROUPS:
        return f"{who}too few groups: {sums.n_groups}, at least {_MIN_GROUPS} are needed"
    return ""


def _standard_error(own: _Sums, base: _Sums, options: ParityOptions) -> float:
    """Of the difference, over groups, as it would be if the difference were the margin (a score test, Farrington and Manning 1990).

    A share v of all-or-nothing scores varies with v (1 - v), so that a family that happens to look good also looks sure of it. The variance
    is therefore scaled to the share that the hypothesis says, and is at least that of a share of ``margin`` in as many groups: else a
    family in which no answer was worse yet would have none at all and be called equivalent, however small it is.
    """
    assert own.value is not None
    assert base.value is not None
    moved = own.influence() - base.influence()
    there = (own.rows > 0) | (base.rows > 0)
    g = int(there.sum())
    variance = g / (g - 1) * float((moved[there] ** 2).sum())
    if options.metric in _SHARES and 0 < own.value < 1:
        supposed = float(np.clip(base.value + math.copysign(options.margin, own.value - base.value), 0, 1))
        variance *= max(1.0, supposed * (1 - supposed) / (own.value * (1 - own.value)))
    floor = options.margin * (1 - options.margin) / min(own.effective_groups, base.effective_groups)
    return math.sqrt(max(variance, floor))


def _needed(own: _Sums, error: float, options: ParityOptions) -> str:
    """Groups after which the test would mostly succeed if there were no difference, both families growing alike."""
    z = float(stats.norm.ppf(1 - options.alpha) + stats.norm.ppf(1 - (1 - _ENOUGH_POWER) / 2))
    groups = math.ceil(own.n_groups * (z * error / options.margin) ** 2)
    return f"about {groups:,} groups would tell, if there is no difference" if groups > own.n_groups else ""


def _corrected(lines: list[_Family], options: ParityOptions) -> list[_Family]:
    tested = [i for i, line in enumerate(lines) if line.p_equivalence is not None]
    same = holm([lines[i].p_equivalence for i in tested])  # type: ignore[misc]
    other = holm([lines[i].p_difference for i in tested])  # type: ignore[misc]
    done = list(lines)
    for i, p_same, p_other in zip(tested, same, other, strict=True):
        outcome = "equivalent" if p_same <= options.alpha else "different" if p_other <= options.alpha else "inconclusive"
        note = lines[i].note if outcome == "inconclusive" else ""
        done[i] = replace(lines[i], p_equivalence=p_same, p_difference=p_other, outcome=outcome, note=note)
    return done


def holm(p_values: list[float]) -> list[float]:
    """p-values that hold together: Holm's step-down correction (1979)."""
    order = np.argsort(p_values, kind="stable")
    count = len(p_values)
    running, corrected = 0.0, [0.0] * count
    for rank, i in enumerate(order.tolist()):
        running = max(running, min(1.0, (count - rank) * p_values[i]))
        corrected[i] = running
    return corrected


def _record(line: _Family) -> dict[str, Any]:
    return {name: getattr(line, name) for name in PARITY_COLUMNS}
