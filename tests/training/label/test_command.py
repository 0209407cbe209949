import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

import pytest

from interlock.cli import main
from training.label import local_server


@dataclass(frozen=True)
class Ended:
    exit_code: int
    output: str
    stderr: str


@pytest.fixture
def invoke(monkeypatch, capsys):
    """Runs the command line in this process, as a user would."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["interlock", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return Ended(stopped.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def prompts_file(tmp_path):
    path = tmp_path / "prompts.jsonl"
    rows = [{"prompt_id": f"p{i}", "messages": f"2 + {i}?", "grader": {"kind": "numeric", "answer": 42}} for i in range(3)]
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


def test_flags_are_enough(invoke, server, prompts_file, tmp_path):
    flags = [
        "--weak-url",
        server.url,
        "--weak-model",
        "s",
        "--strong-url",
        server.url,
        "--strong-model",
        "b",
        "--pool",
        f"third={server.url}#t",
    ]
    result = invoke("label", prompts_file, "--out", tmp_path / "run", *flags)
    assert result.exit_code == 0, result.stderr
    assert "9 of 9 answered" in result.output
    assert {request["model"] for request in server.requests} == {"s", "b", "t"}


def test_a_reached_budget_is_no_error(invoke, server, prompts_file, tmp_path):
    flags = ["--weak-url", server.url, "--strong-url", server.url, "--max-total-tokens"]
    result = invoke("label", prompts_file, "--out", tmp_path / "run", *flags, "1")
    assert (result.exit_code, "does not cover the first request" in result.stderr) == (2, True)
    result = invoke("label", prompts_file, "--out", tmp_path / "run", *flags, "560")
    assert result.exit_code == 0
    assert "budget reached, 1 of 6 answered; run again to go on" in result.output


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "no weak model: give --config label.toml, or --weak-url and --weak-model"),
        (["--weak-model", "x"], "--weak-model and --weak-api-key-env need --weak-url"),
        (["--weak-url", "x", "--strong-url", "y"], "base_url 'x' is not a URL"),
        (["--pool", "x"], "--pool 'x' is not NAME=URL"),
        (["--config", "nowhere.toml"], "configuration 'nowhere.toml' does not exist"),
        (["--grade-only", "--judge-only"], "exclude each other"),
        (["--weak-url", "http://127.0.0.1:9/v1", "--strong-url", "http://127.0.0.1:9/v1", "--max-usd", "-1"], "budget usd is -1.0"),
        (["--weak-url", "http://127.0.0.1:9/v1", "--strong-url", "http://127.0.0.1:9/v1", "--only", "x"], "--only 'x' is not a model"),
    ],
)
def test_bad_usage_is_one_line_and_code_2(invoke, flags, message, prompts_file, tmp_path):
    result = invoke("label", prompts_file, "--out", tmp_path / "run", *flags)
    assert result.exit_code == 2
    assert result.stderr.startswith("error: ")
    assert message in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "run").exists()


def test_missing_prompts(invoke, tmp_path):
    result = invoke("label", tmp_path / "none.jsonl", "--weak-url", "http://h/v1", "--strong-url", "http://h/v1", "--out", tmp_path / "run")
    assert (result.exit_code, len(result.stderr.splitlines())) == (2, 1)


def test_the_local_server_checks_what_it_is_given(invoke, tmp_path):
    assert "does not exist" in invoke("label-server", tmp_path / "m.gguf").stderr
    (tmp_path / "m.gguf").write_bytes(b"PK\x03\x04")
    result = invoke("label-server", tmp_path / "m.gguf")
    assert (result.exit_code, "is not a GGUF file" in result.stderr) == (2, True)


def test_the_local_server_wants_a_free_port_and_its_package(invoke, tmp_path, server, monkeypatch):
    path = tmp_path / "m.gguf"
    path.write_bytes(b"GGUF....")
    assert "is not free" in invoke("label-server", path, "--port", server.http.server_port).stderr
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    monkeypatch.setattr(local_server, "check_port", lambda port, host: None)
    result = invoke("label-server", path)
    assert result.exit_code == 2
    assert "needs xllamacpp; install it with" in result.stderr


def test_the_prompts_are_not_written_over(invoke, prompts_file, tmp_path):
    flags = ["--weak-url", "http://127.0.0.1:9/v1", "--strong-url", "http://127.0.0.1:9/v1"]
    (tmp_path / "link").symlink_to(tmp_path)
    for out in (tmp_path, tmp_path / "link", tmp_path / "." / "link" / ".." / tmp_path.name):
        result = invoke("label", tmp_path, "--out", out, *flags)
        assert (result.exit_code, "is the folder that the prompts are read from" in result.stderr) == (2, True)
    written = prompts_file.rename(tmp_path / "answers.jsonl")
    assert "would overwrite the prompts" in invoke("label", written, "--out", tmp_path, *flags).stderr


def test_a_terminated_run_says_what_is_kept(server, prompts_file, tmp_path):
    server.reply = lambda request: time.sleep(20) if request["messages"][-1]["content"] == "2 + 1?" else None
    flags = ["--weak-url", server.url, "--strong-url", server.url, "--concurrency", "1"]
    command = [sys.executable, "-m", "interlock", "label", prompts_file, "--out", tmp_path / "run", *flags]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)})
    try:
        for _ in range(600):
            if len(server.requests) > 1:
                break
            time.sleep(0.05)
        run.send_signal(signal.SIGTERM)
        _, errors = run.communicate(timeout=15)
    finally:
        run.kill()
    assert (run.returncode, errors.strip().splitlines()[-1]) == (
        130,
        f"interrupted; everything answered so far is in {tmp_path / 'run'}; run again to go on",
    )
    assert "Traceback" not in errors
    assert len((tmp_path / "run" / "answers.jsonl").read_text().splitlines()) == 1
