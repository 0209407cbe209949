"""Which words of a conversation are classified, and which are left out.

The requirement of a turn lies in what the user asked for. System prompts, tool schemas and tool output belong to the client: they would
make every agent's turn look alike, so they are never read.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from router.envelope import strip_envelope
from router.errors import InvalidInput
from router.languages import token_costs, without_surrogates
from router.plain import plain_form, unframed, without_attachments, without_courtesy
from router.types import Conversation

_LARGEST_BUDGET: Final = 100_000
_ANSWER_CHARS: Final = 4_000
_WORDS_CHARS: Final = 12_000
_TURN_CHARS: Final = 16_000
_LINE_CHARS: Final = 1_000


@dataclass(frozen=True, slots=True)
class TextBudget:
    """How much is read, in estimated tokens. The defaults were chosen on held-out outcomes (docs/decisions)."""

    request_tokens: int = 256
    recent_tokens: int = 192
    assistant_tokens: int = 48
    recent_turns: int = 2

    def __post_init__(self) -> None:
        for name in TextBudget.__dataclass_fields__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _LARGEST_BUDGET:
                raise InvalidInput(f"text budget {name} is {value!r}: a whole number within [0, {_LARGEST_BUDGET}] was expected")


@dataclass(frozen=True, slots=True)
class ClassifiedText:
    """The text that is classified, with an account of what was not.

    ``kept`` maps a part to the characters read from it, ``cut`` a reason to the characters left out for it. Together they are all
    characters of the conversation's messages, apart from turns of white space. ``words`` is what the user wrote in the same turns, bounded
    by characters instead of tokens: features measure it, since what a token budget cuts off depends on the script.
    """

    text: str
    prose: str
    words: str = ""
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
    recent = users[1:][-budget.recent_turns :] if budget.recent_turns else []
    pieces: list[str] = []
    if users:
        _add(cut, "earlier_user_turns", sum(len(text) for text in users[1 : len(users) - len(recent)]))
        first, *recent = (_own_form(text, cut) for text in (users[0], *recent))
        pieces.append(_shorten(first, budget.request_tokens, "request", kept, cut))
        each = budget.recent_tokens // max(1, len(recent))
        pieces.extend(_shorten(text, each, "recent_user_turns", kept, cut) for text in recent)
    answers = [text for message in conversation.messages if message.role == "assistant" and (text := message.text).strip()]
    if answers and len(users) > 1:
        prose = _prose(answers[-1][:_ANSWER_CHARS])
        pieces.append(_shorten(prose, budget.assistant_tokens, "assistant", kept, cut))
        _add(cut, "assistant_unread", len(answers[-1]) - len(prose))
        answers.pop()
    _add(cut, "assistant_unread", sum(map(len, answers)))
    text = "\n".join(piece for piece in pieces if piece)
    return ClassifiedText(text, _prose(text), _words([first, *recent] if users else []), kept, cut)


def _words(turns: Sequence[str]) -> str:
    """Head and tail of these turns, without courtesy."""
    text = "\n".join(map(without_courtesy, turns))
    if len(text) <= _WORDS_CHARS:
        return text
    tail = _WORDS_CHARS // 3
    return f"{text[: _WORDS_CHARS - tail]}\n{text[-tail:]}"


def _own_form(text: str, cut: dict[str, int]) -> str:
    """A turn in plain form, without frame and attachments; of a very long one the head and the tail."""
    bounded = _head_and_tail_lines(text) if len(text) > _TURN_CHARS else text
    plain = plain_form(bounded)
    request = without_attachments(plain)
    own = unframed(request)
    for reason, before, after in (
        ("long_turn", text, bounded),
        ("form", bounded, plain),
        ("attachment", plain, request),
        ("frame", request, own),
    ):
        _add(cut, reason, len(before) - len(after))
    return own


def _head_and_tail_lines(text: str) -> str:
    """Two thirds and one third of what is read of a long turn, cut at the end of a line where one is near."""
    head, tail = _whole_characters(text, 2 * _TURN_CHARS // 3 - 1, _TURN_CHARS // 3)
    line_end = text.rfind("\n", head - _LINE_CHARS, head)
    line_start = text.find("\n", len(text) - tail, len(text) - tail + _LINE_CHARS) + 1
    return f"{text[: line_end if line_end >= 0 else head]}\n{text[line_start or len(text) - tail :]}"


def _count_unread(conversation: Conversation, cut: dict[str, int]) -> None:
    for message in conversation.messages:
        if message.role in ("system", "developer"):
            _add(cut, "system", len(message.text))
        elif message.role in ("tool", "function"):
            _add(cut, "tool_output", len(message.text))
        if message.tool_calls:
            _add(cut, "tool_calls", sum(len(call.arguments) for call in message.tool_calls))
    _add(cut, "tool_schemas", sum(tool.schema_chars for tool in conversation.tools))


def _user_words(texts: Sequence[str], cut: dict[str, int]) -> list[str]:
    own = [strip_envelope(text) for text in texts]
    # A turn that was all envelope still is a request if nothing else is: read it rather than nothing.
    if not any(own):
        own = [text.strip() for text in texts]
    _add(cut, "client_envelope", sum(len(text.strip()) - len(words) for text, words in zip(texts, own, strict=True)))
    _add(cut, "white_space", sum(len(text) - len(text.strip()) for text in texts))
    return [words for words in own if words]


def _prose(text: str) -> str:
    """The text without fenced code blocks."""
    return "\n".join(piece.strip() for piece in text.split("```")[::2]) if "```" in text else text


def _shorten(text: str, tokens: int, part: str, kept: dict[str, int], cut: dict[str, int]) -> str:
    """Keep the head and the tail: a pasted log or file sits in the middle, the question before or after it."""
    head, tail = _head_and_tail(text, tokens)
    _add(kept, part, head + tail)
    _add(cut, f"{part}_over_budget", len(text) - head - tail)
    if head + tail == len(text):
        return without_surrogates(text)
    return without_surrogates(f"{text[:head]}\n…\n{text[len(text) - tail :]}") if head + tail else ""


def _head_and_tail(text: str, tokens: int) -> tuple[int, int]:
    """Characters kept of the head and of the tail, two thirds and one third of the budget; all in the head if the text fits."""
    # Eight characters a token are more than any script needs, so longer texts are cut before they are measured.
    longest = 8 * tokens
    sides = text if len(text) <= longest else text[: longest // 2] + text[len(text) - longest // 2 :]
    spent = np.cumsum(token_costs(sides))
    if not sides or (len(sides) == len(text) and spent[-1] <= tokens):
        return len(sides), 0
    head = int(np.searchsorted(spent, tokens * 2 / 3, side="right"))
    tail = len(sides) - 1 - int(np.searchsorted(spent, spent[-1] - tokens / 3, side="left"))
    if len(sides) < len(text):
        head, tail = min(head, longest // 2), min(tail, longest // 2)
    return _whole_characters(text, head, tail)


def _whole_characters(text: str, head: int, tail: int) -> tuple[int, int]:
    """Shrink both sides so that no cut separates a letter from its combining marks."""
    while head > 0 and _joins(text[head]):
        head -= 1
    while tail > 0 and _joins(text[len(text) - tail]):
        tail -= 1
    return head, tail


def _joins(character: str) -> bool:
    return character in "\u200d\ufe0f" or unicodedata.category(character).startswith("M")


def _add(counts: dict[str, int], key: str, amount: int) -> None:
    if amount > 0:
        counts[key] = counts.get(key, 0) + amount
