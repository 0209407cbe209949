"""An audit as people read it: figures as text, tables of slices, verdicts in words. No HTML here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from training.audit.measures import MEASURES, Limit, Measure
from training.audit.run import AuditResult
from training.audit.slices import ALL

DASH: Final = "–"
# Measure whose interval is drawn beside the names of the slices, the first one that has figures.
LEADS: Final[Mapping[str, tuple[str, ...]]] = {
    "judge": ("swap_consistency", "verdict_ties"),
    "length": ("length_slope", "length_slope_checked"),
    "agreement": ("judge_picks_right", "kinds_alpha"),
    "coverage": ("answers_cut", "scores_missing"),
    "overlap": ("undeclared_duplicates",),
    "labels": ("adds_value", "no_information"),
}
PAIRWISE: Final = ("kinds_spearman", "kinds_within_prompt", "kinds_interaction")
_HEADLINES: Final = (
    "swap_consistency", "length_slope_controlled", "length_slope", "judge_picks_right", "kinds_alpha", "answers_cut", "answers_unreadable",
    "undeclared_duplicates", "no_information", "adds_value",
)  # fmt: skip
_HEADLINE_COUNT: Final = 6


@dataclass(frozen=True, slots=True)
class Cell:
    """A figure: its value, its interval, why it is missing or rough, and what it rests on."""

    value: str
    interval: str = ""
    note: str = ""
    basis: str = ""


@dataclass(frozen=True, slots=True)
class Track:
    """Where a figure and its interval lie within the range of its column, as shares of it; None where there is none."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class SliceRow:
    """One slice in a table."""

    name: str
    kind: str
    rows: str
    track: Track
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class SliceTable:
    """Figures of one subject (a judge) by slice.

    ``lead`` is the title of the figure whose interval is drawn, empty where only one slice has one; ``reference`` is where the limit, or
    the value that means nothing, lies on the track; ``ends`` are the track's ends in words.
    """

    subject: str
    columns: tuple[str, ...]
    lead: str
    ends: tuple[str, str]
    reference: float | None
    rows: tuple[SliceRow, ...]


def number(measure: str, value: Any) -> str:
    """A value as text: per cent for a share, a sign where 0 is the middle."""
    if value is None or pd.isna(value):
        return DASH
    m = MEASURES[measure]
    if m.share:
        return f"{100 * value:.1f} %"
    return f"{value:+.3f}" if m.better == "near" else f"{value:.3f}"


def interval(measure: str, low: Any, high: Any) -> str:
    """An interval as text, empty without one."""
    if low is None or high is None or pd.isna(low) or pd.isna(high):
        return ""
    m = MEASURES[measure]
    return (
        f"{100 * low:.1f} to {100 * high:.1f}"
        if m.share
        else f"{low:+.3f} to {high:+.3f}"
        if m.better == "near"
        else f"{low:.3f} to {high:.3f}"
    )


def cell(row: Mapping[str, Any]) -> Cell:
    """A figure; below the least number of rows a share is shown as a count, which claims nothing."""
    note = str(row["note"]).removeprefix("undefined: ")
    basis = f"{int(row['n']):,} rows in {int(row['n_groups']):,} split groups"
    if note.startswith("too few rows"):
        hits = row["hits"]
        return Cell(DASH if pd.isna(hits) else f"{int(hits)} of {int(row['n'])}", basis=note)
    shown = interval(row["measure"], row["low"], row["high"])
    return Cell(number(row["measure"], row["value"]), shown, note.partition(": the interval")[0], basis)


def limit_text(measure: str, limit: Limit) -> str:
    """A limit in words."""
    low, high = limit.at_least, limit.at_most
    if low is not None and high is not None:
        return f"{_bare(measure, low)} to {_bare(measure, high)}"
    return f"at least {_bare(measure, low)}" if low is not None else f"at most {_bare(measure, high)}"


def _bare(measure: str, value: float | None) -> str:
    return f"{100 * (value or 0):g} %" if MEASURES[measure].share else f"{value or 0:g}"


