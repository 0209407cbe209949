"""How often added tokens reroute a prompt: drawn at random, searched for, and beside natural text of the same length.

The attacker sees requirements and sends as many queries as the budget allows. Gadgets for every prompt are learned on some prompts and tried on
others of other groups; gadgets of one prompt are searched for on that prompt itself. What is counted are decisions of ``Router.route``.
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
POSITIONS: Final[tuple[Position, ...]] = ("suffix", "prefix")
KINDS: Final[Mapping[str, str]] = {
    "benign": "natural text of the same number of words: the control",
    "random": "tokens drawn blindly",
    "universal": "one gadget for all prompts, searched for on others",
    "own": "a gadget searched for on the very prompt",
}
_MARKS: Final = tuple(
    [
        "```",
        "\\frac",
        "http://",
        "{",
        "}",
        "()",
        "^2",
        "def",
        "return",
        "1000000",
        "==",
        "<=",
        "x_1",
        "//",
        "*",
        "#",
        "$$",
        "</p>",
        "import",
        "class",
        "main.py",
        "Error:",
        "?",
        "!",
        "-",
        "12",
        "7",
        "3.5",
        "->",
        "[",
        "]",
        ";",
        "foo_bar",
        "getName",
        "Traceback",
        "SELECT",
        "\\n",
        ".",
        ",",
        ":",
        "10^9",
        "|",
        "&",
        "%",
        "+",
        "=",
        "2024",
    ]
)
_WORD: Final = re.compile(r"[^\W\d_]{2,12}")
_MARK_SHARE: Final = 0.4


@dataclass(frozen=True, slots=True)
class AttackOptions:
    """Budget of the attacks: the search, prompts a universal gadget learns from, prompts with a gadget of their own, and blind draws."""

    search: SearchOptions = field(default_factory=SearchOptions)
    learned_on: int = 16
    own: int = 24
    draws: int = 10

    @property
    def queries(self) -> int:
        """Most queries for a universal gadget, and so the most that any gadget takes."""
        return self.search.candidates * self.search.iterations * self.learned_on

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
        One row a kind, position, direction and threshold: ``n`` prompts that are on the side the attack starts from, ``groups``, ``success``
        (share that crosses the threshold) with ``low`` and ``high``, mean ``moved`` need, ``queries`` spent on a gadget, and ``gadget``.

    Raises
    ------
    InvalidInput
        Fewer prompts than the universal gadget needs to learn from and to be tried on.
    """
    rng = random.Random(seed)
    learned, tried = _split(prompts, options.learned_on, rng)
    conversations = conversations_of(prompts)
    field_ = _Field(probe, prompts, conversations, tried, thresholds)
    vocabulary = vocabulary_of(conversations, rng)
    rows: list[dict[str, Any]] = []
    for position in POSITIONS:
        for kind in ("benign", "random"):
            trials = []
            for _ in range(options.draws):
                trials.append([_drawn(kind, prompts["language"].iloc[i], vocabulary, options.search.length, rng) for i in tried])
                progress(1)
            rows += [row for direction in DIRECTIONS for row in field_.rows(kind, position, direction, trials)]
        for direction in DIRECTIONS:
            start = [conversations[i] for i in learned]
            found, queries = search_gadget(_needs(probe), start, vocabulary, direction, position, options.search, rng)
            progress(1)
            rows += field_.rows("universal", position, direction, [[found] * len(tried)], queries, " ".join(found))
            own, spent = _own_gadgets(
                probe, [conversations[i] for i in tried[: options.own]], vocabulary, direction, position, options, rng, progress
            )
            rows += field_.rows("own", position, direction, [own], spent)
    return pd.DataFrame(rows)


def vocabulary_of(conversations: Sequence[Conversation], rng: random.Random) -> list[str]:
    """Words of the prompts and, for two draws in five, marks of code, formulas and numbers: what the router's columns count."""
    words = sorted({word for conversation in conversations for word in _WORD.findall(conversation.user_texts[-1])})
    repeat = max(1, round(len(words) * _MARK_SHARE / (1 - _MARK_SHARE) / len(_MARKS)))
    return [*words, *_MARKS * repeat]


