"""Reliability diagrams: one of all prompts, and small ones per head and per language family."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import MultipleLocator

from training.evaluate import EvaluationResult
from training.report.cells import interval, missing, number
from training.report.plot import COLOURS, LINES, STYLE, WIDTH_IN, axes_of, svg

_SMALL_IN: Final = 2.2


@dataclass(frozen=True, slots=True)
class Panel:
    """A small reliability diagram and what stands under it."""

    name: str
    svg: str
    lines: tuple[str, ...]


def pooled_figure(result: EvaluationResult) -> str:
    """Observed share of added value over the predicted requirement, all prompts, one dot a bin."""
    label = _label("all prompts", result, "pooled", "all")
    return _diagram({"pooled": _bins(result, "pooled", "all")}, "reliability", label, WIDTH_IN, 3.4)


def head_panels(result: EvaluationResult) -> list[Panel]:
    """One diagram a head: the prompts that exercise its capability, and all prompts."""
    panels = []
    for i, name in enumerate(result.about["capabilities"]):
        parts = {kind: _bins(result, kind, name) for kind in ("head on all", "head")}
        if all(table.empty for table in parts.values()):
            continue
        drawn = _diagram(parts, f"head-{i}", _label(f"head {name}", result, "head", name), _SMALL_IN, _SMALL_IN)
        lines = (f"its prompts: {_said(result, 'head', name)}", f"all prompts: {_said(result, 'head on all', name)}")
        panels.append(Panel(name, drawn, lines))
    return panels


def family_panels(result: EvaluationResult) -> list[Panel]:
    """One diagram a family that has enough rows for bins."""
    names = result.reliability.loc[result.reliability["kind"] == "family", "name"].drop_duplicates()
    return [
        Panel(
            name,
            _diagram({"family": _bins(result, "family", name)}, f"family-{i}", _label(name, result, "family", name), _SMALL_IN, _SMALL_IN),
            (_said(result, "family", name),),
        )
        for i, name in enumerate(names)
    ]


def _bins(result: EvaluationResult, kind: str, name: str) -> pd.DataFrame:
    return result.reliability[(result.reliability["kind"] == kind) & (result.reliability["name"] == name)]


def _error(result: EvaluationResult, kind: str, name: str) -> pd.Series:
    return result.calibration[(result.calibration["kind"] == kind) & (result.calibration["name"] == name)].iloc[0]


def _said(result: EvaluationResult, kind: str, name: str) -> str:
    error = _error(result, kind, name)
    if missing(error["value"]):
        return f"n {error['n']:,}; {error['note']}"
    between = interval("ece", error["low"], error["high"])
    return f"n {error['n']:,}; ECE {number('ece', error['value'])}{f' ({between})' if between else ''}"


def _label(what: str, result: EvaluationResult, kind: str, name: str) -> str:
    return f"Reliability diagram of {what}: {_said(result, kind, name)}"


def _diagram(parts: dict[str, pd.DataFrame], key: str, label: str, width: float, height: float) -> str:
    small = width < WIDTH_IN
    with mpl.rc_context(STYLE):
        figure, axes = axes_of(width, height, left=0.55 if small else 0.7, bottom=0.4 if small else 0.5, top=0.1)
        axes.plot([0, 1], [0, 1], color=COLOURS["random"], linestyle=LINES["random"], linewidth=1.2)
        for kind, table in parts.items():
            _draw(axes, table, secondary=kind == "head on all", markersize=3.5 if small else 5)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MultipleLocator(0.5 if small else 0.2))
        axes.set_xlabel("predicted" if small else "predicted requirement")
        axes.set_ylabel("observed" if small else "share where strong adds value")
        return svg(figure, key, label)


def _draw(axes: Axes, table: pd.DataFrame, *, secondary: bool, markersize: float) -> None:
    colour = COLOURS["length"] if secondary else COLOURS["router"]
    if not secondary:
        axes.vlines(table["predicted"], table["observed_low"], table["observed_high"], color=colour, linewidth=1, alpha=0.6)
    style = "--s" if secondary else "-o"
    axes.plot(table["predicted"], table["observed"], style, color=colour, linewidth=1.3, markersize=markersize, clip_on=False)
