"""Named columns that hold in every script: length, layout, numbers and load of a request, no words of any one language.

What a task is about is the encoder's matter. These columns say what an embedding of a bounded text cannot: how long, how deep, how much
code, how large the numbers, which tools. They are the same for the same request in another language, as far as that goes: lengths are
counted in letters that say equally much (:attr:`router.languages.ScriptStatistics.latin_letters`), rates are taken per such letter, and
marks of code are looked for only in lines that look like code.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.languages import script_statistics
from router.text import ClassifiedText
from router.types import Conversation

FEATURE_NAMES: Final[tuple[str, ...]] = (
    "log_letters",
    "log_lines",
    "log_letters_per_line",
    "log_code_fences",
    "code_share",
    "indented_share",
    "log_digits",
    "log_numbers",
    "log_largest_number",
    "log_operator_rate",
    "log_bracket_rate",
    "log_question_marks",
    "log_list_items",
    "log_code_marks",
    "log_identifier_joints",
    "log_bounds",
    "log_powers",
    "has_url",
    "has_path",
    "has_trace",
    "has_json",
    "has_markup",
    "has_formula",
    "log_user_turns",
    "log_turns",
    "log_tools",
    "log_tool_turns",
    "has_image",
)

# Without the hyphen, which joins words in some languages and opens list items in all.
_OPERATORS: Final = "+*/=<>^%|&~±×÷≤≥≠∑∫√∈"
_BRACKETS: Final = "()[]{}"
_QUESTIONS: Final = ("?", "？", "؟", "\u037e", "՞", "፧")
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
_POWERS: Final = ("^", "**", "10{")
_BOUNDS: Final = ("≤", "≥", "\\le", "\\ge", "<=", ">=")
# Digits of any script, whole numbers with their groups of thousands (or lakhs): 1,000,000 and 10,00,000, 1.000.000, and with narrow spaces.
_NUMBER: Final = re.compile(
    r"\d{1,3}(?:,\d{3})+(?![\d,])|\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])|\d{1,3}(?:\.\d{3}){2,}(?!\d)|\d{1,3}(?:[\u00a0\u202f]\d{3})+(?!\d)|\d+"
)
_NUMBER_RUN: Final = re.compile(r"\d[\d,.\u00a0\u202f]*")
_SEPARATORS: Final = str.maketrans("", "", ",.\u00a0\u202f")
_LIST_ITEM: Final = re.compile(r"^[^\S\n]*(?:[-*•・–]|\(?\d{1,2}[.)、．]|[A-Da-d][.)])", re.MULTILINE)
_CODE_MARK: Final = re.compile(r"[(){}\[\]=;<>_#]")
# Where the words of an identifier meet: in merge_intervals before the underscore's right side, in mergeIntervals at the capital.
_JOINT: Final = re.compile(r"_(?<=[A-Za-z0-9]_)(?=[A-Za-z0-9])|[A-Z](?<=[a-z][A-Z])")
_LARGEST_EXPONENT: Final = 12
# A few tools on offer say what a request is about; a client's whole kit, which it attaches to every request, says nothing.
_MOST_TOOLS: Final = 8


def extract_features(conversation: Conversation, classified: ClassifiedText) -> NDArray[np.float64]:
    """One row of features, shape (len(FEATURE_NAMES),).

    Reads the bounded words of the user (:attr:`router.text.ClassifiedText.words`), never the whole history, nor what is the client's.
    """
    roles = [message.role for message in conversation.messages]
    tool_turns = roles.count("tool") + roles.count("function")
    tools = len(conversation.tools)
    turns = roles.count("user") + roles.count("assistant") + tool_turns
    return np.array(
        [
            *_of_words(classified.words),
            math.log1p(roles.count("user")),
            math.log1p(turns),
            math.log1p(tools if tools <= _MOST_TOOLS else 0),
            math.log1p(tool_turns),
            float("image" in conversation.modalities),
        ],
        dtype=np.float64,
    )


def _of_words(text: str) -> tuple[float, ...]:
    """log_letters ... has_formula, in the order of FEATURE_NAMES."""
    statistics = script_statistics(text)
    letters = statistics.latin_letters
    lines = [line for line in text.split("\n") if line and not line.isspace()] or [""]
    fenced = text.split("```")[1::2]
    code = "\n".join(line for line in lines if line.startswith(("    ", "\t")) or len(_CODE_MARK.findall(line)) > 1)
    numbers = _numbers(text)
    questions = sum(map(text.count, _QUESTIONS))
    if statistics.count("greek"):
        questions += text.count(";")  # the Greek question mark, as it is typed
    per_hundred = 100 / (1 + letters)
    return (
        math.log1p(letters),
        math.log1p(len(lines)),
        math.log1p(letters / len(lines)),
        math.log1p(len(fenced)),
        sum(map(len, fenced)) / max(1, len(text)),
        sum(line.startswith(("  ", "\t")) for line in lines) / len(lines),
        math.log1p(statistics.count("digit")),
        math.log1p(len(numbers)),
        _largest_exponent(numbers),
        math.log1p(per_hundred * sum(map(text.count, _OPERATORS))),
        math.log1p(per_hundred * sum(map(text.count, _BRACKETS))),
        math.log1p(questions),
        math.log1p(len(_LIST_ITEM.findall(text))),
        math.log1p(sum(map(code.count, _CODE))),
        math.log1p(len(_JOINT.findall(text))),
        math.log1p(sum(map(text.count, _BOUNDS))),
        math.log1p(sum(map(text.count, _POWERS))),
        float("://" in text),
        float(_PATH.search(text) is not None),
        float(_any(text, _TRACES)),
        float('{"' in text or "{'" in text),
        float("</" in text or "/>" in text),
        float(_any(text, _FORMULAS)),
    )


def _numbers(text: str) -> list[str]:
    """Digits of every whole number, without separators and leading zeros."""
    found: list[str] = []
    for run in _NUMBER_RUN.findall(text):
        # Most runs are plain: the pattern with all its branches is for the others.
        found.extend((run,) if run.isdigit() else (number.translate(_SEPARATORS) for number in _NUMBER.findall(run)))
    return [number.lstrip("0") for number in found]


def _largest_exponent(numbers: list[str]) -> float:
    """Decimal logarithm of the largest number, given by its digits, at most 12."""
    longest = max(map(len, numbers), default=0)
    if longest > _LARGEST_EXPONENT:
        return float(_LARGEST_EXPONENT)
    return math.log10(1 + max((int(number or 0) for number in numbers if len(number) == longest), default=0))


def _any(text: str, needles: tuple[str, ...]) -> bool:
    return any(needle in text for needle in needles)
