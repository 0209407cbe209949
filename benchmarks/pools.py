"""Pools of many models on real outcomes: ``python -m benchmarks.pools --data DIR --pool swebench --output runs/pools``.

Runs `interlock evaluate-pool` with the recipe of the pool and writes its report. SWE-bench leaves out one repository at a time; the others
have five folds of groups. ``--mappings`` compares ways of putting requirements and profiles on one scale instead, on held-out rows of the
training folds only: what a choice between them may look at.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.catalog import Bands
from router.features import FEATURE_NAMES
from router.files.encoders import load_encoder
from router.selection import shortfalls
from router.text import TextBudget
from training.assemble import load_tables
from training.embed import CachedEncoder
from training.fit import RequirementsEstimator, fit_bands
from training.inputs import inputs_of
from training.pool.fit import gain_over_mixing
from training.pool.levels import level, profile_levels
from training.pool.mixing import undominated
from training.pool.predictions import PoolPredictions
from training.pool.recipe import read_pool_recipe
from training.pool.rows import PoolRows
from training.pool.run import PoolPlan, folds_of
from training.probes.irt import GRID, ability, fit_items
from training.targets import pool_need

Array = NDArray[np.float64]
Place = Callable[[Array, Array, Array], tuple[Array, Array]]
POOLS: Final = ("swebench", "livecodebench", "bfcl")
RECIPES: Final = Path(__file__).with_name("recipes")
FOLDS: Final = {"swebench": "groups", "livecodebench": "5", "bfcl": "5"}


def main() -> None:
    """Run the evaluation, or print the comparison of mappings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with prompts.parquet and outcomes.parquet of many models")
    parser.add_argument("--pool", choices=POOLS, action="append", help="default: all three")
    parser.add_argument("--output", type=Path, default=Path("runs/pools"))
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--mappings", action="store_true", help="compare mappings on the training folds, and write nothing")
    arguments = parser.parse_args()
    for pool in arguments.pool or POOLS:
        recipe = RECIPES / f"pool-{pool}.toml"
        if arguments.mappings:
            compare_mappings(arguments.data, recipe, arguments.encoder)
            continue
        command = ["interlock", "evaluate-pool", "--data", str(arguments.data), "--recipe", str(recipe), "--cv", FOLDS[pool]]
        command += ["--encoder", arguments.encoder, "--output", str(arguments.output / pool)]
        print(" ".join(command), flush=True)
        subprocess.run([sys.executable, "-m", *command], check=True)


def compare_mappings(data: Path, path: Path, encoder: str) -> None:
    """Gain over mixing, in points, of every target and scale, averaged over the training parts of five folds."""
    prompts, outcomes = load_tables([data])
    recipe = read_pool_recipe(path)
    rows = PoolPlan(prompts, outcomes, recipe).rows()
    inputs = inputs_of(CachedEncoder(load_encoder(encoder, 1)), rows.conversations, TextBudget())
    fold = folds_of(rows, 5, recipe.seed)
    print(f"{recipe.title}: points above mixing at random, held-out rows of the training folds")
    print(f"{'target':44} " + " ".join(f"{f'{scale}, {part}':>22}" for scale in SCALES for part in ("whole pool", "undominated")))
    for title, target in TARGETS.items():
        found = np.zeros((5, len(SCALES), 2))
        for number in range(5):
            learn = np.flatnonzero(fold != number)
            found[number] = _gains(rows.of(learn), inputs[learn], target, recipe.seed)
        print(f"{title:44} " + " ".join(f"{100 * value:22.2f}" for value in found.mean(axis=0).ravel()), flush=True)


