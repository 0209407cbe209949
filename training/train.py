"""Fit a router on assembled rows, measure it on held-out folds, and write it with its card."""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import Bands
from router.encoder import TextEncoder
from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.artifacts import language_identifier
from router.language_effects import LanguageEffects
from router.route import Router
from router.selection import RoutingPolicy, shortfalls
from training.assemble import TrainingRows
from training.baselines import Policy
from training.consistency import ParallelRows
from training.engine import Engine, LocalEngine
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate_predictions
from training.fit import RequirementsEstimator
from training.guarantee_run import about_rows, guarantee_for, with_guarantee
from training.inputs import MANY_ROWS, inputs_of, training_inputs
from training.language_effects import fit_language_effects
from training.pairs import pair_catalog
from training.predictions import Predictions, predict_pair
from training.progress import Stage, counting, uncounted, unwatched
from training.promise import Guarantee
from training.recipe import Recipe
from training.split import group_folds, held_out_groups
from training.worst import Explainer

Array = NDArray[np.float64]
Say = Callable[[str], None]
Learn = Callable[[Array, NDArray[np.int64]], Sequence[Policy]]
"""From inputs, shape (n, d), and fold numbers, shape (n,), to policies that learned each fold's needs from the other folds."""
_PACKAGES: Final = ("interlock", "numpy", "scikit-learn", "lightgbm", "pandas", "tokenizers", "onnxruntime")
_CARD_METRICS: Final = ("apgr", "auc", "ece", "quality_vs_strong", "strong_share", "misroute")


@dataclass(frozen=True)
class TrainedRouter:
    """A router, what was measured of it on prompts it had not seen, the rows it was fitted on, and what is promised if that was wanted."""

    artifact: RouterArtifact
    held_out: EvaluationResult
    fitted: pd.DataFrame
    guarantee: Guarantee | None = None


def parallel_inputs(encoder: TextEncoder, training: TrainingRows, recipe: Recipe) -> ParallelRows | None:
    """Inputs of the recipe's translations, in their order; None if it has none."""
    texts = training.translations
    if texts is None:
        return None
    return ParallelRows(inputs_of(encoder, texts.conversations, recipe.budget), texts.meaning, texts.source)


def new_estimator(columns: int, recipe: Recipe) -> RequirementsEstimator:
    """The estimator of a recipe for inputs of so many columns."""
    n_embedding = columns - len(FEATURE_NAMES)
    return RequirementsEstimator(capabilities=recipe.capabilities, n_embedding=n_embedding, random_state=recipe.seed, **recipe.heads)


def fit_estimator(
    inputs: NDArray[np.floating],
    training: TrainingRows,
    recipe: Recipe,
    parallel: ParallelRows | None = None,
    engine: Engine | None = None,
) -> RequirementsEstimator:
    """The estimator of a recipe, fitted on its rows and held to answer alike on its translations."""
    estimator = new_estimator(inputs.shape[1], recipe)
    weight = training.rows["row_weight"].to_numpy(dtype=float)
    pieces = (estimator.calibration_folds + 1) * len(recipe.capabilities)
    with counting("fitting heads", pieces) if len(inputs) >= MANY_ROWS else nullcontext(uncounted) as count:
        return estimator.fit(
            inputs,
            training.targets,
            groups=training.groups,
            sample_weight=weight,
            exercised=training.exercised,
            parallel=parallel,
            engine=engine,
            progress=count,
        )


