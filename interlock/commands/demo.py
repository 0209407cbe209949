"""``interlock demo``: the whole path, from the embedded sample to explained decisions over HTTP."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_READY_SECONDS = 300.0
_STOP_SECONDS = 60.0
_BLOCKS = "▁▂▃▄▅▆▇█"


def demo(
    output: Annotated[Path, typer.Option(help="Folder for what the demo makes.")] = Path("runs/demo"),
    data: Annotated[Path, typer.Option(help="The embedded sample.")] = Path("data/sample"),
    catalog: Annotated[Path, typer.Option(help="Models to choose from.")] = Path("data/catalog.yaml"),
    router: Annotated[Path | None, typer.Option(help="Show this artefact instead of training one.")] = None,
) -> None:
    """Train on the embedded sample, evaluate, serve, ask in a dozen languages, explain, stop. Run it inside a checkout."""
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 130)
    started = time.perf_counter()
    made: list[tuple[str, Path]] = []
    if router is None:
        router = _train(console, data, output, made)
    log = output / "serve.log"
    made.append(("service log", log))
    with _service(console, router, catalog, log) as url:
        _ask_all(console, url)
    console.rule("made")
    for name, path in made:
        console.print(f"{name:12} {path}", highlight=False)
    console.print(f"whole demo: {time.perf_counter() - started:.0f} s", style="bold")


def _train(console: Console, data: Path, output: Path, made: list[tuple[str, Path]]) -> Path:
    from router.errors import InvalidInput

    if not data.is_dir():
        raise InvalidInput(f"no sample in {data}: run the demo inside a checkout of the repository, or give --router to skip training")
    router, report = output / "router", output / "report"
    _step(console, "train", "--data", str(data), "--output", str(router))
    made.append(("router", router))
    prices = str(data / "catalog.yaml")
    _step(console, "evaluate", "--data", str(data), "--cv", "5", "--catalog", prices, "--output", str(report))
    made.append(("report", report))
    return router


def _step(console: Console, *arguments: str) -> None:
    """Run one of our own commands as a user would, with its output shown as it comes."""
    from router.errors import RouterError

    console.rule(f"interlock {' '.join(arguments)}")
    started = time.perf_counter()
    code = subprocess.run(_command(*arguments), check=False).returncode  # noqa: S603 - our own command
    if code != 0:
        raise RouterError(f"interlock {arguments[0]} ended with exit code {code}: see above")
    console.print(f"{arguments[0]}: {time.perf_counter() - started:.0f} s", style="dim")


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "interlock.cli", *arguments]


@contextmanager
def _service(console: Console, router: Path, catalog: Path, log: Path) -> Iterator[str]:
    """The service as a process of its own, ready; stopped in the end with the signal an operator would send."""
    from router.errors import RouterError

    port = _free_port()
    arguments = ("serve", "--port", str(port), "--router", str(router), "--catalog", str(catalog))
    console.rule(f"interlock {' '.join(arguments)}")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as file:
        process = subprocess.Popen(_command(*arguments), stderr=file)  # noqa: S603 - our own command
        try:
            url = f"http://127.0.0.1:{port}"
            _wait_until_ready(process, url, log)
            console.print(f"ready on {url}", style="dim")
            yield url
            process.terminate()
            code = process.wait(_STOP_SECONDS)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if code != 0:
        raise RouterError(f"the service ended with exit code {code}: see {log}")
    console.print("service stopped", style="dim")


def _free_port() -> int:
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    import httpx

    from router.errors import RouterError

    deadline = time.monotonic() + _READY_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            lines = log.read_text(errors="replace").strip().splitlines() or ["it said nothing"]
            raise RouterError(f"the service did not start: {lines[-1].removeprefix('error: ')}")
        try:
            if httpx.get(f"{url}/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.1)
    raise RouterError(f"the service was not ready within {_READY_SECONDS:.0f} s: see {log}")


def _ask_all(console: Console, url: str) -> None:
    """Ask every conversation and print the decisions: all as a table, one in full."""
    import httpx

    from interlock.demo_conversations import CONVERSATIONS
    from interlock.show import decision_view
    from router.errors import RouterError

    answers: list[tuple[str, Any]] = []
    with httpx.Client(base_url=url, timeout=30) as client:
        for title, body in CONVERSATIONS:
            response = client.post("/v1/route", json=body)
            if response.status_code != httpx.codes.OK:
                raise RouterError(f"the service refused {title!r}: {response.json()['detail']}")
            answers.append((title, response.json()))
    console.print(_decisions_table(answers))
    languages = {answer["language"] for _, answer in answers}
    console.print(f"{len(answers)} conversations, {len(languages)} languages: {', '.join(sorted(languages))}")
    title, answer = max(answers, key=lambda item: max(item[1]["requirements"].values()))
    console.rule(f"the most demanding one in full: {title}")
    console.print(decision_view(answer))


def _decisions_table(answers: list[tuple[str, Any]]) -> Table:
    from rich.table import Table

    capabilities = list(answers[0][1]["requirements"])
    table = Table(header_style="bold", caption=f"needs = {', '.join(capabilities)}, each from 0 (▁) to 1 (█)")
    table.add_column("conversation", max_width=20)
    table.add_column("read as", no_wrap=True)
    table.add_column("needs", no_wrap=True)
    table.add_column("model", style="bold", no_wrap=True)
    table.add_column("decision", no_wrap=True)
    table.add_column("conf.", justify="right", no_wrap=True)
    table.add_column("ms", justify="right", no_wrap=True)
    table.add_column("why")
    for title, answer in answers:
        table.add_row(
            title,
            answer["language"],
            " ".join(_block(value) for value in answer["requirements"].values()),
            answer["model"],
            answer["decision"],
            f"{answer['confidence']:.0%}",
            f"{answer['latency_ms']:.1f}",
            _short_why(answer),
        )
    return table


def _short_why(answer: Any) -> str:
    """The nearest model that was too weak for the price, and what it lacks; or why nothing could change."""
    if answer["boundary"]["kind"] is None or answer["fallback_reason"]:
        return str(answer["reason"])
    chosen = next(item for item in answer["candidates"] if item["model"] == answer["model"])
    weaker = [
        item
        for item in answer["candidates"]
        if item["expected_cost_usd"] < chosen["expected_cost_usd"] and not item["eligible"] and not item["gates"]
    ]
    if not weaker:
        return "the cheapest there is"
    nearest = min(weaker, key=lambda item: item["shortfall"])
    capability, lack = max(nearest["shortfall_by_capability"].items(), key=lambda item: item[1])
    return f"{nearest['model']} is cheaper but short of {capability} by {lack:.2f}"


def _block(value: float) -> str:
    return _BLOCKS[min(len(_BLOCKS) - 1, int(value * len(_BLOCKS)))]
