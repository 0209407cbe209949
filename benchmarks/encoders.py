"""Latency and memory of the encoders on one core: ``python benchmarks/encoders.py [--json] [NAME ...]``.

Each encoder is measured in a process of its own, so that its peak memory is its own. Texts are repeated real-looking sentences in
four scripts, cut to the wished number of full-encoder tokens (about four characters each).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from typing import Any

TOKENS = (20, 200, 2_000, 32_000)
CHARACTERS_PER_TOKEN = 3.6
SENTENCES = (
    "Write a function that merges two sorted lists and explain why it terminates. ",
    "Warum liefert diese Abfrage doppelte Zeilen, obwohl ich nach Kunden gruppiere? ",
    "Объясни разницу между процессом и потоком и приведи короткий пример. ",
    "في أي سنة افتتح المتحف وكم عدد الزوار في الشهر الأول؟ ",
)
BUDGET_SECONDS = 4.0


def text_of(tokens: int) -> str:
    """A text of about that many tokens."""
    block = "".join(SENTENCES)
    wanted = int(tokens * CHARACTERS_PER_TOKEN)
    return (block * (wanted // len(block) + 1))[:wanted]


def percentile(times: list[float], share: float) -> float:
    """In milliseconds."""
    return sorted(times)[min(len(times) - 1, int(share * len(times)))] * 1e3


def measure(name: str) -> dict[str, Any]:
    """Load time, memory and latency of one encoder in this process."""
    from router.files.encoders import load_encoder

    started = time.perf_counter()
    encoder = load_encoder(name, threads=1)
    loaded = time.perf_counter() - started
    rows = []
    for tokens in TOKENS:
        text = text_of(tokens)
        for _ in range(3):
            encoder.encode([text])
        times: list[float] = []
        spent: list[float] = []
        while sum(times) < BUDGET_SECONDS and len(times) < 2_000:
            before, before_cpu = time.perf_counter(), time.process_time()
            encoder.encode([text])
            times.append(time.perf_counter() - before)
            spent.append(time.process_time() - before_cpu)
        row = {"tokens": tokens, "p50_ms": percentile(times, 0.5), "p99_ms": percentile(times, 0.99)}
        rows.append({**row, "cpu_p50_ms": percentile(spent, 0.5), "n": len(times)})
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"encoder": name, "load_s": loaded, "peak_rss_mb": memory, "latency": rows}


def measure_apart(name: str) -> dict[str, Any]:
    """The same in a fresh process with one thread."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    command = [sys.executable, __file__, "--one", name]
    result = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if result.returncode:
        raise SystemExit(f"error: {name}: {result.stderr.strip().splitlines()[-1]}")
    measured: dict[str, Any] = json.loads(result.stdout)
    return measured


def print_table(results: list[dict[str, Any]]) -> None:
    """For people; ``x`` is the processor time relative to the first encoder, which says more where the core is shared."""
    first = {row["tokens"]: row["cpu_p50_ms"] for row in results[0]["latency"]}
    for result in results:
        print(f"{result['encoder']}: loads in {result['load_s']:.2f} s, peak {result['peak_rss_mb']:.0f} MB")
        for row in result["latency"]:
            ratio = row["cpu_p50_ms"] / first[row["tokens"]]
            wall = f"p50 {row['p50_ms']:8.3f} ms  p99 {row['p99_ms']:8.3f} ms"
            print(f"  {row['tokens']:>6} tokens  {wall}  processor {row['cpu_p50_ms']:8.3f} ms  {ratio:6.1f} x")


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=["fast", "full"])
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one)))
        return
    results = [measure_apart(name) for name in arguments.names]
    if arguments.json:
        print(json.dumps(results, indent=2))
    else:
        print_table(results)


if __name__ == "__main__":
    main()
