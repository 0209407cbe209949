"""A router by item response theory: models have abilities, prompts a difficulty and discriminations that are read off the embedding.

After IRT-Router (Song et al., arXiv 2506.01048): ``P(m solves q) = sigmoid(a(q) . theta_m - b(q))`` with ``a(q) = softplus(A' e(q) + a0)``
and ``b(q) = beta' e(q) + b0``. With one dimension it is the two-parameter logistic model of Birnbaum (1968).
"""

from __future__ import annotations

from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import BaseEstimator
from sklearn.preprocessing import StandardScaler

from training.bootstrap import Array
from training.learned_baselines.answers import STRONG, WEAK

Index = NDArray[np.intp]


class ItemResponse(BaseEstimator):  # type: ignore[misc]
    """Abilities of all models that answered, discrimination and difficulty of prompts from their inputs.

    Every prompt weighs the same, however many models answered it. Scores between 0 and 1 are soft targets.

    Parameters
    ----------
    dimensions
        Number of abilities a model has.
    penalty
        Of the squares of A and beta. Abilities have a standard normal prior, worth one prompt.
    most
        Models a prompt beside the pair, drawn where more answered: more cost time and hardly say more of a prompt.
    random_state
        Seed of the draw and of the start.
    """

    def __init__(self, dimensions: int = 1, penalty: float = 1e-2, most: int = 16, random_state: int = 0) -> None:
        self.dimensions = dimensions
        self.penalty = penalty
        self.most = most
        self.random_state = random_state

    def fit(self, X: Array, scores: Array) -> Self:
        """Learn from inputs of shape (n, d) and an answer table of shape (n, models)."""
        rng = np.random.default_rng(self.random_state)
        self.scaler_ = StandardScaler().fit(X)
        scores = _thinned(scores, self.most, rng)
        objective = _Answers(self.scaler_.transform(X), scores, self.dimensions, self.penalty)
        # Abilities start where mean scores put them: with every ability at 0 no direction would be any better than another.
        means = np.nanmean(np.where(np.isfinite(scores).any(axis=0), scores, 0.5), axis=0).clip(0.02, 0.98)
        theta = np.log(means / (1 - means))[:, None] + rng.normal(0, 0.1, (len(means), self.dimensions))
        start = [np.zeros((X.shape[1], self.dimensions)), np.zeros(self.dimensions), np.zeros(X.shape[1]), np.zeros(1), theta]
        found = minimize(objective, np.concatenate([part.ravel() for part in start]), jac=True, method="L-BFGS-B", options={"maxiter": 100})
        self.slopes_, self.slope_offset_, self.difficulty_, self.difficulty_offset_, self.abilities_ = objective.unpacked(found.x)
        return self

    def predict(self, X: Array) -> Array:
        """Probability of success of the strong model minus that of the weak one, shape (n,)."""
        inputs = self.scaler_.transform(X)
        discrimination = np.logaddexp(0.0, inputs @ self.slopes_ + self.slope_offset_)
        difficulty = inputs @ self.difficulty_ + self.difficulty_offset_
        solves = expit(discrimination @ self.abilities_[[WEAK, STRONG]].T - difficulty[:, None])
        return np.asarray(solves[:, 1] - solves[:, 0], dtype=np.float64)


class _Answers:
    """Mean cross entropy of the answers with its penalties, and the gradient, as functions of one flat vector."""

    def __init__(self, X: Array, scores: Array, dimensions: int, penalty: float) -> None:
        row, model = np.nonzero(np.isfinite(scores))
        number, ones = np.arange(len(row)), np.ones(len(row))
        answered = np.isfinite(scores).sum(axis=1)
        self._X, self._row, self._model, self._penalty = X, row, model, penalty
        self._y = scores[row, model]
        self._weight = 1.0 / (answered[row] * len(X))
        self._of_row = csr_array((ones, (row, number)), shape=(len(X), len(row)))
        self._of_model = csr_array((ones, (model, number)), shape=(scores.shape[1], len(row)))
        d = X.shape[1]
        self._shapes = ((d, dimensions), (dimensions,), (d,), (1,), (scores.shape[1], dimensions))

    def unpacked(self, flat: Array) -> list[Array]:
        """A, a0, beta, b0 and theta."""
        sizes = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(flat, sizes), self._shapes, strict=True)]

    def __call__(self, flat: Array) -> tuple[float, Array]:
        A, a0, beta, b0, theta = self.unpacked(flat)
        raw = self._X @ A + a0
        discrimination = np.logaddexp(0.0, raw)[self._row]
        ability = theta[self._model]
        odds = (discrimination * ability).sum(axis=1) - (self._X @ beta + b0)[self._row]
        slope = self._weight * (expit(odds) - self._y)
        d_raw = (self._of_row @ (slope[:, None] * ability)) * expit(raw)
        d_difficulty = -(self._of_row @ slope)
        prior = 1.0 / len(self._X)
        gradient = [
            self._X.T @ d_raw + self._penalty * A,
            d_raw.sum(axis=0),
            self._X.T @ d_difficulty + self._penalty * beta,
            d_difficulty.sum(keepdims=True),
            self._of_model @ (slope[:, None] * discrimination) + prior * theta,
        ]
        loss = float(self._weight @ (np.logaddexp(0.0, odds) - self._y * odds))
        loss += (self._penalty * float((A * A).sum() + (beta * beta).sum()) + prior * float((theta * theta).sum())) / 2
        return loss, np.concatenate([part.ravel() for part in gradient])


def _thinned(scores: Array, most: int, rng: np.random.Generator) -> Array:
    """The answer table with at most ``most`` answers a row beside the pair's, the others NaN."""
    order = np.where(np.isfinite(scores), rng.random(scores.shape), np.inf)
    order[:, [WEAK, STRONG]] = -1.0
    rank = order.argsort(axis=1).argsort(axis=1)
    return np.where(rank < most + 2, scores, np.nan)
