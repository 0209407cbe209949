"""Comparing answers across scripts: folding, digits, numbers, the writing a text is in."""

from __future__ import annotations

import unicodedata
from collections import Counter

# Separators that some scripts write between digits, folded to the ASCII ones.
_SEPARATORS = str.maketrans(
    {"٫": ".", "٬": ",", "，": ",", "．": ".", "−": "-", "－": "-", "’": "'", "\u00a0": " ", "\u202f": " ", "\u2009": " "}
)


def ascii_digits(text: str) -> str:
    """Write every decimal digit in ASCII; superscripts and fractions are left alone, since they are not digits of a number."""
    return "".join(str(value) if (value := unicodedata.decimal(char, -1)) >= 0 else char for char in text)


def fold(text: str) -> str:
    """NFKC, case folded, without invisible format characters, white space collapsed."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    visible = "".join(char for char in plain if unicodedata.category(char) != "Cf")
    return " ".join(unicodedata.normalize("NFKC", visible).split())


def bare(text: str) -> str:
    """Fold and strip the punctuation and mark-up around a text."""
    folded = fold(text)
    start, end = 0, len(folded)
    while start < end and _strippable(folded[start]):
        start += 1
    while end > start and _strippable(folded[end - 1]):
        end -= 1
    return folded[start:end] or folded


def _strippable(char: str) -> bool:
    return char in " `~^=" or unicodedata.category(char).startswith("P")


def last_line(text: str) -> str:
    """Return the last line that holds more than punctuation or a code fence."""
    lines = [line for line in text.splitlines() if any(char.isalnum() for char in line)]
    return lines[-1] if lines else text


def numbers(text: str) -> list[frozenset[float]]:
    """Return every number in a text, each as the set of values that its separators allow.

    "1.234" is one number that reads as 1.234 (English) or 1234 (German); "1,00,000" and "12 345" read as whole numbers.
    """
    folded = ascii_digits(text).translate(_SEPARATORS)
    found, at = [], 0
    while at < len(folded):
        if folded[at].isascii() and folded[at].isdigit():
            end = _number_end(folded, at)
            negative = at > 0 and folded[at - 1] == "-" and not (at > 1 and (folded[at - 2].isalnum() or folded[at - 2] == ")"))
            found.append(frozenset(-v if negative else v for v in _readings(folded[at:end])))
            at = end
        else:
            at += 1
    return found


def _is_digit(text: str, at: int) -> bool:
    return at < len(text) and text[at].isascii() and text[at].isdigit()


def _number_end(text: str, at: int) -> int:
    while True:
        while _is_digit(text, at):
            at += 1
        if at >= len(text) or not _is_digit(text, at + 1):
            return at
        if text[at] in ".,'" or (text[at] == " " and _is_thousands(text, at + 1)):
            at += 1
        else:
            return at


def _is_thousands(text: str, at: int) -> bool:
    return all(_is_digit(text, at + k) for k in range(3)) and not _is_digit(text, at + 3)


def _readings(token: str) -> set[float]:
    plain = token.replace("'", "").replace(" ", "")
    marks = [char for char in plain if char in ".,"]
    if not marks:
        return {float(plain)}
    if len(set(marks)) == 2:  # the last kind of mark is the decimal one: 1.234,5 and 1,234.5
        decimal = marks[-1]
        other = "," if decimal == "." else "."
        whole = plain.replace(other, "")
        return {float(whole.replace(decimal, "."))} if whole.count(decimal) == 1 else {float(plain.replace(".", "").replace(",", ""))}
    if len(marks) > 1:
        return {float(plain.replace(marks[0], ""))}
    head, tail = plain.split(marks[0])
    values = {float(f"{head}.{tail}")}
    if len(tail) == 3 and head.strip("0"):
        values.add(float(head + tail))
    return values


def only_number(text: str) -> bool:
    """Tell whether a text is one number and perhaps a unit sign or mark-up, with no words."""
    return len(numbers(text)) == 1 and not any(char.isalpha() for char in text)


# Unicode name prefixes of the letters that each language is written in; languages absent here are written in Latin.
_SCRIPTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("ru", "uk", "be", "bg", "mk", "kk", "ky", "mn", "tg", "tt", "ba"), ("CYRILLIC",)),
    "sr": ("CYRILLIC", "LATIN"),
    "el": ("GREEK",),
    "hy": ("ARMENIAN",),
    "ka": ("GEORGIAN",),
    **dict.fromkeys(("he", "yi"), ("HEBREW",)),
    **dict.fromkeys(("ar", "fa", "ur", "ps", "ug", "sd", "ckb"), ("ARABIC",)),
    **dict.fromkeys(("hi", "mr", "ne", "sa", "bho", "mai"), ("DEVANAGARI",)),
    "bn": ("BENGALI",),
    "as": ("BENGALI",),
    "pa": ("GURMUKHI",),
    "gu": ("GUJARATI",),
    "or": ("ORIYA",),
    "ta": ("TAMIL",),
    "te": ("TELUGU",),
    "kn": ("KANNADA",),
    "ml": ("MALAYALAM",),
    "si": ("SINHALA",),
    "th": ("THAI",),
    "lo": ("LAO",),
    "my": ("MYANMAR",),
    "km": ("KHMER",),
    "bo": ("TIBETAN",),
    **dict.fromkeys(("am", "ti"), ("ETHIOPIC",)),
    **dict.fromkeys(("zh", "yue", "wuu", "lzh"), ("CJK",)),
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "ko": ("HANGUL", "CJK"),
}


def script_share(text: str, language: str) -> float | None:
    """Return the share of letters that belong to the language's writing, or None for too few letters to tell.

    Languages that share a script cannot be told apart by this: French in a Spanish conversation counts as fine.
    """
    counts = Counter(unicodedata.name(char, "?").split(" ")[0].split("-")[0] for char in text if char.isalpha())
    total = sum(counts.values())
    if total < 12 or language in ("und", "mul"):
        return None
    wanted = _SCRIPTS.get(language.split("-")[0].lower(), ("LATIN",))
    return sum(counts[script] for script in wanted) / total
