"""The HTML page of an evaluation: one file, nothing loaded from elsewhere, readable on a phone, in the dark and on paper.

Every section has a template of its own in ``sections/`` and its values from one function here or in a module named after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from training.baselines import BASELINES, LEARNED
from training.evaluate import ROUTER, EvaluationResult
from training.reliability import VIEWS
from training.report import calibration_figures, figures, forests
from training.report.cells import NO_NUMBER, POLICY_TITLES, SHORT, Cell, Row, cell_of, difference_cell, is_ratio, number, record_cell
from training.report.explained import explained_rows
from training.report.verdicts import gate_context, parity_context
from training.report.words import sentences
from training.slices import BASELINE_FAMILY

_HERE: Final = Path(__file__).parent
_SLICE_COLUMNS: Final = (
    "apgr", "apgr:length", "apgr:source_mean", "apgr:oracle", "auc", "quality_vs_strong", "quality_retention", "cost_savings", "misroute",
    "routing_accuracy", "ece",
)  # fmt: skip
_OPERATING_COLUMNS: Final = (
    "strong_share", "quality", "quality_vs_strong", "quality_retention", "cost_savings", "misroute", "routing_accuracy",
)  # fmt: skip
_AGAINST_ENGLISH: Final[Mapping[str, str]] = {
    "apgr": "APGR",
    "quality_vs_strong": "quality kept",
    "routing_accuracy": "routing accuracy",
}


def render_page(result: EvaluationResult) -> str:
    """The whole page as text."""
    return render(
        "page.html.j2",
        about=result.about,
        no_number=NO_NUMBER,
        **_summary(result),
        **_calibration(result),
        **_slices(result),
        **_english(result),
        **parity_context(result),
        **gate_context(result),
        **_operating_points(result),
        curve=figure(figures.quality_cost_figure(result)),
        policy_titles=list(SHORT.values()),
        policy_rows=_policy_rows(result),
        baselines={POLICY_TITLES[name]: text for name, text in {**BASELINES, **LEARNED}.items() if name in _policies(result)},
        worst=explained_rows(result),
        data=result.data.to_dict("records"),
        families_by_capability=_families_by_capability(result),
    )


def render(template: str, **values: Any) -> str:
    """A template of this folder with the page's style and formats."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"thousands": "{:,}".format, "percent": "{:.0%}".format, "three": "{:.3f}".format}
    style = Markup((_HERE / "page.css").read_text(encoding="utf-8"))  # noqa: S704 - our own file
    return environment.get_template(template).render(style=style, **values)


def figure(svg: str) -> Markup:
    """A drawing as part of the page."""
    return Markup(svg)  # noqa: S704 - drawn here; matplotlib escapes the names


def _summary(result: EvaluationResult) -> dict[str, Any]:
    own = result.operating_points[result.operating_points["tau"] == result.about["threshold"]].iloc[0]
    apgr = {name: result.get("apgr", name).value for name in ("length", "source_mean", "oracle")}
    beside = "".join(f", {POLICY_TITLES[name]} {value:.3f}" for name, value in apgr.items() if value is not None)
    titles = {
        "apgr": ("APGR, pooled", f"random 0.500{beside}"),
        "quality_vs_strong": ("quality kept", "of the strong model's mean score"),
        "cost_savings": ("cost saved", "of the cost of always-strong"),
        "misroute": ("misrouted", "went to strong although weak would have done"),
    }
    return {
        "headline": [(name, cell_of(metric, result.get(metric)), text) for metric, (name, text) in titles.items()],
        "own": {name: number(name, own[name]) for name in ("quality_vs_strong", "strong_share", "cost_savings")},
    }


def _calibration(result: EvaluationResult) -> dict[str, Any]:
    shown = set(result.reliability.loc[result.reliability["kind"] == "family", "name"])
    left_out = result.calibration[(result.calibration["kind"] == "family") & ~result.calibration["name"].isin(shown)]
    errors = [
        {
            "view": VIEWS[row["kind"]],
            "name": "" if row["kind"] == "pooled" else row["name"],
            "n": row["n"],
            "cell": record_cell({"ece": row["value"], "ece_low": row["low"], "ece_high": row["high"], "ece_note": row["note"]}, "ece"),
            "noise": number("ece", row["noise"]),
        }
        for row in result.calibration.to_dict("records")
    ]
    return {
        "reliability": figure(calibration_figures.pooled_figure(result)),
        "head_panels": [(p, figure(p.svg)) for p in calibration_figures.head_panels(result)],
        "family_panels": [(p, figure(p.svg)) for p in calibration_figures.family_panels(result)],
        "without_panel": [f"{row.name} {row.n}" for row in left_out.itertuples(index=False)],
        "calibration_errors": errors,
        "pooled_ece": cell_of("ece", result.get("ece")),
    }


