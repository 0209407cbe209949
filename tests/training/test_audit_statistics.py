from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from training.audit.statistics import alpha_statistic, correlation_statistic, kappa_statistic, slope_statistic
from training.bootstrap import Statistic


def _value(statistic: Statistic) -> float:
    return float(statistic.of(np.ones((1, statistic.n_groups)))[0])


def test_kappa_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    first = rng.integers(-1, 2, 200)
    second = np.where(rng.random(200) < 0.6, first, rng.integers(-1, 2, 200))
    assert _value(kappa_statistic(first, second, np.arange(200) // 2)) == pytest.approx(cohen_kappa_score(first, second))


def test_alpha_is_that_of_the_published_example() -> None:
    # Krippendorff 2011, "Computing Krippendorff's alpha-reliability", example D: interval alpha 0.849.
    gap = np.nan
    ratings = np.array(
        [
            [1, 2, 3, 3, 2, 1, 4, 1, 2, gap, gap, gap],
            [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, gap, 3],
            [gap, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, gap],
            [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, gap],
        ]
    ).T
    assert _value(alpha_statistic(ratings, np.arange(12))) == pytest.approx(0.849, abs=5e-4)


def test_slope_and_correlation_are_those_of_numpy() -> None:
    rng = np.random.default_rng(1)
    x, control = rng.normal(size=(2, 80))
    y = 0.3 * x + 0.5 * control + rng.normal(size=80)
    pair = np.eye(2)[rng.integers(0, 2, 80)]
    design = np.column_stack([x, control, pair])
    groups = np.arange(80) // 4
    wanted = np.linalg.lstsq(design, y, rcond=None)[0][0]
    assert _value(slope_statistic(y, x, np.column_stack([control, pair]), groups)) == pytest.approx(wanted)
    assert _value(correlation_statistic(x, y, groups)) == pytest.approx(np.corrcoef(x, y)[0, 1])


def test_a_resample_counts_rows_as_often_as_their_group() -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 12))
    groups = np.repeat([0, 1, 2], 4)
    rows = np.concatenate([np.flatnonzero(groups == 0)] * 2 + [np.flatnonzero(groups == 2)])
    drawn = correlation_statistic(x, y, groups).of(np.array([[2.0, 0.0, 1.0]]))[0]
    assert drawn == pytest.approx(np.corrcoef(x[rows], y[rows])[0, 1])
    ratings = rng.random((12, 3))
    assert alpha_statistic(ratings, groups).of(np.array([[2.0, 0.0, 1.0]]))[0] == pytest.approx(
        _value(alpha_statistic(ratings[rows], np.arange(12)))
    )


def test_what_does_not_vary_has_no_figure() -> None:
    groups, same, other = np.arange(6), np.ones(6), np.arange(6.0)
    assert correlation_statistic(same, other, groups).undefined
    assert slope_statistic(other, same, np.ones((6, 1)), groups).undefined
    assert kappa_statistic(same, same, groups).undefined
    assert alpha_statistic(np.ones((6, 2)), groups).undefined
    assert alpha_statistic(np.full((6, 2), np.nan), groups).undefined


def test_a_resample_without_a_pair_of_models_still_has_a_slope() -> None:
    x = np.arange(8.0)
    pair = np.eye(2)[[0] * 4 + [1] * 4]
    statistic = slope_statistic(2 * x, x, pair, np.repeat([0, 1], 4))
    assert statistic.of(np.array([[1.0, 0.0], [0.0, 2.0]])) == pytest.approx([2.0, 2.0])
    collinear = slope_statistic(x, x, np.column_stack([x, np.ones(8)]), np.arange(8))
    assert np.isnan(collinear.of(np.ones((1, 8)))[0])
