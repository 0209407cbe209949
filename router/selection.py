"""Gates, shortfall, and the cheapest model that is good enough. HyDRA (arXiv 2605.17106) Eq. 4, Eq. 5 and Alg. 2."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from router.catalog import ModelProfile
from router.cost import TurnTokens, tokens_of
from router.errors import InvalidInput
from router.health import HEALTHY, HealthScores
from router.languages import FAMILIES
from router.nearest import unknown_name
from router.types import Conversation, Modality

Array = NDArray[np.float64]
_LARGEST_WEIGHT = 1e6


@dataclass(frozen=True, slots=True)
class RoutingPolicy:
    """What the operator decides.

    Parameters
    ----------
    shortfall_threshold
        tau: the summed shortfall that is still good enough. 0 asks for a model that meets every requirement; larger saves more.
    family_thresholds
        tau of single language families, as the router reads the language, in place of ``shortfall_threshold``.
    weights
        Weight of each capability in the shortfall; 1 where not given.
    band_compensation
        How far weights are divided by the width of a capability's band: 1 is HyDRA's Eq. 4, 0 leaves them as given.
    health_floor
        A model with a health score below this is not chosen while another can be.
    allow, deny
        Model names that may, or may not, be chosen. An empty ``allow`` allows all.
    default_model
        Chosen when the classifier fails. None means the most capable model.
    expected_output_tokens
        Length of an answer for the expected cost.
    """

    shortfall_threshold: float = 0.1
    family_thresholds: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[str, float] = field(default_factory=dict)
    band_compensation: float = 0.0
    health_floor: float = 0.5
    allow: frozenset[str] = frozenset()
    deny: frozenset[str] = frozenset()
    default_model: str | None = None
    expected_output_tokens: int = 600

    def __post_init__(self) -> None:
        check_threshold("shortfall_threshold", self.shortfall_threshold)
        check_family_thresholds(self.family_thresholds)
        for name in ("band_compensation", "health_floor"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name} is {getattr(self, name)!r}: a number within [0, 1] was expected")
        if self.expected_output_tokens < 1:
            raise InvalidInput(f"expected_output_tokens is {self.expected_output_tokens!r}: at least 1 was expected")
        for name, weight in self.weights.items():
            if not 0 <= weight <= _LARGEST_WEIGHT:
                raise InvalidInput(f"weight of {name!r} is {weight!r}: a number within [0, {_LARGEST_WEIGHT:g}] was expected")

    def threshold_for(self, family: str) -> float:
        """Tau of a prompt whose language is of this family."""
        return self.family_thresholds.get(family, self.shortfall_threshold)


def check_family_thresholds(thresholds: Mapping[str, float]) -> None:
    """Refuse a family that there is none of, or a tau that is none."""
    for family, threshold in thresholds.items():
        if family not in FAMILIES:
            raise InvalidInput(f"family_thresholds: {unknown_name('family', family, FAMILIES)}")
        check_threshold(f"family_thresholds[{family!r}]", threshold)


def check_threshold(name: str, value: float) -> None:
    """Refuse what is no tau."""
    if not (math.isfinite(value) and value >= 0):
        raise InvalidInput(f"{name} is {value!r}: a number of at least 0 was expected")


@dataclass(frozen=True, slots=True)
class TurnNeeds:
    """What the next turn asks of any model, whatever its difficulty."""

    tokens: TurnTokens
    modalities: frozenset[Modality]
    tools: bool

    @classmethod
    def of(cls, conversation: Conversation, expected_output_tokens: int) -> TurnNeeds:
        """Read them off a conversation, once for all models."""
        return cls(tokens_of(conversation, expected_output_tokens), conversation.modalities, conversation.uses_tools)


@dataclass(frozen=True, slots=True)
class Candidate:
    """One model as the selection saw it. ``gates`` names why it may not be chosen; ``shortfall`` sums ``shortfall_by_capability``."""

    model: str
    gates: tuple[str, ...]
    shortfall: float
    shortfall_by_capability: Mapping[str, float]
    expected_cost_usd: float
    health: float
    eligible: bool


def compensated_weights(weights: Array, width: Array, exponent: float = 1.0) -> Array:
    """Band compensation, shape (K,): ``w'_k = (w_k / width_k) / sum_j(w_j / width_j) * sum_j w_j`` (Eq. 4).

    It lets a head whose scores move in a narrow band count as much as the others. Where heads are calibrated, a narrow band is the truth
    and not a fault, so that full compensation costs quality (docs/decisions/0005); ``exponent`` 0 turns it off, 1 is the equation.
    """
    scaled = weights / width**exponent
    total = scaled.sum()
    return np.asarray(scaled / total * weights.sum() if total > 0 else weights, dtype=np.float64)


def shortfalls(requirements: Array, capability: Array, weights: Array) -> Array:
    """Weighted shortfall by capability, shape (models, K): ``w'_k * max(0, r_k - c_mk)``; Eq. 5 is the sum over K.

    A surplus in one capability never pays for a deficit in another.
    """
    return np.asarray(weights * np.maximum(0.0, requirements - capability), dtype=np.float64)


def gates_of(model: ModelProfile, needs: TurnNeeds, policy: RoutingPolicy, health: HealthScores) -> tuple[str, ...]:
    """Reasons why a model must not be chosen for this turn, empty if there are none."""
    gates = []
    if policy.allow and model.name not in policy.allow:
        gates.append("policy: not on the allow list")
    if model.name in policy.deny:
        gates.append("policy: on the deny list")
    missing = sorted(needs.modalities - model.modalities)
    if missing:
        gates.append(f"modality: cannot read {', '.join(missing)}")
    if needs.tools and not model.tools:
        gates.append("tools: cannot call tools")
    needed = needs.tokens.input + min(needs.tokens.output, model.max_output_tokens)
    if needed > model.context_window_tokens:
        gates.append(f"window: needs about {needed} of {model.context_window_tokens} tokens")
    score = health.get(model.name, HEALTHY)
    if score.value < policy.health_floor:
        gates.append(f"health: {score.value:.2f} is below {policy.health_floor:.2f}{f' ({score.reason})' if score.reason else ''}")
    return tuple(gates)


def cheapest_capable(shortfall: Array, cost: Array, open_: NDArray[np.bool_], threshold: float | Array) -> NDArray[np.intp]:
    """Chosen model of every case (Alg. 2): the cheapest open one within the threshold; if none is, the open one with the least shortfall.

    Parameters
    ----------
    shortfall, cost
        Summed shortfall and expected cost, each of shape (cases, models) or broadcastable to it.
    open_
        Whether a model passed its gates, shape (models,). At least one must be open.
    threshold
        tau, one for all cases or of shape (cases,).

    Returns
    -------
    Index of a model, shape (cases,). Ties go to the cheaper, then the lesser shortfall, then the earlier in the catalog.

    Raises
    ------
    InvalidInput
        If no model is open, or a shortfall or cost is not a number.
    """
    if not open_.any():
        raise InvalidInput("no model is open to choose from")
    # Models come first from here on: what is reduced below then lies in long rows.
    lacks, price, may = np.atleast_2d(shortfall).T, np.atleast_2d(cost).T, open_[:, None]
    within = (lacks <= threshold) & may
    some = within.any(axis=0)
    # Where a model is good enough the cost comes first, elsewhere the shortfall does; the other one breaks ties.
    first = np.where(within, price, np.where(some | ~may, np.inf, lacks))
    least = first.min(axis=0)
    if not np.isfinite(least).all():
        raise InvalidInput("a shortfall or an expected cost is not a finite number")
    return np.asarray(np.where(first == least, np.where(some, lacks, price), np.inf).argmin(axis=0))


def open_models(gates: Sequence[tuple[str, ...]]) -> tuple[NDArray[np.bool_], bool]:
    """Which models may be chosen, shape (models,), and whether health had to be ignored.

    Policy, modality and window gates are final. Health is not: when no other model is left, a struggling one is better than none.
    """
    open_ = np.array([not names for names in gates], dtype=np.bool_)
    if open_.any():
        return open_, False
    return np.array([all(name.startswith("health:") for name in names) for names in gates], dtype=np.bool_), True
