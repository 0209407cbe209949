"""Every error as a problem document (RFC 9457, ``application/problem+json``)."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from router.errors import RouterError

MEDIA_TYPE = "application/problem+json"
_URN = "urn:interlock:problem:"
_MOST_ERRORS = 8
log = logging.getLogger("interlock.serve")


class FieldError(BaseModel):
    """One refused value: where it stands (JSON pointer, RFC 6901) and what was allowed."""

    pointer: str = Field(examples=["#/messages/0/role"])
    detail: str


class Problem(BaseModel):
    """What went wrong, for programs (``type``, ``status``) and for people (``title``, ``detail``)."""

    type: str = Field(examples=[f"{_URN}invalid-request"])
    title: str
    status: int
    detail: str
    errors: list[FieldError] | None = None


class ProblemError(Exception):
    """Ends a request with a problem document."""

    def __init__(self, status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.kind = kind
        self.detail = detail
        self.headers = headers


class ProblemResponse(JSONResponse):
    """A problem document as a response."""

    media_type = MEDIA_TYPE


def problem_response(
    status: int, kind: str, detail: str, headers: Mapping[str, str] | None = None, errors: Sequence[FieldError] = ()
) -> ProblemResponse:
    """Build the response; the title follows from the kind."""
    body = {"type": _URN + kind, "title": kind.replace("-", " ").capitalize(), "status": status, "detail": detail}
    if errors:
        body["errors"] = [error.model_dump() for error in errors]
    return ProblemResponse(_sendable(body), status, dict(headers or {}))


def install(app: FastAPI) -> None:
    """Register a handler for every error that can end a request."""
    app.add_exception_handler(ProblemError, _on_problem)
    app.add_exception_handler(RouterError, _on_router_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)


async def _on_problem(_: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, ProblemError)
    return problem_response(error.status, error.kind, error.detail, error.headers)


async def _on_router_error(_: Request, error: Exception) -> ProblemResponse:
    return problem_response(422, "invalid-request", str(error))


async def _on_http_error(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, HTTPException)
    kind = HTTPStatus(error.status_code).phrase.lower().replace(" ", "-")
    details = {
        400: "the body cannot be read: UTF-8 encoded JSON of moderate depth was expected",
        404: f"there is nothing at {request.url.path}: see /openapi.json for what there is",
        405: f"{request.method} is not allowed on {request.url.path}",
    }
    return problem_response(error.status_code, kind, details.get(error.status_code, str(error.detail)), error.headers)


async def _on_bug(request: Request, error: Exception) -> ProblemResponse:
    log.error("unhandled error", exc_info=error, extra={"fields": {"path": request.url.path}})
    return problem_response(500, "internal-error", "this is a bug of the service; its log has the details")


async def _on_invalid_request(request: Request, error: Exception) -> ProblemResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if found and found[0]["type"] == "json_invalid":
        reason = str(found[0].get("ctx", {}).get("error", "not JSON"))
        return problem_response(400, "invalid-json", f"the body is not JSON at character {found[0]['loc'][-1]}: {reason}")
    if isinstance(error.body, bytes):
        sent = request.headers.get("content-type") or "none"
        return problem_response(415, "unsupported-media-type", f"content-type is {sent}: send application/json")
    errors = [FieldError(pointer=_pointer(item, error.body), detail=str(item["msg"])) for item in _most_specific(found)]
    detail = "; ".join(f"{item.pointer.removeprefix('#/') or 'body'}: {item.detail}" for item in errors[:_MOST_ERRORS])
    return problem_response(422, "invalid-request", detail, errors=errors[:_MOST_ERRORS])


def _most_specific(found: Sequence[Any]) -> list[Any]:
    """Of the alternatives of a union, those that got furthest into the value; the others say only that another type was allowed too."""
    deepest: dict[Any, int] = {}
    for item in found:
        key = item["loc"][:4]
        deepest[key] = max(deepest.get(key, 0), len(item["loc"]))
    return [item for item in found if len(item["loc"]) == deepest[item["loc"][:4]]]


def _pointer(item: Any, body: Any) -> str:
    """Keep the steps that exist in the body; the rest are names of alternatives in the schema."""
    steps: list[str] = []
    for step in item["loc"][1:]:
        missing = item["type"] == "missing" and step == item["loc"][-1]
        if missing or (isinstance(body, dict) and step in body):
            body = None if missing else body[step]
        elif isinstance(body, list) and isinstance(step, int) and 0 <= step < len(body):
            body = body[step]
        else:
            continue
        steps.append(str(step).replace("~", "~0").replace("/", "~1"))
    return "#/" + "/".join(steps)


def _sendable(value: Any) -> Any:
    """The same data with lone surrogates replaced: they can be received in JSON but not sent in UTF-8."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, dict):
        return {key: _sendable(item) for key, item in value.items()}
    return [_sendable(item) for item in value] if isinstance(value, list) else value
