"""What a router is measured by, on prompts that a weak and a strong model both answered.

Scores lie in [0, 1], more is better. ``need`` is any number that is larger where the strong model is wanted more; only its order
counts. ``chosen`` is the probability that the strong model is called, 0 or 1 for a decided router and between for a random one, so that
every metric is an expectation and no tie is broken by luck. A metric that does not exist (no gap, one class) raises
:class:`UndefinedMetric`; none is NaN.

Sources: PGR and APGR from Ong et al., RouteLLM (arXiv 2406.18665, section 3); quality retention, cost savings and misroute from HyDRA
(arXiv 2605.17106, Alg. 3), read for graded scores as each function says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput
from training.bootstrap import BUNDLES, Array, Statistic

Groups = NDArray[np.intp]
DEFAULT_BINS: Final = 10
_EXACT_ROWS: Final = 20_000
_LEVELS: Final = 1_000


class UndefinedMetric(ValueError):
    """The metric does not exist on these prompts; the message says why."""


def pgr_curve(weak: ArrayLike, strong: ArrayLike, need: ArrayLike) -> tuple[Array, Array]:
    """Performance gap recovered as the share of strong calls grows from 0 to 1.

    ``PGR = (quality - quality of weak) / (quality of strong - quality of weak)`` (RouteLLM, section 3) when the prompts with the highest
    need go to the strong model. Prompts of equal need enter together: between the points the curve is the straight line that picking
    among them at random gives on average.

    Returns
    -------
    Share of strong calls and PGR, each of shape (distinct needs + 1,).
    """
    delta, ranked = _checked_delta(weak, strong), _Ranking.of(need)
    if reason := _no_gap(delta):
        raise UndefinedMetric(reason)
    gain = np.add.reduceat(delta[ranked.order], ranked.starts)
    size = np.diff(np.append(ranked.starts, delta.size))
    return np.append(0.0, np.cumsum(size)) / delta.size, np.append(0.0, np.cumsum(gain)) / delta.sum()


def apgr(weak: ArrayLike, strong: ArrayLike, need: ArrayLike) -> float:
    """Average performance gap recovered: the area under :func:`pgr_curve` by the trapezoid rule over all its points.

    RouteLLM sweeps some thresholds and integrates in the same way; here every threshold is a point, so nothing depends on a grid. With mid
    ranks r (1 = highest need) and delta = strong - weak it equals ``sum(delta * (1 - (r - 1/2) / n)) / sum(delta)``. A constant need gives
    exactly 0.5, which is the expectation of random routing. It may exceed 1 where the weak model beats the strong one on some prompts.
    """
    return _value(apgr_statistic(weak, strong, need, _own_groups(weak)))


def auc(label: ArrayLike, need: ArrayLike) -> float:
    """Probability that a prompt where the strong model adds value has the higher need than one where it does not; a tie counts half."""
    return _value(auc_statistic(label, need, _own_groups(label)))


def quality_retention(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike) -> float:
    """Quality as a share of the best that the pair could do: ``sum(score of the chosen) / sum(max(weak, strong))`` (Alg. 3).

    With right-or-wrong scores that is success relative to the cheapest model that solves the prompt.
    """
    return _value(retention_statistic(weak, strong, chosen, _own_groups(weak)))


def cost_savings(weak_cost: ArrayLike, strong_cost: ArrayLike, chosen: ArrayLike) -> float:
    """Share of the cost of always calling the strong model that is saved (Alg. 3); negative where routing is dearer."""
    return _value(savings_statistic(weak_cost, strong_cost, chosen, _own_groups(weak_cost)))


def misroute(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, margin: float = 0.0) -> float:
    """Share of the prompts that went to the strong model although the weak one would also have succeeded (Alg. 3).

    With graded scores the weak model "also succeeds" where it scores above 0 and the strong one is not better by more than ``margin``. For
    right-or-wrong scores that is: the weak answer is right.
    """
    return _value(misroute_statistic(weak, strong, chosen, _own_groups(weak), margin))


def routing_accuracy(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, margin: float = 0.0) -> float:
    """Share of the prompts that went to the right model: the strong one where it is better by more than ``margin``, else the weak one."""
    return _value(accuracy_statistic(weak, strong, chosen, _own_groups(weak), margin))


def expected_calibration_error(probability: ArrayLike, target: ArrayLike, bins: int = DEFAULT_BINS) -> float:
    """Mean distance between predicted and observed over bins of equal mass (Naeini et al. 2015, with quantile bins), weighted by rows."""
    return _value(ece_statistic(probability, target, _own_groups(probability), bins))


def adds_value(weak: ArrayLike, strong: ArrayLike, margin: float = 0.0) -> NDArray[np.bool_]:
    """Whether the strong model is better by more than ``margin``, shape (n,)."""
    return _checked_delta(weak, strong) > margin


def choose_share(need: ArrayLike, share: float) -> Array:
    """Probability of a strong call, shape (n,), when the share with the highest need is sent there; ties share alike."""
    ranked = _Ranking.of(need)
    size = np.diff(np.append(ranked.starts, ranked.order.size))
    above = np.cumsum(size) - size
    chosen = np.empty(ranked.order.size)
    chosen[ranked.order] = np.repeat(np.clip((share * chosen.size - above) / size, 0.0, 1.0), size)
    return chosen


@dataclass(frozen=True, slots=True)
class ReliabilityBin:
    """One bin of the reliability diagram: the range of predictions, their mean, the mean of what happened, and the rows."""

    low: float
    high: float
    predicted: float
    observed: float
    n: int


def reliability(probability: ArrayLike, target: ArrayLike, bins: int = DEFAULT_BINS) -> list[ReliabilityBin]:
    """Reliability table over bins of equal mass; equal predictions are never split between bins."""
    p, y = _vector("probability", probability), _vector("target", target)
    number = equal_mass_bins(p, bins)
    members = [number == b for b in range(int(number.max()) + 1)]
    return [ReliabilityBin(float(p[m].min()), float(p[m].max()), float(p[m].mean()), float(y[m].mean()), int(m.sum())) for m in members]


def equal_mass_bins(probability: ArrayLike, bins: int = DEFAULT_BINS) -> NDArray[np.intp]:
    """Bin number of every prediction, shape (n,): as many rows in each as ties allow, no bin empty."""
    if bins < 1:
        raise InvalidInput(f"bins is {bins}: at least 1 was expected")
    p = _vector("probability", probability)
    edges = np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1], method="inverted_cdf")
    number = np.searchsorted(np.unique(edges), p, side="left")
    return np.unique(number, return_inverse=True)[1].astype(np.intp)


# The same metrics as functions of the groups in a resample.


def apgr_statistic(weak: ArrayLike, strong: ArrayLike, need: ArrayLike, groups: Groups) -> Statistic:
    """:func:`apgr`; undefined in a resample where the strong model is not better on average."""
    delta = _checked_delta(weak, strong)
    sums = _level_sums(need, groups, [None, delta])

    def of(counts: Array) -> Array:
        mass, gain = sums(counts)
        position = (np.cumsum(mass, axis=1) - mass / 2) / mass.sum(axis=1, keepdims=True)
        gap = gain.sum(axis=1)
        return _divide((gain * (1 - position)).sum(axis=1), np.where(gap > 1e-12, gap, 0.0))

    return Statistic(of, _count(groups), _no_gap(delta))


def auc_statistic(label: ArrayLike, need: ArrayLike, groups: Groups) -> Statistic:
    """:func:`auc`; undefined where all labels are equal."""
    positive = _vector("label", label) > 0.5
    share = float(positive.mean()) if positive.size else 0.0
    sums = _level_sums(need, groups, [None, positive.astype(np.float64)])

    def of(counts: Array) -> Array:
        mass, ones = sums(counts)
        zeros = mass - ones
        all_zeros = zeros.sum(axis=1, keepdims=True)
        below = all_zeros - np.cumsum(zeros, axis=1) + zeros / 2
        return _divide((ones * below).sum(axis=1), ones.sum(axis=1) * all_zeros[:, 0])

    one_class = f"the strong model adds value on {'every' if share == 1 else 'no'} prompt"
    return Statistic(of, _count(groups), one_class if share in (0.0, 1.0) else "")


def ratio_statistic(numerator: Array, denominator: Array, groups: Groups, undefined: str = "") -> Statistic:
    """Sum over sum, by group sums."""
    top, bottom = _by_group(numerator, groups), _by_group(denominator, groups)
    return Statistic(lambda counts: _divide(counts @ top, counts @ bottom), _count(groups), undefined)


def mean_statistic(values: ArrayLike, groups: Groups) -> Statistic:
    """Mean over rows."""
    v = _vector("values", values)
    return ratio_statistic(v, np.ones(v.size), groups)


def quality_of(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike) -> Array:
    """Expected score of every prompt under a choice, shape (n,)."""
    p = _vector("chosen", chosen)
    return (1 - p) * _vector("weak", weak) + p * _vector("strong", strong)


def retention_statistic(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, groups: Groups) -> Statistic:
    """:func:`quality_retention`; undefined where neither model scores at all."""
    best = np.maximum(_vector("weak", weak), _vector("strong", strong))
    return ratio_statistic(
        quality_of(weak, strong, chosen), best, groups, "" if best.sum() > 0 else "neither model scores above 0 on any prompt"
    )


def relative_quality_statistic(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, groups: Groups) -> Statistic:
    """Quality as a share of always-strong; undefined where the strong model never scores."""
    s = _vector("strong", strong)
    return ratio_statistic(quality_of(weak, strong, chosen), s, groups, "" if s.sum() > 0 else "the strong model scores 0 on every prompt")


def savings_statistic(weak_cost: ArrayLike, strong_cost: ArrayLike, chosen: ArrayLike, groups: Groups) -> Statistic:
    """:func:`cost_savings` over the rows with known costs (NaN is unknown)."""
    weak, strong = np.asarray(weak_cost, dtype=np.float64), np.asarray(strong_cost, dtype=np.float64)
    known = np.isfinite(weak) & np.isfinite(strong)
    p = _vector("chosen", chosen)
    saved = np.where(known, (1 - p) * (strong - weak), 0.0)
    full = np.where(known, strong, 0.0)
    reason = "" if full.sum() > 0 else "no prices and no costs are known" if not known.any() else "the strong model costs nothing"
    return ratio_statistic(saved, full, groups, reason)


def misroute_statistic(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, groups: Groups, margin: float = 0.0) -> Statistic:
    """:func:`misroute`."""
    enough = ~adds_value(weak, strong, margin) & (_vector("weak", weak) > 0)
    return mean_statistic(_vector("chosen", chosen) * enough, groups)


def accuracy_statistic(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, groups: Groups, margin: float = 0.0) -> Statistic:
    """:func:`routing_accuracy`."""
    return mean_statistic(rightness(weak, strong, chosen, margin), groups)


def rightness(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, margin: float = 0.0) -> Array:
    """Probability, shape (n,), that a prompt went to the right model; see :func:`routing_accuracy`."""
    p = _vector("chosen", chosen)
    return np.where(adds_value(weak, strong, margin), p, 1 - p)


def ece_statistic(probability: ArrayLike, target: ArrayLike, groups: Groups, bins: int = DEFAULT_BINS) -> Statistic:
    """:func:`expected_calibration_error` with the bins of the whole sample; noise only raises it, hence the reflected interval."""
    p, y = _vector("probability", probability), _vector("target", target)
    number = equal_mass_bins(p, bins)
    shape = (_count(groups), int(number.max()) + 1)
    error, rows = np.zeros(shape), np.zeros(shape)
    np.add.at(error, (groups, number), p - y)
    np.add.at(rows, (groups, number), 1.0)
    total = rows.sum(axis=1)
    return Statistic(lambda counts: _divide(np.abs(counts @ error).sum(axis=1), counts @ total), shape[0], reflect=True)


def _level_sums(need: ArrayLike, groups: Groups, values: Sequence[Array | None]) -> Callable[[Array], list[Array]]:
    """For counts of the groups, shape (resamples, groups): sums of the values by level of need, highest first; None stands for ones.

    Rows of equal need are one level. Where there are more than :data:`_EXACT_ROWS` rows and no more groups than bundles, levels are a
    thousand quantiles of the need and their sums by group are made once: what a row's place within its thousandth would change is far
    below the interval, and a resample then costs the same for any number of rows.
    """
    ranked = _Ranking.of(need)
    ordered = [None if value is None else value[ranked.order] for value in values]
    group = groups[ranked.order]
    if len(group) <= _EXACT_ROWS or _count(groups) > BUNDLES:
        starts = ranked.starts

        def exact(counts: Array) -> list[Array]:
            weight = counts[:, group]
            return [np.add.reduceat(weight if value is None else weight * value, starts, axis=1) for value in ordered]

        return exact
    level = np.repeat(np.arange(len(ranked.starts)), np.diff(np.append(ranked.starts, len(group))))
    if len(ranked.starts) > _LEVELS:
        level = (ranked.starts * _LEVELS // len(group))[level]
    shape = (_count(groups), int(level[-1]) + 1)
    cell = group * shape[1] + level
    tables = [np.bincount(cell, weights=value, minlength=shape[0] * shape[1]).reshape(shape) for value in ordered]
    return lambda counts: [counts @ table for table in tables]


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Rows from the highest need to the lowest, and where each run of equal needs begins."""

    order: NDArray[np.intp]
    starts: NDArray[np.intp]

    @classmethod
    def of(cls, need: ArrayLike) -> _Ranking:
        values = np.asarray(need, dtype=np.float64)
        if values.ndim != 1 or values.size == 0 or np.isnan(values).any():
            raise InvalidInput(f"need has shape {values.shape} or holds NaN: one number per prompt and at least one prompt were expected")
        order = np.argsort(-values, kind="stable")
        ranked = values[order]
        return cls(order, np.append(0, np.flatnonzero(ranked[1:] != ranked[:-1]) + 1))


