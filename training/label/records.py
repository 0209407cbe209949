"""What a stored answer, verdict or score must look like before anything reads it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from training.label.config import DIMENSIONS, is_number


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _price(value: Any) -> bool:
    return is_number(value) and value >= 0


def _share(value: Any) -> bool:
    return is_number(value) and 0 <= value <= 1


def _calls(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(call, dict) and isinstance(call.get("name"), str) and isinstance(call.get("arguments"), str) for call in value
    )


def _marks(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == set(DIMENSIONS) and all(map(_share, value.values()))


Fields = Mapping[str, Callable[[Any], bool]]
_ANSWER: Fields = {
    "text": _text,
    "finish_reason": _text,
    "prompt_tokens": _count,
    "completion_tokens": _count,
    "cost_usd": _price,
    "at": _text,
}
_ANSWER_IF_THERE: Fields = {"tool_calls": _calls, "max_tokens": _count}
_JUDGEMENT: Fields = {"first_scores": _marks, "second_scores": _marks}
_SCORE: Fields = {"prompt_id": _text, "model": _text, "dimension": DIMENSIONS.__contains__, "score": _share, "by": _text, "detail": _text}


def wrong_in_answer(record: Mapping[str, Any]) -> str | None:
    """Name the first field of an answer that is missing or of the wrong kind."""
    return _first_wrong(record, {**_ANSWER, **{name: test for name, test in _ANSWER_IF_THERE.items() if name in record}})


def wrong_in_judgement(record: Mapping[str, Any]) -> str | None:
    """Name the first field of a verdict that is missing or of the wrong kind."""
    return _first_wrong(record, _JUDGEMENT)


def wrong_in_score(record: Mapping[str, Any]) -> str | None:
    """Name the first field of a score that is missing or of the wrong kind."""
    return _first_wrong(record, _SCORE)


def _first_wrong(record: Mapping[str, Any], wanted: Fields) -> str | None:
    return next((name for name, is_right in wanted.items() if not is_right(record.get(name))), None)
