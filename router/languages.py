"""Scripts, languages and families: what a text is written in, and how many tokens it costs.

Everything here works on code points, so it holds in scripts without spaces or word boundaries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput

# (first code point, script, tokens a letter). The token weights were fitted on parallel news text against a byte-level BPE of 151 k pieces
# (`python -m benchmarks.tokens` measures the error); a run ends where the next one begins.
_RUNS: Final[tuple[tuple[int, str, float], ...]] = (
    (0x0000, "control", 0.2),
    (0x0020, "space", 0.03),
    (0x0021, "punctuation", 0.6),
    (0x0030, "digit", 0.6),
    (0x003A, "punctuation", 0.6),
    (0x0041, "latin", 0.29),
    (0x005B, "punctuation", 0.6),
    (0x0061, "latin", 0.29),
    (0x007B, "punctuation", 0.6),
    (0x00AA, "latin", 0.8),
    (0x00AB, "punctuation", 0.8),
    (0x00C0, "latin", 0.8),
    (0x0300, "mark", 0.8),
    (0x0370, "greek", 1.0),
    (0x0400, "cyrillic", 0.45),
    (0x0530, "armenian", 1.15),
    (0x0590, "hebrew", 0.5),
    (0x0600, "arabic", 0.55),
    (0x0660, "digit", 1.0),
    (0x066A, "arabic", 0.55),
    (0x06F0, "digit", 1.0),
    (0x06FA, "arabic", 0.55),
    (0x0700, "syriac", 1.5),
    (0x0750, "arabic", 0.9),
    (0x0780, "thaana", 1.5),
    (0x07C0, "nko", 1.5),
    (0x0900, "devanagari", 1.05),
    (0x0964, "punctuation", 1.05),
    (0x0966, "digit", 1.05),
    (0x0970, "devanagari", 1.05),
    (0x0980, "bengali", 1.2),
    (0x09E6, "digit", 1.2),
    (0x09F0, "bengali", 1.2),
    (0x0A00, "gurmukhi", 1.6),
    (0x0A66, "digit", 1.6),
    (0x0A70, "gurmukhi", 1.6),
    (0x0A80, "gujarati", 1.7),
    (0x0AE6, "digit", 1.7),
    (0x0AF0, "gujarati", 1.7),
    (0x0B00, "odia", 1.8),
    (0x0B66, "digit", 1.8),
    (0x0B70, "odia", 1.8),
    (0x0B80, "tamil", 1.2),
    (0x0BE6, "digit", 1.2),
    (0x0BF0, "tamil", 1.2),
    (0x0C00, "telugu", 1.65),
    (0x0C66, "digit", 1.65),
    (0x0C70, "telugu", 1.65),
    (0x0C80, "kannada", 1.6),
    (0x0CE6, "digit", 1.6),
    (0x0CF0, "kannada", 1.6),
    (0x0D00, "malayalam", 1.55),
    (0x0D66, "digit", 1.55),
    (0x0D70, "malayalam", 1.55),
    (0x0D80, "sinhala", 1.6),
    (0x0E00, "thai", 0.58),
    (0x0E50, "digit", 0.58),
    (0x0E5A, "thai", 0.58),
    (0x0E80, "lao", 1.2),
    (0x0ED0, "digit", 1.2),
    (0x0EDA, "lao", 1.2),
    (0x0F00, "tibetan", 1.8),
    (0x0F20, "digit", 1.8),
    (0x0F2A, "tibetan", 1.8),
    (0x1000, "myanmar", 1.5),
    (0x1040, "digit", 1.5),
    (0x104A, "myanmar", 1.5),
    (0x10A0, "georgian", 1.15),
    (0x1100, "hangul", 0.9),
    (0x1200, "ethiopic", 1.5),
    (0x13A0, "other", 1.2),
    (0x1780, "khmer", 1.2),
    (0x17E0, "digit", 1.2),
    (0x17EA, "khmer", 1.2),
    (0x1800, "mongolian", 1.5),
    (0x1810, "digit", 1.5),
    (0x181A, "mongolian", 1.5),
    (0x18B0, "other", 1.2),
    (0x1E00, "latin", 0.8),
    (0x1F00, "greek", 1.2),
    (0x2000, "punctuation", 0.7),
    (0x2E80, "han", 0.8),
    (0x3000, "punctuation", 0.7),
    (0x3041, "kana", 0.7),
    (0x3100, "han", 1.0),
    (0x3130, "hangul", 0.9),
    (0x3190, "han", 1.0),
    (0x31F0, "kana", 0.9),
    (0x3200, "other", 1.0),
    (0x3400, "han", 1.2),
    (0x4E00, "han", 0.7),
    (0xA000, "other", 1.3),
    (0xAC00, "hangul", 0.8),
    (0xD7B0, "other", 1.2),
    (0xF900, "han", 1.2),
    (0xFB00, "latin", 1.0),
    (0xFB1D, "hebrew", 1.0),
    (0xFB50, "arabic", 1.0),
    (0xFE00, "punctuation", 0.7),
    (0xFE70, "arabic", 1.0),
    (0xFEFF, "control", 0.2),
    (0xFF00, "punctuation", 0.7),
    (0xFF10, "digit", 1.0),
    (0xFF1A, "punctuation", 0.7),
    (0xFF21, "latin", 1.0),
    (0xFF3B, "punctuation", 0.7),
    (0xFF41, "latin", 1.0),
    (0xFF5B, "punctuation", 0.7),
    (0xFF66, "kana", 1.0),
    (0xFFA0, "other", 1.0),
    (0x10000, "other", 1.5),
    (0x1F000, "emoji", 1.5),
    (0x20000, "han", 1.5),
    (0x30000, "other", 1.5),
)
SCRIPTS: Final[tuple[str, ...]] = tuple(dict.fromkeys(script for _, script, _ in _RUNS))
NOT_LETTERS: Final = frozenset({"control", "space", "punctuation", "digit", "mark", "other", "emoji"})
_STARTS: Final[NDArray[np.uint32]] = np.array([start for start, _, _ in _RUNS], dtype=np.uint32)
_SCRIPT_OF_RUN: Final[NDArray[np.intp]] = np.array([SCRIPTS.index(script) for _, script, _ in _RUNS], dtype=np.intp)
_TOKENS_OF_RUN: Final[NDArray[np.float64]] = np.array([tokens for _, _, tokens in _RUNS])
_LETTERS: Final[NDArray[np.bool_]] = np.array([script not in NOT_LETTERS for script in SCRIPTS])
# One table look-up for the two lowest planes, where nearly all text lives.
_RUN_OF_POINT: Final[NDArray[np.uint8]] = (np.searchsorted(_STARTS, np.arange(0x20000, dtype=np.uint32), side="right") - 1).astype(np.uint8)
_RUN_OF_BYTE: Final = _RUN_OF_POINT[:256].tobytes()

# How many Latin letters say as much as one of the script, from the same news in 63 languages (NTREX-128); 1 where not measured.
_LATIN_LETTERS_OF: Final[Mapping[str, float]] = {
    "han": 2.58, "hangul": 2.04, "kana": 1.94, "ethiopic": 1.51, "hebrew": 1.27, "arabic": 1.05, "gujarati": 1.01, "bengali": 0.99,
    "devanagari": 0.96, "telugu": 0.95, "cyrillic": 0.92, "armenian": 0.92, "georgian": 0.9, "thai": 0.89, "lao": 0.88, "kannada": 0.87,
    "greek": 0.82, "malayalam": 0.75, "tamil": 0.74, "khmer": 0.73,
}  # fmt: skip
_LATIN_LETTERS: Final = np.array([0.0 if script in NOT_LETTERS else _LATIN_LETTERS_OF.get(script, 1.0) for script in SCRIPTS])

_LANGUAGE_OF_SCRIPT: Final[Mapping[str, str]] = {
    "greek": "el", "armenian": "hy", "hebrew": "he", "thaana": "dv", "bengali": "bn", "gurmukhi": "pa", "gujarati": "gu", "odia": "or",
    "tamil": "ta", "telugu": "te", "kannada": "kn", "malayalam": "ml", "sinhala": "si", "thai": "th", "lao": "lo", "tibetan": "bo",
    "myanmar": "my", "georgian": "ka", "hangul": "ko", "ethiopic": "am", "khmer": "km", "mongolian": "mn", "kana": "ja", "syriac": "syr",
    "nko": "nqo",
}  # fmt: skip

_FAMILIES: Final[Mapping[str, str]] = {
    "English": "en",
    "Germanic": "de nl sv da no nb nn is fo fy lb af yi gsw nds sco",
    "Romance": "es fr pt it ro ca gl oc ast co sc scn lmo vec rm wa an ht fur lij",
    "Slavic": "ru uk be pl cs sk sl hr sr bs mk bg sh hsb dsb szl rue",
    "Baltic": "lt lv ltg sgs",
    "Hellenic": "el grc",
    "Celtic": "ga cy gd br kw gv",
    "Albanian": "sq",
    "Armenian": "hy",
    "Indo-Aryan": "hi ur bn mr gu pa ne or as si sd sa bho mai mag awa kok ks doi rom hne dv",
    "Iranian": "fa ps ku ckb tg kmr os prs",
    "Semitic": "ar he am ti mt arz apc ary ars ajp acm aeb syr arc",
    "Turkic": "tr az kk uz ky tk tt ug ba cv sah crh gag krc",
    "Uralic": "fi hu et se smj sma myv mdf udm kv",
    "Kartvelian": "ka xmf",
    "Sinitic": "zh yue wuu nan hak lzh cdo gan",
    "Tibeto-Burman": "my bo dz mni kac lus",
    "Japonic": "ja ryu",
    "Koreanic": "ko",
    "Mongolic": "mn bxr xal",
    "Austronesian": "id ms jv su tl fil ceb ilo war mg haw mi sm to min bug ace ban pag fj",
    "Austroasiatic": "vi km mnw sat kha",
    "Kra-Dai": "th lo shn za",
    "Dravidian": "ta te kn ml tcy brh",
    "Niger-Congo": "sw yo ig zu xh sn rw rn lg ln ny st tn ts ss nr ve wo ff bm ak tw ee kg ki lua umb tum bem fuv",
    "Nilotic": "mas luo dinka din nus",
    "Afro-Asiatic (other)": "ha so om ber kab tzm aa sid",
    "Quechuan": "qu quy quz",
    "Basque": "eu",
    "Constructed": "eo ia io vo",
}
FAMILY_OF: Final[Mapping[str, str]] = {code: family for family, codes in _FAMILIES.items() for code in codes.split()}
FAMILIES: Final[tuple[str, ...]] = (*_FAMILIES, "Other")
UNKNOWN_LANGUAGE: Final = "und"


def family_of(language: str | None) -> str:
    """Family of a BCP-47 tag (``pt-BR`` -> ``Romance``); ``Other`` for a language without an entry."""
    if not language:
        return "Other"
    return FAMILY_OF.get(primary_subtag(language), "Other")


def primary_subtag(language: str) -> str:
    """``zh-Hant`` -> ``zh``; ``en_US`` -> ``en``."""
    return language.replace("_", "-").split("-", 1)[0].lower()


def check_language(language: str) -> str:
    """Return a language tag as given if it looks like BCP-47.

    Raises
    ------
    InvalidInput
        If it does not start with two to eight ASCII letters.
    """
    primary = primary_subtag(language)
    if not (2 <= len(primary) <= 8 and primary.isascii() and primary.isalpha()):
        raise InvalidInput(f"language {language!r} is not a BCP-47 tag such as en, zh-Hant or pt-BR")
    return language


def code_points(text: str) -> NDArray[np.uint32]:
    """The text as an array of code points, shape (len(text),). Lone surrogates are kept as they are."""
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


@dataclass(frozen=True, slots=True)
class ScriptStatistics:
    """Characters of a text by script, and what they are expected to cost in tokens."""

    counts: NDArray[np.int64]  # one a script, in the order of SCRIPTS
    tokens: float

    @property
    def letters(self) -> int:
        """Characters of any alphabet, syllabary or ideographic script."""
        return int(self.counts[_LETTERS].sum())

    @property
    def latin_letters(self) -> float:
        """Length of the text in Latin letters that would say as much: comparable between languages, where letters and tokens are not."""
        return float(self.counts @ _LATIN_LETTERS)

    def count(self, script: str) -> int:
        """Characters of one script."""
        return int(self.counts[SCRIPTS.index(script)])

    def share(self, script: str) -> float:
        """Share of one script in all characters, 0 for an empty text."""
        return self.count(script) / max(1, int(self.counts.sum()))

    @property
    def main_script(self) -> str | None:
        """The script with the most letters, or None where there are no letters."""
        letters = np.where(_LETTERS, self.counts, 0)
        return SCRIPTS[int(letters.argmax())] if letters.any() else None


def script_statistics(text: str) -> ScriptStatistics:
    """Count the characters of every script in one pass; linear in the length of the text."""
    by_run = np.bincount(_runs(text), minlength=len(_RUNS))
    counts = np.bincount(_SCRIPT_OF_RUN, weights=by_run, minlength=len(SCRIPTS)).astype(np.int64)
    return ScriptStatistics(counts, float(by_run @ _TOKENS_OF_RUN))


def token_costs(text: str) -> NDArray[np.float64]:
    """Expected tokens of every character, shape (len(text),); their sum is what :func:`script_statistics` calls ``tokens``."""
    return np.asarray(_TOKENS_OF_RUN.take(_runs(text)), dtype=np.float64)


def _runs(text: str) -> NDArray[np.uint8]:
    if text.isascii():
        return np.frombuffer(text.encode("ascii").translate(_RUN_OF_BYTE), dtype=np.uint8)
    points = code_points(text)
    runs = _RUN_OF_POINT.take(points, mode="clip")
    high = points >= _RUN_OF_POINT.size
    if high.any():
        runs[high] = np.searchsorted(_STARTS, points[high], side="right") - 1
    return runs


def without_surrogates(text: str) -> str:
    """The text with lone surrogates replaced one for one: half an emoji, as clients that cut strings send it, has no encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    return text


