"""Prompts to label: the prompt table as everything else reads it (:mod:`training.prompts`), with what asking and grading need of it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from router.errors import InvalidInput
from router.languages import without_surrogates
from router.nearest import unknown_name
from training.label.grader_specs import check_grader
from training.prompts import canonical_names, read_languages, read_turns
from training.tables import Table, json_column, optional, optional_text, plain, read_table, refuse_duplicates, require_columns, require_text

DEFAULT_GRADER: Mapping[str, Any] = {"kind": "judge", "rubric": "A correct, complete answer that does what was asked."}
MAX_TOKENS = 1_000_000
ROLES = ("system", "developer", "user", "assistant", "tool")


@dataclass(frozen=True)
class LabelPrompt:
    """One prompt with its grader; ``messages`` and ``tools`` are OpenAI-shaped."""

    prompt_id: str
    messages: tuple[Mapping[str, Any], ...]
    language: str = "und"
    family: str | None = None
    source: str | None = None
    capability: str | None = None
    task_kind: str | None = None
    category: str | None = None
    difficulty: str | None = None
    group: str | None = None
    author: str | None = None
    licence: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()
    grader: Mapping[str, Any] = field(default_factory=lambda: dict(DEFAULT_GRADER))
    reference: str | None = None
    max_tokens: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def hash(self) -> str:
        """Hash of what a model reads; a reworded prompt is a new prompt, a regraded one is not."""
        return digest({"messages": list(self.messages), "tools": list(self.tools)})


FIELDS = tuple("turns" if f.name == "messages" else f.name for f in fields(LabelPrompt))
"""What may stand in a row: a field that nobody reads is a mistake that costs tokens, so it is refused."""
OBJECT_FIELDS = ("grader", "metadata")
TEXT_FIELDS = tuple(name for name in FIELDS if name not in (*OBJECT_FIELDS, "turns", "tools", "language", "max_tokens"))
# Columns of the canonical tables that say nothing a labeller needs.
IGNORED_FIELDS = ("n_turns", "src_lang")


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a JSON value."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_prompts(path: Path) -> list[LabelPrompt]:
    """Read and check every prompt of a file or folder in the format of ``docs/data-format.md``; ``source`` may be left out.

    Raises
    ------
    InvalidInput
        With the file and line (or row) of the first thing that cannot be used.
    """
    return label_prompts(read_table(path, "prompts"), name=str(path))


def label_prompts(table: Table, *, name: str = "prompts") -> list[LabelPrompt]:
    """Check a table in the canonical format; see :func:`load_prompts`."""
    table = canonical_names(replace(table, frame=table.frame.apply(_encodable_column)))
    _refuse_unknown(table)
    require_columns(table.frame, name, ("prompt_id", "turns"))
    table = replace(table, frame=table.frame.assign(prompt_id=require_text(table, "prompt_id")))
    refuse_duplicates(table, ("prompt_id",), "ids are unique within a labelling run, whatever the source")
    turns, tools, _ = read_turns(table)
    given: dict[str, Sequence[Any]] = {
        **{column: optional_text(table, column).tolist() for column in TEXT_FIELDS},
        **{column: json_column(table, column, dict).tolist() for column in OBJECT_FIELDS},
        "language": read_languages(table),
        "max_tokens": _token_limits(table),
    }
    prompts = []
    for row in range(len(table.frame)):
        where = table.where(row)
        values = {column: cells[row] for column, cells in given.items() if cells[row] is not None}
        offered = _check_tools(encodable(tools.iloc[row] or []), where)
        values |= {column: encodable(values[column]) for column in OBJECT_FIELDS if column in values}
        values["grader"] = check_grader(values.get("grader", dict(DEFAULT_GRADER)), where, offered)
        if "task_kind" in values:
            values.setdefault("capability", values["task_kind"])
        prompts.append(LabelPrompt(messages=_check_messages(encodable(turns.iloc[row]), where), tools=offered, **values))
    return prompts


def encodable(value: Any) -> Any:
    """Return a JSON value whose texts can be sent and stored: half an emoji, as cut texts hold it, is replaced."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, dict):
        return {encodable(name): encodable(content) for name, content in value.items()}
    return [encodable(content) for content in value] if isinstance(value, list) else value


def _encodable_column(column: pd.Series[Any]) -> pd.Series[Any]:
    return pd.Series([encodable(value) for value in column], column.index, object) if column.dtype == object else column


def _refuse_unknown(table: Table) -> None:
    for column in table.frame.columns:
        if column not in (*FIELDS, *IGNORED_FIELDS):
            used = optional(table.frame, column).notna().to_numpy()
            if used.any():
                raise InvalidInput(f"{table.where(int(used.argmax()))}: {unknown_name('field', str(column), FIELDS)}")


def _token_limits(table: Table) -> list[int | None]:
    limits: list[int | None] = []
    for row, value in enumerate(map(plain, optional(table.frame, "max_tokens"))):
        # A column with gaps often holds its whole numbers as floats.
        whole = isinstance(value, int | float) and not isinstance(value, bool) and 1 <= value <= MAX_TOKENS and value % 1 == 0
        if value is not None and not whole:
            raise InvalidInput(f"{table.where(row)}: max_tokens is {value!r}; a whole number from 1 to {MAX_TOKENS} is allowed")
        limits.append(None if value is None else int(value))
    return limits


def _check_messages(messages: Sequence[Mapping[str, Any]], where: str) -> tuple[Mapping[str, Any], ...]:
    """What a chat endpoint asks for beyond what can be read."""
    for number, message in enumerate(messages):
        if message.get("role") not in ROLES:
            raise InvalidInput(f"{where}: turns[{number}] has role {message.get('role')!r}; allowed are {', '.join(ROLES)}")
        if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
            raise InvalidInput(f"{where}: turns[{number}] has no content; a text or a list of content parts is needed")
    if messages[-1]["role"] not in ("user", "tool"):
        raise InvalidInput(f"{where}: the last turn is by {messages[-1]['role']!r}; a prompt ends with the user or a tool result")
    return tuple(messages)


def _check_tools(tools: Sequence[Any], where: str) -> tuple[Mapping[str, Any], ...]:
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            shape = '{"type": "function", "function": {"name": ...}}'
            raise InvalidInput(f"{where}: tools[{number}] is not an OpenAI function tool {shape}")
    return tuple(tools)
