"""Prompts that stand more than once, and what a split would leak because of it."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training.audit.labels import Labels
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, mean, share
from training.dedup import normalise, text_key
from training.split import group_key

TEST_SHARE: Final = 0.2
"""Of the split by rows that leakage is told for."""


def check_overlap(labels: Labels, options: AuditOptions) -> Findings:
    """Duplicates within and across sources, leakage of splits, and equal answers or prompts with unequal scores."""
    found = Findings()
    prompts = labels.prompts.assign(**_duplicate_flags(labels), **_row_split(labels.prompts))
    found.rows += by_slice(prompts, _flags, options)
    if "split" in prompts and prompts["split"].notna().any():
        parts = prompts.groupby("split_group")["split"].transform("nunique")
        crossing = prompts.assign(crossing=parts > 1)
        found.rows += by_slice(crossing, lambda part, groups: {"split_crossing": share(part["crossing"], groups)}, options)
    else:
        found.absent(("split_crossing",), "the prompts have no column split")
    found.tables["duplicates"] = duplicate_table(labels)
    found.tables["translations"] = _translation_table(labels.prompts)
    _same_answers(found, labels, options)
    _retests(found, labels, options)
    return found


def _flags(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    flags = {name: share(part[name], groups) for name in ("near_duplicates", "cross_source", "undeclared_duplicates")}
    return flags | {name: mean(part[name], groups) for name in ("row_split_leak", "translation_leak")}


def _duplicate_flags(labels: Labels) -> dict[str, NDArray[np.bool_]]:
    # Joined by their texts alone, as if no group were declared.
    alone = labels.prompts.assign(group=[f"prompt {row}" for row in range(len(labels.prompts))])
    frame = labels.prompts[["source", "group"]].assign(cluster=group_key(alone, duplicates=labels.duplicates))
    size = frame.groupby("cluster")["source"].transform("size")
    own = frame.groupby(["cluster", "source"])["group"].transform("size")
    return {
        "near_duplicates": (own > 1).to_numpy(),
        "cross_source": (own < size).to_numpy(),
        "undeclared_duplicates": (frame.groupby("cluster")["group"].transform("nunique") > 1).to_numpy(),
    }


def _row_split(prompts: pd.DataFrame) -> dict[str, NDArray[np.float64]]:
    """Probability that a test prompt has a relative in training, each row being drawn by itself: 1 - 0.2^relatives."""
    size = prompts.groupby("split_group")["prompt_id"].transform("size")
    same_language = prompts.groupby(["split_group", "language"])["prompt_id"].transform("size")
    relatives = {"row_split_leak": size - 1, "translation_leak": size - same_language}
    return {name: 1 - TEST_SHARE ** count.to_numpy(dtype=float) for name, count in relatives.items()}


def duplicate_table(labels: Labels) -> pd.DataFrame:
    """Pairs of near-duplicate prompts by id, those that declared groups do not join first; never their text."""
    prompts = labels.prompts
    left, right = np.array(labels.duplicates, dtype=np.intp).reshape(-1, 2).T
    keys = [text_key(text) for text in labels.texts]
    columns = ["source", "prompt_id", "language", "group"]
    one = prompts[columns].iloc[left].reset_index(drop=True)
    other = prompts[columns].iloc[right].reset_index(drop=True)
    table = pd.concat([one, other.add_suffix("_other")], axis=1)
    table["exact"] = [keys[a] == keys[b] for a, b in zip(left, right, strict=True)]
    table["declared"] = table["group"] == table["group_other"]
    table["crosses_sources"] = table["source"] != table["source_other"]
    return table.sort_values(["declared", "crosses_sources", "source", "prompt_id"], ascending=[True, False, True, True], ignore_index=True)


def _translation_table(prompts: pd.DataFrame) -> pd.DataFrame:
    """Split groups over several languages, largest first."""
    table = prompts.groupby("split_group").agg(
        prompts=("prompt_id", "size"), languages=("language", "nunique"), families=("family", "nunique"), sources=("source", "nunique")
    )
    return table[table["languages"] > 1].sort_values("prompts", ascending=False).reset_index()


def _same_answers(found: Findings, labels: Labels, options: AuditOptions) -> None:
    measure = "same_answer_scores_differ"
    if labels.answers is None or labels.scores is None:
        found.absent((measure,), "the answers or their scores are not here")
        return
    correct = labels.scores[labels.scores["dimension"] == "correctness"].drop_duplicates(["prompt_id", "model"], keep="last")
    answers = labels.answers[(labels.answers["text"].str.strip() != "") & ~labels.answers["calls_tools"]]
    table = answers.merge(correct[["prompt_id", "model", "score"]], on=["prompt_id", "model"], how="inner")
    table["said"] = [normalise(text) for text in table["text"]]
    pairs = table.merge(table[["prompt_id", "model", "said", "score"]], on=["prompt_id", "said"], suffixes=("", "_other"))
    pairs = pairs[pairs["model"] < pairs["model_other"]]
    if pairs.empty:
        found.absent((measure,), "no two models gave the same answer")
        return
    pairs["differ"] = (pairs["score"] - pairs["score_other"]).abs() > 1e-9
    found.rows += by_slice(pairs, lambda part, groups: {measure: share(part["differ"], groups)}, options)
    found.tables["same_answers"] = pairs.loc[pairs["differ"], ["source", "prompt_id", "model", "model_other", "score", "score_other"]]


def _retests(found: Findings, labels: Labels, options: AuditOptions) -> None:
    """Outcomes of one model and kind of score under prompts that are equal word for word, tools included."""
    prompts = labels.prompts
    tools = prompts["tools"].map(lambda value: "" if value is None else repr(value))
    turns = prompts["turns"].map(repr)
    keys = pd.Series([text_key(f"{a}\n{b}") for a, b in zip(turns, tools, strict=True)], index=prompts.index)
    repeated = prompts[["source", "prompt_id"]].assign(key=keys)[keys.duplicated(keep=False)]
    rows = labels.outcomes.merge(repeated, on=["source", "prompt_id"], how="inner")
    rows["kind"] = rows["key"] + "\n" + rows["model"] + "\n" + rows["score_kind"]
    first = rows.groupby("kind")["score"].transform("first")
    again = rows[rows["kind"].duplicated()].assign(differ=(rows["score"] - first).abs() > 1e-9)
    if again.empty:
        found.absent(("retest_differs",), "no model was scored twice on equal prompts by one kind of score")
        return
    found.rows += by_slice(again, lambda part, groups: {"retest_differs": share(part["differ"], groups)}, options)
