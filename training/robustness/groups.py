"""Prompts that ask the same in other words or another language, as pairs to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pandas as pd

from training.prompts import load_prompts

PARAPHRASE: Final = "paraphrase"
TRANSLATION: Final = "translation group"
GROUP_FAMILIES: Final = (TRANSLATION, PARAPHRASE)
_PARAPHRASES: Final = Path(__file__).with_name("paraphrases.jsonl")
_REFERENCE: Final = "en"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Rows of a prompt table that ask the same: the first of each pair is what the other one is compared with."""

    name: str
    keeps: str
    gated: bool
    rows: Sequence[tuple[int, int]]


def paraphrases() -> pd.DataFrame:
    """Our own: 40 requests in 14 languages, each in four wordings."""
    return load_prompts(_PARAPHRASES)


def paraphrase_pairs(prompts: pd.DataFrame) -> Pairs:
    """Every further wording of a group in one language, with the first."""
    rows = [
        (first, other) for _, members in _groups(prompts, ["source", "group", "language"]) for first in members[:1] for other in members[1:]
    ]
    return Pairs(PARAPHRASE, "the same request in other words", True, rows)


def translation_pairs(prompts: pd.DataFrame) -> Pairs:
    """Every translation of a group with its English original; groups without one are left out."""
    rows = []
    for _, members in _groups(prompts, ["source", "group"]):
        languages = prompts["language"].iloc[members].tolist()
        if _REFERENCE in languages:
            first = members[languages.index(_REFERENCE)]
            rows += [(first, other) for other, language in zip(members, languages, strict=True) if language != _REFERENCE]
    return Pairs(TRANSLATION, "the same request in another language: reported, with a goal of its own (docs/decisions/0014)", False, rows)


def _groups(prompts: pd.DataFrame, by: list[str]) -> list[tuple[object, list[int]]]:
    positions = prompts[by].assign(position=range(len(prompts)))
    return [(name, part["position"].tolist()) for name, part in positions.groupby(by, sort=False)]
