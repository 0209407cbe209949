"""Prompts to label, read from JSONL, a folder of JSONL, or Parquet, and checked row by row."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from router.errors import LabelError
from training.label.grader_specs import check_grader

DEFAULT_GRADER: Mapping[str, Any] = {"kind": "judge", "rubric": "A correct, complete answer that does what was asked."}
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


ALLOWED_FIELDS = tuple(f.name for f in fields(LabelPrompt))
# Columns of the public outcome-table format that carry nothing a labeller needs, or carry it under another name.
IGNORED_FIELDS = ("n_turns", "src_lang")
JSON_COLUMNS = ("messages", "turns", "tools", "grader", "metadata")


def digest(value: Any) -> str:
    """Return 16 hex digits that identify a JSON value."""
    text = json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def load_prompts(path: Path) -> list[LabelPrompt]:
    """Read and check every prompt under ``path``.

    Raises
    ------
    LabelError
        With the file and line (or row) of the first thing that cannot be used.
    """
    if not path.exists():
        raise LabelError(f"prompts {str(path)!r} do not exist; give a .jsonl file, a folder of them, or a .parquet file")
    prompts: list[LabelPrompt] = []
    seen: dict[str, str] = {}
    for where, row in _rows(path):
        prompt = parse_prompt(row, where)
        if prompt.prompt_id in seen:
            raise LabelError(f"{where}: prompt_id {prompt.prompt_id!r} was already used at {seen[prompt.prompt_id]}; ids must be unique")
        seen[prompt.prompt_id] = where
        prompts.append(prompt)
    if not prompts:
        raise LabelError(f"prompts {str(path)!r} hold no prompt; expected one JSON object a line")
    return prompts


def _rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    if path.is_dir():
        files = sorted(path.glob("*.jsonl"))
        if not files:
            raise LabelError(f"folder {str(path)!r} holds no .jsonl file")
        for file in files:
            yield from _jsonl_rows(file)
    elif path.suffix == ".parquet":
        yield from _parquet_rows(path)
    elif path.suffix in (".jsonl", ".ndjson"):
        yield from _jsonl_rows(path)
    else:
        raise LabelError(f"{str(path)!r} ends in {path.suffix!r}; allowed: .jsonl, .ndjson, .parquet, or a folder of .jsonl")


def _jsonl_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for number, raw in enumerate(path.read_bytes().split(b"\n"), start=1):
        where = f"{path.name}:{number}"
        if not raw.strip():
            continue
        try:
            row = json.loads(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError as error:
            raise LabelError(f"{where}: not UTF-8 (byte {error.start} is 0x{raw[error.start]:02x}); save the file as UTF-8") from error
        except json.JSONDecodeError as error:
            raise LabelError(f"{where}: not JSON ({error.msg} at column {error.colno}); expected one JSON object a line") from error
        if not isinstance(row, dict):
            raise LabelError(f"{where}: expected a JSON object, got {type(row).__name__}")
        yield where, row


def _parquet_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_table(path).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise LabelError(f"{str(path)!r} is not a readable Parquet file: {str(error).splitlines()[0]}") from error
    for number, row in enumerate(rows, start=1):
        where = f"{path.name} row {number}"
        clean = {name: value for name, value in row.items() if value is not None}
        for name in JSON_COLUMNS:
            text = clean.get(name)
            # A plain text under messages is the question itself, not a list of messages.
            if isinstance(text, str) and (name != "messages" or text.lstrip().startswith("[{")):
                try:
                    clean[name] = json.loads(text)
                except json.JSONDecodeError as error:
                    raise LabelError(f"{where}: column {name!r} is not JSON ({error.msg})") from error
        yield where, clean


def parse_prompt(row: Mapping[str, Any], where: str) -> LabelPrompt:
    """Check one record; ``where`` names it in errors."""
    values = {name: value for name, value in row.items() if name not in IGNORED_FIELDS and value is not None}
    if "turns" in values and "messages" not in values:
        values["messages"] = values.pop("turns")
    unknown = sorted(set(values) - set(ALLOWED_FIELDS))
    if unknown:
        raise LabelError(f"{where}: unknown field {unknown[0]!r}; allowed: {', '.join(ALLOWED_FIELDS)} (or turns for messages)")
    for name in ("prompt_id", "messages"):
        if name not in values:
            raise LabelError(f"{where}: field {name!r} is missing; present: {', '.join(sorted(row)) or 'none'}")
    _check_types(values, where)
    values["messages"] = _check_messages(values["messages"], where)
    values["tools"] = _check_tools(values.get("tools", []), where)
    values["grader"] = check_grader(values.get("grader", dict(DEFAULT_GRADER)), where, values["tools"])
    if "capability" not in values and "task_kind" in values:
        values["capability"] = values["task_kind"]
    return LabelPrompt(**values)


def _check_types(values: Mapping[str, Any], where: str) -> None:
    for name, value in values.items():
        if name in ("messages", "tools", "grader", "metadata"):
            continue
        if name == "max_tokens":
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise LabelError(f"{where}: max_tokens is {value!r}; allowed: a whole number from 1")
        elif not isinstance(value, str) or (name == "prompt_id" and not value.strip()):
            raise LabelError(f"{where}: field {name!r} is {value!r}; expected a non-empty string")


def _check_messages(messages: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    if not isinstance(messages, list) or not messages:
        raise LabelError(f"{where}: messages must be a non-empty list of {{role, content}}")
    for number, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            got = message.get("role") if isinstance(message, dict) else message
            raise LabelError(f"{where}: messages[{number}] has role {got!r}; allowed: {', '.join(ROLES)}")
        if not isinstance(message.get("content"), str | list) and not message.get("tool_calls"):
            raise LabelError(f"{where}: messages[{number}] has no content; expected text or a list of content parts")
    if messages[-1]["role"] not in ("user", "tool"):
        raise LabelError(f"{where}: the last message is by {messages[-1]['role']!r}; a prompt ends with the user or a tool result")
    return tuple(messages)


def _check_tools(tools: Any, where: str) -> tuple[Mapping[str, Any], ...]:
    if not isinstance(tools, list | tuple):
        raise LabelError(f"{where}: tools must be a list of OpenAI function tools")
    for number, tool in enumerate(tools):
        function = tool.get("function") if isinstance(tool, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise LabelError(f'{where}: tools[{number}] is not an OpenAI function tool {{"type": "function", "function": {{"name": ...}}}}')
    return tuple(tools)
