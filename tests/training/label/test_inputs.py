import datetime as dt
import json

import pandas as pd
import pytest

from router.errors import InvalidInput, LabelError
from training.label.config import RULES, config_from_mapping, load_config, override
from training.label.prompts import load_prompts
from training.label.run import prompts_table

ASK = {"role": "user", "content": "سلام"}
GOOD = {"prompt_id": "a", "messages": [ASK], "language": "fa"}


def write(path, *rows):
    path.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n", encoding="utf-8")
    return path


def test_jsonl_folder_and_parquet_hold_the_same(tmp_path):
    rows = [{**GOOD, "prompt_id": f"p{i}", "grader": {"kind": "numeric", "answer": i}} for i in range(3)]
    folder = tmp_path / "folder"
    folder.mkdir()
    write(folder / "a.jsonl", *rows[:2])
    write(folder / "b.jsonl", rows[2])
    one = load_prompts(write(tmp_path / "all.jsonl", *rows))
    prompts_table(one).to_parquet(tmp_path / "all.parquet")
    assert load_prompts(folder) == one
    again = load_prompts(tmp_path / "all.parquet")
    assert [(p.prompt_id, p.hash, p.grader) for p in again] == [(p.prompt_id, p.hash, p.grader) for p in one]


def test_what_a_former_run_wrote_is_read_again(tmp_path, make_prompts, server, make_config, run_label):
    prompts = make_prompts(GOOD | {"max_tokens": 16}, GOOD | {"prompt_id": "b"})
    run_label(make_config(server.url), prompts)
    for path in (tmp_path / "run", tmp_path / "run" / "prompts.parquet"):
        again = load_prompts(path)
        assert [(p.prompt_id, p.hash, p.grader, p.language, p.max_tokens) for p in again] == [
            (p.prompt_id, p.hash, p.grader, p.language, p.max_tokens) for p in prompts
        ]
        assert [type(p.max_tokens) for p in again] == [int, type(None)]


def test_everything_in_the_format_is_read(tmp_path):
    turns = json.dumps([ASK], ensure_ascii=False)
    row = {
        "source": "own",
        "prompt_id": 7,
        "turns": turns,
        "license": "CC0-1.0",
        "n_turns": 1,
        "grader": '{"kind": "numeric", "answer": 1}',
    }
    (prompt,) = load_prompts(write(tmp_path / "p.ndjson", row))
    assert (prompt.source, prompt.prompt_id, prompt.messages, prompt.licence) == ("own", "7", (ASK,), "CC0-1.0")
    assert prompt.grader == {"kind": "numeric", "answer": 1}
    folder = tmp_path / "tables"
    folder.mkdir()
    pd.DataFrame([{**row, "turns": [ASK]}]).to_parquet(folder / "prompts.parquet")
    write(folder / "answers.jsonl", {"no": "prompt"})
    assert load_prompts(folder) == [prompt]


def test_graders_may_share_an_object_column(tmp_path):
    graders = [{"kind": "numeric", "answer": 3}, {"kind": "contains", "all": [["x"]]}]
    pd.DataFrame([{**GOOD, "prompt_id": str(i), "grader": g} for i, g in enumerate(graders)]).to_parquet(tmp_path / "p.parquet")
    assert [prompt.grader for prompt in load_prompts(tmp_path / "p.parquet")] == graders


def test_tools_listed_in_a_system_turn_are_offered_as_tools(tmp_path):
    tool = {"name": "convert", "parameters": {"type": "object"}}
    system = {"role": "system", "content": f"You can call these tools:\n{json.dumps(tool)}"}
    row = {**GOOD, "messages": [system, ASK], "grader": {"kind": "tool_call", "name": "convert"}}
    (prompt,) = load_prompts(write(tmp_path / "p.jsonl", row))
    assert prompt.messages == (ASK,)
    assert prompt.tools == ({"type": "function", "function": tool},)


def test_stored_answers_stay_those_of_their_prompts(make_prompts):
    tool = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
    plain, equipped = make_prompts(GOOD, {**GOOD, "prompt_id": "b", "tools": [tool]})
    assert (plain.hash, equipped.hash) == ("b0b25cdccc1a50c6", "9954e69246486355")


