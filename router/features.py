"""Named columns that hold in every script: shape, structure and load of a conversation, no words of any one language.

What a task is about is the encoder's matter. These columns say what an embedding of a bounded text cannot: how long, how deep, how much
code, which tools.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.languages import ScriptStatistics, script_statistics
from router.text import ClassifiedText
from router.types import Conversation

FEATURE_NAMES: Final[tuple[str, ...]] = (
    "log_tokens_classified",
    "log_tokens_last_user",
    "log_chars_left_out",
    "log_user_turns",
    "log_turns",
    "log_tools",
    "log_tool_turns",
    "has_image",
    "code_fences",
    "code_share",
    "indented_share",
    "log_lines",
    "mean_line_length",
    "digit_share",
    "punctuation_share",
    "operator_share",
    "bracket_share",
    "question_marks",
    "list_items",
    "has_url",
    "has_path",
    "has_trace",
    "has_json",
    "has_markup",
    "has_formula",
    "identifier_share",
    "repetition",
)

_OPERATORS: Final = frozenset("+-*/=<>^%|&~±×÷≤≥≠∑∫√∈")
_BRACKETS: Final = frozenset("()[]{}")
_QUESTIONS: Final = ("?", "？", "؟", ";", "՞", "፧")
_BULLETS: Final = ("- ", "* ", "• ", "・", "– ")
# Marks of program output and source, spelled alike whatever language the user writes in.
_TRACES: Final = (
    "Traceback (", "\n    at ", 'File "', "Error:", "Exception", "error[", "panic:", "FAILED", "assert ", "stack trace", "exit code",
)  # fmt: skip
_CODE: Final = (
    "def ", "return ", "class ", "import ", "#include", "function ", "const ", "let ", "SELECT ", "public ", "=> ", "->", "();", "):",
    "{\n", "</",
)  # fmt: skip
_PATH: Final = re.compile(r"\.(py|js|ts|java|cpp|rs|go|json|yaml|yml|toml|csv|sql|html|md|log|sh)")
_FORMULAS: Final = ("$$", "\\frac", "\\sum", "\\(", "\\[", "^2", "**2", "\\begin{", "√", "∑", "∫")
_SCANNED_CHARS: Final = 12_000


def extract_features(conversation: Conversation, classified: ClassifiedText) -> NDArray[np.float64]:
    """One row of features, shape (len(FEATURE_NAMES),). Reads the classified text and bounded pieces only, never the whole history."""
    text = classified.text[:_SCANNED_CHARS]
    statistics = script_statistics(text)
    last = next((m.text for m in reversed(conversation.messages) if m.role == "user"), "")[:_SCANNED_CHARS]
    roles = [message.role for message in conversation.messages]
    return np.array(
        [
            math.log1p(statistics.tokens),
            math.log1p((statistics if last == text else script_statistics(last)).tokens),
            math.log1p(sum(amount for reason, amount in classified.cut.items() if reason.endswith("over_budget"))),
            math.log1p(roles.count("user")),
            math.log1p(len(roles)),
            math.log1p(len(conversation.tools)),
            math.log1p(roles.count("tool") + roles.count("function")),
            float("image" in conversation.modalities),
            *_layout(text),
            *_marks(text, statistics),
        ],
        dtype=np.float64,
    )


def _layout(text: str) -> tuple[float, float, float, float, float]:
    """code_fences, code_share, indented_share, log_lines, mean_line_length."""
    fenced = text.split("```")[1::2]
    lines = text.split("\n")
    indented = sum(line.startswith(("    ", "\t", "  ")) for line in lines)
    return (
        math.log1p(len(fenced)),
        sum(map(len, fenced)) / max(1, len(text)),
        indented / len(lines),
        math.log1p(len(lines)),
        math.log1p(len(text) / len(lines)),
    )


def _marks(text: str, statistics: ScriptStatistics) -> tuple[float, ...]:
    """digit_share ... repetition, in the order of FEATURE_NAMES."""
    size = max(1, len(text))
    words = text.split()
    return (
        statistics.share("digit"),
        statistics.share("punctuation"),
        sum(map(text.count, _OPERATORS)) / size,
        sum(map(text.count, _BRACKETS)) / size,
        math.log1p(sum(map(text.count, _QUESTIONS))),
        math.log1p(sum(line.lstrip().startswith(_BULLETS) for line in text.split("\n"))),
        float("://" in text),
        float(_PATH.search(text) is not None),
        float(_any(text, _TRACES)),
        float('{"' in text or "{'" in text),
        float("</" in text or "/>" in text),
        float(_any(text, _FORMULAS)),
        sum(map(text.count, _CODE)) / max(1, len(words)),
        1.0 - len(set(words)) / max(1, len(words)),
    )


def _any(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)
