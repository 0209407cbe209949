"""Whose text may stand in a report: ours, and nobody else's unless the prompt table says so."""

from __future__ import annotations

from typing import Any, Final

_OWN: Final = "own"
_FREE: Final = frozenset({"apache-2.0", "mit", "bsd-2-clause", "bsd-3-clause", "cc0-1.0", "cc-by-4.0"})
MOST_CHARACTERS: Final = 600


def text_may_be_shown(licence: Any, author: Any) -> bool:
    """Whether a report may hold the text of a prompt.

    Yes where the column ``licence`` is ``own``, or names a licence that lets texts be passed on **and** the column ``author`` says whose it
    is. A licence alone is not enough: that of a repository is often put beside texts that others wrote. Anything else, or nothing, is a no.
    """
    if not isinstance(licence, str):
        return False
    name = licence.strip().casefold()
    return name == _OWN or (name in _FREE and isinstance(author, str) and bool(author.strip()))


def shortened(text: str) -> str:
    """The beginning of a text, at most 600 characters."""
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS].rstrip()}…"