def test_a_plain_table_of_questions_is_enough(tmp_path):
    pd.DataFrame({"prompt_id": ["1"], "messages": ["Why is the sky blue?"]}).to_parquet(tmp_path / "q.parquet")
    (prompt,) = load_prompts(tmp_path / "q.parquet")
    assert prompt.messages == ({"role": "user", "content": "Why is the sky blue?"},)
    assert prompt.grader["kind"] == "judge"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "x"}, "x.jsonl:1: unknown field 'prompt': there are prompt_id, turns, language"),
        ({"messages": None}, "column 'turns' is missing, there are prompt_id, language"),
        ({"prompt_id": None}, "column 'prompt_id' is missing"),
        ({"prompt_id": True}, "x.jsonl:1: column 'prompt_id' is True; a non-empty text is needed"),
        ({"messages": []}, "x.jsonl:1: column 'turns': messages is empty: at least one message is needed"),
        ({"messages": "[1"}, "x.jsonl:1: column 'turns' is not JSON"),
        ({"messages": [{"role": "human", "content": "x"}]}, "role is 'human': allowed are system, developer, user, assistant, tool"),
        (
            {"messages": [ASK, {"role": "function", "content": "x"}]},
            "role 'function'; allowed are system, developer, user, assistant, tool",
        ),
        ({"messages": [{"role": "user"}, ASK]}, r"turns\[0\] has no content"),
        ({"messages": [ASK, {"role": "assistant", "content": "x"}]}, "x.jsonl:1: the last turn is by 'assistant'"),
        ({"messages": [{"role": "system", "content": "x"}]}, "no user turn with text"),
        ({"language": "Persian, mostly"}, "x.jsonl:1: column 'language': language 'Persian, mostly' is not a BCP-47 tag"),
        ({"source": 3}, "x.jsonl:1: column 'source' is 3; a text or nothing is allowed"),
        ({"max_tokens": 0}, "x.jsonl:1: max_tokens is 0; a whole number from 1 to 1000000 is allowed"),
        ({"max_tokens": 1_000_001}, "x.jsonl:1: max_tokens is 1000001; a whole number from 1 to 1000000 is allowed"),
        ({"max_tokens": 10**30}, "x.jsonl:1: max_tokens is 1"),
        ({"max_tokens": float("inf")}, "x.jsonl:1: max_tokens is inf"),
        ({"max_tokens": "16"}, "x.jsonl:1: max_tokens is '16'"),
        ({"max_tokens": 1.5}, "max_tokens is 1.5"),
        ({"max_tokens": True}, "max_tokens is True"),
        ({"tools": [{"name": "x"}]}, r"tools\[0\] is not an OpenAI function tool"),
        ({"grader": "numeric"}, "x.jsonl:1: column 'grader' is not JSON"),
        (
            {"grader": {"kind": "regex"}},
            "unknown grader kind 'regex': there are numeric, exact, contains, choice, json, tool_call, unit_tests, judge",
        ),
        ({"grader": {"kind": ["numeric"]}}, "unknown grader kind"),
        ({"grader": {"kind": "numeric"}}, "grader 'numeric' lacks 'answer'"),
        ({"grader": {"kind": "numeric", "answer": "4"}}, "answer is '4'; expected a number"),
        ({"grader": {"kind": "numeric", "answer": 4, "tol": 1}}, "unknown field 'tol': there are answer, tolerance"),
        ({"grader": {"kind": "exact", "answers": "x"}}, "answers must be a non-empty list of strings"),
        ({"grader": {"kind": "contains", "all": ["x"]}}, "all must be a non-empty list of lists"),
        ({"grader": {"kind": "choice", "answer": "E", "options": ["A", "B"]}}, "answer 'E' is not among options A, B"),
        ({"grader": {"kind": "json", "schema": {"type": "objekt"}}}, "schema is not a JSON schema"),
        ({"grader": {"kind": "tool_call", "name": "x"}}, "the prompt offers no tools"),
        ({"grader": {"kind": "unit_tests", "entry": "f", "tests": ["assert f("]}}, "is not Python"),
        ({"grader": {"kind": "unit_tests", "entry": "f x", "tests": ["assert 1"]}}, "entry is 'f x'"),
        ({"grader": {"kind": "judge", "rubric": " "}}, "rubric must be a non-empty string"),
    ],
)
def test_a_bad_record_is_named(tmp_path, change, message):
    row = {key: value for key, value in {**GOOD, **change}.items() if value is not None}
    with pytest.raises(InvalidInput, match=message) as caught:
        load_prompts(write(tmp_path / "x.jsonl", row))
    assert "\n" not in str(caught.value)


