"""Translations that teach the heads what should not matter: read, checked, and kept apart from what is held out."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.languages import script_statistics
from router.text import TextBudget, classify_text
from router.types import Conversation
from training.agreement import FAULTY_LOG_RATIO
from training.prompts import to_conversations
from training.recipe import ParallelText
from training.tables import read_parquet

MIN_LANGUAGES: Final = 2
ANY_SOURCE: Final = ""
"""Stands for the source of a prompt that a file of parallel text names by its id alone."""


@dataclass(frozen=True)
class Translations:
    """Conversations, each with its source, meaning, language, and the prompt it is or translates, as (source, id) or None."""

    conversations: list[Conversation]
    source: NDArray[np.object_]
    meaning: NDArray[np.object_]
    language: NDArray[np.object_]
    prompt: NDArray[np.object_]

    def __len__(self) -> int:
        return len(self.conversations)

    def of(self, rows: NDArray[np.intp]) -> Translations:
        """Some of them."""
        columns = (self.source[rows], self.meaning[rows], self.language[rows], self.prompt[rows])
        return Translations([self.conversations[i] for i in rows], *columns)

    def seen_by(self, prompts: pd.DataFrame) -> NDArray[np.intp]:
        """Rows whose meaning has none of the ``prompts`` (columns ``source``, ``prompt_id``): what held-out prompts leave to learn."""
        theirs = set(zip(prompts["source"], prompts["prompt_id"], strict=True)) | {(ANY_SOURCE, name) for name in prompts["prompt_id"]}
        hidden = {(s, m) for s, m, prompt in zip(self.source, self.meaning, self.prompt, strict=True) if prompt in theirs}
        return np.flatnonzero([(s, m) not in hidden for s, m in zip(self.source, self.meaning, strict=True)])


def load_translations(
    wanted: Sequence[ParallelText], prompts: pd.DataFrame, folders: Iterable[Path], budget: TextBudget, seed: int = 0
) -> Translations | None:
    """The parallel texts of a recipe, without meanings in one language only and without faulty translations; None if it names none.

    Raises
    ------
    InvalidInput
        If a source or file has no translations.
    """
    if not wanted:
        return None
    places = list(folders)
    tables = [_from_prompts(texts, prompts) if texts.sources else _from_file(texts, places) for texts in wanted]
    chosen = [_chosen(table, texts, seed) for table, texts in zip(tables, wanted, strict=True)]
    table = pd.concat(chosen, ignore_index=True)
    sound = table[~_faulty(table, budget)].reset_index(drop=True)
    columns = (sound[name].to_numpy(object) for name in ("source", "meaning", "language", "prompt"))
    return Translations(sound["conversation"].tolist(), *columns)


def _from_prompts(texts: ParallelText, prompts: pd.DataFrame) -> pd.DataFrame:
    part = prompts[prompts["source"].isin(texts.sources)]
    for source in texts.sources:
        if not (part["source"] == source).any():
            there = ", ".join(sorted(prompts["source"].unique()))
            raise InvalidInput(
                f"parallel source {source!r} of the recipe is not in the prompts, which are of {there}: add its folder to --data"
            )
    table = part[["source", "language"]].assign(
        meaning=part["group"].astype(str),
        conversation=to_conversations(part),
        prompt=list(zip(part["source"], part["prompt_id"], strict=True)),
    )
    return table.drop_duplicates(["source", "meaning", "language"])


def _from_file(texts: ParallelText, folders: Sequence[Path]) -> pd.DataFrame:
    found = [path for folder in folders if (path := folder / texts.file).is_file()]
    if not found:
        there = ", ".join(map(str, folders)) or "no folder was given"
        raise InvalidInput(
            f"parallel text {texts.file!r} of the recipe is in none of the data folders ({there}): add it, or leave the entry out"
        )
    table = read_parquet(found[0])
    missing = [name for name in ("group", "language", "text") if name not in table]
    if missing:
        raise InvalidInput(f"{found[0]} lacks column {missing[0]!r}: group, language and text are needed")
    table = table[table["text"].astype(str).str.strip() != ""]
    source = table["source"] if "source" in table else found[0].stem
    return pd.DataFrame(
        {
            "source": source,
            "meaning": table["group"].astype(str),
            "language": table["language"].astype(str),
            "prompt": [(ANY_SOURCE, name) for name in table["outcome_prompt_id"]] if "outcome_prompt_id" in table else None,
            "conversation": table["text"].astype(str).map(Conversation.from_text),
        }
    ).drop_duplicates(["source", "meaning", "language"])


def _chosen(table: pd.DataFrame, texts: ParallelText, seed: int) -> pd.DataFrame:
    """Meanings in several languages, at most so many a source; a hash decides, so that more data keeps the choice."""
    languages = table.groupby(["source", "meaning"])["language"].transform("nunique")
    several = table[languages >= MIN_LANGUAGES]
    if several.empty:
        raise InvalidInput(
            f"{texts.file or ', '.join(texts.sources)}: no group is there in {MIN_LANGUAGES} languages, so there is nothing parallel"
        )
    rank = several["meaning"].map(lambda name: zlib.crc32(f"{seed}/{name}".encode()))
    return several[rank.groupby(several["source"]).rank(method="dense") <= texts.meanings]


def _faulty(table: pd.DataFrame, budget: TextBudget) -> pd.Series[bool]:
    """Translations half or twice as long as the middle one of their meaning."""
    letters = [script_statistics(classify_text(c, budget).words).latin_letters for c in table["conversation"]]
    length = pd.Series(np.log1p(letters), index=table.index)
    middle = length.groupby([table["source"], table["meaning"]]).transform("median")
    return (length - middle).abs() > FAULTY_LOG_RATIO