def estimate_tokens(text: str) -> int:
    """Expected tokens of a text for a current multilingual tokenizer, from its scripts; at least 1 for a non-empty text."""
    return max(1, round(script_statistics(text).tokens)) if text else 0


class LanguageIdentifier(Protocol):
    """Names the language of a text in a script that several languages share."""

    def classify(self, text: str) -> str:
        """The most likely ISO 639-1 (or 639-3) code."""
        ...


# Below this share of the letters a second script is a quotation or a name; above it, Latin letters beside it are code or technical terms.
_FOREIGN_SHARE: Final = 0.12
_IDENTIFY_CHARS: Final = 400
_CODE_MARKS: Final = frozenset("(){}[]=;<>_#")
_LATIN: Final = SCRIPTS.index("latin")
_HAN: Final = SCRIPTS.index("han")
_KANA: Final = SCRIPTS.index("kana")
# Ideographs as simplified in Japan and neither in the simplified nor in the traditional Chinese script, and some made there.
_JAPANESE_IDEOGRAPHS: Final = frozenset(
    "両乗仏仮価倹働児円剣剤剰効勧単厳収呉営団囲図圏圧塁塩増壊壌売変奨嬢実寛対専巣帯帰庁広廃弐弾従徳応悩悪戦戯戻払抜択拝拠拡挙挿捜掲揺"
    "摂撃斉斎暁暦枠栄桜桟検楽様権歓歩歯歳歴気沢浄涙渇済渉渋渓満滝焼犠猟獣産畑畳疎発県砕稲穂穏窓竜粋粛経絵絶継続総緑縁縄縦繊聡聴脳臓舎荘蔵薫薬"
    "裏覇覚覧観訳読謡譲賛転軽辺込逓遅郷酔醸釈鉄鉢鉱銭鋭鋳録関闘陥険隠隣雑霊頼顔顕駄駅駆騒験髄髪鶏麺黙齢峠辻栃匂"
)


