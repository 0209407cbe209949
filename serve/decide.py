"""Decisions off the event loop, in bounded time, and never without an answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio.to_thread

from router.cost import tokens_of
from router.decision import RoutingDecision
from router.errors import InvalidInput
from router.route import Router
from router.types import Conversation
from serve.log import log_decision
from serve.options import narrowed
from serve.problems import ProblemError
from serve.settings import Settings
from serve.wire import RouteAnswer, answer_of, conversation_from

log = logging.getLogger("interlock.serve")


class Decider:
    """A loaded router behind worker threads.

    The classifier has threads of its own: one that is given up on keeps its thread until it ends, so a stuck classifier can neither pile
    up threads nor take those that answer without it.
    """

    def __init__(self, router: Router, artifact: str, settings: Settings) -> None:
        self.router = router
        self.artifact = artifact
        self.settings = settings
        self._classifier = ThreadPoolExecutor(settings.classifier_workers, thread_name_prefix="classifier")

    def close(self) -> None:
        """Drop what waits; what runs ends by itself."""
        self._classifier.shutdown(wait=False, cancel_futures=True)

    async def decide(self, body: Mapping[str, Any]) -> RouteAnswer:
        """Answer one validated request body.

        Raises
        ------
        ProblemError
            413 over a limit; 422 if no model may take the conversation.
        RouterError
            If an option names a model that is not there.
        """
        started = time.perf_counter()
        if len(body["messages"]) > self.settings.max_messages:
            raise _too_large(f"{len(body['messages'])} messages", self.settings.max_messages, "max_messages")
        conversation, router = await anyio.to_thread.run_sync(self._read, body)
        decision = await self._classify(router, conversation)
        answer = answer_of(decision, self.artifact, (time.perf_counter() - started) * 1e3)
        log_decision(answer, messages=len(conversation.messages), tools=len(conversation.tools), prompt=self.settings.log_prompts)
        return answer

    def _read(self, body: Mapping[str, Any]) -> tuple[Conversation, Router]:
        conversation = conversation_from(body)
        tokens = tokens_of(conversation, 1).input
        if tokens > self.settings.max_input_tokens:
            raise _too_large(f"about {tokens} tokens", self.settings.max_input_tokens, "max_input_tokens")
        allow, deny = body.get("allow") or (), body.get("deny") or ()
        return conversation, narrowed(self.router, threshold=body.get("shortfall_threshold"), allow=allow, deny=deny)

    async def _classify(self, router: Router, conversation: Conversation) -> RoutingDecision:
        future = asyncio.wrap_future(self._classifier.submit(router.route, conversation))
        try:
            async with asyncio.timeout(self.settings.classifier_timeout_ms / 1e3) as limit:
                return await future
        except InvalidInput as error:
            # No model is left, which the answer without the classifier will find too; anything else was the classifier's.
            problem = f"the classifier refused the conversation: {error}"
        except Exception as error:
            if limit.expired():
                problem = f"the classifier took longer than {self.settings.classifier_timeout_ms} ms"
                log.warning("classifier timeout", extra={"fields": {"classifier_timeout_ms": self.settings.classifier_timeout_ms}})
            else:
                problem = f"the classifier failed with {type(error).__name__}"
                log.exception("classifier error")
        try:
            return await anyio.to_thread.run_sync(router.route_without_classifier, conversation, problem)
        except InvalidInput as error:
            raise ProblemError(422, "no-eligible-model", str(error)) from error


def _too_large(found: str, limit: int, setting: str) -> ProblemError:
    return ProblemError(
        413, "content-too-large", f"the conversation has {found}, more than {limit}: send less, or raise INTERLOCK_{setting.upper()}"
    )