def headlines(result: AuditResult) -> list[tuple[Measure, Cell, str]]:
    """The most telling overall figures that there are, with the subject they are about."""
    overall = result.estimates[(result.estimates["slice_kind"] == ALL) & result.estimates["value"].notna()]
    first = overall.drop_duplicates("measure").set_index("measure", drop=False).to_dict("index")
    found = [(MEASURES[name], cell(first[name]), str(first[name]["subject"])) for name in _HEADLINES if name in first]
    return found[:_HEADLINE_COUNT]


def threshold_rows(result: AuditResult) -> list[dict[str, Any]]:
    """Verdicts with every number as text."""
    return [
        {
            "verdict": row["verdict"],
            "fails": row["fails"],
            "title": MEASURES[row["measure"]].title,
            "name": row["measure"],
            "where": "overall" if row["slice"] == ALL else row["slice"],
            "subject": row["subject"],
            "value": number(row["measure"], row["value"]),
            "interval": interval(row["measure"], row["low"], row["high"]),
            "limit": limit_text(row["measure"], Limit(row["at_least"], row["at_most"])),
            "origin": "audit.toml" if row["limit_from"] == "file" else "default",
            "note": row["note"],
        }
        for row in result.thresholds
    ]


def verdict_counts(result: AuditResult) -> dict[str, int]:
    """How many limits have each verdict."""
    counts = pd.Series([row["verdict"] for row in result.thresholds], dtype=object).value_counts()
    return {str(name): int(count) for name, count in counts.items()}


def absences(result: AuditResult, section: str) -> list[tuple[str, list[str]]]:
    """What cannot be measured in a section: the reason, and the titles it holds for."""
    rows = result.estimates[(result.estimates["section"] == section) & result.estimates["note"].str.startswith("not measurable")]
    reasons: dict[str, list[str]] = {}
    for row in rows.to_dict("records"):
        titles = reasons.setdefault(str(row["note"]).removeprefix("not measurable: "), [])
        if (title := MEASURES[row["measure"]].title) not in titles:
            titles.append(title)
    return list(reasons.items())


def slice_tables(result: AuditResult, section: str) -> list[SliceTable]:
    """Figures of a section by slice, one table a judge; pairs of kinds of score have tables of their own."""
    figures = result.estimates[result.estimates["section"] == section]
    figures = figures[~figures["measure"].isin(PAIRWISE) & ~figures["note"].str.startswith("not measurable")]
    figures = figures[~((figures["measure"] == "self_preference") & figures["subject"].str.contains(" on "))]
    subjects = [s for s in figures["subject"].unique() if s] or [""]
    one_source = len(result.about["sources"]) == 1
    tables = [_slice_table(figures[figures["subject"].isin([subject, ""])], section, subject, one_source) for subject in subjects]
    return [table for table in tables if table.rows]


def _slice_table(figures: pd.DataFrame, section: str, subject: str, one_source: bool) -> SliceTable:
    figures = figures[(figures["slice_kind"] != "source") | (not one_source)]
    parts = set(figures.loc[figures["slice_kind"] != ALL, "measure"])
    # What is known of the whole only would be an empty column; it stands among the limits.
    names = [name for name in MEASURES if name in (parts or set(figures["measure"]))]
    figures = figures[figures["measure"].isin(names)]
    lead = _lead(figures, section)
    low, high, reference = _range(lead, figures[figures["measure"] == lead]) if lead else (0.0, 1.0, None)
    rows = []
    for (kind, name), part in figures.groupby(["slice_kind", "slice"], sort=False):
        by_measure = {row["measure"]: row for row in part.to_dict("records")}
        cells = tuple(cell(by_measure[m]) if m in by_measure else Cell("") for m in names)
        track = _track(by_measure.get(lead), low, high)
        rows.append(SliceRow("all" if name == ALL else str(name), str(kind), _row_counts(part["n"]), track, cells))
    order = {"all": 0, "family": 1, "source": 2}
    rows.sort(key=lambda row: (order[row.kind], row.kind == "family" and row.name != "English", row.name))
    titles = tuple(MEASURES[name].title for name in names)
    ends = (_bare_end(lead, low), _bare_end(lead, high)) if lead else ("", "")
    return SliceTable(subject, titles, MEASURES[lead].title if lead else "", ends, reference, tuple(rows))


