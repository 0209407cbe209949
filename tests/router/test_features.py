"""Features that hold in every script, and the tokens of a turn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.catalog import ModelProfile, Prices
from router.cost import TurnTokens, expected_cost_usd, tokens_of
from router.features import FEATURE_NAMES, extract_features
from router.languages import estimate_tokens
from router.text import classify_text
from router.types import Conversation


def features(conversation: Conversation | str) -> dict[str, float]:
    if isinstance(conversation, str):
        conversation = Conversation.from_text(conversation)
    row = extract_features(conversation, classify_text(conversation))
    return dict(zip(FEATURE_NAMES, row.tolist(), strict=True))


@given(st.text(st.characters(codec=None), max_size=300))
def test_every_text_has_finite_features(text: str) -> None:
    row = features(text)
    assert np.isfinite(list(row.values())).all()
    shares = [value for name, value in row.items() if name.endswith("_share")]
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("name", "without", "with_it"),
    [
        ("log_code_fences", "x", "```py\nx\n```"),
        ("code_share", "x", "a ```py\nx = 1\n```"),
        ("has_url", "example.org", "https://example.org"),
        ("has_path", "app", "app.py"),
        ("has_trace", "it fails", 'Traceback (most recent call last):\n  File "a.py"'),
        ("has_json", "a: 1", '{"a": 1}'),
        ("has_markup", "a < b", "<p>a</p>"),
        ("has_formula", "x", "\\frac{1}{2}"),
        ("log_list_items", "a\nb", "- a\n- b"),
        ("log_list_items", "一\n二", "1．一\n2．二"),
        ("log_question_marks", "なぜ", "なぜ？"),
        ("log_question_marks", "لماذا", "لماذا؟"),
        ("log_question_marks", "why", "why?"),
        ("log_digits", "abc", "a12"),
        ("log_digits", "क", "१२"),
        ("log_numbers", "12", "1 2"),
        ("log_largest_number", "7 8", "7 1,000"),
        ("log_largest_number", "९", "९९"),
        ("log_operator_rate", "a b", "a + b"),
        ("log_bracket_rate", "a", "(a)"),
        ("log_bounds", "n", "n ≤ 10"),
        ("log_powers", "10", "10^9"),
        ("log_identifier_joints", "merge intervals", "merge_intervals"),
        ("log_code_marks", "x", "def f(x): return [x]"),
        ("indented_share", "a\nb", "a\n    b"),
        ("log_lines", "a1", "a1\nb2"),
    ],
)
def test_a_feature_sees_what_it_is_named_after(name: str, without: str, with_it: str) -> None:
    assert features(with_it)[name] > features(without)[name]


def test_turns_tools_and_images_are_counted() -> None:
    conversation = Conversation.from_openai(
        [
            {"role": "user", "content": [{"type": "text", "text": "see"}, {"type": "image_url"}]},
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            {"role": "tool", "content": "x"},
            {"role": "user", "content": "go on"},
        ],
        [{"name": "f"}, {"name": "g"}],
    )
    row = features(conversation)
    counts = {name: round(np.expm1(row[name])) for name in ("log_user_turns", "log_turns", "log_tools", "log_tool_turns")}
    assert counts == {"log_user_turns": 2, "log_turns": 4, "log_tools": 2, "log_tool_turns": 1}
    assert row["has_image"] == 1.0


def test_a_system_prompt_moves_nothing() -> None:
    wrapped = Conversation.from_openai([{"role": "system", "content": "def x(): Traceback (" * 500}, {"role": "user", "content": "fix it"}])
    assert features(wrapped) == features("fix it")


@pytest.mark.parametrize(
    ("text", "largest", "count"),
    [
        ("1,000,000 and 99999999", 99999999, 2),
        ("10,00,000", 1_000_000, 1),
        ("१०,००,०००", 1_000_000, 1),
        ("1.000.000", 1_000_000, 1),
        ("1\u202f000\u00a0000", 1_000_000, 1),
        ("[10, 20, 30]", 30, 3),
        ("[10,20,30]", 30, 3),
        ("007 and 12", 12, 2),
        ("0", 0, 1),
        ("9" * 400, 10**12 - 1, 1),
        ("none", 0, 0),
    ],
)
def test_numbers_are_read_with_their_groups(text: str, largest: int, count: int) -> None:
    row = features(text)
    assert row["log_largest_number"] == pytest.approx(np.log10(1 + largest))
    assert row["log_numbers"] == pytest.approx(np.log1p(count))


def test_a_semicolon_asks_only_in_greek() -> None:
    assert features("int a = 1; int b = 2;")["log_question_marks"] == 0.0
    assert features("Γιατί;")["log_question_marks"] > 0.0


@pytest.mark.parametrize("words", ["Let me return to class in Europe", "a well-known, state-of-the-art co-operation"])
def test_english_words_and_hyphens_are_not_code(words: str) -> None:
    row = features(words)
    assert {name: row[name] for name in ("log_code_marks", "log_operator_rate", "log_identifier_joints")} == {
        "log_code_marks": 0.0,
        "log_operator_rate": 0.0,
        "log_identifier_joints": 0.0,
    }


SAME_REQUEST = (
    "Write a function that takes a list of intervals, merges those that overlap and returns them sorted by start. Up to 100000.",
    "Schreibe eine Funktion, die eine Liste von Intervallen nimmt, sie vereint und nach Anfang sortiert liefert. Bis zu 100000.",
    "Напиши функцию, которая принимает список интервалов, объединяет пересекающиеся и возвращает результат по порядку начала. До 100000.",
    "请写一个函数,接收一个区间列表,合并所有重叠的区间,并按起点排序返回结果。区间数量最多为 100000 个,请注意运行时间。",
    "区間のリストを受け取り、重なり合うものを結合して、始点の順に並べた結果を返す関数を書いてください。区間は最大で100000個あります。",
    "구간들의 목록을 받아 서로 겹치는 것들을 합치고 시작점 순서로 정렬된 결과를 돌려주는 함수를 작성하세요. 구간은 최대 100000개입니다.",
    "एक फ़ंक्शन लिखिए जो अंतरालों की सूची ले, एक-दूसरे को ढकने वाले अंतरालों को मिला दे और परिणाम को आरंभ के क्रम में लौटाए। वे 100000 तक हैं।",
    "اكتب دالة تأخذ قائمة من الفترات الزمنية وتدمج المتداخلة منها وتعيد النتيجة مرتبة حسب البداية. عددها يصل إلى 100000 فترة في القائمة.",
)  # fmt: skip


@pytest.mark.parametrize("words", SAME_REQUEST[1:])
def test_the_same_request_is_as_long_in_every_language(words: str) -> None:
    english, other = features(SAME_REQUEST[0]), features(words)
    assert other["log_letters"] == pytest.approx(english["log_letters"], abs=0.35)  # tokens differ by a factor of three
    for name in ("log_numbers", "log_largest_number", "log_lines", "log_code_marks", "log_operator_rate", "log_bracket_rate"):
        assert other[name] == english[name]


def test_tokens_of_a_turn_count_history_tools_and_attachments() -> None:
    short = tokens_of(Conversation.from_text("hello world"), 600)
    assert short.output == 600
    assert 4 < short.input < 12
    tools = Conversation.from_openai([{"role": "user", "content": "x"}], [{"name": "f", "description": "y" * 4000}])
    assert 900 < tokens_of(tools, 600).input < 1200
    image = Conversation.from_openai([{"role": "user", "content": [{"type": "image_url"}]}])
    assert tokens_of(image, 600).input >= 1000
    capped = Conversation.from_openai([{"role": "user", "content": "x"}], max_output_tokens=50)
    assert tokens_of(capped, 600).output == 50


@pytest.mark.parametrize("sides", [("hello world ", "hello world "), ("hello world ", "请解释为什么"), ("\n    ", "объясни ")])
def test_long_histories_are_measured_well_by_windows(sides: tuple[str, str]) -> None:
    text = sides[0] * 20_000 + sides[1] * 20_000
    measured = tokens_of(Conversation.from_text(text), 600).input
    assert measured == pytest.approx(estimate_tokens(text), rel=0.15)


@pytest.mark.parametrize(("cached", "tokens", "usd"), [(False, 2000, 0.0026), (True, 2000, 0.0008), (True, 500, 0.0011)])
def test_a_cache_read_is_cheaper_from_the_minimum_on(cached: bool, tokens: int, usd: float) -> None:
    model = ModelProfile("m", "", Prices(1.0, 6.0, cache_read_multiplier=0.1, cache_minimum_tokens=1024), {})
    assert expected_cost_usd(model, TurnTokens(tokens, 100), cached=cached) == pytest.approx(usd)


def test_a_whole_kit_of_tools_says_nothing_of_the_request() -> None:
    def tools(count: int) -> float:
        offered = [{"type": "function", "function": {"name": f"t{i}"}} for i in range(count)]
        conversation = Conversation.from_openai([{"role": "user", "content": "hi"}], offered)
        return dict(zip(FEATURE_NAMES, extract_features(conversation, classify_text(conversation)), strict=True))["log_tools"]

    assert tools(3) > tools(1) > tools(0) == tools(32)
