"""One evaluation from files to a result: load the tables, make the rows, route them or cross-validate, measure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import ModelCatalog, Prices
from router.errors import InvalidInput
from router.files.artifacts import read_artifact
from router.files.encoders import load_encoder
from router.selection import RoutingPolicy
from router.types import Conversation
from training.baselines import Policy
from training.engine import Engine
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate
from training.inputs import EncoderSource
from training.outcomes import load_outcomes, match_prompts, require_two_classes
from training.pairs import pair_catalog, pair_rows, with_expected_costs
from training.predictions import LoadedRoute
from training.prompts import Conversations, load_prompts
from training.recipe import Recipe

if TYPE_CHECKING:
    from training.train import Learn

Progress = Callable[[Iterable[Conversation]], Iterable[Conversation]]
_OUTPUT_TOKENS: Final = RoutingPolicy().expected_output_tokens


@dataclass(frozen=True)
class EvaluationPlan:
    """What to evaluate on.

    Parameters
    ----------
    prompts, outcomes
        The tables of :mod:`training.prompts` and :mod:`training.outcomes`.
    recipe
        The pairs of models and their sources; heads and encoder are read by cross-validation only.
    prices
        List prices of the weak and the strong model; None takes the catalog's.
    threshold
        tau of the choice metrics; None takes the router's own, those of single families included.
    folders
        Where the recipe's files of parallel text lie.
    """

    prompts: pd.DataFrame
    outcomes: pd.DataFrame
    recipe: Recipe
    catalog: ModelCatalog
    prices: tuple[Prices, Prices] | None = None
    threshold: float | None = None
    options: EvaluationOptions = field(default_factory=EvaluationOptions)
    folders: tuple[Path, ...] = ()

    @property
    def names(self) -> tuple[str, str]:
        """Names of the weak and the strong model; with several pairs, what they have in common."""
        return self.recipe.weak_title, self.recipe.strong_title

    def pool(self, capabilities: Sequence[str]) -> tuple[ModelCatalog, bool]:
        """The pool of two, and whether its prices are real."""
        weak, strong = self.prices or (None, None)
        return pair_catalog(self.catalog, *self.names, capabilities, weak_prices=weak, strong_prices=strong)

    def priced(self, rows: pd.DataFrame, capabilities: Sequence[str]) -> tuple[pd.DataFrame, str]:
        """The rows with their costs, and where those come from."""
        pool, real = self.pool(capabilities)
        observed = int(rows[["weak_cost_usd", "strong_cost_usd"]].notna().all(axis=1).sum())
        listed = len(rows) - observed if real else 0
        said = [f"{observed:,} as observed"] * bool(observed) + [f"{listed:,} from list prices"] * bool(listed)
        basis = ", ".join(said) or "neither outcomes nor catalog have them: give --weak-prices and --strong-prices"
        return with_expected_costs(rows, Conversations(rows), pool, real, _OUTPUT_TOKENS), basis


def load_data(data: Sequence[Path], prompts: Path | None, outcomes: Path | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Tables from data folders, or from one prompt and one outcome file."""
    if (prompts is None) != (outcomes is None):
        raise InvalidInput("--prompts and --outcomes go together: give both, or --data with a folder that holds them")
    if bool(data) == (prompts is not None):
        raise InvalidInput("say what to evaluate on: either --data with a folder, or --prompts and --outcomes")
    if prompts is not None and outcomes is not None:
        given, scores = load_prompts(prompts), load_outcomes(outcomes)
        match_prompts(scores, given)
        return given, scores
    from training.assemble import load_tables

    return load_tables(data)


def rows_of(plan: EvaluationPlan) -> pd.DataFrame:
    """Rows of all pairs, one below the other.

    Raises
    ------
    InvalidInput
        If a model or source is unknown, the models of a pair share no prompt, or the strong one is better everywhere or nowhere.
    """
    parts = [
        pair_rows(plan.prompts, plan.outcomes, p.weak, p.strong, score_kinds=p.score_kinds or None, sources=p.sources or None).assign(
            pair=number
        )
        for number, p in enumerate(plan.recipe.pairs)
    ]
    rows = pd.concat(parts, ignore_index=True) if len(parts) > 1 else parts[0]
    require_two_classes(rows, *plan.names)
    return rows


