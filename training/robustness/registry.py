"""All changes of the battery."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.robustness.clients import CLIENTS
from training.robustness.groups import GROUP_FAMILIES
from training.robustness.pasted import PASTED
from training.robustness.surface import SURFACE
from training.robustness.transformation import Transformation
from training.robustness.wrappers import WRAPPERS

TRANSFORMATIONS: Final[tuple[Transformation, ...]] = (*SURFACE, *WRAPPERS, *CLIENTS, *PASTED)


def chosen(names: Sequence[str]) -> tuple[Transformation, ...]:
    """The named transformations or families, in the order of the report; all of them if none is named. Groups of prompts are named as well.

    Raises
    ------
    InvalidInput
        A name that is neither.
    """
    known = {*GROUP_FAMILIES, *(name for transformation in TRANSFORMATIONS for name in (transformation.name, transformation.family))}
    for name in names:
        if name not in known:
            raise InvalidInput(unknown_name("transformation", name, sorted(known)))
    return tuple(t for t in TRANSFORMATIONS if not names or t.name in names or t.family in names)
