"""Health of the models as the selection sees it. Observing them is the service's matter; here it is data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from router.errors import InvalidInput


@dataclass(frozen=True, slots=True)
class HealthScore:
    """``value`` in [0, 1]; 0 is down, 1 is well. ``reason`` says why it is not 1."""

    value: float = 1.0
    reason: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise InvalidInput(f"health score is {self.value!r}: a number within [0, 1] was expected")


HealthScores = Mapping[str, HealthScore]
HEALTHY = HealthScore()
