import json

import pandas as pd
import pytest

from router.errors import LabelError
from training.label.config import config_from_mapping, load_config
from training.label.prompts import load_prompts
from training.label.run import prompts_table

GOOD = {"prompt_id": "a", "messages": [{"role": "user", "content": "سلام"}], "language": "fa"}


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


def test_a_plain_table_of_questions_is_enough(tmp_path):
    pd.DataFrame({"prompt_id": ["1"], "messages": ["Why is the sky blue?"]}).to_parquet(tmp_path / "q.parquet")
    (prompt,) = load_prompts(tmp_path / "q.parquet")
    assert prompt.messages == ({"role": "user", "content": "Why is the sky blue?"},)
    assert prompt.grader["kind"] == "judge"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompt": "x"}, "x.jsonl:1: unknown field 'prompt'; allowed: prompt_id, messages, language"),
        ({"messages": None}, "x.jsonl:1: field 'messages' is missing; present:"),
        ({"prompt_id": None}, "field 'prompt_id' is missing"),
        ({"prompt_id": 7}, "field 'prompt_id' is 7; expected a non-empty string"),
        ({"messages": []}, "messages must be a non-empty list"),
        ({"messages": [{"role": "human", "content": "x"}]}, "role 'human'; allowed: system, developer, user, assistant, tool"),
        ({"messages": [{"role": "user"}]}, r"messages\[0\] has no content"),
        ({"messages": [{"role": "assistant", "content": "x"}]}, "the last message is by 'assistant'"),
        ({"max_tokens": 0}, "max_tokens is 0; allowed: a whole number from 1"),
        ({"tools": [{"name": "x"}]}, r"tools\[0\] is not an OpenAI function tool"),
        (
            {"grader": {"kind": "regex"}},
            "unknown grader kind 'regex'; allowed: numeric, exact, contains, choice, json, tool_call, unit_tests, judge",
        ),
        ({"grader": {"kind": ["numeric"]}}, "unknown grader kind"),
        ({"grader": {"kind": "numeric"}}, "grader 'numeric' lacks 'answer'"),
        ({"grader": {"kind": "numeric", "answer": "4"}}, "answer is '4'; expected a number"),
        ({"grader": {"kind": "numeric", "answer": 4, "tol": 1}}, "unknown field 'tol'; allowed: answer, tolerance"),
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
    with pytest.raises(LabelError, match=message) as caught:
        load_prompts(write(tmp_path / "x.jsonl", row))
    assert "\n" not in str(caught.value)


def test_bad_files_are_named(tmp_path):
    def refused(path, message):
        with pytest.raises(LabelError, match=message):
            load_prompts(path)

    refused(tmp_path / "gone.jsonl", "gone.jsonl' do not exist")
    refused(write(tmp_path / "x.csv", GOOD), "ends in '.csv'; allowed: .jsonl")
    empty = tmp_path / "empty.jsonl"
    empty.write_text("\n\n")
    refused(empty, "hold no prompt")
    folder = tmp_path / "folder"
    folder.mkdir()
    refused(folder, "holds no .jsonl file")
    broken = tmp_path / "broken.jsonl"
    broken.write_bytes(json.dumps(GOOD).encode() + b'\n{"prompt_id": "\xff"}\n')
    refused(broken, r"broken\.jsonl:2: not UTF-8 \(byte 15 is 0xff\)")
    broken.write_bytes(b"[1]\n")
    refused(broken, "broken.jsonl:1: expected a JSON object, got list")
    broken.write_bytes(b"{'a': 1}\n")
    refused(broken, "broken.jsonl:1: not JSON")
    refused(write(tmp_path / "twice.jsonl", GOOD, GOOD), "twice.jsonl:2: prompt_id 'a' was already used at twice.jsonl:1")
    fake = tmp_path / "fake.parquet"
    fake.write_text("no table")
    refused(fake, "is not a readable Parquet file")


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
        ({"models": [{**MODELS[0], "url": "x"}]}, "unknown setting 'url'; allowed: name, role, base_url"),
        ({"models": [{**MODELS[0], "tool_mode": "auto"}]}, "tool_mode 'auto' is unknown; allowed: native, prompt"),
        ({"models": [{**MODELS[0], "concurrency": 0}]}, "concurrency is 0"),
        ({"models": [{**MODELS[0], "price_in_per_mtok": -1}]}, "price_in_per_mtok is -1"),
        ({"models": MODELS, "run": {"temprature": 0}}, "did you mean 'temperature'"),
        ({"models": MODELS, "run": {"retries": "many"}}, "retries is 'many'; allowed: a number"),
        ({"models": MODELS, "budget": {"usd": -1}}, "usd is -1; allowed: a number from 0"),
        ({"models": MODELS, "prompts": {"source": 3}}, "source is 3; expected a non-empty string"),
        ({"models": MODELS, "quality_weights": {"style": 1}}, "unknown dimension 'style'; allowed: correctness"),
        ({"models": MODELS, "quality_weights": {"clarity": 0}}, "all weights are 0"),
    ],
)
def test_a_bad_configuration_is_named(table, message):
    with pytest.raises(LabelError, match=message):
        config_from_mapping(table, "label.toml")


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
    assert "secret" not in json.dumps(config.public())
