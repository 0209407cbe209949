"""Message shapes that users' clients send."""

import numpy as np
import pytest

from router.errors import InvalidInput
from router.types import Conversation

USER = {"role": "user", "content": "hi"}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


def read(*messages: object, **options: object) -> Conversation:
    return Conversation.from_openai(list(messages), **options)


@pytest.mark.parametrize(
    ("content", "text", "modalities"),
    [
        ("hi", "hi", {"text"}),
        ("", "", {"text"}),
        (None, "", {"text"}),
        ([], "", {"text"}),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb", {"text"}),
        (["a", {"text": "b"}], "a\nb", {"text"}),
        ({"type": "text", "text": "alone"}, "alone", {"text"}),
        ([{"type": "input_text", "text": "responses"}], "responses", {"text"}),
        ([{"type": "text", "text": {"value": "assistants", "annotations": []}}], "assistants", {"text"}),
        ([IMAGE], "", {"text", "image"}),
        ([{"type": "text", "text": "what is this"}, IMAGE], "what is this", {"text", "image"}),
        ([{"type": "input_image", "image_url": "https://example.org/a.png"}], "", {"text", "image"}),
        ([{"type": "image", "source": {"type": "base64", "data": "AAAA"}}], "", {"text", "image"}),
        ([{"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}], "", {"text", "audio"}),
        ([{"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}], "", {"text", "video"}),
        ([{"type": "file", "file": {"file_id": "f"}}], "", {"text", "file"}),
        ([{"type": "document", "source": {}}], "", {"text", "file"}),
        ([{"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}], "x", {"text"}),
        ([{"type": "hologram", "data": 1}, {"type": "text", "text": "x"}, 5, None], "x", {"text"}),
        ([{"type": "text", "text": None}, {"type": "text"}, {"type": "text", "text": 3}], "", {"text"}),
        ([{"type": None, "text": "x"}], "", {"text"}),
    ],
)
def test_content_of_every_shape(content: object, text: str, modalities: set[str]) -> None:
    conversation = read({"role": "user", "content": content})
    assert conversation.messages[0].text == text
    assert conversation.modalities == modalities
    assert conversation.user_texts == ((text,) if text else ())


@pytest.mark.parametrize("role", ["system", "developer", "user", "assistant", "tool", "function"])
def test_every_role_is_read(role: str) -> None:
    assert read({"role": role, "content": "x", "name": "n", "unknown": 1}).messages[0].role == role


def test_tool_calls_in_the_dialects_of_three_vendors_read_alike() -> None:
    chat = read(
        USER,
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"a": 1}'}}]},
        {"role": "tool", "tool_call_id": "1", "content": "result"},
    )
    objects = read(
        USER,
        {"role": "assistant", "content": "", "tool_calls": [{"function": {"name": "f", "arguments": {"a": 1}}}]},
        {"role": "tool", "content": [{"type": "text", "text": "result"}]},
    )
    legacy = read(
        USER,
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a": 1}'}},
        {"role": "function", "name": "f", "content": "result"},
    )
    anthropic = read(
        USER,
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": [{"type": "text", "text": "result"}]}]},
    )
    responses = read(
        USER,
        {"type": "reasoning", "summary": []},
        {"type": "function_call", "name": "f", "arguments": '{"a": 1}', "call_id": "1"},
        {"type": "function_call_output", "call_id": "1", "output": "result"},
    )
    for conversation in (chat, objects, legacy, anthropic, responses):
        calls = [(call.name, call.arguments) for message in conversation.messages for call in message.tool_calls]
        assert calls == [("f", '{"a": 1}')]
        assert conversation.uses_tools
        assert conversation.user_texts == ("hi",)
        assert [message.role for message in conversation.messages if message.text == "result"] in (["tool"], ["function"])


def test_a_user_turn_with_tool_results_is_split() -> None:
    result = {"type": "tool_result", "content": "log", "is_error": True}
    conversation = read({"role": "user", "content": [result, {"type": "text", "text": "and now?"}]})
    assert [(m.role, m.text) for m in conversation.messages] == [("tool", "log"), ("user", "and now?")]
    nothing_inside = read(USER, {"role": "user", "content": [{"type": "tool_result"}]})
    assert [m.role for m in nothing_inside.messages] == ["user", "tool"]


def test_an_image_inside_a_tool_result_counts() -> None:
    assert "image" in read({"role": "user", "content": [{"type": "tool_result", "content": [{"type": "image"}]}]}).modalities


def test_refusals_and_spoken_answers_outside_the_content() -> None:
    refused = read(USER, {"role": "assistant", "content": None, "refusal": "I cannot"})
    assert refused.messages[1].text == "I cannot"
    spoken = read(USER, {"role": "assistant", "content": None, "audio": {"id": "a"}})
    assert "audio" in spoken.modalities


@pytest.mark.parametrize(
    "tool",
    [
        {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}},
        {"type": "function", "name": "f", "parameters": {"type": "object"}},
        {"name": "f", "input_schema": {"type": "object"}},
        {"type": "custom", "custom": {"name": "f", "format": {"type": "text"}}},
    ],
)
def test_tools_of_every_shape_are_named_and_measured(tool: dict) -> None:
    read_tool = read(USER, tools=[tool]).tools[0]
    assert read_tool.name == "f"
    assert read_tool.schema_chars > 20


def test_a_tool_without_a_name_goes_by_its_type() -> None:
    assert read(USER, tools=[{"type": "web_search"}, {}]).tools[0].name == "web_search"


@pytest.mark.parametrize(
    ("messages", "match"),
    [
        ([], "messages is empty"),
        ("hi", "messages is a str"),
        ({"role": "user"}, "messages is a dict"),
        (["hi"], r"messages\[0\] is a str"),
        ([USER, None], r"messages\[1\] is a NoneType"),
        ([{}], r"messages\[0\]\.role is None: allowed are"),
        ([{"role": "robot", "content": ""}], "role is 'robot'"),
        ([{"role": ["user"], "content": ""}], r"role is \['user'\]"),
        ([{"role": "user", "content": 5}], r"messages\[0\]\.content is a int"),
        ([{"role": "user", "content": b"x"}], "content is a bytes"),
        ([{"role": "user", "content": True}], "content is a bool"),
        ([{"role": "assistant", "tool_calls": "f"}], "tool_calls is a str"),
        ([{"role": "assistant", "tool_calls": {"a": 1}}], "tool_calls is a dict"),
        ([{"type": "reasoning"}], "holds no turn"),
    ],
)
def test_what_is_no_conversation_is_refused_in_one_line(messages: object, match: str) -> None:
    with pytest.raises(InvalidInput, match=match) as error:
        Conversation.from_openai(messages)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"tools": {"a": 1}}, "tools is a dict"),
        ({"tools": [USER, "f"]}, r"tools\[1\] is a str"),
        ({"language": "English, please"}, "not a BCP-47 tag"),
        ({"language": ""}, "not a BCP-47 tag"),
        ({"max_output_tokens": 0}, "max_output_tokens is 0"),
        ({"max_output_tokens": True}, "max_output_tokens is True"),
        ({"max_output_tokens": "100"}, "max_output_tokens is '100'"),
    ],
)
def test_options_out_of_range_are_refused(options: dict, match: str) -> None:
    with pytest.raises(InvalidInput, match=match):
        read(USER, **options)


def test_a_conversation_is_frozen_and_equal_by_value() -> None:
    conversation = read(USER, language="pt-BR")
    assert conversation == read(USER, language="pt-BR")
    with pytest.raises(AttributeError):
        conversation.language = "en"  # type: ignore[misc]


def test_an_array_is_no_list_of_messages() -> None:
    with pytest.raises(InvalidInput, match="messages is a ndarray"):
        Conversation.from_openai(np.array([USER], dtype=object))
