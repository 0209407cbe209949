"""A comparison of two routers as files: comparison.html, comparison.json, and its tables as CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import pandas as pd
from matplotlib.ticker import PercentFormatter

from router.files.atomic import require_replaceable, write_folder_atomically
from training.bootstrap import Estimate
from training.compare.comparison import MODES, Comparison
from training.evaluate import METRICS
from training.report.cells import NO_NUMBER, PER_CENT, SHORT, Cell, difference_cell, is_ratio, missing, number
from training.report.files import plain, records
from training.report.forests import Forest, draw_forest, scaled
from training.report.page import figure, render
from training.report.plot import COLOURS, LINES, STYLE, WIDTH_IN, axes_of, svg

COMPARISON: Final = "comparison.json"
COMPARISON_FORMAT: Final = 1
_LEVEL: Final = 0.05
_FORESTS: Final = (("apgr", "ranking", "APGR"), ("quality_vs_strong", "equal", "quality kept at equal share"))


def check_comparison_output(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier comparison."""
    require_replaceable(folder, COMPARISON, "comparison")


def write_comparison(comparison: Comparison, folder: Path) -> None:
    """Write the files into a new or empty folder, or in place of an earlier comparison."""
    check_comparison_output(folder)
    write_folder_atomically(folder, comparison_files(comparison))


def comparison_files(comparison: Comparison) -> dict[str, bytes]:
    """Name and content of every file; equal comparisons give equal bytes."""
    tables = {"differences": comparison.differences, "disagreements": comparison.disagreements, "curve": comparison.curve}
    mapping = {"format": COMPARISON_FORMAT, "about": plain(comparison.about)} | {name: records(table) for name, table in tables.items()}
    files = {f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()}
    files[COMPARISON] = (json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    files["comparison.html"] = render_comparison(comparison).encode()
    return files


def verdict(record: Mapping[str, Any], metric: str) -> str:
    """One difference as a sentence: who has more, by how much, and whether these prompts can tell."""
    title = METRICS[metric]
    if missing(record["value"]):
        return f"{title}: no figure ({str(record['note']).removeprefix('undefined: ')})"
    cell = difference_cell(metric, record)
    unit = " points" if is_ratio(metric) else ""
    between = f" ({cell.interval})" if cell.interval else ""
    if missing(record["p"]):
        return f"{title}: B less A {cell.value}{unit}{between}; {record['note'] or 'no test'}"
    told = "a difference" if record["p"] < _LEVEL else "no difference that these prompts can show"
    return f"{title}: B less A {cell.value}{unit}{between}, p {p_value(record['p'])}: {told}"


def p_value(p: Any) -> str:
    """A p value as people read it."""
    return NO_NUMBER if missing(p) else "< 0.001" if p < 0.001 else f"{p:.3f}"


def render_comparison(comparison: Comparison) -> str:
    """The whole page as text."""
    return render(
        "comparison.html.j2",
        about=comparison.about,
        no_number=NO_NUMBER,
        modes=MODES,
        headline=[verdict(comparison.row(metric, mode), metric) for metric, mode in (("apgr", "ranking"), ("quality_vs_strong", "equal"))],
        pooled={mode: pooled_rows(comparison, mode) for mode in MODES},
        slice_titles=[SHORT[metric] + (", equal share" if mode == "equal" else "") for metric, mode in _SLICED],
        slice_tables={kind: _slice_rows(comparison, kind) for kind in ("family", "source", "capability")},
        forests={kind: [figure(_forest(comparison, kind, *what)) for what in _FORESTS] for kind in ("family", "source")},
        disagreements=_disagreement_rows(comparison),
        curve=figure(_curve(comparison)),
    )


_SLICED: Final = (("apgr", "ranking"), ("quality_vs_strong", "equal"), ("routing_accuracy", "equal"), ("ece", "ranking"))


def pooled_rows(comparison: Comparison, mode: str) -> list[dict[str, Any]]:
    """Every metric of a way to compare, over all prompts, as it is shown."""
    table = comparison.differences
    part = table[(table["mode"] == mode) & (table["slice_kind"] == "pooled") & (table["slice"] == "all")]
    return [
        {"title": METRICS[r["metric"]], "a": number(r["metric"], r["a"]), "b": number(r["metric"], r["b"])}
        | {"cell": difference_cell(r["metric"], r), "p": p_value(r["p"]), "points": is_ratio(r["metric"])}
        for r in part.to_dict("records")
    ]


def _slice_rows(comparison: Comparison, kind: str) -> list[dict[str, Any]]:
    table = comparison.differences[comparison.differences["slice_kind"] == kind]
    rows = []
    for name, part in table.groupby("slice", sort=False):
        by = {(r["metric"], r["mode"]): r for r in part.to_dict("records")}
        cells = []
        for metric, mode in _SLICED:
            record = by[metric, mode]
            cell = difference_cell(metric, record)
            holm = "" if missing(record["p_holm"]) else f"p {p_value(record['p_holm'])}"
            cells.append((cell, holm, not missing(record["p_holm"]) and record["p_holm"] < _LEVEL))
        rows.append({"name": name, "n": int(part["n"].iloc[0]), "cells": cells})
    return rows


def _forest(comparison: Comparison, kind: str, metric: str, mode: str, title: str) -> str:
    table = comparison.differences
    table = table[(table["slice_kind"] == kind) & (table["mode"] == mode) & (table["metric"] == metric)]
    scale = 100.0 if is_ratio(metric) else 1.0
    found: list[Estimate] = [scaled(record, scale) for record in table.to_dict("records")]
    axis = f"{title}, B less A{', points' if is_ratio(metric) else ''}"
    known = sum(estimate.value is not None for estimate in found)
    label = f"{axis}, for every {kind} with its interval; {known} of {len(found)} have a figure"
    least, widest = (-0.1 * scale, 0.1 * scale), (-1.2 * scale, 1.2 * scale)
    return draw_forest(Forest(f"{kind}-{metric}", label, axis, table["slice"].tolist(), found, least, widest, 0.0, width_in=4.4))


def _disagreement_rows(comparison: Comparison) -> list[dict[str, Any]]:
    rows = []
    for r in comparison.disagreements.to_dict("records"):
        gained = Cell(NO_NUMBER) if missing(r["gained_by_b"]) else Cell(f"{r['gained_by_b']:+.3f}".replace("-", "−"))
        share = f"{100 * r['differ_share']:.1f}{PER_CENT}"
        test = Cell(p_value(r["p_holm"]), "", str(r["note"]) if missing(r["p"]) else "")
        rows.append({**r, "share": share, "gained": gained, "test": test})
    return rows


def _curve(comparison: Comparison) -> str:
    table: pd.DataFrame = comparison.curve
    with mpl.rc_context(STYLE):
        drawing, axes = axes_of(WIDTH_IN, 3.4, left=0.7, bottom=0.5)
        ends = table.iloc[[0, -1]]
        axes.plot(ends["strong_share"], ends["a"], color=COLOURS["random"], linestyle=LINES["random"], linewidth=1.2)
        axes.plot(table["strong_share"], table["a"], color=COLOURS["length"], linewidth=1.8, linestyle=LINES["oracle"])
        axes.plot(table["strong_share"], table["b"], color=COLOURS["router"], linewidth=2)
        axes.set_xlabel("share of prompts sent to the strong model")
        axes.set_ylabel("mean score")
        axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
        middle = table.iloc[len(table) // 2]
        label = f"Mean score over the share of strong calls. At {middle['strong_share']:.0%}: A {middle['a']:.3f}, B {middle['b']:.3f}."
        return svg(drawing, "curve", label)
