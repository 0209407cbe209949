"""What a pair of canonical tables holds, and what is doubtful about it: `interlock data check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from training.dedup import near_duplicates
from training.outcomes import load_outcomes, match_prompts
from training.prompts import load_prompts
from training.split import few_rows, group_key, prompt_texts


@dataclass(frozen=True, slots=True)
class DataSummary:
    """Tables to print, and problems in words.

    Attributes
    ----------
    sources
        One row a source: prompts, groups, languages, near duplicates, models, kinds of score.
    families
        One row a language family: prompts, languages, sources.
    scores
        One row a source and kind of score: models, rows, mean, share of missing answers. Empty without outcomes.
    problems
        Sentences, each about one thing to decide or repair.
    """

    sources: pd.DataFrame
    families: pd.DataFrame
    scores: pd.DataFrame
    problems: tuple[str, ...]


def summarise(path: Path, *, minimum: int = 20, similarity: float = 0.8, source: str | None = None) -> DataSummary:
    """Read and check the tables in a folder (or a prompt table alone).

    Parameters
    ----------
    path
        Folder with prompts and, if there are any, outcomes.
    minimum
        Prompts a language family should have.
    similarity
        From which on two prompts count as near duplicates.
    source
        Value for prompts that have no source.

    Raises
    ------
    InvalidInput
        If a table breaks the format, or outcomes name a prompt that is not there.
    """
    prompts = load_prompts(path, source=source)
    outcomes = _outcomes_beside(path)
    if outcomes is not None:
        match_prompts(outcomes, prompts)
    pairs = near_duplicates(prompt_texts(prompts), similarity=similarity)
    groups = group_key(prompts, duplicates=pairs)
    scores = _scores(prompts, outcomes)
    return DataSummary(
        sources=_sources(prompts, groups, pairs, outcomes),
        families=_families(prompts),
        scores=scores,
        problems=(*_prompt_problems(prompts, groups, pairs, minimum), *_score_problems(prompts, outcomes, scores)),
    )


def _outcomes_beside(path: Path) -> pd.DataFrame | None:
    folder = path if path.is_dir() else path.parent
    files = [file for suffix in ("parquet", "jsonl", "ndjson") if (file := folder / f"outcomes.{suffix}").is_file()]
    return load_outcomes(files[0]) if files else None


def _sources(
    prompts: pd.DataFrame, groups: pd.Series[Any], pairs: Sequence[tuple[int, int]], outcomes: pd.DataFrame | None
) -> pd.DataFrame:
    repeated = prompts.iloc[sorted({later for _, later in pairs})].groupby("source").size()
    table = (
        prompts.assign(group=groups)
        .groupby("source", sort=True)
        .agg(
            prompts=("prompt_id", "size"),
            groups=("group", "nunique"),
            languages=("language", "nunique"),
            multi_turn=("n_turns", lambda n: int((n > 1).sum())),
        )
    )
    table["near_duplicates"] = repeated.reindex(table.index, fill_value=0)
    if outcomes is not None:
        counts = outcomes.groupby("source").agg(models=("model", "nunique"), score_kinds=("score_kind", "nunique"))
        table = table.join(counts).fillna({"models": 0, "score_kinds": 0}).astype({"models": int, "score_kinds": int})
    return table.reset_index()


def _families(prompts: pd.DataFrame) -> pd.DataFrame:
    table = prompts.groupby("family", sort=True).agg(
        prompts=("prompt_id", "size"), languages=("language", lambda tags: ", ".join(sorted(set(tags)))), sources=("source", "nunique")
    )
    return table.sort_values("prompts", ascending=False).reset_index()


def _scores(prompts: pd.DataFrame, outcomes: pd.DataFrame | None) -> pd.DataFrame:
    if outcomes is None:
        return pd.DataFrame(columns=["source", "score_kind", "models", "rows", "mean", "missing", "with_cost"])
    table = outcomes.groupby(["source", "score_kind"], sort=True).agg(
        models=("model", "nunique"),
        rows=("score", "size"),
        mean=("score", "mean"),
        with_cost=("cost_usd", lambda cost: int(cost.notna().sum())),
    )
    asked = prompts.groupby("source").size()
    table = table.reset_index()
    table["missing"] = 1 - table["rows"] / (table["models"] * table["source"].map(asked))
    return table


def _prompt_problems(prompts: pd.DataFrame, groups: pd.Series[Any], pairs: Sequence[tuple[int, int]], minimum: int) -> list[str]:
    problems = []
    source = prompts["source"].tolist()
    across = pd.Series(
        [f"{min(source[a], source[b])} and {max(source[a], source[b])}" for a, b in pairs if source[a] != source[b]], dtype=object
    )
    problems += [
        f"{names} share {count} near-duplicate prompts; splits keep them together" for names, count in across.value_counts().items()
    ]
    if few := few_rows(prompts["family"], minimum):
        problems.append(f"families with fewer than {minimum} prompts: {', '.join(f'{name} {count}' for name, count in few.items())}")
    sizes = groups.value_counts()
    if len(prompts) >= 50 and sizes.iloc[0] > 0.2 * len(prompts):
        problems.append(f"group {sizes.index[0]!r} holds {sizes.iloc[0]} of {len(prompts)} prompts and lies in one part of any split")
    for column, what in (("licence", "no licence"), ("task_kind", "neither task_kind nor capability")):
        lacking = prompts[column].isna() & (prompts["capability"].isna() if column == "task_kind" else True)
        if lacking.any():
            problems.append(f"{int(lacking.sum())} prompts have {what}")
    if unknown := int((prompts["language"] == "und").sum()):
        problems.append(f"{unknown} prompts have no language that can be told")
    return problems


def _score_problems(prompts: pd.DataFrame, outcomes: pd.DataFrame | None, scores: pd.DataFrame) -> list[str]:
    if outcomes is None:
        return ["there are no outcomes: prompts alone can be labelled but not fitted on"]
    problems = []
    scored = pd.MultiIndex.from_frame(outcomes[["source", "prompt_id"]].drop_duplicates())
    without = ~pd.MultiIndex.from_frame(prompts[["source", "prompt_id"]]).isin(scored)
    if without.any():
        problems.append(f"{int(without.sum())} prompts have no outcome")
    same = outcomes.groupby(["source", "score_kind"])["score"].nunique()
    problems += [
        f"{source}: every score of {kind} is the same, so nothing can be learned from it" for source, kind in same[same == 1].index
    ]
    alone = scores[scores["models"] < 2]
    problems += [f"{row.source}: {row.score_kind} has one model only, so it gives no pair" for row in alone.itertuples()]
    return problems
