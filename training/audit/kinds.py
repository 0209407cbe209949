"""Several kinds of score for the same answers (judges, metrics): whether they agree, and whether a judge favours the model it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from typing import Final

import pandas as pd

from training.audit.labels import Labels
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, mean
from training.audit.statistics import alpha_statistic, correlation_statistic
from training.label.config import DIMENSIONS

PAIRWISE: Final = ("kinds_spearman", "kinds_within_prompt", "kinds_interaction")
ALPHAS: Final = ("kinds_alpha", "judges_alpha")
OWN_DIMENSIONS: Final = frozenset((*DIMENSIONS, "quality"))
"""What a labelling run writes: parts of one judgement, which are no second opinion on each other."""
_PLACE: Final = ("prompt_id", "model", "source", "family", "split_group")
_JUDGE: Final = "judge"
_SHORTEST_NAME: Final = 5
Say = Callable[[str], None]


def check_kinds(labels: Labels, options: AuditOptions, say: Say = print) -> Findings:
    """Agreement between kinds of score, source by source."""
    found = Findings()
    rated = labels.outcomes[~labels.outcomes["score_kind"].isin(OWN_DIMENSIONS)]
    several = rated.groupby("source")["score_kind"].nunique()
    sources = sorted(several[several > 1].index)
    if not sources:
        found.absent((*ALPHAS, *PAIRWISE), "no answer has more than one kind of score from different judges or metrics")
        return found
    ranked = []
    for source in sources:
        say(f"comparing {several[source]} kinds of score of {source}")
        wide = kind_table(rated[rated["source"] == source])
        kinds = [str(name) for name in wide.columns if name not in _PLACE]
        ranked.append(_ranks(wide, kinds))
        judges = [kind for kind in kinds if kind.startswith(_JUDGE)]
        if len(judges) > 1:
            found.rows += _alpha(wide[wide[judges].notna().sum(axis=1) > 1], judges, "judges_alpha", options, ("source",))
        for one, other in combinations(kinds, 2):
            _pair(found, wide, one, other, options)
        _self_preference(found, wide, kinds, options)
    together = pd.concat(ranked, ignore_index=True)
    columns = sorted(set(together.columns) - set(_PLACE))
    found.rows += _alpha(together[together[columns].notna().sum(axis=1) > 1], columns, "kinds_alpha", options)
    if "judges_alpha" not in {row["measure"] for row in found.rows}:
        found.absent(("judges_alpha",), "no source has two kinds of score named judge_...")
    return found


def kind_table(outcomes: pd.DataFrame) -> pd.DataFrame:
    """One row a (prompt, model) of one source, one column a kind of score, NaN where there is none."""
    kinds = outcomes["score_kind"]
    named = outcomes.assign(score_kind=kinds.where(~kinds.isin([*_PLACE, "self"]), kinds + " (score)"))
    wide = named.pivot(index=list(_PLACE), columns="score_kind", values="score")
    return wide.rename_axis(columns=None).reset_index()


def _ranks(wide: pd.DataFrame, kinds: list[str]) -> pd.DataFrame:
    """Every kind as its mid-rank, 0 to 1, among the scores of that kind."""
    return wide.assign(**{kind: (wide[kind].rank() - 0.5) / max(1, wide[kind].notna().sum()) for kind in kinds})


def _alpha(
    wide: pd.DataFrame, kinds: list[str], measure: str, options: AuditOptions, slice_kinds: tuple[str, ...] = ("all", "family", "source")
) -> list[dict[str, object]]:
    def alpha(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
        return {measure: Quantity(alpha_statistic(part[kinds].to_numpy(dtype=float), groups))}

    return by_slice(wide, alpha, options, kinds=slice_kinds)


def _pair(found: Findings, wide: pd.DataFrame, one: str, other: str, options: AuditOptions) -> None:
    both = wide.dropna(subset=[one, other])
    if both.empty:
        return

    def agreement(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
        x, y = part[one], part[other]
        within = [v - v.groupby(part["prompt_id"]).transform("mean") for v in (x, y)]
        beyond = [v - v.groupby(part["model"]).transform("mean") for v in within]
        pairs = {"kinds_spearman": [x.rank(), y.rank()], "kinds_within_prompt": within, "kinds_interaction": beyond}
        found = {name: correlation_statistic(first, second, groups) for name, (first, second) in pairs.items()}
        if part["model"].nunique() < 2:
            alone = "only one model is scored by both"
            found |= {name: replace(found[name], undefined=alone) for name in ("kinds_within_prompt", "kinds_interaction")}
        return {name: Quantity(statistic) for name, statistic in found.items()}

    kinds = ("family", "source") if both["family"].nunique() > 1 else ("source",)
    found.rows += by_slice(both, agreement, options, subject=f"{one} and {other}", kinds=kinds)


def _self_preference(found: Findings, wide: pd.DataFrame, kinds: list[str], options: AuditOptions) -> None:
    models = wide["model"].unique()
    owned = {kind: name for kind in kinds if kind.startswith(_JUDGE) for name in models if _is_own(kind, str(name))}
    if not owned:
        return
    percentiles = wide.assign(**{k: wide.groupby("prompt_id")[k].rank(pct=True) for k in kinds})
    for kind, model in owned.items():
        others = [name for name in kinds if name != kind]
        mine = percentiles[(percentiles["model"] == model) & percentiles[kind].notna() & percentiles[others].notna().any(axis=1)]
        beyond = mine[kind] - mine[others].mean(axis=1)
        if len(mine):
            found.rows += by_slice(
                mine.assign(beyond=beyond),
                lambda part, groups: {"self_preference": mean(part["beyond"], groups)},
                options, subject=f"{kind} on {model}", kinds=("family", "source"),
            )  # fmt: skip


def _is_own(kind: str, model: str) -> bool:
    """Whether a kind of score ends in the name of a model: ``judge_gemba_esa_gpt4.1`` and ``GPT-4.1``."""
    plain = ["".join(c for c in name.casefold() if c.isalnum()) for name in (kind, model)]
    return len(plain[1]) >= _SHORTEST_NAME and plain[0].endswith(plain[1])
