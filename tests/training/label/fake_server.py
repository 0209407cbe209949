"""An OpenAI-compatible server in a thread: answers by a rule, remembers what it was asked, and can misbehave."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HTML = "<!DOCTYPE html><html><body>Welcome to nginx!</body></html>"


class FakeServer:
    """``answer(request) -> text``; ``reply`` replaces the whole answer by (status, content type, body)."""

    def __init__(self, answer: Callable[[dict[str, Any]], str] = lambda request: "42") -> None:
        self.answer = answer
        self.reply: Callable[[dict[str, Any]], tuple[int, str, str] | None] = lambda request: None
        self.finish_reason: Callable[[dict[str, Any]], str] = lambda request: "stop"
        self.delay_s = 0.0
        self.requests: list[dict[str, Any]] = []
        self.busy = self.most_busy = 0
        self._lock = threading.Lock()
        fake = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status, kind, text = fake.handle(json.loads(body))
                data = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", kind)
                self.send_header("Content-Length", str(len(data)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: object) -> None:
                pass

        class Server(ThreadingHTTPServer):
            def handle_error(self, request: object, address: object) -> None:
                pass  # a client that gave up waiting

        self.http = Server(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,), daemon=True)
        self.thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http.server_port}/v1"

    def handle(self, request: dict[str, Any]) -> tuple[int, str, str]:
        with self._lock:
            self.requests.append(request)
            self.busy += 1
            self.most_busy = max(self.most_busy, self.busy)
        time.sleep(self.delay_s)
        with self._lock:
            self.busy -= 1
        return self.reply(request) or (200, "application/json", json.dumps(self.completion(request)))

    def completion(self, request: dict[str, Any]) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.answer(request)}
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason(request)}
        return {"id": "x", "object": "chat.completion", "created": 0, "model": request["model"], "choices": [choice], "usage": usage}

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()
