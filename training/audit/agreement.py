"""Whether the judge agrees with programs and with other judges, and is even-handed with its own answers."""

from __future__ import annotations

from itertools import combinations
from typing import Final

import numpy as np
import pandas as pd

from training.audit.labels import Labels
from training.audit.length import checked_correctness, preferences
from training.audit.orders import marks, sign
from training.audit.slices import AuditOptions, Findings, Groups, Quantity, by_slice, mean
from training.audit.statistics import correlation_statistic, kappa_statistic

AGAINST_CHECKS: Final = ("judge_picks_right", "judge_check_correlation")
SELF: Final = "self_preference"


def check_judges(labels: Labels, options: AuditOptions) -> Findings:
    """Judge against programs, judge against judge, and judge on its own answers."""
    found = Findings()
    if labels.verdicts is None or labels.verdicts.empty or labels.answers is None:
        missing = "no judge's verdicts are here" if labels.verdicts is None or labels.verdicts.empty else "the answers are not here"
        found.absent((*AGAINST_CHECKS, "judges_kappa"), missing)
        return found
    pairs = preferences(labels)
    judges = sorted(pairs["judge"].unique())
    for judge in judges:
        _against_checks(found, labels, pairs[pairs["judge"] == judge], judge, options)
    if len(judges) < 2:
        found.absent(("judges_kappa",), "there is one judge only")
    for one, other in combinations(judges, 2):
        _two_judges(found, pairs, one, other, options)
    return found


def _against_checks(found: Findings, labels: Labels, pairs: pd.DataFrame, judge: str, options: AuditOptions) -> None:
    told_apart = pairs[pairs["checked"].abs() > 0]
    if told_apart.empty:
        why = "no judged pair of answers was also checked by a program"
        found.absent(
            ("judge_picks_right",), why if pairs["checked"].isna().all() else "the checks find both answers of every judged pair alike"
        )
    else:
        found.rows += by_slice(told_apart, _picks_right, options, subject=judge)
    both = _marked_and_checked(labels, judge)
    if both.empty:
        found.absent(("judge_check_correlation",), "no judged answer was also checked by a program")
    else:
        found.rows += by_slice(both, _correlation, options, subject=judge)
    if judge not in set(pairs["one"]) | set(pairs["other"]):
        return
    own = pairs[((pairs["one"] == judge) | (pairs["other"] == judge)) & pairs["checked"].notna()]
    if own.empty:
        found.absent((SELF,), "no judged pair with an answer of the judge's own was also checked by a program")
    else:
        found.rows += by_slice(own, lambda part, groups: {SELF: _own_wins(part, judge, groups)}, options, subject=judge)


def _picks_right(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    return {"judge_picks_right": mean(np.where(part["checked"] > 0, part["wins"], 1 - part["wins"]), groups)}


def _marked_and_checked(labels: Labels, judge: str) -> pd.DataFrame:
    """Answers with the judge's mean mark for correctness and the program's score."""
    assert labels.verdicts is not None
    verdicts = labels.verdicts[labels.verdicts["judge"] == judge]
    sides = [
        pd.DataFrame({"prompt_id": verdicts["prompt_id"], "model": verdicts[side], "mark": marks(verdicts, side)[:, 0]})
        for side in ("first", "second")
    ]
    judged = pd.concat(sides, ignore_index=True).groupby(["prompt_id", "model"], as_index=False)["mark"].mean()
    place = labels.prompts[["prompt_id", "source", "family", "split_group"]]
    return judged.merge(checked_correctness(labels), on=["prompt_id", "model"], how="inner").merge(place, on="prompt_id", how="inner")


def _correlation(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
    return {"judge_check_correlation": Quantity(correlation_statistic(part["mark"], part["score"], groups))}


def _own_wins(part: pd.DataFrame, judge: str, groups: Groups) -> Quantity:
    """Wins of the judge's own answers beyond those that the checks give them."""
    own_first = (part["one"] == judge).to_numpy()
    deserved = (sign(part["checked"]) + 1) / 2
    beyond = part["wins"].to_numpy(dtype=float) - deserved
    return mean(np.where(own_first, beyond, -beyond), groups)


def _two_judges(found: Findings, pairs: pd.DataFrame, one: str, other: str, options: AuditOptions) -> None:
    key = ["prompt_id", "one", "other"]
    both = pairs[pairs["judge"] == one].merge(pairs.loc[pairs["judge"] == other, [*key, "wins"]], on=key, suffixes=("", "_second"))
    if both.empty:
        found.notes.append(f"judges {one} and {other} have no pair of answers in common")
        return

    def kappa(part: pd.DataFrame, groups: Groups) -> dict[str, Quantity]:
        verdicts = (sign(part["wins"] - 0.5), sign(part["wins_second"] - 0.5))
        return {"judges_kappa": Quantity(kappa_statistic(*verdicts, groups))}

    found.rows += by_slice(both, kappa, options, subject=f"{one} and {other}")
