"""RouterBench: eleven models on eight kinds of benchmark, with the cost of every answer."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from router.errors import InvalidInput
from training.sources.base import Collector, Converted, Source
from training.sources.reading import number, read_rows, text

SCORE_KIND: Final = "routerbench_score"
_COST: Final = "|total_cost"
# First words of eval_name, and what such tasks ask for.
_KINDS: Final[Mapping[str, str]] = {
    "mmlu": "knowledge",
    "grade-school-math": "math",
    "mbpp": "code",
    "hellaswag": "reasoning",
    "winogrande": "reasoning",
    "arc": "reasoning",
    "mtbench": "chat",
    "chinese": "knowledge",
}


def read(path: Path) -> Converted:
    """One prompt a row; a model is a column that has a ``<model>|total_cost`` beside it."""
    found = Collector("routerbench", SOURCE.licence)
    for where, row in read_rows(path, ("sample_id", "prompt", "eval_name"), (".parquet", ".csv")):
        models = [name.removesuffix(_COST) for name in row if name.endswith(_COST) and name.removesuffix(_COST) in row]
        if not models:
            raise InvalidInput(f"{path}: no model; a column '<model>' with a column '<model>{_COST}' is needed for each")
        prompt_id, evaluation = text(row["sample_id"], where, "sample_id"), text(row["eval_name"], where, "eval_name")
        if prompt_id in found.prompts:
            raise InvalidInput(f"{where}: column 'sample_id' is {prompt_id!r}, which an earlier row has; ids are unique")
        found.prompt(prompt_id, _turns(text(row["prompt"], where, "prompt")), **_kind(evaluation))
        for model in models:
            if row[model] is None:
                found.skipped["scores missing"] += 1
                continue
            cost = row[f"{model}{_COST}"]
            usd = None if cost is None else number(cost, where, f"{model}{_COST}", 0, float("inf"))
            found.outcome(prompt_id, model, SCORE_KIND, number(row[model], where, model, 0, 1), usd)
    return found.converted(path)


def _turns(prompt: str) -> list[dict[str, Any]]:
    """The export writes the user turns as the text of a Python list; anything else is one turn."""
    turns: Any = prompt
    if prompt.startswith("["):
        try:
            turns = ast.literal_eval(prompt)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            turns = prompt
    listed = turns if isinstance(turns, list) and turns and all(isinstance(turn, str) for turn in turns) else [prompt]
    return [{"role": "user", "content": turn} for turn in listed]


def _kind(evaluation: str) -> dict[str, Any]:
    """Columns that follow from the benchmark; an MMLU subject is one group with the same subject of other editions."""
    kind = next((kind for prefix, kind in _KINDS.items() if evaluation.startswith(prefix)), "chat")
    group = f"mmlu/{evaluation.removeprefix('mmlu-').replace('-', '_')}" if evaluation.startswith("mmlu-") else None
    return {"task_kind": kind, "category": evaluation, "group": group}


SOURCE = Source(
    name="routerbench",
    title="RouterBench, a Parquet or CSV export (the published pickle is not read)",
    url="https://huggingface.co/datasets/withmartian/routerbench",
    licence="see the data set's card",
    columns={
        "sample_id": "unique id",
        "prompt": "the user turns, as the text of a Python list",
        "eval_name": "benchmark, and for MMLU its subject",
        "<model>": "score in [0, 1], one column a model",
        "<model>|total_cost": "USD for that answer",
    },
    scores=f"{SCORE_KIND}: as published (exact match, or a judge's mark over 10)",
    read=read,
)
