"""Intervals by resampling whole split groups: one pass gives every statistic of a slice, on the same resamples.

Prompts of one group (translations of a task, questions about one document) stand or fall together. Resampling groups keeps that;
resampling rows would make the intervals too narrow (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput

Array = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

MIN_ROWS: Final = 30
"""Fewer rows than this give no number, only the flag "too few rows"."""
_FEW_GROUPS: Final = 10
_CELLS_AT_ONCE: Final = 2_000_000
# A statistic that is undefined in more resamples than the tails of the interval hold has no interval.
_TOLERATED_UNDEFINED: Final = 0.025


@dataclass(frozen=True, slots=True)
class Statistic:
    """A number of a set of prompts, as a function of how often each split group is in it.

    Attributes
    ----------
    of
        Maps counts of the groups, shape (resamples, groups), to values, shape (resamples,), NaN where undefined; ones give the estimate.
    n_groups
        Number of groups, the width of the counts.
    undefined
        Why the estimate itself is undefined, or empty.
    reflect
        Use the basic interval instead of the percentile one: for a statistic such as ECE that noise can only push up.
    """

    of: Callable[[Array], Array]
    n_groups: int
    undefined: str = ""
    reflect: bool = False


@dataclass(frozen=True, slots=True)
class Estimate:
    """A number with its interval, or the reason why there is none.

    ``value`` is None when ``note`` says "undefined: ..." or "too few rows: ...". ``low`` and ``high`` are None when there is no interval.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int
    n_groups: int
    note: str = ""


def group_index(groups: ArrayLike) -> NDArray[np.intp]:
    """Consecutive numbers 0 .. G - 1 of group names, shape (n,)."""
    return np.unique(np.asarray(groups).astype(str), return_inverse=True)[1].astype(np.intp).reshape(-1)


def resampled_counts(n_groups: int, n_bootstrap: int, rng: np.random.Generator) -> Array:
    """How often each group is drawn when as many groups as there are get drawn with replacement, shape (n_bootstrap, n_groups)."""
    drawn = rng.integers(0, n_groups, size=(n_bootstrap, n_groups))
    drawn += n_groups * np.arange(n_bootstrap)[:, None]
    return np.bincount(drawn.ravel(), minlength=n_bootstrap * n_groups).reshape(n_bootstrap, n_groups).astype(np.float64)


def estimate(
    statistics: Mapping[Key, Statistic],
    group: NDArray[np.intp],
    *,
    n_bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    min_rows: int = MIN_ROWS,
) -> dict[Key, Estimate]:
    """Value and interval of every statistic.

    Parameters
    ----------
    statistics
        Built on the same rows as ``group``.
    group
        Group number of every row, shape (n,), from :func:`group_index`.
    n_bootstrap
        Resamples; 0 leaves the intervals out.
    level
        Coverage of the interval.
    min_rows
        Below this many rows nothing is reported but the flag.
    """
    if n_bootstrap < 0:
        raise InvalidInput(f"n_bootstrap is {n_bootstrap}: at least 0 was expected")
    n, n_groups = group.size, int(group.max()) + 1 if group.size else 0
    if n < min_rows:
        return {name: Estimate(None, None, None, n, n_groups, f"too few rows: {n}, at least {min_rows} are needed") for name in statistics}
    defined = {name: statistic for name, statistic in statistics.items() if not statistic.undefined}
    samples = _samples(defined, n, n_groups, n_bootstrap, np.random.default_rng(seed))
    ones = np.ones((1, n_groups))
    return {
        name: _estimate(statistic, float(statistic.of(ones)[0]), samples[name], n, n_groups, level)
        if name in defined
        else Estimate(None, None, None, n, n_groups, f"undefined: {statistic.undefined}")
        for name, statistic in statistics.items()
    }


def _samples(statistics: Mapping[Key, Statistic], n: int, n_groups: int, n_bootstrap: int, rng: np.random.Generator) -> dict[Key, Array]:
    if n_groups < 2 or not statistics:
        return {name: np.empty(0) for name in statistics}
    pieces: dict[Key, list[Array]] = {name: [np.empty(0)] for name in statistics}
    step = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, n_bootstrap, step):
        counts = resampled_counts(n_groups, min(step, n_bootstrap - start), rng)
        for name, statistic in statistics.items():
            pieces[name].append(statistic.of(counts))
    return {name: np.concatenate(parts) for name, parts in pieces.items()}


def _estimate(statistic: Statistic, value: float, samples: Array, n: int, n_groups: int, level: float) -> Estimate:
    if not np.isfinite(value):
        return Estimate(None, None, None, n, n_groups, "undefined: no finite value")
    if n_groups < 2:
        return Estimate(value, None, None, n, n_groups, "no interval: all rows are of one group")
    finite = samples[np.isfinite(samples)]
    if samples.size == 0:
        return Estimate(value, None, None, n, n_groups)
    if 1 - finite.size / samples.size > _TOLERATED_UNDEFINED:
        return Estimate(value, None, None, n, n_groups, f"no interval: undefined in {1 - finite.size / samples.size:.0%} of the resamples")
    low, high = np.quantile(finite, [(1 - level) / 2, (1 + level) / 2]).tolist()
    if statistic.reflect:
        low, high = max(0.0, 2 * value - high), max(value, 2 * value - low)
    note = f"only {n_groups} groups: the interval is rough" if n_groups < _FEW_GROUPS else ""
    return Estimate(value, low, high, n, n_groups, note)
