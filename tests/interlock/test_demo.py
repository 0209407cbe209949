import pytest
from rich.console import Console

from interlock.commands import demo
from interlock.demo_conversations import CONVERSATIONS
from router.errors import InvalidInput, RouterError
from router.languages import identify_language
from serve.schemas import RouteRequest
from serve.wire import conversation_from


def test_conversations_are_valid_and_span_languages() -> None:
    for _, body in CONVERSATIONS:
        RouteRequest.model_validate(body)
    found = {identify_language(conversation_from(body).user_texts[0]) for _, body in CONVERSATIONS}
    assert {"zh", "ja", "ar", "hi", "th", "ru", "el", "ko"} <= found


def test_no_sample_is_one_line(tmp_path) -> None:
    with pytest.raises(InvalidInput, match="inside a checkout"):
        demo.demo(output=tmp_path, data=tmp_path / "none")


@pytest.mark.slow
def test_decisions_are_shown_and_the_service_stops(toy, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.setattr(demo, "_command", toy.command)
    catalog = tmp_path / "catalog.yaml"
    renamed = toy.catalog.read_text().replace("large:", "claude-sonnet-5-5:").replace("middle:", "claude-opus-5-5:")
    catalog.write_text(renamed)
    demo.demo(output=tmp_path, data=tmp_path, catalog=catalog, router=toy.artifact)
    shown = capsys.readouterr().out
    assert "service stopped" in shown
    assert f"{len(CONVERSATIONS)} conversations" in shown
    assert "retain" in shown
    assert (tmp_path / "serve.log").read_text().count('"event": "decision"') == len(CONVERSATIONS)


@pytest.mark.slow
def test_service_that_does_not_start_says_why(tmp_path, toy) -> None:
    with (
        pytest.raises(RouterError, match="did not start: no router artefact"),
        demo._service(Console(), tmp_path, toy.catalog, tmp_path / "log"),
    ):
        pass
