"""One question to one OpenAI-compatible endpoint, with errors a person can act on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai
from openai import AsyncOpenAI

from router.errors import LabelError
from training.label.config import ModelSpec, RunSettings

_WRONG_ADDRESS = "is base_url the /v1 address of an OpenAI-compatible server?"


class EndpointError(LabelError):
    """The endpoint refused or garbled one request; the prompt goes to the failure list."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class EndpointUnusable(EndpointError):
    """No request to this endpoint can succeed (wrong address, key or model): stop asking."""


@dataclass(frozen=True)
class Completion:
    """What came back, with what it cost in tokens and time."""

    text: str
    tool_calls: tuple[Mapping[str, str], ...]
    finish_reason: str
    prompt_tokens: int
    completion_tokens: int
    latency_ms: float


class ChatClient:
    """Async chat client for one model; the SDK retries with exponential backoff and honours Retry-After."""

    def __init__(self, spec: ModelSpec, run: RunSettings) -> None:
        self.spec = spec
        self.run = run
        self._sdk = AsyncOpenAI(
            base_url=spec.base_url,
            api_key=spec.api_key(),
            timeout=openai.Timeout(run.timeout_s, connect=min(10.0, run.timeout_s)),
            max_retries=int(run.retries),
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()

    async def complete(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        tools: Sequence[Mapping[str, Any]] = (),
        response_format: Mapping[str, Any] | None = None,
    ) -> Completion:
        """Ask once.

        Raises
        ------
        EndpointUnusable
            Connection refused, unknown host, HTML instead of JSON, wrong key, unknown model.
        EndpointError
            Anything that may differ for the next prompt (timeout, overload, bad request).
        """
        request: dict[str, Any] = {
            "model": self.spec.model,
            "messages": list(messages),
            "max_tokens": max_tokens,
            "temperature": self.run.temperature,
            "seed": int(self.run.seed),
        }
        if tools:
            request["tools"] = list(tools)
        if response_format is not None:
            request["response_format"] = response_format
        if self.spec.extra_body:
            request["extra_body"] = dict(self.spec.extra_body)
        started = time.perf_counter()
        try:
            answer = await self._sdk.chat.completions.create(**request)
        except openai.OpenAIError as error:
            raise self._explain(error) from error
        except ValueError as error:  # a body that claims to be JSON and is not
            raise EndpointUnusable(f"{self._who()} answered with something that is not JSON; {_WRONG_ADDRESS}") from error
        return self._read(answer, (time.perf_counter() - started) * 1000)

    def _who(self) -> str:
        return f"model {self.spec.name!r} at {self.spec.base_url}"

    def _read(self, answer: Any, latency_ms: float) -> Completion:
        if isinstance(answer, str):
            what = "an HTML page" if looks_like_html(answer) else f"text ({one_line(answer, 60)!r})"
            raise EndpointUnusable(f"{self._who()} answered with {what} instead of JSON; {_WRONG_ADDRESS}")
        choices = getattr(answer, "choices", None)
        if not choices or getattr(choices[0], "message", None) is None:
            raise EndpointError(f"{self._who()} answered without choices: {one_line(str(answer), 120)}")
        message, usage = choices[0].message, getattr(answer, "usage", None)
        calls = tuple(
            {"name": call.function.name, "arguments": call.function.arguments or "{}"}
            for call in message.tool_calls or ()
            if getattr(call, "function", None) is not None
        )
        return Completion(
            text=message.content or "",
            tool_calls=calls,
            finish_reason=choices[0].finish_reason or "stop",
            prompt_tokens=getattr(usage, "prompt_tokens", 0) or 0,
            completion_tokens=getattr(usage, "completion_tokens", 0) or 0,
            latency_ms=latency_ms,
        )

    def _explain(self, error: openai.OpenAIError) -> EndpointError:
        who = self._who()
        if isinstance(error, openai.APITimeoutError):
            tried = f"within {self.run.timeout_s:g} s ({self.run.retries} retries)"
            return EndpointError(f"{who} gave no answer {tried}; raise [run] timeout_s or lower concurrency")
        if isinstance(error, openai.APIConnectionError):
            cause = one_line(str(error.__cause__ or error), 100)
            return EndpointUnusable(f"{who} cannot be reached ({cause}); start the server or correct base_url")
        if isinstance(error, openai.APIStatusError):
            return self._explain_status(error)
        return EndpointError(f"{who} failed: {one_line(str(error), 160)}")

    def _explain_status(self, error: openai.APIStatusError) -> EndpointError:
        who, status = self._who(), error.status_code
        body = error.response.text
        said = "an HTML page" if looks_like_html(body) else one_line(body, 160)
        if status in (401, 403):
            source = f"environment variable {self.spec.api_key_env}" if self.spec.api_key_env else "api_key_env, which is not set"
            return EndpointUnusable(f"{who} refused the key (HTTP {status}); check {source}")
        if status == 404:
            return EndpointUnusable(f"{who} has no model {self.spec.model!r} or no such path (HTTP 404: {said}); check model and base_url")
        if looks_like_html(body):
            return EndpointUnusable(f"{who} answered HTTP {status} with an HTML page; {_WRONG_ADDRESS}")
        return EndpointError(f"{who} answered HTTP {status}: {said}", status)


def looks_like_html(text: str) -> bool:
    """Tell a web page from an API answer."""
    start = text.lstrip()[:200].lower()
    return start.startswith(("<!doctype", "<html", "<head", "<body", "<?xml"))


def one_line(text: str, limit: int) -> str:
    """Flatten and cut a text for an error message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
