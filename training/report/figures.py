"""Plots of an evaluation as inline SVG. Colours are CSS variables of the page, so the plots follow dark mode and print."""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from training.evaluate import ROUTER, EvaluationResult

# Colours that occur nowhere else, each replaced by the CSS variable of the same name.
_COLOURS: Final[Mapping[str, str]] = {
    "ink": "#0a0b01", "muted": "#0a0b02", "grid": "#0a0b03", "router": "#0a0b04", "random": "#0a0b05", "length": "#0a0b06",
    "source_mean": "#0a0b07", "oracle": "#0a0b08", "surface": "#0a0b09",
}  # fmt: skip
_LINES: Final[Mapping[str, Any]] = {"random": (0, (4, 3)), "length": (0, (1, 1.5)), "source_mean": (0, (6, 2, 1, 2)), "oracle": (0, (8, 2))}
_STYLE: Final[Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "interlock", "font.size": 9, "axes.edgecolor": _COLOURS["muted"],
    "axes.labelcolor": _COLOURS["ink"], "text.color": _COLOURS["ink"], "xtick.color": _COLOURS["muted"], "ytick.color": _COLOURS["muted"],
    "xtick.labelcolor": _COLOURS["ink"], "ytick.labelcolor": _COLOURS["ink"], "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": _COLOURS["grid"], "grid.linewidth": 0.7, "axes.axisbelow": True, "axes.unicode_minus": False,
}  # fmt: skip
_WIDTH_IN: Final = 4.9
_CHAR_IN: Final = 0.075
_LABEL_CELLS: Final = 28
_BACKED: Final = {"facecolor": _COLOURS["surface"], "edgecolor": "none", "pad": 1.0}


def quality_cost_figure(result: EvaluationResult) -> str:
    """Mean score over the cost saved (over the share of weak calls where costs are unknown), router and baselines."""
    curve = result.curve
    costs = bool(curve["cost_savings"].notna().all())
    x = curve["cost_savings"] if costs else 1 - curve["strong_share"]
    curve = curve.assign(x=x)
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(_WIDTH_IN, 3.4, left=0.7, bottom=0.5)
        for name in ("random", "length", "source_mean", "oracle"):
            _line(axes, curve[curve["policy"] == name], name)
        _line(axes, curve[curve["policy"] == ROUTER], ROUTER, linewidth=2.2)
        for name, marker in (("always_strong", "s"), ("always_weak", "o")):
            point = curve[curve["policy"] == name].iloc[0]
            axes.plot(point["x"], point["quality"], marker, color=_COLOURS["ink"], markersize=5.5, clip_on=False, zorder=5)
        _own_point(axes, result, costs)
        axes.set_xlabel("cost saved against always-strong" if costs else "share of prompts kept on the weak model")
        axes.set_ylabel("mean score")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        return _svg(figure, "curve", "Quality over cost of the router and its baselines")


def reliability_figure(result: EvaluationResult) -> str:
    """Observed share of added value over the predicted requirement, one dot a bin."""
    table = result.reliability
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(_WIDTH_IN, 3.4, left=0.7, bottom=0.5)
        axes.plot([0, 1], [0, 1], color=_COLOURS["random"], linestyle=_LINES["random"], linewidth=1.2)
        axes.plot(table["predicted"], table["observed"], "-o", color=_COLOURS["router"], linewidth=1.5, markersize=5)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        axes.set_xlabel("predicted requirement")
        axes.set_ylabel("share where strong adds value")
        return _svg(figure, "reliability", "Reliability diagram of the predicted requirement")


