"""What a language itself adds to the need of a stronger model, apart from the task: learned where outcomes show it, else nothing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import ArtifactError
from router.languages import family_of, primary_subtag

Array = NDArray[np.float64]
_MOST: Final = 20.0
_EDGE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class LanguageEffects:
    """Log-odds added to every requirement of a conversation, by its language, or by its family where the language is not listed.

    The requirement of the heads depends on the task (docs/decisions/0014). Where a weak model truly is worse in a language, that is said
    here and nowhere else, so that it can be read, tested and left out.
    """

    languages: Mapping[str, float] = field(default_factory=dict)
    families: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, effect in (*self.languages.items(), *self.families.items()):
            if not (math.isfinite(effect) and abs(effect) <= _MOST):
                raise ArtifactError(f"language effect of {name!r} is {effect!r}: a number within [-{_MOST:g}, {_MOST:g}] was expected")

    def __bool__(self) -> bool:
        return bool(self.languages or self.families)

    def of(self, language: str) -> float:
        """Effect of a language: its tag's, else its primary subtag's, else its family's, else none."""
        for tag in (language, primary_subtag(language)):
            if tag in self.languages:
                return self.languages[tag]
        return self.families.get(family_of(language), 0.0)

    def apply(self, requirements: Array, languages: Sequence[str]) -> Array:
        """Requirements of shape (n, K) with the effect of each row's language; 0 and 1 stay what they are."""
        if not self:
            return requirements
        effect = np.array([self.of(language) for language in languages])[:, None]
        inside = np.clip(requirements, _EDGE, 1 - _EDGE)
        moved = 1 / (1 + (1 - inside) / inside * np.exp(-effect))
        return np.asarray(np.where((requirements > 0) & (requirements < 1), moved, requirements))
