"""How much of APGR a prompt's text can explain on a pool: ``python -m benchmarks.ceiling --data DIR``.

Beside the router, five-fold estimates that know more than any router can: the benchmark's own hidden label of a prompt, and what all other
models scored on the very prompt. And the router once more with folds of rows instead of groups, which puts the same programming problem
(generation and repair) on both sides: what that adds is memory of problems, not skill.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.files.encoders import load_encoder
from training.assemble import TrainingRows, assemble, load_tables
from training.bootstrap import estimate, group_index
from training.embed import CachedEncoder
from training.inputs import inputs_of
from training.metrics import adds_value, apgr_statistic, auc_statistic
from training.outcomes import pool_scores
from training.recipe import Recipe, read_recipe
from training.split import group_folds
from training.train import fit_estimator

Array = NDArray[np.float64]
FOLDS = 5
THIRDS = 3
TREES = {"objective": "cross_entropy", "learning_rate": 0.03, "num_leaves": 7, "min_data_in_leaf": 20, "verbosity": -1, "num_threads": 1}
N_TREES = 250


def held_out_router(training: TrainingRows, inputs: Array, fold: NDArray[np.int64], recipe: Recipe) -> Array:
    """Need of every prompt by heads that did not see its fold, shape (n,)."""
    need = np.empty(len(fold))
    for number in range(FOLDS):
        learn, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        need[held] = fit_estimator(inputs[learn], training.of(learn), recipe).predict(inputs[held]).sum(axis=1)
    return need


def held_out_mean(label: pd.Series[str], target: Array, fold: NDArray[np.int64]) -> Array:
    """Mean target of a prompt's label over the other folds, shape (n,)."""
    need = np.empty(len(fold))
    for number in range(FOLDS):
        learn = fold != number
        means = pd.Series(target[learn]).groupby(label[learn].to_numpy()).mean()
        need[~learn] = label[~learn].map(means).fillna(target[learn].mean())
    return need


def held_out_trees(columns: Array, target: Array, fold: NDArray[np.int64]) -> Array:
    """Need predicted from any columns, shape (n,)."""
    need = np.empty(len(fold))
    for number in range(FOLDS):
        learn = fold != number
        booster = lightgbm.train(TREES, lightgbm.Dataset(columns[learn], target[learn]), N_TREES)
        need[~learn] = booster.predict(columns[~learn])
    return need


def others_on_the_same_prompt(outcomes: pd.DataFrame, rows: pd.DataFrame, recipe: Recipe) -> Array:
    """Mean score that the weak, middle and strong third of all other models reached on every prompt, and which source it is of."""
    named = {name for pair in recipe.pairs for name in (*pair.weak, *pair.strong)}
    columns = np.full((len(rows), THIRDS), np.nan)
    for source, part in rows.groupby("source"):
        scores = pool_scores(outcomes, str(source), str(part["score_kind"].iloc[0]), complete=False).reindex(part["prompt_id"])
        scores = scores.drop(columns=[name for name in scores if name in named])
        order = scores.mean().sort_values().index
        for third, models in enumerate(np.array_split(order, THIRDS)):
            columns[part.index, third] = scores[models].mean(axis=1)
    return np.column_stack([columns, pd.get_dummies(rows["source"]).to_numpy(dtype=float)])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with prompts.parquet and outcomes.parquet of many models")
    parser.add_argument("--recipe", type=Path, default=Path(__file__).with_name("recipes") / "haiku-sonnet.toml")
    parser.add_argument("--encoder", default="fast")
    arguments = parser.parse_args()

    recipe = read_recipe(arguments.recipe)
    prompts, outcomes = load_tables([arguments.data])
    training = assemble(prompts, outcomes, recipe)
    rows = training.rows
    encoder = CachedEncoder(load_encoder(arguments.encoder, 1))
    inputs = inputs_of(encoder, training.conversations, recipe.budget)
    weak, strong, need = (rows[name].to_numpy(dtype=float) for name in ("weak", "strong", "need"))
    strata = rows["source"].to_numpy()
    fold = group_folds(training.groups, FOLDS, recipe.seed, strata=strata)
    row_fold = group_folds(np.arange(len(rows)), FOLDS, recipe.seed, strata=strata)
    hidden = rows["source"] + "/" + rows["category"].fillna("").astype(str)
    others = others_on_the_same_prompt(outcomes, rows, recipe)

    estimates = {
        "random": np.zeros(len(rows)),
        "mean gain of the source": held_out_mean(rows["source"], need, fold),
        "router (groups apart)": held_out_router(training, inputs, fold, recipe),
        "router, rows split at random": held_out_router(training, inputs, row_fold, recipe),
        "hidden label of the benchmark": held_out_mean(hidden, need, fold),
        "other models on the same prompt": held_out_trees(others, need, fold),
        "the same, and the text": held_out_trees(np.column_stack([others, inputs]), need, fold),
        "oracle": strong - weak,
    }
    groups = group_index(training.groups)
    print(f"{len(rows)} prompts in {groups.max() + 1} groups, {recipe.title}")
    print(f"{'what is known of a prompt':34} {'APGR':>6}  95 % interval    AUC")
    for name, score in estimates.items():
        statistics = {"apgr": apgr_statistic(weak, strong, score, groups), "auc": auc_statistic(adds_value(weak, strong), score, groups)}
        values = estimate(statistics, groups, n_bootstrap=500, seed=0)
        a, b = values["apgr"], values["auc"]
        print(f"{name:34} {a.value:6.3f}  {a.low:.3f} to {a.high:.3f}  {b.value:.3f}")


if __name__ == "__main__":
    main()
