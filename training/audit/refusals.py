"""Phrases that open a refusal, in the languages of the embedded sample and English. A lower bound: other wordings are missed."""

from __future__ import annotations

import re
from typing import Final

from training.label.text import fold

_OPENING: Final = 160
_PHRASES: Final = (
    r"i('m| am) (so )?sorry,? (but )?i (can|cannot|can't|am unable|am not able)",
    r"i (can't|cannot|won't|am unable to|am not able to) (help|assist|answer|provide|do|comply|fulfil)",
    r"as an ai( language model)?,? i (can|do not|don't|am)", r"i must decline",
    r"es tut mir leid,? (aber )?ich kann", r"ich kann (dir|ihnen|dabei) .{0,40}nicht", r"als (ki|sprachmodell)\b.{0,40}nicht",
    r"lo siento,? (pero )?no puedo", r"no puedo (ayudar|responder|proporcionar)", r"je suis désolée?,? (mais )?je ne peux",
    r"je ne peux pas (vous|t'|répondre|fournir)", r"извините,? (но )?я не могу", r"к сожалению,? я не могу",
    r"я не могу (помочь|ответить|предоставить)", r"atsiprašau,? (bet )?(aš )?negaliu", r"negaliu (padėti|atsakyti)",
    r"λυπάμαι,? (αλλά )?δεν μπορώ", r"δεν μπορώ να (βοηθήσω|απαντήσω)", r"(क्षमा करें|माफ़ करें|मुझे खेद है).{0,30}(नहीं|असमर्थ)",
    r"متاسفم.{0,30}(نمی|توانم)", r"نمی.?توانم (کمک|پاسخ)", r"(عذرا|آسف|أعتذر).{0,30}لا (يمكنني|أستطيع)",
    r"لا (يمكنني|أستطيع) (المساعدة|مساعدتك|الإجابة)", r"üzgünüm,? (ama |ancak )?.{0,40}(emem|amam|yapamam)",
    r"valitettavasti en (voi|pysty)", r"olen pahoillani,? (mutta )?en (voi|pysty)", r"(抱歉|对不起|很遗憾).{0,12}(无法|不能)",
    r"(作为|身为)(一个|一名)?(ai|人工智能).{0,20}(无法|不能)",
    r"申し訳(ありません|ございません).{0,40}(できません|できかねます|いたしかねます|られません)",
    r"죄송(합니다|하지만).{0,40}(없습니다|어렵습니다)",
    r"maaf,? (tetapi |tapi |namun )?(saya )?tidak (bisa|dapat)", r"(xin lỗi|rất tiếc),? .{0,30}không thể",
    r"(ขออภัย|ขอโทษ).{0,30}ไม่สามารถ", r"மன்னிக்கவும்.{0,40}(முடியாது|இயலாது|முடியவில்லை)", r"samahani,? (lakini )?(siwezi|mimi siwezi)",
)  # fmt: skip
_REFUSAL: Final = re.compile("|".join(f"(?:{phrase})" for phrase in map(fold, _PHRASES)))


def opens_with_refusal(text: str) -> bool:
    """Whether the first sentence or so of an answer declines to do what was asked."""
    opening = fold(text[: 2 * _OPENING].replace("’", "'"))[:_OPENING]
    return _REFUSAL.search(opening) is not None