def forest_figure(result: EvaluationResult, kind: str, metric: str = "apgr") -> str:
    """The router's metric of every slice with its interval; slices without a number say why."""
    names = result.slices(kind)
    found = [result.get(metric, kind=kind, name=name) for name in names]
    pooled = result.get(metric)
    labels = [_clipped(name) for name in names]
    left = max(1.0, _CHAR_IN * max(map(_display_width, labels)) + 0.15)
    limits = [v for e in found for v in (e.value, e.low, e.high) if v is not None] + [0.5]
    low, high = max(-0.6, min(*limits, 0.3)), min(1.7, max(*limits, 0.8))
    with mpl.rc_context(_STYLE):
        figure, axes = _axes(_WIDTH_IN, 0.24 * len(names) + 0.75, left=left, bottom=0.5, right=0.6)
        axes.axvline(0.5, color=_COLOURS["random"], linestyle=_LINES["random"], linewidth=1.2)
        if pooled.value is not None:
            axes.axvline(pooled.value, color=_COLOURS["router"], linewidth=1, alpha=0.45)
        for y, (name, value) in enumerate(zip(names, found, strict=True)):
            if value.value is None:
                axes.text(
                    0.5 * (low + high), y, _short(value.note), va="center", ha="center", color=_COLOURS["muted"], fontsize=7.5, bbox=_BACKED
                )
                continue
            colour = _COLOURS["ink"] if name == "English" else _COLOURS["router"]
            if value.low is not None and value.high is not None:
                axes.plot(np.clip([value.low, value.high], low, high), [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
            axes.plot(np.clip(value.value, low, high), y, "D" if name == "English" else "o", color=colour, markersize=5)
        _forest_labels(axes, labels, [value.n for value in found], (low, high))
        axes.set_xlabel(metric.upper())
        return _svg(figure, f"forest-{kind}", f"{metric.upper()} per {kind} with intervals")


def _forest_labels(axes: Axes, names: Sequence[str], rows: Sequence[int], limits: tuple[float, float]) -> None:
    axes.set_xlim(*limits)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    if names and names[0] == "English" and len(names) > 1:
        axes.axhline(0.5, color=_COLOURS["grid"], linewidth=1)
    for y, n in enumerate(rows):
        axes.text(1.02, y, f"{n:,}", transform=axes.get_yaxis_transform(), va="center", ha="left", color=_COLOURS["muted"], fontsize=8)
    axes.text(1.02, -0.6, "n", transform=axes.get_yaxis_transform(), va="bottom", ha="left", color=_COLOURS["muted"], fontsize=8)


def _line(axes: Axes, part: pd.DataFrame, name: str, linewidth: float = 1.4) -> None:
    part = part.sort_values("strong_share")
    axes.plot(part["x"], part["quality"], color=_COLOURS[name], linestyle=_LINES.get(name, "-"), linewidth=linewidth)


def _own_point(axes: Axes, result: EvaluationResult, costs: bool) -> None:
    own = result.operating_points[result.operating_points["tau"] == result.about["threshold"]].iloc[0]
    x = own["cost_savings"] if costs else 1 - own["strong_share"] if own["strong_share"] is not None else None
    if x is not None and own["quality"] is not None:
        axes.plot(x, own["quality"], "o", color=_COLOURS["router"], markeredgecolor=_COLOURS["surface"], markersize=8, zorder=6)


def _axes(width: float, height: float, *, left: float, bottom: float, right: float = 0.12, top: float = 0.2) -> tuple[Figure, Axes]:
    """A figure whose margins are in inches, so that long names are never cut."""
    figure = Figure(figsize=(width, height))
    figure.patch.set_alpha(0)
    axes = figure.add_axes((left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height))
    axes.patch.set_alpha(0)
    return figure, axes


def _svg(figure: Figure, key: str, label: str) -> str:
    """The figure as an SVG element for HTML: own ids, no namespaces, no metadata."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The page's fonts draw the text; that the measuring font lacks a glyph does not matter.
        warnings.filterwarnings("ignore", message=r"(Glyph .* missing from|Matplotlib currently does not support)")
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})  # type: ignore[no-untyped-call]
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", text)
    for name, colour in _COLOURS.items():
        text = text.replace(colour, f"var(--{name.replace('_', '-')})")
    text = re.sub(r'^<svg[^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{label}">', text)
    return "\n".join(line for line in text.splitlines() if line.strip())


def _display_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


def _clipped(text: str) -> str:
    """The text, cut to the columns a label may take; the table beside the plot has it whole."""
    if _display_width(text) <= _LABEL_CELLS:
        return text
    while _display_width(text) > _LABEL_CELLS - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def _short(note: str) -> str:
    return note.removeprefix("undefined: ") if len(note) <= 60 else note.removeprefix("undefined: ")[:57] + "…"
