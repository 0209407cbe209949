"""Changes change what they say and nothing else."""

import random
import unicodedata

import pytest

from router.errors import InvalidInput
from router.text import classify_text
from router.types import Conversation
from training.robustness.clients import tool_schemas
from training.robustness.groups import paraphrase_pairs, paraphrases, translation_pairs
from training.robustness.pasted import log
from training.robustness.registry import TRANSFORMATIONS, chosen

CODE = "```python\ndef total(x):\n    return sum(x)\n```"
PROMPTS = {
    "en": f"Why does this fail with 2 names? It's odd.\n\n{CODE}",
    "zh": "请写一个排序函数。它要处理3个列表。",
    "ar": "اكتب دالة تفرز القائمة. ثم اشرح 3 خطوات.",
    "fa": "می\u200cخواهم فهرستی از ۳ نام را مرتب کنم. چگونه؟",
}
SAME_TEXT = ("white space", "Unicode", "client envelope", "long system prompt", "32 tool schemas", "pasted 50 kB log", "mail history")


def changed(transformation, language: str) -> Conversation | None:
    return transformation.apply(Conversation.from_text(PROMPTS[language]), language, random.Random(3))


@pytest.mark.parametrize("transformation", TRANSFORMATIONS, ids=lambda t: t.name)
@pytest.mark.parametrize("language", PROMPTS)
def test_a_change_is_seeded_and_real(transformation, language: str) -> None:
    first = changed(transformation, language)
    assert first == changed(transformation, language)
    assert first != Conversation.from_text(PROMPTS[language])


@pytest.mark.parametrize("transformation", [t for t in TRANSFORMATIONS if t.family in SAME_TEXT], ids=lambda t: t.name)
@pytest.mark.parametrize("language", PROMPTS)
def test_the_router_reads_the_same_text(transformation, language: str) -> None:
    conversation = changed(transformation, language)
    if conversation is None:
        return
    read = classify_text(conversation)
    assert read.text.split() == classify_text(Conversation.from_text(PROMPTS[language])).text.split()


@pytest.mark.parametrize("name", ["lower_case", "upper_case", "typing_errors", "curly_quotes", "full_width_digits", "no_break_spaces"])
def test_code_is_left_alone(name: str) -> None:
    conversation = changed(chosen([name])[0], "en")
    assert conversation is not None
    assert CODE in conversation.user_texts[0]


def test_typing_errors_keep_letters_and_joiners() -> None:
    for language, text in PROMPTS.items():
        conversation = changed(chosen(["typing_errors"])[0], language)
        after = text if conversation is None else conversation.user_texts[0]
        assert sorted(after) == sorted(text)
        assert unicodedata.is_normalized("NFC", after)


def test_a_log_has_the_size_it_says() -> None:
    assert 50_000 <= len(log(random.Random(0))) <= 51_000
    assert len(tool_schemas()) == 32
    assert len({tool.name for tool in tool_schemas()}) == 32


def test_names_and_families_choose_and_others_are_refused() -> None:
    assert [t.name for t in chosen(["courtesy", "bold"])] == ["bold", "greeting", "thanks", "greeting_and_thanks"]
    assert len({t.name for t in TRANSFORMATIONS}) == len(TRANSFORMATIONS)
    assert chosen([]) == TRANSFORMATIONS
    with pytest.raises(InvalidInput, match=r"unknown transformation 'boldd'.*did you mean 'bold'"):
        chosen(["boldd"])


def test_pairs_stay_within_a_group_and_a_language() -> None:
    ours = paraphrases()
    pairs = paraphrase_pairs(ours)
    assert len(pairs.rows) == 3 * ours["group"].nunique()
    for first, other in pairs.rows:
        assert ours["group"].iloc[first] == ours["group"].iloc[other]
        assert ours["language"].iloc[first] == ours["language"].iloc[other]
    assert translation_pairs(ours).rows == []
