from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from router.route import Router
from serve.examples import REQUEST_EXAMPLES
from serve.options import with_policy
from serve.schemas import RouteRequest, RouteResponse

HARD = "Prove that the scheduler never deadlocks and rewrite it without locks. " * 12
IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
FIELDS = {
    "model", "decision", "reason", "requirements", "confidence", "candidates", "flip_margin", "fallback_reason", "classified", "language",
    "family", "language_effect", "boundary", "router", "latency_ms",
}  # fmt: skip


def ask(client: TestClient, content: object, **more: object) -> dict:
    return post(client, {"messages": [{"role": "user", "content": content}], **more})


def post(client: TestClient, body: object) -> dict:
    answer = client.post("/v1/route", json=body)
    assert answer.status_code == 200, answer.text
    RouteResponse.model_validate(answer.json(), extra="forbid")
    return answer.json()


def candidate(answer: dict, model: str) -> dict:
    return next(item for item in answer["candidates"] if item["model"] == model)


def test_answer_explains_itself(client: TestClient) -> None:
    answer = ask(client, HARD)
    assert set(answer) == FIELDS
    assert answer["decision"] == "initialize"
    assert answer["boundary"]["kind"] == "first_turn"
    assert set(answer["requirements"]) == {"reasoning", "code_gen", "debugging", "tool_use"}
    for item in answer["candidates"]:
        assert item["shortfall"] == pytest.approx(sum(item["shortfall_by_capability"].values()), abs=1e-5)
    assert answer["model"] in answer["reason"]


def test_harder_prompt_gets_a_dearer_model(client: TestClient) -> None:
    easy, hard = ask(client, "hi"), ask(client, HARD)
    assert candidate(easy, easy["model"])["expected_cost_usd"] < candidate(hard, hard["model"])["expected_cost_usd"]


@pytest.mark.parametrize(
    ("text", "language", "family"),
    [
        ("请解释这段代码为什么会死锁,并给出修复方法。", "zh", "Sinitic"),
        ("صباح الخير! كيف حالك اليوم؟", "ar", "Semitic"),
        ("สวัสดีครับ ช่วยเขียนโปรแกรมให้หน่อย", "th", "Kra-Dai"),
        ("このコードを直してください。", "ja", "Japonic"),
        ("이 코드를 고쳐 주세요.", "ko", "Koreanic"),
        ("Γράψε μια συνάρτηση σε Python.", "el", "Hellenic"),
    ],
)
def test_languages_are_read_as_written(client: TestClient, text: str, language: str, family: str) -> None:
    answer = ask(client, text)
    assert (answer["language"], answer["family"], answer["classified"]["text"]) == (language, family, text)


def test_given_language_wins(client: TestClient) -> None:
    assert ask(client, "Hello there", language="pt-BR")["family"] == "Romance"


def test_text_parts_are_read_like_a_string(client: TestClient) -> None:
    parts = ask(client, [{"type": "text", "text": "Write a parser."}, "And its tests."])
    whole = ask(client, "Write a parser.\nAnd its tests.")
    assert parts["classified"] == whole["classified"]
    assert parts["requirements"] == whole["requirements"]


def test_unknown_parts_and_vendor_fields_are_ignored(client: TestClient) -> None:
    body = {
        "model": "auto",
        "stream": True,
        "temperature": 0.2,
        "cache_control": {"type": "ephemeral"},
        "tool_choice": {"type": "function", "function": {"name": "search"}},
        "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {}}},
        "metadata": {"user_id": "u", "nested": {"a": 1}},
        "tools": None,
        "messages": [
            {
                "role": "user",
                "name": "ada",
                "content": [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": "Hi", "cache_control": {}}],
            }
        ],
    }
    assert post(client, body)["classified"]["text"] == "Hi"


def test_image_gates_models_that_cannot_see(client: TestClient) -> None:
    answer = ask(client, [{"type": "text", "text": "What is this?"}, IMAGE])
    assert answer["model"] == "middle"
    assert candidate(answer, "large")["gates"] == ["modality: cannot read image"]


def test_image_alone_is_answered(client: TestClient) -> None:
    answer = ask(client, [IMAGE])
    assert (answer["model"], answer["classified"]["text"], answer["language"]) == ("middle", "", "und")


def test_tools_gate_models_without_them(client: TestClient) -> None:
    assert candidate(ask(client, "hi", tools=[TOOL]), "small")["gates"] == ["tools: cannot call tools"]


def test_tool_turns_are_accepted_and_not_read(client: TestClient) -> None:
    call = {"id": "1", "type": "function", "function": {"name": "search", "arguments": '{"q": "x"}'}}
    messages = [
        {"role": "system", "content": "SYSTEM"},
        {"role": "user", "content": "Find x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "OUTPUT"}]},
    ]
    answer = post(client, {"messages": messages})
    assert answer["classified"]["text"] == "Find x"
    assert answer["classified"]["cut"] == {"system": 6, "tool_output": 6, "tool_calls": 10}
    assert not candidate(answer, "small")["eligible"]


@pytest.mark.parametrize("content", ["", "   \n", None, []])
def test_empty_content_is_answered(client: TestClient, content: object) -> None:
    answer = ask(client, content)
    assert answer["fallback_reason"] is None
    assert answer["language"] == "und"


def test_current_model_is_kept_between_boundaries(client: TestClient) -> None:
    answer = ask(client, "hi", current_model="large")
    assert (answer["model"], answer["decision"], answer["boundary"]["kind"]) == ("large", "retain", None)


def test_compaction_lets_the_model_change(client: TestClient) -> None:
    answer = ask(client, "hi", current_model="large", compacted=True, shortfall_threshold=100)
    assert (answer["model"], answer["decision"], answer["boundary"]["kind"]) == ("small", "switch", "compaction")


def test_current_model_that_is_not_in_the_catalog_does_not_stop_the_conversation(client: TestClient) -> None:
    assert ask(client, "hi", current_model="retired-model")["decision"] == "initialize"


def test_threshold_is_the_callers(client: TestClient) -> None:
    assert ask(client, HARD, shortfall_threshold=0)["model"] == "large"
    assert ask(client, HARD, shortfall_threshold=100)["model"] == "small"


def test_the_callers_threshold_holds_for_every_family(serving, toy_router: Router) -> None:
    client = serving(with_policy(toy_router, replace(toy_router.policy, shortfall_threshold=100.0, family_thresholds={"English": 0.0})))
    assert ask(client, HARD)["model"] == "large"
    assert ask(client, HARD, shortfall_threshold=100)["model"] == "small"
    assert ask(client, HARD, deny=["middle"])["model"] == "large"


def test_caller_can_narrow_the_pool_but_not_widen_it(serving, toy_router: Router) -> None:
    policy = replace(toy_router.policy, allow=frozenset({"small", "middle"}))
    client = serving(with_policy(toy_router, policy))
    assert ask(client, "hi", deny=["small"], shortfall_threshold=100)["model"] == "middle"
    refused = client.post("/v1/route", json={"messages": [{"role": "user", "content": "hi"}], "allow": ["large"]})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:interlock:problem:invalid-request")


def test_every_documented_example_is_answered(client: TestClient) -> None:
    for example in REQUEST_EXAMPLES.values():
        RouteRequest.model_validate(example["value"])
        post(client, example["value"])
