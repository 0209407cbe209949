"""Columns as overlapping hats, so that a linear head can bend: its answer is a smooth curve a column and never a step."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.errors import ArtifactError

Array = NDArray[np.float64]
_MOST_KNOTS = 64


@dataclass(frozen=True, slots=True)
class HatBasis:
    """Piecewise-linear functions of some columns (a linear B-spline; de Boor 1978) with ``knots`` equally spaced knots each.

    Between ``low`` and ``high`` a weighted sum of the hats of a column is any curve with corners at the knots; beyond them it is constant,
    so that a value never met in training adds no more than the largest one that was. The hat of the first knot is left out: the hats of a
    column sum to one, and a head has a bias of its own.

    Attributes
    ----------
    first
        Columns from here on are expanded; those before are an embedding, which needs no hats.
    low, high
        Outer knots of every expanded column, shape (c,).
    """

    first: int
    low: Array
    high: Array
    knots: int

    def __post_init__(self) -> None:
        if self.low.ndim != 1 or self.low.shape != self.high.shape or not (2 <= self.knots <= _MOST_KNOTS) or self.first < 0:
            raise ArtifactError(f"a basis of {self.knots} knots over {self.low.shape} columns from {self.first} cannot be")
        if not (np.isfinite(self.low).all() and np.isfinite(self.high).all() and (self.low < self.high).all()):
            raise ArtifactError("the outer knots of a basis must be finite and rise")

    @classmethod
    def of(cls, x: Array, first: int, knots: int) -> HatBasis:
        """Outer knots at the 1st and 99th percentile of rows of shape (n, d), or at the extremes where most rows are alike."""
        columns = x[:, first:]
        low, high = np.percentile(columns, [1, 99], axis=0)
        alike = high <= low
        low[alike], high[alike] = columns.min(axis=0)[alike], columns.max(axis=0)[alike]
        high = np.where(high > low, high, low + 1.0)
        return cls(first, low, high, knots)

    @property
    def dimension(self) -> int:
        """Hats of a row."""
        return self.low.size * (self.knots - 1)

    def expand(self, x: Array) -> Array:
        """Hats of rows of shape (n, first + c): shape (n, ``dimension``), column by column."""
        spread = (self.knots - 1) / (self.high - self.low)
        position = np.clip((x[:, self.first :] - self.low) * spread, 0.0, self.knots - 1)
        hats = np.maximum(0.0, 1.0 - np.abs(position[:, :, None] - np.arange(1, self.knots)))
        return hats.reshape(len(x), -1)
