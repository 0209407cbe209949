import errno
import json
import threading
import time

import pandas as pd
import pytest

from router.errors import LabelError
from training.label.budget import BudgetReached, Ledger
from training.label.client import EndpointUnusable
from training.label.config import Budget, override
from training.label.output import WRITTEN, held
from training.label.store import JsonlStore, write_jsonl

HTML = "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>"


def right_answer(request):
    number = int(request["messages"][-1]["content"].rstrip("?").split("+")[1])
    return str(40 + number) if request["model"] == "big" or number % 2 else "no idea"


def test_from_prompts_to_outcomes_and_deltas(server, prompts, make_config, run_label, tmp_path):
    server.answer = right_answer
    report = run_label(make_config(server.url), prompts)
    assert (report.answers, report.answers_wanted, report.failures) == (12, 12, 0)
    outcomes = pd.read_parquet(tmp_path / "run" / "outcomes.parquet")
    assert list(outcomes.columns) == ["source", "prompt_id", "model", "score_kind", "score", "cost_usd"]
    assert outcomes["score"].between(0, 1).all()
    correct = outcomes[outcomes.score_kind == "correctness"].groupby("model").score.mean()
    assert correct.to_dict() == {"big": 1.0, "small": 0.5}
    assert outcomes[outcomes.model == "big"].cost_usd.iloc[0] == pytest.approx((10 * 1.0 + 5 * 2.0) / 1e6)
    deltas = pd.read_parquet(tmp_path / "run" / "deltas.parquet").set_index("prompt_id")
    assert deltas.loc["n1", "delta_quality"] == 0.0
    assert deltas.loc["n2", "delta_correctness"] == 1.0
    assert deltas.loc["n2", "delta_quality"] == pytest.approx(1.0)
    assert set(deltas.capability) == {"reasoning"}
    table = pd.read_parquet(tmp_path / "run" / "prompts.parquet")
    assert {"source", "prompt_id", "language", "family", "task_kind", "turns", "n_turns", "licence"} <= set(table.columns)
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    assert card["answers"]["big"]["completion_tokens"] == 30
    assert server.url not in json.dumps(card)


def test_tables_name_the_source(server, prompts, make_config, run_label, tmp_path):
    from dataclasses import replace

    from training.label.config import PromptDefaults

    config = replace(make_config(server.url), prompts=PromptDefaults("ours", "CC0-1.0"))
    run_label(config, [replace(prompts[0], source="theirs"), prompts[1]])
    table = pd.read_parquet(tmp_path / "run" / "prompts.parquet")
    assert table.source.tolist() == ["theirs", "ours"]
    assert table.licence.tolist() == ["CC0-1.0", "CC0-1.0"]
    assert set(pd.read_parquet(tmp_path / "run" / "outcomes.parquet").source) == {"theirs", "ours"}


def test_a_second_run_asks_nothing_and_changes_nothing(server, prompts, make_config, run_label, tmp_path):
    config = make_config(server.url)
    run_label(config, prompts)
    asked, before = len(server.requests), (tmp_path / "run" / "outcomes.parquet").read_bytes()
    report = run_label(config, prompts)
    assert len(server.requests) == asked
    assert report.tokens == 0
    assert (tmp_path / "run" / "outcomes.parquet").read_bytes() == before


def test_a_reworded_prompt_is_asked_anew_and_a_regraded_one_is_not(server, prompts, make_config, run_label, tmp_path):
    from dataclasses import replace

    config = make_config(server.url)
    run_label(config, prompts)
    asked = len(server.requests)
    regraded = [replace(prompts[0], grader={"kind": "numeric", "answer": 42}), *prompts[1:]]
    run_label(config, regraded)
    assert len(server.requests) == asked
    outcomes = pd.read_parquet(tmp_path / "run" / "outcomes.parquet")
    assert outcomes[(outcomes.prompt_id == "n0") & (outcomes.score_kind == "correctness")].score.tolist() == [1.0, 1.0]
    reworded = [replace(prompts[0], messages=({"role": "user", "content": "40 + 0 = ?"},)), *prompts[1:]]
    run_label(config, reworded)
    assert len(server.requests) == asked + 2


