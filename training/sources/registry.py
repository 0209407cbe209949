"""Loaders by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.sources import helpsteer3, languagebench, lmarena, routellm, routerbench
from training.sources.base import Converted, Source

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
    raise InvalidInput(unknown_name("data set", name, SOURCES))


def convert(name: str, path: Path) -> Converted:
    """Read a downloaded file of a named data set into the canonical tables."""
    return source_named(name).read(path)
