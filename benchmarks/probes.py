"""A new model's profile from a few probes, on real outcomes: ``python -m benchmarks.probes --data DIR --output runs/probes``.

Every model is hidden in turn and recovered from 20 to 200 probes. First the error: its estimated mean score over the bank against the
actual one, with prompts drawn at random, spread over difficulty, or chosen by Fisher information, and two simpler estimators. Then the
regret: what routing loses, at one and the same tau, when a model of the pool has the profile that its probes give in place of the one that
all its training outcomes give. The router is fitted on the rest of the pool, because a new model comes without retraining.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray

from benchmarks.pools import POOLS, RECIPES
from router.catalog import ModelCatalog
from router.files.atomic import write_together
from router.files.encoders import load_encoder
from router.text import TextBudget
from training.assemble import load_tables
from training.embed import CachedEncoder
from training.inputs import inputs_of
from training.pool.fit import FittedPool, catalog_of, fit_pool, predictions_from, threshold_within
from training.pool.levels import profile_levels
from training.pool.predictions import predict_pool
from training.pool.recipe import PoolRecipe, read_pool_recipe
from training.pool.rows import PoolRows
from training.pool.run import PoolPlan, folds_of
from training.probes.bank import Bank
from training.probes.choose import choose_probes
from training.probes.estimate import estimate_score
from training.probes.irt import Items, fit_items

Array = NDArray[np.float64]
SIZES: Final = (20, 50, 100, 200)
DRAWS: Final = 5
GOAL: Final = 0.003
_ANSWERED: Final = 0.95
_Z: Final = 1.959964


def bank_of(rows: PoolRows, hidden: str) -> Bank:
    """All models of a pool's source but the hidden one, on the pool's prompts; models that answered fewer than 95 % are left out."""
    source = str(rows.rows["source"].iloc[0])
    everyone = rows.bystanders[source].reindex(rows.rows["prompt_id"])
    names = [name for name in everyone if name != hidden and everyone[name].notna().mean() >= _ANSWERED]
    scores = everyone[names].to_numpy(dtype=np.float64).T
    return Bank(str(rows.capability[0]), rows.rows, tuple(names), scores, everyone[hidden].to_numpy(dtype=np.float64))


def asked(bank: Bank, items: Items, n: int, how: str, seed: int) -> Array:
    """Scores of the hidden model on n prompts, NaN elsewhere, shape (I,)."""
    if how == "random":
        picked = np.random.default_rng(seed).choice(np.flatnonzero(np.isfinite(bank.new)), n, replace=False)
    else:
        picked = choose_probes(bank, n, "information" if how == "information" else "spread", seed, items)
    scores = np.full(bank.new.size, np.nan)
    scores[picked] = bank.new[picked]
    return scores


def plain_mean(bank: Bank, scores: Array) -> tuple[float, float]:
    """Mean of the probes and its standard error."""
    known = scores[np.isfinite(scores)]
    return float(known.mean()), float(np.sqrt(max(known.var(ddof=1), 0.01) / known.size))


def shrunk_difference(bank: Bank, scores: Array) -> tuple[float, float]:
    """Empirical Bayes: the reference models' mean, and how far the probes lie from it, shrunk by the spread of the reference models."""
    known = np.isfinite(scores)
    difference = scores[known] - np.nanmean(bank.scores[:, known], axis=0)
    noise = difference.var(ddof=1) / known.sum()
    spread = np.nanmean(bank.scores, axis=1).var(ddof=1)
    share = spread / (spread + noise)
    return float(np.nanmean(bank.scores) + share * difference.mean()), float(np.sqrt(share * noise))


def errors_of(rows: PoolRows) -> Iterator[dict[str, object]]:
    """One record a hidden model, number of probes, way of choosing, draw and estimator."""
    source = str(rows.rows["source"].iloc[0])
    everyone = rows.bystanders[source].reindex(rows.rows["prompt_id"])
    for hidden in [str(name) for name in everyone if everyone[name].notna().mean() >= _ANSWERED]:
        bank = bank_of(rows, hidden)
        items = fit_items(bank.scores)
        truth = float(np.nanmean(bank.new))
        for n in SIZES:
            for how, draws in (("random", DRAWS), ("spread", DRAWS), ("information", 1)):
                for draw in range(draws):
                    scores = asked(bank, items, n, how, draw)
                    found = estimate_score(items, scores)
                    record = {"model": hidden, "probes": n, "chosen": how, "draw": draw, "truth": truth}
                    inside = found.low <= truth <= found.high
                    yield {
                        **record,
                        "estimator": "IRT",
                        "error": found.score - truth,
                        "half": (found.high - found.low) / 2,
                        "inside": inside,
                    }
                    if how == "random":
                        for name, estimator in (("shrunk difference", shrunk_difference), ("mean", plain_mean)):
                            value, sd = estimator(bank, scores)
                            inside = abs(value - truth) <= _Z * sd
                            yield {**record, "estimator": name, "error": value - truth, "half": _Z * sd, "inside": inside}


