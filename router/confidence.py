"""A confidence that means something: how often the choice would stand if the true requirements were known."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.errors import ArtifactError
from router.margin import SelectionProblem
from router.selection import cheapest_capable, shortfalls

Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ResidualSample:
    """True minus predicted requirements of held-out prompts, by how demanding they were predicted to be.

    ``edges`` has shape (bins - 1,) and splits the largest predicted requirement; ``residuals`` has shape (bins, draws, K).
    """

    edges: Array
    residuals: Array

    def __post_init__(self) -> None:
        bins = self.residuals.shape[0] if self.residuals.ndim == 3 else -1
        if bins != self.edges.size + 1 or not np.isfinite(self.residuals).all() or not np.isfinite(self.edges).all():
            raise ArtifactError(f"residuals of shape {self.residuals.shape} do not match {self.edges.size} edges")

    def confidence(self, problem: SelectionProblem) -> float:
        """Share of plausible true requirements under which the same model is chosen, in [0, 1]."""
        row = int(np.searchsorted(self.edges, problem.requirements.max(), side="right"))
        true = np.clip(problem.requirements + self.residuals[row], 0.0, 1.0)
        shortfall = shortfalls(true[:, None, :], problem.capability, problem.weights).sum(axis=2)
        choices = cheapest_capable(shortfall, problem.cost, problem.open_, problem.threshold)
        return float(np.mean(choices == problem.choose()))
