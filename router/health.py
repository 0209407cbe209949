"""Health of the models as the selection sees it. Observing them is the service's matter; here it is data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HealthScore:
    """``value`` in [0, 1]; 0 is down, 1 is well. ``reason`` says why it is not 1."""

    value: float = 1.0
    reason: str = ""


HealthScores = Mapping[str, HealthScore]
HEALTHY = HealthScore()
