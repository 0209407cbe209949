"""How far a threshold, a price or a requirement must move to change the choice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from router.decision import Flip, FlipMargin
from router.selection import cheapest_capable, shortfalls

Array = NDArray[np.float64]
# The choice changes at points that are computed up to rounding; a probe stands this far behind one.
_STEP = 1e-9


@dataclass(frozen=True)
class SelectionProblem:
    """What the selection rule looks at: shapes (K,), (models, K), (K,), (models,), (models,)."""

    requirements: Array
    capability: Array
    weights: Array
    cost: Array
    open_: NDArray[np.bool_]
    threshold: float

    @cached_property
    def table(self) -> Array:
        """Shortfall by capability, shape (models, K)."""
        return shortfalls(self.requirements, self.capability, self.weights)

    @cached_property
    def total(self) -> Array:
        """Summed shortfall, shape (models,)."""
        return np.asarray(self.table.sum(axis=1), dtype=np.float64)

    @cached_property
    def choice(self) -> int:
        """Index of the chosen model."""
        return int(cheapest_capable(self.total, self.cost, self.open_, self.threshold)[0])

    def total_under(self, requirements: Array) -> Array:
        """Summed shortfall had the requirements been others, shapes (cases, K) -> (cases, models)."""
        # Laid out as (K, models, cases): the longest rows last.
        required, capability = np.ascontiguousarray(requirements.T), np.ascontiguousarray(self.capability.T)
        table = shortfalls(required[:, None, :], capability[:, :, None], self.weights[:, None, None])
        return np.asarray(np.add.reduce(table).T, dtype=np.float64)


def flip_margin(problem: SelectionProblem, models: Sequence[str], capabilities: Sequence[str]) -> FlipMargin:
    """Smallest changes, one input at a time, after which another model is chosen."""
    return margin_and_choices(problem, models, capabilities, np.empty((0, len(capabilities))))[0]


def margin_and_choices(
    problem: SelectionProblem, models: Sequence[str], capabilities: Sequence[str], others: Array
) -> tuple[FlipMargin, NDArray[np.intp]]:
    """:func:`flip_margin` and, in the same pass, the choice under other requirements, shape (cases, K)."""
    k, requirements = _requirement_probes(problem)
    up, down = _threshold_probes(problem)
    factors = _price_probes(problem)
    values = [*requirements.tolist(), *up, *down, *factors]
    # What the rule looks at in every case: first the others, then each probe with one input moved and the rest as it is.
    moved = np.where(np.arange(len(capabilities)) == k[:, None], requirements[:, None], problem.requirements)
    rows = np.concatenate([others, moved])
    count, prices = len(others) + len(values), len(others) + len(values) - len(factors)
    shortfall, cost = (np.repeat(row[:, None], count, axis=1).T for row in (problem.total, problem.cost))
    threshold = np.full(count, problem.threshold)
    shortfall[: len(rows)] = problem.total_under(rows)
    threshold[len(rows) : prices] = [*up, *down]
    cost[prices:, problem.choice] *= factors
    choices = cheapest_capable(shortfall, cost, problem.open_, threshold)
    inputs = [*k.tolist(), *[-3] * len(up), *[-2] * len(down), *[-1] * len(factors)]
    current = [*problem.requirements.tolist(), problem.threshold, problem.threshold, 1.0]
    *flips, threshold_up, threshold_down, price = _nearest(inputs, values, choices[len(others) :], current, problem.choice, models)
    return FlipMargin(threshold_up, threshold_down, price, dict(zip(capabilities, flips, strict=True))), choices[: len(others)]


def _nearest(
    inputs: list[int], values: list[float], choices: NDArray[np.intp], current: list[float], chosen: int, models: Sequence[str]
) -> list[Flip | None]:
    """For every input the change nearest to its current value among the probes that chose another model."""
    least = [math.inf] * len(current)
    flips: list[Flip | None] = [None] * len(current)
    for case in np.flatnonzero(choices != chosen).tolist():
        which, value = inputs[case], values[case]
        distance = abs(value - current[which])
        if distance < least[which]:
            least[which] = distance
            flips[which] = Flip(value, value - current[which], models[choices[case]])
    return flips


def _threshold_probes(problem: SelectionProblem) -> tuple[list[float], list[float]]:
    """The choice changes only where tau passes the summed shortfall of an open model: values above and below the present one."""
    tau, totals = problem.threshold, problem.total[problem.open_].tolist()
    return [total for total in totals if total > tau], [math.nextafter(total, 0.0) for total in totals if 0 < total <= tau]


def _price_probes(problem: SelectionProblem) -> list[float]:
    """Factors that make the chosen model dearer than each other one. Made cheaper it stays chosen; one that is free stays free."""
    own = float(problem.cost[problem.choice])
    return [cost / own * (1 + _STEP) for cost in problem.cost[problem.open_].tolist() if cost >= own] if own > 0 else []


def _requirement_probes(problem: SelectionProblem) -> tuple[NDArray[np.intp], Array]:
    """Capability and value of a probe behind every point where the choice can change, capability by capability.

    ``s_m(r) = rest_m + w * max(0, r - c_m)`` meets tau at ``c_m + (tau - rest_m) / w`` and the chosen model's shortfall at
    ``c_m + (rest - rest_m) / w`` or ``c + (rest_m - rest) / w``, and bends at ``c_m``.
    """
    c, own = problem.capability.T, problem.choice
    rest = problem.total - problem.table.T
    points = np.empty((len(c), 4, len(problem.cost)))
    points[:, 0] = problem.threshold - rest
    points[:, 1] = 0.0
    points[:, 2] = rest[:, own, None] - rest
    points[:, 3] = -points[:, 2]
    points /= np.where(problem.weights > 0, problem.weights, np.nan)[:, None, None]  # without weight nothing changes
    points[:, :3] += c[:, None]
    points[:, 3] += c[:, own, None]
    required = problem.requirements[:, None, None]
    # A point at an end of the scale, up to rounding, is probed at the end itself: nothing lies behind it.
    inside = (points >= -_STEP) & (points <= 1 + _STEP)
    values = np.minimum(np.maximum(np.stack([points + _STEP, points - _STEP], axis=1), 0.0), 1.0)
    possible = np.stack([(points >= required) & inside, (points <= required) & inside], axis=1)
    return np.nonzero(possible.reshape(len(c), -1))[0], values[possible]
