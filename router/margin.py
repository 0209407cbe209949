"""How far a threshold, a price or a requirement must move to change the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.decision import Flip, FlipMargin
from router.selection import cheapest_capable, shortfalls

Array = NDArray[np.float64]
# The rule jumps at points that are computed exactly; the probe stands this far behind one.
_STEP = 1e-9


@dataclass(frozen=True, slots=True)
class SelectionProblem:
    """What the selection rule looks at: shapes (K,), (models, K), (K,), (models,), (models,)."""

    requirements: Array
    capability: Array
    weights: Array
    cost: Array
    open_: NDArray[np.bool_]
    threshold: float

    def shortfall(self) -> Array:
        """Summed shortfall, shape (models,)."""
        return np.asarray(shortfalls(self.requirements, self.capability, self.weights).sum(axis=1), dtype=np.float64)

    def choose(self) -> int:
        """Index of the chosen model."""
        return int(cheapest_capable(self.shortfall(), self.cost, self.open_, self.threshold)[0])


def flip_margin(problem: SelectionProblem, models: Sequence[str], capabilities: Sequence[str]) -> FlipMargin:
    """Smallest changes, one input at a time, after which another model is chosen."""
    chosen, total = problem.choose(), problem.shortfall()
    up, down = _threshold_flips(problem, total, chosen, models)
    return FlipMargin(
        shortfall_threshold_up=up,
        shortfall_threshold_down=down,
        price_factor=_price_flip(problem, total, chosen, models),
        requirements={name: _requirement_flip(problem, total, k, chosen, models) for k, name in enumerate(capabilities)},
    )


def _threshold_flips(problem: SelectionProblem, total: Array, chosen: int, models: Sequence[str]) -> tuple[Flip | None, Flip | None]:
    """The choice changes only where tau passes the summed shortfall of an open model."""
    tau = problem.threshold
    values = np.unique(total[problem.open_])
    above, below = values[values > tau], values[(values <= tau) & (values > 0)]
    up = _nearest(above, above, cheapest_capable(total, problem.cost, problem.open_, above), tau, chosen, models)
    probes = np.maximum(below - _STEP, 0.0)
    down = _nearest(below, probes, cheapest_capable(total, problem.cost, problem.open_, probes), tau, chosen, models)
    return up, down


def _price_flip(problem: SelectionProblem, total: Array, chosen: int, models: Sequence[str]) -> Flip | None:
    """The chosen model made dearer, up to where another is taken instead."""
    own = problem.cost[chosen]
    if own <= 0:
        return None
    factors = np.unique(problem.cost[problem.open_] / own)
    factors = factors[factors >= 1]
    cost = np.repeat(problem.cost[None, :], factors.size, axis=0)
    cost[:, chosen] = own * factors * (1 + _STEP) + _STEP
    return _nearest(factors, factors, cheapest_capable(total, cost, problem.open_, problem.threshold), 1.0, chosen, models)


def _requirement_flip(problem: SelectionProblem, total: Array, k: int, chosen: int, models: Sequence[str]) -> Flip | None:
    """Test beside every point where a model meets tau or two models meet: between those the choice cannot change."""
    weight = float(problem.weights[k])
    if weight <= 0:
        return None
    current, c = float(problem.requirements[k]), problem.capability[:, k]
    rest = total - weight * np.maximum(0.0, current - c)
    # s_m(r) = rest_m + w * max(0, r - c_m) meets tau at c_m + (tau - rest_m) / w, and a flat model's rest_j at c_m + (rest_j - rest_m) / w.
    points = np.concatenate([c + (problem.threshold - rest) / weight, c, (c[:, None] + (rest[None, :] - rest[:, None]) / weight).ravel()])
    points = np.unique(points[(points >= 0) & (points <= 1)])
    beside = np.where(points >= current, points + _STEP, points - _STEP)
    points, beside = points[(beside >= 0) & (beside <= 1)], beside[(beside >= 0) & (beside <= 1)]
    shortfall = rest + weight * np.maximum(0.0, beside[:, None] - c)
    return _nearest(points, beside, cheapest_capable(shortfall, problem.cost, problem.open_, problem.threshold), current, chosen, models)


def _nearest(points: Array, probes: Array, choices: NDArray[np.intp], current: float, chosen: int, models: Sequence[str]) -> Flip | None:
    """The change nearest to the current value among the probes that chose another model."""
    changed = np.flatnonzero(choices[: points.size] != chosen)
    if changed.size == 0:
        return None
    best = changed[np.abs(probes[changed] - current).argmin()]
    return Flip(float(points[best]), float(points[best] - current), models[int(choices[best])])
