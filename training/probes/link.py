"""From the scale of outcomes to the scale of a catalog's figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput
from training.probes.estimate import ScoreEstimate

Array = NDArray[np.float64]
_FEW_ANCHORS: Final = 4


@dataclass(frozen=True, slots=True)
class Figure:
    """A catalog figure with its interval, all in [0, 1], and how it was put on the catalog's scale."""

    value: float
    low: float
    high: float
    link: str
    notes: tuple[str, ...] = ()

    @property
    def half_width(self) -> float:
        """Half the interval."""
        return (self.high - self.low) / 2


def unlinked(estimate: ScoreEstimate) -> Figure:
    """The mean score as it is."""
    return Figure(estimate.score, estimate.low, estimate.high, "the scale of the outcomes", estimate.notes)


def linked(estimate: ScoreEstimate, bank_scores: Array, figures: Array, capability: str) -> Figure:
    """The figure on the catalog's scale, by the least-squares line of the catalog's figures over the scores of models that have both.

    Parameters
    ----------
    bank_scores, figures
        Mean scores over the bank, and catalog figures, of the anchor models, shape (A,).

    Raises
    ------
    InvalidInput
        Fewer than two anchors, anchors of equal score, or a line that falls.
    """
    if bank_scores.size < 2 or np.ptp(bank_scores) < 1e-9:
        alike = " of one and the same score" if bank_scores.size > 1 else ""
        raise InvalidInput(
            f"{capability}: the catalog and the outcomes share {bank_scores.size} models{alike}, and two of different scores are needed to "
            "put the figure on the catalog's scale; add them, or write the score as it is (--scale outcomes) where all figures of the "
            "catalog come from these outcomes"
        )
    slope, intercept = np.polyfit(bank_scores, figures, 1)
    if slope <= 0:
        raise InvalidInput(
            f"{capability}: the catalog's figures do not rise with the scores of the {bank_scores.size} models that have both: they "
            "measure different things"
        )
    error = _link_error(estimate.score, bank_scores, figures - (slope * bank_scores + intercept))
    at = [slope * value + intercept for value in (estimate.score, estimate.low, estimate.high)]
    # The ends of the interval move out by the error of the line, in quadrature.
    z = (estimate.high - estimate.low) / (2 * estimate.sd) if estimate.sd > 0 else 1.96
    low = at[0] - np.hypot(at[0] - at[1], z * error)
    high = at[0] + np.hypot(at[2] - at[0], z * error)
    value, low, high = (float(np.clip(v, 0.0, 1.0)) for v in (at[0], low, high))
    notes = estimate.notes
    if bank_scores.size < _FEW_ANCHORS and error == 0 and np.abs(figures - bank_scores).max() > 1e-3:
        notes += (f"only {bank_scores.size} models are in both catalog and outcomes: how far the scales differ is not in the interval",)
    return Figure(value, low, high, f"a line through {bank_scores.size} models of the catalog", notes)


def _link_error(at: float, x: Array, residual: Array) -> float:
    """Standard error of a prediction from a least-squares line; 0 where it cannot be told (two anchors)."""
    if x.size < 3:
        return 0.0
    variance = float((residual**2).sum() / (x.size - 2))
    spread = float(((x - x.mean()) ** 2).sum())
    return float(np.sqrt(variance * (1 + 1 / x.size + (at - x.mean()) ** 2 / spread)))
