"""What exactly is sent to a model for a prompt, in both tool modes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from training.label.prompts import LabelPrompt

TOOL_INSTRUCTION = (
    "You can call the tools listed below. If one of them does what the user asks, answer with exactly one JSON object and nothing else: "
    '{"name": "<tool name>", "arguments": {<argument name>: <value>, ...}}. '
    "If no tool fits the request, answer the user in plain text, in the user's language.\n\nTools:\n"
)


def build_messages(prompt: LabelPrompt, tool_mode: str) -> list[dict[str, Any]]:
    """Return the messages; in ``prompt`` mode the tools stand in a system message instead of the tools field."""
    messages = [dict(message) for message in prompt.messages]
    if not prompt.tools or tool_mode == "native":
        return messages
    text = TOOL_INSTRUCTION + render_tools(prompt.tools)
    if messages[0]["role"] == "system" and isinstance(messages[0]["content"], str):
        return [{"role": "system", "content": messages[0]["content"] + "\n\n" + text}, *messages[1:]]
    return [{"role": "system", "content": text}, *messages]


def render_tools(tools: Sequence[Mapping[str, Any]]) -> str:
    """Write each tool as one line of JSON: name, description, parameters."""
    lines = []
    for tool in tools:
        function = tool["function"]
        shown = {name: function[name] for name in ("name", "description", "parameters") if name in function}
        lines.append(json.dumps(shown, ensure_ascii=False))
    return "\n".join(lines)


def estimate_tokens(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Guess a prompt's tokens from above (half a token a UTF-8 byte); only for reserving budget, usage is billed as reported."""
    size = sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in (*messages, *tools))
    return size // 2 + 16
