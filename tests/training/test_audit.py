from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.audit.labels import read_labels
from training.audit.refusals import opens_with_refusal
from training.audit.run import AuditResult, audit_folder
from training.audit.slices import AuditOptions
from training.recipe import Pair

sys.path.insert(0, str(Path(__file__).parent))
from audit_folder import (
    answer_row,
    fair,
    first_is_best,
    label_run,
    longer_is_best,
    outcome,
    prompt_rows,
    scores_only,
    verdict_rows,
    write_lines,
)

OPTIONS = AuditOptions(n_bootstrap=50, min_rows=10)


def _quiet(_: str) -> None:
    pass


def _audit(folder: Path, **more: Any) -> AuditResult:
    return audit_folder(folder, say=_quiet, **{"options": OPTIONS, **more})


def _row(result: AuditResult, measure: str, name: str = "all") -> dict[str, Any]:
    rows = result.estimates[(result.estimates["measure"] == measure) & (result.estimates["slice"] == name)]
    assert len(rows) == 1, rows
    return dict(rows.iloc[0])


def _value(result: AuditResult, measure: str, name: str = "all") -> float:
    return float(_row(result, measure, name)["value"])


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_a_judge_that_keeps_its_verdict_is_consistent_in_every_family(tmp_path: Path) -> None:
    result = _audit(label_run(tmp_path / "run", fair))
    for name in ("all", "English", "Germanic", "Japonic"):
        assert _value(result, "swap_consistency", name) == 1
        assert _value(result, "first_position", name) == 0.5
    assert _value(result, "first_score_shift") == 0
    assert _value(result, "verdict_ties") == 0
    row = _row(result, "swap_consistency")
    assert (row["hits"], row["n"], row["n_groups"]) == (60, 60, 20)
    # All of them: every resample says the same, so the exact interval of 20 groups stands in.
    assert row["low"] == pytest.approx(0.025 ** (1 / 20))


def test_a_judge_that_prefers_the_first_answer_is_caught(tmp_path: Path) -> None:
    result = _audit(label_run(tmp_path / "run", first_is_best))
    assert _value(result, "swap_consistency") == 0
    assert _value(result, "first_position") == 1
    assert _value(result, "first_score_shift") == pytest.approx(0.5)
    table = result.tables["verdict_orders"].set_index("slice")
    assert table.loc["all", "first in both"] == 60


def test_one_order_only_leaves_position_bias_unknown(tmp_path: Path) -> None:
    result = _audit(label_run(tmp_path / "run", fair, orders=("ahead",)))
    row = _row(result, "swap_consistency")
    assert np.isnan(row["value"])
    assert row["note"] == "not measurable: no pair of answers was judged in both orders"
    assert any("judged in one order only" in note for note in result.notes)
    assert _value(result, "verdict_ties") == 0
    assert np.isfinite(_value(result, "length_slope"))


def test_a_liking_for_length_is_told_from_a_liking_for_right_answers(tmp_path: Path) -> None:
    def by_parity(i: int, model: str) -> int:
        return 30 * 2 ** (i % 4) if model == "large" else 60

    def right(first: str, second: str, one: dict[str, Any], other: dict[str, Any]) -> tuple[float, float]:
        marks = [
            1.0 if (model == "large") == (int(row["prompt_id"][1:]) % 4 >= 2) else 0.0 for model, row in ((first, one), (second, other))
        ]
        return marks[0], marks[1]

    # The strong model is right exactly where its answer is longer.
    setting = {"strong_right": lambda i: i % 4 >= 2, "weak_right": lambda i: i % 4 < 2, "length": by_parity, "n": 120}
    honest = _audit(label_run(tmp_path / "honest", right, **setting))
    assert _value(honest, "length_slope") > 0.2
    assert _value(honest, "length_slope_controlled") == pytest.approx(0, abs=1e-6)
    assert _value(honest, "judge_picks_right") == 1
    assert _value(honest, "length_slope_checked") == pytest.approx(_value(honest, "length_slope"))
    # Here length and correctness have nothing to do with each other.
    unrelated = {"strong_right": lambda i: i % 8 >= 4, "weak_right": lambda i: i % 8 < 4, "length": by_parity, "n": 120}
    biased = _audit(label_run(tmp_path / "biased", longer_is_best, **unrelated))
    assert _value(biased, "length_slope_controlled") > 0.2
    assert _value(biased, "longer_preferred") > 0.85
    assert _value(biased, "judge_picks_right") == pytest.approx(0.5, abs=0.15)


