"""Conversations as they come in, and decisions as they go out. All of it frozen data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, cast

from router.errors import InvalidInput

Role = Literal["system", "developer", "user", "assistant", "tool", "function"]
ROLES: Final[tuple[Role, ...]] = ("system", "developer", "user", "assistant", "tool", "function")
Modality = Literal["text", "image", "audio", "file"]
MODALITIES: Final[tuple[Modality, ...]] = ("text", "image", "audio", "file")

_TEXT_PARTS: Final = frozenset({"text", "input_text", "output_text", "refusal"})
_PART_MODALITY: Final[Mapping[str, Modality]] = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "input_audio": "audio",
    "audio": "audio",
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
        """Read OpenAI-shaped chat messages and tools.

        Raises
        ------
        InvalidInput
            If there is no message, or one is not a mapping with a known role and readable content.
        """
        if not messages:
            raise InvalidInput("messages is empty: at least one message is needed")
        return cls(
            messages=tuple(_message(index, message) for index, message in enumerate(messages)),
            tools=tuple(_tool(tool) for tool in tools or ()),
            metadata=dict(metadata or {}),
            current_model=current_model,
            compacted=compacted,
            language=language,
            max_output_tokens=max_output_tokens,
        )


def _message(index: int, raw: Mapping[str, Any]) -> Message:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"messages[{index}] is a {type(raw).__name__}, not an object with role and content")
    role = raw.get("role")
    if role not in ROLES:
        raise InvalidInput(f"messages[{index}].role is {role!r}: allowed are {', '.join(ROLES)}")
    calls = raw.get("tool_calls") or ()
    if not isinstance(calls, Sequence) or isinstance(calls, str):
        raise InvalidInput(f"messages[{index}].tool_calls is a {type(calls).__name__}, not a list")
    return Message(
        role=cast("Role", role),
        parts=_parts(index, raw.get("content")),
        tool_calls=tuple(_tool_call(call) for call in calls if isinstance(call, Mapping)),
    )


def _parts(index: int, content: object) -> tuple[ContentPart, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (ContentPart("text", content),)
    if not isinstance(content, Sequence):
        raise InvalidInput(f"messages[{index}].content is a {type(content).__name__}: a string, a list of parts or null is allowed")
    return tuple(part for raw in content if (part := _part(raw)) is not None)


def _part(raw: object) -> ContentPart | None:
    if isinstance(raw, str):
        return ContentPart("text", raw)
    if not isinstance(raw, Mapping):
        return None
    kind = str(raw.get("type", "text"))
    if kind in _TEXT_PARTS:
        text = raw.get("text", raw.get("refusal", ""))
        return ContentPart("text", text) if isinstance(text, str) else None
    modality = _PART_MODALITY.get(kind)
    return ContentPart(modality) if modality is not None else None


def _tool_call(raw: Mapping[str, Any]) -> ToolCall:
    function = raw.get("function")
    source = function if isinstance(function, Mapping) else raw
    arguments = source.get("arguments", "")
    return ToolCall(str(source.get("name", "")), arguments if isinstance(arguments, str) else str(arguments))


def _tool(raw: Mapping[str, Any]) -> Tool:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"a tool is a {type(raw).__name__}, not an object")
    function = raw.get("function")
    source = function if isinstance(function, Mapping) else raw
    return Tool(str(source.get("name", raw.get("type", ""))), len(str(source)))
