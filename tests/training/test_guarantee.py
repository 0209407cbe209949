"""The promise: kept at the stated rate, in words where there is none."""

import dataclasses
import json
import math

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.guarantee import control, threshold_grid
from training.predictions import Predictions
from training.promise import THE_REST, GuaranteeOptions

CAPABILITIES = ("reasoning", "code_gen")


def world(rng: np.random.Generator, groups: int, families: tuple[str, ...] = ()) -> tuple[pd.DataFrame, Predictions]:
    """Groups of 1 to 4 prompts of one difficulty; the router sees it through noise, and the strong model is sometimes the worse one."""
    size = rng.integers(1, 5, groups)
    group = np.repeat(np.arange(groups), size)
    difficulty = rng.beta(1, 4, groups)[group]
    n = len(group)
    weak = (rng.random(n) < 0.95 - difficulty).astype(float)
    strong = (rng.random(n) < 0.95 - difficulty / 4).astype(float)
    need = np.clip(0.1 + difficulty + rng.normal(0, 0.05, groups)[group], 0, 1)
    rows = pd.DataFrame({"group": [f"g{i}" for i in group], "weak": weak, "strong": strong, "weak_cost_usd": 1.0, "strong_cost_usd": 4.0})
    family = tuple(rng.choice(families, groups)[group]) if families else ()
    predictions = Predictions(np.stack([need, np.zeros(n)], axis=1), np.stack([need, need], axis=1), CAPABILITIES, 0.0, families=family)
    return rows, predictions


@pytest.fixture(scope="module")
def truth() -> tuple[np.ndarray, np.ndarray]:
    """Grid of tau and the mean loss there, every group counted once, over very many groups."""
    return loss_curve(*world(np.random.default_rng(99), 50_000))


def loss_curve(rows: pd.DataFrame, predictions: Predictions) -> tuple[np.ndarray, np.ndarray]:
    size = rows.groupby("group", sort=False)["weak"].transform("size").to_numpy()
    delta = (rows["strong"] - rows["weak"]).to_numpy() / size / rows["group"].nunique()
    order = np.argsort(predictions.need)
    taus = threshold_grid(1)
    return taus, np.append(0.0, np.cumsum(delta[order]))[np.searchsorted(predictions.need[order], taus, side="right")]


