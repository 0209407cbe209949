"""One evaluation of a pool from tables to a result: routers trained on folds of groups, or one router as it would serve."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.catalog import ModelCatalog
from router.errors import InvalidInput
from router.files.artifacts import language_identifier, read_artifact
from router.files.encoders import load_encoder
from router.route import Router
from router.selection import RoutingPolicy
from router.text import TextBudget
from router.types import Conversation
from training.evaluate import EvaluationOptions
from training.inputs import inputs_of
from training.pool.evaluation import ROUTER, Operating, PoolResult, evaluate_pool
from training.pool.fit import FittedPool, fit_pool, require_groups, single_within, threshold_within
from training.pool.predictions import PoolPredictions, predict_pool
from training.pool.recipe import PoolRecipe
from training.pool.rows import PoolRows, pool_rows
from training.split import group_folds

Array = NDArray[np.float64]
Progress = Callable[[Iterable[Conversation]], Iterable[Conversation]]
GOALS: Final = (0.003, 0.032)
"""Losses, as shares, of HyDRA's two published operating points (arXiv 2605.17106): 0.3 and 3.2 points below always-strong."""
WHOLE_POOL: Final = "router, whole pool"


@dataclass(frozen=True)
class PoolPlan:
    """What to evaluate: tables, recipe, where list prices come from, and the losses to aim at."""

    prompts: pd.DataFrame
    outcomes: pd.DataFrame
    recipe: PoolRecipe
    catalog: ModelCatalog | None = None
    goals: tuple[float, ...] = GOALS
    options: EvaluationOptions = field(default_factory=EvaluationOptions)

    def rows(self) -> PoolRows:
        """The rows of the pool; see :func:`training.pool.rows.pool_rows`."""
        recipe = self.recipe
        return pool_rows(
            self.prompts, self.outcomes, recipe.models, sources=recipe.sources, score_kinds=recipe.score_kinds, catalog=self.catalog
        )


def folds_of(rows: PoolRows, folds: int | None, seed: int) -> NDArray[np.int64]:
    """Fold of every row: N folds of groups, or one a group (None)."""
    groups = rows.groups.astype(str)
    if folds is None:
        require_groups(rows, 2)
        return np.asarray(np.unique(groups, return_inverse=True)[1], dtype=np.int64).reshape(-1)
    require_groups(rows, folds)
    return group_folds(groups, folds, seed, strata=rows.rows["source"].to_numpy())


def evaluate_cross_validated(
    plan: PoolPlan, folds: int | None, *, encoder: str | None = None, threads: int = 1, say: Callable[[str], None] = print
) -> PoolResult:
    """Train routers on all but one fold and let them route that fold through ``Router.route``, for every fold.

    Everything that a fold's routers know was learned on the other folds: heads, profiles and expected costs of the models, which models are
    worth having, and the thresholds.

    Parameters
    ----------
    folds
        Number of folds; None leaves out one group at a time.
    """
    from training.embed import CachedEncoder

    rows = plan.rows()
    fold = folds_of(rows, folds, plan.recipe.seed)
    text_encoder = CachedEncoder(load_encoder(encoder or plan.recipe.encoder, threads), progress=True)
    inputs = inputs_of(text_encoder, rows.conversations, TextBudget())
    fits: dict[str, list[FittedPool]] = {ROUTER: [], WHOLE_POOL: []}
    records = []
    for number in range(int(fold.max()) + 1):
        learn = np.flatnonzero(fold != number)
        part = rows.of(learn)
        for name, fitted in fits.items():
            fitted.append(fit_pool(part, inputs[learn], text_encoder, plan.recipe, prune=name == ROUTER))
        records.append(_fold_record(number, rows, fold, part, fits[ROUTER][-1], plan.goals))
        say(f"fold {number + 1} of {int(fold.max()) + 1}: fitted on {len(learn)} rows, keeps {records[-1]['kept']}")
    predictions = {
        name: predict_pool([fit.router(text_encoder).route for fit in fitted], rows.conversations, rows.models, fold=fold)
        for name, fitted in fits.items()
    }
    operating = [o for name, fitted in fits.items() for o in _operating(name, rows, fold, fitted, predictions[name], plan.goals)]
    about: dict[str, Any] = {
        "title": plan.recipe.title or f"pool of {len(rows.models)} models",
        "router": f"{int(fold.max()) + 1} routers, each trained on the groups of the other folds",
        "encoder": f"{text_encoder.spec.kind} {text_encoder.spec.name}",
        "list_prices": plan.recipe.cost_basis,
    }
    result = evaluate_pool(rows, predictions, operating, goals=plan.goals, options=plan.options, about=about, folds=pd.DataFrame(records))
    kept = np.mean([fit.kept for fit in fits[ROUTER]], axis=0)
    share = dict(zip(rows.models, kept.tolist(), strict=True))
    result.models["kept_in_folds"] = [share[name] for name in result.models["model"]]
    return result


