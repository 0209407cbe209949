"""Rows of a downloaded file: Parquet, CSV, JSONL or JSON, the text formats also gzipped. Never a pickle."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from router.errors import InvalidInput
from training.tables import JSONL_SUFFIXES, Table, is_missing, line_runs, plain, read_jsonl, read_parquet, require_columns

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
    table = Table(frame, tuple(line_runs(0, path.name, len(frame), lines)))
    require_columns(frame, str(path), required)
    for row, values in enumerate(frame.to_dict("records")):
        yield table.where(row), {str(name): None if _absent(value) else plain(value) for name, value in values.items()}


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


def _frame(path: Path, suffix: str) -> tuple[pd.DataFrame, list[int] | None]:
    if suffix in JSONL_SUFFIXES:
        return read_jsonl(path)
    if suffix == ".parquet":
        return read_parquet(path), None
    try:
        if suffix == ".json":
            return pd.DataFrame(_json(path), dtype=object), None
        # Texts such as "None" or "NA" are answers and ids here, so only an empty cell is missing.
        return pd.read_csv(path, keep_default_na=False, na_values=[""]), None
    except (OSError, EOFError, UnicodeDecodeError, ValueError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise InvalidInput(f"{path}: not a readable {suffix[1:]} file: {str(error).splitlines()[0]}") from error


def _json(path: Path) -> list[Any]:
    with gzip.open(path) if path.name.endswith(".gz") else path.open("rb") as file:
        rows = json.load(file)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise InvalidInput(f"{path}: a JSON list of objects is needed")
    return rows


def _absent(value: Any) -> bool:
    """Missing; an empty text is a value here."""
    return not isinstance(value, str) and is_missing(value)
