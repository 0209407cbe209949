from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from router.errors import InvalidInput
from training.prompts import COLUMNS, load_prompts, to_conversation, to_conversations
from training.tables import write_tables

TOOL = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}


def row(prompt_id: str = "a", text: str = "What is a fjord?", **columns: Any) -> dict[str, Any]:
    return {"source": "own", "prompt_id": prompt_id, "turns": [{"role": "user", "content": text}], **columns}


def write(path: Path, rows: list[Any]) -> Path:
    path.write_text("".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows), encoding="utf-8")
    return path


def test_fills_what_is_left_out(tmp_path: Path) -> None:
    prompts = load_prompts(write(tmp_path / "p.jsonl", [row(text="東京の天気はどうですか。"), row("b", "Τι ώρα είναι;"), row("c")]))
    assert prompts["language"].tolist() == ["ja", "el", "en"]
    assert prompts["family"].tolist() == ["Japonic", "Hellenic", "English"]
    assert prompts["n_turns"].tolist() == [1, 1, 1]
    assert prompts["group"].tolist() == ["own/a", "own/b", "own/c"]
    assert tuple(prompts.columns[: len(COLUMNS)]) == COLUMNS


def test_english_is_apart_from_germanic_whatever_the_table_says(tmp_path: Path) -> None:
    rows = [
        row(language="en-GB", family="Germanic"),
        row("b", "Wie spät ist es?", language="de", family="x"),
        row("c", language="tlh", family="Klingon"),
    ]
    assert load_prompts(write(tmp_path / "p.jsonl", rows))["family"].tolist() == ["English", "Germanic", "Klingon"]


def test_parquet_jsonl_and_folder_give_the_same(tmp_path: Path) -> None:
    rows = [row(category="x", tools=[TOOL], grader={"kind": "numeric", "answer": 3}), row("b", "Zeg eens iets.", group="g")]
    lines = load_prompts(write(tmp_path / "p.jsonl", rows))
    write_tables(tmp_path, {"prompts": lines})
    pd.testing.assert_frame_equal(load_prompts(tmp_path / "prompts.parquet"), lines)
    pd.testing.assert_frame_equal(load_prompts(tmp_path), lines)
    folder = tmp_path / "by-language"
    folder.mkdir()
    write(folder / "a.jsonl", rows[:1])
    write(folder / "b.jsonl", rows[1:])
    pd.testing.assert_frame_equal(load_prompts(folder), lines)


def test_parquet_with_a_list_column(tmp_path: Path) -> None:
    pd.DataFrame([row(), row("b")]).to_parquet(tmp_path / "p.parquet")
    assert load_prompts(tmp_path / "p.parquet")["turns"].iloc[1] == [{"role": "user", "content": "What is a fjord?"}]


def test_parquet_at_any_depth_is_read_as_json_would_be(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "What is a fjord?"}]
    rows = [row(grader={"kind": "exact", "answers": ["a", "b"]}) | {"turns": [{"role": "user", "content": parts}]}]
    pd.DataFrame(rows).to_parquet(tmp_path / "p.parquet")
    (prompt,) = load_prompts(tmp_path / "p.parquet").to_dict("records")
    assert prompt["turns"] == [{"role": "user", "content": parts}]
    assert prompt["grader"] == {"kind": "exact", "answers": ["a", "b"]}


def test_a_question_alone_is_one_user_turn(tmp_path: Path) -> None:
    prompts = load_prompts(write(tmp_path / "p.jsonl", [row() | {"turns": "Hva er en fjord?"}]))
    assert prompts["turns"].iloc[0] == [{"role": "user", "content": "Hva er en fjord?"}]


def test_messages_is_an_alias_and_a_source_can_be_given(tmp_path: Path) -> None:
    raw = {"prompt_id": 7, "messages": [{"role": "user", "content": "Hej"}], "license": "CC0-1.0", "author": "us"}
    prompts = load_prompts(write(tmp_path / "p.jsonl", [raw]), source="own")
    assert prompts.loc[0, ["source", "prompt_id", "licence", "author"]].tolist() == ["own", "7", "CC0-1.0", "us"]


def test_conversation_has_tools_turns_and_language(tmp_path: Path) -> None:
    turns = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Weather in Bergen?"},
    ]
    prompts = load_prompts(write(tmp_path / "p.jsonl", [row(tools=[TOOL]) | {"turns": turns}]))
    conversation = to_conversation(prompts.iloc[0])
    assert [tool.name for tool in conversation.tools] == ["get_weather"]
    assert conversation.user_texts == ("Hi", "Weather in Bergen?")
    assert conversation.language == "en"
    assert prompts["n_turns"].iloc[0] == 2
    assert to_conversations(prompts) == [conversation]


