"""What the student reads: parallel sentences and prompts, and which of them it never sees."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput


@dataclass(frozen=True)
class Texts:
    """Aligned columns. ``group``: equal means equal meaning; ``held_out``: kept from training, whole groups at a time."""

    source: NDArray[np.object_]
    group: NDArray[np.object_]
    language: NDArray[np.object_]
    text: list[str]
    held_out: NDArray[np.bool_]

    def __len__(self) -> int:
        return len(self.text)

    def where(self, mask: NDArray[np.bool_]) -> Texts:
        """The rows where the mask is true."""
        rows = np.flatnonzero(mask)
        text = [self.text[row] for row in rows]
        return Texts(self.source[rows], self.group[rows], self.language[rows], text, self.held_out[rows])


def read_parallel(path: Path, holdout: float) -> Texts:
    """Columns ``group``, ``language``, ``text`` and optionally ``source``."""
    table = _read(path, ("group", "language", "text"))
    table = table[table["text"].str.strip().str.len() > 0]
    return _texts(table, table["group"], holdout)


def read_prompts(path: Path, sources: Sequence[str], holdout: float) -> Texts:
    """User turns of the named sources, joined; repair and generation prompts of one problem share a group."""
    table = _read(path, ("source", "prompt_id", "language", "turns"))
    table = table[table["source"].isin(list(sources))].drop_duplicates(["source", "prompt_id"])
    if table.empty:
        raise InvalidInput(f"{path} has no prompts of the sources {', '.join(sources)}; set 'sources' in the parameters")
    table = table.assign(text=[user_text(turns) for turns in table["turns"]])
    table = table[table["text"].str.strip().str.len() > 0]
    return _texts(table, table["prompt_id"].map(lambda name: name.split("#", 1)[-1]), holdout)


def user_text(turns: str) -> str:
    """All user turns of a JSON list of ``{role, content}``."""
    contents = [turn.get("content") for turn in json.loads(turns) if turn.get("role") == "user"]
    return "\n\n".join(content for content in contents if isinstance(content, str))


def _read(path: Path, columns: Sequence[str]) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot read {path}: {error}") from error
    missing = [column for column in columns if column not in table]
    if missing:
        raise InvalidInput(f"{path} has no column {missing[0]!r}; needed: {', '.join(columns)}")
    return table


def _texts(table: pd.DataFrame, group: pd.Series, holdout: float) -> Texts:
    names = group.astype(str).to_numpy(object)
    # A hash, not a shuffle: the same group is held out whatever else is in the file.
    held_out = np.array([zlib.crc32(name.encode()) % 1000 < holdout * 1000 for name in names], bool)
    source = table["source"] if "source" in table else pd.Series(["parallel"] * len(table))
    columns = (source.to_numpy(object), names, table["language"].to_numpy(object))
    return Texts(*columns, table["text"].tolist(), held_out)
