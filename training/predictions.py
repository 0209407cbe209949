"""What a router says about a pair of models on many conversations, read from its own decisions."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import ModelCatalog
from router.decision import RoutingDecision
from router.errors import InvalidInput
from router.files.artifacts import language_identifier
from router.route import Router
from router.selection import Candidate, RoutingPolicy, cheapest_capable
from router.types import Conversation
from training.bootstrap import Array
from training.engine import Engine, LocalEngine
from training.inputs import EncoderSource

Route = Callable[[Conversation], RoutingDecision]
_CHUNK: Final = 2_000


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
    engine: Engine | None = None,
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
    engine
        Where they are routed; this process by default. For others a route must be one that can be pickled, such as a :class:`LoadedRoute`.
    """
    routes = [route] if callable(route) else list(route)
    number = np.zeros(len(conversations), dtype=int) if fold is None else np.asarray(fold)
    if len(number) != len(conversations) or (number.size and not 0 <= number.min() <= number.max() < len(routes)):
        raise InvalidInput(
            f"{len(number)} fold numbers for {len(conversations)} conversations and {len(routes)} routers: one in 0..{len(routes) - 1} each"
        )
    parts = list((engine or LocalEngine()).map(_routed, (routes, weak, strong), _chunks(zip(number, progress(conversations), strict=True))))
    if not parts:
        return Predictions(np.empty((0, 2)), np.empty((0, 0)), (), threshold, np.empty((0, 2)))
    shortfall, cost = np.concatenate([part.shortfall for part in parts]), np.concatenate([part.cost for part in parts])
    requirements = np.concatenate([part.required for part in parts])
    families = tuple(family for part in parts for family in part.families)
    return Predictions(shortfall, requirements, parts[0].capabilities, threshold, cost, families=families)


class LoadedRoute:
    """``Router.route`` of a router that is built, encoder and all, in the process that first routes with it."""

    def __init__(self, artifact: RouterArtifact, encoder: EncoderSource, pool: ModelCatalog, policy: RoutingPolicy) -> None:
        self._parts = (artifact, encoder, pool, policy)
        self._router: Router | None = None

    def __call__(self, conversation: Conversation) -> RoutingDecision:
        """The decision on a conversation."""
        if self._router is None:
            artifact, encoder, pool, policy = self._parts
            self._router = Router(artifact, encoder.load(), pool, policy, language_identifier())
        return self._router.route(conversation)

    def __getstate__(self) -> dict[str, Any]:
        """Without the router."""
        return {**self.__dict__, "_router": None}


@dataclass(frozen=True, slots=True)
class _Routed:
    """What decisions said: shapes (n, 2), (n, 2), (n, K), and n families."""

    shortfall: Array
    cost: Array
    required: Array
    families: tuple[str, ...]
    capabilities: tuple[str, ...]


def _routed(shared: tuple[Sequence[Route], str, str], some: Sequence[tuple[int, Conversation]]) -> _Routed:
    routes, weak, strong = shared
    shortfall, cost = np.empty((len(some), 2)), np.empty((len(some), 2))
    required: list[list[float]] = []
    families: list[str] = []
    names: tuple[str, ...] = ()
    for i, (number, conversation) in enumerate(some):
        decision = routes[number](conversation)
        pair = [_candidate(decision, weak), _candidate(decision, strong)]
        shortfall[i] = [np.inf if candidate.gates else candidate.shortfall for candidate in pair]
        cost[i] = [candidate.expected_cost_usd for candidate in pair]
        families.append(sys.intern(decision.family))
        names = tuple(decision.requirements.values)
        required.append([decision.requirements.values[name] for name in names])
    return _Routed(shortfall, cost, np.array(required), tuple(families), names)


def _chunks(items: Iterable[tuple[int, Conversation]]) -> Iterator[list[tuple[int, Conversation]]]:
    left = iter(items)
    while some := list(islice(left, _CHUNK)):
        yield some


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