def identify_language(text: str, identifier: LanguageIdentifier | None = None, *, prose: str | None = None) -> str:
    """Language of a prompt as a BCP-47 primary tag, ``und`` where there is nothing to tell it by.

    A script that only one widely used language is written in decides alone; for the shared ones (Latin, Cyrillic, Arabic, Devanagari) the
    ``identifier`` is asked. Latin letters beside another script count little: prompts mix code and technical terms into every language.

    Parameters
    ----------
    text
        What the user wrote.
    identifier
        Asked only where the script does not decide. Without one, the most common language of the script is returned.
    prose
        The text without code blocks, if the caller has it; preferred where it has letters.
    """
    sample = without_surrogates((prose if prose and prose.strip() else text)[:_IDENTIFY_CHARS])
    foreign = _foreign_letters(sample)
    if foreign is None:
        return UNKNOWN_LANGUAGE
    if not foreign.any():
        return _ask(identifier, sample, "en")
    ideographs = foreign[_HAN] + foreign[_KANA]
    if ideographs >= foreign.sum() - ideographs:
        # Japanese mixes ideographs with kana: the syllabary tells, and where there is none the characters that only Japan writes.
        japanese = foreign[_KANA] > 0.1 * ideographs or not _JAPANESE_IDEOGRAPHS.isdisjoint(sample)
        return "ja" if japanese else "zh"
    script = SCRIPTS[int(foreign.argmax())]
    if script in _LANGUAGE_OF_SCRIPT:
        return _LANGUAGE_OF_SCRIPT[script]
    only = "".join(c for c in sample if not (c.isascii() and c.isalpha()))
    return _ask(identifier, only, {"cyrillic": "ru", "arabic": "ar", "devanagari": "hi"}.get(script, UNKNOWN_LANGUAGE))


def _foreign_letters(sample: str) -> NDArray[np.int64] | None:
    """Letters by script without Latin ones, all zero where the text is Latin; None where there are no letters at all."""
    counts = _letter_counts(sample)
    letters = int(counts.sum())
    if letters == 0:
        return None
    foreign = letters - int(counts[_LATIN])
    if 0 < foreign < _FOREIGN_SHARE * letters:
        # Perhaps the Latin letters are code that was pasted without a fence: look at the lines that are not.
        lines = [line for line in sample.split("\n") if not (line.isascii() and _CODE_MARKS.intersection(line))]
        counts = _letter_counts("\n".join(lines))
        letters = int(counts.sum())
    counts[_LATIN] = 0
    return counts if foreign >= _FOREIGN_SHARE * letters else np.zeros_like(counts)


def _letter_counts(text: str) -> NDArray[np.int64]:
    return script_statistics(text).counts * _LETTERS


def _ask(identifier: LanguageIdentifier | None, text: str, default: str) -> str:
    return identifier.classify(text) if identifier is not None else default
