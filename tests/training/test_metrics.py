from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import InvalidInput
from training import metrics
from training.metrics import UndefinedMetric


def _pair(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return (rng.random(n) < 0.4).astype(float), (rng.random(n) < 0.7).astype(float)


def _trapezoid(weak: np.ndarray, strong: np.ndarray, need: np.ndarray) -> float:
    order = np.argsort(-need, kind="stable")
    curve = np.append(0.0, np.cumsum((strong - weak)[order])) / (strong - weak).sum()
    return float(np.mean((curve[1:] + curve[:-1]) / 2))


def test_apgr_is_the_area_under_the_curve_of_every_threshold() -> None:
    weak, strong = _pair()
    need = np.random.default_rng(1).random(weak.size)
    assert metrics.apgr(weak, strong, need) == pytest.approx(_trapezoid(weak, strong, need))
    share, pgr = metrics.pgr_curve(weak, strong, need)
    assert metrics.apgr(weak, strong, need) == pytest.approx(np.trapezoid(pgr, share))
    assert (share[0], pgr[0], share[-1], pgr[-1]) == pytest.approx((0, 0, 1, 1))


def test_a_constant_need_is_random_routing_exactly() -> None:
    weak, strong = _pair()
    assert metrics.apgr(weak, strong, np.full(weak.size, 0.3)) == pytest.approx(0.5, abs=1e-12)
    assert metrics.auc(strong > weak, np.zeros(weak.size)) == pytest.approx(0.5, abs=1e-12)


def test_ties_cost_the_mean_over_their_orders() -> None:
    weak, strong = _pair(60)
    rng = np.random.default_rng(2)
    tied = rng.integers(0, 4, weak.size).astype(float)
    broken = [metrics.apgr(weak, strong, tied + 0.5 * rng.random(weak.size)) for _ in range(4000)]
    assert metrics.apgr(weak, strong, tied) == pytest.approx(np.mean(broken), abs=0.01)


def test_random_need_averages_to_one_half() -> None:
    weak, strong = _pair(300)
    rng = np.random.default_rng(3)
    assert np.mean([metrics.apgr(weak, strong, rng.random(300)) for _ in range(500)]) == pytest.approx(0.5, abs=0.01)


def test_no_ranking_beats_the_oracle() -> None:
    weak, strong = _pair()
    best = metrics.apgr(weak, strong, strong - weak)
    rng = np.random.default_rng(4)
    assert all(metrics.apgr(weak, strong, rng.random(weak.size)) < best for _ in range(50))
    assert best > 0.9


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.integers(0, 5)), min_size=2, max_size=30))
def test_apgr_follows_the_order_of_need_only(rows: list[tuple[float, float, int]]) -> None:
    weak, strong, need = (np.array(column, dtype=float) for column in zip(*rows, strict=True))
    if strong.mean() - weak.mean() < 1e-3:
        return
    assert metrics.apgr(weak, strong, need) == pytest.approx(metrics.apgr(weak, strong, np.exp(need) - 7), abs=1e-9)
    assert metrics.apgr(weak, strong, need) + metrics.apgr(weak, strong, -need) == pytest.approx(1.0, abs=1e-9)


def test_auc_counts_pairs() -> None:
    label, need = np.array([1, 0, 1, 0, 0]), np.array([3.0, 1.0, 2.0, 2.0, 5.0])
    pairs = [(p > q) + 0.5 * (p == q) for p in need[label == 1] for q in need[label == 0]]
    assert metrics.auc(label, need) == pytest.approx(np.mean(pairs))


@pytest.mark.parametrize(
    ("weak", "strong", "reason"),
    [([1, 0], [1, 0], "score the same"), ([1, 1], [0, 1], "not better on average"), ([0, 1], [1, 0], "not better on average")],
)
def test_no_gap_is_said_and_not_computed(weak: list[float], strong: list[float], reason: str) -> None:
    with pytest.raises(UndefinedMetric, match=reason):
        metrics.apgr(weak, strong, [0.1, 0.2])


@pytest.mark.parametrize(("label", "reason"), [([0, 0], "on no prompt"), ([1, 1], "on every prompt")])
def test_one_class_has_no_auc(label: list[int], reason: str) -> None:
    with pytest.raises(UndefinedMetric, match=reason):
        metrics.auc(label, [0.1, 0.2])


def test_choice_metrics_of_known_cases() -> None:
    weak, strong, chosen = [1, 0, 0, 1], [1, 1, 0, 0], [1, 1, 1, 0]
    assert metrics.quality_retention(weak, strong, chosen) == pytest.approx(1.0)
    assert metrics.quality_retention(weak, strong, [0, 0, 0, 0]) == pytest.approx(2 / 3)
    assert metrics.misroute(weak, strong, chosen) == pytest.approx(1 / 4)  # the first; on the third no model succeeds
    assert metrics.cost_savings([1, 1, 1, 1], [4, 4, 4, 4], chosen) == pytest.approx(3 / 16)


def test_misroute_of_graded_scores_allows_a_margin() -> None:
    weak, strong = [0.70, 0.70, 0.0], [0.72, 0.90, 0.0]
    assert metrics.misroute(weak, strong, [1, 1, 1]) == 0
    assert metrics.misroute(weak, strong, [1, 1, 1], margin=0.05) == pytest.approx(1 / 3)


def test_unknown_costs_are_left_out_and_no_costs_are_said() -> None:
    assert metrics.cost_savings([1, np.nan], [4, np.nan], [0, 1]) == pytest.approx(3 / 4)
    with pytest.raises(UndefinedMetric, match="no prices"):
        metrics.cost_savings([np.nan], [np.nan], [0])


@given(st.lists(st.integers(0, 6), min_size=1, max_size=40), st.floats(0, 1))
def test_a_share_is_met_in_expectation(need: list[int], share: float) -> None:
    chosen = metrics.choose_share(np.array(need, dtype=float), share)
    assert chosen.mean() == pytest.approx(share, abs=1e-9)
    assert ((chosen >= 0) & (chosen <= 1)).all()
    order = np.argsort(-np.array(need))
    assert (np.diff(chosen[order]) <= 1e-12).all()


def test_calibration_error() -> None:
    rng = np.random.default_rng(5)
    probability = rng.random(20_000)
    outcome = (rng.random(20_000) < probability).astype(float)
    assert metrics.expected_calibration_error(probability, outcome) < 0.02
    assert metrics.expected_calibration_error(np.full(20_000, 0.9), outcome) == pytest.approx(0.9 - outcome.mean())


def test_bins_hold_equal_mass_and_never_split_ties() -> None:
    rng = np.random.default_rng(6)
    table = metrics.reliability(rng.random(1000), np.zeros(1000), bins=10)
    assert [row.n for row in table] == pytest.approx([100] * 10, abs=2)
    few = metrics.reliability(np.repeat([0.1, 0.9], [95, 5]), np.zeros(100), bins=10)
    assert [(row.low, row.high, row.n) for row in few] == [(0.1, 0.1, 95), (0.9, 0.9, 5)]


@pytest.mark.parametrize("score", [1.2, -0.1, np.nan])
def test_scores_outside_the_unit_interval_are_refused(score: float) -> None:
    with pytest.raises(InvalidInput, match=r"score is|NaN"):
        metrics.apgr([0.0, score], [1.0, 1.0], [0.0, 1.0])
