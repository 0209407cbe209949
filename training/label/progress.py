"""A progress bar on a terminal, a plain line now and then elsewhere; always on standard error."""

from __future__ import annotations

import sys
import time
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

LOG_EVERY_S = 30.0


class Progress:
    """One bar at a time; ``with Progress() as progress``."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None
        self._title, self._total, self._done, self._failed, self._logged = "", 0, 0, 0, 0.0
        if self._stream.isatty():
            columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
            self._bar = RichProgress(*columns, console=Console(file=self._stream))

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def say(self, text: str) -> None:
        """Print one line beside the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False)
        else:
            print(text, file=self._stream, flush=True)

    def start(self, title: str, total: int, done: int = 0) -> None:
        """Begin a stage."""
        self._title, self._total, self._done, self._failed = title, total, done, 0
        if self._bar is not None:
            self._task = self._bar.add_task(title, total=total, completed=done)
        elif done < total:
            self._log()

    def advance(self) -> None:
        """Count one item done."""
        self._done += 1
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task)
        elif self._done == self._total or time.monotonic() - self._logged > LOG_EVERY_S:
            self._log()

    def failed(self) -> None:
        """Count one item failed."""
        self._failed += 1

    def _log(self) -> None:
        self._logged = time.monotonic()
        failed = f", {self._failed} failed" if self._failed else ""
        self.say(f"{time.strftime('%H:%M:%S')} {self._title}: {self._done} of {self._total}{failed}")
