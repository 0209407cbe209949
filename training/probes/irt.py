"""Two-parameter logistic item response theory: how hard and how telling each prompt is, and how able a model is.

Model j scores on prompt i with probability 1 / (1 + exp(-(a_i theta_j + d_i))) (Birnbaum 1968). The prompts' slopes a and intercepts d are
found by marginal maximum likelihood, with the abilities theta integrated out over a grid (Bock and Aitkin 1981, "Marginal maximum
likelihood estimation of item parameters: application of an EM algorithm", Psychometrika 46). Scores between 0 and 1 count as that share of
a success.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput

Array = NDArray[np.float64]
# Abilities have mean 0 and standard deviation 1 in the reference models; the grid goes well beyond: a new model may be better than all.
GRID: Final[Array] = np.linspace(-5.0, 5.0, 81)
_ROUNDS: Final = 60
_NEWTON_STEPS: Final = 2
_TOLERANCE: Final = 1e-3
# Priors that keep items with few or one-sided answers finite: log a ~ N(0, 0.5), d ~ N(0, 3).
_LOG_SLOPE_SD: Final = 0.5
_INTERCEPT_SD: Final = 3.0


@dataclass(frozen=True, slots=True)
class Items:
    """Slope and intercept of every prompt, shape (I,)."""

    slope: Array
    intercept: Array

    def probability(self, theta: Array) -> Array:
        """Expected score of models of abilities ``theta``, shape (Q,), on every prompt; shape (Q, I)."""
        return np.asarray(1.0 / (1.0 + np.exp(-(np.outer(theta, self.slope) + self.intercept))))

    def information(self, theta: Array) -> Array:
        """Fisher information about the ability, shape (Q, I): ``a^2 p (1 - p)``."""
        p = self.probability(theta)
        return np.asarray(self.slope**2 * p * (1.0 - p))

    def of(self, index: NDArray[np.intp]) -> Items:
        """Some of the prompts."""
        return Items(self.slope[index], self.intercept[index])


def prior(sd: float = 1.0) -> Array:
    """Normal prior over the grid, shape (Q,)."""
    weight = np.exp(-0.5 * (GRID / sd) ** 2)
    return np.asarray(weight / weight.sum())


def fit_items(scores: Array) -> Items:
    """Item parameters from the scores of reference models.

    Parameters
    ----------
    scores
        Shape (J, I), in [0, 1], NaN where a model did not answer. Prompts that all models answered alike get a flat slope by the priors.

    Raises
    ------
    InvalidInput
        Fewer than two models or prompts, a score outside [0, 1], or models that do not differ on any prompt.
    """
    check_bank(scores)
    known = np.isfinite(scores)
    answered, right = known.astype(np.float64), np.where(known, scores, 0.0)
    mean = np.clip((right.sum(axis=0) + 0.5) / (answered.sum(axis=0) + 1.0), 0.02, 0.98)
    slope, intercept = np.ones(scores.shape[1]), np.log(mean / (1.0 - mean))
    weight = prior()
    for _ in range(_ROUNDS):
        posterior = _posterior(Items(slope, intercept), right, answered, weight)
        tries, successes = posterior.T @ answered, posterior.T @ right
        moved = 0.0
        for _ in range(_NEWTON_STEPS):
            slope, intercept, step = _newton(slope, intercept, tries, successes)
            moved = max(moved, step)
        if moved < _TOLERANCE:
            break
    return Items(slope, intercept)


def ability(items: Items, scores: Array, weight: Array | None = None) -> Array:
    """Posterior of a model's ability over :data:`GRID`, shape (Q,), from its scores on some prompts, shape (I,), NaN where not asked."""
    known = np.isfinite(scores)
    right = np.where(known, scores, 0.0)[None, :]
    return np.asarray(_posterior(items, right, known.astype(np.float64)[None, :], prior() if weight is None else weight)[0])


def check_bank(scores: Array) -> None:
    """Refuse reference outcomes from which nothing can be learned about prompts; see :func:`fit_items`."""
    if scores.ndim != 2 or min(scores.shape) < 2:
        raise InvalidInput(f"reference scores of shape {scores.shape}: at least two models and two prompts were expected")
    known = np.isfinite(scores)
    if np.isinf(scores).any() or ((scores < 0) | (scores > 1))[known].any():
        raise InvalidInput("a reference score lies outside [0, 1]")
    low = np.where(known, scores, np.inf).min(axis=0)
    high = np.where(known, scores, -np.inf).max(axis=0)
    if not (high > low).any():
        raise InvalidInput(f"all {len(scores)} reference models score the same on every prompt: no prompt tells models apart")


def _posterior(items: Items, right: Array, answered: Array, weight: Array) -> Array:
    p = np.clip(items.probability(GRID), 1e-9, 1 - 1e-9)
    log = right @ np.log(p).T + (answered - right) @ np.log1p(-p).T + np.log(np.maximum(weight, 1e-300))
    log -= log.max(axis=1, keepdims=True)
    density = np.exp(log)
    return np.asarray(density / density.sum(axis=1, keepdims=True), dtype=np.float64)


def _newton(slope: Array, intercept: Array, tries: Array, successes: Array) -> tuple[Array, Array, float]:
    """One damped Newton step for every prompt at once, on log slope and intercept; and the largest step."""
    p = Items(slope, intercept).probability(GRID)
    error, weight = successes - tries * p, tries * p * (1.0 - p)
    theta = GRID[:, None]
    log_slope = np.log(slope)
    by_slope = slope * (theta * error).sum(axis=0) - log_slope / _LOG_SLOPE_SD**2
    by_intercept = error.sum(axis=0) - intercept / _INTERCEPT_SD**2
    # Expected information (Fisher scoring) is positive, so that every step goes uphill.
    h_ss = slope**2 * (theta**2 * weight).sum(axis=0) + 1.0 / _LOG_SLOPE_SD**2
    h_dd = weight.sum(axis=0) + 1.0 / _INTERCEPT_SD**2
    h_sd = slope * (theta * weight).sum(axis=0)
    determinant = h_ss * h_dd - h_sd**2
    step_s = np.clip((h_dd * by_slope - h_sd * by_intercept) / determinant, -0.5, 0.5)
    step_d = np.clip((h_ss * by_intercept - h_sd * by_slope) / determinant, -1.0, 1.0)
    log_slope = np.clip(log_slope + step_s, np.log(0.05), np.log(5.0))
    moved = float(max(np.abs(step_s).max(), np.abs(step_d).max()))
    return np.asarray(np.exp(log_slope)), np.asarray(np.clip(intercept + step_d, -10.0, 10.0)), moved