def regrets_of(rows: PoolRows, recipe: PoolRecipe, encoder: CachedEncoder) -> Iterator[dict[str, object]]:
    """One record a hidden model of the pool, number of probes, draw and kind of figure: quality and cost against the full-data profile."""
    inputs = inputs_of(encoder, rows.conversations, TextBudget())
    fold = folds_of(rows, 5, recipe.seed)
    for hidden in range(len(rows.models)):
        rest = np.flatnonzero(np.arange(len(rows.models)) != hidden)
        parts: dict[tuple[int, int, str], list[Array]] = {}
        for number in range(5):
            learn, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
            part = rows.of(learn)
            fit = fit_pool(part.of_models(rest), inputs[learn], encoder, recipe, prune=False)
            for key, change in _fold_regrets(part, rows.of(held), fit, encoder, hidden):
                parts.setdefault(key, []).append(change)
        for (n, draw, figure), changes in parts.items():
            total = np.concatenate(changes, axis=0)
            quality, cost, full, moved = total[:, 0].mean(), total[:, 1].sum(), total[:, 2].sum(), total[:, 3].mean()
            yield {
                "model": rows.models[hidden], "probes": n, "draw": draw, "figure": figure,
                "quality": quality, "cost": cost / full, "moved": moved,
            }  # fmt: skip


def _fold_regrets(
    part: PoolRows, held: PoolRows, fit: FittedPool, encoder: CachedEncoder, hidden: int
) -> Iterator[tuple[tuple[int, int, str], Array]]:
    """Changes on the held-out rows of a fold, shape (rows, 4): score, cost, cost with the full-data profile, choice moved."""
    bank = bank_of(part, part.models[hidden])
    items = fit_items(bank.scores)
    quality = part.scores.mean(axis=0)
    router = replace(fit, catalog=_catalog(part, fit, quality)).router(encoder)
    predictions = predict_pool(router.route, held.conversations, held.models)
    on_training = predictions_from(fit.held_out.requirements, fit.artifact, router.catalog, part.models)
    tau = threshold_within(part, on_training, GOAL)
    every = np.arange(len(held))
    true_choice = predictions.chosen(tau)
    for n in SIZES:
        for draw in range(DRAWS):
            for figure, value in _figures(items, bank, n, draw):
                probed = quality.copy()
                probed[hidden] = value
                again = predictions_from(predictions.requirements, fit.artifact, _catalog(part, fit, probed), held.models)
                choice = again.chosen(tau)
                change = [
                    held.scores[every, choice] - held.scores[every, true_choice],
                    held.costs[every, choice] - held.costs[every, true_choice],
                    held.costs[every, true_choice],
                    (choice != true_choice).astype(np.float64),
                ]
                yield (n, draw, figure), np.stack(change, axis=1)


def _figures(items: Items, bank: Bank, n: int, draw: int) -> Iterator[tuple[str, float]]:
    scores = asked(bank, items, n, "spread", draw)
    found = estimate_score(items, scores)
    yield "estimate", found.score
    yield "lower end", found.low
    yield "lower end of 80 %", estimate_score(items, scores, level=0.8).low


def _catalog(part: PoolRows, fit: FittedPool, quality: Array) -> ModelCatalog:
    """The pool's catalog with profiles from the given mean scores, shape (M,); a source exercises one capability."""
    levels = profile_levels(quality)
    return catalog_of(part, {name: {fit.artifact.capabilities[0]: float(levels[m])} for m, name in enumerate(part.models)})