def _own_groups(values: ArrayLike) -> Groups:
    return np.arange(np.asarray(values).size, dtype=np.intp)


def _value(statistic: Statistic) -> float:
    if statistic.undefined:
        raise UndefinedMetric(statistic.undefined)
    return float(statistic.of(np.ones((1, statistic.n_groups)))[0])


def _count(groups: Groups) -> int:
    return int(groups.max()) + 1 if groups.size else 0


def _by_group(values: Array, groups: Groups) -> Array:
    return np.bincount(groups, weights=values).astype(np.float64)


def _divide(top: Array, bottom: Array) -> Array:
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0), dtype=np.float64)


def _checked_delta(weak: ArrayLike, strong: ArrayLike) -> Array:
    return _scores("strong", strong) - _scores("weak", weak)


def _scores(name: str, values: ArrayLike) -> Array:
    array = _vector(name, values)
    outside = array[(array < 0) | (array > 1)]
    if outside.size:
        raise InvalidInput(f"a {name} score is {outside[0]:g}: scores lie within [0, 1]")
    return array


def _vector(name: str, values: ArrayLike) -> Array:
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not np.isfinite(array).all():
        raise InvalidInput(f"{name} has shape {array.shape} or holds NaN: one finite number per prompt was expected")
    return array


def _no_gap(delta: Array) -> str:
    gap = float(delta.mean()) if delta.size else 0.0
    if not delta.any():
        return "weak and strong model score the same on every prompt"
    if gap <= 1e-12:
        return f"the strong model is not better on average (gap {gap:+.3f})"
    return ""
