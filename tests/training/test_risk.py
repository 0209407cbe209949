"""The test behind the guarantee: valid at every size and for every distribution, and not needlessly weak."""

import math

import numpy as np
import pytest

from router.errors import InvalidInput
from training.risk import group_means, groups_needed, margins, p_value


def rejected(draw, repeats: int, epsilon: float, delta: float) -> float:
    """Share of samples in which the limit is declared kept."""
    rng = np.random.default_rng(0)
    return float(np.mean([p_value(draw(rng), epsilon, delta) <= delta for _ in range(repeats)]))


@pytest.mark.parametrize("groups", [50, 400, 2000])
@pytest.mark.parametrize(
    "loss",
    [
        lambda rng, n: rng.random(n) < 0.05,
        # Gains against losses: the mean is 0.05 and the spread is as wide as it can be.
        lambda rng, n: np.where(rng.random(n) < 0.525, 1.0, -1.0),
        lambda rng, n: np.where(rng.random(n) < 0.001, 1.0, 0.049 / 0.999),
        lambda rng, n: rng.beta(0.5, 9.5, n),
    ],
    ids=["rare losses", "losses and gains", "one in a thousand", "graded"],
)
def test_a_mean_at_the_limit_is_seldom_declared_below_it(loss, groups: int) -> None:
    share = rejected(lambda rng: 0.05 - loss(rng, groups).astype(float), 600, 0.05, 0.1)
    assert share <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 600)


def clustered(rng: np.random.Generator, groups: int) -> tuple[np.ndarray, np.ndarray]:
    """Losses that all prompts of a group share, in groups of 1 or 20; the mean over groups is 0.05."""
    size = np.where(rng.random(groups) < 0.3, 20, 1)
    group = np.repeat(np.arange(groups), size)
    return (rng.random(groups) < 0.05).astype(float)[group], group


def test_clustered_prompts_count_as_their_groups() -> None:
    def by_group(rng):
        loss, group = clustered(rng, 150)
        return group_means(0.05 - loss, group)

    def by_prompt(rng):
        return 0.05 - clustered(rng, 150)[0]

    assert rejected(by_group, 600, 0.05, 0.1) <= 0.1 + 3 * math.sqrt(0.1 * 0.9 / 600)
    assert rejected(by_prompt, 600, 0.05, 0.1) > 0.2


def test_a_loss_well_below_the_limit_is_found() -> None:
    assert rejected(lambda rng: 0.05 - (rng.random(1000) < 0.02).astype(float), 200, 0.05, 0.05) > 0.95


def test_the_order_of_the_bets_knows_no_outcome() -> None:
    """The same margins give the same p-value, whatever was tested before."""
    margin = 0.05 - (np.random.default_rng(1).random(500) < 0.02)
    assert p_value(margin, 0.05, 0.05) == p_value(margin.copy(), 0.05, 0.05)
    assert p_value(np.full(500, 0.05), 0.05, 0.05) < p_value(margin, 0.05, 0.05)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 0.05), (0.02, 0.1), (0.05, 0.001), (0.3, 0.05)])
def test_the_groups_that_are_needed_are_just_enough(epsilon: float, delta: float) -> None:
    needed = groups_needed(epsilon, delta)
    assert p_value(np.full(needed, epsilon), epsilon, delta) <= delta < p_value(np.full(needed - 1, epsilon), epsilon, delta)
    # No test at all could do with fewer than this, because a rate of epsilon leaves no trace in fewer.
    assert needed >= math.log(delta) / math.log(1 - epsilon)


def test_a_smaller_epsilon_a_smaller_delta_and_a_lower_score_need_more() -> None:
    assert groups_needed(0.01, 0.05) > groups_needed(0.02, 0.05)
    assert groups_needed(0.02, 0.01) > groups_needed(0.02, 0.05)
    assert groups_needed(0.02, 0.05, strong_mean=0.5) > groups_needed(0.02, 0.05)
    with pytest.raises(InvalidInput, match="leaves no loss"):
        groups_needed(0.02, 0.05, strong_mean=0.0)


def test_margins_count_gains_and_take_the_limit_as_a_difference_or_a_share() -> None:
    weak, strong, chosen = [1.0, 0.0, 0.0], [0.0, 1.0, 0.5], [0.0, 0.0, 1.0]
    assert margins(weak, strong, chosen, 0.02) == pytest.approx([1.02, -0.98, 0.02])
    assert margins(weak, strong, chosen, 0.02, relative=True) == pytest.approx([1.0, -0.98, 0.01])


def test_margins_that_no_score_can_give_are_refused() -> None:
    for wrong in (-1.5, math.nan):
        with pytest.raises(InvalidInput, match=r"within \[0, 1\]"):
            p_value(np.array([0.02, wrong]), 0.02, 0.05)


def test_no_group_proves_nothing() -> None:
    assert p_value(np.empty(0), 0.02, 0.05) == 1.0
