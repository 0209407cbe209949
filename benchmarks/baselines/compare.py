"""APGR of every router in every source, and the paired difference to ours on the same resamples of groups."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training.bootstrap import MIN_ROWS, Array, estimate, group_index, resampled_counts
from training.metrics import apgr_statistic

POOLED: Final = "all sources"
UPPER_BOUND: Final = "oracle"
_AT_ONCE: Final = 200


def compare(rows: pd.DataFrame, needs: Mapping[str, Array], ours: str, *, n_bootstrap: int = 2000, seed: int = 0) -> pd.DataFrame:
    """One row a slice (all sources, then each) and router.

    Parameters
    ----------
    rows
        Columns ``source``, ``group``, ``weak``, ``strong``.
    needs
        Shape (n,) each, by router.
    ours
        The router that the others are compared with. Others whose names begin with it are variants of it and no baselines.

    Returns
    -------
    pandas.DataFrame
        ``apgr`` with its interval; ``ahead``, APGR of ours minus that of the router, with its interval; ``p``, two-sided, from the share of
        resamples on the other side of zero; ``p_holm``, corrected for all baselines of the slice. Missing where ``note``
        says why.
    """
    tables = []
    for name in (POOLED, *sorted(rows["source"].unique())):
        members = np.flatnonzero((rows["source"] == name).to_numpy()) if name != POOLED else np.arange(len(rows))
        part = {router: need[members] for router, need in needs.items()}
        tables.append(_slice(rows.iloc[members], part, ours, n_bootstrap, seed).assign(slice=name))
    return pd.concat(tables, ignore_index=True)


def is_baseline(router: str, ours: str) -> bool:
    """Whether a router is neither ours, nor a variant of ours, nor the upper bound."""
    return not router.startswith(ours) and router != UPPER_BOUND


def _slice(rows: pd.DataFrame, needs: Mapping[str, Array], ours: str, n_bootstrap: int, seed: int) -> pd.DataFrame:
    group = group_index(rows["group"])
    weak, strong = (rows[column].to_numpy(dtype=float) for column in ("weak", "strong"))
    statistics = {name: apgr_statistic(weak, strong, need, group) for name, need in needs.items()}
    found = estimate(statistics, group, n_bootstrap=n_bootstrap, seed=seed)
    table = pd.DataFrame(
        [
            {"router": name, "apgr": e.value, "low": e.low, "high": e.high, "n": e.n, "n_groups": e.n_groups, "note": e.note}
            for name, e in found.items()
        ]
    )
    if table["low"].isna().any() or len(rows) < MIN_ROWS:
        return table
    samples = _resampled({name: s.of for name, s in statistics.items()}, int(group.max()) + 1, n_bootstrap, seed)
    difference = {name: samples[ours] - sample for name, sample in samples.items()}
    table["ahead"] = [found[ours].value - found[name].value for name in table["router"]]  # type: ignore[operator]
    intervals = [np.nanquantile(difference[name], [0.025, 0.975]) for name in table["router"]]
    table["ahead_low"], table["ahead_high"] = ([float(i[end]) for i in intervals] for end in (0, 1))
    others = [name for name in table["router"] if is_baseline(name, ours)]
    p = {name: two_sided(difference[name]) for name in others}
    corrected = dict(zip(p, holm(np.array(list(p.values()))), strict=True))
    return table.assign(p=table["router"].map(p), p_holm=table["router"].map(corrected))


def _resampled(of: Mapping[str, object], n_groups: int, n_bootstrap: int, seed: int) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    pieces: dict[str, list[Array]] = {name: [] for name in of}
    for start in range(0, n_bootstrap, _AT_ONCE):
        counts = resampled_counts(n_groups, min(_AT_ONCE, n_bootstrap - start), rng)
        for name, statistic in of.items():
            pieces[name].append(statistic(counts))  # type: ignore[operator]
    return {name: np.concatenate(parts) for name, parts in pieces.items()}


def two_sided(difference: Array) -> float:
    """Twice the smaller share of resampled differences on one side of zero, the estimate itself counted as one (Davison, Hinkley 1997)."""
    d = difference[np.isfinite(difference)]
    tail = min(int((d <= 0).sum()), int((d >= 0).sum()))
    return min(1.0, 2 * (tail + 1) / (len(d) + 1))


def holm(p: Array) -> Array:
    """P values corrected for the number of tests (Holm 1979), in the order given."""
    order: NDArray[np.intp] = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected
