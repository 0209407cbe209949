"""Programs that grade an answer: one function per grader kind, each returning a Grade.

A grade holds ``correctness`` and, where a program can honestly say so, how complete the answer is and whether it came in the asked
form. ``None`` means that this grader cannot tell. What the two mean, per kind, stands in each function.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator

from router.errors import LabelError
from training.label.code import extract_code, outside_fences
from training.label.sandbox import run_unit_tests
from training.label.text import ascii_digits, bare, fold, last_line, numbers, only_number
from training.label.tool_calls import ToolCall, json_values, read_calls

GRADER_VERSION = 1


@dataclass(frozen=True)
class Answer:
    """What a grader reads of a completion."""

    text: str
    tool_calls: tuple[Mapping[str, str], ...] = ()
    finish_reason: str = "stop"


@dataclass(frozen=True)
class Grade:
    """Scores in [0, 1] by dimension, with a short reason."""

    correctness: float
    detail: str = ""
    completeness: float | None = None
    instruction_following: float | None = None


def grade(grader: Mapping[str, Any], answer: Answer, tools: Sequence[Mapping[str, Any]] = ()) -> Grade:
    """Grade one answer with any kind but ``judge``."""
    kind = grader["kind"]
    if kind not in _GRADERS:
        raise LabelError(f"grader kind {kind!r} is not a program; allowed: {', '.join(_GRADERS)}")
    if not answer.text.strip() and not answer.tool_calls:
        return Grade(0.0, "empty answer", 0.0, 0.0)
    return _GRADERS[kind](grader, answer, tools)


def _numeric(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """The last number of the answer, any script's digits; form: 1 for the number alone, 0.5 among words, 0 without one."""
    found = numbers(answer.text)
    if not found:
        return Grade(0.0, "no number", 0.0, 0.0)
    wanted, tolerance = float(grader["answer"]), float(grader.get("tolerance", 0))
    right = any(abs(value - wanted) <= tolerance + 1e-9 * max(1.0, abs(wanted)) for value in found[-1])
    return Grade(float(right), f"read {min(found[-1]):g}", 1.0, 1.0 if only_number(answer.text) else 0.5)


