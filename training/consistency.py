"""What translation does to the inputs of the heads, and how heads are fitted so that it changes little.

Two rows of one meaning in two languages should get one requirement. The linear part is held to that by a penalty on how far its answer
moves between translations; trees, which no penalty reaches, are grown on rows that were moved as translation moves them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from sklearn.linear_model import LogisticRegression

Array = NDArray[np.float64]
Inputs = NDArray[np.floating]
UNKNOWN_NOISE: Final = 0.03
"""Without translations every column is taken to vary between them by this share of its variance (docs/decisions/0014)."""


@dataclass(frozen=True)
class ParallelRows:
    """Inputs of the same meanings in several languages: shape (p, d), and the name of each row's meaning and source, shape (p,)."""

    inputs: Array
    meaning: NDArray[np.object_]
    source: NDArray[np.object_]

    def of(self, rows: NDArray[np.intp]) -> ParallelRows:
        """Some of the rows."""
        return ParallelRows(self.inputs[rows], self.meaning[rows], self.source[rows])

    def deviations(self, columns: Array) -> list[Array]:
        """Columns of the rows, shape (p, c), less their meaning's mean: one array a source."""
        _, number = np.unique(np.char.add(np.char.add(self.source.astype(str), "\0"), self.meaning.astype(str)), return_inverse=True)
        sums = np.zeros((number.max() + 1, columns.shape[1]))
        np.add.at(sums, number, columns)
        centred = columns - (sums / np.bincount(number)[:, None])[number]
        return [np.asarray(centred[self.source == name]) for name in dict.fromkeys(self.source.tolist())]

    def covariance(self, columns: Array) -> Array:
        """Within-meaning covariance of columns of shape (p, c); every source weighs the same."""
        parts = self.deviations(columns)
        return np.asarray(sum(part.T @ part / len(part) for part in parts) / len(parts), dtype=np.float64)

    def noise(self, columns: Array, rows: int, generator: np.random.Generator) -> Array:
        """What translation did to the columns of rows drawn at random, shape (rows, c); every source is drawn from alike."""
        parts = self.deviations(columns)
        sizes = np.array([len(part) for part in parts])
        of = generator.integers(0, len(parts), rows)
        drawn = (np.cumsum(sizes) - sizes)[of] + (generator.random(rows) * sizes[of]).astype(np.intp)
        return np.asarray(np.concatenate(parts)[drawn], dtype=np.float64)


class ConsistentLogistic:
    """Logistic regressions on the same columns, each penalised by ``w'(I + consistency x within-meaning covariance)w / (2 C)``.

    The penalty is the consistency loss ``E[(w'x - w'x')^2]`` between translations x and x' in closed form: columns are standardised, turned
    by the inverse Cholesky factor of the penalty, and fitted with a plain L2 penalty. It is the ridge form of within-class covariance
    normalisation (Hatch et al. 2006).

    Parameters
    ----------
    columns
        Rows that say how the columns are scaled, shape (n, c).
    translations
        Within-meaning covariance of the columns, shape (c, c); None takes :data:`UNKNOWN_NOISE` for each.
    """

    def __init__(self, columns: Inputs, translations: Array | None, C: float, consistency: float) -> None:
        self._mean, self._scale = columns.mean(axis=0, dtype=np.float64), columns.std(axis=0, dtype=np.float64)
        self._scale[self._scale < 1e-12] = 1.0
        size = columns.shape[1]
        noise = np.eye(size) * UNKNOWN_NOISE if translations is None else translations / np.outer(self._scale, self._scale)
        factor = cholesky(np.eye(size) + consistency * noise, lower=True)
        self._turn = solve_triangular(factor, np.eye(size), lower=True).T
        self._strength = C

    def turned(self, columns: Inputs) -> Inputs:
        """Columns of rows, shape (n, c), as :meth:`fit` reads them; single precision stays single."""
        standard = (columns - self._mean.astype(columns.dtype)) / self._scale.astype(columns.dtype)
        return np.asarray(standard @ self._turn.astype(columns.dtype))

    def fit(self, turned: Inputs, y: Array, weight: Array) -> tuple[Array, float]:
        """Weights of the columns, shape (c,), and bias. A soft target counts as a positive of weight y and a negative of weight 1 - y."""
        both = np.concatenate([weight * y, weight * (1 - y)])
        counted = np.flatnonzero(both > 0)
        model = LogisticRegression(C=self._strength, max_iter=500)
        model.fit(turned[counted % len(y)], (counted < len(y)).astype(np.float64), sample_weight=both[counted])
        weights = (self._turn @ model.coef_[0].astype(np.float64)) / self._scale
        return weights, float(model.intercept_[0] - self._mean @ weights)
