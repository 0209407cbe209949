"""Scores to the public outcome table, and to quality deltas (strong - weak) per prompt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from training.label.config import DIMENSIONS, LabelConfig
from training.label.prompts import LabelPrompt

OUTCOME_COLUMNS = ("source", "prompt_id", "model", "score_kind", "score", "cost_usd")


def quality(scores: Mapping[str, float], weights: Mapping[str, float], only: Sequence[str] = DIMENSIONS) -> float | None:
    """Return the weighted mean of the dimensions in ``only`` that have a score; weights are renormalised over those."""
    used = [name for name in only if name in scores and weights.get(name, 0.0) > 0]
    total = sum(weights[name] for name in used)
    return sum(weights[name] * scores[name] for name in used) / total if total else None


def by_prompt(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, dict[str, float]]]:
    """Index score rows as prompt -> model -> dimension -> score."""
    table: dict[str, dict[str, dict[str, float]]] = {}
    for row in rows:
        table.setdefault(row["prompt_id"], {}).setdefault(row["model"], {})[row["dimension"]] = float(row["score"])
    return table


def shared_dimensions(models: Mapping[str, Mapping[str, float]]) -> list[str]:
    """Return the dimensions that every model of a prompt was scored on, so that their qualities compare."""
    return [name for name in DIMENSIONS if models and all(name in scores for scores in models.values())]


def outcomes_table(
    config: LabelConfig, prompts: Sequence[LabelPrompt], rows: Sequence[Mapping[str, Any]], costs: Mapping[tuple[str, str], float]
) -> pd.DataFrame:
    """Return the outcome table: one row per prompt, model and score kind (each dimension, and ``quality``)."""
    table = by_prompt(rows)
    out = []
    for prompt in prompts:
        models = table.get(prompt.prompt_id, {})
        shared = shared_dimensions(models)
        for model in config.answering:
            scores = models.get(model.name)
            if scores is None:
                continue
            kinds: dict[str, float | None] = {**{name: scores[name] for name in DIMENSIONS if name in scores}}
            kinds["quality"] = quality(scores, config.quality_weights, shared)
            for kind, score in kinds.items():
                if score is not None:
                    out.append((prompt.source, prompt.prompt_id, model.name, kind, score, costs.get((prompt.prompt_id, model.name))))
    frame = pd.DataFrame(out, columns=list(OUTCOME_COLUMNS))
    return frame.astype({"score": "float64", "cost_usd": "float64"})


def deltas_table(config: LabelConfig, prompts: Sequence[LabelPrompt], rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """Return one row per prompt and weaker model: strong - other in [-1, 1], per dimension and for quality, with the capability."""
    table = by_prompt(rows)
    strong = config.strong.name
    out = []
    for prompt in prompts:
        models = table.get(prompt.prompt_id, {})
        for other in config.answering[1:]:
            if strong not in models or other.name not in models:
                continue
            pair = {strong: models[strong], other.name: models[other.name]}
            shared = shared_dimensions(pair)
            row: dict[str, Any] = {
                "source": prompt.source,
                "prompt_id": prompt.prompt_id,
                "language": prompt.language,
                "family": prompt.family,
                "capability": prompt.capability,
                "difficulty": prompt.difficulty,
                "group": prompt.group,
                "strong": strong,
                "weak": other.name,
            }
            for name in DIMENSIONS:
                row[f"delta_{name}"] = pair[strong][name] - pair[other.name][name] if name in shared else None
            for side, model in (("strong", strong), ("weak", other.name)):
                row[f"quality_{side}"] = quality(pair[model], config.quality_weights, shared)
            if row["quality_strong"] is None or row["quality_weak"] is None:
                continue
            row["delta_quality"] = row["quality_strong"] - row["quality_weak"]
            out.append(row)
    columns = ["source", "prompt_id", "language", "family", "capability", "difficulty", "group", "strong", "weak"]
    scores = [*(f"delta_{name}" for name in DIMENSIONS), "quality_strong", "quality_weak", "delta_quality"]
    return pd.DataFrame(out, columns=columns + scores).astype(dict.fromkeys(scores, "float64"))
