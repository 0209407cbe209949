from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.catalog import ModelCatalog, ModelProfile, Prices
from router.errors import InvalidInput
from router.route import Router
from router.types import Conversation
from training import metrics
from training.baselines import BASELINES
from training.evaluate import EvaluationOptions, evaluate, evaluate_predictions
from training.pairs import pair_catalog, pair_rows, with_expected_costs
from training.predictions import Predictions, predict_pair

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import CAPABILITIES, make_rows, predictions_of, toy_router

QUICK = EvaluationOptions(n_bootstrap=100)


def test_a_router_that_knows_the_gain_is_the_oracle() -> None:
    rows = make_rows()
    gain = (rows["strong"] - rows["weak"]).to_numpy()
    result = evaluate_predictions(rows, predictions_of((gain + 1) / 2, threshold=0.5), options=QUICK)
    for metric in ("apgr", "auc", "quality", "quality_retention", "cost_savings", "misroute"):
        assert result.get(metric).value == pytest.approx(result.get(metric, "oracle").value), metric
    assert result.get("misroute").value == 0
    assert result.get("quality_retention").value == 1


def test_a_constant_router_is_random_exactly_and_a_random_one_nearly() -> None:
    rows = make_rows()
    constant = evaluate_predictions(rows, predictions_of(np.full(len(rows), 0.4)), options=QUICK)
    assert constant.get("apgr").value == pytest.approx(0.5, abs=1e-12)
    assert (constant.get("apgr").low, constant.get("apgr").high) == pytest.approx((0.5, 0.5))
    drawn = evaluate_predictions(rows, predictions_of(np.random.default_rng(1).random(len(rows))), options=QUICK)
    assert drawn.get("apgr").value == pytest.approx(0.5, abs=0.1)
    low, high = drawn.get("apgr").low, drawn.get("apgr").high
    assert low is not None
    assert high is not None
    assert low < 0.5 < high


def test_every_slice_has_every_policy() -> None:
    rows = make_rows()
    result = evaluate_predictions(rows, predictions_of(np.random.default_rng(1).random(len(rows))), options=QUICK)
    assert result.slices("pooled") == ["all", "all but English"]
    assert result.slices("family") == ["English", "Germanic", "Japonic", "Semitic"]
    assert result.slices("source") == ["exams", "試験問題"]
    for kind in ("pooled", "source", "family", "capability"):
        for name in result.slices(kind):
            found = result.estimates[(result.estimates["slice_kind"] == kind) & (result.estimates["slice"] == name)]
            assert set(found["policy"]) == {"router", *BASELINES}
            assert (found["value"].notna() | found["note"].ne("")).all()


def test_a_family_with_too_few_rows_is_flagged() -> None:
    rows = make_rows()
    n = int((rows["family"] == "Semitic").sum())
    assert n < 30
    result = evaluate_predictions(rows, predictions_of(rows["strong"].to_numpy()), options=QUICK)
    found = result.get("apgr", kind="family", name="Semitic")
    assert found.value is None
    assert found.note == f"too few rows: {n}, at least 30 are needed"
    assert result.get("apgr", kind="family", name="Germanic").value is not None


def test_one_class_in_a_slice_is_said() -> None:
    rows = make_rows()
    same = rows["family"] == "Japonic"
    rows.loc[same, "strong"] = rows.loc[same, "weak"]
    result = evaluate_predictions(rows, predictions_of(rows["tokens"].to_numpy() / 300), options=QUICK)
    assert result.get("apgr", kind="family", name="Japonic").note == "undefined: weak and strong model score the same on every prompt"
    assert result.get("auc", kind="family", name="Japonic").note == "undefined: the strong model adds value on no prompt"
    assert result.get("quality", kind="family", name="Japonic").value is not None


def test_unknown_costs_leave_savings_undefined() -> None:
    rows = make_rows().assign(weak_cost_usd=np.nan, strong_cost_usd=np.nan)
    result = evaluate_predictions(rows, predictions_of(rows["strong"].to_numpy()), options=QUICK)
    assert result.get("cost_savings").note == "undefined: no prices and no costs are known"


def test_operating_points_save_more_as_tau_rises() -> None:
    rows = make_rows()
    need = np.random.default_rng(2).random(len(rows))
    table = evaluate_predictions(rows, predictions_of(need, threshold=0.37), options=QUICK).operating_points
    assert (np.diff(table["tau"]) > 0).all()
    assert (np.diff(table["strong_share"]) <= 0).all()
    assert (np.diff(table["cost_savings"].astype(float)) >= 0).all()
    own = table[table["tau"] == 0.37].iloc[0]
    assert own["strong_share"] == pytest.approx((need > 0.37).mean())
    assert "the router's own" in own["why"]


def test_baselines_call_the_strong_model_as_often_as_thetoy_router() -> None:
    rows = make_rows()
    result = evaluate_predictions(rows, predictions_of(np.random.default_rng(3).random(len(rows))), options=QUICK)
    share = result.get("strong_share").value
    for name in ("random", "length", "source_mean"):
        assert result.get("strong_share", name).value == pytest.approx(share)


def test_predictions_come_from_the_routers_own_decisions() -> None:
    router = toy_router()
    conversations = [Conversation.from_text(text) for text in ("an easy one", "a hard one")]
    found = predict_pair(router.route, conversations, "small", "large", 0.3)
    for i, conversation in enumerate(conversations):
        decision = router.route(conversation)
        assert found.need[i] == decision.candidates[0].shortfall
        assert ["small", "large"][int(found.chosen(0.3)[i])] == decision.model
    assert found.chosen(0.3).tolist() == [0.0, 1.0]
    assert found.chosen(10.0).tolist() == [0.0, 0.0]
    assert found.probability(["code_gen", "something else"]) == pytest.approx([0.1, 0.9])