@pytest.mark.parametrize("listed", ['[{"name": "convert", "parameters": {}}]', '{"name": "convert", "parameters": {}}'])
def test_tools_listed_in_a_system_turn_become_tools(tmp_path: Path, listed: str) -> None:
    system = {"role": "system", "content": f"You can call these tools:\n{listed}"}
    turns = [system, {"role": "user", "content": "Convert 5 euros"}]
    prompts = load_prompts(write(tmp_path / "p.jsonl", [row() | {"turns": turns}]))
    assert prompts["tools"].iloc[0] == [{"type": "function", "function": {"name": "convert", "parameters": {}}}]
    (conversation,) = to_conversations(prompts)
    assert [tool.name for tool in conversation.tools] == ["convert"]
    assert [message.role for message in conversation.messages] == ["user"]


def test_any_other_system_turn_stays(tmp_path: Path) -> None:
    turns = [{"role": "system", "content": "You can call these tools:\nnone today"}, {"role": "user", "content": "Convert 5 euros"}]
    (conversation,) = to_conversations(load_prompts(write(tmp_path / "p.jsonl", [row() | {"turns": turns}])))
    assert not conversation.tools
    assert conversation.messages[0].role == "system"


def test_a_prompt_of_a_megabyte(tmp_path: Path) -> None:
    prompts = load_prompts(write(tmp_path / "p.jsonl", [row(text="Qué dice este registro? " * 45_000)]))
    assert prompts["language"].tolist() == ["es"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([row(), row()], r"p\.jsonl:2: source 'own', prompt_id 'a' stands already at p\.jsonl:1; ids are unique within a source"),
        ([row(), {"source": "own", "turns": "x"}], r"p\.jsonl:2: column 'prompt_id' is empty; a non-empty text is needed"),
        ([row(), row("b") | {"turns": []}], r"p\.jsonl:2: column 'turns': messages is empty"),
        ([row() | {"turns": None}], r"p\.jsonl:1: column 'turns' is empty"),
        ([row() | {"turns": "{"}], r"p\.jsonl:1: column 'turns' is not JSON"),
        ([row() | {"turns": {"role": "user"}}], r"p\.jsonl:1: column 'turns' holds a dict; a JSON list is needed"),
        (
            [row() | {"turns": [{"role": "robot", "content": "x"}]}],
            r"p\.jsonl:1: column 'turns': messages\[0\]\.role is 'robot': allowed are",
        ),
        ([row(text="  ")], r"p\.jsonl:1: column 'turns' has no user turn with text"),
        ([row(language="??")], r"p\.jsonl:1: column 'language': language '\?\?' is not a BCP-47 tag"),
        ([row(prompt_id="")], r"p\.jsonl:1: column 'prompt_id' is empty; a non-empty text is needed"),
        ([row(), row("b", category=3)], r"p\.jsonl:2: column 'category' is 3; a text or nothing is allowed"),
        ([row(tools="x")], r"p\.jsonl:1: column 'tools' is not JSON"),
        ([{"source": "own", "promptid": "a", "turns": []}], r"column 'prompt_id' is missing, there are .*; did you mean 'promptid'"),
        ([{"prompt_id": "a", "turns": []}], r"column 'source' is missing; add it, or name one source for all rows"),
        ([[1]], r"p\.jsonl:1: a list; one JSON object a line is needed"),
    ],
)
def test_refuses_a_bad_row_in_one_line_that_names_it(tmp_path: Path, rows: list[Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        load_prompts(write(tmp_path / "p.jsonl", rows))
    assert "\n" not in str(caught.value)


def test_line_numbers_count_blank_lines_and_files(tmp_path: Path) -> None:
    good = json.dumps(row())
    (tmp_path / "a.jsonl").write_text(good + "\n", encoding="utf-8")
    (tmp_path / "b.jsonl").write_text("\n\n" + json.dumps(row("b")) + "\n\n" + json.dumps(row("c", text="")) + "\n", encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"^b\.jsonl:5: "):
        load_prompts(tmp_path)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.jsonl", b"", "no rows"),
        ("p.jsonl", b"\xff\xfe{}\n", r"p\.jsonl:1: not UTF-8 \(byte 0 is 0xff\)"),
        ("p.jsonl", b"{\n", r"p\.jsonl:1: not JSON"),
        ("p.parquet", b"PAR?", "not a readable Parquet file"),
        ("p.csv", b"a,b\n", r"files ending in \.csv are not read"),
    ],
)
def test_refuses_a_bad_file(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=message):
        load_prompts(tmp_path / name)


def test_refuses_a_missing_path_and_an_empty_folder(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no such file or folder"):
        load_prompts(tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"neither prompts\.parquet nor any \.jsonl file"):
        load_prompts(tmp_path)


def test_embedded_sample_loads() -> None:
    folder = Path(__file__).resolve().parents[2] / "data" / "sample" / "prompts"
    prompts = load_prompts(folder, source="interlock_sample")
    assert prompts["family"].nunique() >= 16
    assert (prompts.groupby("group")["language"].nunique() > 1).any()


@pytest.mark.slow
def test_real_tables_load(shared_data: Path) -> None:
    prompts = load_prompts(shared_data / "prompts.parquet")
    assert len(prompts) > 20_000
    assert (prompts.loc[prompts["language"] == "en", "family"] == "English").all()
    tools = prompts.loc[prompts["source"] == "bfcl_20240811", "tools"]
    assert tools.notna().mean() > 0.99
