"""The plot of a pool: mean score over total cost, for the sweep of tau, single models, their mixtures and the oracle."""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any, Final

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from training.pool.evaluation import ROUTER, PoolResult
from training.report.plot import COLOURS, STYLE, axes_of, svg

HYDRA_POINTS: Final = ((0.541, 0.003), (0.725, 0.032))
"""Published savings against always-strong on SWE-bench Verified with five models, and the loss there (HyDRA, arXiv 2605.17106)."""
_SVG_ROLES: Final[Mapping[str, str]] = {
    "ink": COLOURS["ink"], "muted": COLOURS["muted"], "router": COLOURS["router"], "whole": COLOURS["length"],
    "mixing": COLOURS["random"], "oracle": COLOURS["oracle"], "published": COLOURS["source_mean"], "surface": COLOURS["surface"],
}  # fmt: skip
_PNG_ROLES: Final[Mapping[str, str]] = {
    "ink": "#1c1d1f", "muted": "#63666b", "router": "#1459b8", "whole": "#b4570b", "mixing": "#74777c", "oracle": "#8a3ea8",
    "published": "#1d7a46", "surface": "#fdfdfb",
}  # fmt: skip


def pool_curve_svg(result: PoolResult) -> str:
    """The plot as an SVG element whose colours are variables of the page."""
    with mpl.rc_context(STYLE):
        return svg(_figure(result, _SVG_ROLES, legend=False), "pool", "Mean score over total cost of a pool of models")


def pool_curve_png(result: PoolResult) -> bytes:
    """The plot as a PNG file on white, with its legend and title."""
    plain: Any = {"font.size": 9, "axes.grid": True, "grid.color": "#dcdcd6", "axes.axisbelow": True}
    with mpl.rc_context({**plain, "axes.spines.top": False, "axes.spines.right": False, "axes.unicode_minus": False}):
        figure = _figure(result, _PNG_ROLES, legend=True)
        figure.patch.set_alpha(1)
        figure.patch.set_facecolor("white")
        buffer = io.BytesIO()
        FigureCanvasAgg(figure).print_png(buffer, metadata={"Software": None})  # type: ignore[no-untyped-call]
    return buffer.getvalue()


def _figure(result: PoolResult, roles: Mapping[str, str], *, legend: bool) -> Figure:
    figure, axes = axes_of(6.4, 5.0 if legend else 4.4, left=0.7, bottom=1.1 if legend else 0.5)
    if legend:
        figure.set_dpi(160)
    curve = result.curve
    for policy, role, style, width in (
        ("mixing", "mixing", (0, (4, 3)), 1.3),
        ("router, whole pool", "whole", "-", 1.3),
        (ROUTER, "router", "-", 2.2),
    ):
        part = curve[curve["policy"] == policy].sort_values("total_cost_usd")
        if len(part):
            axes.plot(part["total_cost_usd"], part["quality"], color=roles[role], linestyle=style, linewidth=width, label=policy)
    _models(axes, result, roles)
    _points(axes, result, roles)
    if np.isclose(float(result.models["total_cost_usd"].max()), 0):
        axes.set_xlim(-1, 1)
    axes.set_xlabel(f"total cost of {result.about['prompts']:,} prompts, USD{' (notional)' if result.about.get('list_prices') else ''}")
    axes.set_ylabel("mean score")
    if legend:
        axes.set_title(str(result.about.get("title", "")), loc="left", fontsize=10)
        axes.legend(frameon=False, fontsize=7.5, loc="upper left", bbox_to_anchor=(-0.02, -0.12), ncols=3)
    return figure


def _models(axes: Axes, result: PoolResult, roles: Mapping[str, str]) -> None:
    table = result.models
    axes.plot(
        table["total_cost_usd"], table["quality"], "o", color=roles["ink"], markersize=5.5, zorder=5, label="one model for all prompts"
    )
    middle = float(table["total_cost_usd"].max()) / 2
    for row in table.to_dict("records"):
        left = row["total_cost_usd"] > middle
        axes.annotate(
            str(row["model"]), (row["total_cost_usd"], row["quality"]), xytext=(-6 if left else 6, -11), textcoords="offset points",
            ha="right" if left else "left", fontsize=7.5, color=roles["muted"],
        )  # fmt: skip


def _points(axes: Axes, result: PoolResult, roles: Mapping[str, str]) -> None:
    """The oracle, the thresholds chosen on training rows, and what was published elsewhere."""
    n = result.about["prompts"]
    points = {
        name: (result.get("cost_usd", name).value, result.get("quality", name).value)
        for name in result.policies()
        if _chooses(result, name)
    }
    for name, (cost, quality) in points.items():
        if cost is None or quality is None:
            continue
        if name == "oracle":
            axes.plot(cost * n, quality, "*", color=roles["oracle"], markersize=10, label="oracle", zorder=6)
        elif name.startswith((f"{ROUTER}, aims", f"{ROUTER} at")):
            first = name == next(p for p in points if p.startswith((f"{ROUTER}, aims", f"{ROUTER} at")))
            label = "router, threshold chosen on training rows" if first else None
            axes.plot(cost * n, quality, "o", color=roles["router"], markeredgecolor=roles["surface"], markersize=8, zorder=7, label=label)
    best = result.models[result.models["best"]].iloc[0]
    for i, (saved, loss) in enumerate(HYDRA_POINTS):
        label = "HyDRA as published, on a pool of its own" if i == 0 else None
        axes.plot(
            best["total_cost_usd"] * (1 - saved), best["quality"] - loss, "D", markerfacecolor="none", markeredgecolor=roles["published"],
            markersize=7, zorder=4, label=label,
        )  # fmt: skip


def _chooses(result: PoolResult, policy: str) -> bool:
    table = result.estimates
    return bool(((table["policy"] == policy) & (table["metric"] == "cost_usd")).any())
