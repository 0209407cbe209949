"""The learned baselines and the settings that each is tuned over."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.baselines import LEARNED
from training.learned_baselines.items import ItemResponse
from training.learned_baselines.matrix import MatrixFactorisation
from training.learned_baselines.pair import PairClassifier, PairRegressor

_STRENGTHS: Final = (0.0003, 0.003, 0.03, 0.3)


Candidates = list[tuple[str, BaseEstimator]]
"""Estimators to choose from, each with what tells it from the others."""


def _nearest(n: int, seed: int) -> Candidates:
    # By distance, so that few neighbours of 0 and 1 do not tie.
    numbers = sorted({min(k, max(1, n // 3)) for k in (5, 15, 50, 150)})
    return [(f"k={k}", _regressor(KNeighborsRegressor(k, weights="distance", metric="cosine"))) for k in numbers]


def _svm(n: int, seed: int) -> Candidates:
    return [(f"C={C:g}", _classifier(LinearSVC(C=C, dual=False))) for C in _STRENGTHS]


def _logistic(n: int, seed: int) -> Candidates:
    return [(f"C={C:g}", _classifier(LogisticRegression(C=C, max_iter=500))) for C in _STRENGTHS]


def _network(n: int, seed: int) -> Candidates:
    def build(alpha: float) -> BaseEstimator:
        return _regressor(
            MLPRegressor(
                hidden_layer_sizes=(64,), alpha=alpha, early_stopping=True, validation_fraction=0.2, max_iter=100, random_state=seed
            )
        )

    return [(f"alpha={alpha:g}", build(alpha)) for alpha in (10.0, 30.0)]


def _matrix(n: int, seed: int) -> Candidates:
    return [(f"penalty={penalty:g}", MatrixFactorisation(penalty=penalty, random_state=seed)) for penalty in (0.01, 0.03)]


def _items(n: int, seed: int) -> Candidates:
    return [(f"dimensions={dimensions}", ItemResponse(dimensions, random_state=seed)) for dimensions in (1, 4)]


def _forest(n: int, seed: int) -> Candidates:
    def build(leaf: int) -> BaseEstimator:
        return PairRegressor(RandomForestRegressor(100, min_samples_leaf=leaf, max_features="sqrt", random_state=seed))

    return [(f"leaf={leaf}", build(leaf)) for leaf in (5, 20)]


def _boosted(n: int, seed: int) -> Candidates:
    def build(trees: int) -> BaseEstimator:
        return PairClassifier(
            LGBMClassifier(
                n_estimators=trees,
                learning_rate=0.05,
                num_leaves=15,
                colsample_bytree=0.4,
                max_bin=63,
                random_state=seed,
                n_jobs=1,
                verbosity=-1,
            )
        )

    return [(f"trees={trees}", build(trees)) for trees in (60, 180)]


METHODS: Final[Mapping[str, Callable[[int, int], Candidates]]] = {
    "knn": _nearest,
    "svm": _svm,
    "logistic": _logistic,
    "mlp": _network,
    "mf": _matrix,
    "irt": _items,
    "forest": _forest,
    "boosted": _boosted,
}
"""Candidates of each of :data:`training.baselines.LEARNED`, for n training rows and a seed."""
assert set(METHODS) == set(LEARNED)


def method_names(asked: str) -> tuple[str, ...]:
    """``all`` or names joined by commas, as a command takes them.

    Raises
    ------
    InvalidInput
        Naming the first that is unknown and those there are.
    """
    names = tuple(dict.fromkeys(name.strip() for name in asked.split(",") if name.strip()))
    if names == ("all",):
        return tuple(METHODS)
    for name in names:
        if name not in METHODS:
            raise InvalidInput(f"--baselines: {unknown_name('baseline', name, ['all', *METHODS])}")
    if not names:
        raise InvalidInput(f"--baselines names none: all, or any of {', '.join(METHODS)} joined by commas")
    return names


def _classifier(estimator: Any) -> BaseEstimator:
    return PairClassifier(make_pipeline(StandardScaler(), estimator))


def _regressor(estimator: Any) -> BaseEstimator:
    return PairRegressor(make_pipeline(StandardScaler(), estimator))