def _exact(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """The whole answer or its last line; form: 1 if nothing else was said, 0.5 for other single lines, 0 for more."""
    wanted = {bare(text) for text in grader["answers"]}
    whole, last = bare(answer.text), bare(last_line(answer.text))
    right = whole in wanted or last in wanted
    lines = [line for line in answer.text.splitlines() if line.strip()]
    form = 1.0 if whole in wanted or len(whole) <= max(map(len, wanted)) + 4 else 0.5 if len(lines) == 1 else 0.0
    return Grade(float(right), f"read {last[:40]!r}", 1.0, form)


def _contains(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """All groups present and nothing forbidden; completeness: share of groups."""
    text = ascii_digits(fold(answer.text))
    present = [any(ascii_digits(fold(choice)) in text for choice in group) for group in grader["all"]]
    forbidden = [word for word in grader.get("none", []) if ascii_digits(fold(word)) in text]
    detail = f"holds {forbidden[0]!r}" if forbidden else f"{sum(present)} of {len(present)} found"
    return Grade(float(all(present) and not forbidden), detail, sum(present) / len(present))


def _choice(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """The chosen option; form: 1 for the letter alone or leading its own text, 0.5 among other words, 0 without one."""
    options = [str(option) for option in grader["options"]]
    chosen = read_choice(answer.text, options)
    if chosen is None:
        return Grade(0.0, "no option", 0.0, 0.0)
    leads = bare(answer.text).startswith(chosen.casefold()) and len(answer.text.strip().splitlines()) == 1
    return Grade(float(chosen == grader["answer"]), f"read {chosen!r}", 1.0, 1.0 if leads else 0.5)


def read_choice(text: str, options: Sequence[str]) -> str | None:
    """Return the option that leads the answer, else the last one standing alone in it."""
    by_fold = {bare(option): option for option in options}
    if bare(text) in by_fold:
        return by_fold[bare(text)]
    spots = [(at, option) for option in options for at in _standing_alone(text, option)]
    if not spots:
        return None
    first_at, first = min(spots)
    follows = text[first_at + len(first) :].lstrip(" *")[:1]
    if not any(char.isalnum() for char in text[:first_at]) and follows in ("", *").:\n）．：、"):
        return first
    return max(spots)[1]


def _standing_alone(text: str, option: str) -> list[int]:
    spots, at = [], text.find(option)
    while at >= 0:
        around = text[max(0, at - 1) : at], text[at + len(option) : at + len(option) + 1]
        if not any(char.isascii() and char.isalnum() for char in "".join(around)):
            spots.append(at)
        at = text.find(option, at + 1)
    return spots


def _json(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """A JSON value that validates with the expected fields; completeness: share of those right; form: 1 for JSON alone."""
    values = json_values(answer.text)
    if not values:
        return Grade(0.0, "no JSON", 0.0, 0.0)
    validator = Draft202012Validator(grader["schema"])
    valid = [value for value in values if validator.is_valid(value)]
    stripped = answer.text.strip()
    alone = not any(char.isalnum() for char in outside_fences(answer.text)) or stripped[:1] + stripped[-1:] in ("{}", "[]")
    form = 1.0 if alone and len(values) == 1 else 0.5
    if not valid:
        error = next(iter(validator.iter_errors(values[-1])))
        return Grade(0.0, f"schema: {error.message[:80]}", 0.0, form / 2)
    wanted = grader.get("expect", {})
    value = valid[0]
    right = [isinstance(value, dict) and name in value and equal(value[name], expected) for name, expected in wanted.items()]
    share = sum(right) / len(right) if right else 1.0
    return Grade(float(all(right)), f"{sum(right)} of {len(right)} fields right", share, form)


def equal(actual: Any, wanted: Any) -> bool:
    """Compare JSON values: strings folded, numbers by value (also as strings), a list of wanted values as alternatives."""
    if isinstance(wanted, list) and not isinstance(actual, list):
        return any(equal(actual, choice) for choice in wanted)
    if isinstance(wanted, bool) or isinstance(actual, bool):
        return actual is wanted
    if isinstance(wanted, int | float):
        return isinstance(actual, int | float | str) and _same_number(actual, float(wanted))
    if isinstance(wanted, str):
        if isinstance(actual, int | float):
            return _same_number(wanted, float(actual))
        return isinstance(actual, str) and ascii_digits(bare(actual)) == ascii_digits(bare(wanted))
    if isinstance(wanted, list) and isinstance(actual, list):
        pairwise = len(actual) == len(wanted) and all(equal(a, w) for a, w in zip(actual, wanted, strict=True))
        return pairwise or any(isinstance(choice, list) and equal(actual, choice) for choice in wanted)
    if isinstance(wanted, Mapping) and isinstance(actual, Mapping):
        return set(actual) == set(wanted) and all(equal(actual[name], wanted[name]) for name in wanted)
    return bool(actual == wanted)


def _same_number(value: float | str, wanted: float) -> bool:
    try:
        return math.isclose(float(ascii_digits(value) if isinstance(value, str) else value), wanted, rel_tol=1e-9, abs_tol=1e-9)
    except (ValueError, OverflowError):
        return False


def _tool_call(grader: Mapping[str, Any], answer: Answer, tools: Sequence[Mapping[str, Any]]) -> Grade:
    """One call of the right tool with the named arguments right, or text where no tool fits.

    Completeness: share of the named arguments that are right. Form: 1 for one call whose arguments fit the tool's schema.
    """
    calls = _distinct(read_calls(answer.text, answer.tool_calls))
    if grader["name"] is None:
        return _no_call(calls, answer)
    named = [call for call in calls if call.name is not None]
    if not named:
        return Grade(0.0, "no tool call", 0.0, 0.0)
    call, wanted = named[0], grader.get("arguments", {})
    form = 0.5 + 0.5 * _fits_schema(call, tools) if len(named) == 1 else 0.0
    if call.name != grader["name"]:
        return Grade(0.0, f"called {str(call.name)[:40]!r}", 0.0, form)
    right = [name in call.arguments and equal(call.arguments[name], value) for name, value in wanted.items()]
    share = sum(right) / len(right) if right else 1.0
    if len(named) > 1:
        return Grade(0.0, f"{len(named)} calls", share, form)
    wrong = next((name for name, ok in zip(wanted, right, strict=True) if not ok), None)
    return Grade(float(all(right)), f"argument {wrong!r} is wrong" if wrong else "right call", share, form)


def _no_call(calls: Sequence[ToolCall], answer: Answer) -> Grade:
    if any(call.name is not None for call in calls) or answer.tool_calls:
        return Grade(0.0, f"called {str(calls[0].name)[:40]!r}", 0.0, 0.0)
    return Grade(1.0, "no call", 1.0, 0.0 if calls else 1.0)


def _distinct(calls: Sequence[ToolCall]) -> list[ToolCall]:
    kept: list[ToolCall] = []
    for call in calls:
        if call not in kept:
            kept.append(call)
    return kept


def _fits_schema(call: ToolCall, tools: Sequence[Mapping[str, Any]]) -> bool:
    for tool in tools:
        if tool["function"]["name"] == call.name:
            schema = tool["function"].get("parameters") or {}
            known = set(call.arguments) <= set(schema.get("properties", call.arguments))
            return known and bool(Draft202012Validator(schema).is_valid(dict(call.arguments)))
    return False


def _unit_tests(grader: Mapping[str, Any], answer: Answer, _: Sequence[Mapping[str, Any]]) -> Grade:
    """Share of asserts that pass; completeness: the named function is there; form: 1 for code alone, 0.5 with prose."""
    code = extract_code(answer.text, grader["entry"])
    if code is None:
        return Grade(0.0, f"no function {grader['entry']!r} in parseable code", 0.0, 0.0)
    results = run_unit_tests(code, grader["tests"])
    passed = sum(result.passed for result in results)
    failed = next((result.detail for result in results if not result.passed), "")
    prose = outside_fences(answer.text).replace(code.strip(), "")
    form = 0.5 if any(char.isalnum() for char in prose) else 1.0
    return Grade(passed / len(results), f"{passed} of {len(results)} pass" + (f" ({failed[:60]})" if failed else ""), 1.0, form)


_GRADERS: Mapping[str, Callable[[Mapping[str, Any], Answer, Sequence[Mapping[str, Any]]], Grade]] = {
    "numeric": _numeric,
    "exact": _exact,
    "contains": _contains,
    "choice": _choice,
    "json": _json,
    "tool_call": _tool_call,
    "unit_tests": _unit_tests,
}
