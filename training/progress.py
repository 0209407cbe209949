"""How far a long run is: a bar on standard error, and the stages of a run for whoever wants to time them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

Advance = Callable[[int], None]
Stage = Callable[[str], AbstractContextManager[None]]
"""Wraps a stage of a run, which it is told the name of."""


@contextmanager
def counting(title: str, total: int) -> Iterator[Advance]:
    """A bar on standard error; what it yields is told how many more are done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.advance(task, done)


def unwatched(stage: str) -> AbstractContextManager[None]:
    """The :data:`Stage` that does nothing."""
    return nullcontext()


def uncounted(done: int) -> None:
    """The :data:`Advance` that does nothing."""