def test_verdicts_on_replaced_answers_are_left_out(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair)
    with (folder / "answers.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(answer_row("p0", "large", "another answer")) + "\n")
    labels = read_labels(folder, say=_quiet)
    assert labels.verdicts is not None
    assert "p0" not in set(labels.verdicts["prompt_id"])
    assert len(labels.verdicts) == 118
    assert any("2 of 120 verdicts are about answers or rubrics since replaced" in note for note in labels.notes)
    assert any("1 answers were replaced" in note for note in labels.notes)


def test_a_judge_that_judges_itself_is_named_and_measured(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair, strong_right=lambda i: i % 2 == 0, weak_right=lambda i: i % 2 == 1)
    write_lines(folder / "judgements.jsonl", verdict_rows(folder, _lines(folder / "answers.jsonl"), fair, ("ahead", "swapped"), "large"))
    result = _audit(folder)
    assert "judge large is one of the models it judges" in result.notes
    # It always prefers its own answer, which the checks prefer half of the time.
    assert _value(result, "self_preference") == pytest.approx(0.5)
    assert _value(result, "judge_picks_right") == pytest.approx(0.5)


def test_two_judges_are_compared(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair)
    rows = _lines(folder / "judgements.jsonl")
    second = verdict_rows(
        folder, _lines(folder / "answers.jsonl"), lambda a, b, *_: (0.0, 1.0) if a == "large" else (1.0, 0.0), ("ahead", "swapped"), "x"
    )
    write_lines(folder / "judgements.jsonl", rows + second[:60])
    result = _audit(folder)
    kappa = result.estimates[result.estimates["measure"] == "judges_kappa"].iloc[0]
    assert kappa["subject"] == "referee and x"
    assert kappa["value"] <= 0
    assert set(result.estimates.loc[result.estimates["measure"] == "swap_consistency", "subject"]) == {"referee", "x"}


def test_answers_are_looked_at(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair, n=30)
    answers = _lines(folder / "answers.jsonl")[:-1]
    answers[0]["finish_reason"] = "length"
    answers[1]["text"] = " "
    answers[2] |= {"text": "I'm sorry, but I can't help with that.", "prompt_id": "p1", "model": "large"}
    answers[3]["text"] = "The capital of this country is a large town by the river, and it is very old."  # p1 is German
    write_lines(folder / "answers.jsonl", answers)
    scores = _lines(folder / "scores.jsonl")
    unread = [{**scores[5], "dimension": name, "score": 0.0} for name in ("completeness", "instruction_following")]
    write_lines(folder / "scores.jsonl", [*scores, *unread])
    result = _audit(folder)
    assert _row(result, "answers_missing")["hits"] == 1
    assert _row(result, "answers_cut")["hits"] == 1
    assert _row(result, "answers_empty")["hits"] == 1
    assert _row(result, "answers_refused", "Germanic")["hits"] == 1
    assert _row(result, "answers_off_language", "Germanic")["hits"] >= 1
    assert np.isnan(_value(result, "answers_unreadable"))  # one report alone is too few
    assert _row(result, "answers_unreadable")["hits"] == 1
    assert _value(result, "checked_by_program") == 1


@pytest.mark.parametrize(
    ("text", "refuses"),
    [
        ("I'm sorry, but I can't assist with that.", True),
        ("I apologize, but I can’t help with that request.", True),
        ("Es tut mir leid, aber ich kann dabei nicht helfen.", True),
        ("抱歉,我无法回答这个问题。", True),
        ("申し訳ありませんが、お答えできません。", True),
        ("申し訳ありませんが、情報が提供されていません。", False),
        ("Als Kind war ich nicht gern am Meer.", False),
        ("The function cannot return None here, since the loop always ends.", False),
        ("", False),
    ],
)
def test_refusals_are_known_by_how_they_open(text: str, refuses: bool) -> None:
    assert opens_with_refusal(text) is refuses


def test_duplicates_and_what_splits_would_leak(tmp_path: Path) -> None:
    prompts = prompt_rows(30)
    copy = {**prompts[0], "source": "other", "prompt_id": "q", "group": None, "turns": prompts[0]["turns"]}
    folder = scores_only(tmp_path / "data", [*prompts, copy], {"small": lambda i: i % 2, "large": lambda i: 1.0 - (i == 30)})
    result = _audit(folder)
    assert _row(result, "cross_source")["hits"] == 2
    assert _row(result, "undeclared_duplicates")["hits"] == 2
    assert _row(result, "near_duplicates")["hits"] == 0
    # Every prompt has two relatives in other languages; the copied one's group has four prompts.
    assert _value(result, "translation_leak") == pytest.approx((27 * 0.96 + 2 * 0.992 + 2 * 0.96) / 31)
    table = result.tables["duplicates"]
    assert table[["prompt_id", "prompt_id_other", "exact", "declared", "crosses_sources"]].to_numpy().tolist() == [
        ["p0", "q", True, False, True]
    ]
    assert not any("Question" in str(value) for value in table.to_numpy().ravel())
    # The same prompt was scored 1 and 0 for large, and 0 and 0 for small.
    assert _row(result, "retest_differs")["hits"] == 1
    assert "not measurable" in _row(result, "split_crossing")["note"]


def test_a_given_split_that_tears_groups_apart_is_caught(tmp_path: Path) -> None:
    prompts = [{**row, "split": "test" if i % 3 == 0 else "train"} for i, row in enumerate(prompt_rows(30))]
    folder = scores_only(tmp_path / "data", prompts, {"small": lambda i: i % 2, "large": lambda i: 1.0})
    result = _audit(folder)
    assert _value(result, "split_crossing") == 1
    assert next(row for row in result.thresholds if row["measure"] == "split_crossing")["verdict"] == "warn"


def test_labels_are_described(tmp_path: Path) -> None:
    folder = scores_only(tmp_path / "data", prompt_rows(40), {"small": lambda i: float(i % 4 == 0), "large": lambda i: float(i % 4 < 3)})
    result = _audit(folder)  # the pair is evident: two models, one kind of score
    assert _value(result, "adds_value") == 0.5
    assert _value(result, "both_fail") == 0.25
    assert _value(result, "both_solve") == 0.25
    assert _value(result, "no_information") == 0.5
    assert _value(result, "mean_gap") == 0.5
    swapped = _audit(folder, pairs=(Pair(("large",), ("small",)),))
    assert _value(swapped, "weak_better") == 0.5
    with pytest.raises(InvalidInput, match=r"unknown model 'smal'.*did you mean 'small'"):
        _audit(folder, pairs=(Pair(("smal",), ("large",)),))


def test_a_label_that_rests_on_form_alone_is_told(tmp_path: Path) -> None:
    prompts = prompt_rows(40)
    folder = scores_only(tmp_path / "data", prompts, {"small": lambda i: 0.2, "large": lambda i: 0.6}, kind="quality")
    rows = _lines(folder / "outcomes.jsonl")
    correct = [outcome(p, m, float(m == "large" and i < 10), "correctness") for i, p in enumerate(prompts) for m in ("small", "large")]
    write_lines(folder / "outcomes.jsonl", rows + correct)
    result = _audit(folder, pairs=(Pair(("small",), ("large",), score_kinds=("quality",)),))
    assert _value(result, "adds_without_correctness") == 0.75


def test_constant_labels_get_a_statement(tmp_path: Path) -> None:
    folder = scores_only(tmp_path / "data", prompt_rows(30), {"small": lambda i: 0.5, "large": lambda i: 0.5})
    result = _audit(folder)
    assert _value(result, "constant_kinds") == 1
    assert _value(result, "adds_value") == 0
    assert _value(result, "no_information") == 1
    assert "own: exact_match is 0.5 everywhere: no variance" in result.notes
    assert any("nothing can be learned there" in note for note in result.notes)


def test_a_family_of_three_rows_has_counts_and_no_figure(tmp_path: Path) -> None:
    prompts = prompt_rows(33)
    for row in prompts:
        row["language"] = "ta" if row["prompt_id"] in ("p1", "p4", "p7") else "en"
    folder = scores_only(tmp_path / "data", prompts, {"small": lambda i: 0.0, "large": lambda i: float(i % 2)})
    result = _audit(folder)
    row = _row(result, "adds_value", "Dravidian")
    assert np.isnan(row["value"])
    assert (row["hits"], row["n"]) == (2, 3)
    assert row["note"] == "too few rows: 3, at least 10 are needed"
    assert _row(result, "small_families")["hits"] == 1
    assert any("Dravidian 3" in note for note in result.notes)


def test_kinds_of_score_are_compared_within_a_source(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    prompts = prompt_rows(40)
    rows = []
    for prompt in prompts:
        hard = rng.random() / 2
        for model in ("tiny-model", "mid-model", "big-model"):
            truth = hard + rng.random() / 2
            rows += [
                outcome(prompt, model, truth, "judge_a"),
                outcome(prompt, model, truth**2, "judge_b"),
                outcome(prompt, model, rng.random(), "metric"),
            ]
            own = min(1.0, truth + 0.5 * (model == "big-model"))
            rows.append(outcome(prompt, model, own, "judge_big-model"))
    folder = tmp_path / "data"
    folder.mkdir()
    write_lines(folder / "prompts.jsonl", prompts)
    write_lines(folder / "outcomes.jsonl", rows)
    result = _audit(folder)
    pairs = result.estimates[result.estimates["slice_kind"] == "source"].set_index(["subject", "measure"])["value"]
    assert pairs["judge_a and judge_b", "kinds_spearman"] == pytest.approx(1)
    assert pairs["judge_a and judge_b", "kinds_within_prompt"] > 0.95
    assert abs(pairs["judge_a and metric", "kinds_within_prompt"]) < 0.3
    assert pairs["judge_big-model on big-model", "self_preference"] > 0.2
    assert 0.2 < _value(result, "kinds_alpha") < 0.9
    warned = {row["subject"] for row in result.thresholds if row["measure"] == "kinds_within_prompt" and row["verdict"] == "warn"}
    assert "judge_a and metric" in warned


def test_scores_alone_say_what_is_missing(tmp_path: Path) -> None:
    result = _audit(scores_only(tmp_path / "data", prompt_rows(30), {"small": lambda i: 0.0, "large": lambda i: float(i % 2)}))
    assert any("only prompts and outcomes" in note for note in result.notes)
    for measure in ("swap_consistency", "length_slope", "answers_cut", "kinds_alpha", "judge_picks_right"):
        assert _row(result, measure)["note"].startswith("not measurable: ")
    assert not result.failed


def test_a_run_without_a_verdict(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair)
    (folder / "judgements.jsonl").write_text("")
    result = _audit(folder)
    assert _row(result, "swap_consistency")["note"] == "not measurable: no judge's verdicts are here"
    assert np.isfinite(_value(result, "length_slope_checked"))


def test_missing_scores_are_counted_by_model(tmp_path: Path) -> None:
    folder = scores_only(tmp_path / "data", prompt_rows(30), {"small": lambda i: 0.0, "large": lambda i: float(i % 2)})
    rows = [row for row in _lines(folder / "outcomes.jsonl") if not (row["model"] == "small" and row["prompt_id"] in ("p1", "p2"))]
    write_lines(folder / "outcomes.jsonl", [row for row in rows if row["prompt_id"] != "p3"])
    result = _audit(folder)
    assert _row(result, "prompts_without_score")["hits"] == 1
    assert _row(result, "scores_missing")["hits"] == 2
    models = result.tables["models"].set_index("model")["without_score"]
    assert models.to_dict() == {"small": 2, "large": 0}


def test_tables_as_parquet_and_equal_audits_are_equal(tmp_path: Path) -> None:
    folder = label_run(tmp_path / "run", fair, n=30)
    for stem in ("prompts", "outcomes"):
        frame = pd.DataFrame(_lines(folder / f"{stem}.jsonl"))
        frame.map(lambda v: json.dumps(v) if isinstance(v, list | dict) else v).to_parquet(folder / f"{stem}.parquet")
        (folder / f"{stem}.jsonl").unlink()
    one, other = _audit(folder), _audit(folder)
    pd.testing.assert_frame_equal(one.estimates, other.estimates)
    assert one.thresholds == other.thresholds
    assert _value(one, "swap_consistency") == 1
