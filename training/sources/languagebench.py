"""languagebench: the log of single results behind the leaderboard, some ninety languages and forty models."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from training.sources.base import Collector, Converted, Source
from training.sources.reading import number, read_rows, text

_KINDS: Final[Mapping[str, str]] = {
    "translation_from": "translation",
    "translation_to": "translation",
    "classification": "knowledge",
    "mmlu": "knowledge",
    "arc": "reasoning",
    "truthfulqa": "knowledge",
    "mgsm": "math",
}


def read(path: Path) -> Converted:
    """One result a row. Item ``sentence_nr`` of a task is one group in every language; both directions of translation share sentences."""
    found = Collector("languagebench", SOURCE.licence)
    latest: dict[tuple[str, str, str], float] = {}
    for where, row in read_rows(path, ("model", "bcp_47", "task", "metric", "score", "sentence_nr", "prompt")):
        reason = _unusable(row)
        if reason is not None:
            found.skipped[reason] += 1
            continue
        task, language = text(row["task"], where, "task"), text(row["bcp_47"], where, "bcp_47")
        item = int(number(row["sentence_nr"], where, "sentence_nr", 0, float("inf")))
        prompt_id = f"{task}#{item}#{language}"
        turns = [{"role": "user", "content": text(row["prompt"], where, "prompt")}]
        group = f"languagebench/{'flores' if task.startswith('translation') else task}#{item}"
        found.prompt(prompt_id, turns, language=language, task_kind=_KINDS.get(task, "chat"), category=task, group=group)
        key = (prompt_id, text(row["model"], where, "model"), text(row["metric"], where, "metric"))
        found.skipped["replaced by a later run"] += key in latest
        latest[key] = number(row["score"], where, "score", 0, 1)
    for key, score in latest.items():
        found.outcome(*key, score)
    found.skipped = +found.skipped  # without zero counts
    return found.converted(path)


def _unusable(row: Mapping[str, Any]) -> str | None:
    if row.get("status") not in (None, "ok"):
        return "status is not ok"
    if row["score"] is None:
        return "without a score"
    return "without the prompt's text" if row["prompt"] is None else None


SOURCE = Source(
    name="languagebench",
    title="languagebench, results in detail",
    url="https://huggingface.co/datasets/fair-forward/evals-for-every-language-results-detailed",
    licence="see the data set's card; the prompts keep the licences of FLORES+, Global-MMLU, MGSM and the others",
    columns={
        "model, bcp_47, task, metric": "who answered, in which language, what, and how it was measured",
        "score": "in [0, 1]",
        "sentence_nr": "item of the task, the same in every language",
        "prompt": "the text that was asked",
        "status": "ok, or why it failed (optional)",
    },
    scores="the metric's own name (accuracy, bleu, chrf): as published",
    read=read,
)
