"""The choice at every tau: quality and savings along it, and the taus that are worth listing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import pandas as pd

from training import metrics
from training.baselines import Policy
from training.bootstrap import Array
from training.predictions import Predictions

_GRID: Final = np.linspace(0, 1, 51)
_QUALITY_GOALS: Final = (0.99, 0.98, 0.95)
_SHARES: Final = tuple(round(0.1 * i, 1) for i in range(1, 10))
_MOST: Final = 201


def taus_of(predictions: Predictions) -> Array:
    """Every tau at which a choice changes, thinned to 201."""
    finite = predictions.shortfall[np.isfinite(predictions.shortfall)]
    values = np.unique(np.append(finite, 0.0))
    return values if values.size <= _MOST else np.unique(np.quantile(values, np.linspace(0, 1, _MOST), method="nearest"))


def listed_taus(rows: pd.DataFrame, predictions: Predictions) -> dict[float, list[str]]:
    """Taus worth listing, and why: the router's own, round shares of strong calls, and the cheapest that keep a share of the quality."""
    taus = taus_of(predictions)
    weak, strong = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
    # One choice at a time: all of them together are two hundred numbers a row.
    shares, gains = np.array([(chosen.mean(), chosen @ (strong - weak)) for chosen in map(predictions.chosen, taus)]).T
    quality = weak.mean() + gains / len(rows)
    why: dict[float, list[str]] = {predictions.threshold: ["the router's own"], 0.0: ["strictest"]}
    for share in _SHARES:
        why.setdefault(float(taus[np.abs(shares - share).argmin()]), []).append(f"about {share:.0%} strong calls")
    for goal in _QUALITY_GOALS:
        enough = np.flatnonzero(quality >= goal * strong.mean())
        if enough.size:
            cheapest = enough[shares[enough].argmin()]
            why.setdefault(float(taus[cheapest]), []).append(f"keeps {goal:.0%} of always-strong at the fewest strong calls")
    return why


def curves(rows: pd.DataFrame, predictions: Predictions, router: str, baselines: Sequence[Policy]) -> pd.DataFrame:
    """Quality and savings of every baseline over the share of strong calls, and of the router (so named) over the sweep of tau."""
    weak, strong = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
    cost = rows[["weak_cost_usd", "strong_cost_usd"]].to_numpy(dtype=float)
    known = np.isfinite(cost).all(axis=1)
    full = cost[known, 1].sum()
    records = []
    for name, tau, chosen in _points(predictions, router, baselines):
        saved = float((1 - chosen[known]) @ (cost[known, 1] - cost[known, 0]) / full) if full > 0 else float("nan")
        quality = float(metrics.quality_of(weak, strong, chosen).mean())
        records.append({"policy": name, "tau": tau, "strong_share": float(chosen.mean()), "quality": quality, "cost_savings": saved})
    return pd.DataFrame(records).sort_values(["policy", "strong_share"], ignore_index=True, kind="stable")


def _points(predictions: Predictions, router: str, baselines: Sequence[Policy]) -> Iterator[tuple[str, float, Array]]:
    """Name, tau (NaN where there is none) and choice of every point of the curves, one at a time."""
    for tau in taus_of(predictions):
        yield router, float(tau), predictions.chosen(tau)
    yield router, float("nan"), np.zeros(len(predictions.need))
    for policy in baselines:
        if policy.need is not None:
            yield from ((policy.name, float("nan"), metrics.choose_share(policy.need, share)) for share in _GRID)
        elif policy.chosen is not None:
            yield policy.name, float("nan"), policy.chosen
