"""What a router says about a pair of models on many conversations, read from its own decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.decision import RoutingDecision
from router.errors import InvalidInput
from router.selection import Candidate, cheapest_capable
from router.types import Conversation
from training.bootstrap import Array

Route = Callable[[Conversation], RoutingDecision]


@dataclass(frozen=True, slots=True)
class Predictions:
    """Decisions of a router over n conversations and a pool of two.

    Attributes
    ----------
    shortfall
        Summed shortfall of the weak and the strong model, shape (n, 2); infinite where a gate closes the model.
    requirements
        Shape (n, K), in the order of ``capabilities``.
    threshold
        tau, the operating point of the router.
    cost_order
        Expected cost of the weak and the strong model as the router saw it, shape (n, 2); None means that the strong one is dearer.
    families
        Language family of every conversation as the router read it; empty where that was not kept.
    family_thresholds
        tau of families that have their own.
    """

    shortfall: Array
    requirements: Array
    capabilities: tuple[str, ...]
    threshold: float
    cost_order: Array | None = None
    families: tuple[str, ...] = ()
    family_thresholds: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        n = len(self.shortfall)
        if self.shortfall.shape != (n, 2) or self.requirements.shape != (n, len(self.capabilities)):
            raise InvalidInput(
                f"shortfall of shape {self.shortfall.shape} and requirements of shape {self.requirements.shape} do not fit together"
            )
        if np.isnan(self.shortfall).any() or np.isnan(self.requirements).any():
            raise InvalidInput("a shortfall or requirement is NaN: every prompt needs a prediction")
        if (self.families or self.family_thresholds) and len(self.families) != n:
            raise InvalidInput(f"{len(self.families)} families for {n} conversations: one each is needed")

    @property
    def need(self) -> Array:
        """How much a prompt needs the strong model: the weak model's shortfall, shape (n,)."""
        return self.shortfall[:, 0]

    def decided(self) -> Array:
        """What the router itself chooses: as :meth:`chosen`, each family at its own tau where it has one."""
        if not self.family_thresholds:
            return self.chosen(self.threshold)
        return self.chosen(np.array([self.family_thresholds.get(family, self.threshold) for family in self.families]))

    def chosen(self, threshold: float | Array) -> Array:
        """1 where the strong model is chosen at tau, else 0, shape (n,). The router's own selection rule decides."""
        cost = np.array([0.0, 1.0]) if self.cost_order is None else self.cost_order
        return cheapest_capable(self.shortfall, cost, np.ones(2, dtype=np.bool_), threshold).astype(np.float64)

    def probability(self, capability: Sequence[str]) -> Array:
        """Requirement of the capability that each prompt exercises, shape (n,); the largest one where that is unknown."""
        column = {name: k for k, name in enumerate(self.capabilities)}
        largest = self.requirements.max(axis=1)
        return np.array([self.requirements[i, column[name]] if name in column else largest[i] for i, name in enumerate(capability)])

    def of(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Predictions:
        """The predictions of some rows."""
        return replace(
            self,
            shortfall=self.shortfall[rows],
            requirements=self.requirements[rows],
            cost_order=None if self.cost_order is None else self.cost_order[rows],
            families=tuple(np.asarray(self.families, dtype=object)[rows]) if self.families else (),
        )


def predict_pair(
    route: Route | Sequence[Route],
    conversations: Sequence[Conversation],
    weak: str,
    strong: str,
    threshold: float,
    *,
    fold: NDArray[np.integer] | None = None,
    progress: Callable[[Iterable[Conversation]], Iterable[Conversation]] = iter,
) -> Predictions:
    """Route every conversation and keep what the decision says about the two models.

    Parameters
    ----------
    route
        ``Router.route`` of a router whose pool is the two models; or one a fold, for cross-validated predictions.
    fold
        Which of the routes a conversation is given to, shape (n,); needed where there are several.
    progress
        Wraps the conversations, for a progress bar.
    """
    routes = [route] if callable(route) else list(route)
    number = np.zeros(len(conversations), dtype=int) if fold is None else np.asarray(fold)
    if len(number) != len(conversations) or (number.size and not 0 <= number.min() <= number.max() < len(routes)):
        raise InvalidInput(
            f"{len(number)} fold numbers for {len(conversations)} conversations and {len(routes)} routers: one in 0..{len(routes) - 1} each"
        )
    shortfall, cost = np.empty((len(conversations), 2)), np.empty((len(conversations), 2))
    requirements: list[list[float]] = []
    names: tuple[str, ...] = ()
    families = []
    for i, conversation in enumerate(progress(conversations)):
        decision = routes[number[i]](conversation)
        pair = [_candidate(decision, weak), _candidate(decision, strong)]
        shortfall[i] = [np.inf if candidate.gates else candidate.shortfall for candidate in pair]
        cost[i] = [candidate.expected_cost_usd for candidate in pair]
        families.append(decision.family)
        names = tuple(decision.requirements.values)
        requirements.append([decision.requirements.values[name] for name in names])
    return Predictions(
        shortfall, np.reshape(requirements, (len(conversations), len(names))), names, threshold, cost, families=tuple(families)
    )


def from_frame(table: pd.DataFrame, capabilities: Sequence[str], threshold: float) -> Predictions:
    """Predictions kept as columns ``weak_shortfall``, ``strong_shortfall`` and one a capability."""
    return Predictions(
        table[["weak_shortfall", "strong_shortfall"]].to_numpy(dtype=float),
        table[list(capabilities)].to_numpy(dtype=float),
        tuple(capabilities),
        threshold,
    )


def _candidate(decision: RoutingDecision, model: str) -> Candidate:
    for candidate in decision.candidates:
        if candidate.model == model:
            return candidate
    raise InvalidInput(f"the router does not know {model!r}: its pool is {', '.join(c.model for c in decision.candidates)}")
