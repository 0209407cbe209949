"""From rows of labels to figures: overall, by language family and by source, each with its interval or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput
from training.audit.measures import MEASURES
from training.bootstrap import MIN_ROWS, Estimate, Statistic, estimate, group_index
from training.metrics import mean_statistic

Groups = NDArray[np.intp]
SLICES: Final = ("all", "family", "source")
ALL: Final = "all"
COLUMNS: Final = ("section", "measure", "subject", "slice_kind", "slice", "value", "low", "high", "hits", "n", "n_groups", "note")


@dataclass(frozen=True, slots=True)
class AuditOptions:
    """How an audit measures.

    Parameters
    ----------
    margin
        A strong model adds value if it is better by more than this.
    n_bootstrap, seed
        Resamples of split groups for the intervals, and what decides them.
    min_rows
        Below this many rows a slice has no figure.
    similarity
        Jaccard similarity from which two prompts are near duplicates.
    """

    margin: float = 0.0
    n_bootstrap: int = 1000
    seed: int = 0
    min_rows: int = MIN_ROWS
    similarity: float = 0.8

    def __post_init__(self) -> None:
        if not 0 < self.similarity <= 1:
            raise InvalidInput(f"similarity is {self.similarity!r}: a number above 0, up to 1, was expected")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A statistic and, for a share, how many rows it counts."""

    statistic: Statistic
    hits: int | None = None


@dataclass
class Findings:
    """What a check found.

    Attributes
    ----------
    rows
        Figures, with the keys of :data:`COLUMNS`. ``value`` is None where ``note`` says why there is none.
    tables
        Further tables by name.
    notes
        Sentences a reader should know.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    tables: dict[str, pd.DataFrame] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, other: Findings) -> None:
        """Append what another check found."""
        self.rows += other.rows
        self.tables |= other.tables
        self.notes += other.notes

    def absent(self, measures: Iterable[str], why: str, subject: str = "") -> None:
        """Say of measures that they cannot be had from these labels."""
        self.rows += [_row(name, subject, "all", ALL, n=0, n_groups=0, note=f"not measurable: {why}") for name in measures]


def share(hit: ArrayLike, groups: Groups) -> Quantity:
    """Share of rows where ``hit`` is true."""
    found = np.asarray(hit, dtype=bool)
    return Quantity(mean_statistic(found.astype(float), groups), int(found.sum()))


def mean(values: ArrayLike, groups: Groups) -> Quantity:
    """Mean over rows."""
    return Quantity(mean_statistic(values, groups))


def by_slice(
    frame: pd.DataFrame,
    quantities: Callable[[pd.DataFrame, Groups], Mapping[str, Quantity]],
    options: AuditOptions,
    *,
    subject: str = "",
    kinds: Sequence[str] = SLICES,
) -> list[dict[str, Any]]:
    """Figures of every slice of ``frame``, which has the columns ``family``, ``source`` and ``split_group``; one row of it is one unit."""
    rows: list[dict[str, Any]] = []
    for kind, name, part in slices(frame, kinds):
        groups = group_index(part["split_group"])
        found = quantities(part, groups)
        estimates: dict[str, Estimate] = {}
        for sampled in (True, False):
            mine = {measure: quantity.statistic for measure, quantity in found.items() if MEASURES[measure].sampled == sampled}
            resamples, least = (options.n_bootstrap, options.min_rows) if sampled else (0, 1)
            estimates |= estimate(mine, groups, n_bootstrap=resamples, seed=options.seed, min_rows=least)
        for measure, e in estimates.items():
            low, high = _interval(e, found[measure].hits)
            known = {"value": e.value, "low": low, "high": high, "hits": found[measure].hits}
            note = e.note if MEASURES[measure].sampled or e.value is None else ""
            rows.append(_row(measure, subject, kind, name, n=e.n, n_groups=e.n_groups, note=note, **known))
    return rows


def _interval(e: Estimate, hits: int | None) -> tuple[float | None, float | None]:
    """The interval of an estimate. Where none or all of the rows count, every resample says the same: the exact one stands in.

    Clopper and Pearson 1934, with a split group as one trial, since its rows stand or fall together.
    """
    if hits not in (0, e.n) or e.low is None:
        return e.low, e.high
    unseen = 1 - 0.025 ** (1 / e.n_groups)
    return (0.0, unseen) if hits == 0 else (1 - unseen, 1.0)


def slices(frame: pd.DataFrame, kinds: Sequence[str] = SLICES) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """Kind, name and rows of every slice that has rows; English leads the families."""
    if not len(frame):
        return
    for kind in kinds:
        if kind == "all":
            yield kind, ALL, frame
            continue
        parts = {str(name): part for name, part in frame.groupby(kind, sort=True)}
        for name in sorted(parts, key=lambda name: (name != "English", name)):
            yield kind, name, parts[name]


def _row(measure: str, subject: str, kind: str, name: str, **known: Any) -> dict[str, Any]:
    row = {"section": MEASURES[measure].section, "measure": measure, "subject": subject, "slice_kind": kind, "slice": name}
    return dict.fromkeys(COLUMNS) | row | known


def counted(measure: str, hits: int, n: int) -> dict[str, Any]:
    """A share of a whole that is no sample: it has no interval, and no number of rows is too few."""
    return _row(
        measure,
        "",
        "all",
        ALL,
        value=hits / n if n else None,
        hits=hits,
        n=n,
        n_groups=n,
        note="" if n else "not measurable: nothing to count",
    )


def estimates_table(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The figures as a table."""
    return pd.DataFrame(list(rows), columns=list(COLUMNS)).astype({"value": float, "low": float, "high": float, "hits": "Int64"})
