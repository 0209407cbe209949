"""Every language family against English: the difference of a metric, with its interval from resamples that both share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training.baselines import Policy
from training.bootstrap import (
    FEW_GROUPS,
    Estimate,
    Statistic,
    difference,
    group_index,
    remembered,
    resampled,
    resampling_units,
    summarised,
    within,
)
from training.slices import BASELINE_FAMILY, policy_statistics

if TYPE_CHECKING:
    from training.evaluate import EvaluationOptions

AGAINST_METRICS: Final = ("apgr", "quality_vs_strong", "routing_accuracy")
_COLUMNS: Final = ("family", "metric", "value", "low", "high", "n", "n_groups", "note")


def against_english(rows: pd.DataFrame, policy: Policy, options: EvaluationOptions) -> pd.DataFrame:
    """One row a (family, metric): family minus English, its interval, rows of the family, and the reason where there is no figure.

    A split group often holds a prompt in both languages. Whole groups are resampled from all rows together, so that what a hard question
    does to both cancels.
    """
    number, group = group_index(rows["group"]), resampling_units(rows["group"])
    family = rows["family"].astype(str).to_numpy()
    members = {name: np.flatnonzero(family == name) for name in sorted(set(family))}
    english = members.pop(BASELINE_FAMILY, np.empty(0, dtype=np.intp))
    missing = {name: _missing(part.size, english.size, options.min_rows) for name, part in members.items()}
    statistics: dict[tuple[str, str], Statistic] = {}
    base = _statistics(rows, policy, english, group, options) if english.size else {}
    for name in (name for name, reason in missing.items() if not reason):
        for metric, own in _statistics(rows, policy, members[name], group, options).items():
            statistics[name, metric] = difference(_says_where(own, name), _says_where(base[metric], BASELINE_FAMILY))
    samples = resampled(statistics, group, n_bootstrap=options.n_bootstrap, seed=options.seed)
    records = []
    for name, part in members.items():
        groups, fewest = _groups_in(number, part), min(_groups_in(number, part), _groups_in(number, english))
        for metric in AGAINST_METRICS:
            found = _found(statistics, samples, (name, metric), part.size, fewest, options.level) or Estimate(
                None, None, None, part.size, groups, missing[name]
            )
            records.append({"family": name, "metric": metric, **asdict(found), "n_groups": groups})
    return pd.DataFrame(records, columns=list(_COLUMNS))


def _statistics(
    rows: pd.DataFrame, policy: Policy, part: NDArray[np.intp], group: NDArray[np.intp], options: EvaluationOptions
) -> dict[str, Statistic]:
    """The metrics of one family, as functions of the counts of all groups."""
    used, own = np.unique(group[part], return_inverse=True)
    of_part = dict(policy_statistics(rows.iloc[part], policy, part, own.astype(np.intp).reshape(-1), options.margin, options.bins))
    n_groups = int(group.max()) + 1
    return {name: remembered(within(of_part[name], used, n_groups)) for name in AGAINST_METRICS}


def _found(
    statistics: Mapping[tuple[str, str], Statistic],
    samples: Mapping[tuple[str, str], NDArray[np.float64]],
    key: tuple[str, str],
    n: int,
    fewest_groups: int,
    level: float,
) -> Estimate | None:
    if key not in statistics:
        return None
    estimate = summarised(statistics[key], samples.get(key, np.empty(0)), n, level)
    if estimate.value is not None and fewest_groups < 2:
        return replace(estimate, low=None, high=None, note="no interval: all rows of the family, or of English, are of one group")
    rough = estimate.low is not None and fewest_groups < FEW_GROUPS
    return replace(estimate, note=f"only {fewest_groups} groups: the interval is rough") if rough else estimate


def _says_where(statistic: Statistic, family: str) -> Statistic:
    return replace(statistic, undefined=f"{statistic.undefined} in {family}") if statistic.undefined else statistic


def _groups_in(group: NDArray[np.intp], part: NDArray[np.intp]) -> int:
    return int(np.unique(group[part]).size)


def _missing(n: int, n_english: int, min_rows: int) -> str:
    """Why a family cannot be compared, or empty."""
    if n_english == 0:
        return f"undefined: no prompt is in {BASELINE_FAMILY}, so there is nothing to compare with"
    if n_english < min_rows:
        return f"undefined: only {n_english} prompts are in {BASELINE_FAMILY}, and at least {min_rows} are needed to compare with"
    return f"too few rows: {n}, at least {min_rows} are needed" if n < min_rows else ""
