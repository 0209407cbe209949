"""Unit tests on code that a model wrote, in a separate, resource-limited Python process.

Each assert runs in a fresh process (`python -I -S`), in an empty temporary folder, without environment, standard output or
network, under limits of CPU time, memory, file size and wall time. Expected values do not enter that process where the assert
compares with a literal (``assert f(2) == 4``): the child evaluates the left side, sends the value back, and the parent compares.
Other asserts are evaluated in the child and vouched for with a nonce. Printing proves nothing either way.

This contains accidents of generated code (endless loops, memory, forks, deleted files). It is no defence against an attacker who
studies it: for untrusted models run labelling in a container of its own.
"""

from __future__ import annotations

import ast
import json
import os
import secrets
import select
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CHILD = Path(__file__).with_name("sandbox_child.py")
MAX_RESULT_BYTES = 256_000


@dataclass(frozen=True)
class Limits:
    """What one assert may use."""

    cpu_s: int = 2
    wall_s: float = 12.0
    memory_mb: int = 512
    file_mb: int = 1


@dataclass(frozen=True)
class TestResult:
    """Outcome of one assert; ``detail`` says why it failed."""

    __test__ = False

    passed: bool
    detail: str = ""


def run_unit_tests(code: str, tests: Sequence[str], limits: Limits = Limits()) -> list[TestResult]:
    """Run every assert against ``code``; after two timeouts the rest counts as failed."""
    results: list[TestResult] = []
    for test in tests:
        if sum(result.detail == "timeout" for result in results) >= 2:
            results.append(TestResult(False, "skipped after timeouts"))
        else:
            results.append(run_test(code, test, limits))
    return results


def run_test(code: str, test: str, limits: Limits = Limits()) -> TestResult:
    """Run one assert in its own process."""
    setup, left, expected = split_assert(test)
    nonce = secrets.token_hex(16)
    task = {"code": code, "setup": setup, "left": left, "nonce": nonce, "limits": vars(limits)}
    try:
        message = _run_child(task, limits)
    except TimeoutError:
        return TestResult(False, "timeout")
    if message is None:
        return TestResult(False, "died")
    if "error" in message:
        return TestResult(False, str(message["error"])[:200])
    if left is None:
        return TestResult(secrets.compare_digest(str(message.get("nonce")), nonce), "")
    try:
        value = _decode(message.get("value"))
        passed = value is expected.value if isinstance(expected, _Is) else bool(value == expected)
    except (ValueError, TypeError, KeyError, RecursionError):
        return TestResult(False, "the value is not plain data")
    return TestResult(passed, "" if passed else f"got {str(value)[:80]!r}")


@dataclass(frozen=True)
class _Is:
    value: Any


def split_assert(test: str) -> tuple[str, str | None, Any]:
    """Split ``setup; assert left == literal`` into (setup, left, literal); left is None where that is not its shape."""
    body = ast.parse(test).body
    last = body[-1] if body else None
    if not isinstance(last, ast.Assert):
        return test, None, None
    setup = "\n".join(ast.unparse(node) for node in body[:-1])
    condition = last.test
    if isinstance(condition, ast.Compare) and len(condition.ops) == 1:
        left, operator, right = condition.left, condition.ops[0], condition.comparators[0]
        try:
            literal = ast.literal_eval(right)
        except (ValueError, TypeError, SyntaxError):
            return test, None, None
        if isinstance(operator, ast.Eq):
            return setup, ast.unparse(left), literal
        if isinstance(operator, ast.Is) and (literal is None or isinstance(literal, bool)):
            return setup, ast.unparse(left), _Is(literal)
    return test, None, None


def _decode(node: Any) -> Any:
    kind, value = node
    if kind == "plain":
        return value
    if kind == "float":
        return float(value)
    if kind == "complex":
        return complex(value)
    if kind == "bytes":
        return bytes.fromhex(value)
    if kind == "dict":
        return {_decode(key): _decode(item) for key, item in value}
    items = [_decode(item) for item in value]
    return {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}[kind](items)


def _run_child(task: dict[str, Any], limits: Limits) -> dict[str, Any] | None:
    read_end, write_end = os.pipe()
    with tempfile.TemporaryDirectory(prefix="interlock-test-") as folder:
        try:
            process = subprocess.Popen(  # noqa: S603  (our own interpreter and script)
                [sys.executable, "-I", "-S", "-B", str(CHILD), str(write_end)],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd=folder,
                env={"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8"},
                pass_fds=(write_end,),
                start_new_session=True,
            )
        finally:
            os.close(write_end)
        try:
            return _talk(process, read_end, task, time.monotonic() + limits.wall_s)
        finally:
            os.close(read_end)
            _kill(process)


def _talk(process: subprocess.Popen[bytes], read_end: int, task: dict[str, Any], deadline: float) -> dict[str, Any] | None:
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(task).encode())
        process.stdin.close()
    except BrokenPipeError:
        return None
    data = b""
    while True:
        ready, _, _ = select.select([read_end], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        chunk = os.read(read_end, 65536)
        data += chunk
        if len(data) > MAX_RESULT_BYTES:
            return {"error": "the value is too large"}
        if chunk:
            continue
        if not data and _died_of_cpu(process, deadline):
            raise TimeoutError
        return _message(data)


def _died_of_cpu(process: subprocess.Popen[bytes], deadline: float) -> bool:
    try:
        return process.wait(max(0.05, deadline - time.monotonic())) in (-signal.SIGXCPU, -signal.SIGKILL)
    except subprocess.TimeoutExpired:
        return True


def _message(data: bytes) -> dict[str, Any] | None:
    try:
        message = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return message if isinstance(message, dict) else None


def _kill(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
