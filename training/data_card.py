"""What an evaluation ran on, as tables: sources, and families by capability."""

from __future__ import annotations

from typing import Any

import pandas as pd

from training.slices import BASELINE_FAMILY


def source_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a source: prompts, groups, near duplicates, languages, families, kinds of score, mean scores, licences.

    ``near_duplicates`` is None where they were not looked for.
    """
    records = []
    for source, part in rows.groupby("source", sort=True):
        repeated = int(part["near_duplicate"].sum()) if "near_duplicate" in part else None
        records.append(
            {
                "source": source,
                "prompts": len(part),
                "groups": part["group"].nunique(),
                "near_duplicates": repeated,
                "languages": part["language"].nunique(),
                "families": part["family"].nunique(),
                "score_kind": _listed(part, "score_kind"),
                "weak_mean": float(part["weak"].mean()),
                "strong_mean": float(part["strong"].mean()),
                "strong_adds_value": float((part["strong"] > part["weak"]).mean()),
                "licence": _listed(part, "licence") or "not said",
            }
        )
    return pd.DataFrame(records)


def family_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a family, English first: its languages, its prompts, and how many exercise each capability (a column each)."""
    counts = pd.crosstab(rows["family"].astype(str), rows["capability"].astype(str))
    records: list[dict[str, Any]] = []
    for family in sorted(counts.index, key=lambda name: (name != BASELINE_FAMILY, name)):
        part = rows[rows["family"] == family]
        languages = ", ".join(sorted(part["language"].astype(str).unique()))
        records.append({"family": family, "languages": languages, "prompts": len(part), **counts.loc[family].to_dict()})
    return pd.DataFrame(records)


def _listed(part: pd.DataFrame, column: str) -> str:
    return ", ".join(sorted(part[column].dropna().astype(str).unique())) if column in part else ""
