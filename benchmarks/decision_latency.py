"""How long a whole decision (``Router.route``) takes, and the memory it needs, by length and script, for several encoders.

    python -m benchmarks.decision_latency --encoders fast full --output runs/decision_latency.json

Every encoder runs in processes of its own on one thread; the processes alternate, so that a busy machine hurts all alike. The first encoder
is the one the others are compared with. Where no artefact of an encoder is at hand, seeded heads of realistic size stand in: the time does
not depend on the weights.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import Bands
from router.confidence import ResidualSample
from router.encoder import EncoderSpec, TextEncoder
from router.errors import RouterError
from router.features import FEATURE_NAMES
from router.files.artifacts import language_identifier, read_artifact, read_catalog
from router.files.encoders import load_encoder
from router.languages import estimate_tokens
from router.requirements import CAPABILITIES, Calibration, Head, LinearHead, MeanHead, RequirementsPredictor, TreeHead
from router.route import Router
from router.types import Conversation

LENGTHS: Final = (20, 200, 2_000, 32_000)
VARIANTS: Final = 24
TARGETS_MS: Final = {"fast": 2.0, "full": 45.0}  # p50 at 200 tokens on one core
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
# Our own sentences; a number in each keeps two texts from being equal.
SENTENCES: Final[dict[str, tuple[str, ...]]] = {
    "latin": (
        "The nightly job stops after {} records and leaves the lock file behind.",
        "Please find out why, and write a test that fails before the fix.",
        "Compare version {} with the one before it and list what a caller would notice.",
        "Explain each step as you would to a colleague who joined last week.",
    ),
    "han": (
        "夜间任务在处理{}条记录后停止,并且没有删除锁文件。",
        "请找出原因,并写一个在修复之前会失败的测试。",
        "比较第{}版和上一版,列出调用者会注意到的变化。",
        "请像对上周刚加入的同事那样解释每一步。",
    ),
    "arabic": (
        "تتوقف المهمة الليلية بعد {} سجلا وتترك ملف القفل خلفها.",
        "ابحث عن السبب واكتب اختبارا يفشل قبل الإصلاح.",
        "قارن الإصدار {} بالإصدار الذي قبله واذكر ما سيلاحظه المستخدم.",
        "اشرح كل خطوة كما تشرحها لزميل انضم الأسبوع الماضي.",
    ),
    "devanagari": (
        "रात का काम {} रिकॉर्ड के बाद रुक जाता है और लॉक फ़ाइल छोड़ जाता है।",
        "कारण खोजिए और ऐसा परीक्षण लिखिए जो सुधार से पहले विफल हो।",
        "संस्करण {} की पिछले संस्करण से तुलना कीजिए और बदलाव गिनाइए।",
        "हर कदम ऐसे समझाइए जैसे पिछले सप्ताह आए साथी को समझाते हैं।",
    ),
    "thai": (
        "งานกลางคืนหยุดหลังจากประมวลผล {} รายการและทิ้งไฟล์ล็อกไว้",
        "ช่วยหาสาเหตุและเขียนการทดสอบที่ล้มเหลวก่อนการแก้ไข",
        "เปรียบเทียบรุ่น {} กับรุ่นก่อนหน้าแล้วบอกสิ่งที่ผู้ใช้จะสังเกตเห็น",
        "อธิบายทีละขั้นเหมือนอธิบายให้เพื่อนร่วมงานที่เพิ่งเข้ามาเมื่อสัปดาห์ก่อน",
    ),
    "code": (
        "for i in range({}):\n    total += values[i] * weights.get(i, 0.0)\n",
        "def load(path: str) -> dict[str, int]:\n    with open(path) as file:\n        return json.load(file)\n",
        "if response.status != {}:\n    raise RuntimeError(response.text)\n",
        "Why does this return None instead of the parsed rows?\n",
    ),
}


class TimedEncoder:
    """Passes texts on and keeps the time that took."""

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self.seconds = 0.0

    @property
    def spec(self) -> EncoderSpec:
        """What the encoder is."""
        return self._encoder.spec

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of the encoder."""
        started = time.perf_counter()
        vectors = self._encoder.encode(texts)
        self.seconds = time.perf_counter() - started
        return vectors


def text_of(script: str, tokens: int, seed: int) -> str:
    """About ``tokens`` tokens of one script, different for every seed."""
    rng = random.Random(f"{script}/{tokens}/{seed}")
    pieces: list[str] = []
    size = 0
    while size < tokens:
        piece = rng.choice(SENTENCES[script]).format(rng.randrange(10, 10_000))
        pieces.append(piece)
        size += estimate_tokens(piece)
    return " ".join(pieces)


