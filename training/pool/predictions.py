"""What routers say about every model of a pool on many conversations, read from their own decisions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.selection import cheapest_capable
from router.types import Conversation
from training.predictions import Route

Array = NDArray[np.float64]
_MOST_TAUS: Final = 201


@dataclass(frozen=True, slots=True)
class PoolPredictions:
    """Decisions of one or several routers over n conversations and M models.

    Attributes
    ----------
    shortfall
        Summed shortfall of every model, shape (n, M); infinite where a gate closes the model or the router's catalog lacks it.
    requirements
        Shape (n, K).
    cost_order
        Expected cost of every model as the router saw it, shape (n, M).
    """

    shortfall: Array
    requirements: Array
    cost_order: Array

    def __post_init__(self) -> None:
        if self.shortfall.ndim != 2 or self.cost_order.shape != self.shortfall.shape or len(self.requirements) != len(self.shortfall):
            raise InvalidInput(
                f"shortfall of shape {self.shortfall.shape}, costs of shape {self.cost_order.shape} and requirements of shape "
                f"{self.requirements.shape} do not fit together"
            )
        if np.isnan(self.shortfall).any() or np.isnan(self.requirements).any():
            raise InvalidInput("a shortfall or requirement is NaN: every prompt needs a prediction")

    def chosen(self, threshold: float | Array) -> NDArray[np.intp]:
        """Number of the chosen model at tau (one for all, or of shape (n,)), shape (n,). The router's own selection rule decides."""
        return cheapest_capable(self.shortfall, self.cost_order, np.ones(self.shortfall.shape[1], dtype=np.bool_), threshold)

    def taus(self) -> Array:
        """Every tau at which a choice changes, thinned to 201."""
        values = np.unique(np.append(self.shortfall[np.isfinite(self.shortfall)], 0.0))
        return values if values.size <= _MOST_TAUS else np.unique(np.quantile(values, np.linspace(0, 1, _MOST_TAUS), method="nearest"))


def predict_pool(
    route: Route | Sequence[Route],
    conversations: Sequence[Conversation],
    models: Sequence[str],
    *,
    fold: NDArray[np.integer] | None = None,
    progress: Callable[[Iterable[Conversation]], Iterable[Conversation]] = iter,
) -> PoolPredictions:
    """Route every conversation and keep what the decision says about each model.

    Parameters
    ----------
    route
        ``Router.route``, or one a fold. A router's catalog may hold fewer models than ``models``, and others besides them.
    fold
        Which of the routes a conversation is given to, shape (n,); needed where there are several.
    progress
        Wraps the conversations, for a progress bar.

    Raises
    ------
    InvalidInput
        If a router knows none of the models, or a fold number names no router.
    """
    routes = [route] if callable(route) else list(route)
    number = np.zeros(len(conversations), dtype=int) if fold is None else np.asarray(fold)
    if len(number) != len(conversations) or (number.size and not 0 <= number.min() <= number.max() < len(routes)):
        raise InvalidInput(
            f"{len(number)} fold numbers for {len(conversations)} conversations and {len(routes)} routers: one each is needed"
        )
    column = {name: m for m, name in enumerate(models)}
    shortfall = np.full((len(conversations), len(models)), np.inf)
    cost = np.full(shortfall.shape, np.inf)
    requirements = []
    for i, conversation in enumerate(progress(conversations)):
        decision = routes[number[i]](conversation)
        for candidate in decision.candidates:
            m = column.get(candidate.model)
            if m is not None and not candidate.gates:
                shortfall[i, m], cost[i, m] = candidate.shortfall, candidate.expected_cost_usd
        if not np.isfinite(shortfall[i]).any():
            raise InvalidInput(
                f"the router can choose none of {', '.join(models)}: its pool is {', '.join(c.model for c in decision.candidates)}"
            )
        requirements.append(list(decision.requirements.values.values()))
    return PoolPredictions(shortfall, np.reshape(requirements, (len(conversations), -1)), cost)
