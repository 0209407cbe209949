"""One wire format for the service and the command line: a request body in, a decision out. No web framework is needed to read this."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict

from router.decision import Decision, Flip, FlipMargin, RoutingDecision
from router.errors import InvalidInput
from router.languages import check_language
from router.selection import Candidate
from router.text import ClassifiedText
from router.types import Conversation

# Enough digits to compare models, few enough to read: requirements and shortfalls, US dollars, milliseconds.
_DIGITS, _USD_DIGITS, _MS_DIGITS = 6, 9, 3
_OUTPUT_LIMITS = ("max_completion_tokens", "max_output_tokens", "max_tokens")


class FlipAnswer(TypedDict):
    """See :class:`router.decision.Flip`."""

    value: float
    change: float
    model: str


class FlipMarginAnswer(TypedDict):
    """See :class:`router.decision.FlipMargin`; null where no change of that kind alters the choice."""

    shortfall_threshold_up: FlipAnswer | None
    shortfall_threshold_down: FlipAnswer | None
    price_factor: FlipAnswer | None
    requirements: dict[str, FlipAnswer | None]


class CandidateAnswer(TypedDict):
    """One model of the catalog as the selection saw it; ``shortfall`` is the sum of ``shortfall_by_capability``."""

    model: str
    eligible: bool
    gates: list[str]
    shortfall: float
    shortfall_by_capability: dict[str, float]
    expected_cost_usd: float


class ClassifiedAnswer(TypedDict):
    """The text that was read; ``kept`` and ``cut`` count characters by part and by reason."""

    text: str
    kept: dict[str, int]
    cut: dict[str, int]


class BoundaryAnswer(TypedDict):
    """The cache boundary the conversation stands at (null between boundaries), and what it was seen by."""

    kind: str | None
    evidence: str


class RouteAnswer(TypedDict):
    """The answer of ``POST /v1/route`` and of ``interlock route --json``."""

    model: str
    decision: Decision
    reason: str
    requirements: dict[str, float]
    confidence: float
    candidates: list[CandidateAnswer]
    flip_margin: FlipMarginAnswer
    fallback_reason: str | None
    classified: ClassifiedAnswer
    language: str
    family: str
    language_effect: float
    boundary: BoundaryAnswer
    router: str
    latency_ms: float


def conversation_from(body: Mapping[str, Any]) -> Conversation:
    """Read a request body: OpenAI-shaped ``messages`` and ``tools``, and our own optional fields. Unknown fields are ignored.

    Raises
    ------
    InvalidInput
        Naming the field, its value, and what was allowed.
    """
    messages = body.get("messages")
    if not isinstance(messages, list):
        found = "missing" if messages is None else f"a {type(messages).__name__}"
        raise InvalidInput(f"messages is {found}: a list of objects with role and content was expected")
    tools = body.get("tools") or []
    if not isinstance(tools, list):
        raise InvalidInput(f"tools is a {type(tools).__name__}: a list of objects was expected")
    language = _text(body, "language")
    try:
        return Conversation.from_openai(
            messages,
            tools,
            metadata={key: value for key, value in (body.get("metadata") or {}).items() if isinstance(value, str)},
            current_model=_text(body, "current_model"),
            compacted=bool(body.get("compacted")),
            language=check_language(language) if language else None,
            max_output_tokens=next((body[key] for key in _OUTPUT_LIMITS if body.get(key) is not None), None),
        )
    except RecursionError:
        raise InvalidInput("the tools are nested too deeply to be read: flatten their schemas") from None


def _text(body: Mapping[str, Any], key: str) -> str | None:
    value = body.get(key)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{key} is a {type(value).__name__}: a string was expected")
    return value or None


def answer_of(decision: RoutingDecision, router: str, latency_ms: float) -> RouteAnswer:
    """The decision as plain JSON data; ``router`` is the id of the artefact that made it."""
    return RouteAnswer(
        model=decision.model,
        decision=decision.decision,
        reason=decision.reason,
        requirements={name: round(value, _DIGITS) for name, value in decision.requirements.values.items()},
        confidence=round(decision.confidence, _DIGITS),
        candidates=[_candidate(candidate) for candidate in decision.candidates],
        flip_margin=_flip_margin(decision.flip_margin),
        fallback_reason=decision.fallback_reason,
        classified=_classified(decision.classified),
        language=decision.language,
        family=decision.family,
        language_effect=round(decision.language_effect, _DIGITS),
        boundary=BoundaryAnswer(
            kind=str(decision.boundary) if decision.boundary is not None else None, evidence=decision.boundary_evidence
        ),
        router=router,
        latency_ms=round(latency_ms, _MS_DIGITS),
    )


def _candidate(candidate: Candidate) -> CandidateAnswer:
    return CandidateAnswer(
        model=candidate.model,
        eligible=candidate.eligible,
        gates=list(candidate.gates),
        shortfall=round(candidate.shortfall, _DIGITS),
        shortfall_by_capability={name: round(value, _DIGITS) for name, value in candidate.shortfall_by_capability.items()},
        expected_cost_usd=round(candidate.expected_cost_usd, _USD_DIGITS),
    )


def _flip_margin(margin: FlipMargin) -> FlipMarginAnswer:
    return FlipMarginAnswer(
        shortfall_threshold_up=_flip(margin.shortfall_threshold_up),
        shortfall_threshold_down=_flip(margin.shortfall_threshold_down),
        price_factor=_flip(margin.price_factor),
        requirements={name: _flip(flip) for name, flip in margin.requirements.items()},
    )


def _flip(flip: Flip | None) -> FlipAnswer | None:
    return None if flip is None else FlipAnswer(value=round(flip.value, _DIGITS), change=round(flip.change, _DIGITS), model=flip.model)


def _classified(classified: ClassifiedText) -> ClassifiedAnswer:
    # A lone surrogate can be held in memory but not sent.
    text = classified.text.encode("utf-8", "replace").decode("utf-8")
    return ClassifiedAnswer(text=text, kept=dict(classified.kept), cut=dict(classified.cut))
