"""Rows of a downloaded file: Parquet, CSV, JSONL or JSON, the text formats also gzipped. Never a pickle."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from training.tables import Table, is_missing, jsonl_rows, require_columns

SUFFIXES: Final = (".parquet", ".csv", ".jsonl", ".ndjson", ".json")
_PICKLES: Final = (".pkl", ".pickle", ".joblib")


def read_rows(path: Path, required: Sequence[str], suffixes: Sequence[str] = SUFFIXES) -> Iterator[tuple[str, dict[str, Any]]]:
    """Where each row stands, and its values; missing values are None, Parquet lists are lists.

    Raises
    ------
    InvalidInput
        A file that is missing, a pickle, of another format, unreadable, empty, or without one of the ``required`` columns.
    """
    suffix = _suffix(path, suffixes)
    frame, lines = _frame(path, suffix)
    if frame.empty:
        raise InvalidInput(f"{path}: no rows; at least one is needed")
    require_columns(Table(frame, ()), str(path), required)
    for row, values in zip(lines, frame.to_dict("records"), strict=True):
        yield f"{path.name} row {row}", {str(name): _plain(value) for name, value in values.items()}


def number(value: Any, where: str, column: str, lowest: float, highest: float) -> float:
    """A finite number in a range, from a number or its text.

    Raises
    ------
    InvalidInput
        Naming the row, the column, the value and the range.
    """
    try:
        parsed = float(value) if not isinstance(value, bool) else float("nan")
    except (TypeError, ValueError):
        parsed = float("nan")
    if not lowest <= parsed <= highest:
        raise InvalidInput(f"{where}: column {column!r} is {value!r}; a number from {lowest:g} to {highest:g} is needed")
    return parsed


def text(value: Any, where: str, column: str) -> str:
    """A text that is not blank, or a whole number written out."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{where}: column {column!r} is {value!r}; a non-empty text is needed")
    return value


def texts(value: Any, where: str, column: str) -> list[str | None]:
    """A list of texts, given as a list or as its JSON text."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{where}: column {column!r} is not a JSON list ({error})") from error
    if not isinstance(value, list) or not all(item is None or isinstance(item, str) for item in value):
        raise InvalidInput(f"{where}: column {column!r} is not a list of texts")
    return value


def _suffix(path: Path, suffixes: Sequence[str]) -> str:
    name = path.name.removesuffix(".gz")
    suffix = Path(name).suffix.lower()
    if suffix in _PICKLES:
        raise InvalidInput(
            f"{path}: a pickle runs code when it is read, so it is not opened here; "
            "get the data set's Parquet or CSV export, or write one in a throw-away environment (DataFrame.to_parquet)"
        )
    if suffix not in suffixes or (suffix == ".parquet" and path.name.endswith(".gz")):
        raise InvalidInput(f"{path}: files ending in {suffix or 'nothing'} are not read; allowed are {', '.join(suffixes)}")
    if not path.is_file():
        raise InvalidInput(f"{path}: no such file; download the data set first (`interlock data sources` names the address)")
    return suffix


def _frame(path: Path, suffix: str) -> tuple[pd.DataFrame, Iterable[int]]:
    import pyarrow as pa

    try:
        if suffix in (".jsonl", ".ndjson"):
            rows = list(jsonl_rows(path))
            return pd.DataFrame([row for _, row in rows], dtype=object), [line for line, _ in rows]
        frame = pd.DataFrame(_json(path), dtype=object) if suffix == ".json" else _read(path, suffix)
    except (OSError, EOFError, UnicodeDecodeError, pa.ArrowException, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: not a readable {suffix[1:]} file: {str(error).splitlines()[0]}") from error
    return frame, range(1, len(frame) + 1)


def _read(path: Path, suffix: str) -> pd.DataFrame:
    # Texts such as "None" or "NA" are answers and ids here, so only an empty CSV cell is missing.
    return pd.read_parquet(path) if suffix == ".parquet" else pd.read_csv(path, keep_default_na=False, na_values=[""])


def _json(path: Path) -> list[Any]:
    with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
        rows = json.load(file)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{path}: a JSON list of objects is needed")
    return rows


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return [_plain(item) for item in value.tolist()]
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, np.generic):
        value = value.item()
    return None if value is None or (not isinstance(value, str) and is_missing(value)) else value
