"""``interlock serve``: the decision service."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def serve(
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on, 0 for a free one. Default: 8080.")] = None,
    router: Annotated[Path | None, typer.Option(help="Folder of a router artefact. Default: the shipped one.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="Model catalog, YAML. Default: the shipped one.")] = None,
    shortfall_threshold: Annotated[
        float | None, typer.Option(help="tau: larger saves more, 0 meets every requirement. Default: the artefact's.")
    ] = None,
    allow: Annotated[str | None, typer.Option(help="Models that may be chosen, separated by commas. Default: all.")] = None,
    deny: Annotated[str | None, typer.Option(help="Models that may not be chosen, separated by commas.")] = None,
    default_model: Annotated[str | None, typer.Option(help="Answer when the classifier fails. Default: the most capable model.")] = None,
    classifier_timeout_ms: Annotated[int | None, typer.Option(help="After this the default model answers. Default: 2000.")] = None,
    classifier_workers: Annotated[int | None, typer.Option(help="Conversations classified at the same time. Default: 2.")] = None,
    log_format: Annotated[str | None, typer.Option(help="json or text. Default: json.")] = None,
) -> None:
    """Answer POST /v1/route: which model a conversation needs, and why.

    Also GET /v1/models, /healthz, /readyz, and the interface with examples at /docs. Every option, and more (limits of body, messages and
    tokens), can be given in the environment as INTERLOCK_<NAME>, e.g. INTERLOCK_PORT; an option wins. SIGINT and SIGTERM let running
    requests finish.
    """
    from serve.run import run
    from serve.settings import read_settings

    run(
        read_settings(
            host=host,
            port=port,
            router=router,
            catalog=catalog,
            shortfall_threshold=shortfall_threshold,
            allow=allow,
            deny=deny,
            default_model=default_model,
            classifier_timeout_ms=classifier_timeout_ms,
            classifier_workers=classifier_workers,
            log_format=log_format,
        )
    )
