"""Answers and verdicts to one score per (prompt, model, dimension), each with who gave it and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from training.label.answering import stored_answer
from training.label.code import outside_fences
from training.label.config import LabelConfig
from training.label.graders import GRADER_VERSION, Answer, grade
from training.label.judging import answer_digest, answer_of
from training.label.progress import Progress
from training.label.prompts import LabelPrompt, digest
from training.label.records import wrong_in_score
from training.label.store import JsonlStore
from training.label.text import script_share

Row = dict[str, Any]


def program_rows(prompt: LabelPrompt, model: str, answer: Answer, key: str) -> list[Row]:
    """Grade one answer by program.

    A dimension that a program cannot see for this grader has no row. ``completeness`` is at most 0.5 for an answer that was cut
    off at its token limit. ``clarity`` is the share of letters outside code that belong to the language's script; it says nothing
    about style, and nothing at all for short answers, code and JSON.
    """
    result = grade(prompt.grader, answer, prompt.tools)
    completeness = result.completeness
    if completeness is not None and answer.finish_reason == "length":
        completeness = min(completeness, 0.5)
    clarity = None
    if prompt.grader["kind"] not in ("unit_tests", "json", "tool_call") or prompt.grader.get("name", "") is None:
        clarity = script_share(outside_fences(answer.text), prompt.language)
    scores = {
        "correctness": result.correctness,
        "completeness": completeness,
        "instruction_following": result.instruction_following,
        "clarity": clarity,
    }
    same = {"by": str(prompt.grader["kind"]), "detail": result.detail, "key": key}
    return [
        {"prompt_id": prompt.prompt_id, "model": model, "dimension": name, "score": round(score, 6), **same}
        for name, score in scores.items()
        if score is not None
    ]


def grade_all(config: LabelConfig, prompts: Sequence[LabelPrompt], answers: JsonlStore, known: Path, progress: Progress) -> list[Row]:
    """Grade every stored answer by program; rows of an earlier run are reused where answer and grader are unchanged."""
    cached = _cached_rows(known)
    jobs: list[tuple[LabelPrompt, str, Answer, str]] = []
    for prompt in prompts:
        if prompt.grader["kind"] == "judge":
            continue
        for model in config.answering:
            record = stored_answer(config, model, prompt, answers)
            if record is not None:
                answer = answer_of(record)
                about = [GRADER_VERSION, dict(prompt.grader), prompt.language, answer_digest(answer), answer.finish_reason]
                jobs.append((prompt, model.name, answer, digest(about)))
    done = sum((job[0].prompt_id, job[1], job[3]) in cached for job in jobs)
    progress.start("grading", len(jobs), done)

    def work(job: tuple[LabelPrompt, str, Answer, str]) -> list[Row]:
        prompt, model, answer, key = job
        rows = cached.get((prompt.prompt_id, model, key))
        if rows is None:
            rows = program_rows(prompt, model, answer, key)
            progress.advance()
        return rows

    with ThreadPoolExecutor(max_workers=2) as pool:
        return [row for rows in pool.map(work, jobs) for row in rows]


def _cached_rows(path: Path) -> Mapping[tuple[str, str, str], list[Row]]:
    """Return the rows of an earlier run; none if a line is damaged, since what else is gone cannot be told: all is graded anew."""
    cached: dict[tuple[str, str, str], list[Row]] = {}
    for line in path.read_bytes().split(b"\n") if path.exists() else ():
        if not line.strip():
            continue
        try:
            row = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            return {}
        if not isinstance(row, dict) or wrong_in_score(row) is not None or not isinstance(row.get("key", ""), str):
            return {}
        if row.get("key"):
            cached.setdefault((row["prompt_id"], row["model"], row["key"]), []).append(row)
    return cached


def judge_rows(judged: Iterable[Mapping[str, Any]], judge: str, graded: Sequence[Row]) -> list[Row]:
    """Turn judged pairs into score rows; where a program has spoken on a dimension, the program's score stands."""
    taken = {(row["prompt_id"], row["model"], row["dimension"]) for row in graded}
    rows = []
    for entry in judged:
        detail = "orders agree" if entry["orders_agree"] else "orders disagree"
        for name, score in entry["scores"].items():
            if (entry["prompt_id"], entry["model"], name) not in taken:
                row = {"prompt_id": entry["prompt_id"], "model": entry["model"], "dimension": name, "score": round(score, 6)}
                rows.append({**row, "by": f"judge:{judge}", "detail": detail})
    return rows
