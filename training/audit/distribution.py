"""What the labels say: where the strong model adds value, what carries no information, and how scores and families are spread."""

from __future__ import annotations

from typing import Any, Final

import pandas as pd

from router.errors import InvalidInput
from training.audit.labels import Labels
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, counted, mean, share
from training.outcomes import KEY
from training.pairs import pair_rows
from training.recipe import Pair

OF_PAIR: Final = ("adds_value", "weak_better", "both_fail", "both_solve", "mean_gap")
_AT_ONE_VALUE: Final = 0.95
_NARROW: Final = 0.05


def check_distribution(labels: Labels, pairs: tuple[Pair, ...], options: AuditOptions) -> Findings:
    """Labels of the pairs, prompts without information, kinds of score, families.

    Raises
    ------
    InvalidInput
        A pair that was asked for is not in the outcomes. One that is only evident from the labels is noted.
    """
    found = Findings()
    _pairs(found, labels, pairs, options)
    _information(found, labels, options)
    _kinds(found, labels)
    _families(found, labels, options)
    return found


def _evident_pairs(labels: Labels) -> tuple[Pair, ...]:
    """The pair of the labelling run, else of every source with two models and one kind of score the one that scores less and the other."""
    weak, strong = labels.model_of("weak"), labels.model_of("strong")
    if weak and strong:
        return (Pair((weak,), (strong,), score_kinds=("quality",)),)
    found = []
    for source, part in labels.outcomes.groupby("source", sort=True):
        means = part.groupby("model")["score"].mean().sort_values()
        if len(means) == 2 and part["score_kind"].nunique() == 1:
            found.append(Pair((str(means.index[0]),), (str(means.index[1]),), sources=(str(source),)))
    return tuple(found)


def _pairs(found: Findings, labels: Labels, pairs: tuple[Pair, ...], options: AuditOptions) -> None:
    parts = []
    for pair in pairs or _evident_pairs(labels):
        try:
            part = pair_rows(
                labels.prompts, labels.outcomes, pair.weak, pair.strong,
                score_kinds=pair.score_kinds or None, sources=pair.sources or None, similarity=None,
            )  # fmt: skip
        except InvalidInput as error:
            if pairs:
                raise
            found.notes.append(f"labels of {pair.weak[0]} -> {pair.strong[0]}: {error}")
            continue
        parts.append(part.assign(weak_model=pair.weak[0], strong_model=pair.strong[0]))
    if not parts:
        found.absent(OF_PAIR, "no pair of a weak and a strong model is named or evident: give --weak and --strong, or --recipe")
        return
    rows = pd.concat(parts, ignore_index=True)
    delta = rows["strong"] - rows["weak"]
    rows = rows.assign(delta=delta, adds=delta > options.margin, loses=delta < -options.margin)
    found.rows += by_slice(rows, _label_shares, options)
    _why_quality(found, labels, rows[rows["adds"] & (rows["score_kind"] == "quality")], options)
    table = rows.groupby(["source", "weak_model", "strong_model", "score_kind"], sort=True).agg(
        n=("delta", "size"), weak_mean=("weak", "mean"), strong_mean=("strong", "mean"), adds_value=("adds", "mean"),
        weak_better=("loses", "mean"), both_fail=("delta", lambda d: float(_both(rows.loc[d.index], 0.0).mean())),
        both_solve=("delta", lambda d: float(_both(rows.loc[d.index], 1.0).mean())), distinct_deltas=("delta", "nunique"),
    )  # fmt: skip
    found.tables["pairs"] = table.reset_index()
    found.notes += [
        f"{row.source}: {row.strong_model} is never better than {row.weak_model}, or always: nothing can be learned there"
        for row in found.tables["pairs"].itertuples()
        if row.adds_value in (0.0, 1.0)
    ]


def _why_quality(found: Findings, labels: Labels, added: pd.DataFrame, options: AuditOptions) -> None:
    """Of the prompts on which the strong model adds quality, those on which its answer is no more correct."""
    measure = "adds_without_correctness"
    correct = labels.outcomes.loc[labels.outcomes["score_kind"] == "correctness", ["source", "prompt_id", "model", "score"]]
    for side in ("weak", "strong"):
        renamed = correct.rename(columns={"model": f"{side}_model", "score": f"{side}_correct"})
        added = added.merge(renamed, on=["source", "prompt_id", f"{side}_model"], how="inner")
    if added.empty:
        found.absent((measure,), "no label is a quality with a correctness beside it")
        return
    added["no_better"] = added["strong_correct"] - added["weak_correct"] <= options.margin
    found.rows += by_slice(added, lambda part, groups: {measure: share(part["no_better"], groups)}, options)