def test_a_higher_token_limit_asks_again_only_for_what_was_cut(server, prompts, make_config, run_label, tmp_path):
    from dataclasses import replace

    config = make_config(server.url)
    server.finish_reason = lambda request: "length" if request["model"] == "big" and request["max_tokens"] < 20 else "stop"
    run_label(config, prompts)
    asked = len(server.requests)
    run_label(config, prompts)
    assert len(server.requests) == asked  # under the same limit a cut answer stands
    report = run_label(config, [replace(prompt, max_tokens=64) for prompt in prompts])
    again = server.requests[asked:]
    assert {(request["model"], request["max_tokens"]) for request in again} == {("big", 64)}
    assert (len(again), report.answers) == (6, 12)
    card = json.loads((tmp_path / "run" / "run.json").read_text())
    assert card["answers"]["big"]["cut_at_token_limit"] == 0


def test_an_answer_that_was_cut_at_a_lower_limit_stays_in_use_until_it_is_replaced(server, prompts, make_config, run_label, tmp_path):
    from dataclasses import replace

    config = make_config(server.url)
    server.finish_reason = lambda request: "length"
    run_label(config, prompts)
    before = pd.read_parquet(tmp_path / "run" / "outcomes.parquet")
    longer = [replace(prompts[0], max_tokens=64), *prompts[1:]]
    report = run_label(config, longer, stages=("grade",))
    assert (report.answers, report.answers_wanted, report.to_replace) == (12, 12, 2)
    server.reply = lambda request: (500, "application/json", "{}")
    report = run_label(config, longer)
    assert (report.answers, report.failures, report.to_replace) == (12, 2, 2)
    pd.testing.assert_frame_equal(pd.read_parquet(tmp_path / "run" / "outcomes.parquet"), before)
    server.reply = lambda request: None
    assert run_label(config, longer).to_replace == 0


def test_a_run_without_a_usable_answer_is_refused_and_leaves_the_tables(server, prompts, make_config, run_label, tmp_path):
    from dataclasses import replace

    config = make_config(server.url)
    with pytest.raises(LabelError, match=r"holds no answer to these prompts .* name the folder of the earlier run"):
        run_label(config, prompts, stages=("grade",))
    run_label(config, prompts)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    others = [replace(prompt, messages=({"role": "user", "content": "?"},)) for prompt in prompts]
    for options in ({"stages": ("grade",)}, {"stages": ("judge", "grade")}):
        with pytest.raises(LabelError, match="holds no answer to these prompts"):
            run_label(config, others, **options)
    with pytest.raises(LabelError, match="the budget does not cover the first request"):
        run_label(override(config, usd=None, tokens=0, concurrency=None), others)
    server.reply = lambda request: (500, "application/json", "{}")
    with pytest.raises(LabelError, match=r"none of 12 requests was answered; the first: .*HTTP 500"):
        run_label(config, others)
    after = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir() if path.name != "failures.jsonl"}
    assert after == before


def test_a_money_budget_needs_prices(server, prompts, make_config, run_label, tmp_path):
    config = override(make_config(server.url), usd=1.0, tokens=None, concurrency=None)
    with pytest.raises(LabelError, match=r"model 'small' has no price, .* give price_in_per_mtok and price_out_per_mtok"):
        run_label(config, prompts)
    assert server.requests == []
    assert not (tmp_path / "run").exists()
    assert run_label(config, prompts, only=["big"]).answers == 6


def test_a_request_waits_for_those_in_flight_before_the_budget_ends_the_run(server, prompts, make_config, run_label):
    server.delay_s = 0.02
    config = override(make_config(server.url, concurrency=4), usd=None, tokens=280, concurrency=None)
    report = run_label(config, prompts)  # each takes 15 tokens of the about 60 that are reserved for it
    assert (report.answers, report.budget_reached, report.tokens) == (12, False, 180)


@pytest.mark.parametrize("usage", [None, {}, {"prompt_tokens": 0, "completion_tokens": 0}])
def test_a_server_that_reports_no_usage_is_charged_at_an_estimate(usage, server, prompts, make_config, run_label):
    server.answer = lambda request: "a rather long answer " * 5
    server.reply = lambda request: (200, "application/json", json.dumps({**server.completion(request), "usage": usage}))
    config = override(make_config(server.url, concurrency=1), usd=None, tokens=200, concurrency=None)
    report = run_label(config, prompts)
    assert report.budget_reached
    assert 0 < report.answers < 5
    assert report.tokens > 50


@pytest.mark.parametrize("tail", [b'{"prompt_id": "n5", "prom', b'{"prompt_id": "n5", "text": "\xe4\xb8'])
def test_a_torn_last_line_costs_one_answer(tail, server, prompts, make_config, run_label, tmp_path):
    config = make_config(server.url)
    run_label(config, prompts)
    path = tmp_path / "run" / "answers.jsonl"
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:-1]) + tail)
    asked = len(server.requests)
    report = run_label(config, prompts)
    assert len(server.requests) == asked + 1
    assert report.answers == 12
    assert all(json.loads(line) for line in path.read_bytes().splitlines())


def test_a_last_line_without_its_newline_is_kept(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"k": "1"}')
    JsonlStore(path, ("k",)).append({"k": "2"})
    assert path.read_text() == '{"k": "1"}\n{"k": "2"}\n'


def test_a_damaged_line_in_the_middle_is_an_error(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"k": "1"}\n{"k":\n{"k": "2"}\n')
    with pytest.raises(LabelError, match=r"a\.jsonl:2 is damaged"):
        JsonlStore(path, ("k",))


def test_the_token_budget_stops_cleanly_and_the_next_run_goes_on(server, prompts, make_config, run_label):
    config = override(make_config(server.url, concurrency=1), usd=None, tokens=150, concurrency=None)
    first = run_label(config, prompts)
    assert first.budget_reached
    assert 0 < first.answers < 12
    assert first.tokens <= 150
    runs = 1
    while run_label(config, prompts).budget_reached:
        runs += 1
        assert runs < 12
    assert len(server.requests) == 12


def test_the_money_budget_counts_reservations():
    ledger = Ledger(Budget(usd=0.001))
    spec = type("Spec", (), {"cost_usd": lambda self, p, c: (p + c) * 1e-5})()
    first = ledger.reserve(spec, 30, 30)
    with pytest.raises(BudgetReached):
        ledger.reserve(spec, 30, 30)
    ledger.settle(first, spec, 10, 10)
    ledger.reserve(spec, 30, 30)
    assert ledger.usd == pytest.approx(0.0002)


def test_a_budget_of_zero_asks_nothing(server, prompts, make_config, run_label, tmp_path):
    run_label(make_config(server.url), prompts)
    asked = len(server.requests)
    config = override(make_config(server.url, run={"seed": 8}), usd=None, tokens=0, concurrency=None)
    with pytest.raises(LabelError, match="the budget does not cover the first request"):
        run_label(config, prompts)
    assert len(server.requests) == asked


def test_concurrency_is_bounded(server, prompts, make_config, run_label):
    server.delay_s = 0.05
    run_label(make_config(server.url, concurrency=2), prompts)
    assert server.most_busy == 2


def test_one_failing_prompt_lands_in_the_failure_list(server, prompts, make_config, run_label, tmp_path, lines):
    server.reply = lambda request: (500, "application/json", '{"error": "boom"}') if "+ 3?" in request["messages"][-1]["content"] else None
    report = run_label(make_config(server.url), prompts)
    assert (report.answers, report.failures) == (10, 2)
    failures = lines(tmp_path / "run" / "failures.jsonl")
    assert {(f["prompt_id"], f["model"]) for f in failures} == {("n3", "big"), ("n3", "small")}
    assert "HTTP 500" in failures[0]["error"]
    server.reply = lambda request: None
    assert run_label(make_config(server.url), prompts).answers == 12
    assert not (tmp_path / "run" / "failures.jsonl").exists()


def test_transient_errors_are_retried(server, prompts, make_config, run_label):
    seen = set()

    def once(request):
        text = request["messages"][-1]["content"] + request["model"]
        if text in seen:
            return None
        seen.add(text)
        return 503, "application/json", "{}"

    server.reply = once
    assert run_label(make_config(server.url, run={"retries": 2}), prompts[:1]).failures == 0


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ((200, "text/html", HTML), "an HTML page instead of JSON; is base_url the /v1 address"),
        ((404, "text/html", HTML), "has no model 'big' or no such path .HTTP 404: an HTML page"),
        ((404, "application/json", '{"error": "model not found"}'), "has no model 'big' .* check model and base_url"),
        ((502, "text/html", HTML), "HTTP 502 with an HTML page"),
        ((401, "application/json", "{}"), "refused the key .HTTP 401.; check api_key_env"),
        ((200, "application/json", "<html>"), "answered with something that is not JSON|HTML page"),
    ],
)
def test_an_endpoint_that_cannot_work_ends_the_run_with_one_line(reply, message, server, prompts, make_config, run_label):
    server.reply = lambda request: reply
    with pytest.raises(EndpointUnusable, match=message) as caught:
        run_label(make_config(server.url), prompts)
    assert "\n" not in str(caught.value)
    assert len(server.requests) <= 5


