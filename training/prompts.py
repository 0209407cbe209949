"""The canonical prompt table: read, checked row by row, and completed with language, family, turns and split key."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import pandas as pd

from router.errors import InvalidInput
from router.languages import UNKNOWN_LANGUAGE, check_language, family_of, identify_language
from router.text import classify_text
from router.types import Conversation
from training.split import rule_group
from training.tables import Table, is_missing, json_value, optional, read_table, require_columns, require_text

REQUIRED: Final = ("source", "prompt_id", "turns")
OPTIONAL_TEXT: Final = ("task_kind", "category", "licence", "capability", "difficulty", "group", "family")
COLUMNS: Final = (
    "source", "prompt_id", "language", "family", "task_kind", "category", "turns", "n_turns", "licence", "group", "capability",
    "difficulty", "tools", "grader",
)  # fmt: skip
"""Columns of every loaded table, in this order; further ones are kept behind them."""

_ALIASES: Final = {"messages": "turns", "license": "licence"}
# How a benchmark that knows no tools field hands its tools over: this line, then one tool or a list of them in JSON.
_TOOLS_IN_SYSTEM: Final = "You can call these tools:"


def load_prompts(path: Path | str, *, source: str | None = None) -> pd.DataFrame:
    """Read the canonical prompt table from Parquet, JSONL, or a folder of either.

    Parameters
    ----------
    path
        File, folder with ``prompts.parquet`` or ``prompts.jsonl``, or folder of JSONL files.
    source
        Value for rows that have no source.

    Returns
    -------
    pandas.DataFrame
        One row a prompt, with the columns of :data:`COLUMNS`. ``turns`` and ``tools`` are lists, ``grader`` is a dictionary or None.

    Raises
    ------
    InvalidInput
        One line that names file, line or row, column, value and what is allowed.
    """
    table = read_table(Path(path), "prompts")
    return complete_prompts(table, name=str(path), source=source)


def complete_prompts(table: Table, *, name: str = "prompts", source: str | None = None) -> pd.DataFrame:
    """Check a table in the canonical format and fill in what it leaves out; see :func:`load_prompts`."""
    table = Table(_renamed(table.frame, source), table.places)
    if "source" not in table.frame:
        raise InvalidInput(f"{name}: column 'source' is missing; add it, or name one source for all rows (option --source)")
    require_columns(table, name, REQUIRED)
    frame = table.frame.copy()
    for column in ("source", "prompt_id"):
        frame[column] = require_text(table, column)
    _refuse_duplicates(frame, table)
    for column in OPTIONAL_TEXT:
        frame[column] = _optional_text(table, column)
    conversations = _read_turns(frame, table)
    frame["n_turns"] = [len(conversation.user_texts) for conversation in conversations]
    frame["grader"] = _json_column(table, "grader", dict)
    frame["language"] = _languages(table, conversations)
    frame["family"] = [_family(language, given) for language, given in zip(frame["language"], frame["family"], strict=True)]
    frame["group"] = [_group(row) for row in frame[["source", "prompt_id", "category", "group"]].to_dict("records")]
    return frame[[*COLUMNS, *(column for column in frame.columns if column not in COLUMNS)]]


def to_conversation(row: Mapping[str, Any] | pd.Series[Any]) -> Conversation:
    """The conversation of one row of the table: its turns, tools and language, as serving would see them."""
    tools = row.get("tools")
    language = row.get("language")
    return Conversation.from_openai(
        json_value(row["turns"]),
        None if is_missing(tools) else json_value(tools),
        language=None if is_missing(language) or language == UNKNOWN_LANGUAGE else str(language),
    )


def to_conversations(prompts: pd.DataFrame) -> list[Conversation]:
    """Conversations of all rows, in order."""
    columns = [column for column in ("turns", "tools", "language") if column in prompts]
    return [to_conversation(row) for row in prompts[columns].to_dict("records")]


def _renamed(frame: pd.DataFrame, source: str | None) -> pd.DataFrame:
    renamed = frame.rename(columns={old: new for old, new in _ALIASES.items() if new not in frame})
    if source is not None:
        values = optional(renamed, "source")
        renamed = renamed.assign(source=values.where(values.notna(), source))
    return renamed


def _refuse_duplicates(frame: pd.DataFrame, table: Table) -> None:
    twice = frame.duplicated(["source", "prompt_id"]).to_numpy()
    if twice.any():
        row = int(twice.argmax())
        key = tuple(frame.loc[row, ["source", "prompt_id"]])
        first = int(((frame["source"] == key[0]) & (frame["prompt_id"] == key[1])).to_numpy().argmax())
        what = f"prompt_id {key[1]!r} of source {key[0]!r}"
        raise InvalidInput(f"{table.where(row)}: {what} stands already at {table.where(first)}; ids are unique within a source")


def _optional_text(table: Table, column: str) -> pd.Series[Any]:
    values = optional(table.frame, column)
    for row, value in enumerate(values):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{table.where(row)}: column {column!r} is {value!r}; a text or nothing is allowed")
    return values


def _json_column(table: Table, column: str, kind: type) -> pd.Series[Any]:
    values = optional(table.frame, column)
    parsed: list[Any] = []
    for row, value in enumerate(values):
        try:
            content = None if value is None else json_value(value)
        except json.JSONDecodeError as error:
            raise InvalidInput(f"{table.where(row)}: column {column!r} is not JSON ({error})") from error
        if content is not None and not isinstance(content, kind):
            shape = "list" if kind is list else "object"
            raise InvalidInput(f"{table.where(row)}: column {column!r} holds a {type(content).__name__}; a JSON {shape} is needed")
        parsed.append(content)
    return pd.Series(parsed, index=values.index, dtype=object)


def _read_turns(frame: pd.DataFrame, table: Table) -> list[Conversation]:
    """Parse ``turns`` and ``tools`` in place, and give each row's conversation."""
    turns, tools = _json_column(table, "turns", list), _json_column(table, "tools", list)
    conversations = []
    for row in range(len(frame)):
        if turns.iloc[row] is None:
            raise InvalidInput(f"{table.where(row)}: column 'turns' is empty; a list of {{role, content}} is needed")
        if tools.iloc[row] is None:
            turns.iloc[row], tools.iloc[row] = _lift_tools(turns.iloc[row])
        try:
            conversation = Conversation.from_openai(turns.iloc[row], tools.iloc[row])
        except InvalidInput as error:
            raise InvalidInput(f"{table.where(row)}: column 'turns': {error}") from error
        if not conversation.user_texts:
            raise InvalidInput(f"{table.where(row)}: column 'turns' has no user turn with text; a prompt needs one")
        conversations.append(conversation)
    frame["turns"], frame["tools"] = turns, tools
    return conversations


