"""The shape of every grader: which fields it needs, checked before a single token is paid for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from jsonschema import Draft202012Validator, SchemaError

from router.errors import InvalidInput
from router.nearest import unknown_name

# kind -> (required fields, optional fields)
GRADER_FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "numeric": (("answer",), ("tolerance",)),
    "exact": (("answers",), ()),
    "contains": (("all",), ("none",)),
    "choice": (("answer", "options"), ()),
    "json": (("schema",), ("expect",)),
    "tool_call": (("name",), ("arguments",)),
    "unit_tests": (("entry", "tests"), ()),
    "judge": (("rubric",), ()),
}


def check_grader(grader: Any, where: str, tools: Sequence[Mapping[str, Any]] = ()) -> dict[str, Any]:
    """Return ``grader`` as a dict, or raise an InvalidInput that names the field and what is allowed."""
    if not isinstance(grader, Mapping):
        raise InvalidInput(f"{where}: grader is {grader!r}; expected an object with a kind")
    kind = grader.get("kind")
    if not isinstance(kind, str) or kind not in GRADER_FIELDS:
        raise InvalidInput(f"{where}: {unknown_name('grader kind', str(kind), GRADER_FIELDS)}")
    required, optional = GRADER_FIELDS[kind]
    for name in required:
        if name not in grader:
            raise InvalidInput(f"{where}: grader {kind!r} lacks {name!r}; it needs: {', '.join(required)}")
    # An object column of Parquet gives every grader the fields of all, empty.
    given = {str(name): value for name, value in grader.items() if value is not None or name in required}
    unknown = sorted(set(given) - {"kind", *required, *optional})
    if unknown:
        raise InvalidInput(f"{where}: grader {kind!r}: {unknown_name('field', unknown[0], required + optional)}")
    if problem := _CHECKS[kind](given, tools):
        raise InvalidInput(f"{where}: grader {kind!r}: {problem}")
    return given


def _strings(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, str) and item for item in value)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _numeric(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    if not _number(grader["answer"]):
        return f"answer is {grader['answer']!r}; expected a number"
    tolerance = grader.get("tolerance", 0)
    return None if _number(tolerance) and tolerance >= 0 else f"tolerance is {tolerance!r}; expected a number from 0"


def _exact(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    return None if _strings(grader["answers"]) else "answers must be a non-empty list of strings"


def _contains(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    groups = grader["all"]
    if not isinstance(groups, list) or not groups or not all(_strings(group) for group in groups):
        return "all must be a non-empty list of lists of strings"
    none = grader.get("none", [])
    return None if none == [] or _strings(none) else "none must be a list of strings"


def _choice(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    if not _strings(grader["options"]):
        return "options must be a non-empty list of strings"
    if grader["answer"] not in grader["options"]:
        return f"answer {grader['answer']!r} is not among options {', '.join(grader['options'])}"
    return None


def _json(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    try:
        Draft202012Validator.check_schema(grader["schema"])
    except SchemaError as error:
        return f"schema is not a JSON schema: {error.message}"
    return None if isinstance(grader.get("expect", {}), Mapping) else "expect must be an object of field -> value"


def _tool_call(grader: Mapping[str, Any], tools: Sequence[Mapping[str, Any]]) -> str | None:
    name = grader["name"]
    names = [tool["function"]["name"] for tool in tools]
    if not names:
        return "the prompt offers no tools"
    if name is not None and name not in names:
        return f"name {name!r} is not an offered tool; offered: {', '.join(names)}"
    return None if isinstance(grader.get("arguments", {}), Mapping) else "arguments must be an object"


def _unit_tests(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    if not isinstance(grader["entry"], str) or not grader["entry"].isidentifier():
        return f"entry is {grader['entry']!r}; expected a function name"
    if not _strings(grader["tests"]):
        return "tests must be a non-empty list of assert statements"
    for test in grader["tests"]:
        try:
            ast.parse(test)
        except SyntaxError as error:
            return f"test {test!r} is not Python ({error.msg})"
    return None


def _judge(grader: Mapping[str, Any], _: Sequence[Mapping[str, Any]]) -> str | None:
    return None if isinstance(grader["rubric"], str) and grader["rubric"].strip() else "rubric must be a non-empty string"


_CHECKS: Mapping[str, Callable[[Mapping[str, Any], Sequence[Mapping[str, Any]]], str | None]] = {
    "numeric": _numeric,
    "exact": _exact,
    "contains": _contains,
    "choice": _choice,
    "json": _json,
    "tool_call": _tool_call,
    "unit_tests": _unit_tests,
    "judge": _judge,
}
