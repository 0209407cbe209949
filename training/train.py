"""Fit a router on assembled rows, measure it on held-out folds, and write it with its card."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.encoder import TextEncoder
from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.artifacts import language_identifier
from router.route import Router
from router.selection import RoutingPolicy, shortfalls
from training.assemble import TrainingRows, inputs_of
from training.baselines import Policy
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate_predictions
from training.fit import RequirementsEstimator
from training.pairs import pair_catalog
from training.predictions import Predictions, predict_pair
from training.recipe import Recipe
from training.split import group_folds

Array = NDArray[np.float64]
Say = Callable[[str], None]
Learn = Callable[[Array, NDArray[np.int64]], Sequence[Policy]]
"""From inputs, shape (n, d), and fold numbers, shape (n,), to policies that learned each fold's needs from the other folds."""
_PACKAGES: Final = ("interlock", "numpy", "scikit-learn", "lightgbm", "pandas", "tokenizers", "onnxruntime")
_CARD_METRICS: Final = ("apgr", "auc", "ece", "quality_vs_strong", "strong_share", "misroute")


@dataclass(frozen=True)
class TrainedRouter:
    """A router and what was measured of it on prompts it had not seen."""

    artifact: RouterArtifact
    held_out: EvaluationResult


def fit_estimator(inputs: Array, training: TrainingRows, recipe: Recipe) -> RequirementsEstimator:
    """The estimator of a recipe, fitted on its rows."""
    n_embedding = inputs.shape[1] - len(FEATURE_NAMES)
    estimator = RequirementsEstimator(capabilities=recipe.capabilities, n_embedding=n_embedding, random_state=recipe.seed, **recipe.heads)
    weight = training.rows["row_weight"].to_numpy(dtype=float)
    return estimator.fit(inputs, training.targets, groups=training.groups, sample_weight=weight, exercised=training.exercised)


