"""Does a requirement mean what it says? Reliability diagrams and ECE, pooled, per head and per language family."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training import metrics
from training.bootstrap import Array, estimate, resampling_units
from training.predictions import Predictions
from training.slices import slices_of, target_of

if TYPE_CHECKING:
    from training.evaluate import EvaluationOptions

VIEWS: Final[Mapping[str, str]] = {
    "pooled": "all, each by the head of the capability it exercises",
    "head": "those that exercise the capability of this head",
    "head on all": "all; nothing is required where another capability is exercised",
    "family": "those of the family, each by the head of the capability it exercises",
}
"""Kinds of reliability diagrams and which prompts they are of."""
_ROWS_A_BIN: Final = 10
_Z: Final = 1.959964
_BIN_COLUMNS: Final = ("kind", "name", "low", "high", "predicted", "observed", "observed_low", "observed_high", "n")
_ECE_COLUMNS: Final = ("kind", "name", "value", "low", "high", "noise", "n", "n_groups", "note")


@dataclass(frozen=True, slots=True)
class _View:
    kind: str
    name: str
    members: NDArray[np.intp]
    predicted: Array
    target: Array


def reliability_bins(rows: pd.DataFrame, predictions: Predictions, options: EvaluationOptions) -> pd.DataFrame:
    """One row a (kind, name, bin): its range, mean prediction, mean of what happened with a 95 % interval, and rows.

    Bins hold equally many rows, at least ten each and at most ``options.bins`` of them; a view of fewer than ``options.min_rows`` rows has
    none. The interval is Wilson's, which counts prompts as independent and, for graded targets, errs on the wide side.
    """
    records: list[dict[str, Any]] = []
    for view in _views(rows, predictions, options.margin):
        if view.members.size < options.min_rows:
            continue
        bins = max(1, min(options.bins, view.members.size // _ROWS_A_BIN))
        for row in metrics.reliability(view.predicted, view.target, bins):
            low, high = wilson_interval(row.observed, row.n)
            records.append({"kind": view.kind, "name": view.name, **asdict(row), "observed_low": low, "observed_high": high})
    return pd.DataFrame(records, columns=list(_BIN_COLUMNS))


def calibration_errors(rows: pd.DataFrame, predictions: Predictions, options: EvaluationOptions) -> pd.DataFrame:
    """ECE of every view with its interval, and beside it what noise alone gives at this number of rows (``noise``)."""
    records: list[dict[str, Any]] = []
    for view in _views(rows, predictions, options.margin):
        own = rows["group"].iloc[view.members]
        group = resampling_units(own)
        statistic = metrics.ece_statistic(view.predicted, view.target, group, options.bins)
        found = estimate(
            {"ece": statistic}, group, n_bootstrap=options.n_bootstrap, seed=options.seed, level=options.level, min_rows=options.min_rows
        )["ece"]
        noise = None if found.value is None else expected_noise(view.predicted, view.target, options.bins)
        records.append({"kind": view.kind, "name": view.name, **asdict(found), "n_groups": int(own.nunique()), "noise": noise})
    return pd.DataFrame(records, columns=list(_ECE_COLUMNS))


def wilson_interval(share: float, n: int, z: float = _Z) -> tuple[float, float]:
    """Interval of a share seen in n trials (Wilson, JASA 22, 1927)."""
    centre, spread = share + z * z / (2 * n), z * float(np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2))
    return max(0.0, (centre - spread) / (1 + z * z / n)), min(1.0, (centre + spread) / (1 + z * z / n))


def expected_noise(predicted: Array, target: Array, bins: int) -> float:
    """ECE of a perfectly calibrated router on so many rows: the mean |error| of a bin is sqrt(2 / pi) times its standard error."""
    number = metrics.equal_mass_bins(predicted, bins)
    size = np.bincount(number)
    residual = target - predicted
    centred = residual - (np.bincount(number, weights=residual) / size)[number]
    variance = np.bincount(number, weights=centred**2) / np.maximum(size - 1, 1)
    return float((size * np.sqrt(2 / np.pi * variance / size)).sum() / size.sum())


def _views(rows: pd.DataFrame, predictions: Predictions, margin: float) -> Iterator[_View]:
    own, target = predictions.probability(rows["capability"].tolist()), target_of(rows, margin)
    exercised = rows["capability"].astype(str).to_numpy()
    everything = np.arange(len(rows))
    yield _View("pooled", "all", everything, own, target)
    known = np.flatnonzero(np.isin(exercised, predictions.capabilities))
    for k, name in enumerate(predictions.capabilities):
        part = np.flatnonzero(exercised == name)
        if part.size:
            yield _View("head", name, part, own[part], target[part])
            asked = np.where(exercised[known] == name, target[known], 0.0)
            yield _View("head on all", name, known, predictions.requirements[known, k], asked)
    for kind, name, part in slices_of(rows):
        if kind == "family":
            yield _View("family", name, part, own[part], target[part])
