from __future__ import annotations

import importlib.util
import io
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

pytest.importorskip("openai", reason="labelling needs the train extra")

from training.label.config import LabelConfig, config_from_mapping
from training.label.progress import Progress
from training.label.prompts import LabelPrompt, label_prompts
from training.label.run import LabelRun, RunReport
from training.tables import Table


def _fake_server_module() -> ModuleType:
    # importlib mode puts no test folder on sys.path, so the helper is loaded by its place.
    spec = importlib.util.spec_from_file_location("label_fake_server", Path(__file__).with_name("fake_server.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def make_server() -> Iterator[Callable[..., Any]]:
    module, servers = _fake_server_module(), []

    def make(*args: Any) -> Any:
        servers.append(module.FakeServer(*args))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture
def server(make_server: Callable[..., Any]) -> Any:
    return make_server()


def prompts_of(*rows: dict[str, Any]) -> list[LabelPrompt]:
    return label_prompts(Table(pd.DataFrame(list(rows), dtype=object), ((0, "here", 1),)))


@pytest.fixture
def make_prompts() -> Callable[..., list[LabelPrompt]]:
    return prompts_of


def numeric_prompts(count: int) -> list[LabelPrompt]:
    rows = [
        {
            "prompt_id": f"n{i}",
            "messages": [{"role": "user", "content": f"What is 40 + {i}?"}],
            "capability": "reasoning",
            "language": "en",
            "grader": {"kind": "numeric", "answer": 40 + i},
            "max_tokens": 16,
        }
        for i in range(count)
    ]
    return prompts_of(*rows)


@pytest.fixture
def prompts() -> list[LabelPrompt]:
    return numeric_prompts(6)


def judged_prompt(**changes: Any) -> LabelPrompt:
    row = {"prompt_id": "j1", "messages": "Describe the sea.", "grader": {"kind": "judge", "rubric": "vivid"}, "language": "en"}
    return prompts_of({**row, **changes})[0]


@pytest.fixture
def make_judged() -> Callable[..., LabelPrompt]:
    return judged_prompt


def config_for(url: str, *, judge: bool = False, pool: bool = False, run: dict[str, Any] | None = None, **model: Any) -> LabelConfig:
    entries = [
        {"name": "big", "role": "strong", "base_url": url, "price_in_per_mtok": 1.0, "price_out_per_mtok": 2.0, **model},
        {"name": "small", "role": "weak", "base_url": url, **model},
    ]
    if pool:
        entries.append({"name": "tiny", "role": "pool", "base_url": url, **model})
    if judge:
        entries.append({"name": "referee", "role": "judge", "base_url": url, **model})
    settings = {"retries": 0, "timeout_s": 5, **(run or {})}
    return config_from_mapping({"models": entries, "run": settings}, "label.toml")


@pytest.fixture
def make_config() -> Callable[..., LabelConfig]:
    return config_for


@pytest.fixture
def run_label(tmp_path: Path) -> Callable[..., RunReport]:
    def run(config: LabelConfig, prompts: list[LabelPrompt], out: Path | None = None, **options: Any) -> RunReport:
        return LabelRun(config, prompts, out or tmp_path / "run", progress=Progress(io.StringIO()), **options).execute()

    return run


@pytest.fixture
def lines() -> Callable[[Path], list[dict[str, Any]]]:
    return lambda path: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