def _label_shares(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    return {
        "adds_value": share(part["adds"], groups),
        "weak_better": share(part["loses"], groups),
        "both_fail": share(_both(part, 0.0), groups),
        "both_solve": share(_both(part, 1.0), groups),
        "mean_gap": mean(part["delta"], groups),
    }


def _both(part: pd.DataFrame, score: float) -> pd.Series[bool]:
    return (part["weak"] - score).abs().lt(1e-9) & (part["strong"] - score).abs().lt(1e-9)


def _information(found: Findings, labels: Labels, options: AuditOptions) -> None:
    by_kind = labels.outcomes.groupby(["source", "prompt_id", "score_kind"])["score"].agg(["min", "max", "size"])
    by_kind = by_kind[by_kind["size"] > 1].assign(alike=lambda t: t["max"] - t["min"] < 1e-9)
    if by_kind.empty:
        found.absent(("no_information",), "no prompt has scores of two models")
        return
    alike = by_kind.groupby(["source", "prompt_id"])["alike"].all().rename("alike").reset_index()
    rows = labels.prompts[["source", "prompt_id", "family", "split_group"]].merge(alike, on=["source", "prompt_id"])
    found.rows += by_slice(rows, lambda part, groups: {"no_information": share(part["alike"], groups)}, options)


def _kinds(found: Findings, labels: Labels) -> None:
    """One row a source and kind of score, with what is doubtful about its range."""
    asked = labels.prompts.groupby("source").size()
    grouped = labels.outcomes.groupby(["source", "score_kind"], sort=True)
    table = grouped.agg(
        models=("model", "nunique"), prompts=("prompt_id", "nunique"), rows=("score", "size"), mean=("score", "mean"), sd=("score", "std"),
        low=("score", "min"), high=("score", "max"), distinct=("score", "nunique"), at_0=("score", lambda s: float((s <= 0).mean())),
        at_1=("score", lambda s: float((s >= 1).mean())),
    ).reset_index()  # fmt: skip
    table["missing"] = 1 - table["rows"] / (table["models"] * table["source"].map(asked))
    ends = labels.outcomes.groupby([*KEY[:2], "score_kind"])["score"].agg(["min", "max", "size"]).query("size > 1")
    for column, alike in (("all_fail", ends["max"] <= 0), ("all_solve", ends["min"] >= 1)):
        means = alike.groupby(level=["source", "score_kind"]).mean().rename(column)
        table = table.join(means, on=["source", "score_kind"])
    table["doubt"] = [_doubt(row) for row in table.to_dict("records")]
    found.tables["score_kinds"] = table
    constant = table["distinct"] == 1
    found.rows.append(counted("constant_kinds", int(constant.sum()), len(table)))
    found.notes += [f"{row.source}: {row.score_kind} {row.doubt}" for row in table[constant].itertuples()]


def _doubt(row: dict[str, Any]) -> str:
    if row["distinct"] == 1:
        return f"is {row['low']:g} everywhere: no variance"
    if row["models"] == 1:
        return "has one model only: no pair"
    for value, at in ((0, row["at_0"]), (1, row["at_1"])):
        if at >= _AT_ONE_VALUE:
            return f"is {value} in {at:.0%} of the rows"
    if row["sd"] < _NARROW:
        return f"hardly varies (standard deviation {row['sd']:.3f})"
    if row["high"] - row["low"] < 0.5:
        return f"uses {row['low']:.2f} to {row['high']:.2f} of the range 0 to 1"
    return ""


def _families(found: Findings, labels: Labels, options: AuditOptions) -> None:
    prompts = labels.prompts
    table = prompts.groupby("family").agg(
        prompts=("prompt_id", "size"), groups=("split_group", "nunique"), languages=("language", lambda tags: ", ".join(sorted(set(tags)))),
        sources=("source", "nunique"),
    )  # fmt: skip
    table["share"] = table["prompts"] / len(prompts)
    found.tables["families"] = table.sort_values("prompts", ascending=False).reset_index()
    found.rows.append(counted("family_share", int(table["prompts"].max()), len(prompts)))
    small = table[table["prompts"] < options.min_rows]
    found.rows.append(counted("small_families", len(small), len(table)))
    if len(small):
        named = ", ".join(f"{name} {n}" for name, n in small["prompts"].sort_values().items())
        found.notes.append(f"families with fewer than {options.min_rows} prompts, too few for a figure of their own: {named}")
    if unknown := int((prompts["language"] == "und").sum()):
        found.notes.append(f"{unknown} prompts have no language that can be told")
