"""The rows an evaluation runs on: what a weak and a strong model scored on each prompt, what that cost, and the slices a prompt is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd

from router.catalog import ModelCatalog, ModelProfile, Prices
from router.cost import expected_cost_usd, tokens_of
from router.errors import InvalidInput
from router.languages import estimate_tokens
from router.types import Conversation
from training.dedup import near_duplicates
from training.outcomes import known_model, match_prompts, pair_scores
from training.prompts import Conversations
from training.split import group_key, prompt_texts
from training.tables import shared_texts
from training.targets import CAPABILITY_OF_TASK

ROW_COLUMNS: Final = (
    "source", "prompt_id", "language", "family", "capability", "group", "score_kind", "weak", "strong", "weak_cost_usd", "strong_cost_usd",
    "tokens",
)  # fmt: skip
# A stand-in needs an order of prices for the selection; what it says is never reported as a cost.
_STAND_IN_PRICES: Final = {"weak": Prices(1.0, 1.0), "strong": Prices(2.0, 2.0)}
_EVERYTHING: Final = frozenset({"text", "image", "audio", "file"})


def pair_catalog(
    catalog: ModelCatalog | None,
    weak: str,
    strong: str,
    capabilities: Sequence[str],
    *,
    weak_prices: Prices | None = None,
    strong_prices: Prices | None = None,
) -> tuple[ModelCatalog, bool]:
    """The pool of two that a router is evaluated on, and whether its prices are real.

    Two models of the catalog are taken as they are. Otherwise both get a stand-in: raw capability 0 for the weak and 1 for the strong
    model, which pool-relative profiles turn into the ends of the bands, as for any pair where the strong one is better throughout.
    """
    if weak == strong:
        raise InvalidInput(f"weak and strong are the same model, {weak!r}; name two")
    known = catalog is not None and weak in catalog and strong in catalog
    models = []
    for role, name, prices in (("weak", weak, weak_prices), ("strong", strong, strong_prices)):
        profile = catalog[name] if catalog is not None and known else _stand_in(role, name, capabilities)
        models.append(profile if prices is None else replace(profile, prices=prices))
    priced = known or (weak_prices is not None and strong_prices is not None)
    return ModelCatalog(tuple(models)), priced


def _stand_in(role: str, name: str, capabilities: Sequence[str]) -> ModelProfile:
    raw = dict.fromkeys(capabilities, 0.0 if role == "weak" else 1.0)
    return ModelProfile(name, "", _STAND_IN_PRICES[role], raw, context_window_tokens=10**9, modalities=_EVERYTHING)  # type: ignore[arg-type]


def pair_rows(
    prompts: pd.DataFrame,
    outcomes: pd.DataFrame,
    weak: str | Sequence[str],
    strong: str | Sequence[str],
    *,
    score_kinds: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    similarity: float | None = 0.8,
) -> pd.DataFrame:
    """Join prompts and the pair's outcomes.

    Parameters
    ----------
    prompts, outcomes
        As loaded by :mod:`training.prompts` and :mod:`training.outcomes`.
    weak, strong
        Name of a model, or several names that sources give to one and the same model.
    score_kinds
        Kinds of score to use, best first.
    sources
        Sources to use; all by default.
    similarity
        See :func:`training.split.group_key`.

    Returns
    -------
    pandas.DataFrame
        The columns of :data:`ROW_COLUMNS` and those of the prompts; one row a prompt that both models answered. Costs are NaN where the
        outcomes have none; ``tokens`` is the estimated length of what the user wrote; ``near_duplicate`` marks a prompt that nearly
        repeats an earlier one (absent where ``similarity`` is None).
    """
    weak_name, strong_name = _first(weak), _first(strong)
    table = one_name(one_name(outcomes, weak), strong)
    pairs = pair_scores(table, weak_name, strong_name, list(score_kinds) if score_kinds else None, sources=sources, check_labels=False)
    match_prompts(pairs, prompts)
    pairs = _with_costs(pairs, table, weak_name, strong_name)
    rows = grouped_prompts(prompts, pairs, similarity)
    rows = pairs.merge(rows, on=["source", "prompt_id"], how="inner", validate="one_to_one")
    kinds = rows.reindex(columns=["capability", "task_kind"])
    rows["capability"] = [
        capability_of({"capability": given, "task_kind": kind}) for given, kind in zip(kinds["capability"], kinds["task_kind"], strict=True)
    ]
    rows["tokens"] = [float(sum(map(estimate_tokens, conversation.user_texts))) for conversation in Conversations(rows)]
    rows = rows.assign(source=shared_texts(rows["source"]), score_kind=shared_texts(rows["score_kind"]))
    return rows.sort_values(["source", "prompt_id"], ignore_index=True)


def with_expected_costs(
    rows: pd.DataFrame, conversations: Sequence[Conversation], pool: ModelCatalog, priced: bool, output_tokens: int
) -> pd.DataFrame:
    """Where outcomes have no cost and prices are known, fill in the cost of one turn at list price."""
    filled = rows.copy()
    both = rows[["weak_cost_usd", "strong_cost_usd"]].notna().all(axis=1).to_numpy()
    if both.all():
        return filled
    tokens = [tokens_of(conversation, output_tokens) for conversation in conversations]
    for model, column in zip(pool.models, ("weak_cost_usd", "strong_cost_usd"), strict=True):
        expected = np.array([expected_cost_usd(model, turn) for turn in tokens]) if priced else np.full(len(rows), np.nan)
        filled[column] = np.where(both, rows[column], expected)
    return filled


def _first(names: str | Sequence[str]) -> str:
    if isinstance(names, str):
        return names
    if not names:
        raise InvalidInput("no model name was given")
    return names[0]


def one_name(outcomes: pd.DataFrame, names: str | Sequence[str]) -> pd.DataFrame:
    """The outcomes with all names of one model replaced by the first."""
    if isinstance(names, str) or len(names) == 1:
        return outcomes
    for name in names:
        known_model(name, outcomes)
    renamed = outcomes.assign(model=outcomes["model"].replace(dict.fromkeys(names[1:], names[0])))
    twice = renamed["model"].eq(names[0]) & renamed.duplicated(["source", "prompt_id", "model", "score_kind"])
    if twice.any():
        raise InvalidInput(
            f"{' and '.join(names)} are both in source {renamed.loc[twice, 'source'].iloc[0]!r}: they are not one model there"
        )
    return renamed


def _with_costs(pairs: pd.DataFrame, outcomes: pd.DataFrame, weak: str, strong: str) -> pd.DataFrame:
    key = ["source", "prompt_id", "score_kind"]
    for name, column in ((weak, "weak_cost_usd"), (strong, "strong_cost_usd")):
        cost = outcomes.loc[outcomes["model"] == name, [*key, "cost_usd"]].rename(columns={"cost_usd": column})
        pairs = pairs.merge(cost, on=key, how="left")
    return pairs


def grouped_prompts(prompts: pd.DataFrame, pairs: pd.DataFrame, similarity: float | None) -> pd.DataFrame:
    """The prompts that are used, with their split keys and marked where they nearly repeat an earlier one."""
    used = pd.MultiIndex.from_frame(prompts[["source", "prompt_id"]]).isin(pd.MultiIndex.from_frame(pairs[["source", "prompt_id"]]))
    part = prompts[used]
    duplicates = [] if similarity is None else near_duplicates(prompt_texts(part), similarity=similarity)
    grouped = part.assign(group=group_key(part, similarity=None, duplicates=duplicates))
    if similarity is None:
        return grouped
    return grouped.assign(near_duplicate=np.isin(np.arange(len(part)), [later for _, later in duplicates]))


def capability_of(row: dict[str, Any]) -> str:
    """Capability that a prompt exercises, from its fields ``capability`` and ``task_kind``; "unknown" where neither says."""
    given, kind = row["capability"], row["task_kind"]
    if isinstance(given, str) and given:
        return given
    return CAPABILITY_OF_TASK.get(kind, "unknown") if isinstance(kind, str) else "unknown"
