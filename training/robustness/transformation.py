"""A change of a conversation, with what it must leave alone and why."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from router.types import ContentPart, Conversation, Message

Change = Callable[[str], str]
Apply = Callable[[Conversation, str, random.Random], Conversation | None]
_CODE: Final = re.compile(r"(```.*?(?:```|\Z)|`[^`\n]+`)", re.DOTALL)
_MARKS: Final = re.compile(r"[(){}\[\]=;<>_#]")


@dataclass(frozen=True, slots=True)
class Transformation:
    """A change that leaves the work of a request alone, wholly or but for some capabilities.

    Parameters
    ----------
    name, family
        Its own name, and that of the row of the report it counts in.
    apply
        From a conversation, its language and a random generator to the changed conversation; None where the change does not apply.
    keeps
        Why the decision should stand, for people.
    excused
        Capabilities whose requirement may move: a decision is judged with their requirements as they were.
    gated
        False only reports: the change may alter the work after all.
    """

    name: str
    family: str
    apply: Apply
    keeps: str
    excused: tuple[str, ...] = ()
    gated: bool = True


def on_last_turn(change: Callable[[str, str, random.Random], str]) -> Apply:
    """A change of the last user turn, the one that is being routed; not applied where it changes nothing."""

    def apply(conversation: Conversation, language: str, rng: random.Random) -> Conversation | None:
        return rewritten(conversation, lambda text: change(text, language, rng), last_only=True)

    return apply


def on_every_turn(change: Callable[[str, str, random.Random], str]) -> Apply:
    """A change of every user turn; not applied where it changes nothing."""

    def apply(conversation: Conversation, language: str, rng: random.Random) -> Conversation | None:
        return rewritten(conversation, lambda text: change(text, language, rng), last_only=False)

    return apply


def rewritten(conversation: Conversation, change: Change, *, last_only: bool) -> Conversation | None:
    """The conversation with the text of its user turns changed, None if that leaves it as it was; what is not text stays."""
    messages = list(conversation.messages)
    turns = [i for i, message in enumerate(messages) if message.role == "user" and message.text.strip()]
    for i in turns[-1:] if last_only else turns:
        others = tuple(part for part in messages[i].parts if part.modality != "text")
        messages[i] = replace(messages[i], parts=(ContentPart("text", change(messages[i].text)), *others))
    changed = replace(conversation, messages=tuple(messages))
    return None if changed == conversation else changed


def with_system(conversation: Conversation, text: str) -> Conversation:
    """The conversation with a system prompt before it."""
    return replace(conversation, messages=(Message("system", (ContentPart("text", text),)), *conversation.messages))


def outside_code(text: str, change: Change) -> str:
    """Change the prose and leave alone fenced and inline code, and lines with two or more marks of code."""
    pieces = _CODE.split(text)
    return "".join(piece if i % 2 else _by_line(piece, change) for i, piece in enumerate(pieces))


def _by_line(text: str, change: Change) -> str:
    return "\n".join(
        line if len(_MARKS.findall(line)) > 1 or line.startswith(("    ", "\t")) else change(line) for line in text.split("\n")
    )
