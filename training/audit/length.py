"""Whether the judge prefers longer answers, and whether it does so where they are no better."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from training.audit.labels import Labels
from training.audit.orders import judged_pairs, sign
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, mean
from training.audit.statistics import slope_statistic

JUDGED: Final = ("longer_preferred", "length_slope", "length_slope_controlled")
CHECKED: Final = "length_slope_checked"
_BINS: Final = 8


def check_length(labels: Labels, options: AuditOptions) -> Findings:
    """Slopes of the judge's preference, and of checked correctness, over the difference in length."""
    found = Findings()
    if labels.answers is None:
        found.absent((*JUDGED, CHECKED), "the answers are not here, so their lengths are unknown")
        return found
    checked = checked_pairs(labels)
    if checked.empty:
        found.absent((CHECKED,), "no two answers to one prompt were checked by a program")
    else:
        found.rows += by_slice(checked, lambda part, groups: {CHECKED: _slope(part, "wins", groups)}, options)
    if labels.verdicts is None or labels.verdicts.empty:
        found.absent(JUDGED, "no judge's verdicts are here")
        return found
    pairs = preferences(labels)
    bins = []
    for judge, mine in pairs.groupby("judge", sort=True):
        name = str(judge)
        found.rows += by_slice(mine, _judged, options, subject=name)
        both = mine.dropna(subset=["checked"])
        if both.empty:
            found.absent(("length_slope_controlled",), "no judged pair of answers was also checked by a program", name)
        else:
            found.rows += by_slice(both, _controlled, options, subject=name)
        bins.append(length_bins(mine).assign(judge=name))
    found.tables["length_bins"] = pd.concat(bins, ignore_index=True)
    return found


def preferences(labels: Labels) -> pd.DataFrame:
    """Judged pairs with ``wins`` of ``one`` (0 to 1, over the orders there are), ``log2_ratio`` of the lengths and ``checked``.

    ``checked`` is the difference in checked correctness, one less other, NaN where a program did not check both.
    """
    pairs = judged_pairs(labels)
    orders = np.stack([sign(pairs["ahead"]), sign(pairs["swapped"])])
    asked = np.isfinite(orders)
    pairs["wins"] = (np.where(asked, orders, 0).sum(axis=0) / asked.sum(axis=0) + 1) / 2
    correct = checked_correctness(labels)
    scores = [
        pairs.merge(correct, left_on=["prompt_id", side], right_on=["prompt_id", "model"], how="left")["score"] for side in ("one", "other")
    ]
    pairs["checked"] = scores[0].to_numpy(dtype=float) - scores[1].to_numpy(dtype=float)
    return _with_lengths(pairs, labels)


def checked_correctness(labels: Labels) -> pd.DataFrame:
    """``prompt_id``, ``model`` and the ``score`` for correctness that a program gave."""
    columns = ["prompt_id", "model", "score"]
    if labels.scores is None:
        return pd.DataFrame({"prompt_id": [], "model": [], "score": []}).astype({"prompt_id": object, "model": object, "score": float})
    rows = labels.scores[(labels.scores["dimension"] == "correctness") & ~labels.scores["by"].str.startswith("judge")]
    return rows[columns].drop_duplicates(["prompt_id", "model"], keep="last").astype({"score": float})


def checked_pairs(labels: Labels) -> pd.DataFrame:
    """Pairs of answers that a program checked: the strong model (else the first by name) against every other; ``wins`` as for judges."""
    correct = checked_correctness(labels)
    assert labels.answers is not None
    names = sorted(correct["model"].unique())
    lead = labels.model_of("strong") if labels.model_of("strong") in names else next(iter(names), "")
    one, other = correct[correct["model"] == lead], correct[correct["model"] != lead]
    pairs = one.merge(other, on="prompt_id", suffixes=("", "_other")).rename(columns={"model": "one", "model_other": "other"})
    pairs["wins"] = (sign(pairs["score"] - pairs["score_other"]) + 1) / 2
    place = labels.prompts[["prompt_id", "source", "family", "split_group"]]
    return _with_lengths(pairs.merge(place, on="prompt_id", how="inner"), labels)


def _with_lengths(pairs: pd.DataFrame, labels: Labels) -> pd.DataFrame:
    """Pairs whose answers are both here, with ``log2_ratio`` of their lengths; an empty answer counts as one character."""
    assert labels.answers is not None
    size = labels.answers[["prompt_id", "model", "characters"]]
    for side in ("one", "other"):
        renamed = size.rename(columns={"model": side, "characters": f"{side}_characters"})
        pairs = pairs.merge(renamed, on=["prompt_id", side], how="inner")
    lengths = pairs[["one_characters", "other_characters"]].clip(lower=1).to_numpy(dtype=float)
    return pairs.assign(log2_ratio=np.log2(lengths[:, 0] / lengths[:, 1]))


def _model_intercepts(part: pd.DataFrame) -> NDArray[np.float64]:
    return np.asarray(pd.get_dummies(part["one"] + "\n" + part["other"]), dtype=float)


def _slope(part: pd.DataFrame, column: str, groups: Groups) -> Quantity:
    return Quantity(slope_statistic(part[column], part["log2_ratio"], _model_intercepts(part), groups))


def _judged(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    differ = part["log2_ratio"].to_numpy() != 0
    longer = np.where(part["log2_ratio"] > 0, part["wins"], 1 - part["wins"])
    # Answers of one length say nothing: they count as half a win, and are few.
    return {"longer_preferred": mean(np.where(differ, longer, 0.5), groups), "length_slope": _slope(part, "wins", groups)}


def _controlled(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    controls = np.column_stack([part["checked"].to_numpy(dtype=float), _model_intercepts(part)])
    return {"length_slope_controlled": Quantity(slope_statistic(part["wins"], part["log2_ratio"], controls, groups))}


def length_bins(pairs: pd.DataFrame) -> pd.DataFrame:
    """Mean wins over the difference in length, in bins of about equal size: for the plot."""
    bins = min(_BINS, max(1, len(pairs) // 10))
    number = (pairs["log2_ratio"].rank(method="average") - 0.5) * bins // max(1, len(pairs))
    table = pairs.assign(bin=number).groupby("bin").agg(log2_ratio=("log2_ratio", "mean"), wins=("wins", "mean"), n=("wins", "size"))
    return table.reset_index(drop=True)
