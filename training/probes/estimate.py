"""From a few probes to a model's mean score over a whole bank, with an interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from router.errors import InvalidInput
from training.probes.irt import GRID, Items, ability, prior

Array = NDArray[np.float64]
NEW_MODEL_SD: Final = 2.0
"""Spread of the prior of a new model's ability; reference models have 1. Wider, because new models are often better than all of those."""
MIN_PROBES: Final = 20
_SCALE: Final = np.linspace(-0.05, 1.05, 2201)


@dataclass(frozen=True, slots=True)
class ScoreEstimate:
    """Mean score over a bank, in [0, 1].

    ``low`` and ``high`` are the ends of the interval, ``sd`` the standard deviation behind it; ``notes`` says what is doubtful.
    """

    score: float
    low: float
    high: float
    sd: float
    n_probes: int
    n_bank: int
    probe_mean: float
    notes: tuple[str, ...] = ()


def estimate_score(items: Items, scores: Array, *, level: float = 0.95, telling: NDArray[np.bool_] | None = None) -> ScoreEstimate:
    """Mean score over all prompts of a bank from the scores on some of them.

    What was asked counts as it is; what was not is expected by item response theory, averaged over the posterior of the ability (the p-IRT
    estimator of Polo et al. 2024, "tinyBenchmarks", arXiv 2402.14992, with the whole posterior in place of its mode).

    Parameters
    ----------
    scores
        Shape (I,), in [0, 1], NaN where not asked.
    level
        Coverage of the interval.
    telling
        Which prompts tell reference models apart, shape (I,), for a note where none of those was asked.

    Raises
    ------
    InvalidInput
        If no prompt was asked, or a score lies outside [0, 1].
    """
    asked = np.isfinite(scores)
    if not asked.any() or np.isinf(scores).any() or ((scores < 0) | (scores > 1))[asked].any():
        raise InvalidInput("scores of at least one probe, each within [0, 1], were expected")
    if not 0 < level < 1:
        raise InvalidInput(f"level {level!r}: a number between 0 and 1 was expected")
    if telling is not None and not telling[asked].any():
        raise InvalidInput(f"none of the {int(asked.sum())} probes tells models apart: on each, all reference models scored the same")
    weight = ability(items, scores, prior(NEW_MODEL_SD))
    rest = items.of(np.flatnonzero(~asked)).probability(GRID)
    mean = (scores[asked].sum() + rest.sum(axis=1)) / scores.size
    variance = (rest * (1.0 - rest)).sum(axis=1) / scores.size**2
    score = float(weight @ mean)
    sd = float(np.sqrt(weight @ (variance + (mean - score) ** 2)))
    low, high = _quantiles(weight, mean, np.sqrt(variance), ((1 - level) / 2, (1 + level) / 2)) if (~asked).any() else (score, score)
    notes = _notes(scores[asked])
    return ScoreEstimate(score, min(low, score), max(high, score), sd, int(asked.sum()), scores.size, float(scores[asked].mean()), notes)


def _quantiles(weight: Array, mean: Array, sd: Array, shares: tuple[float, float]) -> tuple[float, float]:
    """Quantiles of a mixture of normal distributions."""
    cumulative = ndtr((_SCALE[:, None] - mean) / np.maximum(sd, 1e-6)) @ weight
    low, high = np.interp(shares, cumulative, _SCALE)
    return float(np.clip(low, 0.0, 1.0)), float(np.clip(high, 0.0, 1.0))


def _notes(probes: Array) -> tuple[str, ...]:
    if (probes >= 1).all():
        return (f"all {probes.size} probes are right: how much better it is, harder prompts would have to show",)
    if (probes <= 0).all():
        return (f"all {probes.size} probes are wrong: how much worse it is, easier prompts would have to show",)
    return ()
