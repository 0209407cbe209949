"""Changes of how a request is written: white space, letter case, Unicode forms, typing errors, Markdown."""

from __future__ import annotations

import random
import re
import unicodedata
from typing import Final

from training.robustness.transformation import Transformation, on_every_turn, on_last_turn, outside_code

_WORD: Final = re.compile(r"[^\W\d_]{5,}")
_TYPO_EVERY_WORDS: Final = 12
_FULL_WIDTH: Final = str.maketrans("0123456789", "０１２３４５６７８９")
_CURLY: Final = {"'": "’", '"': "”"}
_SENTENCE: Final = re.compile(r"(?<=[.!?。！？؟।])\s*(?=\S)")


def trailing_space(text: str, language: str, rng: random.Random) -> str:
    """Blanks and empty lines behind the request."""
    return text + rng.choice(("\n", "\n\n\n", "   \n", " \t \n\n", "\r\n\r\n"))


def blank_lines(text: str, language: str, rng: random.Random) -> str:
    """Every line break doubled outside fenced code, and blanks at the ends of lines."""
    pieces = text.split("```")
    pieces[::2] = [piece.replace("\n", "  \n\n") for piece in pieces[::2]]
    return "```".join(pieces)


def carriage_returns(text: str, language: str, rng: random.Random) -> str:
    """Line ends as Windows has them."""
    return text.replace("\r\n", "\n").replace("\n", "\r\n")


def no_break_spaces(text: str, language: str, rng: random.Random) -> str:
    """Spaces that do not break, as copied from web pages."""
    return outside_code(text, lambda line: line.replace(" ", "\u00a0"))


def invisible(text: str, language: str, rng: random.Random) -> str:
    """A byte order mark, and zero-width spaces and soft hyphens between words."""
    words = re.split(r"(\s+)", text)
    marks = ("", "", "", "\u200b", "\u00ad", "\u2060")
    return "\ufeff" + "".join(word + rng.choice(marks) if i % 2 == 0 and word else word for i, word in enumerate(words))


def decomposed(text: str, language: str, rng: random.Random) -> str:
    """NFD: letters apart from their marks, as some file systems and keyboards write them."""
    return unicodedata.normalize("NFD", text)


def compatible(text: str, language: str, rng: random.Random) -> str:
    """NFKC."""
    return unicodedata.normalize("NFKC", text)


def full_width_digits(text: str, language: str, rng: random.Random) -> str:
    """Digits as wide as an ideograph."""
    return outside_code(text, lambda line: line.translate(_FULL_WIDTH))


def curly_quotes(text: str, language: str, rng: random.Random) -> str:
    """Quotation marks as a word processor sets them."""
    return outside_code(text, lambda line: "".join(_CURLY.get(character, character) for character in line))


def lower_case(text: str, language: str, rng: random.Random) -> str:
    """No capitals outside code."""
    return outside_code(text, str.lower)


def upper_case(text: str, language: str, rng: random.Random) -> str:
    """Nothing but capitals outside code."""
    return outside_code(text, str.upper)


def typing_errors(text: str, language: str, rng: random.Random) -> str:
    """Two neighbouring letters exchanged in one word of twelve, at least in one; words of five letters and more, outside code."""
    words = [match.span() for match in _WORD.finditer(text)]
    code = {i for match in re.finditer(r"```.*?(?:```|\Z)|`[^`\n]+`|\b\w*_\w*\b|\w+\(", text, re.DOTALL) for i in range(*match.span())}
    words = [span for span in words if span[0] not in code and text[span[0] : span[1]].isalpha()]
    letters = list(text)
    for start, end in rng.sample(words, min(len(words), max(1, len(words) // _TYPO_EVERY_WORDS))):
        at = rng.randrange(start + 1, end - 2)
        if not any(map(unicodedata.combining, letters[at : at + 3])):
            letters[at], letters[at + 1] = letters[at + 1], letters[at]
    return "".join(letters)


def heading(text: str, language: str, rng: random.Random) -> str:
    """The first line as a heading."""
    return f"## {text.lstrip()}"


def bold(text: str, language: str, rng: random.Random) -> str:
    """The first line in bold."""
    first, newline, rest = text.strip().partition("\n")
    return f"**{first}**{newline}{rest}"


def bullets(text: str, language: str, rng: random.Random) -> str:
    """Every sentence of a one-line request as an item of a list."""
    if "\n" in text.strip():
        return text
    sentences = [sentence for sentence in _SENTENCE.split(text.strip()) if sentence]
    return "\n".join(f"- {sentence}" for sentence in sentences) if len(sentences) > 1 else text


def block_quote(text: str, language: str, rng: random.Random) -> str:
    """The request as a block quote."""
    return "\n".join(f"> {line}" for line in text.strip().split("\n"))


def fenced(text: str, language: str, rng: random.Random) -> str:
    """The request in a fence of plain text, as copied from a chat; not where it has a fence itself."""
    return text if "```" in text else f"```text\n{text.strip()}\n```"


SURFACE: Final = (
    Transformation("trailing_space", "white space", on_last_turn(trailing_space), "nothing visible is added"),
    Transformation("blank_lines", "white space", on_every_turn(blank_lines), "layout of the same words"),
    Transformation("carriage_returns", "white space", on_every_turn(carriage_returns), "line ends of another system"),
    Transformation("no_break_spaces", "Unicode", on_every_turn(no_break_spaces), "the same words"),
    Transformation("invisible", "Unicode", on_every_turn(invisible), "nothing visible is added"),
    Transformation("nfd", "Unicode", on_every_turn(decomposed), "the same characters in another normal form"),
    Transformation("nfkc", "Unicode", on_every_turn(compatible), "the same words and numbers"),
    Transformation("full_width_digits", "Unicode", on_every_turn(full_width_digits), "the same numbers"),
    Transformation("curly_quotes", "Unicode", on_every_turn(curly_quotes), "the same words"),
    Transformation("lower_case", "letter case", on_every_turn(lower_case), "the same words; code is left alone"),
    Transformation("upper_case", "letter case", on_every_turn(upper_case), "the same words; code is left alone"),
    Transformation("typing_errors", "typing errors", on_every_turn(typing_errors), "anyone still reads the same request"),
    Transformation("heading", "Markdown", on_last_turn(heading), "layout of the same words"),
    Transformation("bold", "Markdown", on_last_turn(bold), "layout of the same words"),
    Transformation("bullets", "Markdown", on_last_turn(bullets), "layout of the same words"),
    Transformation("block_quote", "Markdown", on_last_turn(block_quote), "layout of the same words"),
    Transformation("fenced", "Markdown", on_last_turn(fenced), "layout of the same words"),
)
"""In the order of the report."""
