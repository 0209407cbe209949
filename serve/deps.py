"""What handlers depend on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, Request

from serve.decide import Decider
from serve.problems import ProblemError


@dataclass
class Service:
    """State of the process: the decider once it is loaded, or why it could not be."""

    decider: Decider | None = None
    error: str | None = None


def get_decider(request: Request) -> Decider:
    """The loaded decider, or a 503 that says what is missing."""
    service: Service = request.app.state.service
    if service.decider is None:
        detail = f"the router could not be loaded: {service.error}" if service.error else "the router is still loading"
        raise ProblemError(503, "not-ready", detail, {"retry-after": "1"})
    return service.decider


Loaded = Annotated[Decider, Depends(get_decider)]
