"""Rows from Parquet, JSONL or a folder of JSONL, with a name for every row that an error can point at."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from router.files.atomic import write_together
from router.nearest import did_you_mean

JSONL_SUFFIXES: Final = (".jsonl", ".ndjson")
BATCH_ROWS: Final = 50_000
"""Rows of a Parquet file that are read at a time."""


@dataclass(frozen=True, slots=True)
class Table:
    """A frame with a plain 0..n-1 index, and where each of its rows came from.

    ``places`` holds runs ``(first row, file, line of that row)``; a run of a Parquet file counts rows from 1.
    """

    frame: pd.DataFrame
    places: tuple[tuple[int, str, int], ...]

    def where(self, row: int) -> str:
        """``en.jsonl:17`` or ``prompts.parquet row 17``."""
        first, name, line = next(place for place in reversed(self.places) if place[0] <= row)
        separator = ":" if name.removesuffix(".gz").endswith(JSONL_SUFFIXES) else " row "
        return f"{name}{separator}{line + row - first}"


def read_table(path: Path, stem: str) -> Table:
    """Read a file, or from a folder ``<stem>.parquet``, ``<stem>.jsonl``, or, for prompts, every JSONL file in it.

    Raises
    ------
    InvalidInput
        Missing, of another kind, unreadable, or without rows.
    """
    files = _files(path, stem)
    frames: list[pd.DataFrame] = []
    places: list[tuple[int, str, int]] = []
    total = 0
    for file in files:
        frame, lines = (read_parquet(file), None) if file.suffix == ".parquet" else read_jsonl(file)
        places.extend(line_runs(total, file.name, len(frame), lines))
        frames.append(frame)
        total += len(frame)
    if not total:
        raise InvalidInput(f"{path}: no rows; at least one is needed")
    frame = frames[0] if len(frames) == 1 else pd.concat([f for f in frames if len(f)], ignore_index=True)
    return Table(frame.reset_index(drop=True), tuple(places))


def read_batches(path: Path, stem: str, columns: Sequence[str] | None = None) -> Iterator[Table]:
    """:func:`read_table` piece by piece: a long Parquet file as tables of :data:`BATCH_ROWS` rows, everything else as one.

    Of a long file only ``columns`` are read, as far as they are there; None reads all.
    """
    files = _files(path, stem)
    if len(files) > 1 or files[0].suffix != ".parquet" or (rows := _parquet_rows(files[0])) <= BATCH_ROWS:
        yield read_table(path, stem)
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    first = 0
    try:
        with pq.ParquetFile(files[0]) as file:
            wanted = None if columns is None else [name for name in file.schema_arrow.names if name in columns]
            for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
                yield Table(batch.to_pandas(integer_object_nulls=True), ((0, files[0].name, first + 1),))
                first += len(batch)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{files[0]}: not a readable Parquet file after {first} of {rows} rows: {str(error).splitlines()[0]}") from error


def shared_texts(values: pd.Series[Any]) -> pd.Series[Any]:
    """The same column with one object for all equal texts: a tenth of the memory where few are different."""
    codes, distinct = pd.factorize(values.to_numpy(dtype=object))
    texts = np.append(np.asarray(distinct, dtype=object), [None])
    return pd.Series(texts[codes], index=values.index, dtype=object)


def require_columns(frame: pd.DataFrame, name: str, required: Sequence[str]) -> None:
    """Refuse a frame that lacks a column, saying which there are and which was probably meant."""
    present = [str(column) for column in frame.columns]
    for column in required:
        if column not in present:
            hint = did_you_mean(column, present)
            raise InvalidInput(f"{name}: column {column!r} is missing, there are {', '.join(present) or 'none'}{hint}")


def require_text(table: Table, column: str) -> pd.Series[Any]:
    """A column of non-empty strings; numbers are written out as text (ids are often numbers in JSON).

    Raises
    ------
    InvalidInput
        An empty or missing value, or one that is neither text nor a whole number.
    """
    values = table.frame[column]
    if pd.api.types.is_string_dtype(values) and not values.isna().any() and (values.str.strip() != "").all():
        return values.astype(object)
    texts = [_as_text(value) for value in values]
    for row, text in enumerate(texts):
        if text is None:
            found = "empty" if is_missing(values.iloc[row]) else repr(values.iloc[row])
            raise InvalidInput(f"{table.where(row)}: column {column!r} is {found}; a non-empty text is needed")
    return pd.Series(texts, index=values.index, dtype=object)


def optional(frame: pd.DataFrame, column: str) -> pd.Series[Any]:
    """A column as Python objects with None for every kind of missing value; all None where it is absent."""
    if column not in frame:
        return pd.Series([None] * len(frame), index=frame.index, dtype=object)
    return pd.Series([None if is_missing(value) else value for value in frame[column]], index=frame.index, dtype=object)


def optional_text(table: Table, column: str) -> pd.Series[Any]:
    """A column of texts and None.

    Raises
    ------
    InvalidInput
        A value of another kind.
    """
    values = optional(table.frame, column)
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{table.where(row)}: column {column!r} is {value!r}; a text or nothing is allowed")
    return values


def json_column(table: Table, column: str, kind: type[list[Any]] | type[dict[str, Any]]) -> pd.Series[Any]:
    """A column of lists or of objects, given as such or as JSON text, and None.

    Raises
    ------
    InvalidInput
        Text that is not JSON, or a value of another kind.
    """
    values = optional(table.frame, column)
    parsed: list[Any] = []
    for row, value in enumerate(values):
        try:
            content = None if value is None else json_value(value)
        except (json.JSONDecodeError, RecursionError) as error:
            raise InvalidInput(f"{table.where(row)}: column {column!r} is not JSON ({error})") from error
        if content is not None and not isinstance(content, kind):
            shape = "list" if kind is list else "object"
            raise InvalidInput(f"{table.where(row)}: column {column!r} holds a {type(content).__name__}; a JSON {shape} is needed")
        parsed.append(content)
    return pd.Series(parsed, index=values.index, dtype=object)


def refuse_duplicates(table: Table, key: Sequence[str], rule: str) -> None:
    """Refuse two rows with one key, naming both; ``rule`` says what is allowed."""
    columns = table.frame[list(key)]
    twice = columns.duplicated().to_numpy()
    if twice.any():
        row = int(twice.argmax())
        values = columns.iloc[row]
        first = int((columns == values).all(axis=1).to_numpy().argmax())
        what = ", ".join(f"{column} {values[column]!r}" for column in key)
        raise InvalidInput(f"{table.where(row)}: {what} stands already at {table.where(first)}; {rule}")


def is_missing(value: object) -> bool:
    """None, NaN, NA or an empty text."""
    if isinstance(value, str):
        return not value
    return value is None or (not isinstance(value, list | dict | tuple | np.ndarray) and bool(pd.isna(value)))


def json_value(value: Any) -> Any:
    """A cell that holds JSON text, or the value itself (see :func:`plain`); raises ``json.JSONDecodeError``."""
    return json.loads(value) if isinstance(value, str) else plain(value)


def plain(value: Any) -> Any:
    """A value of a Parquet cell as Python has it: arrays, at any depth, as lists, and numbers as numbers."""
    if isinstance(value, np.ndarray | list):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value.item() if isinstance(value, np.generic) else value


def write_tables(folder: Path, frames: Mapping[str, pd.DataFrame]) -> list[Path]:
    """Write ``<name>.parquet`` for every frame, all of them or none."""
    write_together(folder, {f"{name}.parquet": _parquet_bytes(frame) for name, frame in frames.items()})
    return [folder / f"{name}.parquet" for name in frames]


def _parquet_bytes(frame: pd.DataFrame) -> bytes:
    """Parquet with lists and objects as JSON text."""
    copy = frame.copy()
    for column in copy.columns:
        if any(isinstance(value, list | dict | tuple) for value in copy[column]):
            copy[column] = [None if is_missing(v) else json.dumps(v, ensure_ascii=False) for v in copy[column]]
    data: bytes = copy.to_parquet(index=False, compression="zstd")
    return data


def _as_text(value: object) -> str | None:
    if isinstance(value, str):
        return value if value.strip() else None
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return str(value)
    return None


def _files(path: Path, stem: str) -> list[Path]:
    if not path.exists():
        raise InvalidInput(f"{path}: no such file or folder; give a .parquet or .jsonl file, or a folder of .jsonl files")
    if path.is_dir():
        for suffix in (".parquet", *JSONL_SUFFIXES):
            if (path / f"{stem}{suffix}").is_file():
                return [path / f"{stem}{suffix}"]
        files = sorted(file for file in path.iterdir() if file.suffix in JSONL_SUFFIXES) if stem == "prompts" else []
        if not files:
            other = "any .jsonl file" if stem == "prompts" else f"{stem}.jsonl"
            raise InvalidInput(f"{path}: the folder has neither {stem}.parquet nor {other}")
        return files
    if path.suffix != ".parquet" and path.suffix not in JSONL_SUFFIXES:
        raise InvalidInput(f"{path}: files ending in {path.suffix or 'nothing'} are not read; allowed are .parquet, .jsonl, .ndjson")
    return [path]


def _parquet_rows(path: Path) -> int:
    """Rows of a Parquet file; 0 where it cannot be read, which reading it will explain."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.read_metadata(path).num_rows)
    except (pa.ArrowException, OSError):
        return 0


