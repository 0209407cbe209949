"""How far a threshold, a price or a requirement must move to change the choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

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
        return np.asarray(shortfalls(requirements[:, None, :], self.capability, self.weights).sum(axis=2), dtype=np.float64)


@dataclass(frozen=True, slots=True)
class _Probes:
    """Values of one input to try, shape (cases,), and what the rule would then look at; a single row or number holds for all cases."""

    current: float
    values: Array
    shortfall: Array
    cost: Array
    threshold: Array


def flip_margin(problem: SelectionProblem, models: Sequence[str], capabilities: Sequence[str]) -> FlipMargin:
    """Smallest changes, one input at a time, after which another model is chosen."""
    kinds = [*_threshold_probes(problem), _price_probes(problem), *_requirement_probes(problem)]
    sizes = [kind.values.size for kind in kinds]
    ends = np.cumsum(sizes).tolist()
    cases = [slice(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    shortfall, cost = np.empty((2, ends[-1], len(problem.cost)))
    threshold = np.empty(ends[-1])
    for kind, case in zip(kinds, cases, strict=True):
        shortfall[case], cost[case], threshold[case] = kind.shortfall, kind.cost, kind.threshold
    choices = cheapest_capable(shortfall, cost, problem.open_, threshold)
    up, down, price, *requirements = (
        _nearest(kind, choices[case], problem.choice, models) for kind, case in zip(kinds, cases, strict=True)
    )
    return FlipMargin(up, down, price, dict(zip(capabilities, requirements, strict=True)))


def _threshold_probes(problem: SelectionProblem) -> tuple[_Probes, _Probes]:
    """The choice changes only where tau passes the summed shortfall of an open model."""
    tau = problem.threshold
    values = problem.total[problem.open_]
    above, below = values[values > tau], np.nextafter(values[(values <= tau) & (values > 0)], 0.0)
    return _Probes(tau, above, problem.total, problem.cost, above), _Probes(tau, below, problem.total, problem.cost, below)


def _price_probes(problem: SelectionProblem) -> _Probes:
    """The chosen model made dearer than each other one. Made cheaper it stays chosen; one that is free stays free."""
    own, tau = problem.cost[problem.choice], np.array(problem.threshold)
    others = problem.cost[problem.open_ & (problem.cost >= own)] if own > 0 else np.empty(0)
    factors = others / own * (1 + _STEP)
    cost = np.repeat(problem.cost[None, :], factors.size, axis=0)
    cost[:, problem.choice] = own * factors
    return _Probes(1.0, factors, problem.total, cost, tau)


def _requirement_probes(problem: SelectionProblem) -> list[_Probes]:
    """Probe behind every point where the choice can change, one capability after the other.

    ``s_m(r) = rest_m + w * max(0, r - c_m)`` meets tau at ``c_m + (tau - rest_m) / w`` and the chosen model's shortfall at
    ``c_m + (rest - rest_m) / w`` or ``c + (rest_m - rest) / w``, and bends at ``c_m``.
    """
    c, chosen, required = problem.capability.T, problem.choice, problem.requirements[:, None]
    rest = (problem.total[:, None] - problem.table).T
    weights = np.where(problem.weights > 0, problem.weights, np.nan)[:, None]  # without weight nothing changes
    own_c, own_rest = c[:, [chosen]], rest[:, [chosen]]
    steps = np.concatenate([problem.threshold - rest, 0.0 * rest, own_rest - rest, rest - own_rest], axis=1) / weights
    points = np.concatenate([c, c, c, np.broadcast_to(own_c, c.shape)], axis=1) + steps
    values = np.concatenate(
        [np.where(points >= required, points + _STEP, np.nan), np.where(points <= required, points - _STEP, np.nan)], axis=1
    )
    k, column = np.nonzero((values >= 0) & (values <= 1))
    probed = values[k, column]
    cases = np.repeat(problem.requirements[None, :], k.size, axis=0)
    cases[np.arange(k.size), k] = probed
    shortfall = problem.total_under(cases)
    tau = np.array(problem.threshold)
    ends = np.searchsorted(k, np.arange(len(problem.requirements) + 1)).tolist()
    rows = [slice(start, end) for start, end in pairwise(ends)]
    current = problem.requirements.tolist()
    return [_Probes(now, probed[row], shortfall[row], problem.cost, tau) for now, row in zip(current, rows, strict=True)]


def _nearest(probes: _Probes, choices: NDArray[np.intp], chosen: int, models: Sequence[str]) -> Flip | None:
    """The change nearest to the current value among the probes that chose another model."""
    changed = np.flatnonzero(choices != chosen)
    if changed.size == 0:
        return None
    best = changed[np.abs(probes.values[changed] - probes.current).argmin()]
    value = float(probes.values[best])
    return Flip(value, value - probes.current, models[int(choices[best])])
