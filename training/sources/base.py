"""What a loader is, what it gives, and how it is written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from router.errors import InvalidInput
from training.outcomes import REQUIRED, check_outcomes, match_prompts
from training.prompts import complete_prompts
from training.tables import Table, write_tables

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Converted:
    """Canonical tables of one data set.

    ``skipped`` counts the rows that were left out, by reason.
    """

    prompts: pd.DataFrame
    outcomes: pd.DataFrame
    skipped: Mapping[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Collector:
    """Rows as a loader finds them: a prompt once, an outcome for each model, and what was skipped."""

    source: str
    licence: str
    prompts: dict[str, Row] = field(default_factory=dict)
    outcomes: list[Row] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    def prompt(self, prompt_id: str, turns: list[Row], **columns: Any) -> None:
        """Add a prompt; the first of several with one id stands."""
        row = {"source": self.source, "prompt_id": prompt_id, "turns": turns, "licence": self.licence, **columns}
        self.prompts.setdefault(prompt_id, row)

    def outcome(self, prompt_id: str, model: str, score_kind: str, score: float, cost_usd: float | None = None) -> None:
        """Add one score."""
        values = (self.source, prompt_id, model, score_kind, score)
        self.outcomes.append({**dict(zip(REQUIRED, values, strict=True)), "cost_usd": cost_usd})

    def converted(self, path: Path) -> Converted:
        """Checked tables.

        Raises
        ------
        InvalidInput
            If no row could be used.
        """
        if not self.prompts:
            reasons = ", ".join(f"{count} {reason}" for reason, count in self.skipped.items())
            raise InvalidInput(f"{path}: no row can be used ({reasons or 'the file has none'})")
        prompts = pd.DataFrame(list(self.prompts.values()), dtype=object)
        outcomes = pd.DataFrame(self.outcomes, columns=[*REQUIRED, "cost_usd"])
        checked = check_outcomes(Table(outcomes, ((0, "converted outcomes", 1),)))
        completed = complete_prompts(Table(prompts, ((0, "converted prompts", 1),)))
        match_prompts(checked, completed)
        return Converted(completed, checked, dict(self.skipped))


@dataclass(frozen=True, slots=True)
class Source:
    """A public data set that can be converted.

    Parameters
    ----------
    name
        How it is named on the command line.
    title, url, licence
        What it is, where users get it, and under which terms.
    columns
        Columns the loader reads, and what they hold.
    scores
        What the score means, and how it was put into [0, 1].
    read
        From a file to canonical tables.
    """

    name: str
    title: str
    url: str
    licence: str
    columns: Mapping[str, str]
    scores: str
    read: Callable[[Path], Converted]


def write_converted(converted: Converted, folder: Path) -> list[Path]:
    """Write ``prompts.parquet`` and ``outcomes.parquet``, both or none."""
    return write_tables(folder, {"prompts": converted.prompts, "outcomes": converted.outcomes})
