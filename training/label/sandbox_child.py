"""The process that runs one assert on generated code; started by ``sandbox.py`` as a script, never imported.

It reads one JSON task from standard input, gives up rights, runs, and writes one JSON message to the descriptor in ``argv[1]``.
"""

import contextlib
import json
import os
import sys
from typing import Any


def limit(limits: dict[str, int]) -> None:
    """Lower every limit that the platform knows; none can be raised again."""
    try:
        import resource
    except ImportError:  # not on Windows: only the wall clock of the parent holds there
        return
    megabyte = 1 << 20
    for name, value in (
        ("RLIMIT_CPU", limits["cpu_s"]),
        ("RLIMIT_AS", limits["memory_mb"] * megabyte),
        ("RLIMIT_FSIZE", limits["file_mb"] * megabyte),
        ("RLIMIT_NOFILE", 32),
        ("RLIMIT_NPROC", 0),
        ("RLIMIT_CORE", 0),
    ):
        with contextlib.suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (value, value))


def leave_network() -> None:
    """Move into an empty network namespace where the kernel lets us (Linux with user namespaces)."""
    with contextlib.suppress(Exception):
        import ctypes

        clone_newuser, clone_newnet = 0x10000000, 0x40000000
        ctypes.CDLL(None).unshare(clone_newuser | clone_newnet)


FORBIDDEN = (
    "socket.", "subprocess.", "ctypes.", "pty.", "fcntl.", "mmap.", "resource.", "signal.", "syslog.", "shutil.", "marshal.",
    "urllib.", "http.", "ftplib.", "smtplib.", "webbrowser.", "code.__new__", "gc.get_", "sys._current_frames", "sys.setprofile",
    "sys.settrace", "os.system", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.kill", "os.putenv", "os.remove",
    "os.rename", "os.rmdir", "os.mkdir", "os.chdir", "os.chmod", "os.chown", "os.link", "os.symlink", "os.truncate",
    "os.listdir", "os.scandir",
)  # fmt: skip


def guard() -> None:
    """Refuse system access for the rest of this process; an audit hook cannot be removed."""
    write_flags = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
    roots = tuple({os.path.realpath(path) for path in (*sys.path, sys.prefix, sys.base_prefix) if path})

    def hook(event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, _mode, flags = args
            if isinstance(path, int):
                raise PermissionError("not allowed: open a descriptor")
            if isinstance(flags, int) and flags & write_flags:
                raise PermissionError("not allowed: write a file")
            if not os.path.realpath(os.fsdecode(path)).startswith((*roots, "/usr/share/zoneinfo")):
                raise PermissionError("not allowed: read a file")
        elif event in ("marshal.loads", "marshal.load"):
            return  # importing compiled modules
        elif event.startswith(FORBIDDEN):
            if event == "os.listdir" and args and os.path.realpath(os.fsdecode(args[0] or ".")).startswith(roots):
                return  # the import system looks into its own folders
            raise PermissionError("not allowed: " + event)

    sys.addaudithook(hook)


def encode(value: object) -> list[Any]:
    """Turn plain data into JSON that keeps Python's types; anything else is an error."""
    if value is None or isinstance(value, (bool, str)):
        return ["plain", str.__str__(value) if isinstance(value, str) else value]
    if isinstance(value, int):
        return ["plain", int(value)]
    if isinstance(value, float):
        return ["float", float.__repr__(value)]
    if isinstance(value, complex):
        return ["complex", complex.__repr__(value)]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes", bytes(value).hex()]
    if isinstance(value, dict):
        return ["dict", [[encode(key), encode(item)] for key, item in dict.items(value)]]
    for kind in (list, tuple, frozenset, set):
        if isinstance(value, kind):
            return [kind.__name__, [encode(item) for item in kind.__iter__(value)]]  # type: ignore[arg-type]
    raise TypeError("the value is a " + type(value).__name__ + ", not plain data")


def run(task: dict[str, Any]) -> dict[str, Any]:
    """Execute the code and the assert; return the message."""
    scope = {"__name__": "answer", "__builtins__": __builtins__}
    try:
        exec(compile(task["code"], "<answer>", "exec"), scope)  # noqa: S102  (running generated code is the purpose)
        exec(compile(task["setup"], "<test>", "exec"), scope)  # noqa: S102
        if task["left"] is None:
            return {"nonce": task["nonce"]}
        value = eval(compile(task["left"], "<test>", "eval"), scope)  # noqa: S307
        return {"value": encode(value)}
    except AssertionError:
        return {"error": "assert failed"}
    except BaseException as error:
        return {"error": type(error).__name__ + ": " + str(error)[:160]}


def main() -> None:
    """Read the task, run it, report."""
    report = os.dup(int(sys.argv[1]))
    os.close(int(sys.argv[1]))
    del sys.argv[1:]
    task = json.loads(sys.stdin.buffer.read())
    leave_network()
    limit(task["limits"])
    write, dumps, leave = os.write, json.dumps, os._exit
    guard()
    data = dumps(run(task)).encode()
    while data:
        data = data[write(report, data) :]
    leave(0)


if __name__ == "__main__":
    main()