def error_table(errors: pd.DataFrame) -> pd.DataFrame:
    """Root mean squared error, bias, coverage of the 95 % interval and its half width."""
    grouped = errors.assign(squared=errors["error"] ** 2).groupby(["pool", "estimator", "chosen", "probes"], sort=False)
    table = grouped.agg(
        rmse=("squared", "mean"),
        bias=("error", "mean"),
        coverage=("inside", "mean"),
        half_width=("half", "mean"),
        models=("model", "nunique"),
    )
    return table.assign(rmse=np.sqrt(table["rmse"])).reset_index()


def regret_table(regrets: pd.DataFrame) -> pd.DataFrame:
    """Mean change of score and cost over the hidden models and draws, the worst score, and the share of choices that moved."""
    grouped = regrets.groupby(["pool", "figure", "probes"], sort=False)
    return grouped.agg(
        quality=("quality", "mean"), worst=("quality", "min"), cost=("cost", "mean"), moved=("moved", "mean"), models=("model", "nunique")
    ).reset_index()


def figure_png(errors: pd.DataFrame, regrets: pd.DataFrame) -> bytes:
    """Error and regret over the number of probes, a column a pool."""
    import io

    pools = list(dict.fromkeys(errors["pool"]))
    with mpl.rc_context(
        {"font.size": 8.5, "axes.grid": True, "grid.color": "#dcdcd6", "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(3.1 * len(pools), 5.4), dpi=150, layout="constrained")
        axes = figure.subplots(2, len(pools), squeeze=False, sharex=True, sharey="row")
        for column, pool in enumerate(pools):
            part = errors[errors["pool"] == pool]
            for (estimator, chosen), line in part.groupby(["estimator", "chosen"], sort=False):
                axes[0, column].plot(line["probes"], 100 * line["rmse"], "o-", markersize=3, label=f"{estimator}, {chosen}")
            axes[0, column].set_title(pool)
            for name, line in regrets[regrets["pool"] == pool].groupby("figure", sort=False):
                axes[1, column].plot(line["probes"], -100 * line["quality"], "o-", markersize=3, label=f"{name}: score")
                axes[1, column].plot(line["probes"], 100 * line["cost"], "s--", markersize=3, label=f"{name}: cost, %")
            axes[1, column].set_xscale("log")
            axes[1, column].set_xticks(SIZES, [str(size) for size in SIZES])
            axes[1, column].minorticks_off()
            axes[1, column].set_xlabel("probes")
        axes[0, 0].set_ylabel("RMSE of the mean score, points")
        axes[1, 0].set_ylabel("lost against the full-data profile, points")
        axes[0, -1].legend(frameon=False, fontsize=6.5)
        axes[1, -1].legend(frameon=False, fontsize=6.5)
        buffer = io.BytesIO()
        FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def main() -> None:
    """Print both tables and write them with a plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder with prompts.parquet and outcomes.parquet of many models")
    parser.add_argument("--pool", choices=POOLS, action="append", help="default: all three")
    parser.add_argument("--output", type=Path, default=Path("runs/probes"))
    parser.add_argument("--encoder", default="fast")
    arguments = parser.parse_args()
    prompts, outcomes = load_tables([arguments.data])
    encoder = CachedEncoder(load_encoder(arguments.encoder, 1))
    errors, regrets = [], []
    for pool in arguments.pool or POOLS:
        recipe = read_pool_recipe(RECIPES / f"pool-{pool}.toml")
        rows = PoolPlan(prompts, outcomes, recipe).rows()
        regrets.append(pd.DataFrame(list(regrets_of(rows, recipe, encoder))).assign(pool=pool))
        print(regret_table(regrets[-1]).round(4).to_string(index=False), flush=True)
        errors.append(pd.DataFrame(list(errors_of(rows))).assign(pool=pool))
        print(error_table(errors[-1]).round(4).to_string(index=False), flush=True)
    tables = {"errors": error_table(pd.concat(errors)), "regrets": regret_table(pd.concat(regrets))}
    tables["regrets_by_model"] = pd.concat(regrets).groupby(["pool", "model", "figure", "probes"], sort=False).mean().reset_index()
    files = {f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()}
    files["probes.json"] = json.dumps({name: table.to_dict("records") for name, table in tables.items()}, indent=1).encode()
    files["probes.png"] = figure_png(tables["errors"], tables["regrets"])
    write_together(arguments.output, files)
    print(f"written to {arguments.output}")


if __name__ == "__main__":
    main()