def test_nobody_listens(prompts, make_config, run_label):
    with pytest.raises(EndpointUnusable, match=r"cannot be reached .*start the server or correct base_url"):
        run_label(make_config("http://127.0.0.1:9/v1"), prompts)


def test_a_slow_answer_times_out_into_the_failure_list(server, prompts, make_config, run_label, tmp_path, lines):
    server.reply = lambda request: time.sleep(3.0) if "+ 1?" in request["messages"][-1]["content"] else None
    report = run_label(make_config(server.url, run={"timeout_s": 1.5}), prompts[:2])
    assert (report.answers, report.failures) == (2, 2)
    assert "no answer within 1.5 s" in lines(tmp_path / "run" / "failures.jsonl")[0]["error"]


def test_an_answer_without_choices_is_a_failure(server, prompts, make_config, run_label):
    empty = (200, "application/json", '{"object": "chat.completion", "choices": []}')
    server.reply = lambda request: empty if "+ 1?" in request["messages"][-1]["content"] else None
    assert run_label(make_config(server.url), prompts[:2]).failures == 2


def odd(message=None, **changes):
    choice = {"index": 0, "message": {"role": "assistant", "content": "42", **(message or {})}, "finish_reason": "stop"}
    return json.dumps({"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], **changes})


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (odd(usage={"prompt_tokens": "10", "completion_tokens": 5}), "reports usage that is no whole number of prompt_tokens"),
        (odd(usage={"prompt_tokens": 10, "completion_tokens": -5}), "no whole number of completion_tokens"),
        (odd(usage="much"), "no whole number of prompt_tokens"),
        (odd({"content": None}), "neither text nor tool calls"),
        (odd({"content": 42}), "neither text nor tool calls"),
        (odd({"content": [{"type": "image_url", "image_url": {}}]}), "neither text nor tool calls"),
        (odd({"content": [{"type": "text", "text": None}]}), "neither text nor tool calls"),
        (odd({"tool_calls": {"name": "f"}}), "neither text nor tool calls"),
        (odd({"tool_calls": [{"function": {"name": None}}]}), "neither text nor tool calls"),
        (odd({"tool_calls": [{"function": {"name": "f", "arguments": [1]}}]}), "neither text nor tool calls"),
        (odd({"tool_calls": [{"function": "f"}]}), "neither text nor tool calls"),
        (odd(choices={"0": "x"}), "without choices"),
        (odd(choices=["x"]), "without choices"),
        (odd(choices=[{"message": "x"}]), "without choices"),
        (odd(choices=3), "without choices"),
        ("[]", "without choices"),
        ('"\\ud83d"', "without choices"),
    ],
)
def test_an_odd_reply_is_a_failure(body, message, server, prompts, make_config, run_label, tmp_path, lines):
    server.reply = lambda request: (200, "application/json", body) if "+ 1?" in request["messages"][-1]["content"] else None
    report = run_label(make_config(server.url), prompts[:2])
    assert (report.answers, report.failures) == (2, 2)
    assert message in lines(tmp_path / "run" / "failures.jsonl")[0]["error"]


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (odd({"content": [{"type": "text", "text": "4"}, {"text": "2"}]}), "42"),
        (odd({"content": "42 \ud83d"}), "42 \ufffd"),
        (odd({"content": None}).replace('"stop"', '"length"'), ""),
    ],
)
def test_an_unusual_reply_with_text_is_read(body, text, server, prompts, make_config, run_label, tmp_path, lines):
    server.reply = lambda request: (200, "application/json", body)
    assert run_label(make_config(server.url), prompts[:1]).failures == 0
    assert [record["text"] for record in lines(tmp_path / "run" / "answers.jsonl")] == [text, text]


@pytest.mark.parametrize(
    "change",
    [
        {"text": ["4"]},
        {"finish_reason": None},
        {"prompt_tokens": "10"},
        {"cost_usd": float("nan")},
        {"tool_calls": [{}]},
        {"model": 3},
        {"at": 1},
    ],
)
def test_a_stored_answer_with_a_wrong_field_is_named(change, server, prompts, make_config, run_label, tmp_path, lines):
    config = make_config(server.url)
    run_label(config, prompts)
    path = tmp_path / "run" / "answers.jsonl"
    records = lines(path)
    records[2] |= change
    path.write_text("\n".join(json.dumps(record) for record in records))
    with pytest.raises(LabelError, match=rf"answers\.jsonl:3 is damaged \('{next(iter(change))}' is .*delete that line"):
        run_label(config, prompts, stages=("grade",))
    path.write_text("5\n")
    with pytest.raises(LabelError, match=r"answers\.jsonl:1 is damaged \(not a JSON object\); delete that line"):
        run_label(config, prompts, stages=("grade",))


