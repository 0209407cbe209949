"""``interlock``: the one console script. Errors that a user can fix are one line on stderr and exit code 2."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from types import MappingProxyType
from typing import Annotated, Final

import typer

_EPILOG: Final = (
    "Start here: `interlock route 'Why does my loop never end?'` says which model a prompt needs and why; `interlock serve` answers the "
    "same over HTTP; `interlock demo` shows the whole path from training to decisions. Errors go to stderr with exit code 2."
)
# Command to module, in the order of the help: use, then make.
COMMANDS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "route": "route",
        "serve": "serve",
        "demo": "demo",
        "label": "label",
        "label-server": "label",
        "audit": "audit",
        "train": "train",
        "evaluate": "evaluate",
        "compare": "compare",
        "robustness": "robustness",
        "guarantee": "guarantee",
        "evaluate-pool": "evaluate_pool",
        "profile": "profile",
        "encoder": "encoder",
        "data": "data",
    }
)
_EXTRA_OF: Final[Mapping[str, str]] = MappingProxyType(
    dict.fromkeys(("fastapi", "starlette", "uvicorn", "pydantic", "pydantic_settings", "anyio", "httpx", "threadpoolctl"), "serve")
    | dict.fromkeys(
        ("sklearn", "lightgbm", "pandas", "pyarrow", "mlflow", "onnx", "openai", "jsonschema", "matplotlib", "jinja2", "scipy"), "train"
    )
    | dict.fromkeys(("onnxruntime",), "serve")
    | dict.fromkeys(("torch", "sentence_transformers", "transformers"), "encoders")
    | dict.fromkeys(("serve",), "serve")
    | dict.fromkeys(("training",), "train")
)

app = typer.Typer(
    name="interlock",
    help="Open model routing: which model a conversation needs, what that costs, and why.",
    epilog=_EPILOG,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(shown: bool) -> None:
    if shown:
        try:
            typer.echo(f"interlock {version('interlock')}")
        except PackageNotFoundError:
            typer.echo("interlock, not installed (run from source)")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")] = False,
) -> None:
    """Open model routing: which model a conversation needs, what that costs, and why."""


def attach(target: typer.Typer, name: str, module_name: str) -> None:
    """Add a sub-command: the Typer ``app`` of its module, or the function of its name. Nothing if there is no such module."""
    path = f"interlock.commands.{module_name}"
    try:
        module = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name == path:
            return
        raise
    if hasattr(module, "app"):
        target.add_typer(module.app, name=name)
    else:
        target.command(name)(getattr(module, name.replace("-", "_")))


for _name, _module in COMMANDS.items():
    attach(app, _name, _module)


def main() -> None:
    """Run the command line; never a traceback for what the user can fix."""
    try:
        # Not standalone: wrong usage comes here as well, and becomes one line like every other error.
        code = app(standalone_mode=False)
    except KeyboardInterrupt:
        sys.exit(130)
    except BrokenPipeError:
        # The reader (head, less) has gone; Python would complain once more when it flushes.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        message = _what_to_fix(error)
        if message is None:
            raise
        _fail(message)
    sys.exit(code if isinstance(code, int) else 0)


def _what_to_fix(error: Exception) -> str | None:
    """The error in one line, if it is the user's to fix; None for a bug."""
    from router.errors import RouterError  # not at the top: help needs no arrays

    if isinstance(error, RouterError):
        return str(error)
    if isinstance(error, ImportError):
        package = (error.name or "").partition(".")[0]
        extra = _EXTRA_OF.get(package)
        return f"the package {package} is not installed: pip install 'interlock[{extra}]'" if extra else None
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror or error}; name another place, or change its permissions"
    return _wrong_usage(error)


def _wrong_usage(error: Exception) -> str | None:
    """What typer says of a wrong option or argument. It brings its own copy of click, so its errors are known by what they can do."""
    if not hasattr(error, "format_message"):
        return None
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()  # type: ignore[attr-defined]
        sys.exit(2)
    command = getattr(getattr(error, "ctx", None), "command_path", None) or "interlock"
    return f"{str(error.format_message()).rstrip('.')}; see: {command} --help"


def _fail(message: str) -> None:
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    sys.exit(2)


if __name__ == "__main__":
    main()
