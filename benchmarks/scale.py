"""Time and memory of the whole pipeline by number of prompts: read, join, embed, fit and calibrate, evaluate, route.

``python -m benchmarks.scale --rows 10000 100000 1000000 --output runs/scale``

The data is generated (``benchmarks.scale_data``; its time is not counted) and goes through the functions that ``interlock train`` and
``interlock evaluate --router`` call, each number of rows in a process of its own. Memory is that of the process and its workers together,
sampled five times a second; pages that they share count once. A number of rows that ``scale.json`` has already is not measured again.
Nothing that an earlier run kept is used, unless ``--resume`` asks for it after an interruption; the result then says so.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import psutil

from benchmarks.scale_data import SAMPLE, write_data
from router.files.artifacts import write_artifact
from router.files.encoders import load_encoder
from training.assemble import assemble, load_tables
from training.embed import CachedEncoder
from training.engine import LocalEngine
from training.environment import environment
from training.evaluate_run import EvaluationPlan, evaluate_artifact
from training.recipe import read_recipe
from training.seen import SEEN, seen_bytes
from training.train import train_router

STAGES: Final = ("read", "join", "embed", "fit and calibrate", "evaluate", "route")
_RESULTS: Final = "scale.json"
_PAUSE_SECONDS: Final = 0.2
_FIELD: Final = re.compile(r"^(\w+): +(\d+) kB", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes that this process and its children hold: ``all`` of them, and ``own`` ones, which are no copy of a file on disk."""

    all: int
    own: int

    @classmethod
    def now(cls) -> Memory:
        """Proportional set size: a page that several processes share counts once (Linux, ``/proc/PID/smaps_rollup``)."""
        here = psutil.Process()
        total = own = 0
        for process in (here, *here.children(recursive=True)):
            try:
                found = dict(_FIELD.findall(Path(f"/proc/{process.pid}/smaps_rollup").read_text()))
            except (OSError, psutil.Error):  # ended meanwhile
                continue
            total += int(found.get("Pss", 0)) * 1024
            own += int(found.get("Pss_Anon", 0)) * 1024
        return cls(total, own)

    def most(self, other: Memory) -> Memory:
        """The larger of each."""
        return Memory(max(self.all, other.all), max(self.own, other.own))


