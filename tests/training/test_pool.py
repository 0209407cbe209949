"""Pools of several models: quality over cost, beside what needs no router."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.catalog import Prices
from router.errors import InvalidInput
from training.assemble import load_tables
from training.evaluate import EvaluationOptions
from training.pool.evaluation import Operating, evaluate_pool, oracle_choice
from training.pool.fit import kept_models
from training.pool.levels import FLOOR, expected_loss, level, profile_levels
from training.pool.mixing import mixture_quality, undominated
from training.pool.predictions import PoolPredictions
from training.pool.recipe import PoolRecipe
from training.pool.rows import PoolModel, PoolRows, pool_rows
from training.pool.run import PoolPlan, evaluate_cross_validated
from training.report.pool_page import write_pool

MODELS = ("small", "medium", "large")
COST = {"small": 1.0, "medium": 3.0, "large": 10.0}
QUICK = EvaluationOptions(n_bootstrap=50, min_rows=10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Short prompts that all models solve, and long ones that only the dear ones do; four repositories."""
    path = tmp_path_factory.mktemp("pool")
    rng = np.random.default_rng(0)
    prompts, outcomes = [], []
    for i in range(160):
        hard = i // 4 % 2 == 1
        words = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz"), 7)) for _ in range(120 if hard else 9)]
        text = f"{'Find the deadlock' if hard else 'Rename'}: {' '.join(words)}"
        turns = json.dumps([{"role": "user", "content": text}])
        prompts.append(("repo", f"p{i}", "en", "debug", turns, f"repository-{i % 4}"))
        for name in MODELS:
            right = {"small": 0.05, "medium": 0.5, "large": 0.9}[name] if hard else 0.95
            outcomes.append(("repo", f"p{i}", name, "tests", float(rng.random() < right), COST[name] * (3 if hard else 1)))
    columns = ["source", "prompt_id", "language", "task_kind", "turns", "group"]
    pd.DataFrame(prompts, columns=columns).to_parquet(path / "prompts.parquet")
    columns = ["source", "prompt_id", "model", "score_kind", "score", "cost_usd"]
    pd.DataFrame(outcomes, columns=columns).to_parquet(path / "outcomes.parquet")
    return path


@pytest.fixture(scope="module")
def recipe() -> PoolRecipe:
    return PoolRecipe(tuple(PoolModel((name,)) for name in MODELS), bandwidths=(0.0,), heads={"n_estimators": 30, "calibration_folds": 3})


@pytest.fixture(scope="module")
def rows(folder: Path, recipe: PoolRecipe) -> PoolRows:
    return PoolPlan(*load_tables([folder]), recipe).rows()


def test_scores_and_observed_costs_of_every_model_are_in_one_order(rows: PoolRows) -> None:
    assert rows.scores.shape == rows.costs.shape == (160, 3)
    assert rows.observed.all()
    assert (rows.costs[:, 2] > rows.costs[:, 0]).all()
    assert rows.scores.mean(axis=0).argmax() == 2


def test_missing_costs_come_from_list_prices_or_are_asked_for(folder: Path) -> None:
    prompts, outcomes = load_tables([folder])
    unpriced = outcomes.assign(cost_usd=np.nan)
    models = [PoolModel((name,), Prices(COST[name], COST[name])) for name in MODELS]
    priced = pool_rows(prompts, unpriced, models)
    assert not priced.observed.any()
    assert priced.costs[:, 2] == pytest.approx(10 * priced.costs[:, 0])
    with pytest.raises(InvalidInput, match="no list price of 'small'"):
        pool_rows(prompts, unpriced, [PoolModel((name,)) for name in MODELS])


