"""What is read of a conversation, what is not, and that the account of it is exact."""

import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.envelope import strip_envelope
from router.errors import InvalidInput
from router.languages import script_statistics
from router.text import TextBudget, classify_text
from router.types import Conversation

MARKS = 12  # tokens that the marks of a cut and the line ends may add
SCRIPTS = {
    "latin": "explain why the total is wrong ",
    "code": "def f(x):\n        return x[0] + 12345\n",
    "cyrillic": "объясни почему сумма неверна ",
    "han": "请解释为什么总和不对",
    "kana": "どうしてまちがっているのか",
    "hangul": "합계가 왜 틀렸는지 설명해 ",
    "arabic": "اشرح لماذا المجموع خاطئ ",
    "devanagari": "समझाइए कि योग गलत क्यों है ",
    "tamil": "கூட்டுத்தொகை ஏன் தவறு ",
    "thai": "ทำไมผลรวมผิดช่วยอธิบาย",
    "myanmar": "ဘာကြောင့်မှားသလဲ",
    "emoji": "👩🏽‍💻🇹🇭",
    "marks": "e\u0301" * 5,
    "spaces": " \t\n" * 3 + "x",
    "control": "\x00\x07\x1b",
    "surrogates": "\ud83d",
}


def talk(*turns: tuple[str, object], **options: object) -> Conversation:
    return Conversation.from_openai([{"role": role, "content": content} for role, content in turns], **options)


def user_chars(conversation: Conversation) -> int:
    return sum(map(len, conversation.user_texts))


def test_only_what_people_wrote_is_classified() -> None:
    secret = "SECRET"
    conversation = Conversation.from_openai(
        [
            {"role": "system", "content": f"{secret} system"},
            {"role": "developer", "content": f"{secret} developer"},
            {"role": "user", "content": "Plan the migration"},
            {"role": "assistant", "content": "On it", "tool_calls": [{"function": {"name": "f", "arguments": secret}}]},
            {"role": "tool", "content": f"{secret} tool output"},
            {"role": "function", "name": "f", "content": f"{secret} function output"},
            {"role": "user", "content": [{"type": "tool_result", "content": f"{secret} result"}, {"type": "text", "text": "go on"}]},
        ],
        [{"type": "function", "function": {"name": "f", "description": f"{secret} schema"}}],
    )
    classified = classify_text(conversation)
    assert secret not in classified.text
    assert classified.text == "Plan the migration\ngo on\nOn it"
    assert {"system", "tool_output", "tool_calls", "tool_schemas"} <= classified.cut.keys()
    assert classified.cut["system"] == len("SECRET system") + len("SECRET developer")


def test_thirty_two_tool_schemas_change_nothing_that_is_classified() -> None:
    tools = [{"type": "function", "function": {"name": f"t{i}", "description": "x" * 500}} for i in range(32)]
    plain = classify_text(talk(("user", "hi")))
    assert classify_text(talk(("user", "hi"), tools=tools)).text == plain.text


@pytest.mark.parametrize("answer", ["yes", "commit it", "はい", "да", "👍"])
def test_a_short_answer_keeps_the_original_request(answer: str) -> None:
    request = "Redesign the storage engine so that two writers never block each other"
    text = classify_text(talk(("user", request), ("assistant", "Here is the plan."), ("user", answer))).text
    assert request in text
    assert answer in text


def test_the_last_user_turns_are_read_and_earlier_ones_counted() -> None:
    turns = [("user", f"turn {i}") for i in range(8)]
    classified = classify_text(talk(*turns))
    assert classified.text.split("\n") == ["turn 0", "turn 6", "turn 7"]
    assert classified.cut == {"earlier_user_turns": 5 * len("turn 1")}
    assert classified.words.split("\n") == ["turn 0", "turn 6", "turn 7"]


def test_words_are_bounded_by_characters_and_keep_head_and_tail() -> None:
    words = classify_text(talk(("user", "first " + "x" * 50_000 + " last"))).words
    assert len(words) <= 12_001
    assert words.startswith("first x")
    assert words.endswith("x last")


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("budget", [TextBudget(), TextBudget(16, 8, 4, 2), TextBudget(0, 0, 0, 0), TextBudget(1, 1, 1, 1)])
def test_the_budget_holds_in_every_script(script: str, budget: TextBudget) -> None:
    long = SCRIPTS[script] * 400
    conversation = talk(("user", long), ("assistant", long), ("user", long), ("user", long))
    classified = classify_text(conversation, budget)
    limit = budget.request_tokens + budget.recent_tokens + budget.assistant_tokens
    assert script_statistics(classified.text).tokens <= limit + MARKS
    classified.text.encode()  # what is classified has an encoding


def test_a_dense_head_before_a_cheap_tail_does_not_break_the_budget() -> None:
    text = "漢" * 1500 + " " * 400 + "x" * 100
    assert script_statistics(classify_text(talk(("user", text))).text).tokens <= 256 + MARKS


def test_the_end_of_a_long_prompt_is_read_too() -> None:
    text = classify_text(talk(("user", "START " + "log line 17\n" * 5000 + " END: why does it fail?"))).text
    assert text.startswith("START")
    assert text.endswith("END: why does it fail?")