def _lift_tools(turns: list[Any]) -> tuple[list[Any], list[Any] | None]:
    """Tools that a first system turn lists as JSON, taken out of it: in serving they arrive as tools and not as text."""
    first = turns[0] if turns else None
    content = first.get("content") if isinstance(first, dict) and first.get("role") == "system" else None
    if not isinstance(content, str) or not content.startswith(_TOOLS_IN_SYSTEM):
        return turns, None
    try:
        tools = json.loads(content.removeprefix(_TOOLS_IN_SYSTEM))
    except json.JSONDecodeError:
        return turns, None
    listed = tools if isinstance(tools, list) else [tools]
    return (turns[1:], listed) if all(isinstance(tool, dict) for tool in listed) else (turns, None)


def _languages(table: Table, conversations: list[Conversation]) -> list[str]:
    given = _optional_text(table, "language")
    languages = []
    for row, value in enumerate(given):
        if value is None:
            languages.append(_identify(conversations[row]))
            continue
        try:
            languages.append(check_language(value))
        except InvalidInput as error:
            raise InvalidInput(f"{table.where(row)}: column 'language': {error}") from error
    return languages


def _identify(conversation: Conversation) -> str:
    from router.files.artifacts import language_identifier

    classified = classify_text(conversation)
    return identify_language(classified.text, language_identifier(), prose=classified.prose)


def _family(language: str, given: str | None) -> str:
    """Our name of the family (English apart from Germanic); the given one only for a language we have no family for."""
    family = family_of(language)
    return given if family == "Other" and given and language != UNKNOWN_LANGUAGE else family


def _group(row: Mapping[str, Any]) -> str:
    return row["group"] or rule_group(row["source"], row["prompt_id"], row["category"])
