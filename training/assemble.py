"""From tables and a recipe to what is fitted: rows, conversations, inputs and targets, in one order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.types import Conversation
from training.outcomes import load_outcomes, match_prompts, pool_scores
from training.pairs import pair_catalog, pair_rows, with_expected_costs
from training.parallel import Translations, load_translations
from training.prompts import Conversations, load_prompts
from training.recipe import Pair, Recipe
from training.targets import TargetMapping, capability_weights, pair_need, pool_need, requirement_targets

Array = NDArray[np.float64]
_OUTPUT_TOKENS = 600


@dataclass(frozen=True)
class TrainingRows:
    """Rows in one order. ``rows`` has the columns of :func:`training.pairs.pair_rows` and ``need``, ``row_weight`` and ``pair``."""

    rows: pd.DataFrame
    conversations: Sequence[Conversation]
    targets: Array
    exercised: Array
    translations: Translations | None = None

    def of(self, index: NDArray[np.intp]) -> TrainingRows:
        """Some of the rows; the translations stay."""
        rows = self.rows.iloc[index].reset_index(drop=True)
        return TrainingRows(
            rows,
            Conversations(rows),
            self.targets[index],
            self.exercised[index],
            self.translations,
        )

    @property
    def groups(self) -> NDArray[np.object_]:
        """Split keys: no group is on both sides of a split."""
        return np.asarray(self.rows["group"], dtype=object)


def load_tables(folders: Sequence[Path]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Prompts and outcomes of one or several data folders, one below the other."""
    if not folders:
        raise InvalidInput("no data folder was given: --data DIR, with prompts.parquet and outcomes.parquet")
    prompts = [load_prompts(folder) for folder in folders]
    outcomes = [load_outcomes(folder) for folder in folders]
    both = pd.concat(prompts, ignore_index=True)
    twice = both.duplicated(["source", "prompt_id"])
    if twice.any():
        row = both[twice].iloc[0]
        raise InvalidInput(f"prompt {row['prompt_id']!r} of source {row['source']!r} is in two of the data folders")
    together = pd.concat(outcomes, ignore_index=True)
    match_prompts(together, both)
    return both, together


def assemble(prompts: pd.DataFrame, outcomes: pd.DataFrame, recipe: Recipe, folders: Sequence[Path] = ()) -> TrainingRows:
    """Rows of all pairs of the recipe with their targets, and its parallel texts, whose files lie in ``folders``.

    Raises
    ------
    InvalidInput
        If a pair has no rows, there is only one class of need to learn from, or a parallel text is missing.
    """
    parts = [_pair_part(prompts, outcomes, pair, recipe.targets).assign(pair=number) for number, pair in enumerate(recipe.pairs)]
    rows = pd.concat(parts, ignore_index=True)
    need = rows["need"].to_numpy(dtype=float)
    if np.ptp(need) < 1e-9:
        raise InvalidInput(
            f"one class only: every one of the {len(rows)} prompts needs {need[0]:g} of the strong model, so no router can be learned; "
            "use more prompts, another kind of score, or another pair"
        )
    tasks = [capability if capability != "unknown" else "reasoning" for capability in rows["capability"]]
    exercised = capability_weights(tasks, recipe.capabilities)
    targets = requirement_targets(need, exercised)
    conversations = Conversations(rows)
    pool, priced = pair_catalog(None, "weak", "strong", recipe.capabilities)
    translations = load_translations(recipe.parallel, prompts, folders, recipe.budget, recipe.seed)
    rows = with_expected_costs(rows, conversations, pool, priced, _OUTPUT_TOKENS)
    return TrainingRows(rows, conversations, targets, exercised, translations)


def _pair_part(prompts: pd.DataFrame, outcomes: pd.DataFrame, pair: Pair, mapping: TargetMapping) -> pd.DataFrame:
    rows = pair_rows(
        prompts, outcomes, pair.weak, pair.strong, score_kinds=pair.score_kinds or None, sources=pair.sources or None, similarity=0.8
    )
    need = pair_need(rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float), mapping)
    if pair.bandwidth > 0:
        for source, part in rows.groupby("source", sort=False):
            need[part.index] = _pooled(outcomes, str(source), part, pair.bandwidth, mapping)
    return rows.assign(need=need, row_weight=pair.weight)


def _pooled(outcomes: pd.DataFrame, source: str, part: pd.DataFrame, bandwidth: float, mapping: TargetMapping) -> Array:
    scores = pool_scores(outcomes, source, str(part["score_kind"].iloc[0]), complete=False).reindex(part["prompt_id"])
    weak, strong = part["weak"].to_numpy(dtype=float), part["strong"].to_numpy(dtype=float)
    return pool_need(scores.to_numpy(dtype=float), weak, strong, bandwidth, mapping)