def _gains(rows: PoolRows, inputs: Array, target: Callable[[PoolRows], Array], seed: int) -> Array:
    """Gain over mixing, shape (scales, 2): with all models, and without dominated ones."""
    estimator = RequirementsEstimator(capabilities=("one",), n_embedding=inputs.shape[1] - len(FEATURE_NAMES), random_state=seed)
    need = estimator.fit(inputs, target(rows)[:, None], groups=rows.groups).held_out_
    cost, quality = rows.costs.mean(axis=0), rows.scores.mean(axis=0)
    gains = np.empty((len(SCALES), 2))
    for s, place in enumerate(SCALES.values()):
        for p, kept in enumerate((np.ones(quality.size, dtype=np.bool_), undominated(cost, quality))):
            if kept.sum() < 2:
                kept[np.where(kept, -np.inf, quality).argmax()] = True
            requirement, profile = place(need, quality[kept], cost)
            shortfall = np.full(rows.scores.shape, np.inf)
            for m, own in zip(np.flatnonzero(kept), profile, strict=True):
                shortfall[:, m] = shortfalls(requirement, np.array([own]), np.ones(1)).sum(axis=1)
            order = np.where(kept, np.broadcast_to(cost, shortfall.shape), np.inf)
            gains[s, p] = gain_over_mixing(rows, PoolPredictions(shortfall, requirement, order))
    return gains


def _everyone(rows: PoolRows) -> Array:
    """Scores of all models of the source, shape (n, models)."""
    source = str(rows.rows["source"].iloc[0])
    return np.asarray(rows.bystanders[source].reindex(rows.rows["prompt_id"]), dtype=np.float64)


def _ends(rows: PoolRows) -> tuple[Array, Array]:
    quality = rows.scores.mean(axis=0)
    return rows.scores[:, quality.argmin()], rows.scores[:, quality.argmax()]


def _gap(bandwidth: float) -> Callable[[PoolRows], Array]:
    return lambda rows: pool_need(_everyone(rows), *_ends(rows), bandwidth)


def _cheapest_good(rows: PoolRows) -> Array:
    """Place of the cheapest model that scores best on the prompt; 0 where none scores."""
    quality = rows.scores.mean(axis=0)
    place = (quality - quality.min()) / np.ptp(quality)
    good = rows.scores >= rows.scores.max(axis=1, keepdims=True) - 1e-12
    first = np.where(good, rows.costs.mean(axis=0), np.inf).argmin(axis=1)
    return np.asarray(np.where(rows.scores.max(axis=1) > 0, place[first], 0.0))


def _irt(rows: PoolRows) -> tuple[Array, Array]:
    """Difficulty of the prompts, shape (n,), and expected score of the pool's weakest and best model, shape (n, 2)."""
    everyone = _everyone(rows).T
    items = fit_items(everyone)
    theta = [float(ability(items, end) @ GRID) for end in _ends(rows)]
    return -items.intercept / items.slope, items.probability(np.array(theta)).T


def _irt_gap(rows: PoolRows) -> Array:
    expected = _irt(rows)[1]
    return np.clip(expected[:, 1] - expected[:, 0], 0.0, 1.0)


def _bands(need: Array, quality: Array, cost: Array) -> tuple[Array, Array]:
    """HyDRA's Eq. 3 on the need itself, in the band from its first to its 99th percentile."""
    bands: Bands = fit_bands(need, (1.0, 99.0))
    relative = (quality - quality.min()) / np.ptp(quality)
    return need, bands.low[0] + relative * (bands.high[0] - bands.low[0])


def _levels(need: Array, quality: Array, cost: Array) -> tuple[Array, Array]:
    return level(need), profile_levels(quality)


SCALES: Final[dict[str, Place]] = {"bands": _bands, "levels": _levels}
TARGETS: Final[dict[str, Callable[[PoolRows], Array]]] = {
    "best less weakest model": _gap(0.0),
    "the same, smoothed over like models (0.05)": _gap(0.05),
    "the same, smoothed (0.1)": _gap(0.1),
    "best of all less weakest model": lambda rows: np.clip(rows.scores.max(axis=1) - _ends(rows)[0], 0.0, 1.0),
    "failures of the weakest model": lambda rows: 1.0 - _ends(rows)[0],
    "place of the cheapest model that does": _cheapest_good,
    "share of all models that fail": lambda rows: 1.0 - np.nanmean(_everyone(rows), axis=1),
    "IRT: expected best less expected weakest": _irt_gap,
    "IRT: difficulty": lambda rows: np.asarray(1.0 / (1.0 + np.exp(-_irt(rows)[0]))),
}


if __name__ == "__main__":
    main()
