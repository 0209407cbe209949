"""The whole battery on a router: prompts, changes, groups, attacks, and whether the limits are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

import training
from router.errors import InvalidInput
from router.route import Router
from training.progress import Advance
from training.prompts import load_prompts
from training.robustness.attack import AttackOptions, run_attacks
from training.robustness.battery import ALL, compare_pairs, conversations_of, run_battery, summarise
from training.robustness.groups import PARAPHRASE, TRANSLATION, paraphrase_pairs, paraphrases, translation_pairs
from training.robustness.probe import Probe
from training.robustness.registry import chosen

Counting = Callable[[str, int], AbstractContextManager[Advance]]
SAMPLE: Final = Path(training.__file__).parents[1] / "data" / "sample"
_SHORT_LIST: Final = 3


@dataclass(frozen=True, slots=True)
class RobustnessOptions:
    """What is run and what is asked.

    Parameters
    ----------
    sample
        Prompts that are changed, drawn from all.
    only
        Transformations or families; empty runs all.
    attack
        Budget of the attacks; None leaves them out.
    max_flips, max_success
        Largest share of flipped decisions of a family of changes, and of prompts that a gadget sends to the strong model at the router's
        own threshold.
    """

    sample: int = 200
    seed: int = 0
    only: Sequence[str] = ()
    attack: AttackOptions | None = field(default_factory=AttackOptions)
    max_flips: float = 0.02
    max_success: float = 0.05

    def __post_init__(self) -> None:
        for name in ("max_flips", "max_success"):
            if not 0 <= getattr(self, name) <= 1:
                raise InvalidInput(f"{name.replace('_', '-')} is {getattr(self, name)!r}: a share within [0, 1] was expected")
        chosen(self.only)


@dataclass(frozen=True)
class Robustness:
    """What was found.

    ``changes`` is as :func:`training.robustness.battery.summarise` says, ``attacks`` as :func:`training.robustness.attack.run_attacks`
    does; ``gate`` has one row a limit: what, value, limit, n, kept.
    """

    about: Mapping[str, Any]
    changes: pd.DataFrame
    attacks: pd.DataFrame
    gate: pd.DataFrame

    @property
    def passed(self) -> bool:
        """Whether every limit is kept."""
        return bool(self.gate["kept"].all()) if len(self.gate) else True

    def with_about(self, **about: Any) -> Robustness:
        """The result with more said about it."""
        return replace(self, about={**self.about, **about})


def load_all(folders: Sequence[Path]) -> pd.DataFrame:
    """Prompts of the folders; of our own sample where none is given."""
    places = list(folders) or [SAMPLE]
    if not places[0].exists() and not folders:
        raise InvalidInput("the embedded sample is not in this installation: name a folder with prompts by --data")
    return pd.concat([load_prompts(place) for place in places], ignore_index=True)


def run_robustness(router: Router, prompts: pd.DataFrame, options: RobustnessOptions, counting: Counting) -> Robustness:
    """Run the battery.

    Raises
    ------
    InvalidInput
        A name that is no transformation, or too few prompts for the attacks.
    """
    probe = Probe(router)
    ours = paraphrases()
    drawn = _drawn(pd.concat([prompts, ours.drop_duplicates("group")], ignore_index=True), options)
    need = probe.needs(map(router.route, conversations_of(drawn)))
    thresholds = probe.thresholds(need)
    parts = []
    for table, pairs in ((prompts, translation_pairs(prompts)), (ours, paraphrase_pairs(ours))):
        if pairs.rows and (not options.only or pairs.name in options.only):
            with counting(pairs.name, len(pairs.rows)) as progress:
                parts.append(compare_pairs(probe, table, pairs, progress))
    transformations = chosen(options.only) if not options.only or set(options.only) - {TRANSLATION, PARAPHRASE} else ()
    if transformations:
        with counting("changed prompts", len(transformations) * len(drawn)) as progress:
            parts.append(run_battery(probe, drawn, transformations, options.seed, progress))
    changes = summarise(pd.concat(parts, ignore_index=True), thresholds, probe.capabilities)
    attacks = pd.DataFrame()
    if options.attack is not None:
        with counting("gadgets", options.attack.steps) as progress:
            attacks = run_attacks(probe, drawn, thresholds, options.attack, options.seed, progress)
    return Robustness(_about(probe, drawn, thresholds, options), changes, attacks, _gate(changes, attacks, options))


def _drawn(prompts: pd.DataFrame, options: RobustnessOptions) -> pd.DataFrame:
    generator = np.random.default_rng(options.seed)
    rows = generator.choice(len(prompts), min(options.sample, len(prompts)), replace=False)
    return prompts.iloc[np.sort(rows)].reset_index(drop=True)


def _gate(changes: pd.DataFrame, attacks: pd.DataFrame, options: RobustnessOptions) -> pd.DataFrame:
    """Every gated family against the limit of flips, every gadget that asks for the strong model against that of success."""
    rows = [
        {
            "what": row["family"],
            "value": row["flipped"],
            "limit": options.max_flips,
            "n": row["n"],
            "kept": row["flipped"] <= options.max_flips,
        }
        for row in changes[(changes["name"] == ALL) & changes["gated"]].to_dict("records")
    ]
    if len(attacks):
        ours = attacks[
            (attacks["direction"] == "up") & (attacks["threshold"] == "own") & (attacks["kind"] != "benign") & attacks["success"].notna()
        ]
        rows += [
            {"what": f"{row['kind']} {row['position']}", "value": row["success"], "limit": options.max_success, "n": row["n"],
             "kept": row["success"] <= options.max_success}
            for row in ours.to_dict("records")
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=["what", "value", "limit", "n", "kept"])


def _about(probe: Probe, drawn: pd.DataFrame, thresholds: Mapping[str, float], options: RobustnessOptions) -> dict[str, Any]:
    attack = options.attack
    return {
        "prompts": len(drawn),
        "groups": int(drawn["group"].nunique()),
        "languages": int(drawn["language"].nunique()),
        "sources": sorted(drawn["source"].unique()),
        "models": list(probe.router.catalog.names),
        "capabilities": list(probe.capabilities),
        "thresholds": dict(thresholds),
        "seed": options.seed,
        "max_flips": options.max_flips,
        "max_success": options.max_success,
        "attack": None
        if attack is None
        else {
            "tokens": attack.search.length, "candidates": attack.search.candidates, "iterations": attack.search.iterations,
            "patience": attack.search.patience, "learned_on": attack.learned_on, "own": attack.own, "draws": attack.draws,
        },
    }  # fmt: skip