def read_parquet(path: Path) -> pd.DataFrame:
    """The frame of a Parquet file; whole numbers stay whole where some are missing."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_table(path).to_pandas(integer_object_nulls=True)
    except (pa.ArrowException, OSError) as error:
        raise InvalidInput(f"{path}: not a readable Parquet file: {str(error).splitlines()[0]}") from error


def read_jsonl(path: Path) -> tuple[pd.DataFrame, list[int]]:
    """The objects of a JSONL file, gzipped or not, and the line of each."""
    rows = list(_jsonl_rows(path))
    return pd.DataFrame([row for _, row in rows], dtype=object), [line for line, _ in rows]


def _jsonl_rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Line number and object of every line that is not blank.

    Raises
    ------
    InvalidInput
        A line that is not UTF-8, not JSON, or not an object.
    """
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for number, raw in enumerate(file, start=1):
                if raw.strip():
                    yield number, _json_object(raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw, f"{path.name}:{number}")
    except (OSError, EOFError) as error:
        raise InvalidInput(f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}") from error


def _json_object(raw: bytes, where: str) -> dict[str, Any]:
    try:
        row = json.loads(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{where}: not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save the file as UTF-8") from error
    except (json.JSONDecodeError, RecursionError) as error:
        raise InvalidInput(f"{where}: not JSON ({error}); one JSON object a line is needed") from error
    if not isinstance(row, dict):
        raise InvalidInput(f"{where}: a {type(row).__name__}; one JSON object a line is needed")
    return row


def line_runs(start: int, name: str, rows: int, lines: list[int] | None) -> list[tuple[int, str, int]]:
    """Places of the rows of one file (see :class:`Table`); without lines, rows are counted."""
    if lines is None:
        return [(start, name, 1)] if rows else []
    return [(start + i, name, line) for i, line in enumerate(lines) if i == 0 or line != lines[i - 1] + 1]
