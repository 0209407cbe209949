"""Thin handlers."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import APIRouter, Body
from fastapi.responses import JSONResponse

from serve.decide import Decider
from serve.deps import Loaded
from serve.examples import REQUEST_EXAMPLES
from serve.problems import Problem
from serve.schemas import Health, Model, ModelList, Prices, Ready, RouteRequest, RouteResponse

api = APIRouter()
_NOT_READY: dict[int | str, dict[str, Any]] = {
    503: {"model": Problem, "description": "The router is still loading, or could not be loaded."}
}
_REFUSED: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is not JSON."},
    413: {"model": Problem, "description": "The body, the messages or the tokens are more than the service takes."},
    415: {"model": Problem, "description": "The body is not announced as JSON."},
    422: {"model": Problem, "description": "A field is not as described, or no model may take the conversation."},
}


@api.post("/v1/route", tags=["routing"], operation_id="route", response_model=RouteResponse, responses=_REFUSED | _NOT_READY)
async def route(request: Annotated[RouteRequest, Body(openapi_examples=REQUEST_EXAMPLES)], decider: Loaded) -> JSONResponse:
    """Say which model the next turn of a conversation needs, and why. No model is called."""
    body = {name: getattr(request, name) for name in RouteRequest.model_fields}
    body["messages"] = [
        # Tool calls are passed on as they came: dumping them would refuse deep nesting.
        {**message.model_dump(exclude={"tool_calls"}, exclude_none=True), "tool_calls": message.tool_calls}
        for message in request.messages
    ]
    return JSONResponse(await decider.decide(body))


@api.get("/v1/models", tags=["routing"], operation_id="models", responses=_NOT_READY)
async def models(decider: Loaded) -> ModelList:
    """The models that can be chosen, and `auto`, which stands for the choice."""
    return ModelList(data=[Model(id="auto", owned_by="interlock", virtual=True), *_models(decider)])


@api.get("/healthz", tags=["operation"], operation_id="healthz")
async def healthz() -> Health:
    """The process is alive. Says nothing about the router."""
    return Health()


@api.get("/readyz", tags=["operation"], operation_id="readyz", responses=_NOT_READY)
async def readyz(decider: Loaded) -> Ready:
    """The router is loaded and decides."""
    spec = decider.router.encoder.spec
    return Ready(router=decider.artifact, encoder=f"{spec.kind} {spec.name} {spec.revision}", models=len(decider.router.catalog.models))


def _models(decider: Decider) -> list[Model]:
    router = decider.router
    names = router.artifact.capabilities
    capability = router.catalog.capability(names, router.artifact.bands).round(6)
    return [
        Model(
            id=profile.name,
            owned_by=profile.provider,
            context_window_tokens=profile.context_window_tokens,
            max_output_tokens=profile.max_output_tokens,
            modalities=sorted(profile.modalities),
            tools=profile.tools,
            prices=Prices(**asdict(profile.prices)),
            capability=dict(zip(names, row.tolist(), strict=True)),
        )
        for profile, row in zip(router.catalog.models, capability, strict=True)
    ]
