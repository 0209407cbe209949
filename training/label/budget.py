"""Money and tokens: reserve before asking, settle after, so that parallel requests cannot overshoot together."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from training.label.config import Budget, ModelSpec


class BudgetReached(Exception):
    """The next request might exceed the budget; not an error."""


@dataclass
class Ledger:
    """Running totals of one invocation."""

    budget: Budget
    prompt_tokens: int = 0
    completion_tokens: int = 0
    usd: float = 0.0
    requests: int = 0
    _reserved: dict[int, tuple[int, float]] = field(default_factory=dict)
    _next: int = 0
    _freed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens spent."""
        return self.prompt_tokens + self.completion_tokens

    def reserve(self, spec: ModelSpec, prompt_tokens: int, max_tokens: int) -> int:
        """Set the worst case of a request aside and return its ticket; raise BudgetReached if it does not fit."""
        tokens, usd = prompt_tokens + max_tokens, spec.cost_usd(prompt_tokens, max_tokens)
        held_tokens = sum(held[0] for held in self._reserved.values())
        held_usd = sum(held[1] for held in self._reserved.values())
        if self.budget.tokens is not None and self.tokens + held_tokens + tokens > self.budget.tokens:
            raise BudgetReached
        if self.budget.usd is not None and self.usd + held_usd + usd > self.budget.usd:
            raise BudgetReached
        self._next += 1
        self._reserved[self._next] = (tokens, usd)
        return self._next

    async def reserve_in_turn(self, spec: ModelSpec, prompt_tokens: int, max_tokens: int) -> int:
        """Reserve as soon as it fits; raise BudgetReached if it does not while nothing is in flight whose end could make room."""
        while True:
            try:
                return self.reserve(spec, prompt_tokens, max_tokens)
            except BudgetReached:
                if not self._reserved:
                    raise
            await self._freed.wait()

    def settle(self, ticket: int, spec: ModelSpec, prompt_tokens: int, completion_tokens: int) -> float:
        """Replace a reservation by what was used and return its price in USD."""
        self._reserved.pop(ticket)
        cost = spec.cost_usd(prompt_tokens, completion_tokens)
        self.prompt_tokens += prompt_tokens
        self.completion_tokens += completion_tokens
        self.usd += cost
        self.requests += 1
        self._wake()
        return cost

    def release(self, ticket: int) -> None:
        """Give back a reservation whose request failed."""
        self._reserved.pop(ticket, None)
        self._wake()

    def _wake(self) -> None:
        """Let those who wait for room look again."""
        self._freed.set()
        self._freed = asyncio.Event()