def test_half_an_emoji_is_replaced_wherever_it_stands(tmp_path):
    half, turns = "a \ud83d", json.dumps([{"role": "user", "content": "b \ud83d"}])
    tool = {"type": "function", "function": {"name": "f", "description": half}}
    row = {
        "prompt_id": half,
        "turns": turns,
        "tools": json.dumps([tool]),
        "reference": half,
        "capability": half,
        "metadata": {half: [half]},
    }
    path = tmp_path / "x.jsonl"
    path.write_text(json.dumps({**row, "grader": {"kind": "exact", "answers": [half]}}))
    (prompt,) = load_prompts(path)
    assert (prompt.prompt_id, prompt.messages[0]["content"], prompt.reference) == ("a \ufffd", "b \ufffd", "a \ufffd")
    json.dumps([vars(prompt)], ensure_ascii=False, default=str).encode()
    prompts_table([prompt]).to_parquet(tmp_path / "x.parquet")


def test_bad_files_are_named(tmp_path):
    def refused(path, message):
        with pytest.raises(InvalidInput, match=message):
            load_prompts(path)

    refused(tmp_path / "gone.jsonl", r"gone\.jsonl: no such file or folder")
    refused(write(tmp_path / "x.csv", GOOD), r"files ending in \.csv are not read; allowed are \.parquet, \.jsonl, \.ndjson")
    refused(
        write(tmp_path / "twice.jsonl", {**GOOD, "source": "x"}, {**GOOD, "source": "y"}), "twice.jsonl:2: prompt_id 'a' stands already"
    )


def test_a_byte_order_mark_is_no_trouble(tmp_path):
    path = tmp_path / "bom.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + json.dumps(GOOD).encode())
    assert load_prompts(path)[0].prompt_id == "a"


MODELS = [
    {"name": "big", "role": "strong", "base_url": "http://h/v1"},
    {"name": "small", "role": "weak", "base_url": "http://h/v1"},
]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, r"no \[\[models\]\] entry"),
        ({"models": MODELS[:1]}, "no model has role 'weak'"),
        ({"models": [*MODELS, {**MODELS[0], "name": "x"}]}, "more than one model has role 'strong'"),
        ({"models": [MODELS[0], {**MODELS[1], "name": "big"}]}, "model name 'big' is used twice"),
        ({"models": [{**MODELS[0], "role": "boss"}]}, "role 'boss' is unknown; allowed: weak, strong, pool, judge"),
        ({"models": [{**MODELS[0], "base_url": "localhost:80"}]}, "base_url 'localhost:80' is not a URL"),
        ({"models": [{**MODELS[0], "url": "x"}]}, "unknown setting 'url': there are name, role, base_url"),
        ({"models": [{**MODELS[0], "tool_mode": "auto"}]}, "tool_mode 'auto' is unknown; allowed: native, prompt"),
        ({"models": [{**MODELS[0], "concurrency": 0}]}, "concurrency is 0"),
        ({"models": [{**MODELS[0], "price_in_per_mtok": -1}]}, "price_in_per_mtok is -1"),
        ({"models": MODELS, "run": {"temprature": 0}}, "did you mean 'temperature'"),
        ({"models": MODELS, "run": {"retries": "many"}}, "retries is 'many'; allowed: a whole number from 0 to 1000"),
        ({"models": MODELS, "budget": {"usd": -1}}, "usd is -1; allowed: a number from 0"),
        ({"models": MODELS, "prompts": {"source": 3}}, "source is 3; allowed: a non-empty string"),
        ({"models": MODELS, "quality_weights": {"style": 1}}, "unknown dimension 'style': there are correctness"),
        ({"models": MODELS, "quality_weights": {"clarity": 0}}, "all weights are 0"),
    ],
)
def test_a_bad_configuration_is_named(table, message):
    with pytest.raises(LabelError, match=message) as caught:
        config_from_mapping(table, "label.toml")
    assert str(caught.value).startswith("label.toml")


