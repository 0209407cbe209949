"""Is a mean loss below its limit? A test that holds for any distribution and any sample size.

The unit is the split group (a task with all its translations, a problem): prompts of one group stand or fall together, so that only groups
are exchangeable. What is tested is the mean over groups of the mean over a group's prompts. That mean needs no bound on the size of a
group; a mean over prompts would, because one group of a thousand prompts could outweigh all that was seen.

The test bets against the hypothesis that the limit is exceeded (Waudby-Smith and Ramdas, JRSS B 86, 2024): a capital that starts at 1 is
multiplied by ``1 + lambda * margin`` group after group. If the mean margin is not above 0, the capital is a supermartingale whatever the
distribution, and by Ville's inequality it exceeds 1 / delta with probability at most delta.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput
from training.bootstrap import Array

# Groups enter in one order for every router and threshold, which must not depend on outcomes or on the order of the table.
_ORDER_SEED: Final = 20_240_117
# Share of the largest bet that cannot lose everything at once: chosen in simulation (docs/decisions/0008).
_LARGEST_STAKE: Final = 0.75
_MOST_GROUPS: Final = 10_000_000


def margins(weak: ArrayLike, strong: ArrayLike, chosen: ArrayLike, epsilon: float, *, relative: bool = False) -> Array:
    """How far each prompt stays within the limit, shape (n,), in [epsilon - 1, 1 + epsilon].

    ``epsilon - (strong - score)``; with ``relative``, where the limit is a share of always-strong's mean score,
    ``score - (1 - epsilon) * strong``. Its mean is above 0 exactly if the mean loss is below the limit, gains counted against losses.
    """
    s, p = np.asarray(strong, dtype=np.float64), np.asarray(chosen, dtype=np.float64)
    score = (1 - p) * np.asarray(weak, dtype=np.float64) + p * s
    return np.asarray(score - (1 - epsilon) * s if relative else epsilon - (s - score), dtype=np.float64)


def group_means(values: ArrayLike, group: NDArray[np.intp]) -> Array:
    """Mean over the rows of every group, shape (groups,); ``group`` numbers them from 0 without a gap."""
    return np.asarray(np.bincount(group, weights=np.asarray(values, dtype=np.float64)) / np.bincount(group), dtype=np.float64)


def p_value(margin: Array, epsilon: float, delta: float) -> float:
    """p-value of "the mean margin is not above 0", from independent margins of at least ``epsilon - 1``, shape (groups,).

    It is valid for every sample size; ``delta`` is only the level at which it is meant to be small, and sets how much is staked.

    Raises
    ------
    InvalidInput
        If a margin is below ``epsilon - 1`` or not a number: then a score was outside [0, 1].
    """
    lowest = 1 - epsilon
    if margin.size == 0:
        return 1.0
    if not (margin >= -lowest - 1e-9).all():
        raise InvalidInput(f"a margin is {margin.min():g}, below {-lowest:g}: scores lie within [0, 1]")
    ordered = margin[np.random.default_rng(_ORDER_SEED).permutation(margin.size)]
    capital = np.cumsum(np.log1p(_stakes(ordered, lowest, delta) * ordered))
    return float(np.exp(-max(0.0, capital.max())))


def _stakes(margin: Array, lowest: float, delta: float) -> Array:
    """The bet on every group, from those before it alone: ``sqrt(2 ln(1 / delta) / (n variance))``, best for n groups, and capped."""
    n = margin.size
    seen = np.arange(1, n + 1) + 1.0
    mean = np.cumsum(margin) / seen
    variance = (0.25 * lowest**2 + np.cumsum((margin - mean) ** 2)) / seen
    before = np.concatenate([[0.25 * lowest**2], variance[:-1]])
    return np.minimum(np.sqrt(2 * math.log(1 / delta) / (n * before)), _LARGEST_STAKE / lowest)


def groups_needed(epsilon: float, delta: float, strong_mean: float = 1.0) -> int:
    """Groups from which on the limit can be promised if no answer is worse than always-strong's.

    ``strong_mean`` is the mean score of always-strong where the limit is relative to it, else 1.
    """
    best = epsilon * strong_mean
    if best <= 0:
        raise InvalidInput(f"epsilon {epsilon!r} of a mean score of {strong_mean!r} leaves no loss to allow")
    n = math.ceil(math.log(1 / delta) / math.log1p(_LARGEST_STAKE / (1 - epsilon) * best))
    while n < _MOST_GROUPS and p_value(np.full(n, best), epsilon, delta) > delta:
        n = math.ceil(n * 1.002) + 1 if n > 1000 else n + 1
    return n
