"""A guarantee from a router and prompts it was not fitted on, and the router that keeps it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd

from router.artifact import RouterArtifact
from router.errors import InvalidInput
from router.files.artifacts import SHIPPED_ROUTER, language_identifier, read_artifact
from router.files.encoders import load_encoder
from router.route import Router
from router.selection import RoutingPolicy
from router.types import Conversation
from training.evaluate_run import EvaluationPlan, Progress, rows_of
from training.guarantee import control
from training.predictions import Route, predict_pair
from training.promise import Guarantee, GuaranteeOptions
from training.prompts import to_conversations
from training.seen import read_seen, was_seen


@dataclass(frozen=True)
class GuaranteedRouter:
    """The artefact with the thresholds of the guarantee, and what the guarantee was made from."""

    artifact: RouterArtifact
    guarantee: Guarantee
    about: Mapping[str, Any]

    def to_mapping(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {"about": dict(self.about), **self.guarantee.to_mapping()}


def guarantee_for(
    route: Route,
    rows: pd.DataFrame,
    conversations: Sequence[Conversation],
    weak: str,
    strong: str,
    options: GuaranteeOptions,
    progress: Progress = iter,
) -> Guarantee:
    """Route calibration prompts as serving would, their language untold, and choose thresholds.

    The families are therefore the ones that the router reads off a text, which is what decides its tau in serving.
    """
    untold = [replace(conversation, language=None) for conversation in conversations]
    return control(rows, predict_pair(route, untold, weak, strong, 0.0, progress=progress), options)


def with_guarantee(artifact: RouterArtifact, guarantee: Guarantee, about: Mapping[str, Any]) -> GuaranteedRouter:
    """The artefact with the thresholds of a guarantee, its statement in the card."""
    card = {**artifact.card, "guarantee": {"about": dict(about), **guarantee.to_mapping()}}
    kept = replace(artifact, default_threshold=guarantee.default_threshold, family_thresholds=guarantee.family_thresholds, card=card)
    return GuaranteedRouter(kept, guarantee, about)


def guarantee_artifact(
    plan: EvaluationPlan,
    folder: Path | None,
    options: GuaranteeOptions,
    *,
    held_out: bool = False,
    threads: int = 1,
    progress: Progress = iter,
) -> GuaranteedRouter:
    """Calibrate an artefact folder (default: the shipped one) on a plan's prompts, less those it was fitted on.

    Parameters
    ----------
    held_out
        The caller's word that the router was not fitted on these prompts, where the folder does not say which ones it was fitted on.

    Raises
    ------
    InvalidInput
        If no prompt is left, or the router was trained on sources of these prompts and it is not known on which prompts.
    """
    artifact, name = read_artifact(folder)
    rows, left_out = _unseen(rows_of(plan), artifact, SHIPPED_ROUTER if folder is None else folder, held_out)
    rows, basis = plan.priced(rows, artifact.capabilities)
    pool, _ = plan.pool(artifact.capabilities)
    router = Router(artifact, load_encoder(artifact.encoder, threads), pool, RoutingPolicy(), language_identifier())
    found = guarantee_for(router.route, rows, to_conversations(rows), *plan.names, options, progress)
    return with_guarantee(artifact, found, {**about_rows(rows, *plan.names), "router": name, "cost_basis": basis, "left_out": left_out})


def about_rows(rows: pd.DataFrame, weak: str, strong: str) -> dict[str, Any]:
    """What a guarantee was calibrated on."""
    return {
        "weak": weak,
        "strong": strong,
        "prompts": len(rows),
        "groups": int(rows["group"].nunique()),
        "sources": sorted(rows["source"].astype(str).unique()),
        "score_kinds": sorted(rows["score_kind"].astype(str).unique()),
    }


def _unseen(rows: pd.DataFrame, artifact: RouterArtifact, folder: Path, held_out: bool) -> tuple[pd.DataFrame, int]:
    """The rows that were not fitted on, and how many were."""
    seen = read_seen(folder)
    if seen is None:
        trained = {str(entry.get("source")) for entry in artifact.card.get("sources", []) if isinstance(entry, dict)}
        if (shared := sorted(trained & set(rows["source"]))) and not held_out:
            raise InvalidInput(
                f"this router was trained on prompts of {', '.join(shared)} and does not say on which ones: what it has seen can promise "
                "nothing; use other prompts, train it again, or say --held-out if it has seen none of these"
            )
        return rows, 0
    known = was_seen(rows, seen)
    if known.all():
        raise InvalidInput(
            f"the router was fitted on every one of these {len(rows)} prompts or their groups: what it has seen can promise nothing; use "
            "other prompts, or set some aside in training with [guarantee] in the recipe"
        )
    return rows[~known].reset_index(drop=True), int(known.sum())
