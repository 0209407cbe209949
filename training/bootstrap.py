"""Intervals by resampling whole split groups: one pass gives every statistic of a slice, on the same resamples.

Prompts of one group (translations of a task, questions about one document) stand or fall together. Resampling groups keeps that;
resampling rows would make the intervals too narrow (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput

Array = NDArray[np.float64]
Key = TypeVar("Key", bound=Hashable)

MIN_ROWS: Final = 30
"""Fewer rows than this give no number, only the flag "too few rows"."""
FEW_GROUPS: Final = 10
MANY_GROUPS: Final = 20_000
"""With more groups than this, bundles of groups are resampled (:func:`resampling_units`)."""
BUNDLES: Final = 1_000
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


def resampling_units(groups: ArrayLike) -> NDArray[np.intp]:
    """What is resampled: the number of each row's group, shape (n,), or of its bundle where there are more than :data:`MANY_GROUPS`.

    Bundles are made of whole groups at random. Sums over bundles are as independent as those over groups, so resampling a thousand of them
    gives the same interval, up to 1 / sqrt(2 x 1000) = 2 % of its width, for a cost that no longer grows with the groups (the random
    groups method; Wolter, Introduction to Variance Estimation, 2007, chapter 2).
    """
    number = group_index(groups)
    count = int(number.max()) + 1 if number.size else 0
    if count <= MANY_GROUPS:
        return number
    return np.asarray(np.random.default_rng(0).permutation(count)[number] % BUNDLES, dtype=np.intp)


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
    samples = resampled(statistics, group, n_bootstrap=n_bootstrap, seed=seed)
    return {name: summarised(statistic, samples.get(name, np.empty(0)), n, level) for name, statistic in statistics.items()}


def resampled(statistics: Mapping[Key, Statistic], group: NDArray[np.intp], *, n_bootstrap: int, seed: int) -> dict[Key, Array]:
    """Every defined statistic on the same resamples of whole groups, each of shape (n_bootstrap,); empty where there is one group only."""
    n, n_groups = group.size, int(group.max()) + 1 if group.size else 0
    rng = np.random.default_rng(seed)
    statistics = {name: statistic for name, statistic in statistics.items() if not statistic.undefined}
    if n_groups < 2 or not statistics:
        return {name: np.empty(0) for name in statistics}
    pieces: dict[Key, list[Array]] = {name: [np.empty(0)] for name in statistics}
    step = max(1, _CELLS_AT_ONCE // n)
    for start in range(0, n_bootstrap, step):
        counts = resampled_counts(n_groups, min(step, n_bootstrap - start), rng)
        for name, statistic in statistics.items():
            pieces[name].append(statistic.of(counts))
    return {name: np.concatenate(parts) for name, parts in pieces.items()}


def summarised(statistic: Statistic, samples: Array, n: int, level: float = 0.95) -> Estimate:
    """Value of a statistic of n rows, and the interval that its values on resamples, shape (resamples,), give."""
    n_groups = statistic.n_groups
    if statistic.undefined:
        return Estimate(None, None, None, n, n_groups, f"undefined: {statistic.undefined}")
    value = float(statistic.of(np.ones((1, n_groups)))[0])
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
    note = f"only {n_groups} groups: the interval is rough" if n_groups < FEW_GROUPS else ""
    return Estimate(value, low, high, n, n_groups, note)


def difference(first: Statistic, second: Statistic) -> Statistic:
    """First minus second on the same resamples; undefined where one of them is."""
    return Statistic(lambda counts: first.of(counts) - second.of(counts), first.n_groups, first.undefined or second.undefined)


def remembered(statistic: Statistic) -> Statistic:
    """The statistic, worked out once for counts that several differences ask of it one after the other."""
    last: list[Array] = []

    def of(counts: Array) -> Array:
        if not last or last[0] is not counts:
            last[:] = [counts, statistic.of(counts)]
        return last[1]

    return replace(statistic, of=of)


def within(statistic: Statistic, used: NDArray[np.intp], n_groups: int) -> Statistic:
    """A statistic of some of the rows as a function of the counts of all groups.

    ``used`` are the numbers that its own groups have among all ``n_groups``, shape (statistic.n_groups,). NaN in a resample that holds none
    of its rows.
    """

    def of(counts: Array) -> Array:
        own = counts[:, used]
        drawn = own.any(axis=1)
        values = np.full(len(own), np.nan)
        if drawn.any():
            values[drawn] = statistic.of(own[drawn])
        return values

    return replace(statistic, of=of, n_groups=n_groups)