@dataclass
class Meter:
    """Wall time, processor time and peak memory of every stage, of this process and its children."""

    stages: dict[str, dict[str, float]] = field(default_factory=dict)
    _peak: Memory = Memory(0, 0)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Measure what runs in the block."""
        self._peak, done = Memory.now(), threading.Event()
        watch = threading.Thread(target=self._watch, args=(done,), daemon=True)
        watch.start()
        wall, cpu = time.perf_counter(), _cpu()
        try:
            yield
        finally:
            seconds, used = time.perf_counter() - wall, _cpu() - cpu
            done.set()
            watch.join()
            peak = self._peak.most(Memory.now())
            found = {"seconds": seconds, "cpu_seconds": used, "peak_mb": peak.all / 2**20, "own_peak_mb": peak.own / 2**20}
            self.stages[name] = found
            said = f"peak {found['peak_mb']:.0f} MB, of which {found['own_peak_mb']:.0f} MB are no file"
            print(f"{name}: {seconds:.1f} s ({used:.1f} s of processor), {said}", flush=True)

    def _watch(self, done: threading.Event) -> None:
        while not done.wait(_PAUSE_SECONDS):
            self._peak = self._peak.most(Memory.now())


def _cpu() -> float:
    """Processor seconds of this process and its children, running ones too."""
    here = psutil.Process()
    times = here.cpu_times()
    total = times.user + times.system + times.children_user + times.children_system
    for process in here.children(recursive=True):
        try:
            used = process.cpu_times()
            total += used.user + used.system
        except psutil.Error:
            continue
    return float(total)


def measure(data: Path, rows: int, workers: int, resume: bool) -> dict[str, Any]:
    """Run the pipeline on the generated prompts in ``data``."""
    cache = data / "cache"
    os.environ["INTERLOCK_CACHE"] = str(cache)
    if cache.exists() and not resume:
        shutil.rmtree(cache)
    meter, engine = Meter(), LocalEngine(workers)
    recipe = read_recipe(data / "recipe.toml")
    folders = [data, SAMPLE]
    encoder = CachedEncoder(load_encoder("fast"))
    load = os.getloadavg()
    with meter.stage("read"):
        tables = load_tables(folders)
    with meter.stage("join"):
        training = assemble(*tables, recipe, folders)
    del tables
    trained = train_router(training, encoder, recipe, lambda said: print(said, flush=True), engine=engine, stage=meter.stage)
    artefact = data / "router"
    write_artifact(trained.artifact, artefact, {"README.md": b"generated\n", SEEN: seen_bytes(trained.fitted)})
    held_out = {name: trained.held_out.get(name).value for name in ("apgr", "auc", "ece")}
    fitted = trained.artifact.capabilities
    del training, trained
    with meter.stage("route"):
        plan = EvaluationPlan(*load_tables(folders), recipe, _catalog(), folders=tuple(folders))
        routed = evaluate_artifact(plan, artefact, engine=engine)
    return {
        "rows": rows,
        "resumed": resume,
        "workers": workers,
        "stages": meter.stages,
        "held_out": held_out,
        "routed": {name: routed.get(name).value for name in ("apgr", "auc", "strong_share")},
        "capabilities": list(fitted),
        "load_before": load,
        "load_after": os.getloadavg(),
        "environment": environment(),
    }


def _catalog() -> Any:
    from router.files.artifacts import read_catalog

    return read_catalog(None)


def run(rows: list[int], workers: int, output: Path, data: Path, resume: bool) -> list[dict[str, Any]]:
    """Measure what has not been, each in a process of its own, and give all there is."""
    path = output / _RESULTS
    output.mkdir(parents=True, exist_ok=True)
    found = {entry["rows"]: entry for entry in (json.loads(path.read_text()) if path.is_file() else [])}
    for n in rows:
        if n in found:
            continue
        folder = data / str(n)
        if not (folder / "recipe.toml").is_file():
            print(f"generating {n} prompts", flush=True)
            write_data(folder, n)
        one = folder / "measured.json"
        command = [sys.executable, "-m", "benchmarks.scale", "--one", str(n), "--workers", str(workers), "--data", str(data)]
        command += ["--resume"] * resume
        # One core a process: two workers are to be two cores, and a library that starts threads of its own would blur that.
        quiet = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        subprocess.run(command, check=True, env=os.environ | quiet)
        found[n] = json.loads(one.read_text())
        path.write_text(json.dumps([found[key] for key in sorted(found)], indent=1) + "\n")
    return [found[key] for key in sorted(found)]


def table(results: list[dict[str, Any]]) -> str:
    """Markdown: a line a stage, seconds and peak memory for every number of rows."""
    head = ["stage", *(f"{entry['rows']:,} rows" for entry in results)]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for stage in STAGES:
        cells = [f"{e['stages'][stage]['seconds']:.0f} s, {e['stages'][stage]['peak_mb'] / 1024:.2f} GB" for e in results]
        lines.append("| " + " | ".join([stage, *cells]) + " |")
    total = [sum(e["stages"][stage]["seconds"] for stage in STAGES) for e in results]
    peak = [max(e["stages"][stage]["peak_mb"] for stage in STAGES) for e in results]
    lines.append("| all | " + " | ".join(f"{s:.0f} s, {p / 1024:.2f} GB" for s, p in zip(total, peak, strict=True)) + " |")
    lines.append("| a prompt | " + " | ".join(f"{s / e['rows'] * 1e3:.2f} ms" for s, e in zip(total, results, strict=True)) + " |")
    return "\n".join(lines)


def plot(results: list[dict[str, Any]], path: Path) -> None:
    """Time and peak memory of every stage over the number of rows, on logarithmic axes, beside a line of slope one and the limits."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    rows = np.array([entry["rows"] for entry in results])
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    for stage in STAGES:
        left.plot(rows, [entry["stages"][stage]["seconds"] for entry in results], marker="o", label=stage)
        right.plot(rows, [entry["stages"][stage]["peak_mb"] / 1024 for entry in results], marker="o", label=stage)
    total = np.array([sum(entry["stages"][stage]["seconds"] for stage in STAGES) for entry in results])
    left.plot(rows, total, color="black", linewidth=2, marker="o", label="all")
    left.plot(rows, total[0] * rows / rows[0], color="grey", linestyle=":", label="linear")
    left.axhline(3600, color="firebrick", linestyle="--", linewidth=1, label="60 minutes")
    right.axhline(4, color="firebrick", linestyle="--", linewidth=1, label="4 GB")
    left.set(xscale="log", yscale="log", xlabel="prompts", ylabel="seconds", title="time")
    right.set(xscale="log", xlabel="prompts", ylabel="GB", title="peak memory, workers included", ylim=(0, None))
    left.legend(fontsize=8, loc="upper left")
    figure.savefig(path)
    plt.close(figure)


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--output", type=Path, default=Path("runs/scale"))
    parser.add_argument("--data", type=Path, help="where the generated prompts go; default: data in the output folder")
    parser.add_argument("--resume", action="store_true", help="go on with the inputs of a run that was interrupted")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    data = arguments.data or arguments.output / "data"
    if arguments.one is not None:
        measured = measure(data / str(arguments.one), arguments.one, arguments.workers, arguments.resume)
        (data / str(arguments.one) / "measured.json").write_text(json.dumps(measured))
        return
    results = run(arguments.rows, arguments.workers, arguments.output, data, arguments.resume)
    plot(results, arguments.output / "scale.svg")
    print(table(results))


if __name__ == "__main__":
    main()
