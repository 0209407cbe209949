"""Numbers as people read them: units, intervals, and a dash with its reason where there is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from training.bootstrap import Estimate
from training.evaluate import METRICS, ROUTER

SHORT: Final[Mapping[str, str]] = {
    "apgr": "APGR", "auc": "AUC", "ece": "ECE", "quality": "score", "quality_vs_strong": "of strong", "quality_retention": "QR",
    "cost_savings": "saved", "strong_share": "strong calls", "misroute": "misroute", "routing_accuracy": "accuracy",
}  # fmt: skip
"""Heading of every metric."""
POLICY_TITLES: Final[Mapping[str, str]] = {
    ROUTER: "router", "always_weak": "always-weak", "always_strong": "always-strong", "best_single": "best single", "random": "random",
    "length": "length rule", "source_mean": "source mean", "oracle": "oracle", "knn": "nearest neighbours", "svm": "linear SVM",
    "logistic": "logistic", "mlp": "MLP", "mf": "matrix factorisation", "irt": "item response", "forest": "random forest",
    "boosted": "boosted trees",
}  # fmt: skip
NO_NUMBER: Final = "–"
PER_CENT: Final = "\u00a0%"
"""The sign with the space that keeps it on the line of its number."""
_RATIOS: Final = frozenset({"quality_vs_strong", "quality_retention", "cost_savings", "strong_share", "misroute", "routing_accuracy"})
assert set(SHORT) == set(METRICS)


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as people read it: the value, its interval, and why it is missing or rough."""

    value: str
    interval: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a table."""

    name: str
    n: int
    cells: tuple[Cell, ...]


def cell_of(metric: str, estimate: Estimate) -> Cell:
    """An estimate of a metric."""
    return Cell(number(metric, estimate.value), interval(metric, estimate.low, estimate.high), estimate.note)


def record_cell(record: Mapping[str, Any], metric: str) -> Cell:
    """A metric of a wide record, which has it as ``metric``, ``metric_low``, ``metric_high`` and ``metric_note``."""
    value, low, high = record[metric], record[f"{metric}_low"], record[f"{metric}_high"]
    return Cell(number(metric, value), interval(metric, low, high), str(record[f"{metric}_note"]))


def difference_cell(metric: str, record: Mapping[str, Any]) -> Cell:
    """A difference with ``value``, ``low``, ``high`` and ``note``: with its sign, ratios in percentage points."""
    value, low, high = record["value"], record["low"], record["high"]
    if missing(value):
        return Cell(NO_NUMBER, "", str(record["note"]))
    between = "" if missing(low) or missing(high) else f"{_signed(metric, low)} to {_signed(metric, high)}"
    return Cell(_signed(metric, value), between, str(record["note"]))


def number(metric: str, value: Any) -> str:
    """A value of a metric with its unit."""
    if missing(value):
        return NO_NUMBER
    return f"{100 * value:.1f}{PER_CENT}" if metric in _RATIOS else f"{value:.3f}"


def interval(metric: str, low: Any, high: Any) -> str:
    """An interval in the unit of its metric, or nothing."""
    if missing(low) or missing(high):
        return ""
    return f"{100 * low:.1f} to {100 * high:.1f}" if metric in _RATIOS else f"{low:.3f} to {high:.3f}"


def is_ratio(metric: str) -> bool:
    """Whether a metric is shown in per cent."""
    return metric in _RATIOS


def missing(value: Any) -> bool:
    """Whether there is no number."""
    return value is None or bool(pd.isna(value))


def _signed(metric: str, value: float) -> str:
    text = f"{100 * value:+.1f}" if metric in _RATIOS else f"{value:+.3f}"
    return text.replace("-", "−") if float(text) else text.lstrip("+-")
