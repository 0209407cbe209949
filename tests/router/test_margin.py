"""A flip margin is true: just past it the named model is chosen, and nothing nearer changes the choice."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from router.confidence import ResidualSample, share_of
from router.decision import Flip
from router.margin import SelectionProblem, flip_margin, margin_and_choices

MODELS = ("a", "b", "c", "d", "e")
CAPABILITIES = ("x", "y", "z")
UNIT = st.integers(0, 10).map(lambda n: n / 10)
EPSILON = 1e-7


@st.composite
def problems(draw: st.DrawFn) -> SelectionProblem:
    n = draw(st.integers(1, 5))
    value = UNIT if draw(st.booleans()) else st.floats(0, 1, width=16)
    open_ = np.array(draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    assume(open_.any())
    return SelectionProblem(
        requirements=draw(arrays(float, 3, elements=value)),
        capability=draw(arrays(float, (n, 3), elements=value)),
        weights=draw(arrays(float, 3, elements=st.sampled_from([0.0, 0.5, 1.0, 2.0]))),
        cost=draw(arrays(float, n, elements=st.sampled_from([0.0, 0.001, 0.002, 0.01]))),
        open_=open_,
        threshold=draw(value),
    )


def choice(problem: SelectionProblem, **changes: object) -> str:
    fields = {name: getattr(problem, name) for name in SelectionProblem.__dataclass_fields__}
    return MODELS[SelectionProblem(**(fields | changes)).choice]


def check(flip: Flip | None, current: float, choose, low: float, high: float) -> None:
    """``choose(value)`` is the brute-force answer; values from ``low`` to ``high`` are possible."""
    now = choose(current)
    grid = np.linspace(low, high, 161)
    if flip is None:
        assert {choose(value) for value in grid} == {now}
        return
    assert flip.change == flip.value - current
    assert flip.model != now
    assert choose(flip.value) == flip.model
    nearer = grid[np.abs(grid - current) < abs(flip.change) - EPSILON]
    assert all(choose(value) == now for value in nearer)


@given(problems())
def test_threshold_flips(problem: SelectionProblem) -> None:
    margin = flip_margin(problem, MODELS, CAPABILITIES)
    tau = problem.threshold
    check(margin.shortfall_threshold_up, tau, lambda value: choice(problem, threshold=value), tau, tau + 8)
    check(margin.shortfall_threshold_down, tau, lambda value: choice(problem, threshold=value), 0.0, tau)


@given(problems())
def test_requirement_flips(problem: SelectionProblem) -> None:
    margin = flip_margin(problem, MODELS, CAPABILITIES)
    for k, name in enumerate(CAPABILITIES):

        def choose(value: float, k: int = k) -> str:
            requirements = problem.requirements.copy()
            requirements[k] = value
            return choice(problem, requirements=requirements)

        check(margin.requirements[name], float(problem.requirements[k]), choose, 0.0, 1.0)


@given(problems())
def test_price_flips(problem: SelectionProblem) -> None:
    def choose(factor: float) -> str:
        cost = problem.cost.copy()
        cost[problem.choice] *= factor
        return choice(problem, cost=cost)

    check(flip_margin(problem, MODELS, CAPABILITIES).price_factor, 1.0, choose, 0.0, 30.0)


@given(problems(), st.integers(0, 2**32 - 1))
def test_confidence_is_a_share_and_certain_without_residuals(problem: SelectionProblem, seed: int) -> None:
    noise = np.random.default_rng(seed).normal(size=(3, 40, 3))
    edges = np.array([0.3, 0.7])
    assert 0.0 <= ResidualSample(edges, noise).confidence(problem) <= 1.0
    assert ResidualSample(edges, noise * 0).confidence(problem) == 1.0


@given(problems(), st.integers(0, 2**32 - 1))
def test_margin_and_confidence_are_the_same_in_one_pass(problem: SelectionProblem, seed: int) -> None:
    sample = ResidualSample(np.array([0.3, 0.7]), np.random.default_rng(seed).normal(size=(3, 40, 3)))
    margin, choices = margin_and_choices(problem, MODELS, CAPABILITIES, sample.plausible(problem))
    assert margin == flip_margin(problem, MODELS, CAPABILITIES)
    assert share_of(choices, problem.choice) == sample.confidence(problem)


def test_confidence_counts_how_often_the_choice_would_stand() -> None:
    problem = SelectionProblem(
        np.array([0.5]), np.array([[0.6], [1.0]]), np.ones(1), np.array([0.001, 0.01]), np.array([True, True]), threshold=0.0
    )
    residuals = np.array([[[-0.5], [0.0], [0.05], [0.3]]])  # only the last one asks for more than the cheap model has
    assert ResidualSample(np.empty(0), residuals).confidence(problem) == 0.75


def test_a_pool_of_a_hundred_models_stays_cheap() -> None:
    rng = np.random.default_rng(0)
    n = 100
    problem = SelectionProblem(rng.random(3), rng.random((n, 3)), np.ones(3), rng.random(n), np.ones(n, bool), 0.1)
    names = [str(i) for i in range(n)]
    assert flip_margin(problem, names, CAPABILITIES).price_factor is not None
