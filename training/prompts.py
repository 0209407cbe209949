"""The canonical prompt table: read, checked row by row, and completed with language, family, turns and split key."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, overload

import pandas as pd

from router.errors import InvalidInput
from router.languages import UNKNOWN_LANGUAGE, check_language, family_of, identify_language
from router.text import classify_text
from router.types import Conversation
from training.split import rule_group
from training.tables import (
    Table,
    is_missing,
    json_column,
    json_value,
    optional,
    optional_text,
    read_batches,
    refuse_duplicates,
    require_columns,
    require_text,
    shared_texts,
)

REQUIRED: Final = ("source", "prompt_id", "turns")
OPTIONAL_TEXT: Final = ("task_kind", "category", "licence", "capability", "difficulty", "group", "family")
COLUMNS: Final = (
    "source", "prompt_id", "language", "family", "task_kind", "category", "turns", "n_turns", "licence", "group", "capability",
    "difficulty", "tools", "grader",
)  # fmt: skip
"""Columns of every loaded table, in this order; further ones are kept behind them."""

_ALIASES: Final = {"messages": "turns", "license": "licence"}
_READ_OF_MANY: Final = tuple({*COLUMNS, *_ALIASES} - {"grader"})
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
        One row a prompt, with the columns of :data:`COLUMNS`. ``turns`` and ``tools`` are lists, ``grader`` is a dictionary or None. A
        Parquet file of more than 50,000 rows is read in batches and has only these columns: ``turns`` and ``tools`` stay JSON text there,
        which takes a quarter of the memory, and ``grader`` is None.

    Raises
    ------
    InvalidInput
        One line that names file, line or row, column, value and what is allowed.
    """
    batches = read_batches(Path(path), "prompts", _READ_OF_MANY)
    table = next(batches)
    first = complete_prompts(table, name=str(path), source=source)
    others = [_compact(complete_prompts(further, name=str(path), source=source)) for further in batches]
    return _one_table([_compact(first), *others], table.places[0][1]) if others else first


def complete_prompts(table: Table, *, name: str = "prompts", source: str | None = None) -> pd.DataFrame:
    """Check a table in the canonical format and fill in what it leaves out; see :func:`load_prompts`."""
    table = canonical_names(table)
    if source is not None:
        values = optional(table.frame, "source")
        table = replace(table, frame=table.frame.assign(source=values.where(values.notna(), source)))
    if "source" not in table.frame:
        raise InvalidInput(f"{name}: column 'source' is missing; add it, or name one source for all rows (option --source)")
    require_columns(table.frame, name, REQUIRED)
    table = replace(table, frame=table.frame.assign(**{column: require_text(table, column) for column in ("source", "prompt_id")}))
    refuse_duplicates(table, ("source", "prompt_id"), "ids are unique within a source")
    frame = table.frame.copy()
    for column in OPTIONAL_TEXT:
        frame[column] = optional_text(table, column)
    frame["turns"], frame["tools"], conversations = read_turns(table)
    frame["n_turns"] = [len(conversation.user_texts) for conversation in conversations]
    frame["grader"] = json_column(table, "grader", dict)
    frame["language"] = [tag or _identify(turns) for tag, turns in zip(read_languages(table), conversations, strict=True)]
    frame["family"] = [_family(language, given) for language, given in zip(frame["language"], frame["family"], strict=True)]
    frame["group"] = [_group(row) for row in frame[["source", "prompt_id", "category", "group"]].to_dict("records")]
    return frame[[*COLUMNS, *(column for column in frame.columns if column not in COLUMNS)]]


def _compact(prompts: pd.DataFrame) -> pd.DataFrame:
    """The same rows with turns and tools as JSON text, and one object for equal texts."""
    as_text = {
        column: pd.Series([None if value is None else json.dumps(value, ensure_ascii=False) for value in prompts[column]], dtype=object)
        for column in ("turns", "tools")
    }
    texts = {column: shared_texts(prompts[column]) for column in ("source", "language", "family", *OPTIONAL_TEXT)}
    return prompts.assign(**as_text, **texts)


