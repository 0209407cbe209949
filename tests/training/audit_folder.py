"""Folders of labels with known faults, for the tests of the audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from training.label.config import DIMENSIONS
from training.label.graders import Answer
from training.label.judging import pair_digest
from training.label.prompts import load_prompts

Row = dict[str, Any]
LANGUAGES = ("en", "de", "ja")
WORDS = (
    "river",
    "stone",
    "cloud",
    "paper",
    "table",
    "garden",
    "window",
    "orange",
    "silver",
    "forest",
    "candle",
    "bridge",
    "market",
    "letter",
)
Judge = Callable[[str, str, Row, Row], tuple[float, float]]


def write_lines(path: Path, rows: Sequence[Row]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def prompt_rows(n: int, *, source: str = "own") -> list[Row]:
    """Prompts of unlike texts, in groups of one task in three languages."""
    rng = np.random.default_rng(1)
    rows = []
    for i in range(n):
        text = f"Question {i}: " + " ".join(rng.choice(WORDS, 12))
        grader = {"kind": "exact", "answers": [f"answer {i}"]}
        row = {"source": source, "prompt_id": f"p{i}", "language": LANGUAGES[i % 3], "group": f"{source}-g{i // 3}", "grader": grader}
        rows.append(row | {"turns": [{"role": "user", "content": text}], "task_kind": "chat", "licence": "ours"})
    return rows


def outcome(prompt: Row, model: str, score: float, kind: str = "quality") -> Row:
    return {"source": prompt["source"], "prompt_id": prompt["prompt_id"], "model": model, "score_kind": kind, "score": score}


def scores_only(folder: Path, prompts: Sequence[Row], scores: dict[str, Callable[[int], float]], kind: str = "exact_match") -> Path:
    """A folder of prompts and outcomes alone; ``scores`` maps models to the score of the i-th prompt."""
    folder.mkdir(parents=True, exist_ok=True)
    write_lines(folder / "prompts.jsonl", prompts)
    write_lines(folder / "outcomes.jsonl", [outcome(p, m, score(i), kind) for i, p in enumerate(prompts) for m, score in scores.items()])
    return folder


def label_run(
    folder: Path,
    judge: Judge,
    *,
    n: int = 60,
    orders: tuple[str, ...] = ("ahead", "swapped"),
    strong_right: Callable[[int], bool] = lambda i: i % 2 == 0,
    weak_right: Callable[[int], bool] = lambda i: i % 4 == 1,
    length: Callable[[int, str], int] = lambda i, model: 40 + 7 * (i % 5) * (model == "large"),
) -> Path:
    """A folder as `interlock label` writes it; the judge marks answers by ``judge(first, second, its record, its record)``."""
    prompts = prompt_rows(n)
    right = {"large": strong_right, "small": weak_right}
    scores_only(folder, prompts, {m: (lambda i, r=r: float(r(i))) for m, r in right.items()}, kind="quality")
    answers = [answer_row(p["prompt_id"], m, "x" * length(i, m)) for i, p in enumerate(prompts) for m in right]
    write_lines(folder / "answers.jsonl", answers)
    scored = [
        {"prompt_id": p["prompt_id"], "model": m, "dimension": "correctness", "score": float(r(i)), "by": "exact", "detail": "read"}
        for i, p in enumerate(prompts)
        for m, r in right.items()
    ]
    write_lines(folder / "scores.jsonl", scored)
    write_lines(folder / "judgements.jsonl", verdict_rows(folder, answers, judge, orders))
    models = [{"name": "large", "role": "strong"}, {"name": "small", "role": "weak"}, {"name": "referee", "role": "judge"}]
    (folder / "run.json").write_text(json.dumps({"models": models}), encoding="utf-8")
    return folder


def answer_row(prompt_id: str, model: str, text: str, finish_reason: str = "stop") -> Row:
    known = {
        "prompt_hash": "h",
        "settings_hash": "s",
        "prompt_tokens": 9,
        "completion_tokens": 9,
        "cost_usd": 0.0,
        "at": "2026-12-01T00:00:00Z",
    }
    return {"prompt_id": prompt_id, "model": model, "text": text, "tool_calls": [], "finish_reason": finish_reason, **known}


def verdict_rows(folder: Path, answers: Sequence[Row], judge: Judge, orders: tuple[str, ...], name: str = "referee") -> list[Row]:
    """Verdicts on (large, small) of every prompt in the given orders."""
    by_key = {(row["prompt_id"], row["model"]): row for row in answers}
    rows = []
    for prompt in load_prompts(folder / "prompts.jsonl"):
        for order in orders:
            first, second = ("large", "small") if order == "ahead" else ("small", "large")
            pair = [by_key[prompt.prompt_id, model] for model in (first, second)]
            marks = judge(first, second, *pair)
            about = pair_digest(prompt, Answer(pair[0]["text"]), Answer(pair[1]["text"]))
            sides = {f"{side}_scores": dict.fromkeys(DIMENSIONS, mark) for side, mark in zip(("first", "second"), marks, strict=True)}
            rows.append(
                {"prompt_id": prompt.prompt_id, "pair_hash": about, "first": first, "second": second, "judge": f"{name}#1", **sides}
            )
    return rows


def fair(first: str, second: str, one: Row, other: Row) -> tuple[float, float]:
    """Prefers the strong model's answers whatever the order."""
    return (0.75, 0.25) if first == "large" else (0.25, 0.75)


def first_is_best(first: str, second: str, one: Row, other: Row) -> tuple[float, float]:
    """Prefers what it reads first."""
    return 1.0, 0.5


def longer_is_best(first: str, second: str, one: Row, other: Row) -> tuple[float, float]:
    """Prefers the longer answer."""
    a, b = len(one["text"]), len(other["text"])
    return (0.5, 0.5) if a == b else (1.0, 0.0) if a > b else (0.0, 1.0)
