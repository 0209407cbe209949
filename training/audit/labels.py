"""A folder of labels, read and checked: prompts and outcomes, and what ``interlock label`` keeps beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pandas as pd

from router.errors import InvalidInput
from training.audit.slices import AuditOptions
from training.dedup import near_duplicates
from training.outcomes import load_outcomes, match_prompts
from training.prompts import load_prompts
from training.split import group_key, prompt_texts
from training.tables import JSONL_SUFFIXES, read_jsonl

Say = Callable[[str], None]
PLACE: Final = ["source", "family", "language", "split_group"]


@dataclass(frozen=True)
class Labels:
    """What a folder of labels holds.

    Attributes
    ----------
    folder
        Where it was read.
    prompts
        Canonical prompt table with ``split_group``, the key that no split may separate.
    texts
        What the user wrote in each prompt.
    duplicates
        Pairs of row numbers of near-duplicate prompts.
    outcomes
        Canonical outcome table with the columns of :data:`PLACE`.
    answers
        Latest answer of each model to each prompt; None without ``answers.jsonl``.
    verdicts
        Every verdict on answers that still stand; None without ``judgements.jsonl``.
    scores
        Score rows of graders and judges; None without ``scores.jsonl``.
    card
        ``run.json``, empty without one.
    notes
        Sentences on what is missing or was left out.
    """

    folder: Path
    prompts: pd.DataFrame
    texts: list[str]
    duplicates: list[tuple[int, int]]
    outcomes: pd.DataFrame
    answers: pd.DataFrame | None = None
    verdicts: pd.DataFrame | None = None
    scores: pd.DataFrame | None = None
    card: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def model_of(self, role: str) -> str:
        """Name of the model with a role in the run; empty where the run card does not say."""
        models = self.card.get("models", [])
        return next((str(m.get("name", "")) for m in models if isinstance(m, dict) and m.get("role") == role), "")


def read_labels(folder: Path, options: AuditOptions | None = None, say: Say = print) -> Labels:
    """Read and check everything in a folder; nothing in it is changed.

    Raises
    ------
    InvalidInput
        In one line: no folder, no prompts or outcomes, a table or record that breaks the format.
    """
    _require_tables(folder)
    say("reading prompts and outcomes")
    prompts, outcomes = load_prompts(folder), load_outcomes(folder)
    match_prompts(outcomes, prompts)
    texts = prompt_texts(prompts)
    say(f"comparing the texts of {len(prompts):,} prompts")
    pairs = near_duplicates(texts, similarity=(options or AuditOptions()).similarity)
    prompts = prompts.assign(split_group=group_key(prompts, duplicates=pairs))
    outcomes = outcomes.merge(prompts[["source", "prompt_id", *PLACE[1:]]], on=["source", "prompt_id"], how="left")
    if not any((folder / name).is_file() for name in ("answers.jsonl", "judgements.jsonl", "scores.jsonl")):
        note = (
            "there are neither answers nor verdicts nor grader reports here, only prompts and outcomes: what needs those is not measurable"
        )
        return Labels(folder, prompts, texts, pairs, outcomes, card=_card(folder), notes=(note,))
    from training.audit.run_folder import read_run

    _require_unique_ids(prompts)
    say("reading answers, verdicts and scores")
    return Labels(folder, prompts, texts, pairs, outcomes, card=_card(folder), **read_run(folder, prompts))


def _require_tables(folder: Path) -> None:
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InvalidInput(f"{folder} {what}: name a folder as `interlock label` writes it, or one with prompts and outcomes")
    for stem in ("prompts", "outcomes"):
        if not any((folder / f"{stem}{suffix}").is_file() for suffix in (".parquet", *JSONL_SUFFIXES)):
            have = ", ".join(sorted(path.name for path in folder.iterdir())[:8]) or "nothing"
            more = "; `interlock label` writes it" if stem == "outcomes" else ""
            raise InvalidInput(f"{folder} has no {stem}.parquet or {stem}.jsonl{more}: there are no labels to audit (found: {have})")


def _require_unique_ids(prompts: pd.DataFrame) -> None:
    twice = prompts["prompt_id"].duplicated()
    if twice.any():
        raise InvalidInput(
            f"prompt {prompts.loc[twice, 'prompt_id'].iloc[0]!r} is in two sources, and answers name prompts by id alone: "
            "audit the run of each source by itself"
        )


def _card(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.is_file():
        return {}
    try:
        card = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} cannot be read as JSON: {error}") from error
    if not isinstance(card, dict) or not isinstance(card.get("models", []), list):
        raise InvalidInput(f"{path} is not a run card: an object with a list of models was expected")
    return card


def read_records(path: Path, keys: tuple[str, ...], wrong: Callable[[Mapping[str, Any]], str | None]) -> list[dict[str, Any]] | None:
    """Objects of a JSONL file in their order, None without one.

    Raises
    ------
    InvalidInput
        File, line and field of the first record that is not as labelling writes it.
    """
    if not path.is_file():
        return None
    frame, lines = read_jsonl(path)
    records: list[dict[str, Any]] = frame.to_dict("records")
    for line, record in zip(lines, records, strict=True):
        named = {name: value for name, value in record.items() if not (isinstance(value, float) and value != value)}
        field_name = next((name for name in keys if not isinstance(named.get(name), str)), None) or wrong(named)
        if field_name is not None:
            raise InvalidInput(f"{path.name}:{line}: {field_name!r} is missing or not what it should be; label again, or delete the line")
    return records
