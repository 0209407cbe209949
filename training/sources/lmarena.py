"""LMArena human preferences: two anonymous models answer, a person says which is better."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from router.errors import InvalidInput
from router.languages import check_language
from training.sources.base import Collector, Converted, Source
from training.sources.reading import read_rows, text, texts

SCORE_KIND: Final = "human_preference"
_SCORES: Final[Mapping[str, tuple[float, float]]] = {
    "model_a": (1.0, 0.0),
    "model_b": (0.0, 1.0),
    "tie": (0.5, 0.5),
    "both_bad": (0.0, 0.0),
    "tie (bothbad)": (0.0, 0.0),
}
_FLAGS: Final = {"winner_model_a": "model_a", "winner_model_b": "model_b", "winner_tie": "tie"}


def read(path: Path) -> Converted:
    """One battle a row: the conversation up to the last user turn, and a score for each of the two models."""
    found = Collector("lmarena", SOURCE.licence)
    for where, row in read_rows(path, ("model_a", "model_b")):
        battle = next((str(row[name]) for name in ("id", "question_id") if row.get(name) is not None), None)
        if battle is None:
            raise InvalidInput(f"{where}: neither column 'id' nor 'question_id' has a value; one is needed")
        models = text(row["model_a"], where, "model_a"), text(row["model_b"], where, "model_b")
        turns = _turns(row, where)
        if models[0] == models[1] or not any(turn["role"] == "user" and _has_text(turn["content"]) for turn in turns):
            found.skipped["one model against itself" if models[0] == models[1] else "without text from the user"] += 1
            continue
        if battle in found.prompts:
            found.skipped["the same id again"] += 1
            continue
        kind = "code" if row.get("is_code") in (True, "True", "true") else "chat"
        found.prompt(battle, turns, language=_language(row.get("language")), task_kind=kind)
        for model, score in zip(models, _SCORES[_winner(row, where)], strict=True):
            found.outcome(battle, model, SCORE_KIND, score)
    return found.converted(path)


def _winner(row: Mapping[str, Any], where: str) -> str:
    if row.get("winner") is not None:
        winner = str(row["winner"]).strip().lower()
        if winner not in _SCORES:
            raise InvalidInput(f"{where}: column 'winner' is {row['winner']!r}; allowed are {', '.join(_SCORES)}")
        return winner
    chosen = [winner for flag, winner in _FLAGS.items() if str(row.get(flag)) in ("1", "1.0", "True")]
    if len(chosen) != 1:
        raise InvalidInput(f"{where}: a column 'winner', or exactly one of {', '.join(_FLAGS)} set to 1, is needed")
    return chosen[0]


def _turns(row: Mapping[str, Any], where: str) -> list[dict[str, Any]]:
    """User turns with the answers of model A between them, ending with the last user turn."""
    turns = list(_from_conversation(row["conversation_a"], where) if row.get("conversation_a") else _from_lists(row, where))
    while turns and turns[-1]["role"] != "user":
        turns.pop()
    return turns


def _from_conversation(conversation: Any, where: str) -> Iterator[dict[str, Any]]:
    if not isinstance(conversation, list) or not all(isinstance(turn, dict) for turn in conversation):
        raise InvalidInput(f"{where}: column 'conversation_a' is not a list of {{role, content}}")
    for turn in conversation:
        content = turn.get("content")
        if isinstance(content, list):
            content = [part for part in map(_part, content) if part is not None]
        yield {"role": turn.get("role"), "content": content if content is not None else ""}


def _part(part: Any) -> dict[str, str] | None:
    """A content part without its pixels: what matters is that there is an image."""
    if not isinstance(part, dict):
        return None
    if isinstance(part.get("text"), str) and part.get("type", "text") == "text":
        return {"type": "text", "text": part["text"]}
    return {"type": str(part["type"])} if part.get("type") not in (None, "text") else None


def _from_lists(row: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    prompts = texts(row.get("prompt"), where, "prompt")
    answers = texts(row["response_a"], where, "response_a") if row.get("response_a") is not None else []
    for turn, prompt in enumerate(prompts):
        yield {"role": "user", "content": prompt or ""}
        if turn < len(answers):
            yield {"role": "assistant", "content": answers[turn] or ""}


def _has_text(content: Any) -> bool:
    parts = content if isinstance(content, list) else [{"text": content}]
    return any(str(part.get("text") or "").strip() for part in parts)


def _language(value: Any) -> str | None:
    """A language tag as given; names such as ``unknown`` are left to identification."""
    if not isinstance(value, str) or value.lower() in ("unknown", "und", "xx", "zxx", ""):
        return None
    try:
        return check_language(value) if len(value.split("-")[0]) <= 3 else None
    except InvalidInput:
        return None


SOURCE = Source(
    name="lmarena",
    title="LMArena human preferences (arena-human-preference-55k, -100k, -140k)",
    url="https://huggingface.co/datasets/lmarena-ai/arena-human-preference-140k",
    licence="see the data set's card (55k: Apache-2.0)",
    columns={
        "id or question_id": "unique id of the battle",
        "model_a, model_b": "names of the two models",
        "winner": "model_a, model_b, tie, both_bad (or `tie (bothbad)`); 55k: winner_model_a, winner_model_b, winner_tie",
        "conversation_a": "turns {role, content}; 55k: prompt and response_a, JSON lists of texts",
        "language": "tag of the conversation (optional; identified from the text where absent)",
        "is_code": "whether it is about code (optional)",
    },
    scores=f"{SCORE_KIND}: 1 to the winner and 0 to the loser; 0.5 to both for a tie; 0 to both if both are bad",
    read=read,
)
