"""Tune a baseline on training rows alone, calibrate it there, and apply it to rows it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, cross_val_predict

from router.errors import InvalidInput
from training.baselines import Policy
from training.bootstrap import Array
from training.learned_baselines.answers import gains
from training.learned_baselines.methods import METHODS

INNER_FOLDS: Final = 3


@dataclass(frozen=True)
class FittedBaseline:
    """A tuned baseline. ``settings`` says which candidate was taken; ``slope`` and ``intercept`` calibrate its need by Platt's method."""

    name: str
    settings: str
    estimator: BaseEstimator
    slope: float
    intercept: float

    def probability(self, X: Array) -> Array:
        """Probability that the strong model adds value, shape (n,); rises with the baseline's need."""
        return np.asarray(1 / (1 + np.exp(-(self.intercept + self.slope * self.estimator.predict(X)))), dtype=np.float64)


def fit_baseline(name: str, X: Array, scores: Array, groups: NDArray[Any], seed: int = 0) -> FittedBaseline:
    """Choose among a method's candidates by inner folds of groups, calibrate on what they held out, and fit once more on everything.

    Calibration puts the needs of several fits on one scale, as our own heads' are, so that pooled rankings compare like with like.

    Parameters
    ----------
    name
        One of :data:`training.learned_baselines.METHODS`.
    X
        Inputs, shape (n, d).
    scores
        Answer table of the same rows, see :func:`answer_table`.
    groups
        Split keys, shape (n,).

    Raises
    ------
    InvalidInput
        If all rows are of one group.
    """
    delta = gains(scores)
    folds = min(INNER_FOLDS, len(np.unique(groups)))
    if folds < 2:
        raise InvalidInput("all rows belong to one group: at least two groups are needed to tune a baseline")
    inner = list(GroupKFold(folds, shuffle=True, random_state=seed).split(X, groups=groups))
    smallest = min(len(train) for train, _ in inner)
    best: tuple[float, str, BaseEstimator, Array] | None = None
    for settings, candidate in METHODS[name](smallest, seed):
        held_out = np.asarray(cross_val_predict(candidate, X, scores, cv=inner), dtype=np.float64)
        value = gain_over_random(held_out, delta)
        if best is None or value > best[0]:
            best = (value, settings, candidate, held_out)
    assert best is not None
    slope, intercept = _platt(best[3], delta > 0)
    return FittedBaseline(name, best[1], clone(best[2]).fit(X, scores), slope, intercept)


def gain_over_random(need: Array, delta: Array) -> float:
    """Mean score gained over random routing, averaged over all shares of strong calls: (APGR - 1/2) times the gap between the models.

    Defined where APGR is not, because nothing is divided by the gap; on the same rows it orders needs as APGR does.
    """
    position = (rankdata(-need) - 0.5) / len(need)
    return float((delta * (0.5 - position)).mean())


def held_out_policies(
    names: Sequence[str],
    inputs: Array,
    scores: Array,
    groups: NDArray[Any],
    fold: NDArray[np.integer],
    *,
    seed: int = 0,
    say: Callable[[str], None] = print,
) -> tuple[list[Policy], dict[str, list[str]]]:
    """One policy a baseline, its needs for every row from a fit on the rows of the other folds; and the settings of every fold."""
    policies: list[Policy] = []
    settings: dict[str, list[str]] = {}
    for name in names:
        need = np.empty(len(inputs))
        settings[name] = []
        for number in np.unique(fold):
            learn, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            fitted = fit_baseline(name, inputs[learn], scores[learn], groups[learn], seed)
            need[held] = fitted.probability(inputs[held])
            settings[name].append(fitted.settings)
        say(f"baseline {name}: {'; '.join(settings[name])}")
        policies.append(Policy(name, need=need, probability=need))
    return policies, settings


def _platt(need: Array, label: NDArray[np.bool_]) -> tuple[float, float]:
    """Slope and intercept of the log-odds of ``label`` over ``need``; no slope where higher needs held out no more value."""
    spread = float(need.std())
    share = float(np.clip(label.mean(), 1e-3, 1 - 1e-3))
    constant = 0.0, float(np.log(share / (1 - share)))
    if spread < 1e-12 or label.all() or not label.any():
        return constant
    model = LogisticRegression(C=1e6).fit((need / spread)[:, None], label)
    slope = float(model.coef_[0, 0]) / spread
    return (slope, float(model.intercept_[0])) if slope > 0 else constant
