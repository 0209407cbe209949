"""A confidence that means something: how often the choice would stand if the true requirements were known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.errors import ArtifactError
from router.margin import SelectionProblem
from router.selection import cheapest_capable

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResidualSample:
    """True minus predicted requirements of held-out prompts, by how demanding they were predicted to be.

    ``edges`` has shape (bins - 1,) and splits the largest predicted requirement; ``residuals`` has shape (bins, draws, K).
    """

    edges: Array
    residuals: Array

    def __post_init__(self) -> None:
        shape = self.residuals.shape
        if len(shape) != 3 or self.edges.ndim != 1 or shape[0] != self.edges.size + 1 or shape[1] < 1:
            raise ArtifactError(f"residuals of shape {shape} do not match {self.edges.size} edges")
        if not np.isfinite(self.residuals).all() or not np.isfinite(self.edges).all() or (np.diff(self.edges) < 0).any():
            raise ArtifactError("residuals must be finite, over rising finite edges")

    def confidence(self, problem: SelectionProblem) -> float:
        """Share of plausible true requirements under which the same model is chosen, in [0, 1]."""
        choices = cheapest_capable(problem.total_under(self.plausible(problem)), problem.cost, problem.open_, problem.threshold)
        return share_of(choices, problem.choice)

    def plausible(self, problem: SelectionProblem) -> Array:
        """What the true requirements may be, shape (draws, K)."""
        row = int(self.edges.searchsorted(problem.requirements.max(), side="right"))
        return np.asarray(np.minimum(np.maximum(problem.requirements + self.residuals[row], 0.0), 1.0), dtype=np.float64)


def share_of(choices: NDArray[np.intp], chosen: int) -> float:
    """Share of the cases in which the chosen model was chosen as well."""
    return float(np.count_nonzero(choices == chosen) / len(choices))