def test_a_route_a_fold() -> None:
    conversations = [Conversation.from_text("a hard one")] * 2
    routers = [toy_router().route, toy_router(threshold=0.1).route]
    found = predict_pair(routers, conversations, "small", "large", 0.3, fold=np.array([0, 1]))
    assert found.need[0] == found.need[1]
    with pytest.raises(InvalidInput, match="fold numbers"):
        predict_pair(routers, conversations, "small", "large", 0.3, fold=np.array([0, 2]))


def test_a_closed_model_is_never_chosen() -> None:
    router = toy_router()
    closed = replace(router.policy, deny=frozenset({"small"}))
    router = Router(router.artifact, router.encoder, router.catalog, closed)
    found = predict_pair(router.route, [Conversation.from_text("easy")], "small", "large", 0.3)
    assert found.chosen(1e6).tolist() == [1.0]


def test_an_unknown_model_is_named() -> None:
    with pytest.raises(InvalidInput, match=r"does not know 'tiny': its pool is small, large"):
        predict_pair(toy_router().route, [Conversation.from_text("easy")], "tiny", "large", 0.3)


def _tables() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(4)
    hard = rng.random(120) < 0.5
    prompts = pd.DataFrame(
        {
            "source": "mine",
            "prompt_id": [f"p{i}" for i in range(120)],
            "language": "en",
            "family": "English",
            "task_kind": "code",
            "turns": [
                [{"role": "user", "content": f"{'hard' if h else 'easy'} task number {i} of {i * 7919 % 1000}"}] for i, h in enumerate(hard)
            ],
        }
    )
    parts = [
        pd.DataFrame(
            {"source": "mine", "prompt_id": prompts["prompt_id"], "model": model, "score_kind": "exact", "score": score, "cost_usd": np.nan}
        )
        for model, score in (("small", (~hard).astype(float)), ("large", np.ones(120)))
    ]
    return prompts, pd.concat(parts, ignore_index=True)


def test_from_tables_to_a_perfect_score() -> None:
    prompts, outcomes = _tables()
    rows = pair_rows(prompts, outcomes, "small", "large", similarity=None)
    assert set(rows["capability"]) == {"code_gen"}
    pool, priced = pair_catalog(None, "small", "large", CAPABILITIES, weak_prices=Prices(1, 1), strong_prices=Prices(4, 4))
    conversations = [Conversation.from_openai(turns) for turns in rows["turns"]]
    rows = with_expected_costs(rows, conversations, pool, priced, 100)
    result = evaluate(toy_router().route, rows, "small", "large", 0.3, options=QUICK)
    share = float((rows["weak"] == 0).mean())
    assert result.get("auc").value == 1
    assert result.get("apgr").value == pytest.approx(1 - share / 2)
    assert result.get("quality_vs_strong").value == 1
    assert result.get("cost_savings").value == pytest.approx((1 - share) * 3 / 4, abs=0.02)


def test_two_names_of_one_model() -> None:
    prompts, outcomes = _tables()
    other = outcomes.assign(source="other", model=outcomes["model"].replace({"small": "Small-1"}))
    both = pd.concat([outcomes, other]), pd.concat([prompts, prompts.assign(source="other")])
    rows = pair_rows(both[1].reset_index(drop=True), both[0].reset_index(drop=True), ["small", "Small-1"], "large", similarity=None)
    assert rows["source"].value_counts().to_dict() == {"mine": 120, "other": 120}
    twice = pd.concat([outcomes, outcomes[outcomes["model"] == "small"].assign(model="Small-1")], ignore_index=True)
    with pytest.raises(InvalidInput, match="not one model there"):
        pair_rows(prompts, twice, ["small", "Small-1"], "large", similarity=None)


def test_observed_costs_win_over_list_prices() -> None:
    prompts, outcomes = _tables()
    outcomes["cost_usd"] = np.where(outcomes["model"] == "small", 0.5, 2.0)
    rows = pair_rows(prompts, outcomes, "small", "large", similarity=None)
    pool, priced = pair_catalog(None, "small", "large", CAPABILITIES)
    assert not priced
    filled = with_expected_costs(rows, [Conversation.from_text("x")] * len(rows), pool, priced, 100)
    assert metrics.cost_savings(filled["weak_cost_usd"], filled["strong_cost_usd"], np.zeros(len(rows))) == pytest.approx(0.75)


def test_models_of_the_catalog_keep_their_figures() -> None:
    raw = dict.fromkeys(CAPABILITIES, 0.4)
    catalog = ModelCatalog((ModelProfile("small", "", Prices(1, 2), raw), ModelProfile("large", "", Prices(3, 4), raw)))
    pool, priced = pair_catalog(catalog, "small", "large", CAPABILITIES)
    assert priced
    assert pool["small"].raw == raw
    with pytest.raises(InvalidInput, match="same model"):
        pair_catalog(catalog, "small", "small", CAPABILITIES)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda rows: rows.drop(columns="group"), "lack column 'group'"),
        (lambda rows: rows.head(0), "nothing to evaluate"),
        (lambda rows: rows.head(3), "400 predictions for 3 prompts"),
    ],
)
def test_rows_that_do_not_fit_are_refused(change, message: str) -> None:
    rows = make_rows()
    with pytest.raises(InvalidInput, match=message):
        evaluate_predictions(change(rows), predictions_of(rows["strong"].to_numpy()), options=QUICK)


def test_missing_predictions_are_refused() -> None:
    with pytest.raises(InvalidInput, match="NaN"):
        Predictions(np.array([[np.nan, 0.0]]), np.zeros((1, 2)), CAPABILITIES, 0.1)
