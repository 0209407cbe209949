import json

import pandas as pd
import pytest

from router.errors import LabelError
from training.label.graders import Answer
from training.label.judge import MAX_ANSWER_CHARS, cut, judge_messages, parse_verdicts


def marks(value):
    return dict.fromkeys(("correctness", "completeness", "instruction_following", "clarity"), value)


def answers_then_marks(judge):
    """The two models answer with their names; the judge's marks come from ``judge(first answer, second answer)``."""

    def answer(request):
        if request["model"] != "referee":
            return f"An answer by {request['model']}."
        text = request["messages"][-1]["content"]
        names = [text.split(f"[ANSWER {side}]\nAn answer by ")[1].split(".")[0] for side in "AB"]
        a, b = judge(*names)
        return json.dumps({"A": marks(a), "B": marks(b)})

    return answer


def scores(path, dimension="correctness"):
    frame = pd.read_parquet(path / "outcomes.parquet")
    return frame[frame.score_kind == dimension].set_index("model").score.to_dict()


def test_both_orders_are_asked_and_averaged(server, make_judged, make_config, run_label, tmp_path):
    quality = {"big": 4, "small": 2}
    server.answer = answers_then_marks(lambda first, second: (quality[first] + 1, quality[second]))  # favours the first by one mark
    report = run_label(make_config(server.url, judge=True), [make_judged()])
    assert (report.verdicts, report.verdicts_wanted) == (2, 2)
    assert scores(tmp_path / "run") == {"big": (1.0 + 0.75) / 2, "small": (0.5 + 0.25) / 2}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["judge_orders_agree"] == 1.0


def test_a_judge_that_only_likes_the_first_gives_no_winner_and_is_recorded(server, make_judged, make_config, run_label, tmp_path, lines):
    server.answer = answers_then_marks(lambda first, second: (5, 1))
    run_label(make_config(server.url, judge=True), [make_judged()])
    assert scores(tmp_path / "run") == {"big": 0.5, "small": 0.5}
    assert pd.read_parquet(tmp_path / "run" / "deltas.parquet").delta_quality.tolist() == [0.0]
    assert json.loads((tmp_path / "run" / "run.json").read_text())["judge_orders_agree"] == 0.0
    assert {row["detail"] for row in lines(tmp_path / "run" / "scores.jsonl")} == {"orders disagree"}


def test_every_pool_answer_meets_the_strong_one(server, make_judged, make_config, run_label, tmp_path):
    quality = {"big": 5, "small": 3, "tiny": 1}
    server.answer = answers_then_marks(lambda first, second: (quality[first], quality[second]))
    report = run_label(make_config(server.url, judge=True, pool=True), [make_judged()])
    assert report.verdicts_wanted == 4
    assert scores(tmp_path / "run") == {"big": 1.0, "small": 0.5, "tiny": 0.0}
    deltas = pd.read_parquet(tmp_path / "run" / "deltas.parquet").set_index("weak").delta_quality
    assert deltas.to_dict() == {"small": 0.5, "tiny": 1.0}


def test_judging_again_asks_the_judge_alone(server, make_judged, make_config, run_label):
    server.answer = answers_then_marks(lambda first, second: (3, 3))
    prompt = make_judged()
    run_label(make_config(server.url, judge=True), [prompt])
    server.requests.clear()
    run_label(make_config(server.url, judge=True), [prompt])
    assert server.requests == []
    from dataclasses import replace

    run_label(make_config(server.url, judge=True), [replace(prompt, grader={"kind": "judge", "rubric": "another rubric"})])
    assert [request["model"] for request in server.requests] == ["referee", "referee"]


def test_without_a_judge_such_prompts_get_no_score(server, make_judged, make_config, run_label, tmp_path):
    report = run_label(make_config(server.url), [make_judged()])
    assert report.outcomes == 0
    assert pd.read_parquet(tmp_path / "run" / "outcomes.parquet").empty