def _needs(probe: Probe) -> Any:
    return lambda conversations: probe.need(probe.requirements(conversations))


def _own_gadgets(
    probe: Probe,
    conversations: Sequence[Conversation],
    vocabulary: Sequence[str],
    direction: Direction,
    position: Position,
    options: AttackOptions,
    rng: random.Random,
    progress: Advance,
) -> tuple[list[Gadget], int]:
    gadgets, spent = [], []
    for conversation in conversations:
        gadget, queries = search_gadget(_needs(probe), [conversation], vocabulary, direction, position, options.search, rng)
        gadgets.append(gadget)
        spent.append(queries)
        progress(1)
    return gadgets, round(float(np.mean(spent)))


def _drawn(kind: str, language: str, vocabulary: Sequence[str], length: int, rng: random.Random) -> Gadget:
    """Tokens drawn blindly, or courtesy in the prompt's language, cut to as many words."""
    if kind == "random":
        return random_gadget(vocabulary, length, rng)
    known = phrases()
    words = " ".join(text for pair in known.get(language.split("-")[0], known["en"]) for text in rng.sample(pair, len(pair))).split()
    return tuple(words[:length])


def _split(prompts: pd.DataFrame, learned_on: int, rng: random.Random) -> tuple[list[int], list[int]]:
    """Positions to learn a gadget on and to try it on; a group is on one side."""
    groups = sorted(prompts["group"].astype(str).unique())
    rng.shuffle(groups)
    positions = {
        name: part.tolist() for name, part in prompts.assign(position=range(len(prompts))).groupby(prompts["group"].astype(str))["position"]
    }
    learned: list[int] = []
    while groups and len(learned) < learned_on:
        learned += positions[groups.pop()]
    tried = [i for name in groups for i in positions[name]]
    if not tried:
        raise InvalidInput(
            f"{len(prompts)} prompts are too few for attacks, which are learned on {learned_on} and tried on others: give more, or --no-attack"
        )
    return learned[:learned_on], tried


class _Field:
    """The prompts that gadgets are tried on, and what the router says of them without one."""

    def __init__(
        self,
        probe: Probe,
        prompts: pd.DataFrame,
        conversations: Sequence[Conversation],
        tried: Sequence[int],
        thresholds: Mapping[str, float],
    ) -> None:
        self.probe, self.thresholds = probe, thresholds
        self.conversations = [conversations[i] for i in tried]
        self.groups = prompts["group"].astype(str).to_numpy()[list(tried)]
        self.before = probe.needs(map(probe.router.route, self.conversations))

    def rows(
        self, kind: str, position: Position, direction: Direction, trials: Sequence[Sequence[Gadget]], queries: int = 0, gadget: str = ""
    ) -> list[dict[str, Any]]:
        """Success of some gadgets a prompt, one row a threshold; fewer gadgets than prompts are tried on the first ones."""
        count = len(trials[0])
        before = np.tile(self.before[:count], len(trials))
        groups = np.tile(self.groups[:count], len(trials))
        changed = [with_gadget(c, g, position) for trial in trials for c, g in zip(self.conversations, trial, strict=False)]
        after = self.probe.needs(map(self.probe.router.route, changed))
        rows = []
        for name, tau in self.thresholds.items():
            start = before <= tau if direction == "up" else before > tau
            crossed = (after > tau) if direction == "up" else (after <= tau)
            n, own = int(start.sum()), len(set(groups[start]))
            success = float(crossed[start].mean()) if n else None
            low, high = (None, None) if success is None else wilson(success, own)
            rows.append(
                {"kind": kind, "position": position, "direction": direction, "threshold": name, "n": n, "groups": own, "success": success,
                 "low": low, "high": high, "moved": float((after - before).mean()), "queries": queries, "gadget": gadget}
            )  # fmt: skip
        return rows
