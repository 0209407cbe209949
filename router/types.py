"""Conversations as they come in, and decisions as they go out. All of it frozen data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from router.errors import InvalidInput
from router.languages import check_language

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
ROLES: Final[tuple[Role, ...]] = ("system", "developer", "user", "assistant", "tool", "function")
Modality = Literal["text", "image", "audio", "video", "file"]
MODALITIES: Final[tuple[Modality, ...]] = ("text", "image", "audio", "video", "file")

# Kinds of content parts: OpenAI chat and responses, Anthropic messages, and what open servers add.
_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_CALL_PARTS: Final = frozenset({"tool_use", "server_tool_use", "mcp_tool_use"})
_PART_MODALITY: Final[Mapping[str, Modality]] = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "input_audio": "audio",
    "audio": "audio",
    "audio_url": "audio",
    "video_url": "video",
    "input_video": "video",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "file",
}


@dataclass(frozen=True, slots=True)
class ContentPart:
    """One piece of a message. ``text`` is empty for anything that is not text."""

    modality: Modality
    text: str = ""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A tool the assistant asked for; ``arguments`` is the JSON text as sent."""

    name: str
    arguments: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. Unknown fields and unknown content parts are ignored, never an error."""

    role: Role
    parts: tuple[ContentPart, ...] = ()
    tool_calls: tuple[ToolCall, ...] = ()

    @property
    def text(self) -> str:
        """All text parts, joined by newlines."""
        if len(self.parts) == 1:
            return self.parts[0].text
        return "\n".join(part.text for part in self.parts if part.modality == "text")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool on offer: its name, and the size of its schema in characters (the schema itself is never classified)."""

    name: str
    schema_chars: int = 0


