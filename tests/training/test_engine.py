"""Pieces of work here, in other processes and on a cluster; one worker of it is killed on the way."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from router.errors import EngineError, InvalidInput
from router.files.encoders import load_encoder
from training import inputs as inputs_module
from training.engine import DaskEngine, LocalEngine, open_engine
from training.recipe import Pair, Recipe
from training.train import train_router

sys.path.insert(0, str(Path(__file__).parent))
from scale_rows import die, generated, plus, refuse

inside_dask = pytest.mark.filterwarnings("ignore")
"""Dask and the processes it starts warn of sockets, loops and their own deprecations."""


@pytest.mark.parametrize("workers", [1, 2])
def test_results_come_in_the_order_of_the_items_from_as_many_processes_as_asked(workers: int) -> None:
    found = list(LocalEngine(workers).map(plus, np.ones(500_000), range(20)))
    assert [value for value, _ in found] == [500_000.0 + i for i in range(20)]
    assert (os.getpid() in {pid for _, pid in found}) == (workers == 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_in_a_piece_is_that_of_the_caller(workers: int) -> None:
    with pytest.raises(InvalidInput, match="item 0 is refused"):
        list(LocalEngine(workers).map(refuse, None, range(3)))


@pytest.mark.parametrize("workers", [1, 2])
def test_only_a_few_items_are_taken_ahead(workers: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for item in range(60):
            taken.append(item)
            yield item

    ahead = [len(taken) - number for number, _ in enumerate(LocalEngine(workers).map(plus, np.ones(3), items()))]
    assert len(ahead) == 60
    assert ahead[0] <= 2 * workers + 2


def test_what_cannot_be_meant_is_refused() -> None:
    with pytest.raises(InvalidInput, match="workers is 0"):
        LocalEngine(0)
    with pytest.raises(InvalidInput, match="goes with --engine dask"), open_engine("local", scheduler="tcp://127.0.0.1:1"):
        pass


def test_a_worker_that_dies_here_is_told() -> None:
    with pytest.raises(EngineError, match=r"one of 2 worker processes ended .*fewer --workers"):
        list(LocalEngine(2).map(die, None, range(4)))


def test_without_dask_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(EngineError, match=r"pip install 'interlock\[dask\]'"), open_engine("dask"):
        pass


@inside_dask
def test_a_scheduler_that_does_not_answer_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("training.engine._PATIENCE_SECONDS", 1.0)
    with (
        pytest.raises(EngineError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:9 within 1 s"),
        open_engine("dask", scheduler="tcp://127.0.0.1:9"),
    ):
        pass
    with pytest.raises(EngineError, match="no Dask scheduler answers at nowhere"), open_engine("dask", scheduler="nowhere"):
        pass


class Killer(DaskEngine):
    """Kills the process of one worker after the second result of every map but the first."""

    __slots__ = ("killed",)

    def map(self, function: Callable[[Any, Any], Any], shared: Any, items: Iterable[Any]) -> Iterator[Any]:
        for number, result in enumerate(super().map(function, shared, items)):
            if number == 1:
                victim = next(iter(self.client.run(os.getpid).values()))
                os.kill(victim, signal.SIGKILL)
                self.killed.append(victim)
            yield result


@pytest.mark.slow
@inside_dask
def test_a_cluster_of_two_gives_the_same_router_though_a_worker_is_killed(monkeypatch: pytest.MonkeyPatch, tmp_path) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setenv("INTERLOCK_CACHE", str(tmp_path))
    monkeypatch.setattr(inputs_module, "CHUNK_ROWS", 100)
    training = generated(600)
    recipe = Recipe((Pair(("small",), ("large",)),), heads={"n_estimators": 30, "calibration_folds": 3}, language_effects=False)
    encoder = load_encoder("fast")
    here = train_router(training, encoder, recipe, say=lambda _: None)
    with open_engine("dask", workers=2) as cluster:
        assert isinstance(cluster, DaskEngine)
        engine = Killer(cluster.client)
        object.__setattr__(engine, "killed", [])
        there = train_router(training, encoder, recipe, say=lambda _: None, engine=engine)
        assert len(engine.killed) == 2
    asked = np.random.default_rng(0).normal(size=(200, 284)) * 0.05
    differ = np.abs(here.artifact.predictor.predict(asked) - there.artifact.predictor.predict(asked))
    assert differ.max() < 0.02
    assert there.artifact.default_threshold == pytest.approx(here.artifact.default_threshold, abs=0.01)
    assert there.held_out.get("apgr").value == pytest.approx(here.held_out.get("apgr").value, abs=0.005)
    # Single precision on the cluster and double here is all that differs: with single precision in both, nothing does.
    monkeypatch.setattr(inputs_module, "MANY_ROWS", 1)
    single = train_router(training, encoder, recipe, say=lambda _: None)
    np.testing.assert_allclose(single.artifact.predictor.predict(asked), there.artifact.predictor.predict(asked), atol=1e-6)
    assert replace(single.artifact, metrics={}).default_threshold == pytest.approx(there.artifact.default_threshold, abs=1e-9)


@pytest.mark.slow
@inside_dask
def test_work_goes_on_after_all_workers_died_and_what_they_shared_with_them() -> None:
    pytest.importorskip("distributed")
    with open_engine("dask", workers=2) as cluster:
        assert isinstance(cluster, DaskEngine)
        found = []
        for number, (value, _) in enumerate(cluster.map(plus, np.ones(1000), range(40))):
            found.append(value)
            if number == 3:
                for victim in cluster.client.run(os.getpid).values():
                    os.kill(victim, signal.SIGKILL)
        assert found == [1000.0 + i for i in range(40)]


@pytest.mark.slow
@inside_dask
def test_workers_of_other_versions_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("training.engine.package_versions", lambda names: {"numpy": "0.1"})
    with pytest.raises(EngineError, match=r"worker tcp://\S+ has numpy \d.*, here it is 0\.1"), open_engine("dask", workers=1):
        pass


@pytest.mark.slow
@inside_dask
def test_a_scheduler_without_workers_says_how_to_start_some(monkeypatch: pytest.MonkeyPatch) -> None:
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr("training.engine._PATIENCE_SECONDS", 1.0)
    with distributed.LocalCluster(n_workers=0, dashboard_address=None) as cluster:
        address = cluster.scheduler_address
        with (
            pytest.raises(EngineError, match=f"{address} has no workers: .*`dask worker"),
            open_engine("dask", scheduler=address),
        ):
            pass


def test_the_command_looks_for_its_cluster_before_it_reads_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from typer.testing import CliRunner

    from interlock.cli import app

    monkeypatch.setitem(sys.modules, "distributed", None)
    arguments = ["train", "--data", str(tmp_path / "nowhere"), "--output", str(tmp_path / "router"), "--weak", "a", "--strong", "b"]
    assert isinstance(CliRunner().invoke(app, [*arguments, "--engine", "dask"]).exception, EngineError)
    assert "goes with --engine dask" in str(CliRunner().invoke(app, [*arguments, "--scheduler", "tcp://127.0.0.1:9"]).exception)
