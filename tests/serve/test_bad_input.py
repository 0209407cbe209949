import json
from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

BASE = "urn:interlock:problem:"
GOOD = {"messages": [{"role": "user", "content": "hi"}]}


def refused(client: TestClient, status: int, kind: str, **request: object) -> dict:
    answer = client.post("/v1/route", **request)
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    assert (body["type"], body["status"]) == (BASE + kind, status)
    assert body["detail"]
    assert "\n" not in body["detail"]
    return body


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"messages": []}, "#/messages"),
        ({}, "#/messages"),
        ({"messages": "hi"}, "#/messages"),
        ({"messages": ["hi"]}, "#/messages/0"),
        ({"messages": [{"role": "narrator", "content": "x"}]}, "#/messages/0/role"),
        ({"messages": [{"content": "x"}]}, "#/messages/0/role"),
        ({"messages": [{"role": "user", "content": 3}]}, "#/messages/0/content"),
        ({"messages": [{"role": "user", "content": [{"type": "text", "text": 3}]}]}, "#/messages/0/content/0/text"),
        ({**GOOD, "tools": {"a": 1}}, "#/tools"),
        ({**GOOD, "language": "not a tag"}, "#/language"),
        ({**GOOD, "compacted": "yes"}, "#/compacted"),
        ({**GOOD, "max_tokens": 0}, "#/max_tokens"),
        ({**GOOD, "shortfall_threshold": -1}, "#/shortfall_threshold"),
        ({**GOOD, "shortfall_threshold": "0.1"}, "#/shortfall_threshold"),
        ([GOOD], "#/"),
    ],
)
def test_wrong_field_is_pointed_at(client: TestClient, body: object, pointer: str) -> None:
    problem = refused(client, 422, "invalid-request", json=body)
    assert pointer in [error["pointer"] for error in problem["errors"]]
    assert len(problem["errors"]) <= 2


def test_unknown_role_says_which_are_allowed(client: TestClient) -> None:
    assert "'assistant'" in refused(client, 422, "invalid-request", json={"messages": [{"role": "narrator"}]})["detail"]


@pytest.mark.parametrize(
    ("content", "status", "kind"),
    [
        (b"{", 400, "invalid-json"),
        (b"", 422, "invalid-request"),
        (b"not json", 400, "invalid-json"),
        (b"\xff\xfe\x00", 400, "bad-request"),
        (b"[" * 200_000, 400, "bad-request"),
        (b'{"messages": [{"role": "user", "content": NaN}]}', 422, "invalid-request"),
        (b'{"messages": [{"role": "user", "content": "hi"}], "shortfall_threshold": 1e999}', 422, "invalid-request"),
    ],
)
def test_body_that_is_not_json(client: TestClient, content: bytes, status: int, kind: str) -> None:
    refused(client, status, kind, content=content, headers={"content-type": "application/json"})


def test_other_content_type_is_named(client: TestClient) -> None:
    content = json.dumps(GOOD).encode()
    assert (
        "application/json"
        in refused(client, 415, "unsupported-media-type", content=content, headers={"content-type": "text/plain"})["detail"]
    )


def test_lone_surrogate_is_no_server_error(client: TestClient) -> None:
    answer = client.post(
        "/v1/route", content=b'{"messages": [{"role": "\\ud800", "content": "a"}]}', headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    answer = client.post(
        "/v1/route", content=b'{"messages": [{"role": "user", "content": "a\\ud800"}]}', headers={"content-type": "application/json"}
    )
    assert answer.status_code in (200, 422)


def test_deeply_nested_tool_is_no_server_error(client: TestClient) -> None:
    schema = b'{"a":' * 600 + b"1" + b"}" * 600
    body = b'{"messages": [{"role": "user", "content": "hi"}], "tools": [' + schema + b"]}"
    assert client.post("/v1/route", content=body, headers={"content-type": "application/json"}).status_code in (200, 422)


def test_large_body_is_refused_by_its_announced_length(serving) -> None:
    client = serving(max_body_bytes=2_000)
    refused(client, 413, "content-too-large", json={"messages": [{"role": "user", "content": "x" * 3_000}]})
    assert client.post("/v1/route", json=GOOD).status_code == 200


def test_large_body_is_refused_without_an_announced_length(serving) -> None:
    sent = 0

    def chunks() -> Iterator[bytes]:
        nonlocal sent
        for _ in range(100):
            sent += 100
            yield b"x" * 100

    refused(serving(max_body_bytes=2_000), 413, "content-too-large", content=chunks(), headers={"content-type": "application/json"})


def test_chunked_body_within_the_limit_is_read(client: TestClient) -> None:
    data = json.dumps(GOOD).encode()
    answer = client.post("/v1/route", content=iter([data[:9], data[9:]]), headers={"content-type": "application/json"})
    assert answer.status_code == 200


def test_too_many_messages_or_tokens(serving) -> None:
    client = serving(max_messages=3, max_input_tokens=500)
    assert "4 messages" in refused(client, 413, "content-too-large", json={"messages": GOOD["messages"] * 4})["detail"]
    assert "500" in refused(client, 413, "content-too-large", json={"messages": [{"role": "user", "content": "你好" * 2_000}]})["detail"]


def test_unknown_model_in_a_list_is_named(client: TestClient) -> None:
    problem = refused(client, 422, "invalid-request", json={**GOOD, "allow": ["smal"]})
    assert "did you mean 'small'" in problem["detail"]


def test_conversation_that_fits_no_window(client: TestClient) -> None:
    problem = refused(client, 422, "no-eligible-model", json={"messages": [{"role": "user", "content": "word " * 300_000}]})
    assert "window: needs about" in problem["detail"]


def test_unknown_path_and_method(client: TestClient) -> None:
    missing, wrong = client.get("/v1/nothing"), client.get("/v1/route")
    assert (missing.status_code, missing.json()["type"]) == (404, BASE + "not-found")
    assert (wrong.status_code, wrong.json()["type"], wrong.headers["allow"]) == (405, BASE + "method-not-allowed", "POST")
