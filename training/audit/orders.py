"""Whether the judge says the same when the answers change places.

Position swap after Zheng et al. 2023, "Judging LLM-as-a-Judge", section 3.4.
"""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training.audit.labels import PLACE, Labels
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, mean, share, slices
from training.audit.statistics import correlation_statistic, kappa_statistic
from training.bootstrap import Statistic
from training.label.config import DIMENSIONS
from training.metrics import ratio_statistic

MEASURED: Final = ("swap_consistency", "swap_kappa", "first_position", "first_score_shift", "verdict_ties", "order_reliability", "halo")
SWAP_MEASURES: Final = ("swap_consistency", "swap_kappa", "first_position", "first_score_shift", "order_reliability")
OUTCOMES: Final = ("same better answer", "tie in both", "tie in one", "first in both", "second in both")
"""What two verdicts on one pair in both orders can be."""


def judged_pairs(labels: Labels) -> pd.DataFrame:
    """One row a prompt, pair of models and judge.

    Columns beside the place of the prompt: ``judge``, ``one``, ``other`` (the strong model is ``one`` where the run has one), and for
    each order the difference in mean marks, one less other: ``ahead`` with ``one`` read first, ``swapped`` with ``other`` read first, NaN
    where the judge was not asked; ``shift``, what standing first is worth in marks.
    """
    assert labels.verdicts is not None
    strong = labels.model_of("strong")
    v = labels.verdicts
    first_mark, second_mark = marks(v, "first").mean(axis=1), marks(v, "second").mean(axis=1)
    natural = np.where((v["first"] == strong) | (v["second"] == strong), v["first"] == strong, v["first"] <= v["second"]).astype(bool)
    table = v[["prompt_id", "judge", *PLACE]].assign(
        one=np.where(natural, v["first"], v["second"]),
        other=np.where(natural, v["second"], v["first"]),
        order=np.where(natural, "ahead", "swapped"),
        difference=np.where(natural, first_mark - second_mark, second_mark - first_mark),
        one_mark=np.where(natural, first_mark, second_mark),
        other_mark=np.where(natural, second_mark, first_mark),
    )
    key = ["prompt_id", *PLACE, "judge", "one", "other"]
    wide = table.pivot_table(index=key, columns="order", values=["difference", "one_mark", "other_mark"], aggfunc="last", dropna=True)
    columns = pd.MultiIndex.from_product([["difference", "one_mark", "other_mark"], ["ahead", "swapped"]])
    wide = wide.reindex(columns=columns)
    shift = (wide["one_mark", "ahead"] - wide["one_mark", "swapped"] + wide["other_mark", "swapped"] - wide["other_mark", "ahead"]) / 2
    pairs = pd.DataFrame({"ahead": wide["difference", "ahead"], "swapped": wide["difference", "swapped"], "shift": shift})
    return pairs.reset_index()


def marks(verdicts: pd.DataFrame, side: str) -> NDArray[np.float64]:
    """Marks of one side over the dimensions, shape (n, dimensions)."""
    return np.asarray(verdicts[[f"{side}_{name}" for name in DIMENSIONS]], dtype=float)


def sign(values: pd.Series[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """-1, 0 or 1; differences within rounding are ties, and NaN stays."""
    v = np.asarray(values, dtype=float)
    return np.where(np.abs(v) <= 1e-9, 0.0, np.sign(v))


def check_orders(labels: Labels, options: AuditOptions) -> Findings:
    """Position swap, ties and the judge's noise, for each judge."""
    found = Findings()
    if labels.verdicts is None or labels.verdicts.empty:
        found.absent(MEASURED, "no judge's verdicts are here")
        return found
    pairs = judged_pairs(labels)
    outcomes: list[pd.DataFrame] = []
    for judge, verdicts in labels.verdicts.groupby("judge", sort=True):
        name = str(judge)
        found.rows += by_slice(verdicts, _single, options, subject=name)
        mine = pairs[pairs["judge"] == judge]
        both = mine.dropna(subset=["ahead", "swapped"])
        if both.empty:
            found.absent(SWAP_MEASURES, "no pair of answers was judged in both orders", name)
            found.notes.append(
                f"judge {name}: all {len(mine)} pairs of answers were judged in one order only, so its position bias is unknown"
            )
            continue
        if len(both) < len(mine):
            found.notes.append(f"judge {name}: {len(mine) - len(both)} of {len(mine)} pairs were judged in one order only, and left out")
        found.rows += by_slice(both, _both, options, subject=name)
        outcomes.append(_outcome_table(both).assign(judge=name))
        if judge in set(both["one"]) | set(both["other"]):
            found.notes.append(f"judge {name} is one of the models it judges")
    if outcomes:
        found.tables["verdict_orders"] = pd.concat(outcomes, ignore_index=True)
    return found


def _single(verdicts: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    tie = sign(marks(verdicts, "first").mean(axis=1) - marks(verdicts, "second").mean(axis=1)) == 0
    return {"verdict_ties": share(tie, groups), "halo": _halo(verdicts, groups)}


def _halo(verdicts: pd.DataFrame, groups: Groups) -> Quantity:
    """Mean of the correlations between all pairs of dimensions; a dimension with one mark only takes no part."""
    stacked = np.concatenate([marks(verdicts, "first"), marks(verdicts, "second")])
    both = np.concatenate([groups, groups])
    columns = [i for i in range(stacked.shape[1]) if np.ptp(stacked[:, i]) > 0]
    found = [correlation_statistic(stacked[:, i], stacked[:, j], both) for i, j in combinations(columns, 2)]
    if not found:
        return Quantity(correlation_statistic(np.zeros(len(both)), np.zeros(len(both)), both))
    return Quantity(Statistic(lambda counts: np.mean([s.of(counts) for s in found], axis=0), found[0].n_groups))


def _both(pairs: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    ahead, swapped = sign(pairs["ahead"]), sign(pairs["swapped"])
    # "ahead" has ``one`` first, "swapped" the other: a win of the first position is +1 in the one and -1 in the other.
    first_wins = (ahead > 0).astype(float) + (swapped < 0)
    decided = (ahead != 0).astype(float) + (swapped != 0)
    no_winner = "every verdict is a tie" if not decided.any() else ""
    return {
        "swap_consistency": share(ahead == swapped, groups),
        "swap_kappa": Quantity(kappa_statistic(ahead, swapped, groups)),
        "first_position": Quantity(ratio_statistic(first_wins, decided, groups, no_winner)),
        "first_score_shift": mean(pairs["shift"], groups),
        "order_reliability": Quantity(correlation_statistic(pairs["ahead"], pairs["swapped"], groups)),
    }


def _outcome_table(pairs: pd.DataFrame) -> pd.DataFrame:
    """Pairs of verdicts by what they say, for every slice."""
    ahead, swapped = sign(pairs["ahead"]), sign(pairs["swapped"])
    tie = (ahead == 0) | (swapped == 0)
    cases = [(ahead == swapped) & ~tie, (ahead == 0) & (swapped == 0), tie, ahead > 0, ahead < 0]
    named = pairs.assign(outcome=np.select(cases, OUTCOMES, default=""))
    rows = []
    for kind, name, part in slices(named):
        counts = part["outcome"].value_counts()
        rows.append({"slice_kind": kind, "slice": name, **{outcome: int(counts.get(outcome, 0)) for outcome in OUTCOMES}, "n": len(part)})
    return pd.DataFrame(rows)