def artifact_for(spec: EncoderSpec, folder: Path | None) -> tuple[RouterArtifact, str]:
    """The artefact of the folder (default: the shipped one) if it is of this encoder, else seeded heads."""
    try:
        artifact, name = read_artifact(folder)
        if artifact.encoder.fingerprint == spec.fingerprint:
            return artifact, name
    except RouterError:
        if folder is not None:
            raise
    return seeded_artifact(spec), "seeded"


def seeded_artifact(spec: EncoderSpec, trees: int = 200, depth: int = 5) -> RouterArtifact:
    """Linear and tree heads of the size that training makes."""
    rng = np.random.default_rng(0)
    size, k = spec.dimension + len(FEATURE_NAMES), len(CAPABILITIES)
    heads = tuple(MeanHead((LinearHead(rng.normal(size=size) / 20, 0.0), _seeded_trees(rng, size, trees, depth))) for _ in range(k))
    curve = Calibration(np.array([-3.0, 3.0]), np.array([0.05, 0.95]))
    residuals = ResidualSample(np.array([0.3, 0.6]), rng.normal(size=(3, 256, k)) * 0.15)
    predictor = RequirementsPredictor(CAPABILITIES, heads, (curve,) * k)
    return RouterArtifact(spec, predictor, Bands(np.full(k, 0.1), np.full(k, 0.8)), residuals)


def _seeded_trees(rng: np.random.Generator, size: int, trees: int, depth: int) -> Head:
    inner, nodes = 2**depth - 1, 2 ** (depth + 1) - 1
    own = np.arange(nodes)
    left = np.where(own < inner, 2 * own + 1, own).astype(np.int32)
    right = np.where(own < inner, 2 * own + 2, own).astype(np.int32)
    return TreeHead(
        feature=rng.integers(0, size, (trees, nodes)).astype(np.int32),
        threshold=rng.normal(size=(trees, nodes)) / 10,
        left=np.tile(left, (trees, 1)),
        right=np.tile(right, (trees, 1)),
        value=rng.normal(size=(trees, nodes)) / 20,
        bias=0.0,
        depth=depth,
    )


def measure(encoder_name: str, folder: Path | None, lengths: Sequence[int], repeats: int) -> dict[str, Any]:
    """Times in this process, in milliseconds, and its memory in MiB."""
    base = _rss_mib()
    encoder = TimedEncoder(load_encoder(encoder_name, threads=1))
    artifact, name = artifact_for(encoder.spec, folder)
    router = Router(artifact, encoder, read_catalog(), None, language_identifier())
    for script in SENTENCES:
        router.route(Conversation.from_text(text_of(script, 200, -1)))
    loaded = _rss_mib()
    cells = {f"{script}/{length}": _cell(router, encoder, script, length, repeats) for length in lengths for script in SENTENCES}
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 2**20)
    memory = {"before_mib": base, "loaded_mib": loaded, "peak_mib": peak}
    return {"artifact": name, "spec": encoder.spec.to_mapping(), "memory": memory, "cells": cells}


def _cell(router: Router, encoder: TimedEncoder, script: str, length: int, repeats: int) -> dict[str, list[float]]:
    conversations = [Conversation.from_text(text_of(script, length, seed)) for seed in range(VARIANTS)]
    whole, encoding, processor = [], [], []
    for turn in range(repeats):
        conversation = conversations[turn % VARIANTS]
        started, started_processor = time.perf_counter(), time.thread_time()
        router.route(conversation)
        whole.append((time.perf_counter() - started) * 1e3)
        processor.append((time.thread_time() - started_processor) * 1e3)
        encoding.append(encoder.seconds * 1e3)
    return {"whole_ms": whole, "encoder_ms": encoding, "processor_ms": processor}


def _rss_mib() -> float:
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20
    except OSError:
        return float("nan")


