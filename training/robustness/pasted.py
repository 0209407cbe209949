"""What people paste beside their words: a log of 50 kB, the history of a mail."""

from __future__ import annotations

import random
import re
from functools import partial
from typing import Final

from router.languages import primary_subtag
from training.robustness.transformation import Transformation, on_last_turn

LOG_CHARS: Final = 50_000
# A request about a log or a failure of its own: another log beside it would be part of the work.
_OWN_LOG: Final = re.compile(r"ERROR|WARN|Traceback|Exception|\d\d:\d\d:\d\d")
_LEVELS: Final = ("INFO", "INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR")
_EVENTS: Final = (
    "batch {n} written in {m} ms", "connection from 10.0.{m}.{k} accepted", "cache miss for key order:{n}",
    "retrying request {n} ({k} of 5)",
    "slow query: {n} ms, rows={m}", "worker {k} picked up job {n}", "health check passed", "token of session {n} refreshed",
    "payment {n} could not be captured: gateway timeout", "queue depth {m}, oldest {k} s",
)  # fmt: skip
_MODULES: Final = ("billing.scheduler", "api.gateway", "store.cache", "auth.session", "worker.pool")
_TRACE: Final = (
    "Traceback (most recent call last):\n"
    '  File "/srv/app/worker/pool.py", line {n}, in run\n    result = job.execute()\n'
    '  File "/srv/app/billing/scheduler.py", line {m}, in execute\n    response = self.client.capture(self.payment)\n'
    "TimeoutError: gateway did not answer within {k} s"
)
_HEADERS: Final = {
    "en": "On Tue, 14 Oct 2025 at 09:12, Dana Whitfield <dana@example.org> wrote:",
    "de": "Am Di., 14. Okt. 2025 um 09:12 Uhr schrieb Dana Whitfield <dana@example.org>:",
    "fr": "Le mar. 14 oct. 2025 à 09:12, Dana Whitfield <dana@example.org> a écrit :",
    "es": "El mar, 14 oct 2025 a las 9:12, Dana Whitfield (<dana@example.org>) escribió:",
    "ru": "вт, 14 окт. 2025 г. в 09:12, Dana Whitfield <dana@example.org>:",
    "zh": "Dana Whitfield <dana@example.org> 于2025年10月14日周二 09:12写道：",
    "ja": "2025年10月14日(火) 9:12 Dana Whitfield <dana@example.org>:",
    "tr": "Dana Whitfield <dana@example.org>, 14 Eki 2025 Sal, 09:12 tarihinde şunu yazdı:",
}
_MAIL: Final = (
    "Hi all,",
    "",
    "thanks for the quick call this morning. As agreed, we move the release to Thursday and keep the old export "
    "until the end of the month.",
    "Ravi checks the numbers for March, and I will send the summary to the finance team before noon.",
    "Could someone look at the open points in the shared document? There are three left, none of them urgent.",
    "",
    "Best regards",
    "Dana",
)
_EARLIER: Final = (
    "On Mon, 13 Oct 2025 at 17:40, Ravi Menon <ravi@example.org> wrote:",
    "I can take the export. Who has the list of customers?",
)


def _application(rng: random.Random, at: int) -> str:
    event = rng.choice(_EVENTS).format(n=rng.randrange(1000, 99999), m=rng.randrange(1, 255), k=rng.randrange(1, 60))
    stamp = f"2026-02-14T{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02}.{rng.randrange(1000):03}Z"
    return f"{stamp} {rng.choice(_LEVELS):5} [{rng.choice(_MODULES)}] {event}"


def _access(rng: random.Random, at: int) -> str:
    stamp = f"14/Feb/2026:{at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02} +0000"
    path = rng.choice(("/api/orders", "/api/orders/{n}", "/static/app.js", "/login", "/healthz")).format(n=rng.randrange(9999))
    return (
        f'10.0.{rng.randrange(9)}.{rng.randrange(254)} - - [{stamp}] "GET {path} HTTP/1.1" '
        f"{rng.choice((200, 200, 200, 304, 404, 502))} {rng.randrange(90000)}"
    )


def _system(rng: random.Random, at: int) -> str:
    event = rng.choice(_EVENTS).format(n=rng.randrange(1000, 99999), m=rng.randrange(1, 255), k=rng.randrange(1, 60))
    return (
        f"Feb 14 {at // 3600 % 24:02}:{at // 60 % 60:02}:{at % 60:02} host-{rng.randrange(4)} "
        f"{rng.choice(_MODULES)}[{rng.randrange(300, 9000)}]: {event}"
    )


_FORMATS: Final = (_application, _access, _system)


def log(rng: random.Random, characters: int = LOG_CHARS) -> str:
    """A log in one of three formats, with a trace of a failure in it now and then."""
    line = rng.choice(_FORMATS)
    lines: list[str] = []
    size, at = 0, rng.randrange(86_400)
    while size < characters:
        at += rng.randrange(3)
        lines.append(line(rng, at))
        if line is not _access and rng.random() < 0.01:
            lines.append(_TRACE.format(n=rng.randrange(20, 400), m=rng.randrange(20, 400), k=rng.randrange(5, 60)))
        size += len(lines[-1]) + 1
    return "\n".join(lines)


def _log_before(fenced: bool, text: str, language: str, rng: random.Random) -> str:
    return text if _OWN_LOG.search(text) else f"{_fence(log(rng), fenced)}\n\n{text.strip()}"


def _log_after(fenced: bool, text: str, language: str, rng: random.Random) -> str:
    return text if _OWN_LOG.search(text) else f"{text.strip()}\n\n{_fence(log(rng), fenced)}"


def _fence(text: str, fenced: bool) -> str:
    return f"```\n{text}\n```" if fenced else text


def quoted_history(text: str, language: str, rng: random.Random) -> str:
    """The mail that is being answered, quoted below the request, with an earlier one inside it."""
    header = _HEADERS.get(primary_subtag(language), _HEADERS["en"])
    quoted = [f"> {line}".rstrip() for line in (*_MAIL, "")] + [f"> {_EARLIER[0]}", f">> {_EARLIER[1]}"]
    return f"{text.rstrip()}\n\n{header}\n" + "\n".join(quoted)


def original_message(text: str, language: str, rng: random.Random) -> str:
    """The same as another mail program writes it: a ruled header and no quotation marks."""
    header = "-----Original Message-----\nFrom: Dana Whitfield\nSent: Tuesday, 14 October 2025 09:12\nTo: Team\nSubject: Release"
    return f"{text.rstrip()}\n\n{header}\n\n" + "\n".join(_MAIL)


PASTED: Final = (
    Transformation("log_before", "pasted 50 kB log", on_last_turn(partial(_log_before, False)), "the same request beside an attachment"),
    Transformation("log_after", "pasted 50 kB log", on_last_turn(partial(_log_after, False)), "the same request beside an attachment"),
    Transformation(
        "log_fenced_before", "pasted 50 kB log", on_last_turn(partial(_log_before, True)), "the same request beside an attachment"
    ),
    Transformation(
        "log_fenced_after", "pasted 50 kB log", on_last_turn(partial(_log_after, True)), "the same request beside an attachment"
    ),
    Transformation("quoted_history", "mail history", on_last_turn(quoted_history), "other people's earlier words"),
    Transformation("original_message", "mail history", on_last_turn(original_message), "other people's earlier words"),
)
"""In the order of the report. A log makes debugging possible, yet the request beside it is the same: no head is excused."""
