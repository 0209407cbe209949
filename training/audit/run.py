"""One audit from a folder to a result: read the labels, run every check, hold the figures against the limits."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from training.audit.agreement import check_judges
from training.audit.coverage import check_coverage
from training.audit.distribution import check_distribution
from training.audit.kinds import check_kinds
from training.audit.labels import Labels, Say, read_labels
from training.audit.length import check_length
from training.audit.measures import MEASURES
from training.audit.orders import check_orders
from training.audit.overlap import check_overlap
from training.audit.slices import AuditOptions, Findings, estimates_table
from training.audit.thresholds import Thresholds, judge_thresholds
from training.recipe import Pair

FAILED: Final = 3
"""Exit code where a limit of the user's is not kept."""


@dataclass(frozen=True)
class AuditResult:
    """Everything an audit found.

    Attributes
    ----------
    about
        What was audited and how.
    estimates
        Figures, one row a measure, subject (judge, pair of kinds) and slice; columns of :data:`training.audit.slices.COLUMNS`.
    thresholds
        One row a limit and figure, with ``verdict`` and ``fails``.
    tables
        Further tables by name.
    notes
        Sentences on what is missing, left out or doubtful.
    """

    about: Mapping[str, Any]
    estimates: pd.DataFrame
    thresholds: Sequence[Mapping[str, Any]]
    tables: Mapping[str, pd.DataFrame]
    notes: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether a limit of the user's is not kept."""
        return any(row["fails"] for row in self.thresholds)

    def with_about(self, **more: Any) -> AuditResult:
        """The result with more said about it."""
        return replace(self, about={**self.about, **more})


def audit_folder(
    folder: Path,
    *,
    thresholds: Thresholds | None = None,
    pairs: tuple[Pair, ...] = (),
    options: AuditOptions | None = None,
    say: Say = print,
) -> AuditResult:
    """Read a folder of labels and audit it; see :func:`audit`."""
    options = options or AuditOptions()
    return audit(read_labels(folder, options, say), thresholds=thresholds, pairs=pairs, options=options, say=say)


def audit(
    labels: Labels,
    *,
    thresholds: Thresholds | None = None,
    pairs: tuple[Pair, ...] = (),
    options: AuditOptions | None = None,
    say: Say = print,
) -> AuditResult:
    """Run every check on labels.

    Parameters
    ----------
    labels
        From :func:`training.audit.labels.read_labels`.
    thresholds
        The user's limits; without them nothing can fail.
    pairs
        Weak and strong models whose labels are described; by default those of the labelling run, or of sources with two models.
    options
        How to measure.
    say
        Told the name of each step.
    """
    options = options or AuditOptions()
    checks: dict[str, Callable[[], Findings]] = {
        "order of the answers": lambda: check_orders(labels, options),
        "length": lambda: check_length(labels, options),
        "judges and programs": lambda: check_judges(labels, options),
        "kinds of score": lambda: check_kinds(labels, options, say),
        "coverage": lambda: check_coverage(labels, options),
        "duplicates and leakage": lambda: check_overlap(labels, options),
        "labels": lambda: check_distribution(labels, pairs, options),
    }
    found = Findings(notes=list(labels.notes))
    for number, (name, check) in enumerate(checks.items(), start=1):
        say(f"check {number} of {len(checks)}: {name}")
        found.add(check())
    found.absent(sorted(set(MEASURES) - {row["measure"] for row in found.rows}), "nothing here to take it from")
    estimates = estimates_table(found.rows)
    return AuditResult(_about(labels, options), estimates, judge_thresholds(estimates, thresholds), found.tables, tuple(found.notes))


def _about(labels: Labels, options: AuditOptions) -> dict[str, Any]:
    prompts, outcomes = labels.prompts, labels.outcomes
    return {
        "labels": labels.folder.resolve().name,
        "prompts": len(prompts),
        "groups": int(prompts["split_group"].nunique()),
        "sources": sorted(prompts["source"].unique()),
        "languages": int(prompts["language"].nunique()),
        "families": int(prompts["family"].nunique()),
        "outcomes": len(outcomes),
        "models": int(outcomes["model"].nunique()),
        "score_kinds": int(outcomes["score_kind"].nunique()),
        "answers": None if labels.answers is None else len(labels.answers),
        "verdicts": None if labels.verdicts is None else len(labels.verdicts),
        "judges": [] if labels.verdicts is None else sorted(labels.verdicts["judge"].unique()),
        "created": dt.datetime.now(dt.UTC).isoformat(timespec="seconds"),
        "options": asdict(options),
    }