def test_a_stored_verdict_with_a_wrong_field_is_named(server, prompts, make_config, run_label, tmp_path):
    (tmp_path / "run").mkdir()
    record = dict.fromkeys(("prompt_id", "pair_hash", "first", "second", "judge"), "x") | {"first_scores": {"clarity": 2}}
    (tmp_path / "run" / "judgements.jsonl").write_text(json.dumps(record) + "\n")
    with pytest.raises(LabelError, match=r"judgements\.jsonl:1 is damaged \('first_scores'"):
        run_label(make_config(server.url), prompts)


@pytest.mark.parametrize("line", [b"[]", b"3", b'{"key": "x"}', b"{", b"\xff", b'{"key": ["x"]}'])
def test_a_damaged_score_is_graded_anew(line, server, prompts, make_config, run_label, tmp_path):
    config = make_config(server.url)
    run_label(config, prompts)
    path = tmp_path / "run" / "scores.jsonl"
    before = path.read_bytes()
    path.write_bytes(line + b"\n" + before.partition(b"\n")[2])
    run_label(config, prompts, stages=("grade",))
    assert path.read_bytes() == before


def test_answers_before_an_interruption_are_kept(server, prompts, make_config, run_label, tmp_path, lines):
    def interrupt(request):
        if "+ 4?" in request["messages"][-1]["content"]:
            raise KeyboardInterrupt
        return "1"

    class Interrupting:
        def __init__(self, model, config):
            from training.label.client import ChatClient

            self.client = ChatClient(model, config.run)

        async def complete(self, messages, **options):
            interrupt({"messages": messages})
            return await self.client.complete(messages, **options)

        async def close(self):
            await self.client.close()

    config = make_config(server.url, concurrency=1)
    with pytest.raises(KeyboardInterrupt):
        run_label(config, prompts, client_factory=lambda model: Interrupting(model, config))
    assert len(lines(tmp_path / "run" / "answers.jsonl")) == 4
    assert run_label(config, prompts).answers == 12


def test_only_answers_with_the_named_model(server, prompts, make_config, run_label):
    run_label(make_config(server.url), prompts, only=["small"], stages=("answer",))
    assert {request["model"] for request in server.requests} == {"small"}
    with pytest.raises(LabelError, match="--only 'gpt' is not a model of this run; models: big, small"):
        run_label(make_config(server.url), prompts, only=["gpt"])


def test_models_answer_one_after_the_other_unless_told(server, prompts, make_config, run_label, tmp_path):
    run_label(make_config(server.url), prompts)
    assert [request["model"] for request in server.requests] == ["big"] * 6 + ["small"] * 6
    server.requests.clear()
    run_label(make_config(server.url, concurrency=1, run={"models_at_once": True}), prompts, tmp_path / "both")
    assert [request["model"] for request in server.requests] not in (["big"] * 6 + ["small"] * 6, ["small"] * 6 + ["big"] * 6)


def test_settings_reach_the_server(server, prompts, make_config, run_label):
    run_label(make_config(server.url, run={"temperature": 0.5, "seed": 3}, extra_body={"top_k": 1}), prompts[:1])
    request = server.requests[0]
    assert (request["temperature"], request["seed"], request["max_tokens"], request["top_k"]) == (0.5, 3, 16, 1)


@pytest.fixture
def tool_prompt(make_prompts):
    tool = {
        "type": "function",
        "function": {"name": "look_up", "parameters": {"type": "object", "properties": {"word": {"type": "string"}}}},
    }
    row = {"prompt_id": "t", "messages": "Look up 'eau'.", "tools": [tool], "grader": {"kind": "tool_call", "name": "look_up"}}
    return make_prompts(row)[0]


def test_tools_are_native_or_written_out(server, make_config, run_label, tool_prompt, tmp_path):
    server.answer = lambda request: '{"name": "look_up", "arguments": {"word": "eau"}}'
    run_label(make_config(server.url), [tool_prompt])
    assert server.requests[0]["tools"][0]["function"]["name"] == "look_up"
    assert len(server.requests[0]["messages"]) == 1
    run_label(make_config(server.url, tool_mode="prompt"), [tool_prompt], tmp_path / "written")
    request = server.requests[-1]
    assert "tools" not in request
    assert request["messages"][0]["role"] == "system"
    assert '"look_up"' in request["messages"][0]["content"]


