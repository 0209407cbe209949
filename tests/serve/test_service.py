import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from jsonschema import Draft202012Validator
from starlette.testclient import TestClient

from router.encoder import EncoderSpec
from router.errors import RouterError
from router.route import Router
from serve.app import create_app
from serve.examples import REQUEST_EXAMPLES
from serve.log import JsonFormatter
from serve.options import with_policy
from serve.settings import Settings, read_settings

BODY = {"messages": [{"role": "user", "content": "Write a parser, SECRET-WORD"}]}


class FakeEncoder:
    """Does what a test asks while it encodes."""

    def __init__(self, spec: EncoderSpec, act) -> None:
        self.spec = spec
        self._act = act

    def encode(self, texts):
        return self._act(texts)


def broken(router: Router, act) -> Router:
    return Router(router.artifact, FakeEncoder(router.encoder.spec, act), router.catalog, router.policy, router.identifier)


def fail(texts):
    raise RuntimeError("weights melted on SECRET-WORD")


def test_classifier_error_gives_the_default_model(serving, toy_router: Router) -> None:
    answer = serving(broken(toy_router, fail)).post("/v1/route", json=BODY)
    assert answer.status_code == 200
    body = answer.json()
    assert (body["model"], body["decision"]) == ("large", "fallback")
    assert body["fallback_reason"] == "the classifier failed with RuntimeError"
    assert "SECRET" not in answer.text


def test_configured_default_model_is_the_fallback(serving, toy_router: Router) -> None:
    from dataclasses import replace

    router = with_policy(broken(toy_router, fail), replace(toy_router.policy, default_model="middle"))
    assert serving(router).post("/v1/route", json=BODY).json()["model"] == "middle"


def test_fallback_keeps_the_current_model(serving, toy_router: Router) -> None:
    body = serving(broken(toy_router, fail)).post("/v1/route", json={**BODY, "current_model": "small"}).json()
    assert (body["model"], body["decision"]) == ("small", "retain")


def waiting(router: Router, release: threading.Event) -> Router:
    """A router whose classifier stands still until it is released."""

    def wait(texts):
        release.wait(60)
        return router.encoder.encode(texts)

    return broken(router, wait)


def test_loop_answers_while_the_classifier_is_busy(serving, toy_router: Router) -> None:
    release = threading.Event()
    client = serving(waiting(toy_router, release), classifier_timeout_ms=60_000, classifier_workers=1)
    with ThreadPoolExecutor(4) as pool:
        slow = [pool.submit(client.post, "/v1/route", json=BODY) for _ in range(3)]
        assert client.get("/healthz").status_code == 200
        assert client.get("/v1/models").status_code == 200
        assert not any(item.done() for item in slow)
        release.set()
        assert [item.result().json()["fallback_reason"] for item in slow] == [None] * 3


def test_slow_classifier_is_given_up_on(serving, toy_router: Router) -> None:
    release = threading.Event()
    client = serving(waiting(toy_router, release), classifier_timeout_ms=50, classifier_workers=1)
    try:
        with ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda _: client.post("/v1/route", json=BODY), range(3)))
        assert [item.status_code for item in answers] == [200] * 3
        assert {item.json()["fallback_reason"] for item in answers} == {"the classifier took longer than 50 ms"}
    finally:
        release.set()


