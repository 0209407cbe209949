"""Runs the service in this process: takes the port, serves, stops on a signal."""

from __future__ import annotations

import signal
import socket
import sys
from types import FrameType

import uvicorn

from router.errors import InvalidInput, RouterError
from router.files.artifacts import read_artifact, read_catalog
from serve.app import create_app
from serve.log import configure
from serve.settings import Settings


def run(settings: Settings) -> None:
    """Serve until SIGINT or SIGTERM.

    Raises
    ------
    RouterError
        If the address cannot be taken, or artefact, encoder or catalog cannot be used.
    """
    failures: list[Exception] = []

    def stop(error: Exception) -> None:
        failures.append(error)
        server.should_exit = True

    _check_files(settings)
    configure(settings)
    app = create_app(settings, on_load_error=stop)
    config = uvicorn.Config(
        app, log_config=None, access_log=False, server_header=False, lifespan="on", timeout_graceful_shutdown=settings.shutdown_seconds
    )
    server = uvicorn.Server(config)
    listener = take_address(settings.host, settings.port)
    with listener:
        host, port = listener.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"listening on http://{shown}:{port} (try it at /docs, stop with Ctrl-C)", file=sys.stderr, flush=True)
        # The server raises the signal it stopped for once more when it is done; this makes SIGTERM a clean exit.
        signal.signal(signal.SIGTERM, _exit)
        # A shell starts what runs in the background with SIGINT ignored; a service that is sent one should stop all the same.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        server.run(sockets=[listener])
    if failures:
        error = failures[0]
        raise error if isinstance(error, RouterError) else RouterError(f"the router could not be loaded: {error}") from error


def _check_files(settings: Settings) -> None:
    """What can be known in a moment is said before a port is taken and anything is logged."""
    read_artifact(settings.router)
    catalog = read_catalog(settings.catalog)
    for name in (*settings.allow, *settings.deny, *filter(None, [settings.default_model])):
        catalog[name]


def take_address(host: str, port: int) -> socket.socket:
    """A listening socket.

    Raises
    ------
    InvalidInput
        If the host is unknown, or the port is taken or not permitted.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"host {host!r} is not an address of this machine ({error.strerror}): try --host 127.0.0.1") from error
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except OSError as error:
        listener.close()
        raise InvalidInput(f"cannot listen on {host} port {port} ({error.strerror}): free it, or give another with --port") from error
    return listener


def _exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(0)
