"""What is put around a request and asks for nothing more: courtesy, and the frames of benchmarks."""

from __future__ import annotations

import json
import random
from functools import lru_cache
from pathlib import Path
from typing import Final

from router.languages import primary_subtag
from training.robustness.transformation import Transformation, on_last_turn

_EXAMPLES: Final = (
    ("Which planet is closest to the sun?", "Mercury"),
    ("What is 12 plus 30?", "42"),
    ("Name the opposite of 'early'.", "Late"),
)
_OPTIONS: Final = ("All of the above", "None of the above", "It depends on the case", "There is not enough information")


@lru_cache(maxsize=1)
def phrases() -> dict[str, list[list[str]]]:
    """Greeting and thanks by language, two of each."""
    read: dict[str, list[list[str]]] = json.loads((Path(__file__).parent / "phrases.json").read_text(encoding="utf-8"))
    return read


def _phrase(language: str, rng: random.Random) -> list[str]:
    return rng.choice(phrases().get(primary_subtag(language), phrases()["en"]))


def greeting(text: str, language: str, rng: random.Random) -> str:
    """A greeting before the request."""
    return f"{_phrase(language, rng)[0]} {text}"


def thanks(text: str, language: str, rng: random.Random) -> str:
    """Thanks behind it."""
    return f"{text.rstrip()}\n\n{_phrase(language, rng)[1]}"


def greeting_and_thanks(text: str, language: str, rng: random.Random) -> str:
    """Both."""
    before, after = _phrase(language, rng)
    return f"{before}\n\n{text.rstrip()}\n\n{after}"


def question_answer(text: str, language: str, rng: random.Random) -> str:
    """The shortest frame of an evaluation."""
    return f"Question: {text.strip()}\nAnswer:"


def answer_following(text: str, language: str, rng: random.Random) -> str:
    """A frame that announces a question."""
    return f"Answer the following question.\n\n{text.strip()}\n\nAnswer:"


def instruction(text: str, language: str, rng: random.Random) -> str:
    """The frame of instruction tuning."""
    return (
        "The following is an instruction that describes a task. Write a response that carries it out.\n\n"
        f"### Instruction:\n{text.strip()}\n\n### Response:"
    )


def few_shot(text: str, language: str, rng: random.Random) -> str:
    """Three answered examples before the request."""
    shots = "\n\n".join(f"Question: {question}\nAnswer: {answer}" for question, answer in rng.sample(_EXAMPLES, 3))
    return f"{shots}\n\nQuestion: {text.strip()}\nAnswer:"


def step_by_step(text: str, language: str, rng: random.Random) -> str:
    """The request to think in steps."""
    return f"{text.rstrip()}\n\nLet's think step by step."


def options(text: str, language: str, rng: random.Random) -> str:
    """A frame that offers four answers."""
    listed = "\n".join(f"{letter}) {option}" for letter, option in zip("ABCD", rng.sample(_OPTIONS, 4), strict=True))
    return f"Answer the following question.\n\n{text.strip()}\n\nOptions:\n{listed}\n\nAnswer with the letter only."


WRAPPERS: Final = (
    Transformation("greeting", "courtesy", on_last_turn(greeting), "courtesy asks for nothing"),
    Transformation("thanks", "courtesy", on_last_turn(thanks), "courtesy asks for nothing"),
    Transformation("greeting_and_thanks", "courtesy", on_last_turn(greeting_and_thanks), "courtesy asks for nothing"),
    Transformation("question_answer", "benchmark frame", on_last_turn(question_answer), "the same question"),
    Transformation("answer_following", "benchmark frame", on_last_turn(answer_following), "the same question"),
    Transformation("instruction", "benchmark frame", on_last_turn(instruction), "the same instruction"),
    Transformation("few_shot", "benchmark frame", on_last_turn(few_shot), "the examples are easier and answered already"),
    Transformation(
        "step_by_step",
        "benchmark frame (may change the work)",
        on_last_turn(step_by_step),
        "asks for longer answers, which may help a weak model: reported only",
        gated=False,
    ),
    Transformation(
        "options",
        "benchmark frame (may change the work)",
        on_last_turn(options),
        "choosing among answers is other work than finding one: reported only",
        gated=False,
    ),
)
"""In the order of the report."""
