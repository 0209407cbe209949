"""Structured records on stderr: one JSON object a line, and one record a decision."""

from __future__ import annotations

import json
import logging
import time
from typing import Any, Final

from serve.settings import Settings
from serve.wire import RouteAnswer

decisions = logging.getLogger("interlock.decision")
_COPIED: Final = (
    "model", "decision", "reason", "requirements", "confidence", "fallback_reason", "language", "family", "router", "latency_ms",
)  # fmt: skip


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON; ``extra={"fields": {...}}`` goes in at the top level."""

    def format(self, record: logging.LogRecord) -> str:
        """Render time (UTC), level, logger, event and fields."""
        seconds = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        line: dict[str, Any] = {
            "time": f"{seconds}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)


class TextFormatter(logging.Formatter):
    """A record as one line for people."""

    def format(self, record: logging.LogRecord) -> str:
        """Render the event, then its fields as ``key=value``."""
        fields = "".join(f" {key}={value}" for key, value in getattr(record, "fields", {}).items())
        return super().format(record) + fields


def configure(settings: Settings) -> None:
    """Send all records of the process to stderr in the chosen format."""
    handler = logging.StreamHandler()
    plain = TextFormatter("%(asctime)s %(levelname)s %(name)s %(message)s")
    handler.setFormatter(JsonFormatter() if settings.log_format == "json" else plain)
    logging.basicConfig(level=settings.log_level.upper(), handlers=[handler], force=True)


def log_decision(answer: RouteAnswer, *, messages: int, tools: int, prompt: bool) -> None:
    """Write the one record of a decision; the text of the prompt only if asked for."""
    chosen = next(item for item in answer["candidates"] if item["model"] == answer["model"])
    fields: dict[str, Any] = {key: answer[key] for key in _COPIED}
    fields |= {
        "boundary": answer["boundary"]["kind"],
        "shortfall": chosen["shortfall"],
        "expected_cost_usd": chosen["expected_cost_usd"],
        "gates": {item["model"]: item["gates"] for item in answer["candidates"] if item["gates"]},
        "messages": messages,
        "tools": tools,
        "chars_read": sum(answer["classified"]["kept"].values()),
        "chars_cut": sum(answer["classified"]["cut"].values()),
    }
    if prompt:
        fields["text"] = answer["classified"]["text"]
    decisions.info("decision", extra={"fields": fields})
