"""Forest plots: a metric of every slice with its interval, and the difference of every language family to English."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from training.bootstrap import Estimate
from training.evaluate import EvaluationResult
from training.report.cells import is_ratio, missing, number
from training.report.plot import BACKED, COLOURS, LINES, STYLE, WIDTH_IN, axes_of, clipped, label_width, short_note, svg
from training.slices import BASELINE_FAMILY

_ROW_IN: Final = 0.24
_NARROW_IN: Final = 3.8


@dataclass(frozen=True, slots=True)
class Forest:
    """What a forest plot shows: names with their estimates, the range it may take, and what is drawn as lines.

    ``reference`` is drawn dashed, ``together`` (the value of all rows) faint. ``key`` makes the ids of the drawing its own.
    """

    key: str
    label: str
    axis: str
    names: Sequence[str]
    found: Sequence[Estimate]
    least: tuple[float, float]
    widest: tuple[float, float]
    reference: float
    together: float | None = None
    width_in: float = WIDTH_IN


def forest_figure(result: EvaluationResult, kind: str, metric: str = "apgr") -> str:
    """The router's metric of every slice with its interval; slices without a number say why."""
    names = result.slices(kind)
    found = [result.get(metric, kind=kind, name=name) for name in names]
    label = f"{metric.upper()} of every {kind} with its interval. {_extremes(metric, names, found)}"
    return draw_forest(
        Forest(f"forest-{kind}", label, metric.upper(), names, found, (0.3, 0.8), (-0.6, 1.7), 0.5, result.get(metric).value)
    )


def english_figure(result: EvaluationResult, metric: str, axis: str) -> str:
    """Every family less English, in points where the metric is a ratio."""
    table = result.against_english[result.against_english["metric"] == metric]
    scale = 100.0 if is_ratio(metric) else 1.0
    found = [scaled(record, scale) for record in table.to_dict("records")]
    names = table["family"].tolist()
    label = f"{axis}, for every family with its interval. {_extremes('', names, found)}"
    least, widest = (-0.15 * scale, 0.15 * scale), (-1.2 * scale, 1.2 * scale)
    return draw_forest(Forest(f"english-{metric.replace('_', '-')}", label, axis, names, found, least, widest, 0.0, width_in=_NARROW_IN))


def scaled(record: Mapping[str, Any], scale: float) -> Estimate:
    """A record with ``value``, ``low``, ``high``, ``n``, ``n_groups`` and ``note``, in another unit."""
    value, low, high = (None if missing(record[part]) else scale * record[part] for part in ("value", "low", "high"))
    return Estimate(value, low, high, record["n"], record["n_groups"], record["note"])


def draw_forest(forest: Forest) -> str:
    """The plot as SVG; a value outside the widest range stands at its edge."""
    limits = [v for e in forest.found for v in (e.value, e.low, e.high) if v is not None] + [forest.reference]
    low, high = max(forest.widest[0], min(*limits, forest.least[0])), min(forest.widest[1], max(*limits, forest.least[1]))
    pad = 0.03 * (high - low)
    low, high = low - pad, high + pad
    labels = [clipped(name) for name in forest.names]
    with mpl.rc_context(STYLE):
        height = _ROW_IN * len(labels) + 0.75
        figure, axes = axes_of(forest.width_in, height, left=label_width(labels), bottom=0.5, right=0.6)
        axes.axvline(forest.reference, color=COLOURS["random"], linestyle=LINES["random"], linewidth=1.2)
        if forest.together is not None:
            axes.axvline(forest.together, color=COLOURS["router"], linewidth=1, alpha=0.45)
        for y, (name, estimate) in enumerate(zip(forest.names, forest.found, strict=True)):
            _draw_estimate(axes, y, estimate, (low, high), name == BASELINE_FAMILY)
        _draw_labels(axes, labels, [estimate.n for estimate in forest.found], (low, high))
        axes.set_xlabel(forest.axis)
        return svg(figure, forest.key, forest.label)


def _draw_estimate(axes: Axes, y: int, estimate: Estimate, limits: tuple[float, float], baseline: bool) -> None:
    low, high = limits
    if estimate.value is None:
        said = short_note(estimate.note)
        axes.text(0.5 * (low + high), y, said, va="center", ha="center", color=COLOURS["muted"], fontsize=7.5, bbox=BACKED)
        return
    colour = COLOURS["ink"] if baseline else COLOURS["router"]
    firm = estimate.low is not None and estimate.high is not None
    if firm:
        axes.plot(np.clip([estimate.low, estimate.high], low, high), [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    filled = colour if firm else COLOURS["surface"]
    axes.plot(np.clip(estimate.value, low, high), y, "D" if baseline else "o", color=colour, markerfacecolor=filled, markersize=5)


def _draw_labels(axes: Axes, names: Sequence[str], rows: Sequence[int], limits: tuple[float, float]) -> None:
    axes.set_xlim(*limits)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(range(len(names)), list(names))
    axes.tick_params(axis="y", length=0)
    axes.grid(visible=False, axis="y")
    axes.spines["left"].set_visible(False)
    if names and names[0] == BASELINE_FAMILY and len(names) > 1:
        axes.axhline(0.5, color=COLOURS["grid"], linewidth=1)
    for y, n in enumerate(rows):
        axes.text(1.02, y, f"{n:,}", transform=axes.get_yaxis_transform(), va="center", ha="left", color=COLOURS["muted"], fontsize=8)
    axes.text(1.02, -0.6, "n", transform=axes.get_yaxis_transform(), va="bottom", ha="left", color=COLOURS["muted"], fontsize=8)


def _extremes(metric: str, names: Sequence[str], found: Sequence[Estimate]) -> str:
    """Lowest and highest value in words, for who cannot see the plot."""
    known = [(e.value, name) for name, e in zip(names, found, strict=True) if e.value is not None]
    if not known:
        return "No value is known."
    (low, first), (high, last) = min(known), max(known)
    return f"Lowest {first} {number(metric, low)}, highest {last} {number(metric, high)}."
