"""Is a translated prompt routed as rightly as its original? ``python -m benchmarks.mgsm --data DIR --data data/sample``.

250 school problems in eleven languages, whose English originals a weak and a strong model answered. By folds of problems a router is
trained without them (neither the outcomes nor the text, in any language), then routes every translation; right is the weak model unless the
strong one adds value. The difference to English is within problems, its interval a bootstrap over problems.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.encoder import TextEncoder
from router.files.artifacts import language_identifier
from router.files.encoders import load_encoder
from router.route import Router
from router.selection import RoutingPolicy
from router.types import Conversation
from training.assemble import TrainingRows, assemble, load_tables
from training.consistency import ParallelRows
from training.embed import CachedEncoder
from training.inputs import inputs_of
from training.metrics import adds_value
from training.pairs import pair_catalog
from training.predictions import predict_pair
from training.recipe import Recipe, read_recipe
from training.split import group_folds
from training.train import add_language_effects, artifact_of, fit_estimator, parallel_inputs

FOLDS: Final = 5
SHARES: Final = (0.2, 0.35, 0.5, 0.65, 0.8)
RECIPE: Final = Path(__file__).parents[1] / "training" / "recipes" / "default.toml"


def problems(folders: list[Path], training: TrainingRows) -> pd.DataFrame:
    """Translated problems with the scores and the group of their original: columns group, language, text, weak, strong."""
    found = next((folder / "parallel.parquet" for folder in folders if (folder / "parallel.parquet").is_file()), None)
    if found is None:
        raise SystemExit("no parallel.parquet with MGSM in the data folders: nothing to measure on")
    table = pd.read_parquet(found)
    table = table[table["source"] == "mgsm"].rename(columns={"outcome_prompt_id": "prompt_id"}).drop(columns=["group", "source"])
    originals = training.rows.loc[training.rows["source"] == "routellm_gsm8k", ["prompt_id", "group", "weak", "strong"]]
    return table.merge(originals, on="prompt_id", validate="many_to_one").reset_index(drop=True)


def need_without(
    fold_groups: set[str],
    training: TrainingRows,
    inputs: NDArray[np.float64],
    parallel: ParallelRows | None,
    texts: list[str],
    plan: Recipe,
    encoder: TextEncoder,
) -> NDArray[np.float64]:
    """Need of texts as a router says it that knows nothing of these groups."""
    held_out = training.rows["group"].isin(fold_groups).to_numpy()
    learn = np.flatnonzero(~held_out)
    part = training.of(learn)
    seen = None
    if parallel is not None and training.translations is not None:
        seen = parallel.of(training.translations.seen_by(training.rows[held_out]))
    estimator = fit_estimator(inputs[learn], part, plan, seen)
    effects = add_language_effects(estimator, part, plan)
    artifact = artifact_of(estimator, encoder, plan, 0.1, effects)
    pool, _ = pair_catalog(None, "weak", "strong", artifact.capabilities)
    router = Router(artifact, encoder, pool, RoutingPolicy(), language_identifier())
    return predict_pair(router.route, [Conversation.from_text(text) for text in texts], "weak", "strong", 0.1).need


def accuracy_by_language(table: pd.DataFrame, share: float, resamples: int = 1000) -> pd.DataFrame:
    """Routing accuracy at the tau that sends ``share`` of the English problems to the strong model, and its difference to English."""
    english = table[table["language"] == "en"]
    tau = float(np.quantile(english["need"], 1 - share))
    right = (table["need"] > tau) == adds_value(table["weak"], table["strong"])
    grid = table.assign(right=right.astype(float)).pivot(index="group", columns="language", values="right")
    drawn = np.random.default_rng(0).integers(0, len(grid), (resamples, len(grid)))
    rows = []
    for language in grid.columns.drop("en"):
        apart = (grid[language] - grid["en"]).to_numpy()
        low, high = np.quantile(apart[drawn].mean(axis=1), [0.025, 0.975])
        rows.append((share, language, grid["en"].mean(), grid[language].mean(), apart.mean(), low, high))
    return pd.DataFrame(rows, columns=["strong share", "language", "english", "accuracy", "difference", "low", "high"])


def main() -> None:
    """Print routing accuracy by language at several operating points."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="the outcome tables, and data/sample")
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--output", type=Path, help="write the table as CSV")
    arguments = parser.parse_args()
    plan = replace(read_recipe(arguments.recipe), encoder="fast")
    encoder = CachedEncoder(load_encoder("fast", 1))
    training = assemble(*load_tables(arguments.data), plan, arguments.data)
    table = problems(arguments.data, training)
    inputs, parallel = inputs_of(encoder, training.conversations, plan.budget), parallel_inputs(encoder, training, plan)
    fold = group_folds(table["group"].to_numpy(object), FOLDS, plan.seed)
    table["need"] = np.nan
    for number in range(FOLDS):
        rows = table.index[fold == number]
        texts = table.loc[rows, "text"].tolist()
        table.loc[rows, "need"] = need_without(set(table.loc[rows, "group"]), training, inputs, parallel, texts, plan, encoder)
        print(f"fold {number + 1} of {FOLDS}", flush=True)
    found = pd.concat([accuracy_by_language(table, share) for share in SHARES], ignore_index=True)
    print(f"{table['group'].nunique()} problems in {table['language'].nunique()} languages")
    with pd.option_context("display.width", 200, "display.float_format", "{:.3f}".format):
        for share, part in found.groupby("strong share"):
            print(f"\n{share:.0%} of the English problems to the strong model: English accuracy {part['english'].iloc[0]:.3f}")
            print(part[["language", "accuracy", "difference", "low", "high"]].to_string(index=False))
    if arguments.output:
        found.to_csv(arguments.output, index=False)


if __name__ == "__main__":
    main()