def evaluate_artifact(plan: PoolPlan, folder: Path | None, *, threads: int = 1, progress: Progress = iter) -> PoolResult:
    """Let the router of an artefact folder (default: the shipped one) route every prompt over the pool's entries of the catalog.

    Raises
    ------
    InvalidInput
        If the catalog lacks a model of the pool: without benchmark figures a router cannot place it.
    """
    if plan.catalog is None:
        raise InvalidInput("a router is judged with a catalog that has the models of the pool: give one, or cross-validate")
    lacking = [name for name in (model.title for model in plan.recipe.models) if name not in plan.catalog]
    if lacking:
        raise InvalidInput(
            f"the catalog has no figures of {', '.join(map(repr, lacking))}: add them, or use --cv, with profiles from training folds"
        )
    rows = plan.rows()
    artifact, name = read_artifact(folder)
    encoder = load_encoder(artifact.encoder, threads)
    policy = RoutingPolicy(shortfall_threshold=artifact.default_threshold)
    router = Router(artifact, encoder, plan.catalog.pool(rows.models), policy, language_identifier())
    predictions = predict_pool(router.route, rows.conversations, rows.models, progress=progress)
    tau = artifact.default_threshold
    own = Operating("router at its threshold", predictions.chosen(tau), np.full(len(rows), tau))
    about = {
        "title": plan.recipe.title or f"pool of {len(rows.models)} models",
        "router": name,
        "encoder": f"{artifact.encoder.kind} {artifact.encoder.name}",
        "list_prices": plan.recipe.cost_basis,
    }
    return evaluate_pool(rows, {ROUTER: predictions}, [own], goals=plan.goals, options=plan.options, about=about)


def goal_title(policy: str, goal: float) -> str:
    """Name of a policy that aims at a loss of at most ``goal`` (a share)."""
    return f"{policy}, aims at -{100 * goal:g}"


def _operating(
    name: str,
    rows: PoolRows,
    fold: NDArray[np.int64],
    fits: Sequence[FittedPool],
    predictions: PoolPredictions,
    goals: Sequence[float],
) -> list[Operating]:
    """Operating points of a router whose thresholds were chosen on training rows, and the single models that those rows would choose."""
    found = []
    for goal in goals:
        parts = [rows.of(np.flatnonzero(fold != number)) for number in range(len(fits))]
        tau = np.array([threshold_within(part, fit.held_out, goal) for part, fit in zip(parts, fits, strict=True)])[fold]
        found.append(Operating(goal_title(name, goal), predictions.chosen(tau), tau))
        if name == ROUTER:
            single = np.array([single_within(part, goal) for part in parts])[fold]
            found.append(Operating(goal_title("one model", goal), single, np.full(len(rows), np.nan)))
    return found


def _fold_record(
    number: int, rows: PoolRows, fold: NDArray[np.int64], part: PoolRows, fit: FittedPool, goals: Sequence[float]
) -> dict[str, Any]:
    held = rows.groups[fold == number].astype(str)
    names = sorted(set(held))
    return {
        "fold": number,
        "held_out": ", ".join(names[:3]) + (f" and {len(names) - 3} more groups" if len(names) > 3 else ""),
        "rows": len(held),
        "bandwidth": fit.bandwidth,
        "kept": ", ".join(name for name, keep in zip(rows.models, fit.kept, strict=True) if keep),
        "gain_over_mixing_in_training": fit.gain,
        **{f"tau_within_{100 * goal:g}": threshold_within(part, fit.held_out, goal) for goal in goals},
    }
