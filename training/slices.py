"""Parts of the evaluated rows (all, a source, a family, a capability) and the metrics of a policy on such a part."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training import metrics
from training.baselines import Policy
from training.bootstrap import Array, Statistic

SLICES: Final = ("pooled", "source", "family", "capability")
BASELINE_FAMILY: Final = "English"
"""What other families are compared with; a family of its own, apart from Germanic."""


def slices_of(rows: pd.DataFrame) -> Iterator[tuple[str, str, NDArray[np.intp]]]:
    """Kind, name and row numbers of every slice: all, all but English, then each source, family and capability."""
    everything = np.arange(len(rows))
    yield "pooled", "all", everything
    other = everything[(rows["family"] != BASELINE_FAMILY).to_numpy()]
    if 0 < other.size < everything.size:
        yield "pooled", f"all but {BASELINE_FAMILY}", other
    for kind in SLICES[1:]:
        for name in sorted(rows[kind].astype(str).unique(), key=lambda n: (n != BASELINE_FAMILY, n)):
            yield kind, name, everything[(rows[kind].astype(str) == name).to_numpy()]


def policy_statistics(
    rows: pd.DataFrame, policy: Policy, members: NDArray[np.intp], group: NDArray[np.intp], margin: float, bins: int
) -> Iterator[tuple[str, Statistic]]:
    """The metrics of one policy on one slice, in the order of :data:`training.evaluate.METRICS`.

    ``rows`` are those of the slice, ``members`` their numbers among all rows, by which the arrays of the policy go, and ``group`` their
    groups by number.
    """
    weak, strong = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
    if policy.need is not None:
        need = policy.need[members]
        yield "apgr", metrics.apgr_statistic(weak, strong, need, group)
        yield "auc", metrics.auc_statistic(metrics.adds_value(weak, strong, margin), need, group)
    if policy.probability is not None:
        yield "ece", metrics.ece_statistic(policy.probability[members], target_of(rows, margin), group, bins)
    if policy.chosen is not None:
        chosen = policy.chosen[members]
        yield "quality", metrics.mean_statistic(metrics.quality_of(weak, strong, chosen), group)
        yield "quality_vs_strong", metrics.relative_quality_statistic(weak, strong, chosen, group)
        yield "quality_retention", metrics.retention_statistic(weak, strong, chosen, group)
        yield "cost_savings", metrics.savings_statistic(rows["weak_cost_usd"], rows["strong_cost_usd"], chosen, group)
        yield "strong_share", metrics.mean_statistic(chosen, group)
        yield "misroute", metrics.misroute_statistic(weak, strong, chosen, group, margin)
        yield "routing_accuracy", metrics.accuracy_statistic(weak, strong, chosen, group, margin)


def target_of(rows: pd.DataFrame, margin: float) -> Array:
    """What a requirement is meant to predict, shape (n,): the column ``target``, or whether the strong model adds value."""
    if "target" in rows:
        return np.asarray(rows["target"], dtype=np.float64)
    return metrics.adds_value(rows["weak"], rows["strong"], margin).astype(np.float64)
