"""How often added tokens reroute a prompt: drawn at random, searched for, and beside natural text of the same length.

The attacker sees requirements and sends as many queries as the budget allows. A universal gadget is learned on some prompts and tried on
prompts of other groups; a gadget of a prompt's own is searched for on that prompt itself. What counts are decisions of ``Router.route``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.types import Conversation
from training.progress import Advance, uncounted
from training.robustness.battery import conversations_of, wilson
from training.robustness.gadgets import DIRECTIONS, Direction, Position, SearchOptions, random_gadget, search_gadget, with_gadget
from training.robustness.probe import Probe
from training.robustness.wrappers import phrases

Array = NDArray[np.float64]
Gadget = tuple[str, ...]
Trial = tuple[int, Gadget]
POSITIONS: Final[tuple[Position, ...]] = ("suffix", "prefix")
KINDS: Final[Mapping[str, str]] = {
    "benign": "natural text of the same number of words: the control",
    "random": "tokens drawn blindly",
    "universal": "one gadget for all prompts, searched for on others",
    "own": "a gadget searched for on the very prompt",
}
# fmt: off
_MARKS: Final = (
    "```", "\\frac", "http://", "{", "}", "()", "^2", "def", "return", "1000000", "==", "<=", "x_1", "//", "*", "#", "$$", "</p>", "import",
    "class", "main.py", "Error:", "?", "!", "-", "12", "7", "3.5", "->", "[", "]", ";", "foo_bar", "getName", "Traceback", "SELECT", "\\n",
    ".", ",", ":", "10^9", "|", "&", "%", "+", "=", "2024",
)
# fmt: on
_WORD: Final = re.compile(r"[^\W\d_]{2,12}")
_MARK_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """Budget of the attacks: the search, prompts a universal gadget learns from, prompts with a gadget of their own, and blind draws."""

    search: SearchOptions = field(default_factory=SearchOptions)
    learned_on: int = 12
    own: int = 16
    draws: int = 5

    @property
    def steps(self) -> int:
        """Gadgets that are searched for or drawn, for a progress bar."""
        return len(POSITIONS) * (len(DIRECTIONS) * (1 + self.own) + 2 * self.draws)


def run_attacks(
    probe: Probe,
    prompts: pd.DataFrame,
    thresholds: Mapping[str, float],
    options: AttackOptions,
    seed: int = 0,
    progress: Advance = uncounted,
) -> pd.DataFrame:
    """Attack the router in every way.

    Returns
    -------
    pandas.DataFrame
        One row a kind, position, direction and threshold: ``n`` trials on prompts that are on the side the attack starts from, their
        ``groups``, ``success`` (share that crosses the threshold) with ``low`` and ``high``, mean ``moved`` need, ``queries`` spent on a
        gadget, and ``gadget``.

    Raises
    ------
    InvalidInput
        Fewer prompts than the universal gadget needs to learn from and to be tried on.
    """
    attack = _Attack(probe, prompts, thresholds, options, seed, progress)
    rows = []
    for position in POSITIONS:
        for kind in ("benign", "random"):
            trials = attack.drawn(kind)
            rows += [row for direction in DIRECTIONS for row in attack.rows(kind, position, direction, trials)]
        for direction in DIRECTIONS:
            gadget, queries = attack.search(attack.learned, direction, position)
            everyone = [(i, gadget) for i in range(len(attack.tried))]
            rows += attack.rows("universal", position, direction, everyone, queries, " ".join(gadget))
            found = [(i, *attack.search([attack.tried[i]], direction, position)) for i in attack.starting(direction)[: options.own]]
            own = [(i, gadget) for i, gadget, _ in found]
            rows += attack.rows("own", position, direction, own, max((queries for *_, queries in found), default=0))
    return pd.DataFrame(rows)


class _Attack:
    """The prompts that gadgets are learned on and tried on, and what the router says of the latter without one."""

    def __init__(
        self,
        probe: Probe,
        prompts: pd.DataFrame,
        thresholds: Mapping[str, float],
        options: AttackOptions,
        seed: int,
        progress: Advance,
    ) -> None:
        self.rng = random.Random(seed)  # noqa: S311 - no secret is made of it
        self.probe, self.thresholds, self.options, self.progress = probe, thresholds, options, progress
        learned, tried = _split(prompts, options.learned_on, self.rng)
        conversations = conversations_of(prompts)
        self.vocabulary = vocabulary_of(conversations)
        self.learned, self.tried = ([conversations[i] for i in rows] for rows in (learned, tried))
        self.languages, self.groups = (prompts[name].astype(str).to_numpy()[tried] for name in ("language", "group"))
        self.before = probe.needs(map(probe.router.route, self.tried))

    def drawn(self, kind: str) -> list[Trial]:
        """Every prompt with some gadgets that nobody searched for."""
        trials: list[Trial] = []
        for _ in range(self.options.draws):
            length = self.options.search.length
            for i, language in enumerate(self.languages):
                blind = random_gadget(self.vocabulary, length, self.rng)
                trials.append((i, blind if kind == "random" else _courtesy(language, length, self.rng)))
            self.progress(1)
        return trials

    def search(self, conversations: Sequence[Conversation], direction: Direction, position: Position) -> tuple[Gadget, int]:
        """A gadget for these prompts, and the queries it took."""
        found = search_gadget(self._needs, conversations, self.vocabulary, direction, position, self.options.search, self.rng)
        self.progress(1)
        return found

    def starting(self, direction: Direction) -> list[int]:
        """Prompts that the attack has to move at the router's own threshold, before those that are over already."""
        over = (self.before > self.thresholds["own"]) == (direction == "up")
        return [int(i) for i in np.argsort(over, kind="stable")]

    def rows(
        self, kind: str, position: Position, direction: Direction, trials: Sequence[Trial], queries: int = 0, gadget: str = ""
    ) -> list[dict[str, Any]]:
        """Success of some gadgets, one row a threshold."""
        at = [i for i, _ in trials]
        before, groups = self.before[at], self.groups[at]
        changed = (with_gadget(self.tried[i], tokens, position) for i, tokens in trials)
        after = self.probe.needs(map(self.probe.router.route, changed))
        said = {"kind": kind, "position": position, "direction": direction}
        rest = {"moved": float((after - before).mean()), "queries": queries, "gadget": gadget}
        rows = []
        for name, tau in self.thresholds.items():
            start = before <= tau if direction == "up" else before > tau
            crossed = after > tau if direction == "up" else after <= tau
            found: dict[str, Any] = {"n": int(start.sum()), "groups": len(set(groups[start])), "success": None, "low": None, "high": None}
            if start.any():
                found["success"] = float(crossed[start].mean())
                found["low"], found["high"] = wilson(found["success"], found["groups"])
            rows.append({**said, "threshold": name, **found, **rest})
        return rows

    def _needs(self, conversations: Sequence[Conversation]) -> Array:
        return self.probe.need(self.probe.requirements(conversations))


