"""Ask the models, keep every answer, stop at the budget."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from training.label.budget import BudgetReached, Ledger
from training.label.client import ChatClient, Completion, EndpointError, EndpointUnusable
from training.label.config import LabelConfig, ModelSpec
from training.label.progress import Progress
from training.label.prompts import LabelPrompt
from training.label.requests import build_messages, estimate_tokens
from training.label.store import JsonlStore, Key

ANSWER_KEY = ("prompt_id", "prompt_hash", "model", "settings_hash")
MAX_FAILURES_IN_A_ROW = 20
ClientFactory = Callable[[ModelSpec], ChatClient]


def now() -> str:
    """Return the time in UTC to the second."""
    return dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass
class Tally:
    """What one stage did."""

    wanted: int = 0
    done: int = 0
    failures: list[dict[str, Any]] = field(default_factory=list)
    budget_reached: bool = False


def answer_key(config: LabelConfig, model: ModelSpec, prompt: LabelPrompt) -> Key:
    """Return the identity of the answer of a model to a prompt under the run's settings."""
    return prompt.prompt_id, prompt.hash, model.name, config.settings_hash(model, tools=bool(prompt.tools))


def token_limit(config: LabelConfig, prompt: LabelPrompt) -> int:
    """Return how many tokens an answer may have."""
    return prompt.max_tokens or int(config.run.max_tokens)


def stored_answer(config: LabelConfig, model: ModelSpec, prompt: LabelPrompt, store: JsonlStore) -> dict[str, Any] | None:
    """Return the answer to use: the latest the store holds, even one that waits for its replacement (:func:`needs_asking`)."""
    return store.get(answer_key(config, model, prompt))


def needs_asking(config: LabelConfig, model: ModelSpec, prompt: LabelPrompt, store: JsonlStore) -> bool:
    """Tell whether there is no answer, or one that was cut at a lower token limit than the prompt allows now.

    An answer that ended by itself stands under any limit, so that raising a limit asks again only for what was cut. The cut
    answer stays in use until its replacement arrives.
    """
    record = stored_answer(config, model, prompt, store)
    return record is None or (record["finish_reason"] == "length" and record.get("max_tokens", 0) < token_limit(config, prompt))


async def each(items: Sequence[Any], limit: int, work: Callable[[Any], Any]) -> None:
    """Run ``work`` on items in order, at most ``limit`` at a time; the first exception stops the rest."""
    queue = iter(items)

    async def worker() -> None:
        for item in queue:
            await work(item)

    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(min(limit, len(items))):
                group.create_task(worker())
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


async def answer_all(
    config: LabelConfig,
    model: ModelSpec,
    prompts: Sequence[LabelPrompt],
    store: JsonlStore,
    ledger: Ledger,
    client: ChatClient,
    progress: Progress,
    tally: Tally,
) -> None:
    """Let one model answer every prompt that needs asking; ``tally`` counts along, also when this raises."""
    missing = [prompt for prompt in prompts if needs_asking(config, model, prompt, store)]
    tally.wanted, tally.done = len(prompts), len(prompts) - len(missing)
    in_a_row = 0

    async def ask(prompt: LabelPrompt) -> None:
        nonlocal in_a_row
        if tally.budget_reached:
            return
        max_tokens = token_limit(config, prompt)
        messages = build_messages(prompt, model.tool_mode)
        tools = prompt.tools if model.tool_mode == "native" else ()
        try:
            ticket = await ledger.reserve_in_turn(model, estimate_tokens(messages, tools), max_tokens)
        except BudgetReached:
            tally.budget_reached = True
            return
        try:
            completion = await client.complete(messages, max_tokens=max_tokens, tools=tools)
        except EndpointError as error:
            ledger.release(ticket)
            in_a_row += 1
            if in_a_row > MAX_FAILURES_IN_A_ROW or (isinstance(error, EndpointUnusable) and in_a_row > model.concurrency):
                raise EndpointUnusable(f"{error} ({in_a_row} failures in a row)") from error
            if isinstance(error, EndpointUnusable) and tally.done == tally.wanted - len(missing):
                raise
            tally.failures.append(failure("answer", prompt, model.name, error))
            progress.failed()
            return
        except BaseException:
            ledger.release(ticket)
            raise
        in_a_row = 0
        cost = ledger.settle(ticket, model, completion.prompt_tokens, completion.completion_tokens)
        store.append(_record(answer_key(config, model, prompt), max_tokens, completion, cost))
        tally.done += 1
        progress.advance()

    progress.start(f"answers of {model.name}", tally.wanted, tally.done)
    await each(missing, model.concurrency, ask)


def failure(stage: str, prompt: LabelPrompt, model: str, error: Exception) -> dict[str, Any]:
    """Describe a request that failed."""
    return {"stage": stage, "prompt_id": prompt.prompt_id, "model": model, "error": str(error), "at": now()}


def _record(key: Key, max_tokens: int, completion: Completion, cost: float) -> dict[str, Any]:
    return {
        **dict(zip(ANSWER_KEY, key, strict=True)),
        "text": completion.text,
        "tool_calls": [dict(call) for call in completion.tool_calls],
        "finish_reason": completion.finish_reason,
        "max_tokens": max_tokens,
        "prompt_tokens": completion.prompt_tokens,
        "completion_tokens": completion.completion_tokens,
        "cost_usd": cost,
        "latency_ms": round(completion.latency_ms, 1),
        "at": now(),
    }
