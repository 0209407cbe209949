from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from interlock.cli import main
from router.artifact import RouterArtifact
from router.catalog import Bands
from router.confidence import ResidualSample
from router.features import FEATURE_NAMES
from router.files.artifacts import write_artifact
from router.files.encoders import load_encoder
from router.requirements import CAPABILITIES, Calibration, LinearHead, RequirementsPredictor

PAIR = ("--weak", "small", "--strong", "large")
Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder and an artefact: the longer a prompt, the more it needs, and so it is."""
    root = tmp_path_factory.mktemp("evaluate")
    data = root / "data"
    data.mkdir()
    prompts, outcomes = [], []
    for i in range(80):
        turns = [{"role": "user", "content": f"Frage {i} " + "über den Fluss und die Stadt " * (1 + i % 8)}]
        prompts.append({"source": "mine", "prompt_id": f"p{i}", "language": "de", "task_kind": "code", "turns": turns, "group": f"g{i}"})
        for model, score in (("small", float(i % 8 < 4)), ("large", 1.0)):
            outcomes.append({"source": "mine", "prompt_id": f"p{i}", "model": model, "score_kind": "exact", "score": score})
    for name, rows in (("prompts", prompts), ("outcomes", outcomes)):
        (data / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    encoder = load_encoder("fast")
    weights = np.zeros(encoder.spec.dimension + len(FEATURE_NAMES))
    weights[encoder.spec.dimension + FEATURE_NAMES.index("log_letters")] = 1.0
    heads = tuple(LinearHead(weights, -4.6) for _ in CAPABILITIES)
    calibration = Calibration(np.array([-1.5, 1.5]), np.array([0.0, 1.0]))
    write_artifact(
        RouterArtifact(
            encoder.spec,
            RequirementsPredictor(CAPABILITIES, heads, (calibration,) * len(CAPABILITIES)),
            Bands(np.full(4, 0.1), np.full(4, 0.9)),
            ResidualSample(np.array([0.5]), np.zeros((2, 4, 4))),
            card={"sources": [{"source": "mine"}]},
        ),
        root / "router",
    )
    return root


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["interlock", "evaluate", *map(str, arguments), "--no-tracking"])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_report_from_files(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    out = folder / "report"
    prices = ("--weak-prices", "1,1", "--strong-prices", "4,4")
    inputs = ("--data", folder / "data", "--router", folder / "router", *PAIR, *prices)
    assert _run(monkeypatch, *inputs, "--bootstrap", 50, "--threshold", 1.75, "--output", out) == 0
    results = json.loads((out / "results.json").read_text(encoding="utf-8"))
    mine = [e for e in results["estimates"] if (e["slice_kind"], e["slice"], e["policy"]) == ("pooled", "all", "router")]
    pooled = {e["metric"]: e for e in mine}
    assert pooled["auc"]["value"] == 1
    assert pooled["apgr"]["value"] == pytest.approx(0.75)
    assert pooled["cost_savings"]["value"] > 0
    assert "trained on prompts of mine" in results["about"]["warning"]
    assert results["about"]["command"].startswith("interlock evaluate --data")
    assert "trained on prompts of mine" in (out / "report.html").read_text(encoding="utf-8")
    assert pd.read_csv(out / "by_family.csv")["slice"].unique().tolist() == ["Germanic"]
    said = capsys.readouterr()
    assert "APGR                     0.750" in said.out
    assert str(out / "report.html") in said.out


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")  # inside MLflow
def test_the_report_is_logged(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    from mlflow import MlflowClient

    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    monkeypatch.chdir(tmp_path)
    arguments = ["--data", folder / "data", "--router", folder / "router", *PAIR, "--bootstrap", 10, "--output", "report"]
    monkeypatch.setattr(sys, "argv", ["interlock", "evaluate", *map(str, arguments), "--tracking-uri", store])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    run_id = capsys.readouterr().out.rsplit("MLflow run ", 1)[1].strip()
    client = MlflowClient(store)
    run = client.get_run(run_id)
    assert run.data.metrics["pooled/all/apgr"] == pytest.approx(0.75)
    assert run.data.params["seed"] == "0"
    assert run.data.params["command"].startswith("interlock evaluate --data")
    assert "report/report.html" in {item.path for item in client.list_artifacts(run_id, "report")}
    text = (tmp_path / "report" / "report.html").read_text(encoding="utf-8")
    assert "<dt>python</dt>" in text


def test_two_artefacts_are_compared_on_data(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    sides = (folder / "router", folder / "router")
    inputs = (*sides, "--data", folder / "data", *PAIR, "--bootstrap", 20, "--output", tmp_path / "out")
    monkeypatch.setattr(sys, "argv", ["interlock", "compare", *map(str, inputs)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert not ended.value.code
    assert "decisions that differ: 0 of 80" in capsys.readouterr().out
    assert (tmp_path / "out" / "comparison.html").is_file()
    for extra, message in (((), "say with --data what to evaluate it on"), (("--data", "nowhere"), "nowhere")):
        monkeypatch.setattr(sys, "argv", ["interlock", "compare", *map(str, (*sides, *extra, "--output", tmp_path / "none"))])
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        assert message in capsys.readouterr().err
        assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--weak", "smal", "--strong", "large"), "unknown model 'smal'"),
        (("--weak", "small"), "--weak and --strong go together"),
        (("--weak", "small", "--strong", "small"), "same model"),
        (("--weak", "large", "--strong", "small"), "one class only"),
        ((), "no pair of models"),
        ((*PAIR, "--source", "yours"), "unknown source 'yours'"),
        ((*PAIR, "--score-kind", "judge"), "judge"),
        ((*PAIR, "--weak-prices", "1,2"), "go together"),
        ((*PAIR, "--weak-prices", "cheap", "--strong-prices", "1,2"), "--weak-prices is 'cheap'"),
        ((*PAIR, "--router", "/nowhere"), "no router artefact in /nowhere"),
        ((*PAIR, "--catalog", "/nowhere.yaml"), "no catalog at /nowhere.yaml"),
        (("--recipe", "/nowhere.toml"), "no recipe at /nowhere.toml"),
        (("--prompts", "p.jsonl"), "go together"),
        ((*PAIR, "--encoder", "full"), "say what --cv trains with"),
        ((*PAIR, "--encoder-prefix", "query: "), "say what --cv trains with"),
        ((*PAIR, "--baselines", "all"), "add --cv"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    options: tuple[str, ...],
    message: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
    tmp_path: Path,
) -> None:
    router = () if "--router" in options else ("--router", folder / "router")
    assert _run(monkeypatch, "--data", folder / "data", *router, *options, "--output", tmp_path / "report") == 2
    said = capsys.readouterr()
    assert said.err.startswith("error: ")
    assert said.err.count("\n") == 1
    assert message in said.err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("text", "message"), [("", "no rows"), ('{"source": "mine"}', "column"), ("<html>", "not JSON")])
def test_a_broken_table_is_named(
    text: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    table = tmp_path / "outcomes.jsonl"
    table.write_text(text, encoding="utf-8")
    tables = ("--prompts", folder / "data" / "prompts.jsonl", "--outcomes", table)
    assert _run(monkeypatch, *tables, "--router", folder / "router", *PAIR, "--output", tmp_path / "report") == 2
    said = capsys.readouterr().err
    assert message in said
    assert "outcomes.jsonl" in said
    assert not (tmp_path / "report").exists()


def test_someone_elses_folder_is_left_alone(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    assert _run(monkeypatch, "--data", folder / "data", *PAIR, "--output", tmp_path) == 2
    assert "holds other files" in capsys.readouterr().err


def test_a_gate_decides_the_exit_code_after_the_report(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    out, gate = folder / "gated", folder / "gate.toml"
    inputs = ("--data", folder / "data", "--router", folder / "router", *PAIR, "--bootstrap", 20, "--threshold", 1.75, "--output", out)
    gate.write_text("[overall]\napgr_min = 0.5\n", encoding="utf-8")
    assert _run(monkeypatch, *inputs, "--gate", gate) == 0
    assert "gate: 1 of 1 conditions met" in capsys.readouterr().out
    gate.write_text("[overall]\napgr_min = 1.9\n", encoding="utf-8")
    assert _run(monkeypatch, *inputs, "--gate", gate) == 3
    said = capsys.readouterr()
    assert "fail: all: APGR at least 1.9" in said.err
    assert "Gate: not passed" in (out / "report.html").read_text(encoding="utf-8")
    assert json.loads((out / "results.json").read_text(encoding="utf-8"))["gate"][0]["verdict"] == "fail"
    gate.write_text("[overall]\napgr_mix = 1\n", encoding="utf-8")
    assert _run(monkeypatch, *inputs, "--gate", gate) == 2
