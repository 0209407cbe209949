"""The records of a labelling run: answers, verdicts and scores, with what no longer stands left out and counted."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from router.errors import InvalidInput
from training.audit.labels import PLACE, read_records
from training.label.answering import ANSWER_KEY
from training.label.config import DIMENSIONS
from training.label.judging import JUDGEMENT_KEY, answer_of, pair_digest
from training.label.prompts import LabelPrompt
from training.label.prompts import load_prompts as load_label_prompts
from training.label.records import wrong_in_answer, wrong_in_judgement, wrong_in_score

Record = dict[str, Any]
SCORE_COLUMNS: Final = ("prompt_id", "model", "dimension", "score", "by", "detail")


def read_run(folder: Path, prompts: pd.DataFrame) -> dict[str, Any]:
    """Fields ``answers``, ``verdicts``, ``scores`` and ``notes`` of :class:`training.audit.labels.Labels`."""
    notes: list[str] = []
    place = prompts[["prompt_id", *PLACE]]
    answers = read_records(folder / "answers.jsonl", ANSWER_KEY, wrong_in_answer)
    verdicts = read_records(folder / "judgements.jsonl", JUDGEMENT_KEY, wrong_in_judgement)
    scores = read_records(folder / "scores.jsonl", ("prompt_id", "model", "dimension"), wrong_in_score)
    for name, records in (("answers.jsonl", answers), ("judgements.jsonl", verdicts), ("scores.jsonl", scores)):
        if records is None:
            notes.append(f"there is no {name}: what needs it is not measurable")
    kept = _latest(answers, ("prompt_id", "model")) if answers is not None else None
    if answers is not None and kept is not None and len(answers) > len(kept):
        notes.append(f"{len(answers) - len(kept)} answers were replaced by later ones of the same model; the latest counts")
    if verdicts is not None:
        verdicts = _standing(folder, _latest(verdicts, JUDGEMENT_KEY), kept, notes)
    return {
        "answers": None if kept is None else _placed(_answers_table(kept), place, "answers", notes),
        "verdicts": None if verdicts is None else _placed(_verdicts_table(verdicts), place, "verdicts", notes),
        "scores": None if scores is None else _placed(pd.DataFrame(scores, columns=list(SCORE_COLUMNS)), place, "scores", notes),
        "notes": tuple(notes),
    }  # fmt: skip


def _latest(records: list[Record], key: tuple[str, ...]) -> list[Record]:
    """Of records with equal keys the last, as :class:`training.label.store.JsonlStore` reads them."""
    return list({tuple(record[name] for name in key): record for record in records}.values())


def _standing(folder: Path, verdicts: list[Record], answers: list[Record] | None, notes: list[str]) -> list[Record]:
    """The verdicts on answers as they stand now; one on a replaced answer, or under an earlier rubric, says nothing of the label."""
    if answers is None:
        return verdicts
    try:
        known = {prompt.prompt_id: prompt for prompt in load_label_prompts(_prompt_file(folder))}
    except InvalidInput as error:
        notes.append(f"whether verdicts are about the answers as they stand cannot be told ({error})")
        return verdicts
    current = {(record["prompt_id"], record["model"]): record for record in answers}
    kept = [record for record in verdicts if _is_standing(record, known, current)]
    if len(kept) < len(verdicts):
        notes.append(f"{len(verdicts) - len(kept)} of {len(verdicts)} verdicts are about answers or rubrics since replaced, and left out")
    return kept


def _prompt_file(folder: Path) -> Path:
    return next(folder / f"prompts{suffix}" for suffix in (".parquet", ".jsonl", ".ndjson") if (folder / f"prompts{suffix}").is_file())


def _is_standing(record: Record, known: Mapping[str, LabelPrompt], current: Mapping[tuple[str, str], Record]) -> bool:
    prompt = known.get(record["prompt_id"])
    pair = [current.get((record["prompt_id"], record[side])) for side in ("first", "second")]
    if prompt is None or pair[0] is None or pair[1] is None:
        return False
    return bool(record["pair_hash"] == pair_digest(prompt, answer_of(pair[0]), answer_of(pair[1])))


def _placed(table: pd.DataFrame, place: pd.DataFrame, what: str, notes: list[str]) -> pd.DataFrame:
    found = table.merge(place, on="prompt_id", how="inner", validate="many_to_one")
    if len(found) < len(table):
        notes.append(f"{len(table) - len(found)} of {len(table)} {what} are about prompts that the table does not have, and left out")
    return found


def _answers_table(records: list[Record]) -> pd.DataFrame:
    """One row an answer; ``characters`` counts the text and the arguments of tool calls."""
    rows = []
    for record in records:
        answer = answer_of(record)
        size = len(answer.text.strip()) + sum(len(call["name"]) + len(call["arguments"]) for call in answer.tool_calls)
        rows.append((record["prompt_id"], record["model"], answer.text, bool(answer.tool_calls), answer.finish_reason, size))
    return pd.DataFrame(rows, columns=["prompt_id", "model", "text", "calls_tools", "finish_reason", "characters"])


def _verdicts_table(records: list[Record]) -> pd.DataFrame:
    """One row a verdict; ``first_<dimension>`` and ``second_<dimension>`` are marks from 0 to 1."""
    rows = []
    for record in records:
        marks = {f"{side}_{name}": record[f"{side}_scores"][name] for side in ("first", "second") for name in DIMENSIONS}
        rows.append({name: record[name] for name in ("prompt_id", "first", "second", "judge")} | marks)
    columns = ["prompt_id", "first", "second", "judge", *(f"{side}_{name}" for side in ("first", "second") for name in DIMENSIONS)]
    table = pd.DataFrame(rows, columns=columns)
    short = pd.Series([name.partition("#")[0] for name in table["judge"]], index=table.index, dtype=object)
    # The digest behind the name stays only where one judge was asked under several settings.
    ambiguous = table.groupby(short)["judge"].transform("nunique") > 1
    return table.assign(judge=table["judge"].where(ambiguous, short))
