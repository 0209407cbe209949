"""The one path that decides a model. Training, evaluation, simulation and serving all call it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.boundary import BoundaryEvidence, find_boundary
from router.catalog import ModelCatalog
from router.confidence import share_of
from router.cost import TurnTokens, expected_cost_usd
from router.decision import Decision, FlipMargin, RoutingDecision
from router.encoder import TextEncoder
from router.errors import EncoderError, InvalidInput
from router.features import FEATURE_NAMES, extract_features
from router.health import HEALTHY, HealthScores
from router.languages import LanguageIdentifier, family_of, identify_language
from router.margin import SelectionProblem, margin_and_choices
from router.requirements import Requirements
from router.selection import Candidate, RoutingPolicy, TurnNeeds, compensated_weights, gates_of, open_models
from router.text import ClassifiedText, classify_text
from router.types import Conversation

Array = NDArray[np.float64]
_NO_HEALTH: Final[HealthScores] = {}


@dataclass(frozen=True, slots=True)
class _Pool:
    """The catalog as the selection needs it."""

    capability: Array
    weights: Array


class Router:
    """Predicts what a conversation requires and chooses the cheapest model that is good enough.

    Parameters
    ----------
    artifact
        What was learned.
    encoder
        The encoder the artefact was trained with.
    catalog
        The models to choose from.
    policy
        What the operator decides; by default the artefact's thresholds and nothing else.
    identifier
        Tells languages of one script apart.

    Raises
    ------
    EncoderError
        If the encoder is not the one the artefact was trained with.
    CatalogError
        If a model has no figure for one of the artefact's capabilities.
    InvalidInput
        If the policy names a model or a capability that is not there.
    """

    def __init__(
        self,
        artifact: RouterArtifact,
        encoder: TextEncoder,
        catalog: ModelCatalog,
        policy: RoutingPolicy | None = None,
        identifier: LanguageIdentifier | None = None,
    ) -> None:
        if encoder.spec.fingerprint != artifact.encoder.fingerprint:
            raise EncoderError(
                f"the artefact was trained with encoder {artifact.encoder.kind} {artifact.encoder.name} ({artifact.encoder.fingerprint}), "
                f"not {encoder.spec.kind} {encoder.spec.name} ({encoder.spec.fingerprint}): load that encoder or train again"
            )
        self.artifact = artifact
        self.encoder = encoder
        self.catalog = catalog
        self.policy = (
            policy
            if policy is not None
            else RoutingPolicy(shortfall_threshold=artifact.default_threshold, family_thresholds=artifact.family_thresholds)
        )
        self.identifier = identifier
        self._pool = self._prepare()

    def route(self, conversation: Conversation, health: HealthScores = _NO_HEALTH) -> RoutingDecision:
        """Choose the next turn's model; stay on the current one between cache boundaries.

        Raises
        ------
        InvalidInput
            If no model is left after the gates of policy, modality, tools and window.
        """
        classified = classify_text(conversation, self.artifact.budget)
        language = self._language(conversation, classified)
        requirements = self.predict([conversation], [classified], [language])[0]
        return self._decide(conversation, classified, requirements, language, find_boundary(conversation), health)

    def route_without_classifier(self, conversation: Conversation, problem: str, health: HealthScores = _NO_HEALTH) -> RoutingDecision:
        """The answer when classification failed: the default model, gates still kept, and the reason."""
        boundary = find_boundary(conversation)
        blank = ClassifiedText("", "")
        requirements = np.ones(len(self.artifact.capabilities))
        language = self._language(conversation, blank)
        return self._decide(conversation, blank, requirements, language, boundary, health, fallback_reason=problem)

    def predict(self, conversations: list[Conversation], classified: list[ClassifiedText], languages: list[str]) -> Array:
        """Requirements, shape (n, K): those of the task, and what the language adds.

        Raises
        ------
        EncoderError
            If the encoder gave something that is not a number.
        """
        requirements = self.artifact.predictor.predict(model_input(self.encoder, conversations, classified))
        if not np.isfinite(requirements).all():
            raise EncoderError(f"encoder {self.encoder.spec.name} gave a vector that is not finite: its weights or its runtime are broken")
        return self.artifact.language_effects.apply(requirements, languages)

    def _language(self, conversation: Conversation, classified: ClassifiedText) -> str:
        return conversation.language or identify_language(classified.text, self.identifier, prose=classified.prose)

    def _prepare(self) -> _Pool:
        capabilities = self.artifact.capabilities
        for name in self.policy.weights:
            if name not in capabilities:
                raise InvalidInput(f"weight for unknown capability {name!r}: there are {', '.join(capabilities)}")
        named = [*self.policy.allow, *self.policy.deny, *([self.policy.default_model] if self.policy.default_model else [])]
        for name in named:
            self.catalog[name]
        weights = np.array([self.policy.weights.get(name, 1.0) for name in capabilities])
        return _Pool(
            capability=self.catalog.capability(capabilities, self.artifact.bands),
            weights=compensated_weights(weights, self.artifact.bands.width, self.policy.band_compensation),
        )

    def _decide(
        self,
        conversation: Conversation,
        classified: ClassifiedText,
        requirements: Array,
        language: str,
        boundary: BoundaryEvidence,
        health: HealthScores,
        fallback_reason: str | None = None,
    ) -> RoutingDecision:
        needs = TurnNeeds.of(conversation, self.policy.expected_output_tokens)
        gates = [gates_of(model, needs, self.policy, health) for model in self.catalog.models]
        open_, health_ignored = open_models(gates)
        if not open_.any():
            first = "; ".join(f"{name}: {names[0]}" for name, names in zip(self.catalog.names, gates, strict=True))
            raise InvalidInput(f"no model of the catalog can take this conversation ({first})")
        family = family_of(language)
        problem = self._problem(conversation, requirements, needs.tokens, open_, self.policy.threshold_for(family))
        chosen, decision, reason = self._choose(conversation, problem, boundary, fallback_reason)
        capabilities = self.artifact.capabilities
        stays = boundary.boundary is None and decision == "retain"
        if fallback_reason or stays:
            confidence, margin = float(not fallback_reason), FlipMargin(requirements=dict.fromkeys(capabilities))
        else:
            plausible = self.artifact.residuals.plausible(problem)
            margin, choices = margin_and_choices(problem, self.catalog.names, capabilities, plausible)
            confidence = share_of(choices, problem.choice)
        return RoutingDecision(
            model=self.catalog.names[chosen],
            decision=decision,
            reason=reason + ("; every open model is unhealthy, so health was ignored" if health_ignored else ""),
            requirements=Requirements.from_array(requirements, capabilities),
            confidence=confidence,
            candidates=self._candidates(problem, gates, health),
            flip_margin=margin,
            classified=classified,
            language=language,
            family=family,
            boundary=boundary.boundary,
            boundary_evidence=boundary.evidence,
            language_effect=0.0 if fallback_reason else self.artifact.language_effects.of(language),
            fallback_reason=fallback_reason,
        )

    def _problem(
        self, conversation: Conversation, requirements: Array, tokens: TurnTokens, open_: NDArray[np.bool_], threshold: float
    ) -> SelectionProblem:
        current = conversation.current_model if not conversation.compacted else None
        cost = [expected_cost_usd(model, tokens, cached=model.name == current) for model in self.catalog.models]
        return SelectionProblem(requirements, self._pool.capability, self._pool.weights, np.array(cost), open_, threshold)

    def _choose(
        self, conversation: Conversation, problem: SelectionProblem, boundary: BoundaryEvidence, fallback_reason: str | None
    ) -> tuple[int, Decision, str]:
        names = self.catalog.names
        current = names.index(conversation.current_model) if conversation.current_model in names else None
        if boundary.boundary is None and current is not None and problem.open_[current]:
            return current, "retain", f"stays on {names[current]}: {boundary.evidence}"
        if fallback_reason is not None:
            return (
                self._default(problem),
                "fallback",
                f"the default model, because the conversation could not be classified: {fallback_reason}",
            )
        chosen = problem.choice
        why = _why(problem, chosen, names)
        if current is None:
            unknown = f"{conversation.current_model} is not in the catalog; " if conversation.current_model else ""
            return chosen, "initialize", unknown + why
        if chosen == current:
            return chosen, "retain", why
        return chosen, "switch", why if boundary.boundary else f"{names[current]} may not take this turn; {why}"

    def _default(self, problem: SelectionProblem) -> int:
        names = self.catalog.names
        if self.policy.default_model is not None and problem.open_[names.index(self.policy.default_model)]:
            return names.index(self.policy.default_model)
        return int(np.where(problem.open_, problem.capability.sum(axis=1), -np.inf).argmax())

    def _candidates(self, problem: SelectionProblem, gates: list[tuple[str, ...]], health: HealthScores) -> tuple[Candidate, ...]:
        columns = (array.tolist() for array in (problem.table, problem.total, problem.cost, problem.open_))
        return tuple(
            Candidate(
                model=name,
                gates=gate,
                shortfall=total,
                shortfall_by_capability=dict(zip(self.artifact.capabilities, row, strict=True)),
                expected_cost_usd=cost,
                health=health.get(name, HEALTHY).value,
                eligible=is_open and total <= problem.threshold,
            )
            for name, gate, row, total, cost, is_open in zip(self.catalog.names, gates, *columns, strict=True)
        )


def model_input(encoder: TextEncoder, conversations: list[Conversation], classified: list[ClassifiedText]) -> Array:
    """Input rows of the heads, shape (n, embedding + features): what training fits on and serving predicts from."""
    if not conversations:
        return np.empty((0, encoder.spec.dimension + len(FEATURE_NAMES)))
    embedding = encoder.encode([item.text for item in classified])
    features = np.stack([extract_features(c, t) for c, t in zip(conversations, classified, strict=True)])
    return np.concatenate([embedding.astype(np.float64), features], axis=1)


def _why(problem: SelectionProblem, chosen: int, names: tuple[str, ...]) -> str:
    total = problem.total
    if total[chosen] <= problem.threshold:
        cheaper = [name for m, name in enumerate(names) if problem.open_[m] and problem.cost[m] < problem.cost[chosen]]
        why = f"{names[chosen]} is the cheapest model that is good enough: shortfall {total[chosen]:.3f} within {problem.threshold:.3f}"
        return f"{why}; too weak: {', '.join(cheaper)}" if cheaper else why
    return f"no model is good enough within {problem.threshold:.3f}; {names[chosen]} has the least shortfall, {total[chosen]:.3f}"
