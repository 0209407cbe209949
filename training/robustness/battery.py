"""Change prompts in ways that leave their work alone, route them again, and count the decisions that flip."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import norm

from router.types import Conversation
from training.progress import Advance, uncounted
from training.prompts import to_conversations
from training.robustness.groups import Pairs
from training.robustness.probe import Difference, Probe
from training.robustness.transformation import Transformation

Array = NDArray[np.float64]
ALL: Final = "all"
_Z: Final = float(norm.ppf(0.975))


def conversations_of(prompts: pd.DataFrame) -> list[Conversation]:
    """The prompts as serving gets them: the language is not told."""
    return [replace(conversation, language=None) for conversation in to_conversations(prompts)]


def run_battery(
    probe: Probe, prompts: pd.DataFrame, transformations: Sequence[Transformation], seed: int = 0, progress: Advance = uncounted
) -> pd.DataFrame:
    """Apply every transformation to every prompt, where it applies.

    Returns
    -------
    pandas.DataFrame
        One row a case: ``family``, ``name``, ``gated``, ``group`` of the prompt, ``flipped``, ``before`` and ``after`` (needs), and
        ``shift_<capability>``.
    """
    conversations = conversations_of(prompts)
    decisions = [probe.router.route(conversation) for conversation in conversations]
    languages, groups = prompts["language"].tolist(), prompts["group"].astype(str).tolist()
    cases = []
    for transformation in transformations:
        for i, conversation in enumerate(conversations):
            rng = random.Random(f"{seed}/{transformation.name}/{i}")  # noqa: S311 - no secret is made of it
            changed = transformation.apply(conversation, languages[i], rng)
            if changed is not None:
                found = probe.difference(decisions[i], probe.router.route(changed), transformation.excused)
                cases.append(_case(probe, found, transformation.family, transformation.name, transformation.gated, groups[i]))
            progress(1)
    return pd.DataFrame(cases, columns=_columns(probe))


def compare_pairs(probe: Probe, prompts: pd.DataFrame, pairs: Pairs, progress: Advance = uncounted) -> pd.DataFrame:
    """The rows of :func:`run_battery` for prompts that ask the same."""
    conversations = conversations_of(prompts)
    decisions = {i: probe.router.route(conversations[i]) for pair in pairs.rows for i in pair}
    groups = prompts["group"].astype(str).tolist()
    cases = []
    for pair in pairs.rows:
        before, after = (decisions[i] for i in pair)
        cases.append(_case(probe, probe.difference(before, after), pairs.name, pairs.name, pairs.gated, groups[pair[0]]))
        progress(1)
    return pd.DataFrame(cases, columns=_columns(probe))


def summarise(cases: pd.DataFrame, thresholds: Mapping[str, float], capabilities: Sequence[str]) -> pd.DataFrame:
    """One row a family (``name`` is "all") and one a transformation of a family of several.

    Columns: ``family``, ``name``, ``gated``, ``n``, ``groups``; ``flipped`` with ``low`` and ``high``; ``flipped_<threshold>`` for a choice
    between any two models at each threshold; ``need_mean`` and ``need_p95`` of the absolute change of need; and for each capability
    ``mean_<name>`` and ``p95_<name>`` of the absolute change of its requirement.
    """
    rows = []
    for family, part in cases.groupby("family", sort=False):
        rows.append({"family": family, "name": ALL, **_row(part, thresholds, capabilities)})
        if part["name"].nunique() > 1:
            rows += [
                {"family": family, "name": name, **_row(own, thresholds, capabilities)} for name, own in part.groupby("name", sort=False)
            ]
    return pd.DataFrame(rows)


def wilson(share: float, n: int) -> tuple[float, float]:
    """95 % interval of a share seen among n independent cases (Wilson 1927); the share need not be a whole number of them."""
    centre, width = share + _Z**2 / (2 * n), _Z * np.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    low, high = (float(np.clip((centre + side * width) / (1 + _Z**2 / n), 0, 1)) for side in (-1, 1))
    return min(low, share), max(high, share)


def _row(cases: pd.DataFrame, thresholds: Mapping[str, float], capabilities: Sequence[str]) -> dict[str, Any]:
    """Cases of one group (a prompt in several changes, its translations) count as one for the interval."""
    share, groups = float(cases["flipped"].mean()), int(cases["group"].nunique())
    low, high = wilson(share, groups)
    row = {"gated": bool(cases["gated"].all()), "n": len(cases), "groups": groups, "flipped": share, "low": low, "high": high}
    before, after = cases["before"].to_numpy(), cases["after"].to_numpy()
    row |= {f"flipped_{name}": float(((before > tau) != (after > tau)).mean()) for name, tau in thresholds.items()}
    for name, moved in {"need": after - before, **{k: cases[f"shift_{k}"].to_numpy() for k in capabilities}}.items():
        row |= {f"mean_{name}": float(np.abs(moved).mean()), f"p95_{name}": float(np.quantile(np.abs(moved), 0.95))}
    return row


def _case(probe: Probe, found: Difference, family: str, name: str, gated: bool, group: str) -> tuple[Any, ...]:
    return (family, name, gated, group, found.flipped, found.before, found.after, *found.shift.tolist())


def _columns(probe: Probe) -> list[str]:
    return ["family", "name", "gated", "group", "flipped", "before", "after", *(f"shift_{name}" for name in probe.capabilities)]
