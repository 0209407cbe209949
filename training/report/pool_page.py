"""The files of a pool's evaluation: one self-contained HTML page, JSON, tables as CSV, and the plot as PNG."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from router.files.atomic import require_replaceable, write_folder_atomically
from training.bootstrap import Estimate
from training.pool.evaluation import METRICS, ROUTER, PoolResult
from training.report.cells import Cell
from training.report.files import plain, records
from training.report.pool_figure import pool_curve_png, pool_curve_svg

POOL_RESULTS: Final = "pool.json"
POOL_FORMAT: Final = 1
_HERE: Final = Path(__file__).parent
_POINTS: Final = frozenset({"loss_to_best", "loss_to_dearest", "above_mixing", "gain_over_mixing"})
_SHARES: Final = frozenset({"saved_of_best", "saved_of_dearest", "misroute"})


def check_pool_output(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier evaluation of a pool: writing replaces the whole folder."""
    require_replaceable(folder, POOL_RESULTS, "evaluation of a pool")


def write_pool(result: PoolResult, folder: Path) -> None:
    """Write the files into a new or empty folder, or in place of an earlier evaluation of a pool."""
    check_pool_output(folder)
    write_folder_atomically(folder, pool_files(result))


def pool_files(result: PoolResult) -> dict[str, bytes]:
    """Name and content of every file; equal results give equal bytes."""
    tables = {"estimates": result.estimates, "models": result.models, "curve": result.curve, "folds": result.folds}
    files = {f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items() if len(table)}
    mapping = {"format": POOL_FORMAT, "about": plain(result.about), **{name: records(table) for name, table in tables.items()}}
    files[POOL_RESULTS] = (json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    files["report.html"] = render_pool_page(result).encode()
    files["curve.png"] = pool_curve_png(result)
    return files


def render_pool_page(result: PoolResult) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    sweep_metrics = ["gain_over_mixing", *(f"hindsight_saved_within_{100 * goal:g}" for goal in result.about["goals"])]
    tau_keys = [str(column) for column in result.folds if str(column).startswith("tau_within_")]
    return environment.get_template("pool.html.j2").render(
        about=result.about,
        style=Markup((_HERE / "page.css").read_text(encoding="utf-8")),  # noqa: S704 - our own file
        lead=lead_sentence(result),
        curve=Markup(pool_curve_svg(result)),  # noqa: S704 - drawn here; matplotlib escapes the names
        kept="kept_in_folds" in result.models,
        models=[{**row, "remark": _remark(row)} for row in result.models.to_dict("records")],
        titles=list(METRICS.values()),
        policies=_table(result, list(METRICS)),
        sweep_titles=["gain over mixing", *(f"saved within {100 * goal:g} points" for goal in result.about["goals"])],
        sweeps=_table(result, sweep_metrics),
        folds=result.folds.to_dict("records"),
        tau_keys=tau_keys,
        tau_titles=[f"τ for -{key.removeprefix('tau_within_')}" for key in tau_keys],
        percent=lambda value: f"{value:.0%}",
    )


def lead_sentence(result: PoolResult) -> str:
    """What the evaluation says, in a sentence or two."""
    best = str(result.about["best"])
    own = next((name for name in result.policies() if name.startswith((f"{ROUTER}, aims", f"{ROUTER} at"))), None)
    sentences = []
    if own is not None:
        loss, saved = result.get("loss_to_best", own), result.get("saved_of_best", own)
        if loss.value is None or saved.value is None:
            sentences.append(f"No figure: {loss.note or saved.note}.")
        else:
            below = f"{100 * abs(loss.value):.1f} points {'below' if loss.value >= 0 else 'above'} {best}"
            cheaper = "less" if saved.value >= 0 else "more"
            sentences.append(f"The policy “{own}” ends {below}, the best single model, and costs {100 * abs(saved.value):.1f} % {cheaper}.")
    table = result.models
    top = table[table["best"]].iloc[0]
    near = table[(table["quality"] >= top["quality"] - 0.003 - 1e-12) & (table["total_cost_usd"] < top["total_cost_usd"])]
    if len(near) and top["total_cost_usd"] > 0:
        one = near.iloc[0]
        saved = 100 * (1 - one["total_cost_usd"] / top["total_cost_usd"])
        sentences.append(f"{one['model']} alone is within 0.3 points of it for {saved:.1f} % less.")
    return " ".join(sentences)


def _table(result: PoolResult, metrics: list[str]) -> list[tuple[str, list[Cell]]]:
    table = result.estimates
    rows = []
    for name in result.policies():
        have = set(table.loc[table["policy"] == name, "metric"])
        if have & set(metrics):
            rows.append((name, [_cell(metric, result.get(metric, name)) if metric in have else Cell("") for metric in metrics]))
    return rows


def _remark(row: dict[str, Any]) -> str:
    said = [name for name in ("best", "dearest") if row[name]]
    if row["dominated"]:
        said.append("a mixture of others is at least as good for no more money")
    return ", ".join(said)


def _cell(metric: str, estimate: Estimate) -> Cell:
    interval = (
        "" if estimate.low is None or estimate.high is None else f"{_number(metric, estimate.low)} to {_number(metric, estimate.high)}"
    )
    return Cell(_number(metric, estimate.value), interval, estimate.note)


def _number(metric: str, value: Any) -> str:
    if value is None or pd.isna(value):
        return "–"
    if metric in _POINTS:
        return f"{100 * value:.1f}"
    if metric in _SHARES or metric.startswith("hindsight_"):
        return f"{100 * value:.1f} %"
    return f"{value:.4g}" if metric == "cost_usd" else f"{value:.3f}"
