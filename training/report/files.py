"""The files of an evaluation, written all together or not at all."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from router.files.atomic import require_replaceable, write_folder_atomically
from training.evaluate import METRICS, EvaluationResult
from training.report.page import render_page
from training.slices import SLICES

RESULTS: Final = "results.json"
DECISIONS: Final = "decisions.parquet"
RESULTS_FORMAT: Final = 1
TABLES: Final = (
    "operating_points", "curve", "reliability", "calibration", "against_english", "parity", "gate", "worst", "data", "families",
)  # fmt: skip
"""Tables of a result that are written as they are, each as CSV and into results.json."""


def evaluation_files(result: EvaluationResult) -> dict[str, bytes]:
    """Name and content of every file; equal results give equal bytes."""
    tables = {("pooled" if kind == "pooled" else f"by_{kind}"): wide_table(result, kind) for kind in SLICES}
    tables |= {name: getattr(result, name) for name in TABLES}
    files = {f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()}
    files[DECISIONS] = _parquet(result.decisions)
    files[RESULTS] = (json.dumps(results_mapping(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    files["report.html"] = render_page(result).encode()
    return files


def write_evaluation(result: EvaluationResult, folder: Path) -> None:
    """Write the files into a new or empty folder, or in place of an earlier evaluation."""
    check_output(folder)
    write_folder_atomically(folder, evaluation_files(result))


def check_output(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier evaluation: writing replaces the whole folder."""
    require_replaceable(folder, RESULTS, "evaluation")


def wide_table(result: EvaluationResult, kind: str) -> pd.DataFrame:
    """One row a slice and policy; each metric with its interval and, where it has no value or no interval, the reason."""
    records: list[dict[str, Any]] = []
    rows = result.estimates[result.estimates["slice_kind"] == kind]
    for (name, policy), part in rows.groupby(["slice", "policy"], sort=False):
        first = part.iloc[0]
        record: dict[str, Any] = {"slice": name, "policy": policy, "n": int(first["n"]), "n_groups": int(first["n_groups"])}
        for row in part.to_dict("records"):
            metric = str(row["metric"])
            record |= {metric: row["value"], f"{metric}_low": row["low"], f"{metric}_high": row["high"], f"{metric}_note": row["note"]}
        records.append(record)
    columns = ["slice", "policy", "n", "n_groups", *(f"{m}{end}" for m in METRICS for end in ("", "_low", "_high", "_note"))]
    return pd.DataFrame(records).reindex(columns=columns)


def results_mapping(result: EvaluationResult) -> dict[str, Any]:
    """The result as JSON data; a missing number is null and has its reason beside it."""
    return {
        "format": RESULTS_FORMAT,
        "about": plain(result.about),
        "estimates": records(result.estimates),
        **{name: records(getattr(result, name)) for name in TABLES},
    }


def _parquet(table: pd.DataFrame) -> bytes:
    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as JSON data."""
    return [plain(row) for row in table.to_dict("records")]


def plain(value: Any) -> Any:
    """Numpy scalars as Python ones, NaN and infinity as None."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if isinstance(value, float) and not math.isfinite(value) else value
