"""Refuses a request body that is too large before anything parses it, whether or not its length was announced."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from serve.problems import ProblemResponse, problem_response


class BodyLimit:
    """ASGI middleware: reads the body up to the limit, then hands it on as one piece."""

    def __init__(self, app: ASGIApp, max_body_bytes: int) -> None:
        self.app = app
        self.max_body_bytes = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 413 for a body over the limit, by its announced length if there is one."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = next((value for name, value in scope["headers"] if name == b"content-length"), b"")
        if announced.isdigit() and int(announced) > self.max_body_bytes:
            await self._refuse()(scope, receive, send)
            return
        body = await self._read(receive)
        if body is None:
            await self._refuse()(scope, receive, send)
            return
        await self.app(scope, _replay(body, receive), send)

    async def _read(self, receive: Receive) -> list[Message] | None:
        """The messages that make up the body, or None if they are too many bytes."""
        messages: list[Message] = []
        size = 0
        while True:
            message = await receive()
            messages.append(message)
            size += len(message.get("body", b""))
            if size > self.max_body_bytes:
                return None
            if message["type"] != "http.request" or not message.get("more_body", False):
                return messages

    def _refuse(self) -> ProblemResponse:
        detail = f"the body is larger than {self.max_body_bytes} bytes: send less, or raise INTERLOCK_MAX_BODY_BYTES"
        # The rest of the body is not read, so the connection cannot be used again.
        return problem_response(413, "content-too-large", detail, {"connection": "close"})


def _replay(messages: list[Message], receive: Receive) -> Receive:
    waiting = iter(messages)

    async def replay() -> Message:
        message = next(waiting, None)
        return await receive() if message is None else message

    return replay
