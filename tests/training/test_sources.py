"""Each loader on a small file of the published schema; every text here is our own."""

from __future__ import annotations

import gzip
import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from typer.testing import CliRunner

from interlock.commands.data import app
from router.errors import InvalidInput
from training.outcomes import load_outcomes, pair_scores
from training.prompts import load_prompts, to_conversation
from training.sources import SOURCES, convert, write_converted
from training.split import group_key


def jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def parquet(path: Path, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_parquet(path)
    return path


def csv(path: Path, rows: list[dict[str, Any]]) -> Path:
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


ROUTELLM = [
    {
        "prompt": "How do bees find their way home?",
        "source": ["own-corpus"],
        "gpt4_response": "…",
        "mixtral_response": "…",
        "mixtral_score": 5,
    },
    {"prompt": "Warum ist der Himmel blau?", "source": ["own-corpus"], "gpt4_response": "…", "mixtral_response": "…", "mixtral_score": 2},
    {
        "prompt": "How do bees find their way home?",
        "source": ["own-corpus"],
        "gpt4_response": "…",
        "mixtral_response": "…",
        "mixtral_score": 1,
    },
]
ROUTERBENCH = [
    {
        "sample_id": "mmlu-anatomy.val.3", "prompt": "['Which bone is the longest?\\nA) femur\\nB) ulna']", "eval_name": "mmlu-anatomy",
        "tiny/one": 0.0, "huge-2": 1.0, "tiny/one|model_response": "['B']", "huge-2|model_response": "['A']",
        "tiny/one|total_cost": 0.00001, "huge-2|total_cost": 0.0007, "oracle_model_to_route_to": "huge-2",
    },
    {
        "sample_id": "mtbench.1", "prompt": "['Plan a picnic.', 'Now make it vegan.']", "eval_name": "mtbench",
        "tiny/one": 0.7, "huge-2": 0.9, "tiny/one|model_response": "x", "huge-2|model_response": "y",
        "tiny/one|total_cost": 0.00002, "huge-2|total_cost": 0.0009, "oracle_model_to_route_to": "tiny/one",
    },
]  # fmt: skip


def turn(role: str, *parts: dict[str, Any]) -> dict[str, Any]:
    return {"role": role, "content": list(parts)}


def words(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text, "image": None, "mimeType": None}


ARENA_140K = [
    {
        "id": "battle-1", "model_a": "alpha", "model_b": "beta", "winner": "model_b", "language": "pl", "is_code": False,
        "conversation_a": [turn("user", words("Ile to dwa i dwa?")), turn("assistant", words("Trzy.")),
                           turn("user", words("Na pewno?")), turn("assistant", words("Tak."))],
        "conversation_b": [turn("user", words("Ile to dwa i dwa?")), turn("assistant", words("Cztery."))],
    },
    {
        "id": "battle-2", "model_a": "beta", "model_b": "gamma", "winner": "both_bad", "language": "unknown", "is_code": True,
        "conversation_a": [turn("user", {"type": "image", "text": None, "image": "…"}, words("这段代码有什么问题？")),
                           turn("assistant", words("没有。"))],
        "conversation_b": [turn("user", words("这段代码有什么问题？")), turn("assistant", words("不知道。"))],
    },
]  # fmt: skip
ARENA_55K = [
    {
        "id": 30192, "model_a": "alpha", "model_b": "beta", "prompt": '["Name a river.", "And a lake?"]', "response_a": '["Loire.", null]',
        "response_b": '["Rhine.", "Como."]', "winner_model_a": 0, "winner_model_b": 0, "winner_tie": 1,
    },
    {
        "id": 30193, "model_a": "alpha", "model_b": "gamma", "prompt": '["Spell \\"None\\"."]', "response_a": '["N-o-n-e"]',
        "response_b": '["?"]', "winner_model_a": 1, "winner_model_b": 0, "winner_tie": 0,
    },
]  # fmt: skip
HELPSTEER = [
    {
        "domain": "multilingual", "language": "korean", "context": [{"role": "user", "content": "김치는 어떻게 만들어요?"}],
        "response1": "…", "response2": "…", "overall_preference": -3, "individual_preference": [],
    },
    {
        "domain": "code", "language": "python", "overall_preference": 1, "individual_preference": [], "response1": "…", "response2": "…",
        "context": [{"role": "user", "content": "Sort a list."}, {"role": "assistant", "content": "sorted(x)"},
                    {"role": "user", "content": "Backwards, please."}],
    },
]  # fmt: skip


def result(language: str, model: str, score: float | None, **columns: Any) -> dict[str, Any]:
    prompts = {"sw": "Mama ana machungwa matano.", "yo": "Ìyá ní ọsàn márùn-ún.", "en": "Mother has five oranges."}
    row = {"model": model, "bcp_47": language, "task": "mgsm", "metric": "accuracy", "score": score, "origin": "human", "sentence_nr": 0}
    return row | {"prompt": prompts[language], "response": "…", "status": "ok"} | columns


LANGUAGEBENCH = [
    result("sw", "org/small", 0.0), result("sw", "org/large", 1.0), result("yo", "org/small", 0.0), result("en", "org/small", 1.0),
    result("yo", "org/large", None), result("yo", "org/large", 1.0, status="error"), result("sw", "org/small", 1.0),
    result("sw", "org/large", 0.4, task="translation_to", metric="chrf"),
    result("sw", "org/large", 0.2, task="translation_to", metric="bleu"),
]  # fmt: skip


def score(table: pd.DataFrame, prompt_id: str, model: str) -> float:
    return float(table.loc[(table["prompt_id"] == prompt_id) & (table["model"] == model), "score"].iloc[0])


@pytest.mark.parametrize(
    "write",
    [lambda p: parquet(p / "t.parquet", ROUTELLM), lambda p: csv(p / "t.csv", ROUTELLM), lambda p: jsonl(p / "t.jsonl.gz", ROUTELLM)],
)
def test_routellm(tmp_path: Path, write: Any) -> None:
    converted = convert("routellm", write(tmp_path))
    assert converted.prompts["language"].tolist() == ["en", "de"]
    assert converted.prompts["category"].tolist() == ["own-corpus"] * 2
    assert converted.skipped == {"the same prompt again": 1}
    pairs = pair_scores(converted.outcomes, "mixtral-8x7b-instruct-v0.1", "gpt-4")
    assert sorted(zip(pairs["weak"], pairs["strong"], strict=True)) == [(0.25, 1.0), (1.0, 1.0)]


@pytest.mark.parametrize("write", [lambda p: parquet(p / "t.parquet", ROUTERBENCH), lambda p: csv(p / "t.csv", ROUTERBENCH)])
def test_routerbench(tmp_path: Path, write: Any) -> None:
    converted = convert("routerbench", write(tmp_path))
    assert set(converted.outcomes["model"]) == {"tiny/one", "huge-2"}
    assert converted.prompts["n_turns"].tolist() == [1, 2]
    assert converted.prompts["task_kind"].tolist() == ["knowledge", "chat"]
    assert converted.prompts["group"].iloc[0] == "mmlu/anatomy"
    assert converted.outcomes["cost_usd"].tolist() == [0.00001, 0.0007, 0.00002, 0.0009]
    assert score(converted.outcomes, "mtbench.1", "tiny/one") == 0.7


def test_routerbench_pickle_is_never_opened(tmp_path: Path) -> None:
    class Trap:
        def __reduce__(self) -> Any:
            return Path.touch, (tmp_path / "opened",)

    path = tmp_path / "routerbench_0shot.pkl"
    path.write_bytes(pickle.dumps(Trap()))
    with pytest.raises(InvalidInput, match="a pickle runs code when it is read"):
        convert("routerbench", path)
    assert not (tmp_path / "opened").exists()


def test_lmarena_conversations(tmp_path: Path) -> None:
    converted = convert("lmarena", parquet(tmp_path / "t.parquet", ARENA_140K))
    polish, chinese = (to_conversation(row) for _, row in converted.prompts.iterrows())
    assert polish.user_texts == ("Ile to dwa i dwa?", "Na pewno?")
    assert [message.role for message in polish.messages] == ["user", "assistant", "user"]
    assert "image" in chinese.modalities
    assert converted.prompts[["language", "task_kind"]].to_numpy().tolist() == [["pl", "chat"], ["zh", "code"]]
    assert converted.outcomes["score"].tolist() == [0.0, 1.0, 0.0, 0.0]


def test_lmarena_55k(tmp_path: Path) -> None:
    converted = convert("lmarena", csv(tmp_path / "train.csv", ARENA_55K))
    assert converted.prompts["prompt_id"].tolist() == ["30192", "30193"]
    assert to_conversation(converted.prompts.iloc[0]).user_texts == ("Name a river.", "And a lake?")
    assert converted.outcomes["score"].tolist() == [0.5, 0.5, 1.0, 0.0]


def test_helpsteer3(tmp_path: Path) -> None:
    converted = convert("helpsteer3", jsonl(tmp_path / "train.jsonl.gz", HELPSTEER))
    assert converted.prompts["language"].tolist() == ["ko", "en"]
    assert converted.prompts["task_kind"].tolist() == ["chat", "code"]
    assert converted.prompts["n_turns"].tolist() == [1, 2]
    assert converted.outcomes["score"].tolist() == pytest.approx([1.0, 0.0, 2 / 6, 4 / 6])


def test_languagebench(tmp_path: Path) -> None:
    converted = convert("languagebench", parquet(tmp_path / "t.parquet", LANGUAGEBENCH))
    groups = group_key(converted.prompts)
    assert groups[converted.prompts["category"] == "mgsm"].nunique() == 1
    assert converted.prompts["family"].tolist()[:3] == ["Niger-Congo", "Niger-Congo", "English"]
    assert converted.skipped == {"without a score": 1, "status is not ok": 1, "replaced by a later run": 1}
    assert score(converted.outcomes, "mgsm#0#sw", "org/small") == 1.0
    assert set(converted.outcomes["score_kind"]) == {"accuracy", "chrf", "bleu"}


def test_languagebench_as_json(tmp_path: Path) -> None:
    path = tmp_path / "results-detailed.json"
    path.write_text(json.dumps(LANGUAGEBENCH), encoding="utf-8")
    assert len(convert("languagebench", path).outcomes) == 6


@pytest.mark.parametrize(
    ("name", "rows", "message"),
    [
        ("routellm", [{"prompt": "x", "score": 1}], "column 'mixtral_score' is missing, there are prompt, score"),
        ("routellm", [{"prompt": "x", "mixtral_score": 6}], r"t\.jsonl:1: column 'mixtral_score' is 6; a number from 1 to 5 is needed"),
        ("routellm", [{"prompt": None, "mixtral_score": 1}], r"no row can be used \(1 without prompt or score\)"),
        (
            "lmarena",
            [{"model_a": "a", "model_b": "b", "id": 1, "winner": "left", "conversation_a": [{"role": "user", "content": "x"}]}],
            "'left'; allowed are",
        ),
        ("lmarena", [{"model_a": "a", "model_b": "b", "winner": "tie"}], "neither column 'id' nor 'question_id'"),
        ("lmarena", [{"model_a": "a", "model_b": "b", "id": 1, "prompt": "x", "winner": "tie"}], "column 'prompt' is not a JSON list"),
        ("helpsteer3", [{"context": "x", "overall_preference": 0}], "column 'context' is not a list"),
        ("helpsteer3", [{"context": [{"role": "user", "content": "x"}], "overall_preference": 5}], "a number from -3 to 3"),
        (
            "languagebench",
            [{"model": "m", "bcp_47": "en", "task": "t", "metric": "m", "score": 1, "sentence_nr": 0}],
            "column 'prompt' is missing",
        ),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, name: str, rows: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as caught:
        convert(name, jsonl(tmp_path / "t.jsonl", rows))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("name", "content"), [("t.parquet", b"x"), ("t.csv", b""), ("t.json", b"{"), ("t.jsonl.gz", b"not gzip")])
def test_unreadable_files(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        convert("lmarena", tmp_path / name)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


def test_registry_names_what_there_is(tmp_path: Path) -> None:
    assert set(SOURCES) == {"routellm", "routerbench", "lmarena", "helpsteer3", "languagebench"}
    assert all(source.url.startswith("https://") and source.columns and source.scores for source in SOURCES.values())
    with pytest.raises(InvalidInput, match=r"unknown data set 'lmarna': .* did you mean 'lmarena'"):
        convert("lmarna", tmp_path)
    with pytest.raises(InvalidInput, match="no such file"):
        convert("lmarena", tmp_path / "t.parquet")


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    converted = convert("lmarena", parquet(tmp_path / "t.parquet", ARENA_140K))
    prompts, outcomes = write_converted(converted, tmp_path / "out")
    pd.testing.assert_frame_equal(load_prompts(prompts), converted.prompts)
    pd.testing.assert_frame_equal(load_outcomes(outcomes), converted.outcomes)


def test_both_tables_are_written_or_neither(tmp_path: Path) -> None:
    converted = convert("lmarena", parquet(tmp_path / "t.parquet", ARENA_140K))
    unwritable = replace(converted, outcomes=converted.outcomes.assign(note=[object()] * len(converted.outcomes)))
    with pytest.raises(Exception, match="Could not convert"):
        write_converted(unwritable, tmp_path / "out")
    assert not list(tmp_path.glob("out/*"))


def test_command_line_converts_and_checks(tmp_path: Path) -> None:
    runner = CliRunner()
    source = jsonl(tmp_path / "train.jsonl.gz", [*HELPSTEER, HELPSTEER[0]])
    done = runner.invoke(app, ["convert", "helpsteer3", str(source), "--output", str(tmp_path / "out")])
    assert done.exit_code == 0, done.output
    assert "1 rows skipped: the same conversation again" in done.output
    checked = runner.invoke(app, ["check", str(tmp_path / "out"), "--min-rows", "5"])
    assert checked.exit_code == 0, checked.output
    assert "Koreanic" in checked.output
    assert "families with fewer than 5 prompts: English 1, Koreanic 1" in checked.output
    assert runner.invoke(app, ["check", str(tmp_path / "out"), "--strict"]).exit_code == 1
    assert "helpsteer3" in runner.invoke(app, ["sources"]).output
    assert "overall_preference" in runner.invoke(app, ["sources", "helpsteer3"]).output


def test_command_line_passes_errors_on(tmp_path: Path) -> None:
    failed = CliRunner().invoke(app, ["convert", "routellm", str(tmp_path / "no.parquet"), "-o", str(tmp_path / "out")])
    assert isinstance(failed.exception, InvalidInput)
    assert not (tmp_path / "out").exists()