def train_router(
    training: TrainingRows,
    encoder: TextEncoder,
    recipe: Recipe,
    say: Say = print,
    *,
    engine: Engine | None = None,
    stage: Stage = unwatched,
) -> TrainedRouter:
    """Embed, fit, calibrate, choose the default threshold on held-out predictions, and measure.

    Where the recipe has a guarantee, a share of the groups is kept from all of this and then chooses the thresholds: what is promised is
    promised for this very router. It is not fitted once more on everything, because nothing would be known about that one.

    Parameters
    ----------
    engine
        Where prompts are embedded and, on a cluster, heads fitted; this process by default.
    stage
        Wraps the stages ``embed``, ``fit and calibrate`` and ``evaluate``, for whoever times them.
    """
    engine = engine or LocalEngine()
    training, calibration = _set_aside(training, recipe, say)
    estimator, effects = _fitted(training, calibration, encoder, recipe, say, engine, stage)
    with stage("evaluate"):
        need = _weak_shortfall(estimator)
        if np.ptp(need) == 0:
            raise InvalidInput(
                f"nothing was learned: every one of the {len(need)} prompts is given the same requirement while it is held out, so that "
                "one model would get them all; use more prompts, other labels, or another pair"
            )
        artifact = artifact_of(estimator, encoder, recipe, 0.0, effects, card=_card(training, recipe))
        guarantee = None
        if recipe.guarantee is not None and calibration is not None:
            route = _pair_router(artifact, encoder, artifact.default_threshold).route
            guarantee = guarantee_for(route, calibration.rows, calibration.conversations, "weak", "strong", recipe.guarantee)
            about = about_rows(calibration.rows, recipe.weak_title, recipe.strong_title)
            artifact = with_guarantee(artifact, guarantee, about).artifact
            say(guarantee.statement)
        else:
            weak, strong = (training.rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
            threshold = threshold_for_quality(need, weak, strong, recipe.quality_goal)
            artifact = replace(artifact, default_threshold=threshold)
            say(f"default threshold {threshold:.3f}: {quality_words(need, weak, strong, threshold, recipe.quality_goal)}")
        held_out = _measured(training, need, estimator.held_out_, artifact, recipe)
    return TrainedRouter(replace(artifact, metrics=compact_metrics(held_out)), held_out, training.rows, guarantee)


def _fitted(
    training: TrainingRows,
    calibration: TrainingRows | None,
    encoder: TextEncoder,
    recipe: Recipe,
    say: Say,
    engine: Engine,
    stage: Stage,
) -> tuple[RequirementsEstimator, LanguageEffects]:
    """Embed the rows, fit and calibrate the heads on them, and learn what languages add."""
    say(f"embedding {len(training.rows)} prompts with {encoder.spec.kind} {encoder.spec.name}")
    with ExitStack() as stack:
        with stage("embed"):
            inputs = stack.enter_context(training_inputs(encoder, training.conversations, recipe.budget, engine))
        kind = recipe.heads.get("kind", RequirementsEstimator().kind)
        say(f"fitting {len(recipe.capabilities)} {kind} heads on {inputs.shape[1]} columns, calibrating on held-out folds")
        with stage("fit and calibrate"):
            parallel = parallel_inputs(encoder, training, recipe)
            if calibration is not None:
                parallel = unseen_translations(parallel, training, calibration.rows)
            if parallel is not None:
                say(f"with {len(parallel.meaning)} translations of {len(set(parallel.meaning))} texts that should be answered alike")
            # On one machine further processes would hold further samples and cores are few; on a cluster both are there to be used.
            estimator = fit_estimator(inputs, training, recipe, parallel, None if isinstance(engine, LocalEngine) else engine)
            effects = add_language_effects(estimator, training, recipe)
    if recipe.language_effects:
        say(_said(effects))
    return estimator, effects


def add_language_effects(estimator: RequirementsEstimator, training: TrainingRows, recipe: Recipe) -> LanguageEffects:
    """Learn what languages add to the estimator's held-out predictions, and give it held-out predictions, bands and residuals with it."""
    if not recipe.language_effects:
        return LanguageEffects()
    rows = training.rows
    predicted = estimator.held_out_[np.arange(len(rows)), training.exercised.argmax(axis=1)]
    source, language, family = (rows[name].to_numpy(object) for name in ("source", "language", "family"))
    need, weight = (rows[name].to_numpy(dtype=float) for name in ("need", "row_weight"))
    effects = fit_language_effects(predicted, need, source, language, family, weight)
    if effects:
        estimator.take_held_out(effects.apply(estimator.held_out_, language.tolist()), training.targets)
    return effects


def _said(effects: LanguageEffects) -> str:
    if not effects:
        return "no language effect: in no source do languages differ by more than chance once the task is known"
    most = sorted(effects.languages.items(), key=lambda item: -abs(item[1]))[:5]
    listed = ", ".join(f"{name} {effect:+.2f}" for name, effect in most)
    return f"language effects, in log-odds of the need: {listed}{', and smaller ones' if len(effects.languages) > 5 else ''}"


def _set_aside(training: TrainingRows, recipe: Recipe, say: Say) -> tuple[TrainingRows, TrainingRows | None]:
    """Rows to fit on, and those that choose a threshold under a guarantee."""
    if recipe.guarantee is None:
        return training, None
    held = held_out_groups(training.groups, recipe.guarantee.share, recipe.seed)
    calibration = training.of(np.flatnonzero(held))
    say(f"setting {len(calibration.rows)} prompts of {len(set(calibration.groups))} groups aside to choose the threshold")
    return training.of(np.flatnonzero(~held)), calibration


def _measured(training: TrainingRows, need: Array, held_out: Array, artifact: RouterArtifact, recipe: Recipe) -> EvaluationResult:
    """The router's figures from the held-out predictions of its fitting rows."""
    predictions = Predictions(
        np.stack([need, np.zeros_like(need)], axis=1),
        held_out,
        recipe.capabilities,
        artifact.default_threshold,
        families=tuple(training.rows["family"]),
        family_thresholds=artifact.family_thresholds,
    )
    return evaluate_predictions(
        training.rows.assign(target=training.rows["need"]),
        predictions,
        options=EvaluationOptions(n_bootstrap=300, seed=recipe.seed),
        about={"weak": recipe.weak_title, "strong": recipe.strong_title},
    )


def artifact_of(
    estimator: RequirementsEstimator,
    encoder: TextEncoder,
    recipe: Recipe,
    threshold: float,
    effects: LanguageEffects,
    *,
    card: Mapping[str, Any] | None = None,
) -> RouterArtifact:
    """What serving needs of a fitted estimator."""
    return RouterArtifact(
        encoder=encoder.spec,
        predictor=estimator.predictor_,
        bands=estimator.bands_,
        residuals=estimator.residuals_,
        budget=recipe.budget,
        default_threshold=threshold,
        language_effects=effects,
        card=card or {},
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
    good = cuts[quality[cuts] >= goal * strong.mean()]
    last = int(good.max(initial=0))
    if last == 0:
        return 0.0
    above = sorted_need[last] if last < len(need) else sorted_need[-1]
    return float((sorted_need[last - 1] + above) / 2)


def quality_words(need: Array, weak: Array, strong: Array, threshold: float, goal: float) -> str:
    """What a threshold keeps on held-out rows; where even 0 misses the goal, that it does."""
    quality = float(np.where(need > threshold, strong, weak).mean())
    if quality >= goal * strong.mean() - 1e-9:
        return f"the largest that keeps {goal:.0%} of always-strong on held-out rows"
    return (
        f"keeps {quality / strong.mean():.1%} of always-strong on held-out rows and not {goal:.0%}, which no threshold does; prompts "
        "without any shortfall stay with the weak model"
    )


def _weak_shortfall(estimator: RequirementsEstimator) -> Array:
    """Held-out shortfall of a model at the low end of every band, shape (n,): that of the weak one of any two."""
    ones = np.ones(estimator.held_out_.shape[1])
    return np.asarray(shortfalls(estimator.held_out_, estimator.bands_.low, ones).sum(axis=1))


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
    predictions, explainer = held_out_predictions(training, inputs, fold, encoder, recipe, say=say)
    learned = () if learn is None else learn(inputs, fold)
    rows = training.rows.assign(fold=fold, target=training.rows["need"])
    return evaluate_predictions(rows, predictions, learned=learned, options=options, about=dict(about or {}), explainer=explainer)


def folds_of(training: TrainingRows, recipe: Recipe, folds: int) -> NDArray[np.int64]:
    """Fold of every row, made of groups and alike in every source."""
    groups = training.groups
    if len(np.unique(groups)) < folds:
        raise InvalidInput(f"{len(np.unique(groups))} groups cannot fill {folds} folds: use fewer folds or more prompts")
    return group_folds(groups, folds, recipe.seed, strata=training.rows["source"].to_numpy())


def held_out_predictions(
    training: TrainingRows, inputs: Array, fold: NDArray[np.int64], encoder: TextEncoder, recipe: Recipe, *, say: Say = print
) -> tuple[Predictions, Explainer]:
    """What routers trained on the other folds say of every prompt, and who can say why."""
    parallel = parallel_inputs(encoder, training, recipe)
    artifacts, thresholds = [], []
    for number in range(int(fold.max()) + 1):
        learn = np.flatnonzero(fold != number)
        part = training.of(learn)
        seen = unseen_translations(parallel, training, training.rows[fold == number])
        estimator = fit_estimator(inputs[learn], part, recipe, seen)
        effects = add_language_effects(estimator, part, recipe)
        need = _weak_shortfall(estimator)
        weak, strong = (part.rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
        thresholds.append(threshold_for_quality(need, weak, strong, recipe.quality_goal))
        artifacts.append(artifact_of(estimator, encoder, recipe, thresholds[-1], effects))
        learned = "" if np.ptp(need) > 0 else "; nothing was learned, all its prompts get one requirement"
        say(f"fold {number + 1} of {int(fold.max()) + 1}: fitted on {len(learn)} rows, threshold {thresholds[-1]:.3f}{learned}")
    # One threshold and one set of bands for all folds keep needs and the sweep of tau comparable between them: the means of what the folds
    # chose on their own training rows.
    threshold = float(np.mean(thresholds))
    bands = Bands(*(np.mean([getattr(artifact.bands, end) for artifact in artifacts], axis=0) for end in ("low", "high")))
    routes = [_pair_router(replace(artifact, bands=bands), encoder, threshold).route for artifact in artifacts]
    predictions = predict_pair(routes, training.conversations, "weak", "strong", threshold, fold=fold)
    return predictions, Explainer(routes, training.conversations, "weak", "strong", fold)


def unseen_translations(parallel: ParallelRows | None, training: TrainingRows, held_out: pd.DataFrame) -> ParallelRows | None:
    """The translations of nothing that is held out: not even the text of a test prompt is learned from."""
    if parallel is None or training.translations is None:
        return None
    return parallel.of(training.translations.seen_by(held_out))


def _pair_router(artifact: RouterArtifact, encoder: TextEncoder, threshold: float) -> Router:
    pool, _ = pair_catalog(None, "weak", "strong", artifact.capabilities)
    return Router(artifact, encoder, pool, RoutingPolicy(shortfall_threshold=threshold), language_identifier())


def compact_metrics(result: EvaluationResult, names: Collection[str] = _CARD_METRICS) -> dict[str, Any]:
    """The router's estimates as ``{slice kind: {slice: {metric: [value, low, high, n]}}}``, rounded."""
    table = result.estimates
    table = table[(table["policy"] == "router") & table["metric"].isin(list(names)) & table["value"].notna()]
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
        "parallel": _parallel_card(training, recipe),
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


def _parallel_card(training: TrainingRows, recipe: Recipe) -> list[dict[str, Any]]:
    texts = training.translations
    if texts is None:
        return []
    licence = {name: entry.licence for entry in recipe.parallel for name in entry.sources or (entry.file,)}
    table = pd.DataFrame({"source": texts.source, "meaning": texts.meaning, "language": texts.language})
    return [
        {
            "source": str(source),
            "texts": len(part),
            "meanings": int(part["meaning"].nunique()),
            "languages": int(part["language"].nunique()),
            "licence": licence.get(str(source), "; ".join(entry.licence for entry in recipe.parallel if entry.file)),
        }
        for source, part in table.groupby("source", sort=True)
    ]


def _version(package: str) -> str:
    try:
        return version(package)
    except ModuleNotFoundError:
        return "not installed"