def test_concurrent_requests_get_their_own_answers(client: TestClient) -> None:
    texts = [f"request number {number}" for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(
            pool.map(lambda text: client.post("/v1/route", json={"messages": [{"role": "user", "content": text}]}).json(), texts)
        )
    assert [answer["classified"]["text"] for answer in answers] == texts


def test_one_record_a_decision_without_the_prompt(client: TestClient, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="interlock.decision"):
        answer = client.post("/v1/route", json=BODY).json()
    records = [record for record in caplog.records if record.name == "interlock.decision"]
    assert len(records) == 1
    assert records[0].fields["model"] == answer["model"]
    line = JsonFormatter().format(records[0])
    assert '"event": "decision"' in line
    assert "SECRET-WORD" not in line


def test_prompt_is_logged_only_on_request(serving, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="interlock.decision"):
        serving(log_prompts=True).post("/v1/route", json=BODY)
    assert "SECRET-WORD" in caplog.records[-1].fields["text"]


def test_models_are_listed_like_openai_does(client: TestClient) -> None:
    body = client.get("/v1/models").json()
    assert body["object"] == "list"
    assert [item["id"] for item in body["data"]] == ["auto", "small", "middle", "large"]
    large = body["data"][-1]
    assert (large["object"], large["owned_by"], large["virtual"]) == ("model", "zenith", False)
    assert large["prices"]["output_per_mtok"] == 20.0
    assert large["capability"]["reasoning"] == pytest.approx(0.9)


def test_ready_only_when_loaded(toy, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()

    def load(settings: Settings):
        go.wait(10)
        return toy.load(), "toy"

    monkeypatch.setattr("serve.app.load", load)
    with TestClient(create_app(Settings())) as client:
        waiting = client.get("/readyz")
        assert (waiting.status_code, waiting.headers["retry-after"]) == (503, "1")
        assert waiting.json()["detail"] == "the router is still loading"
        assert client.get("/healthz").json() == {"status": "ok"}
        assert client.post("/v1/route", json=BODY).status_code == 503
        go.set()
        deadline = time.monotonic() + 10
        while client.get("/readyz").status_code != 200 and time.monotonic() < deadline:
            time.sleep(0.02)
        assert client.get("/readyz").json()["router"] == "toy"


def test_load_error_is_told(tmp_path) -> None:
    errors: list[Exception] = []
    with TestClient(create_app(Settings(router=tmp_path / "none"), on_load_error=errors.append)) as client:
        deadline = time.monotonic() + 10
        while not errors and time.monotonic() < deadline:
            time.sleep(0.02)
        assert isinstance(errors[0], RouterError)
        assert "no router artefact in" in client.get("/readyz").json()["detail"]


def test_openapi_matches_what_is_sent(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    assert set(schema["paths"]) == {"/v1/route", "/v1/models", "/healthz", "/readyz"}
    responses = schema["paths"]["/v1/route"]["post"]["responses"]
    assert set(responses) == {"200", "400", "413", "415", "422", "503"}
    assert list(responses["422"]["content"]) == ["application/problem+json"]
    examples = schema["paths"]["/v1/route"]["post"]["requestBody"]["content"]["application/json"]["examples"]
    assert len(examples) >= 6
    assert client.get("/openapi.json").json() == schema


def test_requests_and_answers_follow_the_published_schema(client: TestClient) -> None:
    schema = client.get("/openapi.json").json()
    operation = schema["paths"]["/v1/route"]["post"]

    def check(value: object, content: dict) -> None:
        Draft202012Validator({**content["schema"], "components": schema["components"]}).validate(value)

    for example in REQUEST_EXAMPLES.values():
        check(example["value"], operation["requestBody"]["content"]["application/json"])
        check(client.post("/v1/route", json=example["value"]).json(), operation["responses"]["200"]["content"]["application/json"])
    problem = operation["responses"]["422"]["content"]["application/problem+json"]
    check(client.post("/v1/route", json={"messages": []}).json(), problem)
    check(client.post("/v1/route", json={"messages": [{"role": "user", "content": "word " * 300_000}]}).json(), problem)
    for path in ("/v1/models", "/healthz", "/readyz"):
        content = schema["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]
        check(client.get(path).json(), content)


def test_settings_come_from_the_environment_and_options_win(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_PORT", "9000")
    monkeypatch.setenv("INTERLOCK_DENY", "small, middle")
    settings = read_settings(port=None, host="0.0.0.0")
    assert (settings.port, settings.host, settings.deny) == (9000, "0.0.0.0", ("small", "middle"))
    assert read_settings(port=1).port == 1


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("PORT", "abc", "INTERLOCK_PORT is 'abc'"),
        ("PORT", "tcp://10.0.0.1:80", "enableServiceLinks"),
        ("SHORTFALL_THRESHOLD", "nan", "INTERLOCK_SHORTFALL_THRESHOLD is 'nan'"),
        ("LOG_FORMAT", "xml", "'json' or 'text'"),
        ("MAX_BODY_BYTES", "3", "greater than or equal to 1024"),
    ],
)
def test_unusable_setting_is_one_line(monkeypatch: pytest.MonkeyPatch, variable: str, value: str, message: str) -> None:
    monkeypatch.setenv(f"INTERLOCK_{variable}", value)
    with pytest.raises(RouterError, match=r"^[^\n]+$") as caught:
        read_settings()
    assert message in str(caught.value)


def test_unusable_option_is_named_as_typed() -> None:
    with pytest.raises(RouterError, match="--classifier-workers is 0"):
        read_settings(classifier_workers=0)