def _lead(figures: pd.DataFrame, section: str) -> str:
    """The measure to draw: of the section's candidates the one with most figures, if more than one slice has one."""
    counts = {name: int(figures.loc[figures["measure"] == name, "value"].notna().sum()) for name in LEADS[section]}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] > 1 else ""


def _row_counts(n: pd.Series[Any]) -> str:
    least, most = int(n.min()), int(n.max())
    return f"{most:,}" if least == most else f"{least:,}–{most:,}"


def _range(lead: str, figures: pd.DataFrame) -> tuple[float, float, float | None]:
    """Ends of the track, and where on it the limit (or what means nothing) stands."""
    m = MEASURES[lead]
    limit = m.default
    mark = (
        0.0
        if m.better == "near"
        else None
        if limit is None or m.better == "between"
        else (limit.at_least if limit.at_least is not None else limit.at_most)
    )
    seen = figures[["value", "low", "high"]].to_numpy(dtype=float).ravel().tolist() + ([] if mark is None else [mark])
    finite = [v for v in seen if v == v]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if m.share:
        low, high = min(low, 0.0), min(1.0, high * 1.05) if high > 0 else 1.0
    if high - low < 1e-9:
        low, high = low - 0.5, high + 0.5
    return low, high, None if mark is None else (mark - low) / (high - low)


def _track(row: Mapping[str, Any] | None, low: float, high: float) -> Track:
    def place(value: Any) -> float | None:
        return None if value is None or pd.isna(value) else min(1.0, max(0.0, (float(value) - low) / (high - low)))

    return Track(None, None, None) if row is None else Track(place(row["value"]), place(row["low"]), place(row["high"]))


def _bare_end(measure: str, value: float) -> str:
    return f"{100 * value:.0f} %" if MEASURES[measure].share else f"{value:+.2f}" if MEASURES[measure].better == "near" else f"{value:.2f}"


def kind_matrices(result: AuditResult) -> list[dict[str, Any]]:
    """Agreement of kinds of score by source: kinds in rows and columns, on the same prompt above the diagonal, ranks overall below."""
    pairs = result.estimates[result.estimates["measure"].isin(PAIRWISE) & (result.estimates["slice_kind"] == "source")]
    matrices = []
    known = result.tables["score_kinds"]
    for source, part in pairs.groupby("slice", sort=True):
        cells = {(row["subject"], row["measure"]): row for row in part.to_dict("records")}
        kinds = sorted(known.loc[known["source"] == source, "score_kind"])
        rows = [[_matrix_cell(cells, kinds, i, j) for j in range(len(kinds))] for i in range(len(kinds))]
        matrices.append({"source": source, "kinds": kinds, "rows": rows})
    return matrices


def _matrix_cell(cells: Mapping[tuple[Any, Any], Mapping[str, Any]], kinds: Sequence[str], i: int, j: int) -> dict[str, Any]:
    measure = "kinds_within_prompt" if i < j else "kinds_spearman"
    row = cells.get((" and ".join(sorted((kinds[i], kinds[j]))), measure))
    if i == j or row is None:
        return {"text": "", "value": None, "title": ""}
    value = None if pd.isna(row["value"]) else float(row["value"])
    about = f"{MEASURES[measure].title}: {kinds[i]} and {kinds[j]}, {int(row['n']):,} rows{'; ' + row['note'] if row['note'] else ''}"
    return {"text": DASH if value is None else f"{value:.2f}", "value": value, "title": about}


def self_preferences(result: AuditResult) -> list[dict[str, Any]]:
    """What a judge gives its own model beyond the other kinds of score, by source."""
    rows = result.estimates[(result.estimates["measure"] == "self_preference") & (result.estimates["slice_kind"] == "source")]
    return [
        {"source": row["slice"], "subject": row["subject"], "n": row["n"], "cell": cell(row)}
        for row in rows[rows["subject"].str.contains(" on ")].to_dict("records")
    ]