def vocabulary_of(conversations: Sequence[Conversation]) -> list[str]:
    """Words of the prompts and, for two draws in five, marks of code, formulas and numbers: what the router's columns count."""
    words = sorted({word for conversation in conversations for word in _WORD.findall(conversation.user_texts[-1])})
    repeat = max(1, round(len(words) * _MARK_SHARE / (1 - _MARK_SHARE) / len(_MARKS)))
    return [*words, *_MARKS * repeat]


def _courtesy(language: str, words: int, rng: random.Random) -> Gadget:
    """Greeting and thanks in the prompt's language, cut to so many words."""
    known = phrases()
    pairs = known.get(language.split("-")[0], known["en"])
    return tuple(" ".join(text for pair in rng.sample(pairs, len(pairs)) for text in pair).split()[:words])


def _split(prompts: pd.DataFrame, learned_on: int, rng: random.Random) -> tuple[list[int], list[int]]:
    """Positions to learn a gadget on and to try it on; a group is on one side."""
    group = prompts["group"].astype(str).to_numpy()
    names = sorted(set(group))
    rng.shuffle(names)
    learned: list[int] = []
    while names and len(learned) < learned_on:
        learned += np.flatnonzero(group == names.pop()).tolist()
    tried = np.flatnonzero(np.isin(group, names)).tolist()
    if not tried:
        raise InvalidInput(
            f"{len(prompts)} prompts are too few for attacks, which are learned on {learned_on} and tried on others: "
            "give more, or --no-attack"
        )
    return learned[:learned_on], tried
