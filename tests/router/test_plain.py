"""A turn in plain form is the same request, however it was typed; code, and scripts that need their joiners, are left alone."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router import plain
from router.plain import plain_form, unframed, without_attachments, without_courtesy

MARKS = "ab1 \n\t*_#>`\r\u200b\ufeff\u00a0Ａ“”é\u0301🙂你।"
LOG = "\n".join(f"2026-02-14T10:00:{i:02} INFO [api] request {i} done" for i in range(20))


@given(st.text(MARKS, max_size=80) | st.text(max_size=80))
def test_plain_form_never_grows_and_keeps_every_letter(text: str) -> None:
    plain_text = plain_form(text)
    assert len(plain_text) <= len(text)
    assert sum(map(str.isalnum, plain_text)) <= sum(map(str.isalnum, text))


@pytest.mark.parametrize(
    "text", ["**Sort** a list\r\n\r\n\r\nof names  \n", "## Fix `__init__`", "> quoted\n> twice", "```text\nTell me\n```"]
)
def test_plain_form_of_plain_form_is_itself(text: str) -> None:
    once = plain_form(text)
    assert plain_form(once) == once


@pytest.mark.parametrize(
    ("typed", "plain_text"),
    [
        ("Sort\r\nthis \t\n\n\n\nlist", "Sort\nthis\n\nlist"),
        ("\ufeffSo\u00adrt th\u200bis", "Sort this"),
        ("cafe\u0301 １２３", "café 123"),
        ("“Hi,” she said: it’s late", '"Hi," she said: it\'s late'),
        ("SORT THIS LIST OF NAMES", "sort this list of names"),
        ("## **Sort** this __list__", "Sort this list"),
        ("> Sort this\n> list", "Sort this\nlist"),
        ("```text\nSort this list\n```", "Sort this list"),
    ],
)
def test_ways_of_writing_become_one(typed: str, plain_text: str) -> None:
    assert plain_form(typed) == plain_text


@pytest.mark.parametrize(
    "text",
    [
        "Why is 2**3**2 not 64?",
        "def __init__(self): pass",
        "call `__main__` or `__file__`",
        "```python\nx = a ** b  ** c\n# not a heading\n```\nwhat is x?",
        "می\u200cخواهم فهرست را مرتب کنم",
        "请写一个排序函数。解释每一步。",
        "اكتب دالة تفرز القائمة، ثم اشرحها.",
        "👩\u200d💻 fixes it",
        "NASA and HTTP are fine",
    ],
)
def test_code_and_other_scripts_are_left_alone(text: str) -> None:
    assert plain_form(text) == text


@pytest.mark.parametrize(
    ("framed", "request_"),
    [
        ("Question: What is 12 times 9?\nAnswer:", "What is 12 times 9?"),
        ("Question: a?\nAnswer: b\n\nQuestion: c?\nAnswer:", "c?"),
        ("Some words about it.\n\n### Instruction:\nSort a list\n\n### Response:", "Sort a list"),
        ("Some words about it.\n\nInstruction:\nSort a list\n\nResponse:", "Sort a list"),
        ("Add them.\nInput:\n1 2\nOutput:\n3\nInput:\n3 4\nOutput:", "Add them.\nInput:\n1 2\nOutput:\n3\nInput:\n3 4"),
        ("What is 12 times 9?", "What is 12 times 9?"),
        ("Answer:", "Answer:"),
        ("Write a dialogue that ends:\nAnswer: no", "Write a dialogue that ends:\nAnswer: no"),
    ],
)
def test_frames_of_evaluations_are_taken_off(framed: str, request_: str) -> None:
    assert unframed(framed) == request_


@pytest.mark.parametrize("pasted", [f"Why is it slow?\n\n{LOG}", f"{LOG}\n\nWhy is it slow?", f"```\n{LOG}\n```\n\nWhy is it slow?"])
def test_a_pasted_log_is_not_the_request(pasted: str) -> None:
    assert without_attachments(pasted).strip() == "Why is it slow?"


def test_a_mail_that_is_answered_is_not_the_request() -> None:
    mail = "Please shorten this reply.\n\nOn Monday Dana wrote:\n> one\n> two\n> three"
    assert without_attachments(mail) == "Please shorten this reply."


@pytest.mark.parametrize("text", [LOG, "", " ", "\u200b\ufeff", "\n\n", "Look:\n10:00:01 one line of a log\nis this bad?"])
def test_what_is_nothing_but_an_attachment_stays(text: str) -> None:
    assert without_attachments(text) == text


def test_nothing_but_invisible_characters_is_nothing() -> None:
    assert plain_form("\ufeff\u200b \u2060\n") == ""


@pytest.mark.parametrize("unit", ["**a ", "__a ", "*", "_", ">", "> \n", " ", "\n", "7", "#", "---\n", "-" * 50 + "\n", "a:\n", "```"])
def test_work_grows_with_the_length(unit: str) -> None:
    """Lines of Python that run, which no slow machine changes; patterns are bounded in what they try."""
    short, long = (_lines_run(unit * (size // len(unit))) for size in (2_000, 8_000))
    assert long <= 5 * short + 200


def _lines_run(text: str) -> int:
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if frame.f_code.co_filename != plain.__file__:
            return None
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        without_courtesy(without_attachments(plain_form(text)))
        unframed(plain_form(text))
    finally:
        sys.settrace(before)
    return count


def test_no_pattern_repeats_what_is_repeated() -> None:
    """A group that repeats and has a repetition at its end is what makes a pattern exponential."""
    patterns = [value.pattern for value in vars(plain).values() if isinstance(value, re.Pattern)]
    assert len(patterns) > 5
    for pattern in patterns:
        assert not re.search(r"[+*]\)[+*]", pattern)


@pytest.mark.parametrize(
    ("around", "request_"),
    [
        ("Hello!\n\nSort 3 lists\n\nThanks a lot!", "Sort 3 lists"),
        ("你好！\n\n请排序3个列表\n\n谢谢", "请排序3个列表"),
        ("مرحبا\n\nاكتب قصيدة عن أول ثلج في السنة\n\nشكرا", "اكتب قصيدة عن أول ثلج في السنة"),
        ("Hello there\n \nWrite a poem about the first snow of the year", "Write a poem about the first snow of the year"),
        (
            "Ann has two apples, eats one and gives one away to a friend.\n\nHow many?",
            "Ann has two apples, eats one and gives one away to a friend.\n\nHow many?",
        ),
        ("Compare both texts.\n\nx = 1\n\nprint(x)", "x = 1\n\nprint(x)"),
        ("Hi\nSort the lists\nBye", "Hi\nSort the lists\nBye"),
        ("Hello\n\nThanks", "Thanks"),
        ("one line", "one line"),
        ("", ""),
    ],
)
def test_paragraphs_of_courtesy_are_not_counted(around: str, request_: str) -> None:
    assert without_courtesy(around) == request_
    assert without_courtesy(request_) == request_