def test_a_server_without_response_format_is_asked_without(server, make_judged, make_config, run_label):
    server.answer = answers_then_marks(lambda first, second: (3, 3))
    server.reply = lambda request: (400, "application/json", '{"error": "no response_format"}') if "response_format" in request else None
    assert run_label(make_config(server.url, judge=True, concurrency=1), [make_judged()]).verdicts == 2


def test_a_babbling_judge_is_a_failure_not_a_crash(server, make_judged, make_config, run_label, tmp_path, lines):
    server.answer = lambda request: "I like both."
    with pytest.raises(LabelError, match=r"the judge answered none of 2 questions; .*gave no scores.* every answer is kept"):
        run_label(make_config(server.url, judge=True), [make_judged()])
    assert len(lines(tmp_path / "run" / "answers.jsonl")) == 2
    assert pd.read_parquet(tmp_path / "run" / "outcomes.parquet").empty
    assert "gave no scores: 'I like both.'" in lines(tmp_path / "run" / "failures.jsonl")[0]["error"]


def test_a_judge_that_fails_leaves_the_tables_of_an_earlier_one(server, make_judged, make_config, run_label, tmp_path):
    server.answer = answers_then_marks(lambda first, second: (3, 3))
    run_label(make_config(server.url, judge=True), [make_judged()])
    before = (tmp_path / "run" / "outcomes.parquet").read_bytes()
    server.reply = lambda request: (500, "application/json", "{}")
    changed = [make_judged(grader={"kind": "judge", "rubric": "another"})]
    with pytest.raises(LabelError, match="the tables stay as they were"):
        run_label(make_config(server.url, judge=True), changed)
    with pytest.raises(LabelError, match=r"cannot be reached .* every answer is kept"):
        run_label(make_config("http://127.0.0.1:9/v1", judge=True), changed)
    assert (tmp_path / "run" / "outcomes.parquet").read_bytes() == before


def test_program_scores_stand_where_everything_is_judged(server, prompts, make_config, run_label, tmp_path, lines):
    server.answer = lambda request: json.dumps({"A": marks(1), "B": marks(1)}) if request["model"] == "referee" else "40"
    run_label(make_config(server.url, judge=True, run={"judge_everything": True}), prompts[:1])
    by = {row["dimension"]: row["by"] for row in lines(tmp_path / "run" / "scores.jsonl")}
    assert by["correctness"] == "numeric"
    assert by["clarity"] == "judge:referee"


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"A": marks(1), "B": marks(5)}),
        "Scores:\n```json\n" + json.dumps({"a": marks(1), "b": marks("5")}) + "\n```",
        json.dumps({"Answer A": marks(1.0), "Answer B": marks(5)}),
        "{} then " + json.dumps({"A": {**marks(1), "reason": "x"}, "B": marks(5)}),
    ],
)
def test_verdicts_are_read_tolerantly(text):
    verdicts = parse_verdicts(text)
    assert verdicts is not None
    assert (verdicts[0].mean, verdicts[1].mean) == (0.0, 1.0)


@pytest.mark.parametrize(
    "text", ["", "A wins", json.dumps({"A": marks(1)}), json.dumps({"A": marks(0), "B": marks(6)}), '{"A": 1, "B": 2}']
)
def test_other_verdicts_are_refused(text):
    assert parse_verdicts(text) is None


def test_the_judge_prompt_is_bounded_and_says_what_was_cut(make_judged):
    prompt = make_judged(messages="x" * 100_000, reference="y" * 100_000)
    messages = judge_messages(prompt, Answer("a" * 100_000), Answer(""))
    assert sum(len(message["content"]) for message in messages) < 20_000
    assert f"[... {100_000 - MAX_ANSWER_CHARS} characters cut ...]" in messages[1]["content"]
    assert "(empty answer)" in messages[1]["content"]
    assert cut("short", 10) == "short"
