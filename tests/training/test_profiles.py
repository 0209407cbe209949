"""Catalog figures computed from outcomes: what is averaged, over which prompts, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

from router.catalog import ModelCatalog
from router.errors import InvalidInput
from training.profiles import SourceScore, catalog_fragment, source_scores, standard_error
from training.targets import CAPABILITY_OF_TASK


def prompts(*rows: tuple[str, str, str], **columns: list[Any]) -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["source", "prompt_id", "task_kind"])
    return table.assign(**columns)


def outcomes(*rows: tuple[str, str, str, Any], score_kind: str = "pass@1") -> pd.DataFrame:
    table = pd.DataFrame(rows, columns=["source", "prompt_id", "model", "score"])
    return table.assign(score_kind=score_kind)


CODE = prompts(("lcb", "1", "code"), ("lcb", "2", "code"), ("lcb", "3", "code"), ("lcb", "4", "code"))
BOTH = outcomes(
    ("lcb", "1", "small", 1.0),
    ("lcb", "2", "small", 0.0),
    ("lcb", "3", "small", 0.0),
    ("lcb", "1", "large", 1.0),
    ("lcb", "2", "large", 1.0),
    ("lcb", "3", "large", 0.0),
    ("lcb", "4", "large", 0.0),
)


def by_model(scores: tuple[SourceScore, ...]) -> dict[str, SourceScore]:
    return {score.model: score for score in scores}


def test_mean_and_standard_error_over_shared_prompts() -> None:
    scores = by_model(source_scores(CODE, BOTH))
    assert (scores["small"].score, scores["large"].score) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
    assert scores["large"].n_prompts == 3  # prompt 4 was answered by one model only
    assert scores["small"].standard_error == pytest.approx(np.std([1, 0, 0], ddof=1) / math.sqrt(3))
    assert scores["small"].capability == "code_gen"


def test_a_model_that_skipped_hard_prompts_is_not_flattered() -> None:
    easy_only = outcomes(("lcb", "1", "sly", 1.0), ("lcb", "1", "large", 1.0), ("lcb", "2", "large", 0.0))
    alone = by_model(source_scores(CODE, easy_only, shared=False))
    together = by_model(source_scores(CODE, easy_only))
    assert alone["sly"].score > alone["large"].score
    assert together["sly"].score == together["large"].score


def test_shared_prompts_are_those_of_the_kept_models() -> None:
    assert source_scores(CODE, BOTH, models=["large"])[0].n_prompts == 4


@pytest.mark.parametrize(
    ("kind", "capability"),
    [("debug", "debugging"), ("math", "reasoning"), ("tool_use", "tool_use"), ("translation", "reasoning")],
)
def test_task_kind_gives_the_capability(kind: str, capability: str) -> None:
    assert CAPABILITY_OF_TASK[kind] == capability
    scores = source_scores(prompts(("s", "1", kind)), outcomes(("s", "1", "m", 0.5)))
    assert scores[0].capability == capability
    assert scores[0].standard_error == math.inf


def test_a_capability_column_wins_over_the_task_kind() -> None:
    table = prompts(("s", "1", "chat"), ("s", "2", "chat"), capability=["debugging", None])
    scores = source_scores(table, outcomes(("s", "1", "m", 1.0), ("s", "2", "m", 0.0)))
    assert {score.capability: score.score for score in scores} == {"debugging": 1.0, "reasoning": 0.0}


def test_categorical_columns_work_as_plain_ones() -> None:
    table = BOTH.astype(
        {
            "source": "category",
            "prompt_id": "category",
            "model": "category",
            "score_kind": "category",
            "score": "float32",
        }
    )
    assert source_scores(CODE.astype("category"), table, models=["small"])[0].n_prompts == 3


def test_translations_of_one_task_count_as_one_observation() -> None:
    rng = np.random.default_rng(0)
    values = rng.random(12)
    singles = standard_error(values, [str(i) for i in range(12)])
    assert singles == pytest.approx(values.std(ddof=1) / math.sqrt(12))
    copied = np.repeat(values, 5)
    groups = [str(i) for i in range(12) for _ in range(5)]
    assert standard_error(copied, groups) == pytest.approx(singles)
    assert standard_error(copied, [str(i) for i in range(60)]) < singles / 2
    assert standard_error(values, ["a"] * 12) == math.inf


def test_groups_of_the_prompt_table_are_used() -> None:
    table = prompts(("s", "1", "math"), ("s", "2", "math"), ("s", "3", "math"), group=["p01", "p01", None])
    scores = source_scores(table, outcomes(("s", "1", "m", 1.0), ("s", "2", "m", 1.0), ("s", "3", "m", 0.0)))
    assert (scores[0].n_prompts, scores[0].n_groups) == (3, 2)


def test_the_fragment_is_a_catalog_once_prices_are_added() -> None:
    fragment = catalog_fragment(source_scores(CODE, BOTH))
    for entry in fragment["models"].values():
        entry["prices"] = {"input_per_mtok": 1.0, "output_per_mtok": 1.0}
    catalog = ModelCatalog.from_mapping({"format": 1, **fragment})
    assert catalog["large"].raw == {"code_gen": pytest.approx(2 / 3, abs=1e-4)}
    assert "3 prompts" in catalog["large"].benchmarks["lcb/pass@1/code_gen"].source


def test_the_fragment_refuses_models_that_do_not_compare() -> None:
    table = pd.concat([BOTH, outcomes(("extra", "9", "large", 1.0))])
    scores = source_scores(pd.concat([CODE, prompts(("extra", "9", "debug"))]), table)
    with pytest.raises(InvalidInput, match=r"'small' has no outcomes for extra/pass@1/debugging"):
        catalog_fragment(scores)


def test_the_fragment_refuses_two_scales_of_one_source() -> None:
    table = pd.concat([BOTH, BOTH.assign(score_kind="judge")])
    with pytest.raises(InvalidInput, match="2 score kinds for code_gen: judge, pass@1"):
        catalog_fragment(source_scores(CODE, table))
    assert catalog_fragment(source_scores(CODE, table, score_kinds=["judge"]))["capabilities"] == {"code_gen": {"lcb/judge/code_gen": 1.0}}


def test_an_empty_fragment_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no scores"):
        catalog_fragment([])


def test_an_unknown_model_lists_close_matches() -> None:
    with pytest.raises(InvalidInput, match=r"unknown model 'smal': there are .*; did you mean 'small'"):
        source_scores(CODE, BOTH, models=["smal"])
    with pytest.raises(InvalidInput, match=r"unknown source 'xyz': there are lcb$"):
        source_scores(CODE, BOTH, sources=["xyz"])


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan"), float("inf"), "good", None])
def test_scores_outside_the_unit_interval_are_refused(score: object) -> None:
    with pytest.raises(InvalidInput, match=r"source 'lcb', prompt '1', model 'm'\) is not a number in \[0, 1\]"):
        source_scores(CODE, outcomes(("lcb", "1", "m", score)))


def test_bad_tables_are_refused_with_the_reason() -> None:
    with pytest.raises(InvalidInput, match="column 'score' is missing"):
        source_scores(CODE, BOTH.drop(columns="score"))
    with pytest.raises(InvalidInput, match="outcomes: the table has no rows"):
        source_scores(CODE, BOTH.iloc[:0])
    with pytest.raises(InvalidInput, match="a row stands twice"):
        source_scores(CODE, pd.concat([BOTH, BOTH]))
    with pytest.raises(InvalidInput, match="prompt '4' of source 'lcb' is not in the prompt table"):
        source_scores(CODE.iloc[:3], BOTH)
    with pytest.raises(InvalidInput, match="task_kind 'poetry' measures no known capability"):
        source_scores(CODE.assign(task_kind="poetry"), BOTH)
    with pytest.raises(InvalidInput, match="column 'task_kind' has an empty value in row 1"):
        source_scores(CODE.assign(task_kind=["code", None, "code", "code"]), BOTH)
    with pytest.raises(InvalidInput, match="no row is left"):
        source_scores(
            pd.concat([CODE, prompts(("other", "1", "code"))]),
            pd.concat([BOTH, outcomes(("other", "1", "third", 1.0))]),
            models=["third"],
            sources=["lcb"],
        )


def test_models_without_a_common_prompt_are_refused() -> None:
    apart = outcomes(("lcb", "1", "a", 1.0), ("lcb", "2", "b", 1.0))
    with pytest.raises(InvalidInput, match="no prompt was answered by all 2 models"):
        source_scores(CODE, apart)
