"""HelpSteer3-Preference: two unnamed answers to a conversation, compared by people in many languages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from router.errors import InvalidInput
from training.sources.base import Collector, Converted, Source
from training.sources.reading import number, read_rows

SCORE_KIND: Final = "human_preference_-3_3"
_LANGUAGES: Final[Mapping[str, str]] = {
    "english": "en", "chinese": "zh", "korean": "ko", "french": "fr", "spanish": "es", "russian": "ru", "japanese": "ja", "german": "de",
    "italian": "it", "portuguese": "pt", "polish": "pl", "indonesian": "id", "dutch": "nl", "vietnamese": "vi", "turkish": "tr",
    "arabic": "ar", "hindi": "hi", "thai": "th",
}  # fmt: skip
_KINDS: Final = {"code": "code", "stem": "reasoning", "general": "chat", "multilingual": "chat"}


def read(path: Path) -> Converted:
    """One comparison a row. The data set does not say which models answered, so they are called ``response1`` and ``response2``."""
    found = Collector("helpsteer3", SOURCE.licence)
    for where, row in read_rows(path, ("context", "overall_preference")):
        context = row["context"]
        if not isinstance(context, list) or not context or not all(isinstance(turn, dict) for turn in context):
            raise InvalidInput(f"{where}: column 'context' is not a list of {{role, content}}")
        preference = number(row["overall_preference"], where, "overall_preference", -3, 3)
        canonical = json.dumps(context, sort_keys=True, ensure_ascii=False)
        prompt_id = f"helpsteer3#{hashlib.sha256(canonical.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
        if prompt_id in found.prompts:
            found.skipped["the same conversation again"] += 1
            continue
        domain, language = str(row.get("domain") or "general").lower(), str(row.get("language") or "").lower()
        turns = [{"role": turn.get("role"), "content": turn.get("content")} for turn in context]
        category = f"{domain}/{language}" if language else domain
        found.prompt(prompt_id, turns, language=_LANGUAGES.get(language), task_kind=_KINDS.get(domain, "chat"), category=category)
        found.outcome(prompt_id, "response1", SCORE_KIND, (3 - preference) / 6)
        found.outcome(prompt_id, "response2", SCORE_KIND, (3 + preference) / 6)
    return found.converted(path)


SOURCE = Source(
    name="helpsteer3",
    title="HelpSteer3-Preference (preference/*.jsonl.gz); models are not named, so it serves audits and language coverage, not pairs",
    url="https://huggingface.co/datasets/nvidia/HelpSteer3",
    licence="CC-BY-4.0",
    columns={
        "context": "turns {role, content}, ending with the user",
        "overall_preference": "-3 (response 1 much better) to 3 (response 2 much better)",
        "domain": "general, stem, code or multilingual (optional)",
        "language": "English name of the language; for code the programming language (optional)",
    },
    scores=f"{SCORE_KIND}: (3 - p) / 6 for response1 and (3 + p) / 6 for response2",
    read=read,
)
