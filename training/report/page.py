"""The HTML page of an evaluation: one file, nothing loaded from elsewhere, readable on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from training.baselines import BASELINES, LEARNED
from training.bootstrap import Estimate
from training.evaluate import METRICS, ROUTER, EvaluationResult
from training.report import figures

_HERE: Final = Path(__file__).parent
_RATIOS: Final = frozenset({"quality_vs_strong", "quality_retention", "cost_savings", "strong_share", "misroute"})
_SLICE_COLUMNS: Final = (
    "apgr",
    "apgr:length",
    "apgr:source_mean",
    "apgr:oracle",
    "auc",
    "quality_vs_strong",
    "quality_retention",
    "cost_savings",
    "misroute",
    "ece",
)
_SHORT: Final[Mapping[str, str]] = {
    "apgr": "APGR", "auc": "AUC", "ece": "ECE", "quality": "score", "quality_vs_strong": "of strong", "quality_retention": "QR",
    "cost_savings": "saved", "strong_share": "strong calls", "misroute": "misroute",
}  # fmt: skip
POLICY_TITLES: Final[Mapping[str, str]] = {
    ROUTER: "router", "always_weak": "always-weak", "always_strong": "always-strong", "best_single": "best single", "random": "random",
    "length": "length rule", "source_mean": "source mean", "oracle": "oracle", "knn": "nearest neighbours", "svm": "linear SVM",
    "logistic": "logistic", "mlp": "MLP", "mf": "matrix factorisation", "irt": "item response", "forest": "random forest",
    "boosted": "boosted trees",
}  # fmt: skip


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


def render_page(result: EvaluationResult) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    own = result.operating_points[result.operating_points["tau"] == result.about["threshold"]].iloc[0]
    return environment.get_template("page.html.j2").render(
        about=result.about,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        headline=_headline(result),
        own={name: _number(name, own[name]) for name in ("quality", "quality_vs_strong", "strong_share", "cost_savings", "misroute")},
        curve=_figure(figures.quality_cost_figure(result)),
        reliability=_figure(figures.reliability_figure(result)),
        forest={kind: _figure(figures.forest_figure(result, kind)) for kind in ("family", "source")},
        slice_titles=[_slice_title(column) for column in _SLICE_COLUMNS],
        slice_tables={kind: _slice_rows(result, kind) for kind in ("family", "source", "capability")},
        policy_titles=list(_SHORT.values()),
        policy_rows=_policy_rows(result),
        baselines={POLICY_TITLES[name]: text for name, text in {**BASELINES, **LEARNED}.items() if name in _policies(result)},
        operating_points=_operating_rows(result),
        data=result.data.to_dict("records"),
        percent=lambda value: f"{value:.0%}",
    )


def _figure(svg: str) -> Markup:
    return Markup(svg)  # noqa: S704 - drawn here; matplotlib escapes the names


def _headline(result: EvaluationResult) -> list[tuple[str, Cell, str]]:
    apgr = {name: result.get("apgr", name).value for name in ("length", "source_mean", "oracle")}
    beside = ", ".join(f"{POLICY_TITLES[name]} {value:.3f}" for name, value in apgr.items() if value is not None)
    titles = {
        "apgr": f"random 0.500{', ' if beside else ''}{beside}",
        "quality_vs_strong": "of the strong model's mean score",
        "cost_savings": "of the cost of always-strong",
        "misroute": "went to strong although weak would have done",
    }
    names = {"apgr": "APGR, pooled", "quality_vs_strong": "quality kept", "cost_savings": "cost saved", "misroute": "misrouted"}
    return [(names[metric], _cell(metric, result.get(metric)), text) for metric, text in titles.items()]


def _slice_title(column: str) -> str:
    metric, _, policy = column.partition(":")
    return f"{_SHORT[metric]}, {POLICY_TITLES[policy]}" if policy else _SHORT[metric]


def _slice_rows(result: EvaluationResult, kind: str) -> list[Row]:
    rows = []
    for name in result.slices(kind):
        found = []
        for column in _SLICE_COLUMNS:
            metric, _, policy = column.partition(":")
            estimate = result.get(metric, policy or ROUTER, kind, name)
            cell = _cell(metric, estimate)
            found.append((estimate, Cell(cell.value) if policy else cell))
        rows.append(Row(name, found[0][0].n, tuple(cell for _, cell in found)))
    return rows


def _policy_rows(result: EvaluationResult) -> list[Row]:
    pooled = result.estimates[(result.estimates["slice_kind"] == "pooled") & (result.estimates["slice"] == "all")]
    have = set(zip(pooled["policy"], pooled["metric"], strict=True))
    return [
        Row(
            title, 0, tuple(_cell(metric, result.get(metric, policy)) if (policy, metric) in have else Cell("") for metric in METRICS_SHOWN)
        )
        for policy, title in POLICY_TITLES.items()
        if policy in _policies(result)
    ]


def _policies(result: EvaluationResult) -> frozenset[str]:
    return frozenset(result.estimates["policy"])


METRICS_SHOWN: Final = tuple(_SHORT)
assert set(METRICS_SHOWN) == set(METRICS)


def _operating_rows(result: EvaluationResult) -> list[dict[str, Any]]:
    shown: Sequence[str] = ("strong_share", "quality", "quality_vs_strong", "quality_retention", "cost_savings", "misroute")
    return [
        {
            "tau": f"{row['tau']:.3f}",
            "why": row["why"],
            "own": row["tau"] == result.about["threshold"],
            "cells": [_operating_cell(row, m) for m in shown],
        }
        for row in result.operating_points.to_dict("records")
    ]


def _operating_cell(row: Mapping[str, Any], metric: str) -> Cell:
    return Cell(_number(metric, row[metric]), _interval(metric, row[f"{metric}_low"], row[f"{metric}_high"]), str(row[f"{metric}_note"]))


def _cell(metric: str, estimate: Estimate) -> Cell:
    return Cell(_number(metric, estimate.value), _interval(metric, estimate.low, estimate.high), estimate.note)


def _number(metric: str, value: Any) -> str:
    if value is None or pd.isna(value):
        return "–"
    return f"{100 * value:.1f} %" if metric in _RATIOS else f"{value:.3f}"


def _interval(metric: str, low: Any, high: Any) -> str:
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return ""
    return f"{100 * low:.1f} to {100 * high:.1f}" if metric in _RATIOS else f"{low:.3f} to {high:.3f}"
