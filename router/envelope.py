"""The user's own words inside what editors and agents wrap around a turn."""

from __future__ import annotations

import re
from typing import Final

# Blocks that editors and agents wrap around a user's words. Their content is the client's, not the user's.
ENVELOPE_TAGS: Final[tuple[str, ...]] = (
    "system-reminder", "environment_details", "environment_context", "editor_context", "ide_opened_file", "ide_selection", "user_info",
    "project_layout", "open_files", "attached_files", "additional_data", "workspace_info", "context", "reminderInstructions",
    "system_instructions",
)  # fmt: skip
# Tags that mark the user's own words inside an envelope: what is around them is the client's.
REQUEST_TAGS: Final[tuple[str, ...]] = ("user_query", "userRequest", "user_request", "user_message")
# Tags that people write themselves as well: taken off where they enclose all that is left, never a reason to drop words around them.
_WRAPPER_TAGS: Final[tuple[str, ...]] = ("task", "prompt")
# A block before or behind all else, with a compound name of which one part is of these, is a client's as well.
_CLIENT_WORDS: Final = frozenset({
    "context", "reminder", "environment", "workspace", "editor", "ide", "terminal", "cursor", "git", "project", "system", "session", "os",
    "memory", "preferences", "opened", "open", "viewed", "visible", "recent", "recently", "rules", "instructions", "diagnostics", "linter",
    "cwd",
})  # fmt: skip
_OPENING: Final = re.compile(r"\s*<([A-Za-z]\w*[_-][\w-]*)(?:\s[^<>\n]{0,200})?>")
_CLOSING: Final = re.compile(r"</([A-Za-z]\w*[_-][\w-]*)>\s*\Z")
_LONGEST_NAME: Final = 60
# The heading under which an editor puts the user's words when it writes Markdown.
_REQUEST_HEADING: Final = re.compile(r"^#{1,4} My request\b[^\n]{0,40}:[ \t]*$", re.MULTILINE)


def strip_envelope(text: str) -> str:
    """The user's own words of a turn: client blocks are taken out, request tags are unwrapped."""
    text = text.strip()
    if text.startswith("#") and (heading := _REQUEST_HEADING.search(text)) and text[heading.end() :].strip():
        text = text[heading.end() :].strip()
    if "<" not in text:
        return text
    for tag in REQUEST_TAGS:
        inner = _between(text, f"<{tag}>", f"</{tag}>")
        if inner is not None and inner.strip():
            return inner.strip()
    for tag in ENVELOPE_TAGS:
        text = _without(text, f"<{tag}>", f"</{tag}>")
    text = _without_outer_blocks(text.strip())
    for tag in _WRAPPER_TAGS:
        opening, closing = f"<{tag}>", f"</{tag}>"
        if text.startswith(opening) and text.endswith(closing):
            text = text[len(opening) : -len(closing)].strip()
    return text


def _without_outer_blocks(text: str) -> str:
    """Without client blocks of unlisted names before and behind all else; the text itself where nothing else would be left."""
    start, end = 0, len(text)
    while (opening := _OPENING.match(text, start, end)) and _is_client(opening[1]):
        closing = f"</{opening[1]}>"
        found = text.find(closing, opening.end(), end)
        if found < 0:
            break
        start = found + len(closing)
    while (last := _CLOSING.search(text, max(start, end - _LONGEST_NAME), end)) and _is_client(last[1]):
        found = text.rfind(f"<{last[1]}", start, last.start())
        if found < 0:
            break
        end = found
        while end > start and text[end - 1].isspace():
            end -= 1
    return text[start:end].strip() or text


def _is_client(name: str) -> bool:
    return not _CLIENT_WORDS.isdisjoint(re.split(r"[_-]", name.lower()))


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
