"""Statistics of choices in a pool, as functions of how often each split group is drawn; for :func:`training.bootstrap.estimate`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.bootstrap import Statistic
from training.pool.fit import budgets
from training.pool.mixing import mixture_quality

Array = NDArray[np.float64]
_SLACK = 1e-12


@dataclass(frozen=True)
class PoolSums:
    """Sums by split group: rows, and scores and costs of every model, shape (groups, M).

    ``dearest`` and ``best`` are the models that savings and losses are measured against, fixed for all resamples.
    """

    rows: Array
    scores: Array
    costs: Array
    dearest: int
    best: int

    @classmethod
    def of(cls, scores: Array, costs: Array, group: NDArray[np.intp]) -> PoolSums:
        """From scores and costs of shape (n, M)."""
        quality, cost = scores.mean(axis=0), costs.mean(axis=0)
        # Of equally good models the cheaper one, so that savings against "the best" are not flattered.
        best = int(np.where(quality >= quality.max() - _SLACK, cost, np.inf).argmin())
        return cls(by_group(np.ones(len(scores)), group), by_group(scores, group), by_group(costs, group), int(cost.argmax()), best)

    @property
    def n_groups(self) -> int:
        """Number of groups."""
        return len(self.rows)


def by_group(values: Array, group: NDArray[np.intp]) -> Array:
    """Sums over the rows of each group, shape (groups, ...)."""
    sums = np.zeros((int(group.max()) + 1, *values.shape[1:]))
    np.add.at(sums, group, values)
    return sums


def choice_statistics(pool: PoolSums, quality: Array, cost: Array, needless: Array | None = None) -> Iterator[tuple[str, Statistic]]:
    """Metrics of one policy.

    Parameters
    ----------
    quality, cost
        Sums by group of the scores and costs of what the policy chose, shape (groups,).
    needless
        Number of prompts by group for which a cheaper model scored as well, shape (groups,).
    """

    def ratio(top: Array, bottom: Array, undefined: str = "") -> Statistic:
        return Statistic(lambda counts: _divide(counts @ top, counts @ bottom), pool.n_groups, undefined)

    free = "" if pool.costs.sum() > 0 else "all models are free"
    dear, best = pool.costs[:, pool.dearest], pool.costs[:, pool.best]
    yield "quality", ratio(quality, pool.rows)
    yield "cost_usd", ratio(cost, pool.rows)
    yield "loss_to_best", ratio(pool.scores[:, pool.best] - quality, pool.rows)
    yield "loss_to_dearest", ratio(pool.scores[:, pool.dearest] - quality, pool.rows)
    yield "saved_of_dearest", ratio(dear - cost, dear, free)
    yield "saved_of_best", ratio(best - cost, best, free if best.sum() <= 0 else "")
    if needless is not None:
        yield "misroute", ratio(needless, pool.rows)

    def above_mixing(counts: Array) -> Array:
        n = counts @ pool.rows
        own_cost, own_quality = (counts @ pool.costs) / n[:, None], (counts @ pool.scores) / n[:, None]
        mixed = mixture_quality((counts @ cost / n)[:, None], own_cost, own_quality)[:, 0]
        return np.asarray(counts @ quality / n - mixed, dtype=np.float64)

    yield "above_mixing", Statistic(above_mixing, pool.n_groups)


def sweep_statistics(pool: PoolSums, quality: Array, cost: Array, goals: Sequence[float]) -> Iterator[tuple[str, Statistic]]:
    """What the whole sweep of tau is worth.

    Parameters
    ----------
    quality, cost
        Sums by group of what was chosen at each of T taus, shape (groups, T).
    goals
        Losses against the best single model, as shares; for each, the largest savings that any tau reaches *on the very resample*.
    """

    def area(counts: Array) -> Array:
        n = counts @ pool.rows
        own_cost, own_quality = (counts @ pool.costs) / n[:, None], (counts @ pool.scores) / n[:, None]
        budget = budgets(own_cost, own_quality)
        reached = np.empty(budget.shape)
        for i, (x, y) in enumerate(zip((counts @ cost) / n[:, None], (counts @ quality) / n[:, None], strict=True)):
            order = np.argsort(x, kind="stable")
            reached[i] = np.interp(budget[i], x[order], y[order])
        return np.asarray((reached - mixture_quality(budget, own_cost, own_quality)).mean(axis=1), dtype=np.float64)

    yield "gain_over_mixing", Statistic(area, pool.n_groups)
    for goal in goals:
        yield f"hindsight_saved_within_{100 * goal:g}", Statistic(_best_saving(pool, quality, cost, goal), pool.n_groups)


def mixing_saved(pool: PoolSums, goal: float) -> Statistic:
    """Savings against the best model of the cheapest random mixture of two models that loses at most ``goal`` on the very resample."""

    def of(counts: Array) -> Array:
        n = counts @ pool.rows
        own_cost, own_quality = (counts @ pool.costs) / n[:, None], (counts @ pool.scores) / n[:, None]
        grid = budgets(own_cost, own_quality)
        enough = mixture_quality(grid, own_cost, own_quality) >= own_quality.max(axis=1, keepdims=True) - goal - _SLACK
        first = np.take_along_axis(grid, enough.argmax(axis=1)[:, None], axis=1)[:, 0]
        return 1.0 - _divide(first, own_cost[:, pool.best])

    return Statistic(of, pool.n_groups, "" if pool.costs.sum() > 0 else "all models are free")


def _best_saving(pool: PoolSums, quality: Array, cost: Array, goal: float) -> Callable[[Array], Array]:
    def of(counts: Array) -> Array:
        n = (counts @ pool.rows)[:, None]
        bar = ((counts @ pool.scores) / n).max(axis=1, keepdims=True) - goal - _SLACK
        within = (counts @ quality) / n >= bar
        spent = np.where(within, counts @ cost, np.inf).min(axis=1)
        full = counts @ pool.costs[:, pool.best]
        return np.where(np.isfinite(spent), 1.0 - _divide(spent, full), np.nan)

    return of


def _divide(top: Array, bottom: Array) -> Array:
    return np.asarray(np.divide(top, bottom, out=np.full(top.shape, np.nan), where=bottom != 0), dtype=np.float64)