def test_native_calls_are_stored_and_graded(server, make_config, run_label, tmp_path, lines, tool_prompt):
    def reply(request):
        function = {"name": "look_up", "arguments": '{"word": "eau"}'}
        message = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "type": "function", "function": function}]}
        body = {**server.completion(request), "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}]}
        return 200, "application/json", json.dumps(body)

    server.reply = reply
    run_label(make_config(server.url), [tool_prompt])
    assert lines(tmp_path / "run" / "answers.jsonl")[0]["tool_calls"] == [{"name": "look_up", "arguments": '{"word": "eau"}'}]
    scores = lines(tmp_path / "run" / "scores.jsonl")
    assert [row["score"] for row in scores if row["dimension"] == "correctness"] == [1.0, 1.0]


def test_an_answer_cut_at_its_limit_is_incomplete(server, prompts, make_config, run_label, tmp_path, lines):
    def reply(request):
        body = server.completion(request)
        body["choices"][0]["finish_reason"] = "length"
        return 200, "application/json", json.dumps(body)

    server.reply = reply
    run_label(make_config(server.url), prompts[:1])
    scores = lines(tmp_path / "run" / "scores.jsonl")
    assert {row["score"] for row in scores if row["dimension"] == "completeness"} == {0.5}


def test_nothing_half_written_stays_behind(server, prompts, make_config, run_label, tmp_path):
    run_label(make_config(server.url), prompts)
    names = {path.name for path in (tmp_path / "run").iterdir()}
    assert names == {"answers.jsonl", "scores.jsonl", "prompts.parquet", "outcomes.parquet", "deltas.parquet", "run.json"}
    assert threading.active_count() < 20


@pytest.mark.parametrize("name", WRITTEN)
def test_a_folder_in_the_place_of_a_file_is_named_before_anything_is_asked(name, server, prompts, make_config, run_label, tmp_path):
    (tmp_path / "run" / name).mkdir(parents=True)
    with pytest.raises(LabelError, match=rf"{name} is not a file, and a file is written there"):
        run_label(make_config(server.url), prompts)
    assert server.requests == []


def test_a_failed_first_run_leaves_no_folder(prompts, make_config, run_label, tmp_path):
    with pytest.raises(EndpointUnusable):
        run_label(make_config("http://127.0.0.1:9/v1"), prompts, tmp_path / "a" / "b")
    assert not (tmp_path / "a").exists()
    (tmp_path / "mine").mkdir()
    with pytest.raises(LabelError):
        run_label(make_config("http://127.0.0.1:9/v1"), prompts, tmp_path / "mine", stages=("grade",))
    assert (tmp_path / "mine").exists()


def test_a_second_run_into_a_folder_is_refused_while_the_first_goes_on(server, prompts, make_config, run_label, tmp_path):
    with held(tmp_path / "run"):
        (tmp_path / "run" / "answers.jsonl").write_bytes(b'{"half')
        with pytest.raises(LabelError, match=r"another run is writing to .*run: wait until it ends"):
            run_label(make_config(server.url), prompts)
        assert (tmp_path / "run" / "answers.jsonl").read_bytes() == b'{"half'
    assert run_label(make_config(server.url), prompts).answers == 12


def test_half_an_emoji_goes_through_a_whole_run(server, make_prompts, make_config, run_label, tmp_path):
    server.answer = lambda request: "42 \ud83d"
    rows = [
        {"prompt_id": "a", "messages": "half \ud83d", "grader": {"kind": "exact", "answers": ["42 \ufffd"]}},
        {"prompt_id": "b", "messages": "half \ud83d", "reference": "\ud83d"},
    ]
    with pytest.raises(LabelError, match="gave no scores"):
        run_label(make_config(server.url, judge=True), make_prompts(*rows))
    assert {request["messages"][0]["content"] for request in server.requests if request["model"] != "referee"} == {"half \ufffd"}
    outcomes = pd.read_parquet(tmp_path / "run" / "outcomes.parquet")
    assert set(outcomes[outcomes.score_kind == "correctness"].score) == {1.0}


def test_a_full_disk_names_the_file(tmp_path, monkeypatch):
    def full(handle):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match=r"No space left.*a\.jsonl"):
        JsonlStore(tmp_path / "a.jsonl", ("k",)).append({"k": "1"})
    with pytest.raises(OSError, match=r"No space left.*'[^']*/b\.jsonl'"):
        write_jsonl(tmp_path / "b.jsonl", [])
