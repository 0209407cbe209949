"""Tokens that reroute: a black-box search against a router, after "Rerouting LLM Routers" (Shafran et al., arXiv 2501.01818).

A gadget is a sequence of ``length`` tokens put before or behind a request. Hill climbing: start from one token repeated, draw a position,
try ``candidates`` other tokens there, keep the best, stop after ``iterations`` or when ``patience`` rounds brought nothing. The paper lets
a gadget for all queries maximise the router's score of the gadget alone; ours maximises the mean need over some queries, which is stronger.
Only the router's requirements are seen, never its weights.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.types import Conversation
from training.robustness.transformation import rewritten

Array = NDArray[np.float64]
Needs = Callable[[Sequence[Conversation]], Array]
Direction = Literal["up", "down"]
Position = Literal["suffix", "prefix"]
DIRECTIONS: Final[tuple[Direction, ...]] = ("up", "down")


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Budget of a search.

    Parameters
    ----------
    length
        Tokens of a gadget.
    candidates, iterations
        Tokens tried a round, and rounds; 32 and 100 in the paper.
    patience
        Rounds without gain after which the search ends.
    """

    length: int = 10
    candidates: int = 16
    iterations: int = 60
    patience: int = 25

    def __post_init__(self) -> None:
        for name in SearchOptions.__dataclass_fields__:
            if getattr(self, name) < 1:
                raise InvalidInput(f"{name} of the gadget search is {getattr(self, name)}: at least 1 was expected")


def with_gadget(conversation: Conversation, gadget: Sequence[str], position: Position) -> Conversation:
    """The conversation with the tokens before or behind its last user turn."""
    text = " ".join(gadget)
    changed = rewritten(conversation, lambda own: f"{text} {own}" if position == "prefix" else f"{own} {text}", last_only=True)
    return replace(conversation) if changed is None else changed


def random_gadget(vocabulary: Sequence[str], length: int, rng: random.Random) -> tuple[str, ...]:
    """Tokens drawn blindly: the control of the same length."""
    return tuple(rng.choice(vocabulary) for _ in range(length))


def search_gadget(
    needs: Needs,
    queries: Sequence[Conversation],
    vocabulary: Sequence[str],
    direction: Direction,
    position: Position,
    options: SearchOptions,
    rng: random.Random,
) -> tuple[tuple[str, ...], int]:
    """The best gadget found for these conversations, and the queries it took; for one conversation it is a gadget of that one alone."""
    sign = 1.0 if direction == "up" else -1.0

    def value(gadgets: Sequence[tuple[str, ...]]) -> Array:
        changed = [with_gadget(query, gadget, position) for gadget in gadgets for query in queries]
        return np.asarray(sign * needs(changed).reshape(len(gadgets), len(queries)).mean(axis=1))

    best: tuple[str, ...] = (rng.choice(vocabulary),) * options.length
    best_value = float(value([best])[0])
    since, asked = 0, len(queries)
    for _ in range(options.iterations):
        at = rng.randrange(options.length)
        tried = [(*best[:at], token, *best[at + 1 :]) for token in rng.sample(vocabulary, min(options.candidates, len(vocabulary)))]
        values = value(tried)
        asked += len(tried) * len(queries)
        top = int(values.argmax())
        since += 1
        if values[top] > best_value + 1e-12:
            best, best_value, since = tried[top], float(values[top]), 0
        if since >= options.patience:
            break
    return best, asked