def evaluate_artifact(
    plan: EvaluationPlan, folder: Path | None, *, threads: int = 1, progress: Progress = iter, engine: Engine | None = None
) -> EvaluationResult:
    """Let the router of an artefact folder (default: the shipped one) route every prompt through ``Router.route``, and measure."""
    artifact, name = read_artifact(folder)
    rows, basis = plan.priced(rows_of(plan), artifact.capabilities)
    threshold = artifact.default_threshold if plan.threshold is None else plan.threshold
    pool, _ = plan.pool(artifact.capabilities)
    families = artifact.family_thresholds if plan.threshold is None else {}
    policy = RoutingPolicy(shortfall_threshold=threshold, family_thresholds=families)
    # Every process that routes builds the router for itself, encoder and all.
    route = LoadedRoute(artifact, EncoderSource(artifact.encoder, threads), pool, policy)
    about = {"router": name, "encoder": f"{artifact.encoder.kind} {artifact.encoder.name}", "cost_basis": basis}
    if seen := _seen_in_training(artifact, rows):
        about["warning"] = seen
    return evaluate(
        route,
        rows,
        *plan.names,
        threshold,
        family_thresholds=families,
        options=plan.options,
        about=about,
        progress=progress,
        engine=engine,
    )


def evaluate_cross_validated(
    plan: EvaluationPlan,
    folds: int,
    *,
    encoder: str | None = None,
    prefix: str | None = None,
    baselines: Sequence[str] = (),
    threads: int = 1,
    say: Callable[[str], None] = print,
) -> EvaluationResult:
    """Train a router a fold by the recipe and measure all of them on the prompts they have not seen, beside the named learned baselines."""
    from training.assemble import assemble
    from training.embed import CachedEncoder
    from training.train import cross_validate

    if plan.threshold is not None:
        raise InvalidInput("--threshold does not go with --cv: each fold chooses its own on its training rows")
    recipe = plan.recipe.with_encoder(encoder, prefix)
    training = assemble(plan.prompts, plan.outcomes, recipe, plan.folders)
    rows, basis = plan.priced(training.rows, recipe.capabilities)
    require_two_classes(rows, *plan.names)
    about: dict[str, Any] = dict(zip(("weak", "strong"), plan.names, strict=True))
    about |= {"router": f"{folds} routers, each trained on the groups of the other folds", "encoder": recipe.encoder, "cost_basis": basis}
    text_encoder = CachedEncoder(load_encoder(recipe.encoder, threads, prefix=recipe.encoder_prefix), progress=True)
    settings: dict[str, list[str]] = {}
    result = cross_validate(
        replace(training, rows=rows),
        text_encoder,
        recipe,
        folds=folds,
        learn=_learner(baselines, rows, plan.outcomes, recipe, settings, say) if baselines else None,
        options=plan.options,
        about=about,
        say=say,
    )
    return result.with_about(learned_baselines=settings) if settings else result


def _learner(
    names: Sequence[str],
    rows: pd.DataFrame,
    outcomes: pd.DataFrame,
    recipe: Recipe,
    settings: dict[str, list[str]],
    say: Callable[[str], None],
) -> Learn:
    """What fits the named baselines; the settings that they chose go into ``settings``."""
    from training.learned_baselines import answer_table, held_out_policies

    scores = answer_table(rows, outcomes, recipe.models)

    def learn(inputs: NDArray[np.float64], fold: NDArray[np.int64]) -> Sequence[Policy]:
        policies, chosen = held_out_policies(names, inputs, scores, rows["group"].to_numpy(), fold, seed=recipe.seed, say=say)
        settings.update(chosen)
        return policies

    return learn


def parse_prices(weak: str | None, strong: str | None) -> tuple[Prices, Prices] | None:
    """``"0.25,1.25"`` as US dollars per million input and output tokens, for both models or neither."""
    if weak is None and strong is None:
        return None
    if weak is None or strong is None:
        raise InvalidInput("--weak-prices and --strong-prices go together: give both, as INPUT,OUTPUT in USD per million tokens")
    return _prices("--weak-prices", weak), _prices("--strong-prices", strong)


def _prices(option: str, text: str) -> Prices:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if len(values) != 2 or not all(0 <= value < 1e6 for value in values):
        raise InvalidInput(f"{option} is {text!r}: INPUT,OUTPUT in USD per million tokens was expected, such as 0.25,1.25")
    return Prices(values[0], values[1])


def _seen_in_training(artifact: RouterArtifact, rows: pd.DataFrame) -> str:
    """A warning where the artefact's card names sources that are evaluated here."""
    trained = {str(entry.get("source")) for entry in artifact.card.get("sources", []) if isinstance(entry, dict)}
    seen = sorted(trained & set(rows["source"]))
    if not seen:
        return ""
    return f"this router was trained on prompts of {', '.join(seen)}: its figures there are better than on new prompts; see --cv"
