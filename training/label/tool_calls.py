"""Reading tool calls, native or written out as JSON in the text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_DECODER = json.JSONDecoder()


@dataclass(frozen=True)
class ToolCall:
    """One call; ``name`` is None where the model wrote that no tool fits."""

    name: str | None
    arguments: Mapping[str, Any]


def json_values(text: str) -> list[Any]:
    """Return the JSON objects and arrays that stand in a text, outermost only, in order."""
    found, at = [], 0
    while at < len(text):
        if text[at] in "{[":
            try:
                value, at = _DECODER.raw_decode(text, at)
                found.append(value)
                continue
            except (json.JSONDecodeError, RecursionError):
                pass
        at += 1
    return found


def read_calls(text: str, native: Sequence[Mapping[str, str]] = ()) -> list[ToolCall]:
    """Return the tool calls of an answer; native ones win over text.

    Text calls are JSON objects ``{"name": ..., "arguments": {...}}``, bare, in a code fence, in ``<tool_call>`` tags, in a list,
    or wrapped as OpenAI does (``{"tool_calls": [...]}``, ``{"function": {...}}``).
    """
    if native:
        return [ToolCall(call["name"], _arguments(call["arguments"])) for call in native]
    return list(_calls_in(json_values(text)))


def _calls_in(values: Iterable[Any]) -> Iterable[ToolCall]:
    for value in values:
        if isinstance(value, list):
            yield from _calls_in(value)
        elif isinstance(value, dict):
            if isinstance(value.get("tool_calls"), list):
                yield from _calls_in(value["tool_calls"])
            elif isinstance(value.get("function"), dict):
                yield from _calls_in([value["function"]])
            elif "name" in value and ("arguments" in value or "parameters" in value):
                name = value["name"]
                arguments = _arguments(value.get("arguments", value.get("parameters")))
                yield ToolCall(None if name in (None, "", "none", "null") else str(name), arguments)


def _arguments(raw: Any) -> Mapping[str, Any]:
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except (json.JSONDecodeError, RecursionError):
            return {}
    return raw if isinstance(raw, dict) else {}