@dataclass(frozen=True, slots=True)
class Conversation:
    """Everything a routing decision may look at.

    ``current_model`` is the model that holds the conversation's prompt cache, if any. ``compacted`` says that the history was
    summarised since that model last answered. ``language`` overrides language identification (BCP-47).
    """

    messages: tuple[Message, ...]
    tools: tuple[Tool, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    current_model: str | None = None
    compacted: bool = False
    language: str | None = None
    max_output_tokens: int | None = None

    @property
    def user_texts(self) -> tuple[str, ...]:
        """Texts of the user turns in order, without empty ones."""
        return tuple(text for message in self.messages if message.role == "user" and (text := message.text).strip())

    @property
    def modalities(self) -> frozenset[Modality]:
        """Modalities that occur anywhere in the history; an image stays in the history of every later turn."""
        return frozenset(part.modality for message in self.messages for part in message.parts) | {"text"}

    @property
    def uses_tools(self) -> bool:
        """Whether a model must be able to read or make tool calls."""
        return bool(self.tools) or any(m.tool_calls or m.role in ("tool", "function") for m in self.messages)

    @classmethod
    def from_text(cls, prompt: str, *, language: str | None = None) -> Conversation:
        """A conversation of one user turn."""
        _check_language(language)
        return cls(messages=(Message("user", (ContentPart("text", prompt),)),), language=language)

    @classmethod
    def from_openai(
        cls,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        metadata: Mapping[str, str] | None = None,
        current_model: str | None = None,
        compacted: bool = False,
        language: str | None = None,
        max_output_tokens: int | None = None,
    ) -> Conversation:
        """Read OpenAI-shaped chat messages and tools; items of the responses API and Anthropic content blocks are understood as well.

        Tool results that stand in a user message become a tool turn before it, so that the same conversation reads alike in every dialect.

        Raises
        ------
        InvalidInput
            If there is no message, one is not a mapping with a known role and readable content, or an option is out of range.
        """
        if not _is_list(messages):
            raise InvalidInput(f"messages is a {type(messages).__name__}, not a list")
        if not messages:
            raise InvalidInput("messages is empty: at least one message is needed")
        if tools is not None and not _is_list(tools):
            raise InvalidInput(f"tools is a {type(tools).__name__}, not a list")
        if max_output_tokens is not None and (type(max_output_tokens) is not int or max_output_tokens < 1):
            raise InvalidInput(f"max_output_tokens is {max_output_tokens!r}: a whole number of at least 1 was expected")
        _check_language(language)
        read = tuple(turn for index, message in enumerate(messages) for turn in _turns(index, message))
        if not read:
            raise InvalidInput("messages holds no turn: at least one message with a role is needed")
        return cls(
            messages=read,
            tools=tuple(_tool(index, tool) for index, tool in enumerate(tools or ())),
            metadata=dict(metadata or {}),
            current_model=current_model,
            compacted=compacted,
            language=language,
            max_output_tokens=max_output_tokens,
        )


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def _check_language(language: str | None) -> None:
    if language is not None:
        check_language(language)


def _turns(index: int, raw: Mapping[str, Any]) -> Iterator[Message]:
    """The turns of one message: tool results inside it first, then the rest."""
    where = f"messages[{index}]"
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{where} is a {type(raw).__name__}, not an object with role and content")
    if "role" not in raw and isinstance(raw.get("type"), str):
        yield from _item(where, raw)
        return
    role = raw.get("role")
    if role not in ROLES:
        raise InvalidInput(f"{where}.role is {role!r:.80}: allowed are {', '.join(ROLES)}")
    calls = raw.get("tool_calls")
    if calls is not None and not _is_list(calls):
        raise InvalidInput(f"{where}.tool_calls is a {type(calls).__name__}, not a list")
    blocks = _blocks(f"{where}.content", raw.get("content"))
    results = [block for block in blocks if _is_result(block)]
    for result in results:
        yield Message("tool", _parts(_blocks(f"{where}.content", result.get("content"))))
    requested = [*(calls or ()), raw.get("function_call"), *(block for block in blocks if block.get("type") in _CALL_PARTS)]
    parts = _parts(blocks) + _beside_content(raw)
    if parts or len(results) < len(blocks) or not results:
        yield Message(cast("Role", role), parts, tuple(_tool_call(call) for call in requested if isinstance(call, Mapping)))


def _item(where: str, raw: Mapping[str, Any]) -> Iterator[Message]:
    """An item of the responses API without a role: tool calls and their outputs count, others (reasoning, references) say nothing."""
    kind = raw["type"]
    if kind.endswith("_output"):
        yield Message("tool", _parts(_blocks(f"{where}.output", raw.get("output"))))
    elif kind.endswith("_call"):
        yield Message("assistant", (), (_tool_call(raw),))


def _blocks(where: str, content: object) -> list[Mapping[str, Any]]:
    """Content as a list of part objects; what is neither text nor an object is left out."""
    if content is None:
        return []
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if isinstance(content, Mapping):
        return [content]
    if not _is_list(content):
        raise InvalidInput(f"{where} is a {type(content).__name__}: a string, a list of parts or null is allowed")
    parts = cast("Sequence[object]", content)
    return [{"type": "text", "text": raw} if isinstance(raw, str) else raw for raw in parts if isinstance(raw, str | Mapping)]


def _is_result(block: Mapping[str, Any]) -> bool:
    return str(block.get("type", "")).endswith("tool_result")


def _parts(blocks: Sequence[Mapping[str, Any]]) -> tuple[ContentPart, ...]:
    return tuple(part for block in blocks if (part := _part(block)) is not None)


def _part(raw: Mapping[str, Any]) -> ContentPart | None:
    kind = str(raw.get("type", "text"))
    if kind in _TEXT_PARTS:
        text = raw.get("text", raw.get("refusal"))
        if isinstance(text, Mapping):
            text = text.get("value")
        return ContentPart("text", text) if isinstance(text, str) else None
    modality = _PART_MODALITY.get(kind)
    return ContentPart(modality) if modality is not None else None


def _beside_content(raw: Mapping[str, Any]) -> tuple[ContentPart, ...]:
    """What a chat message carries outside ``content``: a refusal, or a spoken answer."""
    refusal = raw.get("refusal")
    parts = (ContentPart("text", refusal),) if isinstance(refusal, str) and refusal else ()
    return (*parts, ContentPart("audio")) if isinstance(raw.get("audio"), Mapping) else parts


def _tool_call(raw: Mapping[str, Any]) -> ToolCall:
    source = _described(raw)
    arguments = source.get("arguments", source.get("input", ""))
    return ToolCall(str(source.get("name") or ""), arguments if isinstance(arguments, str) else _json(arguments))


def _tool(index: int, raw: Mapping[str, Any]) -> Tool:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"tools[{index}] is a {type(raw).__name__}, not an object")
    source = _described(raw)
    return Tool(str(source.get("name") or raw.get("type") or ""), len(_json(source)))


def _described(raw: Mapping[str, Any]) -> Mapping[str, Any]:
    """The object that has the name: inside ``function`` or ``custom``, or the whole."""
    inner = raw.get("function", raw.get("custom"))
    return inner if isinstance(inner, Mapping) else raw


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
