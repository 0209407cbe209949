"""The files of an audit, written all together or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from router.files.atomic import require_replaceable, write_folder_atomically
from training.audit.measures import MEASURES, SECTIONS
from training.audit.page import render_card
from training.audit.run import AuditResult

RESULTS: Final = "audit.json"
RESULTS_FORMAT: Final = 1


def audit_files(result: AuditResult) -> dict[str, bytes]:
    """Name and content of every file; equal results give equal bytes."""
    tables = {"figures": result.estimates, "thresholds": pd.DataFrame(result.thresholds), **result.tables}
    files = {f"{name}.csv": table.to_csv(index=False).encode() for name, table in tables.items()}
    files[RESULTS] = (json.dumps(results_mapping(result), indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
    files["audit.html"] = render_card(result).encode()
    return files


def write_audit(result: AuditResult, folder: Path) -> None:
    """Write the files into a new or empty folder, or in place of an earlier audit."""
    check_output(folder)
    write_folder_atomically(folder, audit_files(result))


def check_output(folder: Path) -> None:
    """Refuse a folder that holds anything but an earlier audit: writing replaces the whole folder."""
    require_replaceable(folder, RESULTS, "audit")


def results_mapping(result: AuditResult) -> dict[str, Any]:
    """The result as JSON data; a missing number is null and has its reason beside it. Long tables are in the CSV files only."""
    return {
        "format": RESULTS_FORMAT,
        "about": _plain(result.about),
        "failed": result.failed,
        "thresholds": _plain(result.thresholds),
        "notes": list(result.notes),
        "figures": _records(result.estimates),
        "score_kinds": _records(result.tables["score_kinds"]),
        "families": _records(result.tables["families"]),
        "sections": dict(SECTIONS),
        "measures": {
            name: {"title": m.title, "meaning": m.meaning, "section": m.section, "share": m.share} for name, m in MEASURES.items()
        },
    }


def _records(table: pd.DataFrame) -> list[Any]:
    return [_plain(row) for row in table.to_dict("records")]


def _plain(value: Any) -> Any:
    """Numpy scalars as Python ones; NaN, infinity and missing values as None."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is pd.NA or (isinstance(value, float) and not math.isfinite(value)) else value
