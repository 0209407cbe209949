"""Fit a router for a pool: which models are worth having, what they are expected to lose, and how much loss to allow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import Bands, ModelCatalog, ModelProfile, Prices
from router.encoder import TextEncoder
from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.artifacts import language_identifier
from router.requirements import CAPABILITIES, RequirementsPredictor
from router.route import Router
from router.selection import RoutingPolicy, shortfalls
from router.text import TextBudget
from training.fit import RequirementsEstimator, sample_residuals
from training.pool.levels import level, level_calibration, profile_levels
from training.pool.mixing import mixture_quality, undominated
from training.pool.predictions import PoolPredictions
from training.pool.recipe import PoolRecipe
from training.pool.rows import OUTPUT_TOKENS, PoolRows
from training.targets import capability_weights, pool_need, requirement_targets

Array = NDArray[np.float64]
BUDGETS = np.linspace(0.0, 1.0, 101)


@dataclass(frozen=True)
class FittedPool:
    """A router of a pool, and what its training rows say of it.

    Attributes
    ----------
    kept
        Models of the pool that the router chooses between, shape (M,).
    bandwidth
        Kernel width of the targets that did best on held-out training rows.
    held_out
        Predictions for the training rows by heads that did not see their group.
    gain
        Area of :func:`gain_over_mixing` on them.
    """

    artifact: RouterArtifact
    catalog: ModelCatalog
    kept: NDArray[np.bool_]
    bandwidth: float
    held_out: PoolPredictions
    gain: float

    def router(self, encoder: TextEncoder) -> Router:
        """The router at tau 0."""
        return Router(self.artifact, encoder, self.catalog, RoutingPolicy(shortfall_threshold=0.0), language_identifier())


def capabilities_of(rows: PoolRows) -> tuple[str, ...]:
    """The capabilities that the prompts exercise, in the usual order; a prompt of unknown kind counts as reasoning."""
    found = {name if name != "unknown" else "reasoning" for name in rows.capability}
    return (*(name for name in CAPABILITIES if name in found), *sorted(found - set(CAPABILITIES)))


def fit_pool(rows: PoolRows, inputs: Array, encoder: TextEncoder, recipe: PoolRecipe, *, prune: bool = True) -> FittedPool:
    """Fit one router a bandwidth of the recipe and keep the one whose held-out predictions do best on these rows.

    Parameters
    ----------
    rows, inputs
        Training rows only, and the inputs of the heads for them, shape (n, d). Profiles and costs of the models are means over these.
    prune
        Leave out models that mixtures of others dominate on these rows (:func:`training.pool.mixing.undominated`), in every capability.
    """
    names = capabilities_of(rows)
    exercised = capability_weights([name if name != "unknown" else "reasoning" for name in rows.capability], names)
    kept = kept_models(rows, exercised) if prune else np.ones(len(rows.models), dtype=np.bool_)
    fits = [_fit_one(rows, inputs, encoder, recipe, names, exercised, kept, bandwidth) for bandwidth in recipe.bandwidths]
    return max(fits, key=lambda fit: fit.gain)


def kept_models(rows: PoolRows, exercised: Array) -> NDArray[np.bool_]:
    """Models that are undominated over all rows or over those of one capability, shape (M,); at least two."""
    slices = [np.ones(len(rows), dtype=np.bool_), *(exercised.T > 0)]
    kept = np.any([undominated(rows.costs[part].mean(axis=0), rows.scores[part].mean(axis=0)) for part in slices], axis=0)
    if kept.sum() < 2:
        # One model is both cheapest and best: its best rival stays for the prompts on which the winner fails.
        rival = np.where(kept, -np.inf, rows.scores.mean(axis=0)).argmax()
        kept[rival] = True
    return np.asarray(kept)


def _fit_one(
    rows: PoolRows,
    inputs: Array,
    encoder: TextEncoder,
    recipe: PoolRecipe,
    names: tuple[str, ...],
    exercised: Array,
    kept: NDArray[np.bool_],
    bandwidth: float,
) -> FittedPool:
    targets = requirement_targets(_need(rows, exercised, kept, bandwidth), exercised)
    n_embedding = inputs.shape[1] - len(FEATURE_NAMES)
    estimator = RequirementsEstimator(capabilities=names, n_embedding=n_embedding, random_state=recipe.seed, **recipe.heads)
    estimator.fit(inputs, targets, groups=rows.groups, exercised=exercised)
    held_out = level(estimator.held_out_)
    predictor = estimator.predictor_
    artifact = RouterArtifact(
        encoder=encoder.spec,
        predictor=RequirementsPredictor(names, predictor.heads, tuple(map(level_calibration, predictor.calibrations)), predictor.basis),
        # Levels are on one scale already: Eq. 3 leaves the profiles as they are.
        bands=Bands(np.zeros(len(names)), np.ones(len(names))),
        residuals=sample_residuals(held_out, level(targets), seed=recipe.seed),
        budget=TextBudget(),
        default_threshold=0.0,
    )
    catalog = pool_catalog(rows, names, exercised, kept)
    predictions = predictions_from(held_out, artifact, catalog, rows.models)
    return FittedPool(artifact, catalog, kept, bandwidth, predictions, gain_over_mixing(rows, predictions))


def _need(rows: PoolRows, exercised: Array, kept: NDArray[np.bool_], bandwidth: float) -> Array:
    """What the best kept model adds over the weakest kept one of the prompt's capability, shape (n,)."""
    need = np.zeros(len(rows))
    source = rows.rows["source"].to_numpy()
    for k in range(exercised.shape[1]):
        members = exercised[:, k] > 0
        quality = rows.scores[members].mean(axis=0)
        weak = int(np.where(kept, quality, np.inf).argmin())
        strong = int(np.where(kept, quality, -np.inf).argmax())
        for name in np.unique(source[members].astype(str)):
            part = np.flatnonzero(members & (source == name))
            everyone = rows.bystanders[name].reindex(rows.rows["prompt_id"].iloc[part]).to_numpy(dtype=np.float64)
            need[part] = pool_need(everyone, rows.scores[part, weak], rows.scores[part, strong], bandwidth)
    return need


