"""RouteLLM's battles: Mixtral-8x7B answers judged against GPT-4 answers on a five-point scale."""

from __future__ import annotations

import ast
import hashlib
from pathlib import Path
from typing import Any

from training.sources.base import Collector, Converted, Source
from training.sources.reading import number, read_rows, text

WEAK, STRONG = "mixtral-8x7b-instruct-v0.1", "gpt-4"
SCORE_KIND = "judge_gpt-4_1-5_against_gpt-4"


def read(path: Path) -> Converted:
    """One prompt a row. The judge rated Mixtral's answer from 1 to 5 with GPT-4's answer in view, which itself counts as 1."""
    found = Collector("routellm_gpt4", SOURCE.licence)
    for where, row in read_rows(path, ("prompt", "mixtral_score")):
        if row["prompt"] is None or row["mixtral_score"] is None:
            found.skipped["without prompt or score"] += 1
            continue
        prompt = text(row["prompt"], where, "prompt")
        prompt_id = f"routellm_gpt4#{hashlib.sha256(prompt.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        if prompt_id in found.prompts:
            found.skipped["the same prompt again"] += 1
            continue
        score = (number(row["mixtral_score"], where, "mixtral_score", 1, 5) - 1) / 4
        found.prompt(prompt_id, [{"role": "user", "content": prompt}], task_kind="chat", category=_origin(row.get("source")))
        found.outcome(prompt_id, WEAK, SCORE_KIND, score)
        found.outcome(prompt_id, STRONG, SCORE_KIND, 1.0)
    return found.converted(path)


def _origin(value: Any) -> str | None:
    """The corpus a prompt comes from; a list in Parquet, the text of one in CSV."""
    parts = value
    if isinstance(value, str) and value.startswith("["):
        try:
            parts = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            parts = value
    joined = "+".join(map(str, parts)) if isinstance(parts, list) else str(parts or "")
    return joined or None


SOURCE = Source(
    name="routellm",
    title="RouteLLM GPT-4 judge battles (gpt4_dataset)",
    url="https://huggingface.co/datasets/routellm/gpt4_dataset",
    licence="see the data set's card",
    columns={
        "prompt": "the user's text",
        "mixtral_score": "1 to 5: how good Mixtral's answer is, GPT-4's in view",
        "source": "corpus or corpora of the prompt (optional)",
    },
    scores=f"{SCORE_KIND}: (mixtral_score - 1) / 4 for {WEAK}; 1 for {STRONG}, the reference of the scale",
    read=read,
)
