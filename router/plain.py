"""A user turn in plain form: the same request however it is typed, framed or pasted.

Nothing here knows words of a language. White space, invisible characters, Unicode forms, capitals throughout and Markdown emphasis say
how a request is written; an open label at its end ("Answer:") says that an evaluation wraps it; a log or the mail being answered, pasted
beside it, is not the request. Each would move a decision without moving the work (docs/decisions/0013).
"""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import Final

from router.languages import script_statistics

# Soft hyphen, zero-width space and joiner, byte order mark, direction marks and tags. The joiners that spell Persian and emoji stay.
_INVISIBLE: Final = re.compile("[\u00ad\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
_WIDE: Final = re.compile("[\uff01-\uff5e\u3000]")
_QUOTES: Final = str.maketrans("‘’‚‛“”„‟", "''''\"\"\"\"")
_END_OF_LINE: Final = re.compile(r"[ \t]+(?=\n)")
_BLANK_LINES: Final = re.compile(r"\n{3,}")
_HEADING: Final = re.compile(r"^#{1,6} +(?=\S)", re.MULTILINE)
_MARKER: Final = re.compile(r"\*\*|__|\n")
_NO_MARK_AFTER: Final = frozenset("_*)]`")
_NO_MARK_BEFORE: Final = frozenset("_*([`")
_WHOLE_FENCE: Final = re.compile(r"```(?:text|txt|markdown|md|plaintext)?\n(.*)\n```", re.DOTALL)
_OPEN_LABEL: Final = re.compile(r"(?:#+ *)?(\w[\w ]{0,23})[:：]")
_LABEL_LINE: Final = re.compile(r"^(?:#+ *)?\w[\w ]{0,23}[:：][ \t]*$", re.MULTILINE)
_PREAMBLE_CHARS: Final = 240
_FIRST_LABEL: Final = re.compile(r"(?:#+ *\w[\w ]{0,23}:\s*\n|\w{1,16}[:：]\s+)")
_LOG_LINE: Final = re.compile(
    r"\W{0,3}(?:\d{4}[-/.]\d\d[-/.]\d\d[T ,]+\d\d:\d\d|\d\d:\d\d:\d\d|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d"
    r"|\d{1,3}(?:\.\d{1,3}){3} \S+ \S+ \[|(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b)"
)
_TRACE_LINE: Final = re.compile(r'  File "|    \S|\tat |Traceback \(|Caused by|[\w.]*(?:Error|Exception)\b|\.\.\. \d+ more')
_LEAST_LOG_LINES: Final = 12
_RULED_HEADER: Final = re.compile(r"^[-_]{3}[^\n]*[-_]{3}\n+(?:[^\n:]{1,24}:[^\n]*\n){2,}", re.MULTILINE)
_LEAST_QUOTED: Final = 3
_SHOUT_CHARS: Final = 1_000
_LEAST_LETTERS: Final = 8
_COUNTED: Final = re.compile(r"[\d(){}\[\]=;<>_#`$\\*^/|+@]|\w\.\w")
_PARAGRAPHS: Final = re.compile(r"\n[^\S\n]*\n")
_QUESTION: Final = re.compile("[?？؟՞፧]")
_COURTESY_LETTERS: Final = 40
_COURTESY_CHARS: Final = 120


def plain_form(text: str) -> str:
    """The text with one way of writing line ends, white space, Unicode, emphasis and capitals; never longer than it was."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    if not text.isascii():
        text = _plain_characters(text)
    if " \n" in text or "\t\n" in text:
        text = _END_OF_LINE.sub("", text)
    text = _BLANK_LINES.sub("\n\n", text).strip()
    return _unshouted(_without_markup(text))


def _plain_characters(text: str) -> str:
    text = _INVISIBLE.sub("", text)
    if not unicodedata.is_normalized("NFC", text):
        composed = unicodedata.normalize("NFC", text)
        text = composed if len(composed) <= len(text) else text
    if _WIDE.search(text):
        text = _WIDE.sub(lambda match: " " if match[0] == "\u3000" else chr(ord(match[0]) - 0xFEE0), text)
    return text.translate(_QUOTES) if any(quote in text for quote in "‘’“”„") else text


def _without_markup(text: str) -> str:
    """Without headings, bold type, and a fence or block quote around the whole."""
    if text.startswith("```") and text.count("```") == 2 and (whole := _WHOLE_FENCE.fullmatch(text)):
        return whole[1].strip()
    if text.startswith(">"):
        lines = text.split("\n")
        if all(line.startswith(">") or not line for line in lines):
            text = "\n".join(line[1:].removeprefix(" ") for line in lines).strip()
    pieces = text.split("```")
    if "# " in text:
        pieces[::2] = [_HEADING.sub("", piece) for piece in pieces[::2]]
    if "**" in text or "__" in text:
        pieces[::2] = map(_without_emphasis, pieces[::2])
    return "```".join(pieces)


def _without_emphasis(text: str) -> str:
    """Without pairs of bold marks around words of a line; powers and names such as 2**3 and __init__ keep theirs."""
    dropped: list[re.Match[str]] = []
    opened: re.Match[str] | None = None
    for mark in _MARKER.finditer(text):
        before, after = text[max(0, mark.start() - 1) : mark.start()], text[mark.end() : mark.end() + 1]
        if mark[0] == "\n":
            opened = None
        elif opened is None:
            if not after.isspace() and not (before.isascii() and before.isalnum()) and before not in _NO_MARK_AFTER:
                opened = mark
        elif mark[0] == opened[0] and not before.isspace() and not (after.isascii() and after.isalnum()) and after not in _NO_MARK_BEFORE:
            dropped += [opened, mark] if mark.start() > opened.end() else []
            opened = None
    kept = [0, *(place for mark in dropped for place in mark.span()), len(text)]
    return "".join(text[start:end] for start, end in zip(kept[::2], kept[1::2], strict=True))


def _unshouted(text: str) -> str:
    """In lower case the lines that are all capitals, if most of the text is."""
    sample = text[:_SHOUT_CHARS]
    capitals = sum(map(str.isupper, sample))
    if capitals < _LEAST_LETTERS or capitals <= sum(map(str.islower, sample)):
        return text
    lowered = "\n".join(line.lower() if line.isupper() else line for line in text.split("\n"))
    return lowered if len(lowered) <= len(text) else text


def unframed(text: str) -> str:
    """The request inside the frame of an evaluation, known by the open label at its end.

    Of answered examples only what follows them is the request, of a preamble with a label of its own below it ("Instruction:") as well.
    """
    body, newline, last = text.rstrip().rpartition("\n")
    label = _OPEN_LABEL.fullmatch(last.strip()) if newline else None
    if label is None or not body.strip():
        return text
    answered = re.compile(rf"^(?:#+ *)?{re.escape(label[1])}[:：][ \t]*\S[^\n]*$", re.MULTILINE)
    ends = [found.end() for found in answered.finditer(body)]
    if not ends and len(lines := list(_LABEL_LINE.finditer(body))) == 1 and lines[0].start() <= _PREAMBLE_CHARS:
        ends = [lines[0].end()]
    request = body[next((end for end in reversed(ends) if body[end:].strip()), 0) :]
    request = request.strip()
    first = _FIRST_LABEL.match(request)
    return request[first.end() :].strip() if first and request[first.end() :].strip() else request


def without_courtesy(text: str) -> str:
    """The text without a first and a last paragraph that only greet, thank or announce: one short line with no digit and no mark of code.

    A short question at the end is the request itself. A line that is not a paragraph of its own stays.
    """
    paragraphs = [part for part in _PARAGRAPHS.split(text) if part.strip()]
    first = 1 if len(paragraphs) > 1 and _is_courtesy(paragraphs[0]) else 0
    last = len(paragraphs)
    if last - first > 1 and _is_courtesy(paragraphs[-1]) and not _QUESTION.search(paragraphs[-1]):
        last -= 1
    return text if last - first == len(paragraphs) else "\n\n".join(paragraphs[first:last])


def _is_courtesy(paragraph: str) -> bool:
    if len(paragraph) > _COURTESY_CHARS or "\n" in paragraph.strip() or _COUNTED.search(paragraph):
        return False
    return script_statistics(paragraph).latin_letters <= _COURTESY_LETTERS


def without_attachments(text: str) -> str:
    """The text without a pasted log of a dozen lines and more, and without the mail that is being answered below it.

    Where nothing but these would be left of a turn, they are its content and stay.
    """
    if text.count("\n") < _LEAST_QUOTED:
        return text
    kept = _without_history(text)
    if kept.count("\n") >= _LEAST_LOG_LINES:
        kept = _without_log(kept)
    return kept if sum(map(str.isalpha, kept[:_SHOUT_CHARS])) >= _LEAST_LETTERS else text


def _without_history(text: str) -> str:
    if ruled := _RULED_HEADER.search(text):
        return text[: ruled.start()].rstrip()
    if "\n>" not in text:
        return text
    lines = text.split("\n")
    at = len(lines)
    while at > 0 and (lines[at - 1].startswith(">") or not lines[at - 1]):
        at -= 1
    quoted = sum(line.startswith(">") for line in lines[at:])
    header = lines[at - 1].rstrip() if at else ""
    return "\n".join(lines[: at - 1]).rstrip() if quoted >= _LEAST_QUOTED and header.endswith((":", "：")) else text


def _without_log(text: str) -> str:
    """Without lines of a log and the traces between them; what people wrote before, between and behind stays."""
    lines = text.split("\n")
    logged = [_LOG_LINE.match(line) is not None for line in lines]
    if sum(logged) < _LEAST_LOG_LINES:
        return text
    trace = [_TRACE_LINE.match(line) is not None for line in lines]
    for order in (range(1, len(lines)), range(len(lines) - 2, -1, -1)):
        step = -1 if order.step > 0 else 1
        for i in order:
            logged[i] = logged[i] or (trace[i] and logged[i + step])
    kept = [i for i, drop in enumerate(logged) if not drop]
    for before, after in pairwise(kept):
        if after > before + 1 and lines[before].startswith("```") and lines[after].startswith("```"):
            logged[before] = logged[after] = True  # a fence of which nothing is left
    return "\n".join(line for line, drop in zip(lines, logged, strict=True) if not drop).strip()
