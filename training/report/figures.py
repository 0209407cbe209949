"""The quality/cost curve of an evaluation."""

from __future__ import annotations

import matplotlib as mpl
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.ticker import PercentFormatter

from training.evaluate import ROUTER, EvaluationResult
from training.report.plot import COLOURS, LINES, STYLE, WIDTH_IN, axes_of, svg


def quality_cost_figure(result: EvaluationResult) -> str:
    """Mean score over the cost saved (over the share of weak calls where costs are unknown), router and baselines."""
    curve = result.curve
    costs = bool(curve["cost_savings"].notna().all())
    curve = curve.assign(x=curve["cost_savings"] if costs else 1 - curve["strong_share"])
    with mpl.rc_context(STYLE):
        figure, axes = axes_of(WIDTH_IN, 3.4, left=0.7, bottom=0.5)
        for name in ("random", "length", "source_mean", "oracle"):
            _line(axes, curve[curve["policy"] == name], name)
        _line(axes, curve[curve["policy"] == ROUTER], ROUTER, linewidth=2.2)
        for name, marker in (("always_strong", "s"), ("always_weak", "o")):
            point = curve[curve["policy"] == name].iloc[0]
            axes.plot(point["x"], point["quality"], marker, color=COLOURS["ink"], markersize=5.5, clip_on=False, zorder=5)
        _own_point(axes, result, costs)
        axes.set_xlabel("cost saved against always-strong" if costs else "share of prompts kept on the weak model")
        axes.set_ylabel("mean score")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        return svg(figure, "curve", _in_words(result, costs))


def _in_words(result: EvaluationResult, costs: bool) -> str:
    own = _own(result)
    saved = own["cost_savings"] if costs else 1 - own["strong_share"]
    what = "of the cost saved" if costs else "of the prompts kept on the weak model"
    ends = {name: result.get("quality", name).value for name in ("always_weak", "always_strong")}
    said = ", ".join(f"{name.replace('_', '-')} {value:.3f}" for name, value in ends.items() if value is not None)
    at = f" At its own threshold the router has {own['quality']:.3f} with {saved:.0%} {what}." if own["quality"] is not None else ""
    return f"Mean score over cost of the router, random, length rule, source mean and oracle. {said}.{at}"


def _line(axes: Axes, part: pd.DataFrame, name: str, linewidth: float = 1.4) -> None:
    part = part.sort_values("strong_share")
    axes.plot(part["x"], part["quality"], color=COLOURS[name], linestyle=LINES.get(name, "-"), linewidth=linewidth)


def _own_point(axes: Axes, result: EvaluationResult, costs: bool) -> None:
    own = _own(result)
    x = own["cost_savings"] if costs else 1 - own["strong_share"] if own["strong_share"] is not None else None
    if x is not None and own["quality"] is not None:
        axes.plot(x, own["quality"], "o", color=COLOURS["router"], markeredgecolor=COLOURS["surface"], markersize=8, zorder=6)


def _own(result: EvaluationResult) -> pd.Series:
    return result.operating_points[result.operating_points["tau"] == result.about["threshold"]].iloc[0]