def run_rounds(encoders: Sequence[str], arguments: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Alternate the encoders, each time in a new process."""
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in encoders}
    for round_ in range(arguments.rounds):
        for name in encoders:
            print(f"round {round_ + 1} of {arguments.rounds}: {name}", file=sys.stderr, flush=True)
            command = [sys.executable, "-m", "benchmarks.decision_latency", "--worker", name, "--repeats", str(arguments.repeats)]
            command += ["--lengths", *map(str, arguments.lengths)] + (["--router", str(arguments.router)] if arguments.router else [])
            output = subprocess.run(command, stdout=subprocess.PIPE, check=False, env={**os.environ, **ONE_THREAD})
            if output.returncode != 0:
                raise SystemExit(f"error: the measurement of {name} ended with exit code {output.returncode}")
            results[name].append(json.loads(output.stdout))
    return results


def summarise(results: dict[str, list[dict[str, Any]]], lengths: Sequence[int]) -> dict[str, Any]:
    """Percentiles by encoder, length and script, and the ratio of every encoder to the first one of this run."""
    encoders: dict[str, Any] = {}
    for name, rounds in results.items():
        table = {}
        for length in lengths:
            cells = {script: _pool([one["cells"][f"{script}/{length}"] for one in rounds]) for script in SENTENCES}
            pooled = _pool(list(cells.values()))
            rest = np.array(pooled["whole_ms"]) - np.array(pooled["encoder_ms"])
            table[str(length)] = {
                **_percentiles(pooled["whole_ms"]),
                "processor_p50_ms": float(np.median(pooled["processor_ms"])),
                "encoder_p50_ms": float(np.median(pooled["encoder_ms"])),
                "rest_p50_ms": float(np.median(rest)),
                "scripts": {script: _percentiles(cell["whole_ms"]) for script, cell in cells.items()},
            }
        memory = {key: max(one["memory"][key] for one in rounds) for key in rounds[0]["memory"]}
        encoders[name] = {"artifact": rounds[0]["artifact"], "spec": rounds[0]["spec"], "memory": memory, "lengths": table}
    first = next(iter(encoders))
    for name, entry in encoders.items():
        for length, row in entry["lengths"].items():
            row[f"p50_ratio_to_{first}"] = row["p50_ms"] / encoders[first]["lengths"][length]["p50_ms"]
        entry["target_p50_ms_at_200"] = TARGETS_MS.get(name)
    return encoders


def _pool(cells: Sequence[dict[str, list[float]]]) -> dict[str, list[float]]:
    return {key: [sample for cell in cells for sample in cell[key]] for key in cells[0]}


def _percentiles(samples: Sequence[float]) -> dict[str, float]:
    p50, p99 = np.percentile(samples, [50, 99])
    return {"p50_ms": float(p50), "p99_ms": float(p99), "n": len(samples)}


def print_table(encoders: dict[str, Any]) -> None:
    """One row an encoder and length; cpu is processor time, which a busy machine inflates less."""
    first = next(iter(encoders))
    heads = {
        "tokens": 8,
        "p50 ms": 10,
        "p99 ms": 10,
        "cpu ms": 8,
        "encoder": 10,
        "rest": 8,
        f"p50 / {first}": 14,
        "slowest script": 26,
        "MiB": 8,
    }
    print(f"{'encoder':10}" + "".join(f"{head:>{width}}" for head, width in heads.items()))
    for name, entry in encoders.items():
        for length, row in entry["lengths"].items():
            slowest, worst = max(row["scripts"].items(), key=lambda item: item[1]["p50_ms"])
            worst_cell = f"{slowest} {worst['p50_ms']:.2f}"
            print(
                f"{name:10}{length:>8}{row['p50_ms']:>10.2f}{row['p99_ms']:>10.2f}{row['processor_p50_ms']:>8.2f}{row['encoder_p50_ms']:>10.2f}{row['rest_p50_ms']:>8.2f}"
                f"{row[f'p50_ratio_to_{first}']:>14.2f}{worst_cell:>26}{entry['memory']['peak_mib']:>8.0f}"
            )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encoders", nargs="+", default=["fast", "full"], help="fast, full, or a SentenceTransformer name or folder")
    parser.add_argument("--router", type=Path, help="artefact folder (default: the shipped one)")
    parser.add_argument("--lengths", nargs="+", type=int, default=list(LENGTHS), help="estimated tokens of the prompt")
    parser.add_argument("--repeats", type=int, default=60, help="decisions a script, length and round")
    parser.add_argument("--rounds", type=int, default=3, help="processes an encoder")
    parser.add_argument("--output", type=Path, default=Path("runs/decision_latency.json"))
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    arguments = parser.parse_args(argv)
    if arguments.worker:
        json.dump(measure(arguments.worker, arguments.router, arguments.lengths, arguments.repeats), sys.stdout)
        return
    load = os.getloadavg()[0]
    encoders = summarise(run_rounds(arguments.encoders, arguments), arguments.lengths)
    machine = {"platform": platform.platform(), "python": platform.python_version(), "cores": os.cpu_count(), "load_before": load}
    arguments.output.parent.mkdir(parents=True, exist_ok=True)
    staging = arguments.output.with_suffix(".partial")
    staging.write_text(json.dumps({"machine": machine, "encoders": encoders}, indent=2) + "\n")
    os.replace(staging, arguments.output)
    print_table(encoders)
    print(f"written to {arguments.output}; load average before: {load:.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    main()
