"""Agreement, correlation and regression as statistics of group counts, so that :mod:`training.bootstrap` gives each an interval.

Every one of them is a function of sums over rows. The sums are taken once for each split group; a resample only weighs them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from training.bootstrap import Array, Statistic

Groups = NDArray[np.intp]
_SINGULAR: Final = 1e-9


def group_sums(columns: Array, groups: Groups) -> Array:
    """Sums of the columns of ``columns``, shape (n, k), by group: shape (groups, k)."""
    total = np.zeros((int(groups.max()) + 1 if groups.size else 0, columns.shape[1]))
    np.add.at(total, groups, columns)
    return total


def correlation_statistic(x: ArrayLike, y: ArrayLike, groups: Groups) -> Statistic:
    """Pearson correlation of two columns; undefined where one of them does not vary."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    sums = group_sums(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], axis=1), groups)

    def of(counts: Array) -> Array:
        n, sx, sy, sxx, syy, sxy = (counts @ sums).T
        spread = np.maximum(n * sxx - sx * sx, 0) * np.maximum(n * syy - sy * sy, 0)
        return _divide(n * sxy - sx * sy, np.sqrt(spread))

    constant = x.size > 0 and (np.ptp(x) == 0 or np.ptp(y) == 0)
    return Statistic(of, len(sums), "one of the two does not vary" if constant else "")


def kappa_statistic(first: ArrayLike, second: ArrayLike, groups: Groups) -> Statistic:
    """Cohen's kappa (1960) of two raters' categories; undefined where both always say the same one thing."""
    categories, codes = np.unique(np.concatenate([np.asarray(first), np.asarray(second)]), return_inverse=True)
    k = len(categories)
    one, two = codes.reshape(2, -1)
    sums = group_sums(np.eye(k * k)[one * k + two], groups)

    def of(counts: Array) -> Array:
        table = (counts @ sums).reshape(-1, k, k)
        table = table / np.maximum(table.sum(axis=(1, 2), keepdims=True), _SINGULAR)
        observed = np.trace(table, axis1=1, axis2=2)
        chance = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1)
        return _divide(observed - chance, 1 - chance)

    return Statistic(of, len(sums), "both orders always say the same one thing" if k < 2 else "")


def slope_statistic(y: ArrayLike, x: ArrayLike, controls: Array, groups: Groups) -> Statistic:
    """Coefficient of ``x`` in the least-squares fit of ``y`` on ``x`` and the columns of ``controls``, shape (n, k).

    Resampling whole groups makes the interval robust to clusters and to unequal variances, as y is a share of wins.
    """
    y, x = np.asarray(y, float), np.asarray(x, float)
    design = np.column_stack([x, controls])
    p = design.shape[1]
    products = (design[:, :, None] * design[:, None, :]).reshape(len(y), p * p)
    sums = group_sums(np.hstack([products, design * y[:, None]]), groups)

    def of(counts: Array) -> Array:
        weighed = counts @ sums
        return _first_coefficient(weighed[:, : p * p].reshape(-1, p, p), weighed[:, p * p :])

    return Statistic(of, len(sums), "the lengths do not vary" if x.size and np.ptp(x) == 0 else "")


def _first_coefficient(gram: Array, moments: Array) -> Array:
    """Solve the normal equations of every resample; NaN where the columns are linearly dependent."""
    diagonal = np.diagonal(gram, axis1=1, axis2=2)
    # A control that no row of the resample has (a pair of models that was not drawn) takes no part.
    absent = diagonal <= _SINGULAR
    scale = np.sqrt(np.where(absent, 1.0, diagonal))
    scaled = gram / (scale[:, :, None] * scale[:, None, :]) + np.eye(gram.shape[1]) * absent[:, :, None]
    usable = (np.linalg.eigvalsh(scaled)[:, 0] > _SINGULAR) & ~absent[:, 0]
    answer = np.full(len(gram), np.nan)
    if usable.any():
        solved = np.linalg.solve(scaled[usable], (moments / scale)[usable][:, :, None])
        answer[usable] = solved[:, 0, 0] / scale[usable, 0]
    return answer


def alpha_statistic(ratings: Array, groups: Groups) -> Statistic:
    """Krippendorff's alpha for interval data of ratings, shape (units, raters), NaN where a rater is silent.

    ``alpha = 1 - D_o / D_e`` (Krippendorff, Content analysis, 2004, chapter 11). Units with one rating say nothing and are left out. With
    squared differences both disagreements are sums: the pairs of a unit of m ratings v add ``2 (m sum(v^2) - sum(v)^2) / (m - 1)``.
    """
    present = np.isfinite(ratings)
    m = present.sum(axis=1)
    paired = m > 1
    values = np.where(present & paired[:, None], ratings, 0.0)
    m = np.where(paired, m, 0)
    total, squares = values.sum(axis=1), (values * values).sum(axis=1)
    within = np.where(paired, 2 * (m * squares - total * total) / np.maximum(m - 1, 1), 0.0)
    sums = group_sums(np.stack([m.astype(float), total, squares, within], axis=1), groups)

    def of(counts: Array) -> Array:
        n, total, squares, within = (counts @ sums).T
        expected = _divide(2 * (n * squares - total * total), n * (n - 1))
        return 1 - _divide(_divide(within, n), expected)

    constant = not paired.any() or np.ptp(ratings[present & paired[:, None]]) == 0
    return Statistic(of, len(sums), "the ratings do not vary" if constant else "")


def _divide(top: Array, bottom: Array) -> Array:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(np.abs(bottom) > 1e-12, top / bottom, np.nan)
