"""What a router requires of a conversation, and what it would choose, for many conversations at once."""

from __future__ import annotations

from collections.abc import Sequence

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


class Probe:
    """Reads requirements off a router. Decisions are the router's own: ``Router.route``, or its selection rule under other requirements."""

    def __init__(self, router: Router) -> None:
        self.router = router
        self.capabilities = router.artifact.capabilities
        bands, policy = router.artifact.bands, router.policy
        pool, _ = pair_catalog(None, "weak", "strong", self.capabilities)
        self._weak = pool.capability(self.capabilities, bands)[0]
        self._capability = router.catalog.capability(self.capabilities, bands)
        weights = np.array([policy.weights.get(name, 1.0) for name in self.capabilities])
        self._weights = compensated_weights(weights, bands.width, policy.band_compensation)

    def inputs(self, conversations: Sequence[Conversation]) -> Array:
        """Input rows of the heads, shape (n, embedding + features)."""
        classified = [classify_text(conversation, self.router.artifact.budget) for conversation in conversations]
        return model_input(self.router.encoder, list(conversations), classified)

    def requirements(self, conversations: Sequence[Conversation]) -> Array:
        """Requirements, shape (n, K)."""
        return self.requirements_of(self.inputs(conversations))

    def requirements_of(self, inputs: Array) -> Array:
        """Requirements of input rows, shape (n, K)."""
        return self.router.artifact.predictor.predict(inputs)

    def need(self, requirements: Array) -> Array:
        """Shortfall of the weak model of any two, shape (n,): at tau the strong one is chosen where this is larger."""
        return np.asarray(shortfalls(requirements, self._weak, self._weights).sum(axis=1))

    def choice_under(self, decision: RoutingDecision, requirements: Array) -> str:
        """The model that the selection rule chooses for the same turn (costs, gates, threshold) under other requirements, shape (K,)."""
        cost = np.array([candidate.expected_cost_usd for candidate in decision.candidates])
        open_ = np.array([not candidate.gates for candidate in decision.candidates])
        threshold = self.router.policy.shortfall_threshold
        problem = SelectionProblem(requirements, self._capability, self._weights, cost, open_, threshold)
        return decision.candidates[problem.choice].model
