"""Names that are not there, in one line: what there is, and what was probably meant."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Final

_LISTED: Final = 20


def near_names(name: str, known: Iterable[str], count: int = 3) -> list[str]:
    """Known names that ``name`` may have been meant for, closest first; compared without case and punctuation."""
    plain = {other: _plain(other) for other in known}
    wanted = _plain(name)
    inside = [other for other, text in plain.items() if min(len(wanted), len(text)) > 2 and (wanted in text or text in wanted)]
    inside.sort(key=lambda other: (abs(len(plain[other]) - len(wanted)), other))
    close = difflib.get_close_matches(wanted, list(plain.values()), n=count, cutoff=0.6)
    ordered = inside + [other for text in close for other, have in plain.items() if have == text]
    return list(dict.fromkeys(ordered))[:count]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """``; did you mean 'small' or 'small-2'?``, or nothing where no name is near."""
    near = [repr(other) for other in near_names(name, known)]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def unknown_name(what: str, name: str, known: Iterable[str]) -> str:
    """``unknown model 'smal': there are large, small; did you mean 'small'?``, for an error."""
    names = list(known)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"unknown {what} {name!r}: there are {', '.join(names[:_LISTED]) or 'none'}{more}{did_you_mean(name, names)}"


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())