def train_router(training: TrainingRows, encoder: TextEncoder, recipe: Recipe, say: Say = print) -> TrainedRouter:
    """Embed, fit, calibrate, choose the default threshold on held-out predictions, and measure."""
    say(f"embedding {len(training.rows)} prompts with {encoder.spec.kind} {encoder.spec.name}")
    inputs = inputs_of(encoder, training.conversations, recipe.budget)
    kind = recipe.heads.get("kind", RequirementsEstimator().kind)
    say(f"fitting {len(recipe.capabilities)} {kind} heads on {inputs.shape[1]} columns, calibrating on held-out folds")
    estimator = fit_estimator(inputs, training, recipe)
    need = _weak_shortfall(estimator.held_out_, estimator)
    weak, strong = (training.rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
    threshold = threshold_for_quality(need, weak, strong, recipe.quality_goal)
    say(f"default threshold {threshold:.3f}: the largest that keeps {recipe.quality_goal:.0%} of always-strong on held-out rows")
    held_out = evaluate_predictions(
        training.rows.assign(target=training.rows["need"]),
        Predictions(np.stack([need, np.zeros_like(need)], axis=1), estimator.held_out_, recipe.capabilities, threshold),
        options=EvaluationOptions(n_bootstrap=300, seed=recipe.seed),
        about={"weak": recipe.weak_title, "strong": recipe.strong_title},
    )
    artifact = artifact_of(estimator, encoder, recipe, threshold, card=_card(training, recipe), metrics=compact_metrics(held_out))
    return TrainedRouter(artifact, held_out)


def artifact_of(
    estimator: RequirementsEstimator,
    encoder: TextEncoder,
    recipe: Recipe,
    threshold: float,
    *,
    card: Mapping[str, Any] | None = None,
    metrics: Mapping[str, Any] | None = None,
) -> RouterArtifact:
    """What serving needs of a fitted estimator."""
    return RouterArtifact(
        encoder=encoder.spec,
        predictor=estimator.predictor_,
        bands=estimator.bands_,
        residuals=estimator.residuals_,
        budget=recipe.budget,
        default_threshold=threshold,
        card=card or {},
        metrics=metrics or {},
    )


def threshold_for_quality(need: Array, weak: Array, strong: Array, goal: float) -> float:
    """The largest tau at which sending only what needs more than tau to the strong model keeps ``goal`` of always-strong's mean score.

    Chosen between the observed needs, shape (n,), so that a tie never straddles it.
    """
    order = np.argsort(need, kind="stable")
    sorted_need = need[order]
    # quality[i]: the i least needy prompts go to the weak model.
    quality = (strong.sum() + np.concatenate([[0.0], np.cumsum((weak - strong)[order])])) / len(need)
    cuts = np.flatnonzero(np.concatenate([[True], np.diff(sorted_need) > 0, [True]]))
    good = [int(cut) for cut in cuts if quality[cut] >= goal * strong.mean()]
    last = max(good, default=0)
    if last == 0:
        return 0.0
    above = sorted_need[last] if last < len(need) else sorted_need[-1]
    return float((sorted_need[last - 1] + above) / 2)


def _weak_shortfall(requirements: Array, estimator: RequirementsEstimator) -> Array:
    """Shortfall of a model at the low end of every band, shape (n,): that of the weak one of any two."""
    ones = np.ones(requirements.shape[1])
    return np.asarray(shortfalls(requirements, estimator.bands_.low, ones).sum(axis=1))


def cross_validate(
    training: TrainingRows,
    encoder: TextEncoder,
    recipe: Recipe,
    *,
    folds: int = 5,
    learn: Learn | None = None,
    options: EvaluationOptions | None = None,
    about: Mapping[str, Any] | None = None,
    say: Say = print,
) -> EvaluationResult:
    """Train one router a fold on the other folds, let it route the fold's prompts through ``Router.route``, and measure all of them.

    Folds are made of groups. The simple baselines learn from the evaluated rows, which errs in their favour (see
    :func:`baseline_policies`); those of ``learn`` are fitted on the very inputs and folds of the router.
    """
    fold = folds_of(training, recipe, folds)
    inputs = inputs_of(encoder, training.conversations, recipe.budget)
    predictions = held_out_predictions(training, inputs, fold, encoder, recipe, say=say)
    learned = () if learn is None else learn(inputs, fold)
    rows = training.rows.assign(fold=fold, target=training.rows["need"])
    return evaluate_predictions(rows, predictions, learned=learned, options=options, about=dict(about or {}))


def folds_of(training: TrainingRows, recipe: Recipe, folds: int) -> NDArray[np.int64]:
    """Fold of every row, made of groups and alike in every source."""
    groups = training.groups
    if len(np.unique(groups)) < folds:
        raise InvalidInput(f"{len(np.unique(groups))} groups cannot fill {folds} folds: use fewer folds or more prompts")
    return group_folds(groups, folds, recipe.seed, strata=training.rows["source"].to_numpy())


def held_out_predictions(
    training: TrainingRows, inputs: Array, fold: NDArray[np.int64], encoder: TextEncoder, recipe: Recipe, *, say: Say = print
) -> Predictions:
    """What routers trained on the other folds say of every prompt."""
    routers, thresholds = [], []
    for number in range(int(fold.max()) + 1):
        learn = np.flatnonzero(fold != number)
        part = training.of(learn)
        estimator = fit_estimator(inputs[learn], part, recipe)
        need = _weak_shortfall(estimator.held_out_, estimator)
        weak, strong = (part.rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
        thresholds.append(threshold_for_quality(need, weak, strong, recipe.quality_goal))
        routers.append(_pair_router(artifact_of(estimator, encoder, recipe, thresholds[-1]), encoder))
        say(f"fold {number + 1} of {int(fold.max()) + 1}: fitted on {len(learn)} rows, threshold {thresholds[-1]:.3f}")
    # One threshold for all folds keeps the sweep of tau comparable; it is the mean of what the folds chose on their own training rows.
    threshold = float(np.mean(thresholds))
    return predict_pair([router.route for router in routers], training.conversations, "weak", "strong", threshold, fold=fold)


def _pair_router(artifact: RouterArtifact, encoder: TextEncoder) -> Router:
    pool, _ = pair_catalog(None, "weak", "strong", artifact.capabilities)
    return Router(artifact, encoder, pool, RoutingPolicy(shortfall_threshold=artifact.default_threshold), language_identifier())


def compact_metrics(result: EvaluationResult) -> dict[str, Any]:
    """The router's estimates as ``{slice kind: {slice: {metric: [value, low, high, n]}}}``, rounded."""
    table = result.estimates
    table = table[(table["policy"] == "router") & table["metric"].isin(_CARD_METRICS) & table["value"].notna()]
    metrics: dict[str, Any] = {}
    for row in table.itertuples():
        numbers = [None if pd.isna(value) else round(float(value), 4) for value in (row.value, row.low, row.high)]
        metrics.setdefault(str(row.slice_kind), {}).setdefault(str(row.slice), {})[str(row.metric)] = [*numbers, int(row.n)]
    return metrics


def _card(training: TrainingRows, recipe: Recipe) -> dict[str, Any]:
    rows = training.rows
    sources = [
        {
            "source": str(source),
            "prompts": len(part),
            "groups": int(part["group"].nunique()),
            "languages": int(part["language"].nunique()),
            "weak": recipe.pairs[int(part["pair"].iloc[0])].weak[0],
            "strong": recipe.pairs[int(part["pair"].iloc[0])].strong[0],
            "score_kind": str(part["score_kind"].iloc[0]),
            "mean_need": round(float(part["need"].mean()), 4),
            "licence": recipe.pairs[int(part["pair"].iloc[0])].licence,
        }
        for source, part in rows.groupby("source", sort=True)
    ]
    return {
        "title": recipe.title,
        "created": datetime.now(UTC).strftime("%Y-%m-%d"),
        "prompts": len(rows),
        "sources": sources,
        "families": {str(k): int(v) for k, v in rows["family"].value_counts().items()},
        "targets": asdict(recipe.targets),
        "heads": {key: list(value) if isinstance(value, tuple) else value for key, value in recipe.heads.items()},
        "quality_goal": recipe.quality_goal,
        "seed": recipe.seed,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _PACKAGES}},
    }


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"
