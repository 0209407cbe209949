"""The answer to "which model, and why", as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from router.requirements import Requirements
from router.selection import Candidate
from router.text import ClassifiedText

Decision = Literal["initialize", "retain", "switch", "fallback"]


@dataclass(frozen=True, slots=True)
class Flip:
    """The smallest change that alters the choice: at ``value``, which is ``change`` away, ``model`` is chosen instead."""

    value: float
    change: float
    model: str


@dataclass(frozen=True, slots=True)
class FlipMargin:
    """How firm a choice is. None means that no change of that kind alters it.

    ``shortfall_threshold_up`` and ``_down`` move tau; ``requirements`` move one capability at a time within [0, 1]; ``price_factor``
    multiplies all prices of the chosen model. Where the conversation stays on the model that holds its cache, nothing of this changes
    the choice and all are None.
    """

    shortfall_threshold_up: Flip | None = None
    shortfall_threshold_down: Flip | None = None
    price_factor: Flip | None = None
    requirements: Mapping[str, Flip | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RoutingDecision:
    """One routing decision with everything it rests on.

    ``confidence`` is the expected share of cases in which the same model would have been chosen had the true requirements been known
    (measured on held-out prompts, not a score of the classifier). ``reason`` is one sentence for people. ``language_effect`` is the
    log-odds that the language added to every requirement, 0 where the task alone spoke. ``fallback_reason`` is set when the classifier
    could not answer.
    """

    model: str
    decision: Decision
    reason: str
    requirements: Requirements
    confidence: float
    candidates: tuple[Candidate, ...]
    flip_margin: FlipMargin
    classified: ClassifiedText
    language: str
    family: str
    boundary: str | None
    boundary_evidence: str
    language_effect: float = 0.0
    fallback_reason: str | None = None