def chosen_taus(options: GuaranteeOptions, groups: int, repeats: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.array([control(*world(rng, groups), options).overall.threshold for _ in range(repeats)])


@pytest.mark.parametrize(("epsilon", "delta"), [(0.02, 0.1), (0.05, 0.1), (0.05, 0.05)])
def test_the_promise_holds_at_the_stated_rate_and_saves(truth, epsilon: float, delta: float) -> None:
    taus, loss = truth
    repeats = 80
    chosen = chosen_taus(GuaranteeOptions(epsilon, delta), 400, repeats)
    broken = np.mean(np.interp(chosen, taus, loss) > epsilon)
    assert broken <= delta + 2.5 * math.sqrt(delta * (1 - delta) / repeats)
    # The laxest threshold that truly keeps the limit, to which no method can come up without knowing the truth.
    assert np.mean(chosen) > 0.5 * taus[np.flatnonzero(loss <= epsilon).max()]


def test_taking_the_largest_threshold_that_looks_good_breaks_it_half_the_time(truth) -> None:
    taus, loss = truth
    rng = np.random.default_rng(5)
    broken = 0
    for _ in range(60):
        seen = loss_curve(*world(rng, 500))[1]
        broken += np.interp(taus[np.flatnonzero(seen <= 0.02).max()], taus, loss) > 0.02
    assert broken / 60 > 0.3


def test_a_laxer_promise_never_has_a_stricter_threshold() -> None:
    rows, predictions = world(np.random.default_rng(0), 2000)
    taus = [control(rows, predictions, GuaranteeOptions(e, 0.1)).overall.threshold for e in (0.01, 0.02, 0.05, 0.1)]
    assert taus == sorted(taus)
    assert taus[0] > 0
    sure = [control(rows, predictions, GuaranteeOptions(0.02, d)).overall.threshold for d in (0.001, 0.05, 0.3)]
    assert sure == sorted(sure)


def test_the_order_of_the_table_changes_nothing() -> None:
    rows, predictions = world(np.random.default_rng(0), 800)
    shuffled = np.random.default_rng(1).permutation(len(rows))
    options = GuaranteeOptions(0.05)
    again = control(rows.iloc[shuffled].reset_index(drop=True), predictions.of(shuffled), options)
    assert again.overall.threshold == control(rows, predictions, options).overall.threshold


def test_a_share_of_the_strong_models_score_is_the_stricter_limit() -> None:
    rows, predictions = world(np.random.default_rng(0), 2000)
    relative = control(rows, predictions, GuaranteeOptions(0.02, relative=True)).overall
    assert relative.threshold <= control(rows, predictions, GuaranteeOptions(0.02)).overall.threshold
    assert relative.loss <= 0.02 * relative.strong_score
    assert "the router's mean score is at most 2 % of always-strong's below it at tau" in relative.statement


def test_what_is_promised_is_said_with_what_was_seen() -> None:
    rows, predictions = world(np.random.default_rng(0), 1000)
    found = control(rows, predictions, GuaranteeOptions(0.05, 0.1))
    promise = found.overall
    assert (promise.kept, promise.groups, promise.prompts) == (True, 1000, len(rows))
    assert promise.p_value <= 0.1
    assert promise.loss < 0.05
    assert promise.cost_savings == pytest.approx(0.75 * (1 - promise.strong_share))
    assert found.statement.startswith(
        f"With 90 % confidence the router's mean score is at most 0.05 below always-strong's at tau {promise.threshold:.3f}"
    )
    assert (found.default_threshold, found.family_thresholds) == (promise.threshold, {})
    assert json.loads(json.dumps(found.to_mapping(), allow_nan=False))["kept"] is True


def test_too_few_groups_say_how_many_are_needed() -> None:
    found = control(*world(np.random.default_rng(0), 40), GuaranteeOptions(0.02))
    assert (found.kept, found.default_threshold) == (False, 0.0)
    assert "there are 40 groups of prompts" in found.statement
    assert "needs at least 199, even if no answer were worse than always-strong's" in found.statement
    assert "tau is 0, the strictest" in found.statement


def test_a_limit_that_no_threshold_keeps_says_so() -> None:
    """The router thinks nothing of any prompt, so that even tau = 0 leaves them all with a weak model that fails."""
    rows, predictions = world(np.random.default_rng(0), 1000)
    blind = dataclasses.replace(predictions, shortfall=np.zeros_like(predictions.shortfall))
    found = control(rows.assign(weak=0.0), blind, GuaranteeOptions(0.05))
    assert (found.kept, found.default_threshold) == (False, 0.0)
    assert "cannot be shown at any tau, not even at 0" in found.statement
    assert found.overall.p_value > 0.05


def test_families_with_groups_enough_get_their_own_threshold_and_the_rest_one_together() -> None:
    rng = np.random.default_rng(0)
    parts = [world(rng, n, (family,)) for n, family in ((900, "English"), (400, "Japonic"), (60, "Semitic"), (58, "Baltic"))]
    rows = pd.concat([part.assign(group=part["group"] + str(i)) for i, (part, _) in enumerate(parts)], ignore_index=True)
    predictions = Predictions(
        np.concatenate([p.shortfall for _, p in parts]),
        np.concatenate([p.requirements for _, p in parts]),
        CAPABILITIES,
        0.0,
        families=tuple(family for _, p in parts for family in p.families),
    )
    found = control(rows, predictions, GuaranteeOptions(0.05, 0.1, per_family=True))
    by_name = {promise.name: promise for promise in found.families}
    assert set(by_name) == {"English", "Japonic", "Semitic", "Baltic", THE_REST}
    assert set(found.family_thresholds) == {"English", "Japonic"}
    assert {by_name[name].delta for name in ("English", "Japonic", THE_REST)} == {0.1 / 3}
    assert by_name[THE_REST].groups == 118
    assert found.default_threshold == by_name[THE_REST].threshold == by_name["Semitic"].threshold
    assert not by_name["Semitic"].kept
    assert "It is one of the other families together." in by_name["Semitic"].statement
    assert "The 3 statements that were tested hold together" in found.statement
    assert not control(rows, predictions, GuaranteeOptions(0.05, 0.1)).family_thresholds


def test_families_that_are_all_too_small_leave_the_promise_for_all() -> None:
    rows, predictions = world(np.random.default_rng(0), 600, tuple(f"family {i}" for i in range(30)))
    found = control(rows, predictions, GuaranteeOptions(0.05, per_family=True))
    assert found.default_threshold == found.overall.threshold > 0
    assert found.family_thresholds == {}
    assert "No language family has the 78 groups" in found.statement


def test_each_promise_of_families_together_holds_at_the_stated_rate(truth) -> None:
    """Two families of one distribution: the chance that either promise is broken is at most delta."""
    taus, loss = truth
    rng = np.random.default_rng(11)
    broken = 0
    for _ in range(60):
        found = control(*world(rng, 400, ("English", "Japonic")), GuaranteeOptions(0.05, 0.1, per_family=True))
        broken += any(np.interp(tau, taus, loss) > 0.05 for tau in found.family_thresholds.values())
    assert broken / 60 <= 0.1 + 2.5 * math.sqrt(0.09 / 60)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weak": math.nan}, "weak score of row 0 is nan"),
        ({"strong": 1.5}, "strong score of row 0 is 1.5"),
    ],
)
def test_scores_that_are_none_are_refused(change: dict, message: str) -> None:
    rows, predictions = world(np.random.default_rng(0), 20)
    with pytest.raises(InvalidInput, match=message):
        control(rows.assign(**change), predictions, GuaranteeOptions(0.05))


def test_no_rows_and_a_strong_model_that_never_scores_are_refused() -> None:
    rows, predictions = world(np.random.default_rng(0), 20)
    with pytest.raises(InvalidInput, match="no calibration prompt"):
        control(rows.iloc[:0], predictions.of(np.arange(0)), GuaranteeOptions(0.05))
    with pytest.raises(InvalidInput, match="no share of it to keep"):
        control(rows.assign(strong=0.0), predictions, GuaranteeOptions(0.05, relative=True))


def test_models_that_score_the_same_lose_nothing_at_any_threshold() -> None:
    rows, predictions = world(np.random.default_rng(0), 400)
    found = control(rows.assign(weak=rows["strong"]), predictions, GuaranteeOptions(0.05))
    assert found.overall.strong_share == 0
    assert found.overall.loss == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"epsilon": 0}, "epsilon of the guarantee is 0"),
        ({"epsilon": math.nan}, "epsilon of the guarantee is nan"),
        ({"epsilon": "small"}, "epsilon of the guarantee is 'small'"),
        ({"epsilon": 0.1, "delta": 1}, "delta of the guarantee is 1"),
        ({"epsilon": 0.1, "relative": "yes"}, "relative of the guarantee is 'yes'"),
    ],
)
def test_options_out_of_range_are_refused(given: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        GuaranteeOptions(**given)
