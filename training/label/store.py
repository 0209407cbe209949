"""Append-only JSONL that survives a crash: every line is on disk before the next is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from router.errors import LabelError
from router.files.atomic import errors_name, write_atomically

Key = tuple[str, ...]


class JsonlStore:
    """Records keyed by some of their fields; of two with one key the later counts."""

    def __init__(self, path: Path, key_fields: tuple[str, ...], wrong: Callable[[Mapping[str, Any]], str | None] | None = None) -> None:
        """Read a file; ``wrong`` names a field beside the key that a record lacks or that holds the wrong kind."""
        self.path = path
        self.key_fields = key_fields
        self._wrong = wrong or (lambda record: None)
        self.records: dict[Key, dict[str, Any]] = {}
        self.torn_lines = 0
        self._needs_newline = False
        self._load()

    def _load(self) -> None:
        if not self.path.exists():
            return
        raw = self.path.read_bytes()
        lines = raw.split(b"\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line.decode("utf-8"))
            except (ValueError, RecursionError) as error:
                if number != len(lines):  # only a crash in mid-write can tear a line, and only the last
                    raise self._damaged(number, str(error)) from error
                self.torn_lines += 1
                continue
            if not isinstance(record, dict):
                raise self._damaged(number, "not a JSON object")
            field = next((name for name in self.key_fields if not isinstance(record.get(name), str)), None) or self._wrong(record)
            if field is not None:
                raise self._damaged(number, f"{field!r} is missing or not what it should be")
            self.records[self.key(record)] = record
        if self.torn_lines:
            # Cut the torn tail off, so that the next record starts on a line of its own.
            with self.path.open("r+b") as file:
                file.truncate(len(raw) - len(lines[-1]))
        else:
            self._needs_newline = bool(raw) and not raw.endswith(b"\n")

    def _damaged(self, line: int, why: str) -> LabelError:
        return LabelError(f"{self.path.name}:{line} is damaged ({why}); delete that line and run again")

    def key(self, record: Mapping[str, Any]) -> Key:
        """Return the identity of a record."""
        return tuple(str(record[name]) for name in self.key_fields)

    def __contains__(self, key: Key) -> bool:
        return key in self.records

    def __len__(self) -> int:
        return len(self.records)

    def get(self, key: Key) -> dict[str, Any] | None:
        """Return a record or None."""
        return self.records.get(key)

    def append(self, record: dict[str, Any]) -> None:
        """Write one record through to the disk."""
        line = json.dumps(record, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"
        with errors_name(self.path), self.path.open("ab") as file:
            file.write(b"\n" + line if self._needs_newline else line)
            file.flush()
            os.fsync(file.fileno())
        self._needs_newline = False
        self.records[self.key(record)] = record


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records atomically, one a line."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(path, "".join(lines).encode("utf-8", "backslashreplace"))
