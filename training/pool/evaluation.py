"""A pool of models on real outcomes: quality against total cost over the sweep of tau, beside single models, mixtures and the oracle."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from training.bootstrap import Estimate, Statistic, estimate, group_index
from training.evaluate import EvaluationOptions
from training.pool.levels import expected_loss
from training.pool.mixing import mixture_quality, undominated
from training.pool.predictions import PoolPredictions
from training.pool.rows import PoolRows
from training.pool.statistics import PoolSums, by_group, choice_statistics, mixing_saved, sweep_statistics

Array = NDArray[np.float64]
ROUTER: Final = "router"
METRICS: Final[Mapping[str, str]] = {
    "quality": "mean score",
    "cost_usd": "USD a prompt",
    "loss_to_best": "points below the best single model",
    "loss_to_dearest": "points below the dearest model",
    "saved_of_best": "saved against the best single model",
    "saved_of_dearest": "saved against the dearest model",
    "above_mixing": "points above mixing models at random, for the same money",
    "misroute": "a cheaper model scored as well",
}
"""Name and title of every metric of a policy; losses and gains are shares of 1 in the tables and points in the report."""


@dataclass(frozen=True, slots=True)
class Operating:
    """A way of choosing that was fixed without looking at the evaluated rows.

    ``tau`` is the threshold of every row, shape (n,), NaN where there is none; ``chosen`` the number of the model, shape (n,).
    """

    name: str
    chosen: NDArray[np.intp]
    tau: Array


@dataclass(frozen=True)
class PoolResult:
    """Tables of one evaluation of a pool.

    Attributes
    ----------
    about
        Pool, data, folds, options and the command, as plain data.
    estimates
        One row a (policy, metric): value, low, high, n, n_groups, note. A missing value has its reason in ``note``.
    models
        One row a model: mean score, total cost, whether a mixture of others dominates it, and in how many folds the router kept it.
    curve
        Sweep of tau of every router, and the hull of single models: total cost, mean score, share of calls of every model.
    folds
        One row a fold: groups held out, rows, targets chosen, models kept, thresholds.
    """

    about: Mapping[str, Any]
    estimates: pd.DataFrame
    models: pd.DataFrame
    curve: pd.DataFrame
    folds: pd.DataFrame = field(default_factory=pd.DataFrame)

    def with_about(self, **about: Any) -> PoolResult:
        """The result with more said about it."""
        return replace(self, about={**self.about, **about})

    def get(self, metric: str, policy: str = ROUTER) -> Estimate:
        """One estimate."""
        table = self.estimates
        found = table[(table["metric"] == metric) & (table["policy"] == policy)]
        if len(found) != 1:
            raise InvalidInput(f"no {metric!r} of {policy!r} in this evaluation")
        row = found.iloc[0]
        value, low, high = (None if pd.isna(row[column]) else float(row[column]) for column in ("value", "low", "high"))
        return Estimate(value, low, high, int(row["n"]), int(row["n_groups"]), str(row["note"]))

    def policies(self) -> list[str]:
        """Names of the policies, in order."""
        return list(dict.fromkeys(self.estimates["policy"]))


def evaluate_pool(
    rows: PoolRows,
    routers: Mapping[str, PoolPredictions],
    operating: Sequence[Operating],
    *,
    goals: Sequence[float],
    options: EvaluationOptions,
    about: Mapping[str, Any] | None = None,
    folds: pd.DataFrame | None = None,
) -> PoolResult:
    """Measure predictions that were made already.

    Parameters
    ----------
    routers
        Predictions of one or several routers by name; their whole sweep of tau is measured.
    operating
        Choices that were fixed beforehand, on training rows for instance.
    goals
        Losses against the best single model, as shares, for which the largest savings of each sweep are reported in hindsight.
    """
    for name, predictions in routers.items():
        if predictions.shortfall.shape != rows.scores.shape:
            raise InvalidInput(f"{name}: predictions of shape {predictions.shortfall.shape} for {rows.scores.shape} scores")
    group = group_index(rows.groups)
    pool = PoolSums.of(rows.scores, rows.costs, group)
    statistics = dict(_statistics(rows, pool, group, routers, operating, goals))
    found = estimate(statistics, group, n_bootstrap=options.n_bootstrap, seed=options.seed, level=options.level, min_rows=options.min_rows)
    return PoolResult(
        about={**_about(rows, pool, goals, options), **(about or {})},
        estimates=pd.DataFrame([{"policy": p, "metric": m, **asdict(e)} for (p, m), e in found.items()]),
        models=_models(rows, pool),
        curve=pd.concat([*(_sweep(name, rows, p) for name, p in routers.items()), _hull(rows)], ignore_index=True),
        folds=pd.DataFrame() if folds is None else folds,
    )


def oracle_choice(scores: Array, costs: Array) -> NDArray[np.intp]:
    """The cheapest of the models that scored best on each prompt, shape (n,); where none scored, the cheapest of all."""
    best = scores >= scores.max(axis=1, keepdims=True) - 1e-12
    return np.asarray(np.where(best, costs, np.inf).argmin(axis=1))


def _statistics(
    rows: PoolRows,
    pool: PoolSums,
    group: NDArray[np.intp],
    routers: Mapping[str, PoolPredictions],
    operating: Sequence[Operating],
    goals: Sequence[float],
) -> Iterator[tuple[tuple[str, str], Statistic]]:
    every = np.arange(len(rows))
    fixed = [(name, np.full(len(rows), m)) for m, name in enumerate(rows.models)]
    for name, chosen in [*fixed, ("oracle", oracle_choice(rows.scores, rows.costs)), *((o.name, o.chosen) for o in operating)]:
        quality, cost = rows.scores[every, chosen], rows.costs[every, chosen]
        needless = ((rows.costs < cost[:, None]) & (rows.scores >= quality[:, None]) & (rows.scores > 0)).any(axis=1)
        for metric, found in choice_statistics(
            pool, by_group(quality, group), by_group(cost, group), by_group(needless.astype(float), group)
        ):
            yield (name, metric), found
    for metric, found in choice_statistics(pool, by_group(rows.scores.mean(axis=1), group), by_group(rows.costs.mean(axis=1), group)):
        yield ("random", metric), found
    for goal in goals:
        yield ("mixing", f"hindsight_saved_within_{100 * goal:g}"), mixing_saved(pool, goal)
    for name, predictions in routers.items():
        chosen = np.stack([predictions.chosen(tau) for tau in predictions.taus()], axis=1)
        quality, cost = np.take_along_axis(rows.scores, chosen, axis=1), np.take_along_axis(rows.costs, chosen, axis=1)
        for metric, found in sweep_statistics(pool, by_group(quality, group), by_group(cost, group), goals):
            yield (name, metric), found


def _sweep(name: str, rows: PoolRows, predictions: PoolPredictions) -> pd.DataFrame:
    every = np.arange(len(rows))
    records = []
    for tau in predictions.taus():
        chosen = predictions.chosen(tau)
        records.append(
            {
                "policy": name,
                "tau": float(tau),
                "expected_loss": expected_loss(float(tau)),
                "total_cost_usd": float(rows.costs[every, chosen].sum()),
                "quality": float(rows.scores[every, chosen].mean()),
                **{f"share:{model}": float((chosen == m).mean()) for m, model in enumerate(rows.models)},
            }
        )
    return pd.DataFrame(records)


def _hull(rows: PoolRows) -> pd.DataFrame:
    """The best that mixing models at random can do, over total cost."""
    cost, quality = rows.costs.mean(axis=0), rows.scores.mean(axis=0)
    budget = np.unique(np.concatenate([np.linspace(cost.min(), cost.max(), 101), cost]))
    return pd.DataFrame({"policy": "mixing", "total_cost_usd": budget * len(rows), "quality": mixture_quality(budget, cost, quality)})


def _models(rows: PoolRows, pool: PoolSums) -> pd.DataFrame:
    cost, quality = rows.costs.mean(axis=0), rows.scores.mean(axis=0)
    return pd.DataFrame(
        {
            "model": rows.models,
            "quality": quality,
            "total_cost_usd": rows.costs.sum(axis=0),
            "dominated": ~undominated(cost, quality),
            "best": [m == pool.best for m in range(len(rows.models))],
            "dearest": [m == pool.dearest for m in range(len(rows.models))],
        }
    ).sort_values("total_cost_usd", ignore_index=True)


def _about(rows: PoolRows, pool: PoolSums, goals: Sequence[float], options: EvaluationOptions) -> dict[str, Any]:
    observed = int(rows.observed.sum())
    listed = len(rows) - observed
    said = [f"{observed:,} prompts as observed"] * bool(observed) + [f"{listed:,} prompts from list prices"] * bool(listed)
    return {
        "prompts": len(rows),
        "groups": len(np.unique(rows.groups.astype(str))),
        "largest_group": float(np.bincount(group_index(rows.groups)).max() / len(rows)),
        "sources": sorted(rows.rows["source"].astype(str).unique().tolist()),
        "models": list(rows.models),
        "best": rows.models[pool.best],
        "dearest": rows.models[pool.dearest],
        "solved_by_any": float(rows.scores.max(axis=1).mean()),
        "cost_basis": ", ".join(said),
        "goals": list(goals),
        "options": asdict(options),
    }
