from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from router.errors import InvalidInput
from training.outcomes import known_model, load_outcomes, match_prompts, pair_scores, pool_scores


def row(prompt_id: str, model: str, score: Any, kind: str = "exact", source: str = "own", **columns: Any) -> dict[str, Any]:
    return {"source": source, "prompt_id": prompt_id, "model": model, "score_kind": kind, "score": score, **columns}


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(rows).assign(cost_usd=math.nan)


TWO = table(
    row("p1", "small", 0.0), row("p1", "large", 1.0),
    row("p2", "small", 1.0), row("p2", "large", 1.0),
    row("p3", "small", 0.5),
)  # fmt: skip
JUDGED = table(
    *(
        row(p, m, s, kind, "judged")
        for kind in ("judge_a", "judge_b")
        for p, m, s in (("q1", "small", 0.2), ("q1", "large", 0.9), ("q2", "small", 0.6), ("q2", "large", 0.4))
    )
)


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(r) + "\n" for r in rows), encoding="utf-8")
    return path


def test_reads_jsonl_and_parquet_alike(tmp_path: Path) -> None:
    rows = [row("p1", "small", 0, cost_usd=0.25), row("p1", "large", 1)]
    lines = load_outcomes(write(tmp_path / "outcomes.jsonl", rows))
    assert lines["score"].tolist() == [0.0, 1.0]
    assert lines["cost_usd"].iloc[0] == 0.25
    assert math.isnan(lines["cost_usd"].iloc[1])
    lines.to_parquet(tmp_path / "outcomes.parquet")
    pd.testing.assert_frame_equal(load_outcomes(tmp_path), lines)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (row("p2", "m", math.nan), r"o\.jsonl:2: column 'score' is nan for own, p2, m, exact; a number in \[0, 1\] is needed"),
        (row("p2", "m", 1.5), r"o\.jsonl:2: column 'score' is 1\.5 "),
        (row("p2", "m", -0.1), r"o\.jsonl:2: column 'score' is -0\.1 "),
        (row("p2", "m", math.inf), r"o\.jsonl:2: column 'score' is inf "),
        (row("p2", "m", None), r"o\.jsonl:2: column 'score' is None "),
        (row("p2", "m", "0.5"), r"o\.jsonl:2: column 'score' is '0\.5' "),
        (row("p2", "m", True), r"o\.jsonl:2: column 'score' is True "),
        (row("p2", "m", 0.5, cost_usd=-1), r"o\.jsonl:2: column 'cost_usd' is -1 .*a finite number from 0"),
        (row("p2", "", 0.5), r"o\.jsonl:2: column 'model' is empty"),
        (row("p1", "m", 0.5), r"o\.jsonl:2: source 'own', prompt_id 'p1', model 'm', score_kind 'exact' stands already at o\.jsonl:1"),
    ],
)
def test_refuses_a_bad_row_in_one_line_that_names_it(tmp_path: Path, bad: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        load_outcomes(write(tmp_path / "o.jsonl", [row("p1", "m", 1), bad]))
    assert "\n" not in str(caught.value)


def test_nan_in_parquet_is_named_with_its_row(tmp_path: Path) -> None:
    pd.DataFrame([row("p1", "m", 1.0), row("p2", "m", math.nan)]).to_parquet(tmp_path / "o.parquet")
    with pytest.raises(InvalidInput, match=r"o\.parquet row 2: column 'score' is nan for own, p2, m, exact"):
        load_outcomes(tmp_path / "o.parquet")


@pytest.mark.parametrize("score", ["0.5", True])
def test_text_and_truth_values_in_parquet_are_not_scores(tmp_path: Path, score: object) -> None:
    frame = pd.DataFrame([{"source": "s", "prompt_id": "p", "model": "m", "score_kind": "k", "score": score}])
    frame.to_parquet(tmp_path / "outcomes.parquet")
    with pytest.raises(InvalidInput, match=r"outcomes.parquet row 1: column 'score' is .*; a number in \[0, 1\] is needed"):
        load_outcomes(tmp_path)


def test_refuses_a_missing_column(tmp_path: Path) -> None:
    rows = [{"source": "s", "prompt_id": "p", "model": "m", "kind": "x", "score": 1}]
    with pytest.raises(InvalidInput, match="column 'score_kind' is missing, there are source, prompt_id, model, kind, score"):
        load_outcomes(write(tmp_path / "o.jsonl", rows))


def test_unknown_model_lists_close_ones() -> None:
    assert known_model("large", TWO) == "large"
    with pytest.raises(InvalidInput, match=r"unknown model 'Large-v2': there are large, small; did you mean 'large'\?"):
        known_model("Large-v2", TWO)


def test_outcomes_of_a_prompt_that_is_not_there() -> None:
    prompts = pd.DataFrame({"source": ["own", "own"], "prompt_id": ["p1", "p2"]})
    with pytest.raises(InvalidInput, match=r"prompt 'p3' of source 'own' is not in the prompt table \(1 such rows\)"):
        match_prompts(TWO, prompts)


def test_pairs_only_prompts_both_answered() -> None:
    pairs = pair_scores(TWO, "small", "large")
    assert pairs.to_dict("list") == {
        "source": ["own", "own"], "prompt_id": ["p1", "p2"], "score_kind": ["exact", "exact"], "weak": [0.0, 1.0], "strong": [1.0, 1.0],
    }  # fmt: skip


def test_one_kind_of_score_for_both_models() -> None:
    both = pd.concat([TWO, JUDGED])
    with pytest.raises(
        InvalidInput, match=r"source 'judged': both models have 2 kinds of score, judge_a \(2 prompts\), judge_b \(2 prompts\); name one"
    ):
        pair_scores(both, "small", "large")
    pairs = pair_scores(both, "small", "large", ["judge_b", "exact"])
    assert pairs.groupby("source")["score_kind"].unique().map(list).to_dict() == {"judged": ["judge_b"], "own": ["exact"]}
    assert set(pair_scores(both, "small", "large", "judge_a")["source"]) == {"judged"}
    assert set(pair_scores(both, "small", "large", sources=["own"])["source"]) == {"own"}


def test_never_pairs_two_judges() -> None:
    crossed = table(row("q1", "small", 0.1, "judge_a"), row("q1", "large", 0.9, "judge_b"))
    with pytest.raises(InvalidInput, match="share no scored prompt: 'small' has own/judge_a; 'large' has own/judge_b"):
        pair_scores(crossed, "small", "large")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"weak": "smal", "strong": "large"}, "unknown model 'smal': .* did you mean 'small'"),
        ({"weak": "small", "strong": "small"}, "weak and strong are the same model"),
        (
            {"weak": "small", "strong": "large", "score_kind": "exakt"},
            "of these two models, unknown score_kind 'exakt': there are exact; did you mean 'exact'",
        ),
        ({"weak": "small", "strong": "large", "sources": ["other"]}, "unknown source 'other'"),
    ],
)
def test_pair_of_what_is_not_there(call: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        pair_scores(TWO, **call)


@pytest.mark.parametrize(("weak", "strong", "message"), [(0.5, 0.5, "never better than"), (0.0, 1.0, "is better than .* on all 2 prompts")])
def test_one_class_is_refused(weak: float, strong: float, message: str) -> None:
    rows = table(*(row(p, m, s) for p in ("p1", "p2") for m, s in (("small", weak), ("large", strong))))
    with pytest.raises(InvalidInput, match=f"one class only: .*{message}"):
        pair_scores(rows, "small", "large")
    assert len(pair_scores(rows, "small", "large", check_labels=False)) == 2


def test_pool_is_a_matrix_of_prompts_by_models() -> None:
    assert pool_scores(TWO, "own").to_dict("index") == {"p1": {"large": 1.0, "small": 0.0}, "p2": {"large": 1.0, "small": 1.0}}
    gaps = pool_scores(TWO, "own", models=["small", "large"], complete=False)
    assert gaps.columns.tolist() == ["small", "large"]
    assert math.isnan(gaps.loc["p3", "large"])


def test_pool_of_what_is_not_there() -> None:
    with pytest.raises(InvalidInput, match="unknown source 'owl': there are own; did you mean 'own'"):
        pool_scores(TWO, "owl")
    with pytest.raises(InvalidInput, match="has 2 kinds of score"):
        pool_scores(JUDGED, "judged")
    with pytest.raises(InvalidInput, match=r"source 'judged': unknown score_kind 'judge_c': .* did you mean 'judge_"):
        pool_scores(JUDGED, "judged", "judge_c")
    with pytest.raises(InvalidInput, match="unknown model 'tiny'"):
        pool_scores(TWO, "own", models=["tiny"])


def test_balanced_pairs_of_the_real_tables(shared_data: Path) -> None:
    outcomes = load_outcomes(shared_data / "outcomes.parquet")
    pairs = pair_scores(outcomes, "Claude-3-Haiku", "Claude-3.5-Sonnet-20241022")
    assert pairs.groupby("source").size().to_dict() == {"livecodebench_gen": 880, "livecodebench_repair": 713}
    assert pool_scores(outcomes, "swebench_verified_mini").shape == (500, 25)
