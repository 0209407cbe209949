"""Item banks: the prompts of one capability that known models answered, and what they scored there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.outcomes import known_model, match_prompts
from training.pairs import capability_of
from training.split import group_key

Array = NDArray[np.float64]
_KEY: Final = ["source", "prompt_id"]
_LEAST_SHARE: Final = 0.5


@dataclass(frozen=True)
class Bank:
    """The prompts of one capability.

    Attributes
    ----------
    prompts
        One row a prompt: source, prompt_id, group, and the columns of the prompt table.
    models
        Reference models, J of them.
    scores
        Their scores, shape (J, I), NaN where a model did not answer.
    new
        Scores of the model that is to be placed, shape (I,); all NaN while it has answered nothing.
    """

    capability: str
    prompts: pd.DataFrame
    models: tuple[str, ...]
    scores: Array
    new: Array

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Prompts on which not all reference models scored the same, shape (I,)."""
        low = np.where(np.isfinite(self.scores), self.scores, np.inf).min(axis=0)
        high = np.where(np.isfinite(self.scores), self.scores, -np.inf).max(axis=0)
        return np.asarray(high > low)


def banks_of(
    prompts: pd.DataFrame,
    outcomes: pd.DataFrame,
    new: str | None,
    *,
    references: Sequence[str] = (),
    sources: Sequence[str] = (),
    score_kinds: Sequence[str] = (),
) -> dict[str, Bank]:
    """One bank a capability.

    Parameters
    ----------
    new
        The model to be placed; None while probes are still to be chosen.
    references
        Models to measure it by; by default all that answered at least half of a capability's prompts.
    score_kinds
        Kinds of score, best first; needed where a source has several.

    Raises
    ------
    InvalidInput
        Unknown models, sources or kinds; several kinds and none named; no prompt left.
    """
    table = _chosen(outcomes, sources, score_kinds)
    for name in (*references, *([new] if new is not None else [])):
        known_model(name, table)
    if new is not None and new in references:
        raise InvalidInput(f"{new!r} is to be measured and is named as a reference too: leave it out of the references")
    match_prompts(table, prompts)
    scores = table.pivot(index=_KEY, columns="model", values="score").rename_axis(columns=None)
    own = scores.pop(new) if new is not None else pd.Series(np.nan, index=scores.index)
    used = prompts.set_index(_KEY, drop=False).loc[scores.index].reset_index(drop=True)
    used["group"] = group_key(used, similarity=None).to_numpy()
    used["capability"] = [capability_of(row) for row in used.reindex(columns=["capability", "task_kind"]).to_dict("records")]
    banks = {}
    for capability in sorted(used["capability"].unique()):
        members = np.flatnonzero(used["capability"] == capability)
        part = scores.iloc[members]
        names = list(references) or [name for name in part if part[name].notna().mean() >= _LEAST_SHARE]
        # Prompts that no reference model answered say nothing of anyone else.
        answered = part[names].notna().any(axis=1).to_numpy() if names else np.zeros(len(part), dtype=bool)
        if answered.any():
            rows, known = members[answered], part[names][answered]
            banks[capability] = Bank(
                capability, used.iloc[rows].reset_index(drop=True), tuple(names), known.to_numpy(dtype=np.float64).T,
                own.iloc[rows].to_numpy(dtype=np.float64),
            )  # fmt: skip
    if not banks:
        raise InvalidInput("no prompt was answered by any reference model: there is nothing to measure a new model by")
    return banks


def _chosen(outcomes: pd.DataFrame, sources: Sequence[str], score_kinds: Sequence[str]) -> pd.DataFrame:
    """Outcomes of the wanted sources, one kind of score for each."""
    for column, wanted in (("source", sources), ("score_kind", score_kinds)):
        known = sorted(outcomes[column].unique())
        for name in wanted:
            if name not in known:
                raise InvalidInput(unknown_name(column, name, known))
    table = outcomes[outcomes["source"].isin(list(sources))] if sources else outcomes
    kinds: Mapping[str, list[str]] = table.groupby("source")["score_kind"].unique().map(list).to_dict()
    parts = []
    for source, found in kinds.items():
        usable = [kind for kind in score_kinds if kind in found] if score_kinds else found
        if len(usable) > 1 and not score_kinds:
            raise InvalidInput(f"source {source!r} has {len(usable)} kinds of score, {', '.join(sorted(usable))}; name one (--score-kind)")
        if usable:
            parts.append(table[(table["source"] == source) & (table["score_kind"] == usable[0])])
    if not parts:
        raise InvalidInput("no source has a score of the kinds named")
    return pd.concat(parts, ignore_index=True)
