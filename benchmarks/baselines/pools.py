"""The pools: rows, inputs, folds and answers of a pair of models, the same for every router that is compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.encoders import load_encoder
from router.nearest import unknown_name
from training.assemble import TrainingRows, assemble, load_tables
from training.bootstrap import Array
from training.embed import CachedEncoder
from training.inputs import inputs_of
from training.learned_baselines import answer_table
from training.recipe import Recipe, read_recipe
from training.train import folds_of

FOLDS: Final = 5
_REPOSITORY: Final = Path(__file__).resolve().parents[2]
_RECIPES: Final = _REPOSITORY / "benchmarks" / "recipes"
SAMPLE: Final = "sample"
POOLS: Final = ("haiku-sonnet", "4o-mini-4o", "mixtral-gpt4", "gemma-gpt41", "gpt5mini-opus45", SAMPLE)
"""Names of recipes beside this package; ``sample`` is the one in ``data/sample``, with its own tables."""


@dataclass(frozen=True)
class PoolData:
    """A pool ready to be fitted on.

    Attributes
    ----------
    inputs
        Shape (n, d): the embedding, then the columns of :mod:`router.features`, as serving makes them.
    scores
        Answer table, shape (n, models).
    fold
        0 .. 4, shape (n,), made of groups.
    """

    name: str
    recipe: Recipe
    training: TrainingRows
    encoder: CachedEncoder
    inputs: Array
    scores: Array
    fold: NDArray[np.int64]

    @property
    def rows(self) -> pd.DataFrame:
        """One row a prompt."""
        return self.training.rows

    @property
    def embedding(self) -> Array:
        """The inputs without our columns."""
        return self.inputs[:, : -len(FEATURE_NAMES)]


def load_pool(name: str, data: Path | None, encoder: str, most: int | None = None) -> PoolData:
    """Rows, inputs and folds of a pool.

    Parameters
    ----------
    data
        Folder with prompts and outcomes; not read for the sample, which every other pool takes its translations from.
    encoder
        ``fast``, ``full``, or a SentenceTransformer.
    most
        Prompts a source; more are drawn at random by the recipe's seed. None takes all.
    """
    if name not in POOLS:
        raise InvalidInput(f"--pools: {unknown_name('pool', name, list(POOLS))}")
    sample = _REPOSITORY / "data" / "sample"
    recipe = read_recipe(sample / "recipe.toml" if name == SAMPLE else _RECIPES / f"{name}.toml")
    if name != SAMPLE and data is None:
        raise InvalidInput(f"pool {name} needs outcome tables: --data DIR")
    folders = [sample] if name == SAMPLE or data is None else [data, sample]
    tables = load_tables(folders)
    recipe = recipe.with_encoder(encoder, None)
    training = assemble(*tables, recipe, folders)
    if most is not None:
        training = training.of(_drawn(training.rows["source"], most, recipe.seed))
    text_encoder = CachedEncoder(load_encoder(recipe.encoder, 1, prefix=recipe.encoder_prefix))
    return PoolData(
        name=name,
        recipe=recipe,
        training=training,
        encoder=text_encoder,
        inputs=inputs_of(text_encoder, training.conversations, recipe.budget),
        scores=answer_table(training.rows, tables[1], recipe.models),
        fold=folds_of(training, recipe, FOLDS),
    )


def _drawn(source: pd.Series[str], most: int, seed: int) -> NDArray[np.intp]:
    """Row numbers, in order, of at most ``most`` rows a source."""
    order = np.random.default_rng(seed).permutation(len(source))
    place = source.iloc[order].groupby(source.iloc[order].to_numpy()).cumcount().to_numpy()
    return np.asarray(np.sort(order[place < most]), dtype=np.intp)