def _slices(result: EvaluationResult) -> dict[str, Any]:
    return {
        "slice_titles": [_slice_title(column) for column in _SLICE_COLUMNS],
        "slice_tables": {kind: _slice_rows(result, kind) for kind in ("family", "source", "capability")},
        "source_forest": figure(forests.forest_figure(result, "source")),
    }


def _slice_title(column: str) -> str:
    metric, _, policy = column.partition(":")
    return f"{SHORT[metric]}, {POLICY_TITLES[policy]}" if policy else SHORT[metric]


def _slice_rows(result: EvaluationResult, kind: str) -> list[Row]:
    rows = []
    for name in result.slices(kind):
        found = []
        for column in _SLICE_COLUMNS:
            metric, _, policy = column.partition(":")
            estimate = result.get(metric, policy or ROUTER, kind, name)
            cell = cell_of(metric, estimate)
            found.append((estimate, Cell(cell.value) if policy else cell))
        rows.append(Row(name, found[0][0].n, tuple(cell for _, cell in found)))
    return rows


def _english(result: EvaluationResult) -> dict[str, Any]:
    """Forests and table of the families less English, or the sentence why there are none and the plain forest instead."""
    table = result.against_english
    reasons = set(table["note"])
    absent = next((str(note) for note in reasons if f"in {BASELINE_FAMILY}," in str(note)), "") if table["value"].isna().all() else ""
    comparable = not absent and len(table) > 0
    english = (
        []
        if BASELINE_FAMILY not in result.slices("family")
        else [(axis, cell_of(metric, result.get(metric, kind="family", name=BASELINE_FAMILY))) for metric, axis in _AGAINST_ENGLISH.items()]
    )
    rows = [
        Row(str(family), int(part["n"].iloc[0]), tuple(difference_cell(r["metric"], r) for r in part.to_dict("records")))
        for family, part in table.groupby("family", sort=False)
    ]
    return {
        "english": english,
        "english_absent": absent.removeprefix("undefined: ") or ("" if len(table) else "there is no other family"),
        "english_titles": [_points(metric, title) for metric, title in _AGAINST_ENGLISH.items()],
        "english_rows": rows if comparable else [],
        "english_forests": [
            figure(forests.english_figure(result, metric, _points(metric, title))) for metric, title in _AGAINST_ENGLISH.items()
        ]
        if comparable
        else [],
        "family_forest": "" if comparable else figure(forests.forest_figure(result, "family")),
    }


def _points(metric: str, title: str) -> str:
    return f"{title} less English{', points' if is_ratio(metric) else ''}"


def _policy_rows(result: EvaluationResult) -> list[Row]:
    pooled = result.estimates[(result.estimates["slice_kind"] == "pooled") & (result.estimates["slice"] == "all")]
    have = set(zip(pooled["policy"], pooled["metric"], strict=True))
    return [
        Row(title, 0, tuple(cell_of(m, result.get(m, policy)) if (policy, m) in have else Cell("") for m in SHORT))
        for policy, title in POLICY_TITLES.items()
        if policy in _policies(result)
    ]


def _policies(result: EvaluationResult) -> frozenset[str]:
    return frozenset(result.estimates["policy"])


def _operating_points(result: EvaluationResult) -> dict[str, Any]:
    rows = [
        {
            "tau": f"{row['tau']:.3f}",
            "why": row["why"],
            "own": row["tau"] == result.about["threshold"],
            "cells": [record_cell(row, metric) for metric in _OPERATING_COLUMNS],
        }
        for row in result.operating_points.to_dict("records")
    ]
    return {"sentences": sentences(result), "operating_points": rows, "operating_titles": [SHORT[metric] for metric in _OPERATING_COLUMNS]}


def _families_by_capability(result: EvaluationResult) -> dict[str, Any]:
    capabilities = [name for name in result.families if name not in ("family", "languages", "prompts")]
    return {"capabilities": capabilities, "rows": result.families.to_dict("records")}
