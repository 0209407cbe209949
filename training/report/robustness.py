"""A robustness report as files: HTML with a plot, Markdown, JSON, and its tables as CSV."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd
from markupsafe import Markup

from router.files.atomic import require_replaceable, write_folder_atomically
from training.bootstrap import Estimate
from training.report.cells import NO_NUMBER, PER_CENT, missing
from training.report.files import plain, records
from training.report.forests import Forest, draw_forest
from training.report.page import figure, render
from training.robustness.attack import KINDS
from training.robustness.battery import ALL
from training.robustness.registry import TRANSFORMATIONS
from training.robustness.run import Robustness

RESULTS: Final = "robustness.json"
ROBUSTNESS_FORMAT: Final = 1
_WIDTH_IN: Final = 6.4


def check_robustness_output(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier robustness report."""
    require_replaceable(folder, RESULTS, "robustness report")


def write_robustness(result: Robustness, folder: Path) -> None:
    """Write the files into a new or empty folder, or in place of an earlier report."""
    check_robustness_output(folder)
    write_folder_atomically(folder, robustness_files(result))


def robustness_files(result: Robustness) -> dict[str, bytes]:
    """Name and content of every file; equal results give equal bytes."""
    tables = {"changes": result.changes, "attacks": result.attacks, "gate": result.gate}
    mapping = {"format": ROBUSTNESS_FORMAT, "about": plain(result.about), "passed": result.passed}
    mapping |= {name: records(table) for name, table in tables.items()}
    files = {"robustness.csv": result.changes.to_csv(index=False).encode()}
    if len(result.attacks):
        files["attacks.csv"] = result.attacks.to_csv(index=False).encode()
    files[RESULTS] = (json.dumps(mapping, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    files["robustness.md"] = _text("robustness.md.j2", result).encode()
    files["robustness.html"] = _text("robustness.html.j2", result).encode()
    return files


def _text(template: str, result: Robustness) -> str:
    about = result.about
    return render(
        template,
        about=about,
        points=list(about["thresholds"]),
        heads=["need", *about["capabilities"]],
        families=_change_rows(result, together=True),
        changes=_change_rows(result, together=False),
        attacks=_attack_rows(result),
        kinds=KINDS,
        meanings=[(t.name, t.family, t.keeps) for t in TRANSFORMATIONS],
        broken=[f"{row['what']} {_share(row['value'])}" for row in result.gate.to_dict("records") if not row["kept"]],
        limits=len(result.gate),
        plots=[] if template.endswith(".md.j2") else _plots(result),
        safe=Markup if template.endswith(".md.j2") else str,
    )


def _change_rows(result: Robustness, *, together: bool) -> list[dict[str, Any]]:
    points, heads = result.about["thresholds"], ["need", *result.about["capabilities"]]
    rows = result.changes[(result.changes["name"] == ALL) == together]
    return [
        {
            "name": row["family"] if together else row["name"],
            "family": row["family"],
            "gated": row["gated"],
            "n": row["n"],
            "flipped": _share(row["flipped"]),
            "interval": f"{100 * row['low']:.1f} to {100 * row['high']:.1f}",
            "points": [_share(row[f"flipped_{name}"]) for name in points],
            "shifts": [(f"{row[f'mean_{name}']:.3f}", f"{row[f'p95_{name}']:.3f}") for name in heads],
        }
        for row in rows.to_dict("records")
    ]


def _attack_rows(result: Robustness) -> list[dict[str, Any]]:
    """One row a kind, position and direction, with a cell a threshold."""
    if result.attacks.empty:
        return []
    rows = []
    for (kind, position, direction), part in result.attacks.groupby(["kind", "position", "direction"], sort=False):
        first = part.iloc[0]
        cells = [(_share(row["success"]), _interval(row), row["n"]) for row in part.to_dict("records")]
        rows.append({"kind": kind, "position": position, "direction": direction, "moved": f"{first['moved']:+.3f}", "cells": cells})
        rows[-1] |= {"queries": f"{first['queries']:,}" if first["queries"] else NO_NUMBER, "gadget": first["gadget"]}
    return rows


def _interval(row: Mapping[str, Any]) -> str:
    return "no prompt on that side" if missing(row["success"]) else f"{100 * row['low']:.1f} to {100 * row['high']:.1f}"


def _share(value: Any) -> str:
    return NO_NUMBER if missing(value) else f"{100 * value:.1f}{PER_CENT}"


def _plots(result: Robustness) -> list[Markup]:
    families = result.changes[result.changes["name"] == ALL]
    drawn = [_forest("flips", "decisions flipped, %", families["family"].tolist(), families, "flipped", result.about["max_flips"])]
    if len(result.attacks):
        own = result.attacks[(result.attacks["threshold"] == "own") & (result.attacks["direction"] == "up")]
        names = [f"{row['kind']} {row['position']}" for row in own.to_dict("records")]
        drawn.append(_forest("attacks", "sent to the strong model, %", names, own, "success", result.about["max_success"]))
    return [figure(one) for one in drawn]


def _forest(key: str, axis: str, names: list[str], table: pd.DataFrame, column: str, limit: float) -> str:
    found = [
        Estimate(None, None, None, row["n"], row["groups"], "no prompt to start from")
        if missing(row[column])
        else Estimate(100 * row[column], 100 * row["low"], 100 * row["high"], row["n"], row["groups"])
        for row in table.to_dict("records")
    ]
    said = ", ".join(f"{name} {NO_NUMBER if e.value is None else f'{e.value:.1f}'}" for name, e in zip(names, found, strict=True))
    return draw_forest(
        Forest(key, f"{axis}, with 95 % interval: {said}", axis, names, found, (0, 10), (0, 100), 100 * limit, width_in=_WIDTH_IN)
    )
