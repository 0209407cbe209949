"""A scikit-learn estimator as a router between two models.

The target of every baseline is an answer table, shape (n, models), whose first two columns are the weak and the strong model. What
``predict`` gives is a need: larger where the strong model is wanted more.
"""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning

from training.bootstrap import Array
from training.learned_baselines.answers import gains


class PairClassifier(BaseEstimator):  # type: ignore[misc]
    """Need by a classifier of "the strong model is better"; 0 everywhere where it was better on all rows or on none."""

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Array, scores: Array) -> Self:
        """Learn from inputs of shape (n, d) and an answer table."""
        label = gains(scores) > 0
        self.estimator_ = None if label.all() or not label.any() else _fitted(clone(self.estimator), X, label)
        return self

    def predict(self, X: Array) -> Array:
        """Log-odds, margin or probability, shape (n,), whichever the classifier has."""
        if self.estimator_ is None:
            return np.zeros(len(X))
        if hasattr(self.estimator_, "decision_function"):
            return np.asarray(self.estimator_.decision_function(X), dtype=np.float64)
        return np.asarray(self.estimator_.predict_proba(X)[:, 1], dtype=np.float64)


class PairRegressor(BaseEstimator):  # type: ignore[misc]
    """Need by a regression of what the strong model gains over the weak one."""

    def __init__(self, estimator: Any = None) -> None:
        self.estimator = estimator

    def fit(self, X: Array, scores: Array) -> Self:
        """Learn from inputs of shape (n, d) and an answer table."""
        self.estimator_ = _fitted(clone(self.estimator), X, gains(scores))
        return self

    def predict(self, X: Array) -> Array:
        """Expected gain, shape (n,)."""
        return np.asarray(self.estimator_.predict(X), dtype=np.float64)


def _fitted(estimator: Any, X: Array, y: Array | NDArray[np.bool_]) -> Any:
    with warnings.catch_warnings():
        # A network that stopped at its last epoch is a setting that tuning judges like any other.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return estimator.fit(X, y)
