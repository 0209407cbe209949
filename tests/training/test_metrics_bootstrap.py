from __future__ import annotations

import numpy as np
import pytest

from training.bootstrap import estimate, group_index, resampled_counts
from training.metrics import apgr_statistic, auc_statistic, ece_statistic, mean_statistic, ratio_statistic


def test_resamples_draw_as_many_groups_as_there_are() -> None:
    counts = resampled_counts(7, 50, np.random.default_rng(0))
    assert counts.shape == (50, 7)
    assert (counts.sum(axis=1) == 7).all()


def test_weighted_statistics_equal_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    n = 60
    weak, strong, need = rng.random(n) * 0.5, rng.random(n), rng.integers(0, 9, n).astype(float)
    group = group_index(rng.integers(0, 12, n))
    counts = resampled_counts(12, 5, rng)
    for row in counts:
        rows = np.repeat(np.arange(n), row[group].astype(int))
        own = np.arange(rows.size)
        one = np.ones((1, rows.size))
        expected = apgr_statistic(weak[rows], strong[rows], need[rows], own).of(one)[0]
        assert apgr_statistic(weak, strong, need, group).of(row[None])[0] == pytest.approx(expected)
        label = strong > weak
        expected = auc_statistic(label[rows], need[rows], own).of(one)[0]
        assert auc_statistic(label, need, group).of(row[None])[0] == pytest.approx(expected)


def _coverage(cluster: bool) -> float:
    """Share of 95 % intervals of a mean that hold the truth when rows of a group of ten are alike."""
    rng = np.random.default_rng(2)
    hits = 0
    for trial in range(200):
        values = np.clip(np.repeat(rng.random(60), 10) + rng.normal(0, 0.05, 600), -1, 2)
        group = np.repeat(np.arange(60), 10) if cluster else np.arange(600)
        found = estimate({"mean": mean_statistic(values, group)}, group, n_bootstrap=300, seed=trial)["mean"]
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= 0.5 <= found.high
    return hits / 200


def test_intervals_by_group_cover_and_intervals_by_row_do_not() -> None:
    assert 0.90 <= _coverage(cluster=True) <= 0.99
    assert _coverage(cluster=False) < 0.6


def test_interval_of_apgr_covers() -> None:
    rng = np.random.default_rng(3)
    size = 200_000
    need = rng.random(size)
    weak = (rng.random(size) < 0.5).astype(float)
    strong = (rng.random(size) < 0.5 + 0.4 * need).astype(float)
    truth = apgr_statistic(weak, strong, need, np.arange(size)).of(np.ones((1, size)))[0]
    hits = 0
    for trial in range(100):
        rows = rng.integers(0, size, 800)
        group = np.arange(800)
        statistic = apgr_statistic(weak[rows], strong[rows], need[rows], group)
        found = estimate({"apgr": statistic}, group, n_bootstrap=200, seed=trial)["apgr"]
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert 88 <= hits <= 100


def test_the_same_seed_gives_the_same_interval() -> None:
    values, group = np.random.default_rng(4).random(100), np.arange(100)
    first, again, other = (estimate({"m": mean_statistic(values, group)}, group, seed=s)["m"] for s in (1, 1, 2))
    assert first == again
    assert first != other


def test_too_few_rows_is_a_flag_and_not_a_number() -> None:
    group = np.arange(29)
    found = estimate({"mean": mean_statistic(np.zeros(29), group)}, group)["mean"]
    assert (found.value, found.low, found.high, found.n) == (None, None, None, 29)
    assert found.note == "too few rows: 29, at least 30 are needed"


def test_what_is_undefined_stays_so_beside_what_is_not() -> None:
    group = np.arange(40)
    ones = np.ones(40)
    found = estimate({"auc": auc_statistic(ones, ones, group), "mean": mean_statistic(ones, group)}, group)
    assert found["auc"].value is None
    assert found["auc"].note == "undefined: the strong model adds value on every prompt"
    assert found["mean"].value == 1


def test_a_gap_within_noise_has_no_interval() -> None:
    rng = np.random.default_rng(5)
    weak, strong = (rng.random(100) < 0.5).astype(float), (rng.random(100) < 0.5).astype(float)
    strong[: max(0, int(weak.sum() - strong.sum())) + 8] = 1
    if strong.sum() <= weak.sum():
        strong[:] = weak
        strong[np.flatnonzero(weak == 0)[0]] = 1
    group = np.arange(100)
    found = estimate({"apgr": apgr_statistic(weak, strong, rng.random(100), group)}, group)["apgr"]
    assert found.value is not None
    assert found.low is None
    assert "undefined in" in found.note


def test_one_group_and_few_groups_are_said() -> None:
    values = np.random.default_rng(6).random(60)
    one = np.zeros(60, dtype=np.intp)
    assert estimate({"m": mean_statistic(values, one)}, one)["m"].note == "no interval: all rows are of one group"
    few = np.repeat(np.arange(4), 15)
    assert estimate({"m": mean_statistic(values, few)}, few)["m"].note.startswith("only 4 groups")


def test_the_interval_of_a_calibration_error_is_reflected() -> None:
    rng = np.random.default_rng(7)
    probability = rng.random(300)
    outcome = (rng.random(300) < probability).astype(float)
    group = np.arange(300)
    found = estimate({"ece": ece_statistic(probability, outcome, group)}, group)["ece"]
    assert found.low is not None
    assert found.low < 0.02  # noise alone explains the error found
    assert found.value is not None
    assert found.value > found.low


def test_ratios_by_group_equal_ratios_by_row() -> None:
    rng = np.random.default_rng(8)
    top, bottom, group = rng.random(50), rng.random(50) + 1, group_index(rng.integers(0, 9, 50))
    assert ratio_statistic(top, bottom, group).of(np.ones((1, 9)))[0] == pytest.approx(top.sum() / bottom.sum())
