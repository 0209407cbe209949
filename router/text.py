"""Which words of a conversation are classified, and which are left out.

The requirement of a turn lies in what the user asked for. System prompts, tool schemas and tool output belong to the client: they would
make every agent's turn look alike, so they are never read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from router.languages import script_statistics
from router.types import Conversation

# Blocks that editors and agents wrap around a user's words. Their content is the client's, not the user's.
ENVELOPE_TAGS: Final[tuple[str, ...]] = (
    "system-reminder", "environment_details", "environment_context", "editor_context", "ide_opened_file", "ide_selection", "user_info",
    "project_layout", "open_files", "attached_files", "additional_data", "workspace_info", "context", "reminderInstructions",
    "system_instructions",
)  # fmt: skip
# Tags that mark the user's own words inside an envelope: the tag goes, the words stay.
REQUEST_TAGS: Final[tuple[str, ...]] = ("user_query", "userRequest", "user_request", "task", "prompt", "user_message")


@dataclass(frozen=True, slots=True)
class TextBudget:
    """How much is read, in estimated tokens. The defaults were chosen on held-out outcomes (docs/decisions)."""

    request_tokens: int = 256
    recent_tokens: int = 192
    assistant_tokens: int = 48
    recent_turns: int = 2


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """The text that is classified, with an account of what was not.

    ``cut`` maps a reason to the characters left out for it; ``kept`` maps a part to the characters read from it.
    """

    text: str
    prose: str
    kept: dict[str, int] = field(default_factory=dict)
    cut: dict[str, int] = field(default_factory=dict)


def classify_text(conversation: Conversation, budget: TextBudget | None = None) -> ClassifiedText:
    """Collect the bounded text: original request, last user turns, then a little of the last answer.

    User turns that a client made (empty after its envelope is taken off) do not count as turns. The cost is bounded by the budget and not
    by the length of the conversation.
    """
    budget = budget or TextBudget()
    kept: dict[str, int] = {}
    cut: dict[str, int] = {}
    _count_unread(conversation, cut)
    users = _user_words(conversation.user_texts, cut)
    pieces: list[str] = []
    if users:
        recent = users[1:][-budget.recent_turns :] if budget.recent_turns else []
        skipped = sum(len(text) for text in users[1 : len(users) - len(recent)])
        _add(cut, "earlier_user_turns", skipped)
        pieces.append(_shorten(users[0], budget.request_tokens, "request", kept, cut))
        each = budget.recent_tokens // max(1, len(recent))
        pieces.extend(_shorten(text, each, "recent_user_turns", kept, cut) for text in recent)
    if len(users) > 1:
        answer = next((m.text for m in reversed(conversation.messages) if m.role == "assistant" and m.text.strip()), "")
        if answer:
            pieces.append(_shorten(_prose(answer[:4000]), budget.assistant_tokens, "assistant", kept, cut))
    text = "\n".join(piece for piece in pieces if piece)
    return ClassifiedText(text=text, prose=_prose(text), kept=kept, cut=cut)


def _count_unread(conversation: Conversation, cut: dict[str, int]) -> None:
    for message in conversation.messages:
        if message.role in ("system", "developer"):
            _add(cut, "system", len(message.text))
        elif message.role in ("tool", "function"):
            _add(cut, "tool_output", len(message.text))
        _add(cut, "tool_calls", sum(len(call.arguments) for call in message.tool_calls))
    _add(cut, "tool_schemas", sum(tool.schema_chars for tool in conversation.tools))


def _user_words(texts: Sequence[str], cut: dict[str, int]) -> list[str]:
    words = []
    for text in texts:
        own = strip_envelope(text)
        _add(cut, "client_envelope", len(text) - len(own))
        if own:
            words.append(own)
    # A turn that was all envelope still is a request if nothing else is: read it rather than nothing.
    return words or [text.strip() for text in texts]


def strip_envelope(text: str) -> str:
    """The user's own words of a turn: known client blocks are taken out, request tags are unwrapped."""
    if "<" not in text:
        return text.strip()
    for tag in REQUEST_TAGS:
        inner = _between(text, f"<{tag}>", f"</{tag}>")
        if inner is not None and inner.strip():
            return inner.strip()
    for tag in ENVELOPE_TAGS:
        text = _without(text, f"<{tag}>", f"</{tag}>")
    return text.strip()


def _between(text: str, opening: str, closing: str) -> str | None:
    start = text.find(opening)
    if start < 0:
        return None
    end = text.find(closing, start)
    return text[start + len(opening) : end] if end >= 0 else None


def _without(text: str, opening: str, closing: str) -> str:
    pieces = []
    position = 0
    while (start := text.find(opening, position)) >= 0 and (end := text.find(closing, start)) >= 0:
        pieces.append(text[position:start])
        position = end + len(closing)
    pieces.append(text[position:])
    return "".join(pieces)


def _prose(text: str) -> str:
    """The text without fenced code blocks."""
    return "\n".join(piece.strip() for piece in text.split("```")[::2]) if "```" in text else text


def _shorten(text: str, tokens: int, part: str, kept: dict[str, int], cut: dict[str, int]) -> str:
    """Keep the head and the tail: a pasted log or file sits in the middle, the question before or after it."""
    short = _head_and_tail(text, tokens)
    _add(kept, part, len(short))
    _add(cut, f"{part}_over_budget", len(text) - len(short))
    return short


def _head_and_tail(text: str, tokens: int) -> str:
    # No script costs less than an eighth of a token a character, so longer texts are cut before they are measured.
    longest = 8 * tokens
    if len(text) <= longest:
        cost = script_statistics(text).tokens
        if cost <= tokens:
            return text
        size = int(len(text) * tokens / cost)
    else:
        sample = text[: longest // 2] + text[-longest // 2 :]
        size = int(len(sample) * min(1.0, tokens / max(1.0, script_statistics(sample).tokens)))
    head = (2 * size) // 3
    tail = size - head
    return f"{text[:head]}\n…\n{text[len(text) - tail :]}" if size > 0 else ""


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    if amount > 0:
        counts[key] = counts.get(key, 0) + amount
