"""One scale for requirements and profiles of a pool, on which a model's shortfall says how much quality it is expected to lose.

Let need(x) be what the best model of the pool is expected to add over the weakest one on prompt x, and share_m the part of that gap that
model m closes on average (its place in HyDRA's Eq. 3, arXiv 2605.17106). Model m then loses about need(x) (1 - share_m). A shortfall is a
difference, so both factors are put on a logarithmic scale, their *level*:

    level(v) = 1 - log(v) / log(FLOOR), within [0, 1]

With requirement r = level(need) and profile c_m = 1 - level(1 - share_m), the shortfall max(0, r - c_m) of Eq. 5 is level(need (1 -
share_m)): the model is good enough at tau exactly if its expected loss is at most FLOOR ** (1 - tau).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.requirements import Calibration

Array = NDArray[np.float64]
FLOOR: Final = 0.001
"""Expected losses up to this (a tenth of a point) count as none."""
_KNOTS: Final = 512


def level(value: Array) -> Array:
    """Level in [0, 1] of needs or losses in [0, 1], same shape: 0 up to FLOOR, 1 at 1."""
    return np.asarray(np.clip(1.0 - np.log(np.maximum(value, FLOOR)) / np.log(FLOOR), 0.0, 1.0))


def expected_loss(threshold: float) -> float:
    """Largest expected loss of quality on a prompt that a threshold tau lets pass."""
    return float(FLOOR ** (1.0 - min(threshold, 1.0)))


def profile_levels(quality: Array) -> Array:
    """Profiles from mean scores of the models of a pool, shape (M,): 0 for the weakest, 1 for the best; 1 for all where all are equal."""
    span = np.ptp(quality)
    share = (quality - quality.min()) / span if span > 0 else np.ones_like(quality)
    return 1.0 - level(1.0 - share)


def level_calibration(calibration: Calibration) -> Calibration:
    """The calibration that gives the level of what another one gives, to the accuracy of 512 knots."""
    low, high = float(calibration.x[0]), float(calibration.x[-1])
    if high <= low:
        return Calibration(calibration.x, level(calibration.y))
    x = np.unique(np.concatenate([calibration.x, np.linspace(low, high, _KNOTS)]))
    return Calibration(x, np.maximum.accumulate(level(calibration(x))))
