"""The service as users run it: a process of its own."""

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

pytestmark = pytest.mark.slow
START_SECONDS = 240  # a busy machine starts slowly


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def process(toy, *arguments: str, **environment: str) -> Iterator[subprocess.Popen]:
    command = toy.command("serve", *arguments)
    started = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **environment})
    try:
        yield started
    finally:
        if started.poll() is None:
            started.kill()
        started.communicate()


def wait_until_ready(url: str, started: subprocess.Popen) -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and started.poll() is None:
        try:
            if httpx.get(f"{url}/readyz").status_code == 200:
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(f"not ready: {started.communicate()[1] if started.poll() is not None else 'timeout'}")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_serves_and_stops_cleanly(toy, number: signal.Signals, code: int) -> None:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with process(toy, "--port", str(port), "--router", str(toy.artifact), "--catalog", str(toy.catalog)) as started:
        wait_until_ready(url, started)
        answer = httpx.post(f"{url}/v1/route", json={"messages": [{"role": "user", "content": "你好,请写一个解析器"}]})
        assert answer.json()["language"] == "zh"
        started.send_signal(number)
        _, errors = started.communicate(timeout=START_SECONDS)
    assert started.returncode == code
    assert "Traceback" not in errors
    records = [json.loads(line) for line in errors.splitlines() if line.startswith("{")]
    assert [record["model"] for record in records if record["event"] == "decision"] == [answer.json()["model"]]


def test_settings_of_the_environment_reach_the_process(toy) -> None:
    port = free_port()
    paths = {"INTERLOCK_ROUTER": str(toy.artifact), "INTERLOCK_CATALOG": str(toy.catalog), "INTERLOCK_PORT": str(port)}
    with process(toy, INTERLOCK_DENY="small,middle", **paths) as started:
        wait_until_ready(f"http://127.0.0.1:{port}", started)
        assert (
            httpx.post(f"http://127.0.0.1:{port}/v1/route", json={"messages": [{"role": "user", "content": "hi"}]}).json()["model"]
            == "large"
        )


def test_port_in_use(toy) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with process(toy, "--port", str(port)) as started:
            _, errors = started.communicate(timeout=START_SECONDS)
    assert started.returncode == 2
    assert errors == f"error: cannot listen on 127.0.0.1 port {port} (Address already in use): free it, or give another with --port\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--router", "/nowhere"], "error: no router artefact in /nowhere"),
        (["--port", "99999"], "error: --port is 99999"),
        (["--host", "no-such-host.invalid"], "error: host 'no-such-host.invalid'"),
    ],
)
def test_unusable_option_ends_with_one_line(toy, arguments: list[str], message: str) -> None:
    with process(toy, *arguments, "--port", "0") if "--port" not in arguments else process(toy, *arguments) as started:
        _, errors = started.communicate(timeout=START_SECONDS)
    assert started.returncode == 2
    assert errors.splitlines()[-1].startswith(message)
    assert "Traceback" not in errors


def test_unknown_model_in_the_policy_stops_the_start(toy) -> None:
    options = ["--router", str(toy.artifact), "--catalog", str(toy.catalog), "--default-model", "larg", "--port", "0"]
    with process(toy, *options) as started:
        _, errors = started.communicate(timeout=START_SECONDS)
    assert (started.returncode, "did you mean 'large'" in errors.splitlines()[-1]) == (2, True)
