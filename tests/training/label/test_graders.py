import json

import pytest

from router.errors import LabelError
from training.label.graders import Answer, grade, read_choice
from training.label.text import numbers, script_share

TOOLS = (
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
                "required": ["city"],
            },
        },
    },
    {"type": "function", "function": {"name": "send", "parameters": {"type": "object", "properties": {"text": {"type": "string"}}}}},
)


def correct(grader, text, **answer):
    return grade(grader, Answer(text, **answer), TOOLS).correctness


@pytest.mark.parametrize(
    "text",
    [
        "42", "The answer is 42.", "first 7, then 42", "**42**", "\\boxed{42}", "42.0", "= 42 km", "答案是42。", "٤٢",
        "۴۲", "४२", "๔๒", "４２",
        "𝟜𝟚", "x = 6*7 = 42\n", "42%", "(42)", "42m²",
    ],
)  # fmt: skip
def test_the_last_number_counts_in_any_script(text):
    assert correct({"kind": "numeric", "answer": 42}, text) == 1.0


@pytest.mark.parametrize("text", ["-42", "420", "4.2", "42 of 50", "none", "", "forty-two", "4 2", "−42"])
def test_other_numbers_are_wrong(text):
    assert correct({"kind": "numeric", "answer": 42}, text) == 0.0


@pytest.mark.parametrize(
    "text", ["1234567", "1,234,567", "1.234.567", "1 234 567", "1\u202f234\u00a0567", "12,34,567", "1'234'567", "١٬٢٣٤٬٥٦٧"]
)
def test_thousands_separators(text):
    assert correct({"kind": "numeric", "answer": 1234567}, text) == 1.0


@pytest.mark.parametrize(
    ("text", "value"), [("3,5", 3.5), ("3.5", 3.5), ("٣٫٥", 3.5), ("1.234,5", 1234.5), ("1,234.5", 1234.5), ("-0.25", -0.25)]
)
def test_decimal_marks(text, value):
    assert correct({"kind": "numeric", "answer": value}, text) == 1.0


def test_one_thousands_group_may_be_a_decimal():
    assert numbers("1.234") == [frozenset({1.234, 1234.0})]
    assert numbers("0.125") == [frozenset({0.125})]


def test_ranges_and_subtraction_are_not_negative_numbers():
    assert [max(n) for n in numbers("10-3=7 and 2020-05")] == [10, 3, 7, 2020, 5]


def test_numeric_form_is_rated_apart_from_the_value():
    grader = {"kind": "numeric", "answer": 42}
    assert grade(grader, Answer("42")).instruction_following == 1.0
    assert grade(grader, Answer("It is 42")).instruction_following == 0.5


def test_tolerance():
    assert correct({"kind": "numeric", "answer": 3.14, "tolerance": 0.01}, "3.1415") == 1.0
    assert correct({"kind": "numeric", "answer": 3.14, "tolerance": 0.001}, "3.1415") == 0.0


@pytest.mark.parametrize(
    "text", ["Paris", "paris.", "  PARIS!", "Let me think.\nParis", "“Ｐａｒｉｓ”", "**Paris**", "巴黎。", "Paris\n```"]
)
def test_exact_takes_the_answer_or_its_last_line(text):
    assert correct({"kind": "exact", "answers": ["Paris", "巴黎"]}, text) == 1.0


@pytest.mark.parametrize("text", ["Paris is nice", "Lyon", "Paris\nor Lyon", "..."])
def test_exact_refuses_other_answers(text):
    assert correct({"kind": "exact", "answers": ["Paris", "巴黎"]}, text) == 0.0


def test_exact_ignores_invisible_characters():
    assert correct({"kind": "exact", "answers": ["می‌خواهم"]}, "میخواهم") == 1.0


def test_contains_needs_every_group_and_nothing_forbidden():
    grader = {"kind": "contains", "all": [["red", "rouge"], ["blue"]], "none": ["green"]}
    assert correct(grader, "Rouge and BLUE") == 1.0
    assert correct(grader, "red, blue, green") == 0.0
    half = grade(grader, Answer("only red"))
    assert (half.correctness, half.completeness) == (0.0, 0.5)


@pytest.mark.parametrize(
    "text", ["B", "B)", "b", "(B)", "**B**", "B. Because A is wrong", "The answer is B", "答案是B。", "A is wrong, so B", "B：二"]
)
def test_choice_reads_the_letter(text):
    assert read_choice(text, ["A", "B", "C", "D"]) == "B"


@pytest.mark.parametrize("text", ["", "Because", "none of them", "Bad"])
def test_choice_without_a_letter(text):
    assert read_choice(text, ["A", "B", "C", "D"]) is None


SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}, "n": {"type": "integer"}}, "required": ["city", "n"]}


@pytest.mark.parametrize(
    "text",
    [
        '{"city": "Kyōto", "n": 3}',
        '```json\n{"n": 3, "city": "KYŌTO"}\n```',
        'Here: {"city": "Kyōto", "n": 3} ok',
        '{bad} {"city":"Kyōto","n":3}',
    ],
)
def test_json_is_found_and_checked(text):
    assert correct({"kind": "json", "schema": SCHEMA, "expect": {"city": "Kyōto", "n": 3}}, text) == 1.0


@pytest.mark.parametrize(
    "text", ['{"city": "Kyōto"}', '{"city": "Osaka", "n": 3}', '{"city": "Kyōto", "n": "three"}', "Kyōto, 3", '{"city": "Kyō']
)
def test_json_that_is_wrong(text):
    assert correct({"kind": "json", "schema": SCHEMA, "expect": {"city": "Kyōto", "n": 3}}, text) == 0.0


CALL = {"kind": "tool_call", "name": "get_weather", "arguments": {"city": ["Kyoto", "京都"], "days": 3}}
WRITTEN = json.dumps({"name": "get_weather", "arguments": {"city": "京都", "days": 3}}, ensure_ascii=False)


@pytest.mark.parametrize(
    "text",
    [
        WRITTEN,
        f"```json\n{WRITTEN}\n```",
        f"<tool_call>\n{WRITTEN}\n</tool_call>",
        f"Sure! {WRITTEN}",
        f"[{WRITTEN}]",
        '{"tool_calls": [{"type": "function", "function": ' + WRITTEN + "}]}",
        '{"name": "get_weather", "arguments": "{\\"city\\": \\" kyoto \\", \\"days\\": \\"3\\"}"}',
        '{"name": "get_weather", "parameters": {"city": "KYOTO", "days": 3.0}}',
        f"{WRITTEN}\n{WRITTEN}",
    ],
)
def test_tool_calls_written_in_text(text):
    assert correct(CALL, text) == 1.0


def test_native_tool_calls():
    calls = ({"name": "get_weather", "arguments": '{"city": "Kyoto", "days": 3}'},)
    assert correct(CALL, "", tool_calls=calls) == 1.0
    assert correct(CALL, "", tool_calls=({"name": "get_weather", "arguments": "{broken"},)) == 0.0


@pytest.mark.parametrize(
    "text",
    [
        "It is sunny.",
        '{"name": "send", "arguments": {"text": "x"}}',
        '{"name": "get_weather", "arguments": {"city": "Osaka", "days": 3}}',
        '{"name": "get_weather", "arguments": {"days": 3}}',
        WRITTEN + '\n{"name": "send", "arguments": {"text": "x"}}',
    ],
)
def test_wrong_tool_calls(text):
    assert correct(CALL, text) == 0.0


def test_no_tool_fits():
    grader = {"kind": "tool_call", "name": None}
    assert correct(grader, "I cannot do that, sorry.") == 1.0
    assert correct(grader, WRITTEN) == 0.0
    assert correct(grader, "") == 0.0
    declined = grade(grader, Answer('{"name": null, "arguments": {}}'), TOOLS)
    assert (declined.correctness, declined.instruction_following) == (1.0, 0.0)


def test_a_call_outside_the_schema_follows_instructions_less():
    call = '{"name": "get_weather", "arguments": {"city": "Kyoto", "days": 3, "mood": "good"}}'
    result = grade(CALL, Answer(call), TOOLS)
    assert (result.correctness, result.instruction_following) == (1.0, 0.5)


@pytest.mark.parametrize("kind", ["numeric", "exact", "contains", "choice", "json", "tool_call", "unit_tests"])
def test_empty_answers_score_nothing(kind):
    result = grade({"kind": kind}, Answer("  \n"))
    assert (result.correctness, result.completeness, result.instruction_following) == (0.0, 0.0, 0.0)


def test_the_judge_is_no_program():
    with pytest.raises(LabelError, match="'judge' is not a program; allowed: numeric"):
        grade({"kind": "judge", "rubric": "x"}, Answer("x"))


def test_script_share_tells_scripts_not_languages():
    assert script_share("Добрый день, друзья мои", "ru") == 1.0
    assert script_share("Good day, my dear friends", "ru") == 0.0
    assert script_share("今日はとても良い天気ですね", "ja") == 1.0
    assert script_share("Bonjour mes chers amis", "es") == 1.0
    assert script_share("42", "ru") is None


@pytest.mark.parametrize("text", ["[" * 5000, "{" * 5000, '{"name":' * 3000])
def test_deep_nesting_is_only_a_wrong_answer(text):
    assert correct(CALL, text) == 0.0