def pool_catalog(rows: PoolRows, names: Sequence[str], exercised: Array, kept: NDArray[np.bool_]) -> ModelCatalog:
    """Catalog of the kept models: profile levels from their mean scores on these rows, and what one of their answers cost on average."""
    raw: list[dict[str, float]] = [{} for _ in rows.models]
    for k, name in enumerate(names):
        levels = profile_levels(rows.scores[exercised[:, k] > 0].mean(axis=0)[kept])
        for m, value in zip(np.flatnonzero(kept), levels, strict=True):
            raw[m][name] = float(value)
    return catalog_of(rows, {rows.models[m]: raw[m] for m in np.flatnonzero(kept)})


def catalog_of(rows: PoolRows, raw: Mapping[str, Mapping[str, float]]) -> ModelCatalog:
    """Catalog with given profiles. A turn costs what the model's answers to these rows cost on average, whatever its length."""
    profiles = []
    for name, figures in raw.items():
        mean = float(rows.costs[:, rows.models.index(name)].mean())
        prices = Prices(0.0, mean * 1e6 / OUTPUT_TOKENS)
        everything = frozenset({"text", "image", "audio", "video", "file"})
        profiles.append(ModelProfile(name, "", prices, dict(figures), context_window_tokens=10**9, modalities=everything))  # type: ignore[arg-type]
    return ModelCatalog(tuple(profiles))


def predictions_from(requirements: Array, artifact: RouterArtifact, catalog: ModelCatalog, models: Sequence[str]) -> PoolPredictions:
    """What :meth:`router.route.Router.route` would say of every model, from requirements that are known already, shape (n, K)."""
    capability = catalog.capability(artifact.capabilities, artifact.bands)
    shortfall = np.full((len(requirements), len(models)), np.inf)
    cost = np.full(shortfall.shape, np.inf)
    for profile, own in zip(catalog.models, capability, strict=True):
        m = models.index(profile.name)
        shortfall[:, m] = shortfalls(requirements, own, np.ones(own.size)).sum(axis=1)
        cost[:, m] = profile.prices.output_per_mtok
    return PoolPredictions(shortfall, requirements, cost)


def gain_over_mixing(rows: PoolRows, predictions: PoolPredictions) -> float:
    """Mean score of the sweep of tau less that of mixing models at random, averaged over budgets from the cheapest to the best model."""
    every = np.arange(len(rows))
    chosen = [predictions.chosen(tau) for tau in predictions.taus()]
    cost = np.array([rows.costs[every, choice].mean() for choice in chosen])
    quality = np.array([rows.scores[every, choice].mean() for choice in chosen])
    own_cost, own_quality = rows.costs.mean(axis=0), rows.scores.mean(axis=0)
    budget = budgets(own_cost, own_quality)
    order = np.argsort(cost, kind="stable")
    return float((np.interp(budget, cost[order], quality[order]) - mixture_quality(budget, own_cost, own_quality)).mean())


def budgets(cost: Array, quality: Array) -> Array:
    """Budgets from the cheapest model's mean cost to that of the best one (the cheapest of equally good ones), shape (..., 101)."""
    best = np.where(quality >= quality.max(axis=-1, keepdims=True), cost, np.inf).min(axis=-1)
    cheapest = cost.min(axis=-1)
    return np.asarray(cheapest[..., None] + (best - cheapest)[..., None] * BUDGETS)


def threshold_within(rows: PoolRows, predictions: PoolPredictions, points: float) -> float:
    """The tau of least cost at which these rows lose at most ``points`` (a share, 0.003) against the best single model; 0 if none does."""
    every = np.arange(len(rows))
    goal = rows.scores.mean(axis=0).max() - points - 1e-12
    found = 0.0, np.inf
    for tau in predictions.taus():
        choice = predictions.chosen(tau)
        cost = float(rows.costs[every, choice].mean())
        if rows.scores[every, choice].mean() >= goal and cost < found[1]:
            found = float(tau), cost
    return found[0]


def single_within(rows: PoolRows, points: float) -> int:
    """The cheapest single model that loses at most ``points`` against the best one on these rows."""
    quality, cost = rows.scores.mean(axis=0), rows.costs.mean(axis=0)
    return int(np.where(quality >= quality.max() - points - 1e-12, cost, np.inf).argmin())


def require_groups(rows: PoolRows, folds: int) -> None:
    """Refuse more folds than there are groups.

    Raises
    ------
    InvalidInput
        Naming both numbers.
    """
    groups = len(np.unique(rows.groups.astype(str)))
    if groups < folds or folds < 2:
        raise InvalidInput(f"{folds} folds of {groups} groups: at least 2 folds, and no more than there are groups, were expected")