characters = st.characters(codec=None) | st.sampled_from("e\u0301\u200d\ufe0f漢 \n\ud83d`<>")
contents = st.text(characters, max_size=40).map(lambda s: s * 30) | st.text(characters, max_size=60)


@given(st.lists(st.tuples(st.sampled_from(["user", "assistant", "system", "tool"]), contents), min_size=1, max_size=8))
def test_every_character_is_accounted_for(turns: list[tuple[str, str]]) -> None:
    conversation = talk(*turns)
    classified = classify_text(conversation, TextBudget(32, 16, 8, 2))
    blank = sum(len(m.text) for m in conversation.messages if m.role in ("user", "assistant") and not m.text.strip())
    everything = sum(len(message.text) for message in conversation.messages)
    assert sum(classified.kept.values()) + sum(classified.cut.values()) == everything - blank
    assert all(amount > 0 for counts in (classified.kept, classified.cut) for amount in counts.values())


@given(st.text(st.sampled_from("aé\u0301\u0e01\u0e34\u0e48\u0915\u093f\u094d\u200d👩💻"), min_size=200, max_size=400))
def test_a_cut_never_separates_a_letter_from_its_marks(text: str) -> None:
    whole = unicodedata.normalize("NFC", "x" + text)
    pieces = classify_text(talk(("user", whole)), TextBudget(24, 0, 0, 0)).text.split("\n…\n")
    assert not unicodedata.category(pieces[-1][0]).startswith("M")
    head = pieces[0]
    following = whole[len(head) : len(head) + 1]
    assert not following or len(pieces) == 1 or not unicodedata.category(following).startswith("M")


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        ("<environment_details>\n# Files\na.py\n</environment_details>", ""),
        ("<system-reminder>x</system-reminder>fix it<system-reminder>y</system-reminder>", "fix it"),
        ("<context>date</context>\n<userRequest>\nfix it\n</userRequest>", "fix it"),
        ("<additional_data>a</additional_data><user_query>fix it</user_query>", "fix it"),
        ("<task>\nfix it\n</task>\n<environment_details>e</environment_details>", "fix it"),
        ("Shorten this: <prompt>a long one</prompt> to ten words", "Shorten this: <prompt>a long one</prompt> to ten words"),
        ("<system-reminder>never closed", "<system-reminder>never closed"),
        ("</task> a < b", "</task> a < b"),
        ("<user_query></user_query>", "<user_query></user_query>"),
        ("<task>", "<task>"),
        ("if a < b and c > d", "if a < b and c > d"),
    ],
)
def test_envelopes_of_clients_are_taken_off(sent: str, words: str) -> None:
    assert strip_envelope(sent) == words


def test_a_client_made_turn_is_no_turn_but_read_where_there_is_nothing_else() -> None:
    envelope = "<environment_details>a.py</environment_details>"
    with_request = classify_text(talk(("user", "fix it"), ("user", envelope)))
    assert with_request.text == "fix it"
    assert with_request.cut == {"client_envelope": len(envelope)}
    alone = classify_text(talk(("user", envelope)))
    assert alone.text == envelope
    assert alone.cut == {}


@pytest.mark.parametrize(
    "turns",
    [
        [("user", "")],
        [("user", None)],
        [("user", " \n ")],
        [("user", [{"type": "image_url"}])],
        [("system", "You are helpful")],
        [("assistant", "Hello")],
        [("tool", "x")],
    ],
)
def test_without_words_of_a_user_nothing_is_classified(turns: list) -> None:
    assert classify_text(talk(*turns)).text == ""


def test_code_blocks_of_an_answer_are_left_out_and_prose_is_told_from_code() -> None:
    classified = classify_text(talk(("user", "一"), ("assistant", "So:\n```py\nx = 1\n```\ndone"), ("user", "```js\ny\n``` 二")))
    assert "x = 1" not in classified.text
    assert "y" in classified.text
    assert "y" not in classified.prose
    assert classified.cut["assistant_unread"] > 0


@pytest.mark.parametrize("unit", ["word ", "漢字", "<context>", "<context></context>", "`" * 3, "\u0301", " ", "👩🏽‍💻"])
def test_a_megabyte_takes_milliseconds(unit: str) -> None:
    conversation = talk(("user", unit * (2**20 // len(unit))))
    best = min(_seconds(conversation) for _ in range(3))
    assert best < 0.25  # about 0.01 on a quiet core


def test_ten_thousand_turns_take_milliseconds() -> None:
    turns = [("user" if i % 2 else "assistant", f"turn {i} <b>") for i in range(10_000)]
    assert min(_seconds(talk(*turns)) for _ in range(3)) < 0.5


def _seconds(conversation: Conversation) -> float:
    start = time.process_time()
    classify_text(conversation)
    return time.process_time() - start


@pytest.mark.parametrize("value", [-1, 1.5, True, "64", 10**9])
def test_a_budget_out_of_range_is_refused(value: object) -> None:
    with pytest.raises(InvalidInput, match="text budget request_tokens is"):
        TextBudget(request_tokens=value)
