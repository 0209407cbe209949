"""What a head gains from more rows, and what that costs: why it learns from 50,000 at most.

``python -m benchmarks.learning_curve --data DIR [--data DIR ...] [--recipe FILE] --rows 1000 3000 10000 30000 100000``

A fifth of the groups is held out. On the others heads are fitted that may learn from so many rows each, and all of them are asked the
held-out prompts: AUC of "the strong model adds value" and APGR by the requirement of the capability that a prompt exercises, and the
squared error of that requirement. The figures are those of ``docs/decisions/0015-scale.md``.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.files.encoders import load_encoder
from training import metrics
from training.assemble import TrainingRows, assemble, load_tables
from training.bootstrap import estimate, resampling_units
from training.consistency import ParallelRows
from training.embed import CachedEncoder
from training.engine import LocalEngine
from training.fit import RequirementsEstimator
from training.inputs import Inputs, training_inputs
from training.recipe import Recipe, recipe_of
from training.split import held_out_groups
from training.train import new_estimator, parallel_inputs

_HELD_OUT: Final = 0.2


def curve(inputs: Inputs, training: TrainingRows, recipe: Recipe, parallel: ParallelRows | None, most: list[int]) -> pd.DataFrame:
    """One line a number of rows that a head may learn from."""
    held = held_out_groups(training.groups, _HELD_OUT, recipe.seed)
    learn, asked = np.flatnonzero(~held), np.flatnonzero(held)
    rows = training.rows.iloc[asked]
    weak, strong, need = (rows[name].to_numpy(dtype=float) for name in ("weak", "strong", "need"))
    own = training.exercised[asked].argmax(axis=1)
    group = resampling_units(rows["group"])
    lines = []
    for rows_a_head in sorted({min(number, len(learn)) for number in most}):
        started = time.process_time()
        estimator = _fitted(inputs, training, learn, recipe, parallel, rows_a_head)
        seconds = time.process_time() - started
        parts = [estimator.predictor_.predict(inputs[asked[i : i + 10_000]].astype(np.float64)) for i in range(0, len(asked), 10_000)]
        predicted = np.concatenate(parts)[np.arange(len(asked)), own]
        statistics = {
            "auc": metrics.auc_statistic(metrics.adds_value(weak, strong), predicted, group),
            "apgr": metrics.apgr_statistic(weak, strong, predicted, group),
        }
        found = estimate(statistics, group, n_bootstrap=300)
        line = {name: f"{e.value:.4f} ({e.low:.4f} to {e.high:.4f})" for name, e in found.items()}
        error = float(np.mean((predicted - need) ** 2))
        lines.append({"rows": rows_a_head, **line, "squared error": round(error, 5), "processor seconds": round(seconds, 1)})
    return pd.DataFrame(lines)


def _fitted(
    inputs: Inputs, training: TrainingRows, learn: NDArray[np.intp], recipe: Recipe, parallel: ParallelRows | None, most: int
) -> RequirementsEstimator:
    part = training.of(learn)
    estimator = new_estimator(inputs.shape[1], recipe)
    estimator.set_params(most_rows=most, calibration_folds=2)
    weight = part.rows["row_weight"].to_numpy(dtype=float)
    return estimator.fit(inputs[learn], part.targets, groups=part.groups, sample_weight=weight, exercised=part.exercised, parallel=parallel)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--recipe", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    arguments = parser.parse_args()
    recipe = recipe_of(arguments.recipe, arguments.data, [], [])
    encoder = CachedEncoder(load_encoder(recipe.encoder))
    training = assemble(*load_tables(arguments.data), recipe, arguments.data)
    parallel = parallel_inputs(encoder, training, recipe)
    with training_inputs(encoder, training.conversations, recipe.budget, LocalEngine()) as inputs:
        print(curve(inputs, training, recipe, parallel, arguments.rows).to_string(index=False))


if __name__ == "__main__":
    main()
