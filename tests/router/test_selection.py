"""HyDRA Eq. 3-5 and Alg. 2 as properties."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from router.catalog import Bands, ModelCatalog, ModelProfile, Prices
from router.errors import InvalidInput
from router.selection import RoutingPolicy, cheapest_capable, compensated_weights, open_models, shortfalls

# Few distinct values, so that ties are common.
UNIT = st.integers(0, 10).map(lambda n: n / 10)
COST = st.integers(0, 5).map(lambda n: n / 100)


@st.composite
def problems(draw: st.DrawFn, capabilities: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    n = draw(st.integers(1, 5))
    open_ = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(open_.any())
    requirements = draw(arrays(float, capabilities, elements=UNIT))
    capability = draw(arrays(float, (n, capabilities), elements=UNIT))
    weights = draw(arrays(float, capabilities, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0])))
    return requirements, capability, weights, draw(arrays(float, n, elements=COST)), open_, draw(UNIT)


def choose(requirements, capability, weights, cost, open_, tau) -> int:
    return int(cheapest_capable(shortfalls(requirements, capability, weights).sum(axis=1), cost, open_, tau)[0])


def reference(shortfall: list[float], cost: list[float], open_: list[bool], tau: float) -> int:
    candidates = [m for m in range(len(cost)) if open_[m]]
    eligible = [m for m in candidates if shortfall[m] <= tau]
    if eligible:
        return min(eligible, key=lambda m: (cost[m], shortfall[m], m))
    return min(candidates, key=lambda m: (shortfall[m], cost[m], m))


@given(problems())
def test_agrees_with_the_rule_in_plain_python(problem) -> None:
    requirements, capability, weights, cost, open_, tau = problem
    total = shortfalls(requirements, capability, weights).sum(axis=1)
    assert choose(*problem) == reference(total.tolist(), cost.tolist(), open_.tolist(), tau)


@given(problems(), st.lists(UNIT, min_size=2, max_size=6))
def test_many_cases_at_once_agree_with_one_at_a_time(problem, thresholds) -> None:
    requirements, capability, weights, cost, open_, _ = problem
    rows = np.stack([np.clip(requirements + t - 0.5, 0, 1) for t in thresholds])
    totals = np.stack([shortfalls(row, capability, weights).sum(axis=1) for row in rows])
    costs = np.stack([np.roll(cost, i) for i in range(len(thresholds))])
    together = cheapest_capable(totals, costs, open_, np.array(thresholds))
    alone = [int(cheapest_capable(t, c, open_, tau)[0]) for t, c, tau in zip(totals, costs, thresholds, strict=True)]
    assert together.tolist() == alone
    # One row of shortfalls for many thresholds, as the flip margin asks.
    swept = cheapest_capable(totals[0], cost, open_, np.array(thresholds))
    assert swept.tolist() == [int(cheapest_capable(totals[0], cost, open_, tau)[0]) for tau in thresholds]


@given(problems(), UNIT)
def test_raising_the_threshold_never_selects_a_dearer_model(problem, more: float) -> None:
    *rest, cost, open_, tau = problem
    before, after = choose(*rest, cost, open_, tau), choose(*rest, cost, open_, tau + more)
    assert cost[after] <= cost[before]


@given(problems(), st.integers(0, 2), UNIT)
def test_raising_a_requirement_never_selects_a_cheaper_model_while_any_qualifies(problem, k: int, value: float) -> None:
    requirements, capability, weights, cost, open_, tau = problem
    raised = requirements.copy()
    raised[k] = max(value, requirements[k])
    total = shortfalls(raised, capability, weights).sum(axis=1)
    assume((open_ & (total <= tau)).any())
    before = choose(requirements, capability, weights, cost, open_, tau)
    after = choose(raised, capability, weights, cost, open_, tau)
    assert cost[after] >= cost[before]


@given(problems())
def test_where_none_is_good_enough_the_least_shortfall_is_taken(problem) -> None:
    requirements, capability, weights, _, open_, tau = problem
    total = shortfalls(requirements, capability, weights).sum(axis=1)
    assume(not (open_ & (total <= tau)).any())
    assert total[choose(*problem)] == total[open_].min()


@given(problems())
def test_a_gated_model_is_never_chosen(problem) -> None:
    assert problem[4][choose(*problem)]


def test_nothing_to_choose_from_and_numbers_that_are_none_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no model is open"):
        cheapest_capable(np.zeros(2), np.zeros(2), np.array([False, False]), 0.1)
    with pytest.raises(InvalidInput, match="not a finite number"):
        cheapest_capable(np.zeros(2), np.array([np.inf, np.inf]), np.array([True, False]), 0.1)


@given(arrays(float, (4, 3), elements=UNIT), arrays(float, 3, elements=UNIT), arrays(float, 3, elements=UNIT))
def test_surplus_never_pays_for_a_deficit(capability, requirements, weights) -> None:
    table = shortfalls(requirements, capability, weights)
    assert (table >= 0).all()
    better = capability.copy()
    better[:, 0] = 1.0  # a surplus in one capability
    assert np.array_equal(shortfalls(requirements, better, weights)[:, 1:], table[:, 1:])
    assert (table[capability >= requirements] == 0).all()


@given(arrays(float, 4, elements=st.floats(0, 10)), arrays(float, 4, elements=st.floats(0.01, 1)))
def test_band_compensation_keeps_the_sum_and_favours_narrow_bands(weights, width) -> None:
    compensated = compensated_weights(weights, width)
    assert compensated.sum() == pytest.approx(weights.sum())
    assert (compensated >= 0).all()
    equal = compensated_weights(np.ones(4), width)
    assert equal.argmax() == width.argmin() or equal.max() == equal[width.argmin()]


def profiles(raw: np.ndarray) -> ModelCatalog:
    rows = enumerate(raw.tolist())
    return ModelCatalog(tuple(ModelProfile(f"m{i}", "", Prices(1, 1), dict(zip("abc", row, strict=True))) for i, row in rows))


@given(st.integers(1, 5).flatmap(lambda n: arrays(float, (n, 3), elements=UNIT)), arrays(float, (2, 3), elements=UNIT))
def test_profiles_span_the_band_of_the_pool(raw, ends) -> None:
    bands = Bands(ends.min(axis=0), ends.max(axis=0))
    capability = profiles(raw).capability("abc", bands)
    assert (capability >= bands.low - 1e-12).all()
    assert (capability <= bands.high + 1e-12).all()
    for k in range(3):
        if np.ptp(raw[:, k]) > 0:
            assert capability[raw[:, k].argmin(), k] == pytest.approx(bands.low[k])
            assert capability[raw[:, k].argmax(), k] == pytest.approx(bands.high[k])
            order = np.argsort(raw[:, k], kind="stable")
            assert (np.diff(capability[order, k]) >= -1e-12).all()
        else:
            assert capability[:, k] == pytest.approx(bands.high[k])


def test_health_is_ignored_only_when_nothing_else_is_open() -> None:
    sick, banned = ("health: 0.10 is below 0.50",), ("policy: on the deny list", "health: 0.10 is below 0.50")
    assert [a.tolist() if hasattr(a, "tolist") else a for a in open_models([(), sick, banned])] == [[True, False, False], False]
    assert [a.tolist() if hasattr(a, "tolist") else a for a in open_models([sick, banned])] == [[True, False], True]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("shortfall_threshold", -0.1),
        ("shortfall_threshold", float("nan")),
        ("shortfall_threshold", float("inf")),
        ("family_thresholds", {"Japonic": -0.1}),
        ("family_thresholds", {"Japonic": float("nan")}),
        ("health_floor", 1.5),
        ("health_floor", float("nan")),
        ("expected_output_tokens", 0),
        ("weights", {"reasoning": -1.0}),
        ("weights", {"reasoning": float("nan")}),
        ("weights", {"reasoning": 1e300}),
    ],
)
def test_a_policy_out_of_range_is_refused_by_name(field: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=r"was expected$"):
        RoutingPolicy(**{field: value})


def test_a_threshold_of_an_unknown_family_is_refused() -> None:
    with pytest.raises(InvalidInput, match="unknown family 'Japanese': there are English, Germanic"):
        RoutingPolicy(family_thresholds={"Japanese": 0.1})
