"""The application factory: ``interlock serve`` runs it, and so does ``uvicorn serve.app:create_app --factory``."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import anyio.to_thread
from fastapi import FastAPI
from threadpoolctl import threadpool_limits

from router.files.artifacts import load_router
from router.route import Router
from router.types import Conversation
from serve import problems
from serve.decide import Decider
from serve.deps import Service
from serve.limits import BodyLimit
from serve.options import with_policy
from serve.routes import api
from serve.settings import Settings, read_settings

log = logging.getLogger("interlock.serve")


def create_app(
    settings: Settings | None = None, *, router: Router | None = None, on_load_error: Callable[[Exception], None] | None = None
) -> FastAPI:
    """Build the service.

    Parameters
    ----------
    settings
        By default read from the environment.
    router
        A ready router; by default the one the settings name is loaded in the background, and ``/readyz`` tells when it is there.
    on_load_error
        Called when that fails. Without it the service stays up, not ready, and says why.

    Raises
    ------
    InvalidInput
        If a setting in the environment is not usable.
    """
    chosen = settings if settings is not None else read_settings()
    service = Service()

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if router is not None:
            service.decider = Decider(router, "in-memory", chosen)
        loading = asyncio.create_task(_load(service, chosen, on_load_error)) if router is None else None
        yield
        if loading is not None:
            loading.cancel()
        if service.decider is not None:
            service.decider.close()

    app = FastAPI(
        title="Interlock",
        summary="Says which model a conversation needs, and why.",
        version=product_version(),
        lifespan=lifespan,
        openapi_tags=[{"name": "routing", "description": "Decisions"}, {"name": "operation", "description": "Probes"}],
    )
    app.state.service = service
    app.include_router(api)
    problems.install(app)
    app.add_middleware(BodyLimit, max_body_bytes=chosen.max_body_bytes)
    _announce_problems(app)
    return app


def product_version() -> str:
    """Version of the installed distribution."""
    try:
        return version("interlock")
    except PackageNotFoundError:
        return "0+unknown"


def load(settings: Settings) -> tuple[Router, str]:
    """Load artefact, encoder and catalog, and decide once so that the first caller does not wait for caches to fill.

    Raises
    ------
    RouterError
        If one of them cannot be used, or the policy names what is not there.
    """
    # Matrices of one text are too small to share out: more threads cost several times the processor time and save none.
    threadpool_limits(settings.encoder_threads)
    router, artifact = load_router(settings.router, settings.catalog, threads=settings.encoder_threads)
    policy = replace(
        router.policy,
        shortfall_threshold=router.policy.shortfall_threshold if settings.shortfall_threshold is None else settings.shortfall_threshold,
        family_thresholds=router.policy.family_thresholds if settings.shortfall_threshold is None else {},
        allow=frozenset(settings.allow),
        deny=frozenset(settings.deny),
        default_model=settings.default_model,
        expected_output_tokens=settings.expected_output_tokens,
    )
    router = with_policy(router, policy)
    router.route(Conversation.from_text("Hello, 你好"))
    return router, artifact


async def _load(service: Service, settings: Settings, on_error: Callable[[Exception], None] | None) -> None:
    try:
        router, artifact = await anyio.to_thread.run_sync(load, settings, abandon_on_cancel=True)
    except Exception as error:  # whatever it is, the service must say so instead of loading for ever
        service.error = str(error)
        if on_error is None:
            log.error("router not loaded", exc_info=error)
        else:
            on_error(error)
        return
    service.decider = Decider(router, artifact, settings)
    log.info("ready", extra={"fields": {"router": artifact, "encoder": router.encoder.spec.kind, "models": list(router.catalog.names)}})


def _announce_problems(app: FastAPI) -> None:
    """Let OpenAPI name the media type that errors really have."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        schema = plain()
        for operations in schema["paths"].values():
            for operation in operations.values():
                for status, response in operation["responses"].items():
                    content = response.get("content", {})
                    if status.startswith(("4", "5")) and "application/json" in content:
                        content[problems.MEDIA_TYPE] = content.pop("application/json")
        return schema

    app.openapi = openapi  # type: ignore[method-assign]
