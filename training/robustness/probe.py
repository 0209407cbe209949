"""What a router decides on conversations, what it requires of them, and how that differs between two."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.decision import RoutingDecision
from router.margin import SelectionProblem
from router.route import Router, model_input
from router.selection import compensated_weights, shortfalls
from router.text import classify_text
from router.types import Conversation
from training.pairs import pair_catalog

Array = NDArray[np.float64]
SHARES: Final = (0.2, 0.5, 0.8)
"""Shares of strong calls whose thresholds are looked at beside the router's own."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What became of a decision.

    ``flipped`` says whether another model is chosen. ``before`` and ``after`` are the need of the strong one of any two models, ``shift``
    is the change of each head's requirement, shape (K,).
    """

    flipped: bool
    before: float
    after: float
    shift: Array


class Probe:
    """Reads a router's decisions. They are its own: ``Router.route``, or its selection rule under the requirements it had before."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.capabilities = router.artifact.capabilities
        bands, policy = router.artifact.bands, router.policy
        pool, _ = pair_catalog(None, "weak", "strong", self.capabilities)
        self._weak = pool.capability(self.capabilities, bands)[0]
        self._capability = router.catalog.capability(self.capabilities, bands)
        weights = np.array([policy.weights.get(name, 1.0) for name in self.capabilities])
        self._weights = compensated_weights(weights, bands.width, policy.band_compensation)

    def requirements(self, conversations: Sequence[Conversation]) -> Array:
        """Requirements of the task alone, shape (n, K): what an attacker's queries see, many at once."""
        classified = [classify_text(conversation, self.router.artifact.budget) for conversation in conversations]
        return self.router.artifact.predictor.predict(model_input(self.router.encoder, list(conversations), classified))

    def need(self, requirements: Array) -> Array:
        """Shortfall of the weak model of any two, shape (n,): at tau the strong one is chosen where this is larger."""
        return np.asarray(shortfalls(requirements, self._weak, self._weights).sum(axis=1))

    def needs(self, decisions: Iterable[RoutingDecision]) -> Array:
        """The same of decisions, shape (n,)."""
        return self.need(np.array([self.required(decision) for decision in decisions]))

    def required(self, decision: RoutingDecision) -> Array:
        """Requirements of a decision, shape (K,)."""
        return decision.requirements.to_array(self.capabilities)

    def difference(self, before: RoutingDecision, after: RoutingDecision, excused: Sequence[str] = ()) -> Difference:
        """How a changed turn is decided, beside what the same turn would get with the requirements of before.

        Costs and gates are those of the changed turn in both: a longer prompt may rightly cost more. Excused capabilities may have the
        requirement they have now.
        """
        old, new = self.required(before), self.required(after)
        kept = np.where([name in excused for name in self.capabilities], new, old)
        chosen = self._choice(after, kept, self.router.policy.threshold_for(before.family))
        needs = self.need(np.stack([kept, new]))
        return Difference(chosen != after.model, float(needs[0]), float(needs[1]), new - old)

    def thresholds(self, need: Array) -> dict[str, float]:
        """Name and tau of the operating points: the router's own, and those at which so many of these prompts go to the strong model."""
        points = {f"at_{share:.0%}".rstrip("%"): float(np.quantile(need, 1 - share)) for share in SHARES}
        return {"own": self.router.policy.shortfall_threshold, **points}

    def _choice(self, decision: RoutingDecision, requirements: Array, threshold: float) -> str:
        cost = np.array([candidate.expected_cost_usd for candidate in decision.candidates])
        open_ = np.array([not candidate.gates for candidate in decision.candidates])
        problem = SelectionProblem(requirements, self._capability, self._weights, cost, open_, threshold)
        return decision.candidates[problem.choice].model
