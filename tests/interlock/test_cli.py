import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from interlock import cli
from interlock.show import bar, flips_in_words
from router.errors import InvalidInput
from router.files import encoders
from serve.app import create_app
from serve.settings import Settings

COMMANDS = ("route", "serve", "demo", "encoder")


@pytest.fixture
def run(toy, monkeypatch: pytest.MonkeyPatch):
    """Runs the command line in this process on the toy router; gives exit code, stdout and stderr."""
    monkeypatch.setattr(encoders, "SHIPPED_FAST", toy.encoder)

    def invoke(*arguments: str, stdin: bytes = b"") -> tuple[int, str]:
        paths = ["--router", str(toy.artifact), "--catalog", str(toy.catalog)]
        result = CliRunner().invoke(cli.app, ["route", *paths, *arguments], input=stdin)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result.exit_code, result.output

    return invoke


def main(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    monkeypatch.setattr(sys, "argv", ["interlock", *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code, capsys.readouterr().err


def test_help_names_every_command() -> None:
    result = CliRunner().invoke(cli.app, ["--help"])
    assert result.exit_code == 0
    assert all(f" {name} " in result.output for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_help(name: str) -> None:
    result = CliRunner().invoke(cli.app, [name, "--help"])
    assert result.exit_code == 0
    assert "Usage" in result.output


def test_help_loads_no_heavy_package() -> None:
    code = "import sys, interlock.cli; print([m for m in ('fastapi', 'sklearn', 'lightgbm', 'pandas', 'onnxruntime') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_missing_command_module_is_left_out() -> None:
    target = typer.Typer()
    cli.attach(target, "nothing", "does_not_exist")
    assert target.registered_commands == []


def test_json_has_the_shape_of_the_service(run, toy) -> None:
    from starlette.testclient import TestClient

    code, output = run("请写一个解析器", "--json")
    with TestClient(create_app(Settings(), router=toy.load())) as client:
        served = client.post("/v1/route", json={"messages": [{"role": "user", "content": "请写一个解析器"}]}).json()
    answer = json.loads(output)
    assert code == 0
    assert list(answer) == list(served)
    varying = {"latency_ms", "router"}
    assert {k: v for k, v in answer.items() if k not in varying} == {k: v for k, v in served.items() if k not in varying}


def test_people_see_the_choice_and_the_reasons(run) -> None:
    code, output = run("Write a parser", "--threshold", "100")
    assert code == 0
    for text in ("small", "initialize", "reasoning", "█", "shortfall threshold lowered", "read as "):
        assert text in output


def test_language_is_taken_as_given(run) -> None:
    assert json.loads(run("habari", "--lang", "sw", "--json")[1])["family"] == "Niger-Congo"


@pytest.mark.parametrize("wrapped", [True, False])
def test_conversation_from_a_file_or_stdin(run, tmp_path, wrapped: bool) -> None:
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}, {"role": "user", "content": "Fix it"}]
    body = {"messages": messages, "current_model": "large"} if wrapped else messages
    path = tmp_path / "conversation.json"
    path.write_text(json.dumps(body))
    answer = json.loads(run("--file", str(path), "--json")[1])
    assert answer["decision"] == ("retain" if wrapped else "initialize")
    assert json.loads(run("--file", "-", "--json", stdin=path.read_bytes())[1])["classified"] == answer["classified"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"{", "is not JSON"),
        (b"", "is not JSON"),
        (b'"text"', "holds a str"),
        (b"{}", "messages is missing"),
        (b'{"messages": {}}', "messages is a dict"),
        (b"[]", "messages is empty"),
        (b'[{"role": "narrator"}]', "role is 'narrator'"),
        (b"\xff\xff", "is not JSON"),
        (b'{"messages": [{"role": "user"}], "language": 3}', "language is a int"),
    ],
)
def test_unusable_file_is_one_line(run, content: bytes, message: str) -> None:
    with pytest.raises(InvalidInput, match=r"^[^\n]+$") as caught:
        run("--file", "-", stdin=content)
    assert message in str(caught.value)


def test_router_error_is_one_line_and_code_2(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(monkeypatch, capsys, "route") == (
        2,
        "error: give either a prompt or --file, e.g.: interlock route 'Translate this to Thai: ...'\n",
    )
    code, errors = main(monkeypatch, capsys, "route", "hi", "--router", "/nowhere")
    assert (code, errors.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ModuleNotFoundError("No module named 'fastapi'", name="fastapi"), 2, "interlock[serve]"),
        (ModuleNotFoundError("No module named 'lightgbm'", name="lightgbm"), 2, "interlock[train]"),
        (ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn"), 2, "interlock[encoders]"),
        (PermissionError(13, "Permission denied", "/out/router"), 2, "/out/router: Permission denied"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_what_main_makes_of_errors(monkeypatch, capsys, error: BaseException, code: int, message: str) -> None:
    def raising(**_: object) -> None:
        raise error

    monkeypatch.setattr(cli, "app", raising)
    found, errors = main(monkeypatch, capsys)
    assert found == code
    assert message in errors
    assert errors.count("\n") <= 1


def test_bug_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "app", lambda **_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("nothing",), "No such command 'nothing'; see: "),
        (("route", "hi", "--bogus"), "No such option: --bogus; see: "),
        (("serve", "--port", "x"), "Invalid value for '--port'"),
        (("data", "check"), "Missing argument"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(monkeypatch, capsys, arguments: tuple[str, ...], message: str) -> None:
    code, errors = main(monkeypatch, capsys, *arguments)
    assert (code, errors.count("\n")) == (2, 1)
    assert errors.startswith("error: ")
    assert message in errors
    assert "--help" in errors


def test_a_chosen_exit_code_is_kept(monkeypatch, capsys) -> None:
    assert main(monkeypatch, capsys, "--version")[0] == 0


def test_flips_in_words() -> None:
    flip = {"value": 0.2, "change": 0.1, "model": "small"}
    margin = {"shortfall_threshold_up": flip, "shortfall_threshold_down": None, "price_factor": None, "requirements": {"debugging": None}}
    assert flips_in_words(margin, "large") == ["the shortfall threshold raised by 0.100 to 0.200 would choose small"]
    nothing = {**margin, "shortfall_threshold_up": None}
    assert flips_in_words(nothing, "large") == ["nothing within the allowed range would change this choice"]


@pytest.mark.parametrize(("value", "filled"), [(0.0, 0), (0.5, 5), (1.0, 10), (1.2, 10)])
def test_bar(value: float, filled: int) -> None:
    assert bar(value, 10).plain == "█" * filled + "░" * (10 - filled)
