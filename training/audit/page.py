"""The HTML card of an audit: one file, nothing loaded from elsewhere, readable on a phone, in the dark and on paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

import training.report
from training.audit import view
from training.audit.measures import MEASURES, SECTIONS
from training.audit.orders import OUTCOMES
from training.audit.run import AuditResult

_HERE: Final = Path(__file__).parent
_STYLES: Final = (Path(training.report.__file__).with_name("page.css"), _HERE / "card.css")
_SHOWN: Final = 25
_LABELS: Final = ("strong adds value", "alike within the margin", "weak better")


def render_card(result: AuditResult) -> str:
    """The whole page as text."""
    environment = Environment(
        loader=FileSystemLoader(_HERE), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["count"] = lambda value: f"{int(value):,}"
    return environment.get_template("card.html.j2").render(
        about=result.about,
        style=Markup("\n".join(path.read_text(encoding="utf-8") for path in _STYLES)),  # noqa: S704 - our own files
        verdicts=view.verdict_counts(result),
        failed=result.failed,
        limits=view.threshold_rows(result),
        notes=result.notes,
        headlines=view.headlines(result),
        sections=[_section(result, key, title) for key, title in SECTIONS.items()],
        orders=_stacks(result.tables.get("verdict_orders"), OUTCOMES, "judge"),
        order_titles=OUTCOMES,
        lengths=_length_plots(result.tables.get("length_bins")),
        matrices=view.kind_matrices(result),
        self_preferences=view.self_preferences(result),
        labels=_stacks(_label_shares(result), _LABELS, "pair"),
        label_titles=_LABELS,
        tables={name: _records(result.tables.get(name)) for name in ("graders", "answers_by_model", "pairs", "score_kinds", "families")},
        missing=_most_missing(result.tables.get("models")),
        duplicates=_duplicates(result.tables.get("duplicates")),
        shown=_SHOWN,
    )


def _section(result: AuditResult, key: str, title: str) -> dict[str, Any]:
    return {
        "key": key,
        "title": title,
        "tables": view.slice_tables(result, key),
        "absent": view.absences(result, key),
        "meanings": [(m.title, name, m.meaning) for name, m in MEASURES.items() if m.section == key],
    }


def _records(table: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Rows of a table with None for what is missing."""
    if table is None:
        return []
    return [{str(k): None if isinstance(v, float) and np.isnan(v) else v for k, v in row.items()} for row in table.to_dict("records")]


def _stacks(table: pd.DataFrame | None, parts: tuple[str, ...], by: str) -> list[dict[str, Any]]:
    """Bars of shares by slice, overall first; sources only where there are several."""
    if table is None or table.empty:
        return []
    sources = table.loc[table["slice_kind"] == "source", "slice"].nunique()
    stacks = []
    for name, part in table.groupby(by, sort=True):
        shown = part if sources > 1 else part[part["slice_kind"] != "source"]
        rows = [
            {
                "name": row["slice"], "kind": row["slice_kind"], "n": int(row["n"]),
                "parts": [{"count": int(row[p]), "share": row[p] / row["n"]} for p in parts],
            }
            for row in shown.to_dict("records")
        ]  # fmt: skip
        stacks.append({"subject": name, "rows": rows})
    return stacks


def _label_shares(result: AuditResult) -> pd.DataFrame:
    """Counts of what the labels say, by slice."""
    wanted = result.estimates[result.estimates["measure"].isin(["adds_value", "weak_better"]) & (result.estimates["n"] > 0)]
    rows = []
    for (kind, name), part in wanted.groupby(["slice_kind", "slice"], sort=False):
        hits, n = part.set_index("measure")["hits"], int(part["n"].iloc[0])
        adds, loses = int(hits["adds_value"]), int(hits["weak_better"])
        rows.append(
            {"slice_kind": kind, "slice": name, _LABELS[0]: adds, _LABELS[1]: n - adds - loses, _LABELS[2]: loses, "n": n, "pair": ""}
        )
    return pd.DataFrame(rows)


def _length_plots(bins: pd.DataFrame | None) -> list[dict[str, Any]]:
    """Points of the plot of wins over length, in per cent of its width and height."""
    if bins is None or bins.empty:
        return []
    edge = max(1.0, float(np.ceil(bins["log2_ratio"].abs().max())))
    ticks = [t for t in (-8, -4, -2, -1, 0, 1, 2, 4, 8) if abs(t) <= edge]
    plots = []
    for judge, part in bins.groupby("judge", sort=True):
        points = [
            {"x": 50 + 50 * row["log2_ratio"] / edge, "y": 100 * (1 - row["wins"]), "wins": row["wins"], "n": int(row["n"])}
            for row in part.to_dict("records")
        ]
        plots.append({"judge": judge, "points": points, "ticks": [{"x": 50 + 50 * t / edge, "text": _times(t)} for t in ticks]})
    return plots


def _times(log2_ratio: int) -> str:
    return "equal" if log2_ratio == 0 else f"{2**log2_ratio}×" if log2_ratio > 0 else f"1/{2**-log2_ratio}"


def _most_missing(models: pd.DataFrame | None) -> list[dict[str, Any]]:
    if models is None:
        return []
    table = models.assign(share=models["without_score"] / models["prompts"]).query("without_score > 0")
    return _records(table.sort_values(["share", "source", "model"], ascending=[False, True, True]))


def _duplicates(pairs: pd.DataFrame | None) -> Mapping[str, Any]:
    """Pairs of near duplicates counted by sources, and the first that no declared group joins."""
    if pairs is None or pairs.empty:
        return {"total": 0, "sources": [], "pairs": [], "undeclared": 0}
    counts = pairs.groupby(["source", "source_other"]).agg(
        pairs=("exact", "size"), exact=("exact", "sum"), undeclared=("declared", lambda d: int((~d).sum()))
    )
    undeclared = pairs[~pairs["declared"]]
    return {
        "total": len(pairs),
        "undeclared": len(undeclared),
        "sources": _records(counts.reset_index().sort_values("pairs", ascending=False)),
        "pairs": _records(undeclared.head(_SHOWN)),
    }
