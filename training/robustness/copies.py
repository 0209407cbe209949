"""Changed copies of training prompts, from which the heads learn what should not matter, as they do from translations."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from router.types import Conversation
from training.parallel import Translations
from training.robustness.attack import POSITIONS, vocabulary_of
from training.robustness.gadgets import random_gadget, with_gadget
from training.robustness.registry import chosen

COPIES: Final = "changed copies"
"""Their source: one among those of the translations, which weigh the same."""
LICENCE: Final = "that of the prompts (changed by us; only how inputs vary is learned)"
_CHANGES: Final = ("courtesy", "answer_following", "instruction", "bullets", "tools_padded_to_32")
_GADGETS: Final = 3
_TOKENS: Final = (4, 14)


def with_changed_copies(
    translations: Translations, prompts: pd.DataFrame, conversations: Sequence[Conversation], count: int, seed: int = 0
) -> Translations:
    """The translations, and so many of the prompts with copies that ask the same: framed otherwise, or with tokens added blindly.

    ``prompts`` has ``source``, ``prompt_id`` and ``language`` of every conversation; a copy belongs to its prompt, so that held-out prompts
    take theirs with them.
    """
    rng = random.Random(seed)  # noqa: S311 - no secret is made of it
    rows = rng.sample(range(len(prompts)), min(count, len(prompts)))
    picked = [conversations[i] for i in rows]
    vocabulary = vocabulary_of(picked)
    copies: list[tuple[Conversation, int]] = []
    for i, conversation in zip(rows, picked, strict=True):
        language = str(prompts["language"].iloc[i])
        changed = [change.apply(conversation, language, rng) for change in chosen(_CHANGES)]
        gadgets = [random_gadget(vocabulary, rng.randint(*_TOKENS), rng) for _ in range(_GADGETS)]
        moved = [with_gadget(conversation, gadget, rng.choice(POSITIONS)) for gadget in gadgets]
        copies += [(copy, i) for copy in (conversation, *changed, *moved) if copy is not None]
    taken = prompts.iloc[[i for _, i in copies]]
    prompt = np.empty(len(copies), dtype=object)
    prompt[:] = list(zip(taken["source"], taken["prompt_id"], strict=True))
    return Translations(
        [*translations.conversations, *(copy for copy, _ in copies)],
        np.append(translations.source, np.full(len(copies), COPIES, dtype=object)),
        np.append(translations.meaning, np.array([str(i) for _, i in copies], dtype=object)),
        np.append(translations.language, taken["language"].to_numpy(object)),
        np.append(translations.prompt, prompt),
    )
