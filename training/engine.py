"""Where independent pieces of work run: in this process, in several on this machine, or on a Dask cluster.

A piece is ``function(shared, item)``. What is shared goes to every worker once; a piece that was on a worker that died runs again on
another. Results come in the order of the items, and only a few pieces more than there are workers are ever under way, so that memory does
not grow with their number.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from router.errors import EngineError, InvalidInput
from training.environment import package_versions

if TYPE_CHECKING:
    from distributed import Client

Shared = TypeVar("Shared")
Item = TypeVar("Item")
Result = TypeVar("Result")
EngineName = Literal["local", "dask"]
_AHEAD: Final = 2
_RETRIES: Final = 3
_PATIENCE_SECONDS: Final = 20.0
# What a pickled array, frame or head must be understood alike by.
_SAME_ON_ALL: Final = ("interlock", "numpy", "scikit-learn", "lightgbm")


class Engine(Protocol):
    """Runs pieces of work."""

    @property
    def workers(self) -> int:
        """Pieces that run at a time."""
        ...

    def map(self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]) -> Iterator[Result]:
        """``function(shared, item)`` of every item, in order. ``function`` is one that a module defines."""
        ...


@dataclass(frozen=True, slots=True)
class LocalEngine:
    """The machine it runs on: one worker is the very process, more are further processes."""

    workers: int = 1

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise InvalidInput(f"workers is {self.workers}: at least 1 is needed")

    def map(self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]) -> Iterator[Result]:
        """See :meth:`Engine.map`."""
        if self.workers == 1:
            yield from (function(shared, item) for item in items)
            return
        # Spawned and not forked: a copy of a process with threads in it may hang.
        context = multiprocessing.get_context("spawn")
        try:
            with ProcessPoolExecutor(self.workers, context, _share, (function, shared)) as pool:
                yield from _few_ahead(lambda item: pool.submit(_on_shared, item), items, self.workers)
        except BrokenProcessPool as error:
            raise EngineError(
                f"one of {self.workers} worker processes ended before its work was done, maybe for want of memory: use fewer --workers"
            ) from error


@dataclass(frozen=True, slots=True)
class DaskEngine:
    """The workers of a Dask cluster; see :func:`open_engine`."""

    client: Client

    @property
    def workers(self) -> int:
        """Threads of all workers together."""
        return max(1, sum(int(threads) for threads in self.client.nthreads().values()))

    def map(self, function: Callable[[Shared, Item], Result], shared: Shared, items: Iterable[Item]) -> Iterator[Result]:
        """See :meth:`Engine.map`. What is shared lies on every worker, and is sent again should all that had it die."""
        everywhere = _Everywhere(self.client, function, shared)
        yield from _few_ahead(lambda item: _Piece(everywhere, item), items, self.workers)


class _Everywhere:
    """A function and what its pieces share, on every worker of a cluster."""

    def __init__(self, client: Client, function: Callable[[Any, Any], Any], shared: Any) -> None:
        self._client, self._function, self._shared = client, function, shared
        self._there: Any = None

    def submit(self, item: Any) -> Any:
        """A future of the piece."""
        if self._there is None or self._there.status != "finished":
            try:
                (self._there,) = self._client.scatter([self._shared], broadcast=True, hash=False)
            except TimeoutError as error:
                raise EngineError("the Dask cluster has no worker left: start some, then run this again") from error
        return self._client.submit(self._function, self._there, item, retries=_RETRIES, pure=False)


class _Piece:
    """A piece of work under way on a cluster."""

    def __init__(self, everywhere: _Everywhere, item: Any) -> None:
        self._everywhere, self._item = everywhere, item
        self._future = everywhere.submit(item)

    def result(self) -> Any:
        """What it gave. Dask itself runs a piece again whose worker died, but cancels it where what it shares is lost as well."""
        from distributed import KilledWorker

        for _ in range(_RETRIES):
            try:
                return self._future.result()
            except CancelledError:
                self._future = self._everywhere.submit(self._item)
            except KilledWorker as error:
                raise EngineError("a piece of work has ended several workers one after the other: give them more memory") from error
        raise EngineError(f"all workers of the Dask cluster died {_RETRIES} times while a piece of work was under way: see their logs")


def _few_ahead(submit: Callable[[Item], Any], items: Iterable[Item], workers: int) -> Iterator[Any]:
    """Results of the futures that ``submit`` gives, in order; so many items are taken that no worker has to wait."""
    waiting: deque[Any] = deque()
    for item in items:
        waiting.append(submit(item))
        if len(waiting) >= _AHEAD * workers:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


_SHARED: list[Any] = []
"""In a worker process: the function and what its pieces share."""


def _share(function: Callable[[Any, Any], Any], shared: Any) -> None:
    _SHARED[:] = function, shared
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def _on_shared(item: Any) -> Any:
    function, shared = _SHARED
    return function(shared, item)


@contextmanager
def open_engine(name: EngineName, *, workers: int = 1, scheduler: str | None = None) -> Iterator[Engine]:
    """The engine that a command was asked for; a cluster that was started for it is stopped afterwards.

    Parameters
    ----------
    workers
        Processes on this machine; not used where a scheduler is given.
    scheduler
        Address of a Dask scheduler, such as ``tcp://10.0.0.5:8786``; None starts a cluster on this machine.

    Raises
    ------
    InvalidInput
        A scheduler for the local engine.
    EngineError
        Dask is not installed, the scheduler does not answer or has no workers, or a worker has other versions of what a router is made of.
    """
    if name == "local":
        if scheduler is not None:
            raise InvalidInput(f"--scheduler {scheduler} goes with --engine dask")
        yield LocalEngine(workers)
        return
    with _client(workers, scheduler) as client:
        _check_versions(client)
        yield DaskEngine(client)


@contextmanager
def _client(workers: int, scheduler: str | None) -> Iterator[Client]:
    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise EngineError("--engine dask needs Dask: pip install 'interlock[dask]'") from error
    if scheduler is None:
        with LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
            yield client
        return
    try:
        client = Client(scheduler, timeout=_PATIENCE_SECONDS)
    except (OSError, TimeoutError, ValueError) as error:
        raise EngineError(f"no Dask scheduler answers at {scheduler} within {_PATIENCE_SECONDS:g} s: is it running there?") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=_PATIENCE_SECONDS)
        except TimeoutError as error:
            raise EngineError(f"the Dask scheduler at {scheduler} has no workers: start some with `dask worker {scheduler}`") from error
        yield client


def _check_versions(client: Client) -> None:
    """Refuse workers on which a package that a router is made with is missing or another one than here."""
    here = versions()
    try:
        found = client.run(versions)
    except ModuleNotFoundError as error:
        raise EngineError(f"a worker cannot import {error.name}: install interlock with its extras [train,dask] on every worker") from error
    for worker, there in found.items():
        for package, version in here.items():
            if there.get(package) != version:
                raise EngineError(
                    f"worker {worker} has {package} {there.get(package, 'missing')}, here it is {version}: install the same on both"
                )


def versions() -> dict[str, str]:
    """Versions in this process of what must be the same on every worker."""
    return {"python": ".".join(platform.python_version_tuple()[:2]), **package_versions(_SAME_ON_ALL)}
