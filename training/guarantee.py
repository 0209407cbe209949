"""A threshold with a promise: with confidence 1 - delta, routing loses at most epsilon against always-strong.

Learn then test (Angelopoulos et al., arXiv 2110.01052) with fixed-sequence testing: thresholds are tested from the strictest to the laxest
at level delta, and testing stops at the first one that fails. The last that passed is taken. No correction for the number of thresholds is
needed, because the sequence is fixed before any outcome is seen. The test is :func:`training.risk.p_value`.

The promise is about new groups of prompts that come about as those of the calibration rows did, for one fixed router that was not fitted
on these rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from training.bootstrap import Array, group_index
from training.guarantee_words import statement_of
from training.predictions import Predictions
from training.promise import EVERYTHING, THE_REST, Guarantee, GuaranteeOptions, Promise
from training.risk import group_means, groups_needed, margins, p_value

_STEP: Final = 0.005


def control(rows: pd.DataFrame, predictions: Predictions, options: GuaranteeOptions) -> Guarantee:
    """Choose thresholds on calibration rows.

    Parameters
    ----------
    rows
        Columns ``group``, ``weak``, ``strong``, ``weak_cost_usd``, ``strong_cost_usd``; none may have been fitted on.
    predictions
        Of those rows, with the families as the router reads them.

    Raises
    ------
    InvalidInput
        If there are no rows, a score is not a number in [0, 1], or the limit is relative and always-strong never scores.
    """
    _check(rows, predictions, options)
    overall = _promise(EVERYTHING, rows, predictions, options, options.delta, tested=True)
    return Guarantee(options, overall, tuple(_promises(rows, predictions, options)))


def _check(rows: pd.DataFrame, predictions: Predictions, options: GuaranteeOptions) -> None:
    if rows.empty:
        raise InvalidInput("there is no calibration prompt: at least one is needed to promise anything")
    if len(rows) != len(predictions.shortfall):
        raise InvalidInput(f"{len(predictions.shortfall)} predictions for {len(rows)} prompts: one each is needed")
    for name in ("weak", "strong"):
        scores = rows[name].to_numpy(dtype=float)
        wrong = ~((scores >= 0) & (scores <= 1))
        if wrong.any():
            raise InvalidInput(f"{name} score of row {int(wrong.argmax())} is {scores[wrong][0]:g}: a number within [0, 1] was expected")
    if options.relative and not rows["strong"].any():
        raise InvalidInput("the strong model scores 0 on every prompt: there is no share of it to keep")


def _promises(rows: pd.DataFrame, predictions: Predictions, options: GuaranteeOptions) -> Iterator[Promise]:
    """Families with groups enough by themselves, then the rest together; levels are split so that all statements hold together."""
    family = np.asarray(predictions.families, dtype=object)
    members = {name: np.flatnonzero(family == name) for name in sorted(set(predictions.families))}
    own, tests = _strata(rows, members, options)
    small = [name for name in members if name not in own]
    parts = {name: members[name] for name in own}
    if tests > len(own):
        parts[THE_REST] = np.sort(np.concatenate([members[name] for name in small]))
    promises = {
        name: _promise(name, rows.iloc[part], predictions.of(part), options, options.delta / tests, tested=True)
        for name, part in parts.items()
    }
    yield from promises.values()
    shared = promises[THE_REST].threshold if THE_REST in promises else None
    for name in small:
        part = members[name]
        level = options.delta / (len(own) + 1)  # at which it would have been tested
        yield _promise(name, rows.iloc[part], predictions.of(part), options, level, tested=False, shared=shared)


def _strata(rows: pd.DataFrame, members: Mapping[str, NDArray[np.intp]], options: GuaranteeOptions) -> tuple[list[str], int]:
    """Families to test by themselves, and the number of tests: one more where the rest together is tested too.

    As many families as can be promised something at delta / tests (Bonferroni), the largest first. It is decided by numbers of groups
    alone, never by outcomes.
    """
    group = rows["group"].astype(str).to_numpy()
    size = {name: len(np.unique(group[part])) for name, part in members.items()}
    order = sorted(size, key=lambda name: (-size[name], name))
    for count in range(len(order), 0, -1):
        others = [members[name] for name in order[count:]]
        rest = len(np.unique(group[np.concatenate(others)])) if others else 0
        for tested in (count + 1, count):
            needed = groups_needed(options.epsilon, options.delta / tested)
            if size[order[count - 1]] >= needed and (tested == count or rest >= needed):
                return order[:count], tested
    return [], 0


def _promise(
    name: str,
    rows: pd.DataFrame,
    predictions: Predictions,
    options: GuaranteeOptions,
    delta: float,
    *,
    tested: bool,
    shared: float | None = None,
) -> Promise:
    """``shared`` is the tau of the rest together, which an untested family is part of."""
    group = group_index(rows["group"])
    strong = rows["strong"].to_numpy(dtype=float)
    strong_score = float(group_means(strong, group).mean())
    impossible = options.relative and strong_score == 0
    needed = 0 if impossible else groups_needed(options.epsilon, delta, strong_score if options.relative else 1.0)
    tau, p = _laxest(rows, predictions, group, options, delta) if tested else (shared, None)
    threshold = tau if tau is not None else 0.0
    chosen = predictions.chosen(threshold)
    lost = (1 - chosen) * (strong - rows["weak"].to_numpy(dtype=float))
    promise = Promise(
        name=name,
        kept=tested and tau is not None,
        threshold=threshold,
        delta=delta,
        groups=int(group.max()) + 1,
        groups_needed=needed,
        prompts=len(rows),
        loss=float(group_means(lost, group).mean()),
        prompt_loss=float(lost.mean()),
        strong_score=strong_score,
        strong_share=float(chosen.mean()),
        cost_savings=_savings(rows, chosen),
        p_value=p,
    )
    return replace(promise, statement=statement_of(promise, options, covered=shared is not None))


def _laxest(
    rows: pd.DataFrame, predictions: Predictions, group: NDArray[np.intp], options: GuaranteeOptions, delta: float
) -> tuple[float | None, float]:
    """The largest tau up to which every one passes, or None, and its p-value (that of the first if it fails)."""
    weak, strong = (rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
    passed: float | None = None
    last_p, before = 1.0, np.empty(0)
    for tau in threshold_grid(len(predictions.capabilities)):
        chosen = predictions.chosen(tau)
        if not np.array_equal(chosen, before):
            margin = margins(weak, strong, chosen, options.epsilon, relative=options.relative)
            p = p_value(group_means(margin, group), options.epsilon, delta)
            if p > delta:
                return passed, last_p if passed is not None else p
            last_p, before = p, chosen
        passed = float(tau)
    return passed, last_p


def threshold_grid(capabilities: int) -> Array:
    """The thresholds that are tested, strictest first, up to the largest shortfall there can be. They depend on no outcome."""
    return np.asarray(np.arange(round(capabilities / _STEP) + 1) * _STEP, dtype=np.float64)


def _savings(rows: pd.DataFrame, chosen: Array) -> float | None:
    cost = rows[["weak_cost_usd", "strong_cost_usd"]].to_numpy(dtype=float)
    if not np.isfinite(cost).all() or cost[:, 1].sum() <= 0:
        return None
    return float((1 - chosen) @ (cost[:, 1] - cost[:, 0]) / cost[:, 1].sum())
