"""What is there and what is not: graders, answers as they came, and scores of every model."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pandas as pd

from router.files.artifacts import language_identifier
from router.languages import identify_language, primary_subtag
from training.audit.labels import PLACE, Labels
from training.audit.refusals import opens_with_refusal
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, share
from training.label.code import outside_fences
from training.label.text import script_share

OF_ANSWERS: Final = ("answers_missing", "answers_cut", "answers_empty", "answers_refused")
_NO_PROSE: Final = frozenset({"unit_tests", "json", "tool_call"})
_ENOUGH_LETTERS: Final = 40
_WRONG_SCRIPT: Final = 0.5


def check_coverage(labels: Labels, options: AuditOptions) -> Findings:
    """Scores, graders and answers that are missing, and answers that cannot be judged fairly."""
    found = Findings()
    _scores(found, labels, options)
    _graders(found, labels, options)
    _answers(found, labels, options)
    return found


def _scores(found: Findings, labels: Labels, options: AuditOptions) -> None:
    prompts, outcomes = labels.prompts, labels.outcomes
    scored = pd.MultiIndex.from_frame(outcomes[["source", "prompt_id"]].drop_duplicates())
    without = ~pd.MultiIndex.from_frame(prompts[["source", "prompt_id"]]).isin(scored)
    found.rows += by_slice(
        prompts.assign(without=without), lambda part, groups: {"prompts_without_score": share(part["without"], groups)}, options
    )
    have = outcomes.drop_duplicates(["source", "prompt_id", "model"])
    cells = prompts.loc[~without, ["prompt_id", *PLACE]].merge(have[["source", "model"]].drop_duplicates(), on="source")
    cells["missing"] = ~pd.MultiIndex.from_frame(cells[["source", "prompt_id", "model"]]).isin(
        pd.MultiIndex.from_frame(have[["source", "prompt_id", "model"]])
    )
    found.rows += by_slice(cells, lambda part, groups: {"scores_missing": share(part["missing"], groups)}, options)
    table = cells.groupby(["source", "model"]).agg(prompts=("missing", "size"), without_score=("missing", "sum"))
    means = outcomes.groupby(["source", "model"])["score"].agg(mean_score="mean", kinds="size")
    found.tables["models"] = table.join(means.drop(columns="kinds")).reset_index()


def grader_kinds(prompts: pd.DataFrame) -> pd.Series[Any]:
    """Kind of the grader of every prompt; empty where it has none."""
    return prompts["grader"].map(lambda grader: str(grader.get("kind", "")) if isinstance(grader, dict) else "")


def _graders(found: Findings, labels: Labels, options: AuditOptions) -> None:
    kinds = grader_kinds(labels.prompts)
    if not (kinds != "").any():
        found.absent(("checked_by_program",), "the prompts name no graders")
        return
    prompts = labels.prompts.assign(program=~kinds.isin(["", "judge"]), grader_kind=kinds.replace("", "none"))
    found.rows += by_slice(prompts, lambda part, groups: {"checked_by_program": share(part["program"], groups)}, options)
    table = prompts.groupby("grader_kind").agg(
        prompts=("prompt_id", "size"), languages=("language", "nunique"), families=("family", "nunique"), sources=("source", "nunique")
    )
    if labels.scores is not None:
        kind_of = prompts.set_index("prompt_id")["grader_kind"]
        correct = labels.scores[labels.scores["dimension"] == "correctness"]
        correct = correct.assign(grader_kind=correct["prompt_id"].map(kind_of))
        table = table.join(
            correct.groupby("grader_kind").agg(
                scored_answers=("score", "size"),
                mean_correctness=("score", "mean"),
                all_right=("score", lambda s: float((s >= 1).mean())),
                all_wrong=("score", lambda s: float((s <= 0).mean())),
            )
        )
    found.tables["graders"] = table.reset_index().sort_values("prompts", ascending=False, ignore_index=True)


def _answers(found: Findings, labels: Labels, options: AuditOptions) -> None:
    if labels.answers is None or labels.answers.empty:
        found.absent((*OF_ANSWERS, "answers_off_language", "answers_unreadable"), "the answers are not here")
        return
    answers = _looked_at(labels)
    models = sorted(answers["model"].unique())
    cells = labels.prompts[["prompt_id", *PLACE]].merge(pd.DataFrame({"model": models}), how="cross")
    there = pd.MultiIndex.from_frame(answers[["prompt_id", "model"]])
    cells["missing"] = ~pd.MultiIndex.from_frame(cells[["prompt_id", "model"]]).isin(there)
    found.rows += by_slice(cells, lambda part, groups: {"answers_missing": share(part["missing"], groups)}, options)
    found.rows += by_slice(answers, _shares, options)
    for column, measure in (("off_language", "answers_off_language"), ("unreadable", "answers_unreadable")):
        known = answers[answers[column].notna()]
        if known.empty:
            why = "no answer has enough prose" if column == "off_language" else "no answer was checked by a program with a report"
            found.absent((measure,), why)
            continue
        found.rows += by_slice(known, lambda part, groups, m=measure, c=column: {m: share(part[c], groups)}, options)  # type: ignore[misc]
    found.tables["answers_by_model"] = _by_model(answers, cells)


def _shares(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    return {f"answers_{name}": share(part[name], groups) for name in ("cut", "empty", "refused")}


def _looked_at(labels: Labels) -> pd.DataFrame:
    """Answers with ``cut``, ``empty``, ``refused``, and ``off_language`` and ``unreadable``, which are None where they cannot be told."""
    assert labels.answers is not None
    kind = dict(zip(labels.prompts["prompt_id"], grader_kinds(labels.prompts), strict=True))
    right, unread = _graded(labels)
    rows = []
    for prompt_id, model, text, calls, language in labels.answers[["prompt_id", "model", "text", "calls_tools", "language"]].itertuples(
        index=False
    ):
        key = (prompt_id, model)
        prose = None if calls or kind.get(prompt_id) in _NO_PROSE else outside_fences(text)
        rows.append(
            {
                "empty": not text.strip() and not calls,
                "refused": not right.get(key, False) and opens_with_refusal(text),
                "off_language": None if prose is None else in_another_language(prose, str(language)),
                "unreadable": unread.get(key),
            }
        )
    looked = pd.DataFrame(rows, index=labels.answers.index, columns=["empty", "refused", "off_language", "unreadable"])
    return labels.answers.assign(cut=labels.answers["finish_reason"] == "length", **{name: looked[name] for name in looked})


def _graded(labels: Labels) -> tuple[dict[tuple[str, str], bool], dict[tuple[str, str], bool]]:
    """By prompt and model: whether it was marked right, and, for checks by program, whether nothing was found to check.

    A grader that finds no number, option, JSON, call or function gives 0 for correctness, completeness and form alike.
    """
    if labels.scores is None:
        return {}, {}
    wide = labels.scores.pivot_table(index=["prompt_id", "model"], columns="dimension", values="score", aggfunc="last")
    wide = wide.reindex(columns=["correctness", "completeness", "instruction_following"])
    right = (wide["correctness"] >= 1).to_dict()
    by_program = labels.scores[(labels.scores["dimension"] == "correctness") & ~labels.scores["by"].str.startswith("judge")]
    checked = set(zip(by_program["prompt_id"], by_program["model"], strict=True))
    seen = wide.dropna()
    nothing = (seen.max(axis=1) <= 0).to_dict()
    return right, {key: nothing[key] for key in checked if key in nothing}


def in_another_language(prose: str, language: str) -> bool | None:
    """Whether prose is in another script than a language is written in, or in English where another was asked; None for too few letters."""
    proper = script_share(prose, language)
    if proper is None:
        return None
    if proper < _WRONG_SCRIPT:
        return True
    if primary_subtag(language) == "en" or sum(map(str.isalpha, prose)) < _ENOUGH_LETTERS:
        return False
    return identify_language(prose, language_identifier()) == "en"


def _by_model(answers: pd.DataFrame, cells: pd.DataFrame) -> pd.DataFrame:
    table = answers.groupby("model").agg(
        answers=("text", "size"), cut=("cut", "mean"), empty=("empty", "mean"), refused=("refused", "mean"),
        off_language=("off_language", _mean_known), unreadable=("unreadable", _mean_known), median_characters=("characters", "median"),
    )  # fmt: skip
    return table.join(cells.groupby("model")["missing"].mean()).reset_index()


def _mean_known(values: pd.Series[Any]) -> float:
    known = values.dropna()
    return float(known.astype(float).mean()) if len(known) else float(np.nan)