NUMBERS = (float("nan"), float("inf"), float("-inf"), -1, True, "1", [1], {})
TEXTS = (3, True, "", " ", [], {})
BAD = {
    "models": {
        **dict.fromkeys(("name", "role", "base_url", "model", "api_key_env", "tool_mode"), TEXTS),
        **dict.fromkeys(("price_in_per_mtok", "price_out_per_mtok"), (*NUMBERS, 1e7)),
        "concurrency": (*NUMBERS, 0, 1.5),
        "extra_body": (3, "x", [1], {"a": [float("nan")]}, {"a": {"b": dt.date(2026, 1, 1)}}),
    },
    "run": {
        **dict.fromkeys(("max_tokens", "judge_max_tokens"), (*NUMBERS, 0, 1.0, 1_000_001)),
        **dict.fromkeys(("seed", "retries"), (*NUMBERS, 1.5, 10**30)),
        "timeout_s": (*NUMBERS, 0),
        "temperature": (*NUMBERS, 10**400),
        **dict.fromkeys(("models_at_once", "judge_everything"), (1, "true")),
    },
    "budget": {"usd": NUMBERS, "tokens": (*NUMBERS, 1.5)},
    "prompts": {"source": TEXTS, "licence": TEXTS},
    "quality_weights": {"clarity": (*NUMBERS, 1e308)},
}


@pytest.mark.parametrize(("section", "name"), [(section, name) for section, names in BAD.items() for name in names])
def test_every_setting_is_checked(section, name):
    assert set(BAD["models"]) == set(RULES["models"])
    for value in BAD[section][name]:
        changed = {"models": [{**MODELS[0], name: value}, MODELS[1]]} if section == "models" else {"models": MODELS, section: {name: value}}
        with pytest.raises(LabelError, match=rf"^label\.toml \[+{section}\]+.*: {name} is .*; allowed: "):
            config_from_mapping(changed, "label.toml")


@pytest.mark.parametrize("section", list(BAD))
@pytest.mark.parametrize("value", [3, "x", True, [3], ["x"]])
def test_a_section_of_another_kind_is_refused(section, value):
    with pytest.raises(LabelError, match=r"^label\.toml.* is .*; allowed: "):
        config_from_mapping({"models": MODELS, section: value}, "label.toml")


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://h:x/v1", "http://h:99999/v1", "http://", "http://a b/v1", "http://h/v1\n", "ftp://h"]
)
def test_addresses_that_cannot_be_are_refused(url):
    with pytest.raises(LabelError, match="is not a URL; expected something like"):
        config_from_mapping({"models": [{**MODELS[0], "base_url": url}, MODELS[1]]}, "label.toml")


def test_budgets_by_flag_are_finite():
    config = config_from_mapping({"models": MODELS}, "label.toml")
    with pytest.raises(LabelError, match="--max-usd: budget usd is nan; allowed: a number from 0"):
        override(config, usd=float("nan"), tokens=None, concurrency=None)


def test_configuration_files(tmp_path, monkeypatch):
    with pytest.raises(LabelError, match="does not exist"):
        load_config(tmp_path / "label.toml")
    (tmp_path / "label.toml").write_text("[[models]\n")
    with pytest.raises(LabelError, match="cannot be read as TOML"):
        load_config(tmp_path / "label.toml")
    lines = [f'[[models]]\nname = "{m["name"]}"\nrole = "{m["role"]}"\nbase_url = "http://h/v1"\napi_key_env = "THE_KEY"\n' for m in MODELS]
    (tmp_path / "label.toml").write_text("".join(lines))
    config = load_config(tmp_path / "label.toml")
    monkeypatch.delenv("THE_KEY", raising=False)
    with pytest.raises(LabelError, match="environment variable 'THE_KEY'"):
        config.strong.api_key()
    monkeypatch.setenv("THE_KEY", "secret")
    assert config.strong.api_key() == "secret"
    monkeypatch.setenv("THE_KEY", "secr\u00e9t")
    with pytest.raises(LabelError, match="holds more than a key"):
        config.strong.api_key()
    assert "secret" not in json.dumps(config.public())
