"""One question to one OpenAI-compatible endpoint, with errors a person can act on."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openai
from openai import AsyncOpenAI

from router.errors import LabelError
from router.languages import estimate_tokens as estimate_text_tokens
from router.languages import without_surrogates
from training.label.config import ModelSpec, RunSettings
from training.label.requests import estimate_tokens

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
            answer = await self._sdk.chat.completions.with_raw_response.create(**request)
        except openai.OpenAIError as error:
            raise self._explain(error) from error
        latency_ms = (time.perf_counter() - started) * 1000
        return self._read(self._parse(answer.text), latency_ms, estimate_tokens(messages, tools))

    def _who(self) -> str:
        return f"model {self.spec.name!r} at {self.spec.base_url}"

    def _parse(self, body: str) -> Any:
        try:
            return json.loads(body)
        except (ValueError, RecursionError) as error:
            what = "an HTML page" if looks_like_html(body) else f"text ({one_line(body, 60)!r})"
            raise EndpointUnusable(f"{self._who()} answered with {what} instead of JSON; {_WRONG_ADDRESS}") from error

    def _read(self, answer: Any, latency_ms: float, prompt_estimate: int) -> Completion:
        """Read a reply without trusting its shape."""
        choices = answer.get("choices") if isinstance(answer, dict) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(message, dict):
            raise EndpointError(f"{self._who()} answered without choices: {_shown(answer)}")
        finish_reason = choice.get("finish_reason") or "stop"
        text, calls = joined_text(message.get("content")), tool_calls_of(message.get("tool_calls"))
        if text is None and message.get("content") is None and (calls or finish_reason == "length"):
            text = ""  # calls come without text, and so does an answer that was cut while the model still reasoned
        if text is None or calls is None or not isinstance(finish_reason, str):
            raise EndpointError(f"{self._who()} answered with neither text nor tool calls: {_shown(choice)}")
        said = text + "".join(call["name"] + call["arguments"] for call in calls)
        usage = answer.get("usage")
        return Completion(
            text=text,
            tool_calls=calls,
            finish_reason=finish_reason,
            prompt_tokens=self._used(usage, "prompt_tokens") or prompt_estimate,
            completion_tokens=self._used(usage, "completion_tokens") or estimate_text_tokens(said),
            latency_ms=latency_ms,
        )

    def _used(self, usage: Any, name: str) -> int:
        """Return the tokens a server reports, 0 where it reports none: those are charged at an estimate."""
        value = usage.get(name) if isinstance(usage, dict) else usage
        if value is None:
            return 0
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise EndpointError(f"{self._who()} reports usage that is no whole number of {name}: {_shown(usage)}")
        return value

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


def joined_text(content: Any) -> str | None:
    """Return the text of a message's content, its text parts joined; None for anything else. Half an emoji is replaced."""
    parts = content if isinstance(content, list) else [content]
    found = [part.get("text") if isinstance(part, dict) and part.get("type", "text") == "text" else part for part in parts]
    texts = [text for text in found if isinstance(text, str)]
    return without_surrogates("".join(texts)) if len(texts) == len(found) else None


def tool_calls_of(calls: Any) -> tuple[Mapping[str, str], ...] | None:
    """Return name and arguments (as JSON text) of every function call of a message; None if they have another shape."""
    if not isinstance(calls or [], list) or not all(isinstance(call, dict) for call in calls or ()):
        return None
    found = []
    for call in calls or ():
        function = call.get("function")
        if function is None:
            continue
        name, arguments = (function.get("name"), function.get("arguments") or "{}") if isinstance(function, dict) else (None, None)
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments, ensure_ascii=False)
        if not isinstance(name, str) or not isinstance(arguments, str):
            return None
        found.append({"name": without_surrogates(name), "arguments": without_surrogates(arguments)})
    return tuple(found)


def _shown(value: Any) -> str:
    return one_line(without_surrogates(json.dumps(value, ensure_ascii=False)), 120)


def looks_like_html(text: str) -> bool:
    """Tell a web page from an API answer."""
    start = text.lstrip()[:200].lower()
    return start.startswith(("<!doctype", "<html", "<head", "<body", "<?xml"))


def one_line(text: str, limit: int) -> str:
    """Flatten and cut a text for an error message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"