def _one_table(parts: list[pd.DataFrame], file: str) -> pd.DataFrame:
    frame = pd.concat(parts, ignore_index=True)
    frame = frame.assign(**{column: shared_texts(frame[column]) for column in ("source", "language", "family", *OPTIONAL_TEXT)})
    refuse_duplicates(Table(frame, ((0, file, 1),)), ("source", "prompt_id"), "ids are unique within a source")
    return frame


def canonical_names(table: Table) -> Table:
    """The table with ``messages`` and ``license`` under the names used here, unless those are there as well."""
    return replace(table, frame=table.frame.rename(columns={old: new for old, new in _ALIASES.items() if new not in table.frame}))


def read_turns(table: Table) -> tuple[pd.Series[Any], pd.Series[Any], list[Conversation]]:
    """``turns`` and ``tools`` of every row as lists (tools may be None), and the conversation that they make.

    Raises
    ------
    InvalidInput
        A row without turns, with turns or tools of another shape, or without a user turn that has text.
    """
    asked = pd.Series([_question(value) for value in table.frame["turns"]], index=table.frame.index, dtype=object)
    turns = list(json_column(replace(table, frame=table.frame.assign(turns=asked)), "turns", list))
    tools = list(json_column(table, "tools", list))
    conversations = []
    for row in range(len(asked)):
        if turns[row] is None:
            raise InvalidInput(f"{table.where(row)}: column 'turns' is empty; a list of {{role, content}} is needed")
        if tools[row] is None:
            turns[row], tools[row] = _lift_tools(turns[row])
        try:
            conversation = Conversation.from_openai(turns[row], tools[row])
        except InvalidInput as error:
            raise InvalidInput(f"{table.where(row)}: column 'turns': {error}") from error
        if not conversation.user_texts:
            raise InvalidInput(f"{table.where(row)}: column 'turns' has no user turn with text; a prompt needs one")
        conversations.append(conversation)
    index = table.frame.index
    return pd.Series(turns, index=index, dtype=object), pd.Series(tools, index=index, dtype=object), conversations


def read_languages(table: Table) -> list[str | None]:
    """``language`` of every row, None where it is left out.

    Raises
    ------
    InvalidInput
        What is not a BCP-47 tag.
    """
    given = optional_text(table, "language")
    for row, value in enumerate(given):
        try:
            if value is not None:
                check_language(value)
        except InvalidInput as error:
            raise InvalidInput(f"{table.where(row)}: column 'language': {error}") from error
    return list(given)


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
    return list(Conversations(prompts))


class Conversations(Sequence[Conversation]):
    """:func:`to_conversations` one at a time: each is made when it is asked for and not kept, so that a million take no memory."""

    def __init__(self, prompts: pd.DataFrame) -> None:
        self._columns = {name: prompts[name].to_numpy(dtype=object) for name in ("turns", "tools", "language") if name in prompts}

    def __len__(self) -> int:
        return len(self._columns["turns"])

    @overload
    def __getitem__(self, index: int) -> Conversation: ...

    @overload
    def __getitem__(self, index: slice) -> list[Conversation]: ...

    def __getitem__(self, index: int | slice) -> Conversation | list[Conversation]:
        if isinstance(index, slice):
            return [self[row] for row in range(*index.indices(len(self)))]
        return to_conversation({name: values[index] for name, values in self._columns.items()})


def _question(value: Any) -> Any:
    """A text that is not JSON is the question itself: one user turn."""
    if isinstance(value, str) and value.strip() and not value.lstrip().startswith(("[", "{")):
        return [{"role": "user", "content": value}]
    return value


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
    return (turns[1:], [_function_tool(tool) for tool in listed]) if all(isinstance(tool, dict) for tool in listed) else (turns, None)


def _function_tool(tool: dict[str, Any]) -> dict[str, Any]:
    """A function that is described without its OpenAI wrapping, wrapped."""
    bare = isinstance(tool.get("name"), str) and not tool.keys() & {"type", "function", "custom"}
    return {"type": "function", "function": tool} if bare else tool


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
