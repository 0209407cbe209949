"""What a pool is worth without a router: single models, and mixtures of two of them at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_SAME: float = 1e-12


def mixture_quality(budget: Array, cost: Array, quality: Array) -> Array:
    """Best mean score within a budget from one model, or from two between which prompts are divided at random.

    Parameters
    ----------
    budget
        Mean cost of a prompt that may be spent, shape (..., G).
    cost, quality
        Mean cost and mean score of the models, shape (..., M).

    Returns
    -------
    Shape (..., G): the upper convex hull of the models at each budget; the cheapest model's score where the budget is below its cost.
    """
    low, high = cost[..., None, :, None], cost[..., None, None, :]
    width = high - low
    share = (budget[..., None, None] - low) / np.where(width > 0, width, 1.0)
    between = (width > 0) & (share >= 0) & (share <= 1)
    mixed = quality[..., None, :, None] * (1 - share) + quality[..., None, None, :] * share
    best_mixed = np.where(between, mixed, -np.inf).max(axis=(-1, -2))
    alone = np.where(cost[..., None, :] <= budget[..., None], quality[..., None, :], -np.inf).max(axis=-1)
    best = np.maximum(best_mixed, alone)
    cheapest = np.take_along_axis(quality, cost.argmin(axis=-1)[..., None], axis=-1)
    return np.asarray(np.where(np.isfinite(best), best, cheapest), dtype=np.float64)


def undominated(cost: Array, quality: Array) -> NDArray[np.bool_]:
    """Models on the upper convex hull of mean score over mean cost, shape (M,).

    For every other model some single one, or a random mixture of two, scores at least as much for at most the same cost: a router that uses
    it must know something of the prompt to make up for that.
    """
    keep = np.zeros(cost.size, dtype=np.bool_)
    for m in range(cost.size):
        others = np.arange(cost.size) != m
        better = others & (cost <= cost[m]) & (quality >= quality[m])
        # Of two models alike in both, the first one stays.
        alike = (cost == cost[m]) & (quality == quality[m]) & (np.arange(cost.size) > m)
        if (better & ~alike).any():
            continue
        affordable = (cost[others] <= cost[m]).any()
        mixed = float(mixture_quality(np.array([cost[m]]), cost[others], quality[others])[0]) if affordable else -np.inf
        keep[m] = mixed < quality[m] - _SAME
    return keep
