"""The rows of a pool: what every model of it scored on each prompt, and what that cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.catalog import ModelCatalog, ModelProfile, Prices
from router.cost import expected_cost_usd, tokens_of
from router.errors import InvalidInput
from router.selection import RoutingPolicy
from router.types import Conversation
from training.outcomes import known_model, match_prompts
from training.pairs import capability_of, grouped_prompts, one_name
from training.prompts import to_conversations

Array = NDArray[np.float64]
_KEY: Final = ["source", "prompt_id"]
OUTPUT_TOKENS: Final = RoutingPolicy().expected_output_tokens


@dataclass(frozen=True, slots=True)
class PoolModel:
    """A model of a pool: the names that sources give to it, the first of which reports use, and its list prices where they are known."""

    names: tuple[str, ...]
    prices: Prices | None = None

    @property
    def title(self) -> str:
        """The first name."""
        return self.names[0]


@dataclass(frozen=True)
class PoolRows:
    """Prompts that every model of the pool answered.

    Attributes
    ----------
    rows
        One row a prompt: the columns of the prompt table, ``group`` (split key), ``capability`` and ``score_kind``.
    models
        Titles of the models, M of them.
    scores, costs
        Shape (n, M): score in [0, 1], and US dollars of that answer.
    observed
        Whether the costs of a row are those of the outcomes (else list prices times estimated tokens), shape (n,).
    bystanders
        Scores of every model of a source, the pool's too, by source: index ``prompt_id``, NaN where a model did not answer.
    """

    rows: pd.DataFrame
    conversations: list[Conversation]
    models: tuple[str, ...]
    scores: Array
    costs: Array
    observed: NDArray[np.bool_]
    bystanders: Mapping[str, pd.DataFrame]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def groups(self) -> NDArray[np.object_]:
        """Split keys."""
        return np.asarray(self.rows["group"], dtype=object)

    @property
    def capability(self) -> NDArray[np.object_]:
        """Capability that each prompt exercises."""
        return np.asarray(self.rows["capability"], dtype=object)

    def of(self, index: NDArray[np.intp]) -> PoolRows:
        """Some of the rows."""
        return replace(
            self,
            rows=self.rows.iloc[index].reset_index(drop=True),
            conversations=[self.conversations[i] for i in index],
            scores=self.scores[index],
            costs=self.costs[index],
            observed=self.observed[index],
        )

    def of_models(self, index: NDArray[np.intp]) -> PoolRows:
        """The same prompts with some of the models."""
        names = tuple(self.models[m] for m in index)
        return replace(self, models=names, scores=self.scores[:, index], costs=self.costs[:, index])


def pool_rows(
    prompts: pd.DataFrame,
    outcomes: pd.DataFrame,
    models: Sequence[PoolModel],
    *,
    sources: Sequence[str] = (),
    score_kinds: Sequence[str] = (),
    catalog: ModelCatalog | None = None,
) -> PoolRows:
    """Join prompts with the outcomes of all models of a pool.

    Parameters
    ----------
    sources
        Sources to use; by default all in which every model has scores.
    score_kinds
        Kinds of score, best first; by default the only one that all models have.
    catalog
        Where list prices come from for a model that has none of its own.

    Raises
    ------
    InvalidInput
        Fewer than two models, an unknown one, no prompt that all answered, several kinds of score and none named, no costs, or models
        that score the same on every prompt.
    """
    titles = [model.title for model in models]
    if len(titles) < 2 or len(set(titles)) < len(titles):
        raise InvalidInput(f"a pool of {', '.join(titles) or 'no model'}: at least two models were expected, each named once")
    table = outcomes if not sources else outcomes[outcomes["source"].isin(list(sources))]
    for model in models:
        for name in model.names:
            known_model(name, table)
        table = one_name(table, model.names)
    parts, bystanders = [], {}
    for source, part in table.groupby("source", sort=True):
        found = _source_part(str(source), part, titles, score_kinds)
        if found is not None:
            parts.append(found[0])
            bystanders[str(source)] = found[1]
    if not parts:
        raise InvalidInput(_nothing_shared(table, titles))
    together = pd.concat(parts, ignore_index=True)
    match_prompts(together, prompts)
    rows = grouped_prompts(prompts, together, 0.8)
    rows = together.merge(rows, on=_KEY, how="inner", validate="one_to_one").sort_values(_KEY, ignore_index=True)
    scores = rows[[f"score:{m}" for m in titles]].to_numpy(dtype=np.float64)
    _refuse_identical(scores, titles)
    rows["capability"] = [capability_of(row) for row in rows.reindex(columns=["capability", "task_kind"]).to_dict("records")]
    conversations = to_conversations(rows)
    cost = rows[[f"cost:{m}" for m in titles]].to_numpy(dtype=np.float64)
    observed = np.isfinite(cost).all(axis=1)
    cost = np.where(observed[:, None], cost, _list_costs(models, conversations, catalog, needed=~observed))
    kept = rows.drop(columns=[column for column in rows if str(column).startswith(("score:", "cost:"))])
    return PoolRows(kept, conversations, tuple(titles), scores, cost, observed, bystanders)


def _source_part(source: str, part: pd.DataFrame, titles: Sequence[str], wanted: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame] | None:
    """Scores and costs of the prompts that all models answered, and the scores of all models there; None if there are no such prompts."""
    tables = {}
    for kind, rows in part.groupby("score_kind", sort=True):
        scores = rows.pivot(index="prompt_id", columns="model", values="score").rename_axis(columns=None)
        if set(titles) <= set(scores.columns) and scores[list(titles)].notna().all(axis=1).any():
            tables[str(kind)] = (rows, scores)
    kinds = [kind for kind in wanted if kind in tables] if wanted else list(tables)
    if not kinds:
        return None
    if len(kinds) > 1 and not wanted:
        raise InvalidInput(f"source {source!r}: the models of the pool share {len(kinds)} kinds of score, {', '.join(kinds)}; name one")
    rows, scores = tables[kinds[0]]
    complete = scores[scores[list(titles)].notna().all(axis=1)]
    cost = rows.pivot(index="prompt_id", columns="model", values="cost_usd").reindex(index=complete.index, columns=list(titles))
    values = {f"score:{m}": complete[m] for m in titles} | {f"cost:{m}": cost[m] for m in titles}
    joined = pd.DataFrame(values).rename_axis(index="prompt_id").reset_index()
    return joined.assign(source=source, score_kind=kinds[0]), scores


def _list_costs(
    models: Sequence[PoolModel], conversations: Sequence[Conversation], catalog: ModelCatalog | None, *, needed: NDArray[np.bool_]
) -> Array:
    """Cost of one turn at list price, shape (n, M)."""
    if not needed.any():
        return np.zeros((len(conversations), len(models)))
    profiles = []
    for model in models:
        prices = model.prices
        if prices is None and catalog is not None:
            prices = next((catalog[name].prices for name in model.names if name in catalog), None)
        if prices is None:
            raise InvalidInput(
                f"{int(needed.sum())} prompts have no cost_usd for every model of the pool, and there is no list price of {model.title!r}: "
                "add cost_usd to the outcomes, the model to the catalog, or prices to the recipe"
            )
        profiles.append(ModelProfile(model.title, "", prices, {}))
    tokens = [tokens_of(conversation, OUTPUT_TOKENS) for conversation in conversations]
    return np.array([[expected_cost_usd(profile, turn) for profile in profiles] for turn in tokens])


def _refuse_identical(scores: Array, titles: Sequence[str]) -> None:
    if (scores == scores[:, :1]).all():
        raise InvalidInput(
            f"the {len(titles)} models of the pool score the same on every one of {len(scores)} prompts: the cheapest is always right "
            "and there is nothing to route"
        )


def _nothing_shared(table: pd.DataFrame, titles: Sequence[str]) -> str:
    have = table[table["model"].isin(list(titles))].groupby("model")["source"].unique()
    listed = "; ".join(f"{title!r} has {', '.join(sorted(have.get(title, []))[:4]) or 'nothing'}" for title in titles)
    return f"the models of the pool share no scored prompt, or none with the kind of score named: {listed}"
