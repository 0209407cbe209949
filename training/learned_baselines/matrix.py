"""RouteLLM's matrix factorisation (Ong et al., arXiv 2406.18665, section 4.1), on our embeddings."""

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


class MatrixFactorisation(BaseEstimator):  # type: ignore[misc]
    """``score(m, q) = w2 . (v_m * (W1' e(q) + b))``, and ``P(m beats m' on q) = sigmoid(score(m, q) - score(m', q))``.

    Fitted to battles by cross entropy, as published; ties are no battles. Training is by L-BFGS with an L2 penalty instead of minibatches
    with noise, so that nothing depends on a number of epochs.

    Parameters
    ----------
    rank
        Length of a model's vector v_m.
    penalty
        Of the squares of W1, v and w2, per battle.
    others
        Battles drawn on every prompt between any two models that answered it, beside the one of weak and strong.
    random_state
        Seed of the draw and of the start.
    """

    def __init__(self, rank: int = 32, penalty: float = 1e-2, others: int = 4, random_state: int = 0) -> None:
        self.rank = rank
        self.penalty = penalty
        self.others = others
        self.random_state = random_state

    def fit(self, X: Array, scores: Array) -> Self:
        """Learn from inputs of shape (n, d) and an answer table of shape (n, models)."""
        rng = np.random.default_rng(self.random_state)
        self.scaler_ = StandardScaler().fit(X)
        row, winner, loser = _battles(scores, self.others, rng)
        shapes = ((X.shape[1], self.rank), (self.rank,), (scores.shape[1], self.rank), (self.rank,))
        start = [
            rng.normal(0, 0.3 / np.sqrt(X.shape[1]), shapes[0]),
            np.zeros(shapes[1]),
            rng.normal(0, 0.3, shapes[2]),
            np.ones(self.rank),
        ]
        if row.size:
            objective = _Battles(self.scaler_.transform(X), row, winner, loser, scores.shape[1], shapes, self.penalty)
            found = minimize(
                objective, np.concatenate([part.ravel() for part in start]), jac=True, method="L-BFGS-B", options={"maxiter": 100}
            )
            start = objective.unpacked(found.x)
        self.projection_, self.offset_, self.models_, self.weights_ = start
        return self

    def predict(self, X: Array) -> Array:
        """Log-odds that the strong model beats the weak one, shape (n,)."""
        projected = (self.scaler_.transform(X) @ self.projection_ + self.offset_) * self.weights_
        return np.asarray(projected @ (self.models_[STRONG] - self.models_[WEAK]), dtype=np.float64)


class _Battles:
    """Mean cross entropy of the battles with its penalty, and the gradient, as functions of one flat vector."""

    def __init__(
        self, X: Array, row: Index, winner: Index, loser: Index, n_models: int, shapes: tuple[tuple[int, ...], ...], penalty: float
    ) -> None:
        n = len(row)
        ones, number = np.ones(n), np.arange(n)
        self._X, self._row, self._shapes, self._penalty = X, row, shapes, penalty
        self._of_row = csr_array((ones, (row, number)), shape=(len(X), n))
        self._sides = csr_array((np.concatenate([ones, -ones]), (np.tile(number, 2), np.concatenate([winner, loser]))), shape=(n, n_models))

    def unpacked(self, flat: Array) -> list[Array]:
        """W1, b, v and w2."""
        sizes = np.cumsum([int(np.prod(shape)) for shape in self._shapes])[:-1]
        return [part.reshape(shape) for part, shape in zip(np.split(flat, sizes), self._shapes, strict=True)]

    def __call__(self, flat: Array) -> tuple[float, Array]:
        W1, b, v, w2 = self.unpacked(flat)
        hidden = self._X @ W1 + b
        difference = self._sides @ v
        met = (hidden * w2)[self._row]
        odds = (difference * met).sum(axis=1)
        slope = -expit(-odds)[:, None] / len(odds)
        d_met = self._of_row @ (slope * difference)
        d_hidden = d_met * w2
        gradient = [
            self._X.T @ d_hidden + self._penalty * W1,
            d_hidden.sum(axis=0),
            self._sides.T @ (slope * met) + self._penalty * v,
            (d_met * hidden).sum(axis=0) + self._penalty * w2,
        ]
        squares = sum(float((part * part).sum()) for part in (W1, v, w2))
        loss = float(np.logaddexp(0.0, -odds).mean()) + self._penalty * squares / 2
        return loss, np.concatenate([part.ravel() for part in gradient])


def _battles(scores: Array, others: int, rng: np.random.Generator) -> tuple[Index, Index, Index]:
    """Row, winner and loser of every battle: weak against strong, and ``others`` draws of two models a row."""
    n, n_models = scores.shape
    row = np.arange(n)
    first, second = np.full(n, WEAK), np.full(n, STRONG)
    if others and n_models > 2:
        row = np.concatenate([row, np.repeat(np.arange(n), others)])
        # The models that answered come first in a row's order, so a draw below their number is one of them.
        order = np.argsort(np.isnan(scores), axis=1, kind="stable")
        answered = np.isfinite(scores).sum(axis=1)[row[n:]]
        for side in (0, 1):
            drawn = order[row[n:], (rng.random(len(answered)) * answered).astype(int)]
            first, second = (np.append(first, drawn), second) if side == 0 else (first, np.append(second, drawn))
    difference = scores[row, first] - scores[row, second]
    fought = difference != 0
    row, first, second, ahead = row[fought], first[fought], second[fought], difference[fought] > 0
    return row, np.where(ahead, first, second), np.where(ahead, second, first)
