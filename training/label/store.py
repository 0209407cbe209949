"""Append-only JSONL that survives a crash: every line is on disk before the next is asked for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from router.errors import LabelError
from router.files.atomic import write_atomically

Key = tuple[str, ...]


class JsonlStore:
    """Records keyed by some of their fields; of two with one key the later counts."""

    def __init__(self, path: Path, key_fields: tuple[str, ...]) -> None:
        self.path = path
        self.key_fields = key_fields
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
                self.records[self.key(record)] = record
            except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError) as error:
                if number != len(lines):  # only a crash in mid-write can tear a line, and only the last
                    raise LabelError(f"{self.path.name}:{number} is damaged ({error}); delete that line and run again") from error
                self.torn_lines += 1
        if self.torn_lines:
            # Cut the torn tail off, so that the next record starts on a line of its own.
            with self.path.open("r+b") as file:
                file.truncate(len(raw) - len(lines[-1]))
        else:
            self._needs_newline = bool(raw) and not raw.endswith(b"\n")

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
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("ab") as file:
            file.write(b"\n" + line if self._needs_newline else line)
            file.flush()
            os.fsync(file.fileno())
        self._needs_newline = False
        self.records[self.key(record)] = record


def write_jsonl(path: Path, records: Iterable[Mapping[str, Any]]) -> None:
    """Write records atomically, one a line."""
    lines = (json.dumps(record, ensure_ascii=False) + "\n" for record in records)
    write_atomically(path, "".join(lines).encode("utf-8", "backslashreplace"))
