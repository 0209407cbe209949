"""Loaders by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from router.errors import InvalidInput
from training.sources import helpsteer3, languagebench, lmarena, routellm, routerbench
from training.sources.base import Converted, Source
from training.tables import near_names

SOURCES: Final[Mapping[str, Source]] = MappingProxyType(
    {module.SOURCE.name: module.SOURCE for module in (routellm, routerbench, lmarena, helpsteer3, languagebench)}
)


def source_named(name: str) -> Source:
    """The loader of that name.

    Raises
    ------
    InvalidInput
        Naming those there are.
    """
    if name in SOURCES:
        return SOURCES[name]
    near = near_names(name, SOURCES)
    hint = f"; is {near[0]!r} meant?" if near else ""
    raise InvalidInput(f"unknown data set {name!r}: there are {', '.join(SOURCES)}{hint}")


def convert(name: str, path: Path) -> Converted:
    """Read a downloaded file of a named data set into the canonical tables."""
    return source_named(name).read(path)
