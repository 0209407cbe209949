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
    shares = [value for name, value in row.items() if name.endswith("_share") and name != "identifier_share"]
    assert all(0 <= share <= 1 for share in shares)


@pytest.mark.parametrize(
    ("name", "without", "with_it"),
    [
        ("code_fences", "x", "```py\nx\n```"),
        ("code_share", "x", "a ```py\nx = 1\n```"),
        ("has_url", "example.org", "https://example.org"),
        ("has_path", "app", "app.py"),
        ("has_trace", "it fails", 'Traceback (most recent call last):\n  File "a.py"'),
        ("has_json", "a: 1", '{"a": 1}'),
        ("has_markup", "a < b", "<p>a</p>"),
        ("has_formula", "x", "\\frac{1}{2}"),
        ("list_items", "a\nb", "- a\n- b"),
        ("question_marks", "なぜ", "なぜ？"),
        ("question_marks", "لماذا", "لماذا؟"),
        ("question_marks", "why", "why?"),
        ("digit_share", "abc", "a12"),
        ("digit_share", "क", "१२"),
        ("indented_share", "a\nb", "a\n    b"),
        ("repetition", "a b c", "a a a"),
        ("log_lines", "a", "a\nb"),
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


def test_a_system_prompt_and_tool_output_move_nothing_but_the_count_of_turns() -> None:
    plain = features("fix it")
    wrapped = Conversation.from_openai([{"role": "system", "content": "def x(): Traceback (" * 500}, {"role": "user", "content": "fix it"}])
    assert {name for name, value in features(wrapped).items() if value != plain[name]} == {"log_turns"}


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