@pytest.mark.parametrize(
    ("names", "message"),
    [(("small",), "at least two models"), (("small", "small"), "each named once"), (("small", "larg"), "larg")],
)
def test_pools_that_cannot_be_are_refused(folder: Path, names: tuple[str, ...], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pool_rows(*load_tables([folder]), [PoolModel((name,)) for name in names])


def test_identical_models_leave_nothing_to_route(folder: Path) -> None:
    prompts, outcomes = load_tables([folder])
    with pytest.raises(InvalidInput, match="nothing to route"):
        pool_rows(prompts, outcomes.assign(score=1.0), [PoolModel((name,)) for name in MODELS])


def test_the_oracle_takes_the_cheapest_that_solves_and_the_cheapest_of_all_where_none_does() -> None:
    scores = np.array([[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    assert oracle_choice(scores, np.array([[1.0, 2.0, 3.0]] * 3)).tolist() == [1, 0, 0]


def test_mixtures_are_the_hull_of_single_models() -> None:
    cost, quality = np.array([1.0, 2.0, 3.0]), np.array([0.2, 0.3, 0.8])
    assert mixture_quality(np.array([1.0, 2.0, 3.0, 9.0]), cost, quality) == pytest.approx([0.2, 0.5, 0.8, 0.8])
    assert undominated(cost, quality).tolist() == [True, False, True]
    assert undominated(np.array([1.0, 2.0]), np.array([0.9, 0.5])).tolist() == [True, False]


def test_a_shortfall_in_levels_is_an_expected_loss() -> None:
    need, quality = 0.4, np.array([0.2, 0.6, 1.0])
    profile = profile_levels(quality)
    assert (profile[0], profile[2]) == (0.0, 1.0)
    shortfall = np.maximum(0.0, level(np.array([need]))[0] - profile)
    assert [expected_loss(float(s)) for s in shortfall[:2]] == pytest.approx([0.4, 0.4 * 0.5])
    assert expected_loss(0.0) == pytest.approx(FLOOR)
    assert profile_levels(np.array([0.5, 0.5])).tolist() == [1.0, 1.0]


def test_dominated_models_are_left_out_but_never_all_but_one(rows: PoolRows) -> None:
    everything = np.ones((len(rows), 1))
    worse = rows.of_models(np.array([2, 0, 1]))
    assert kept_models(worse, everything).sum() >= 2
    dear = np.where(np.arange(3) == 0, 100.0, rows.costs)
    assert not kept_models(replace(rows, costs=dear, scores=rows.scores * np.array([0.5, 1, 1])), everything)[0]


def test_a_perfect_router_saves_and_loses_nothing(rows: PoolRows) -> None:
    shortfall = 1.0 - rows.scores
    shortfall[(rows.scores == 0).all(axis=1)] = 0.0
    predictions = PoolPredictions(shortfall, np.zeros((len(rows), 1)), rows.costs)
    chosen = predictions.chosen(0.0)
    assert chosen.tolist() == oracle_choice(rows.scores, rows.costs).tolist()
    result = evaluate_pool(rows, {"router": predictions}, [Operating("own", chosen, np.zeros(len(rows)))], goals=(0.003,), options=QUICK)
    assert result.get("quality", "own").value == result.get("quality", "oracle").value
    assert result.get("loss_to_best", "own").value < 0
    saved = result.get("saved_of_best", "own").value
    assert saved is not None
    assert saved > 0.3
    assert result.get("misroute", "own").value == 0.0


def test_routers_of_held_out_repositories_beat_mixing_where_prompts_tell(folder: Path, recipe: PoolRecipe, tmp_path: Path) -> None:
    said: list[str] = []
    plan = PoolPlan(*load_tables([folder]), recipe, options=QUICK)
    result = evaluate_cross_validated(plan, None, say=said.append)
    assert len(result.folds) == len(said) == 4
    found = result.get("gain_over_mixing")
    assert found.value is not None
    assert found.value > 0.02
    own = result.get("quality", "router, aims at -0.3")
    assert own.value is not None
    assert set(result.models["model"]) == set(MODELS)
    write_pool(result.with_about(command="x"), tmp_path / "report")
    page = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert ">nan<" not in page.lower()


def test_more_tolerance_is_never_dearer(rows: PoolRows) -> None:
    rng = np.random.default_rng(1)
    predictions = PoolPredictions(
        rng.random((len(rows), 3)) * [1, 0.5, 0], np.zeros((len(rows), 1)), np.tile([1.0, 3.0, 10.0], (len(rows), 1))
    )
    cost = [np.array([1.0, 3.0, 10.0])[predictions.chosen(tau)] for tau in (0.0, 0.1, 0.3, 0.9)]
    assert all((later <= earlier).all() for earlier, later in itertools.pairwise(cost))
