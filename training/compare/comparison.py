"""Differences of two routers on the same prompts: B less A, resampled together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training import metrics
from training.baselines import Policy
from training.bootstrap import Array, Estimate, Statistic, difference, group_index, resampled, summarised
from training.compare.paired import bootstrap_p_value, mcnemar, with_holm
from training.compare.sides import Side
from training.evaluate import EvaluationOptions
from training.slices import policy_statistics, slices_of

MODES: Final[Mapping[str, str]] = {
    "ranking": "at every share of strong calls",
    "own": "each at its own threshold",
    "equal": "both at the same share of strong calls",
}
"""Ways to compare, and what they mean."""
COMPARED: Final[Mapping[str, tuple[str, ...]]] = {
    "ranking": ("apgr", "auc", "ece"),
    "own": ("quality", "quality_vs_strong", "cost_savings", "strong_share", "misroute", "routing_accuracy"),
    "equal": ("quality", "quality_vs_strong", "cost_savings", "misroute", "routing_accuracy"),
}
"""Metrics of every way."""
_GRID: Final = np.linspace(0, 1, 51)
_TestKey = tuple[str, str]


@dataclass(frozen=True)
class Comparison:
    """Two routers on the same prompts.

    Attributes
    ----------
    about
        Both sides, the prompts, the common share of strong calls, options, and ``notes`` on what limits the comparison.
    differences
        One row a (slice_kind, slice, mode, metric): ``a``, ``b``, ``value`` = b - a with ``low``, ``high``, ``p`` and ``p_holm`` (corrected
        over the slices of a kind), ``n``, ``n_groups``, ``note``.
    disagreements
        One row a slice, each router at its own threshold: share of prompts on which they choose differently, who calls the strong model
        there, what B gains there, and McNemar's test of routing accuracy.
    curve
        Mean score of both over the share of strong calls.
    """

    about: Mapping[str, Any]
    differences: pd.DataFrame
    disagreements: pd.DataFrame
    curve: pd.DataFrame

    def with_about(self, **about: Any) -> Comparison:
        """The comparison with more said about it."""
        return replace(self, about={**self.about, **about})

    def row(self, metric: str, mode: str, kind: str = "pooled", name: str = "all") -> pd.Series[Any]:
        """One difference."""
        table = self.differences
        found = (table["metric"] == metric) & (table["mode"] == mode) & (table["slice_kind"] == kind) & (table["slice"] == name)
        return table[found].iloc[0]


def compare(a: Side, b: Side, *, options: EvaluationOptions | None = None, notes: Sequence[str] = ()) -> Comparison:
    """Compare two sides that :func:`training.compare.sides.aligned` brought onto the same rows.

    At equal share both call the strong model as often as they do on average, each where it sees the greatest need.
    """
    options = options or EvaluationOptions(n_bootstrap=2000)
    rows = a.decisions
    share = float((a.decisions["chosen"].mean() + b.decisions["chosen"].mean()) / 2)
    policies = (_policies(a, share), _policies(b, share))
    return Comparison(
        about={
            "a": {"name": a.name, **a.about},
            "b": {"name": b.name, **b.about},
            "prompts": len(rows),
            "groups": int(rows["group"].nunique()),
            "families": int(rows["family"].nunique()),
            "equal_share": share,
            "margin": a.margin,
            "notes": list(notes),
            "options": asdict(options),
        },
        differences=with_holm(_differences(rows, policies, a.margin, options), ("slice_kind", "mode", "metric")),
        disagreements=with_holm(_disagreements(a.decisions, b.decisions, a.margin, options.min_rows), ("slice_kind",)),
        curve=_curve(a.decisions, b.decisions),
    )


def _policies(side: Side, share: float) -> dict[str, Policy]:
    need, chosen, requirement = (side.decisions[name].to_numpy(dtype=float) for name in ("need", "chosen", "requirement"))
    return {
        "ranking": Policy(side.name, need=need, probability=requirement),
        "own": Policy(side.name, chosen=chosen),
        "equal": Policy(side.name, chosen=metrics.choose_share(need, share)),
    }


def _differences(
    rows: pd.DataFrame, policies: tuple[dict[str, Policy], dict[str, Policy]], margin: float, options: EvaluationOptions
) -> pd.DataFrame:
    records: list[dict[str, Any]] = []
    for kind, name, members in slices_of(rows):
        part = rows.iloc[members]
        group = group_index(part["group"])
        a, b = (_statistics(part, each, members, group, margin, options.bins) for each in policies)
        both = {key: difference(b[key], a[key]) for key in a}
        few = f"too few rows: {len(part)}, at least {options.min_rows} are needed" if len(part) < options.min_rows else ""
        samples = {} if few else _resampled(both, a, group, options)
        for key, statistic in both.items():
            found = Estimate(None, None, None, len(part), statistic.n_groups, few)
            if not few:
                found = summarised(statistic, samples.get(key, np.empty(0)), len(part), options.level)
            known = found.value is not None
            records.append(
                {"slice_kind": kind, "slice": name, "mode": key[0], "metric": key[1]}
                | {"a": _value(a[key]) if known else None, "b": _value(b[key]) if known else None}
                | asdict(found)
                | {"p": bootstrap_p_value(samples[key]) if found.low is not None else None}
            )
    return pd.DataFrame(records)


def _resampled(
    both: Mapping[_TestKey, Statistic], single: Mapping[_TestKey, Statistic], group: NDArray[np.intp], options: EvaluationOptions
) -> dict[_TestKey, Array]:
    """Differences on resamples. Those of a metric that noise can only push up (ECE) are reflected, as its own interval is."""
    samples = resampled(both, group, n_bootstrap=options.n_bootstrap, seed=options.seed)
    return {key: 2 * _value(both[key]) - found if single[key].reflect else found for key, found in samples.items()}


def _statistics(
    part: pd.DataFrame, policies: Mapping[str, Policy], members: NDArray[np.intp], group: NDArray[np.intp], margin: float, bins: int
) -> dict[_TestKey, Statistic]:
    return {
        (mode, metric): statistic
        for mode, policy in policies.items()
        for metric, statistic in policy_statistics(part, policy, members, group, margin, bins)
        if metric in COMPARED[mode]
    }


def _value(statistic: Statistic) -> float:
    return float(statistic.of(np.ones((1, statistic.n_groups)))[0])


def _disagreements(a: pd.DataFrame, b: pd.DataFrame, margin: float, min_rows: int) -> pd.DataFrame:
    weak, strong, first, second = (
        table[name].to_numpy(dtype=float) for table, name in ((a, "weak"), (a, "strong"), (a, "chosen"), (b, "chosen"))
    )
    right = [metrics.rightness(weak, strong, chosen, margin) > 0.5 for chosen in (first, second)]
    gained = (second - first) * (strong - weak)
    records: list[dict[str, Any]] = []
    for kind, name, members in slices_of(a):
        differ = first[members] != second[members]
        test = mcnemar(right[0][members], right[1][members], group_index(a["group"].iloc[members]))
        record = {
            "slice_kind": kind, "slice": name, "n": members.size, "differ": int(differ.sum()), "differ_share": float(differ.mean()),
            "strong_only_a": int((first[members] > second[members]).sum()), "strong_only_b": int((second[members] > first[members]).sum()),
            "gained_by_b": float(gained[members][differ].mean()) if differ.any() else None,
            "right_only_a": test.only_a, "right_only_b": test.only_b, "p": test.p, "note": test.note,
        }  # fmt: skip
        if members.size < min_rows:
            record |= {"p": None, "note": f"too few rows: {members.size}, at least {min_rows} are needed"}
        records.append(record)
    return pd.DataFrame(records)


def _curve(a: pd.DataFrame, b: pd.DataFrame) -> pd.DataFrame:
    weak, strong = a["weak"].to_numpy(dtype=float), a["strong"].to_numpy(dtype=float)
    needs = {name: table["need"].to_numpy(dtype=float) for name, table in (("a", a), ("b", b))}
    quality = {name: [_mean_quality(weak, strong, need, share) for share in _GRID] for name, need in needs.items()}
    return pd.DataFrame({"strong_share": _GRID, **quality})


def _mean_quality(weak: Array, strong: Array, need: Array, share: float) -> float:
    return float(metrics.quality_of(weak, strong, metrics.choose_share(need, float(share))).mean())
