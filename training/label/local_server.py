"""Serve one GGUF file as an OpenAI-compatible endpoint on this machine, through xllamacpp (llama.cpp).

Optional: any other OpenAI-compatible server does as well. Tokens per second fall sharply when the cores are shared, so run one
model at a time and leave the machine alone meanwhile.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from router.errors import LabelError

GGUF_MAGIC = b"GGUF"


def check_model_file(path: Path) -> None:
    """Refuse what is not a GGUF file."""
    if not path.is_file():
        raise LabelError(f"model file {str(path)!r} does not exist; give a .gguf file")
    with path.open("rb") as file:
        magic = file.read(4)
    if magic != GGUF_MAGIC:
        raise LabelError(f"{str(path)!r} is not a GGUF file (starts with {magic!r}); give a .gguf file")


def check_port(port: int, host: str) -> None:
    """Refuse a port that is taken."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except (OSError, OverflowError) as error:
            raise LabelError(f"port {port} on {host} is not free ({error}); choose another with --port") from error


def start(
    path: Path, *, port: int, threads: int, parallel: int = 1, context: int = 4096, host: str = "127.0.0.1", name: str | None = None
) -> Any:
    """Start the server in this process and return it; it stops with the process.

    ``context`` is tokens per request; with ``parallel`` slots that many requests are decoded together.
    """
    check_model_file(path)
    check_port(port, host)
    try:
        import xllamacpp
    except ImportError as error:
        raise LabelError("serving a GGUF file needs xllamacpp; install it with: pip install 'interlock[local]'") from error
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.n_ctx = context * parallel
    params.n_parallel = parallel
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.hostnames = [host]
    params.port = port
    alias = name or path.stem
    params.model_alias = {alias} if isinstance(params.model_alias, set) else alias
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise LabelError(f"{str(path)!r} could not be served: {error}") from error


def serve_forever(path: Path, *, say: Callable[[str], None] = print, **options: Any) -> None:
    """Serve until interrupted."""
    server = start(path, **options)
    say(f"serving {path.name} at {server.listening_address}/v1 (Ctrl-C stops)")
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        say("stopped")
