"""``interlock route``: one decision, for people or as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from serve.wire import RouteAnswer


def route(
    prompt: Annotated[str | None, typer.Argument(help="What the user writes. Leave it out with --file.", show_default=False)] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="A conversation: the JSON body of POST /v1/route, or a list of messages. '-' reads stdin."),
    ] = None,
    lang: Annotated[str | None, typer.Option(help="Language of the prompt, e.g. sw or zh-Hant. Default: found by itself.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print exactly what the service would answer.")] = False,
    router: Annotated[Path | None, typer.Option(help="Folder of a router artefact. Default: the shipped one.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="Model catalog, YAML. Default: the shipped one.")] = None,
    threshold: Annotated[float | None, typer.Option(help="Shortfall threshold tau. Default: the artefact's.")] = None,
) -> None:
    """Say which model a prompt or a conversation needs, and why. No model is called."""
    body = _body(prompt, file)
    if lang is not None:
        body["language"] = lang
    if threshold is not None:
        body["shortfall_threshold"] = threshold
    answer = decide(body, router, catalog)
    if as_json:
        typer.echo(json.dumps(answer, ensure_ascii=False, indent=2))
        return
    from rich.console import Console

    from interlock.show import decision_view

    Console().print(decision_view(answer))


def decide(body: dict[str, Any], router: Path | None, catalog: Path | None) -> RouteAnswer:
    """The answer the service would give to a request body, computed in this process."""
    import time

    from router.files.artifacts import load_router
    from serve.options import narrowed
    from serve.wire import answer_of, conversation_from

    conversation = conversation_from(body)
    loaded, artifact = load_router(router, catalog)
    chosen = narrowed(loaded, threshold=body.get("shortfall_threshold"), allow=body.get("allow") or (), deny=body.get("deny") or ())
    started = time.perf_counter()
    decision = chosen.route(conversation)
    return answer_of(decision, artifact, (time.perf_counter() - started) * 1e3)


def _body(prompt: str | None, file: Path | None) -> dict[str, Any]:
    from router.errors import InvalidInput

    if (prompt is None) == (file is None):
        raise InvalidInput("give either a prompt or --file, e.g.: interlock route 'Translate this to Thai: ...'")
    if file is None:
        # Bytes of another encoding arrive as lone surrogates.
        text = str(prompt).encode("utf-8", "surrogateescape").decode("utf-8", "replace")
        return {"messages": [{"role": "user", "content": text}]}
    name = "stdin" if str(file) == "-" else str(file)
    try:
        raw = sys.stdin.buffer.read() if name == "stdin" else file.read_bytes()
        body = json.loads(raw)
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{name} is not JSON: {error or 'nested too deeply'}") from None
    if isinstance(body, list):
        return {"messages": body}
    if not isinstance(body, dict):
        raise InvalidInput(f"{name} holds a {type(body).__name__}: an object with messages, or a list of messages, was expected")
    return body
