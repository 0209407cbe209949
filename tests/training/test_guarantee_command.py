"""`interlock guarantee` from files to a router that serves with the promise."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from interlock.cli import main
from router.artifact import RouterArtifact
from router.catalog import Bands
from router.confidence import ResidualSample
from router.features import FEATURE_NAMES
from router.files.artifacts import read_artifact, write_artifact
from router.files.encoders import load_encoder
from router.requirements import CAPABILITIES, Calibration, LinearHead, RequirementsPredictor
from training.prompts import load_prompts
from training.seen import SEEN, seen_bytes

PAIR = ("--weak", "small", "--strong", "large")
Capture = pytest.CaptureFixture[str]
WORDS = {
    "de": "der Fluss über die Stadt und eine Brücke mit dem alten Haus für Kinder nicht weit vom Wald schreiben können wir heute morgen "
    "zwischen Bergen wieder schnell jedoch gegen Abend unter Bäumen keine Straße ohne Schnee bleibt ruhig während andere schlafen",
    "ru": "река через город который стоит на холме мост старый дом для детей недалеко от леса писать можем мы сегодня завтра между горами "
    "снова быстро однако вечером под деревьями нет улицы без снега остаётся тихо пока другие спят и думают о весне",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 prompts in each of two languages and an artefact: the longer a prompt, the more it needs, and so it is."""
    root = tmp_path_factory.mktemp("guarantee")
    write_data(root / "data", 200)
    write_data(root / "few", 10)
    encoder = load_encoder("fast")
    weights = np.zeros(encoder.spec.dimension + len(FEATURE_NAMES))
    weights[encoder.spec.dimension + FEATURE_NAMES.index("log_letters")] = 1.0
    heads = tuple(LinearHead(weights, -5.0) for _ in CAPABILITIES)
    calibration = Calibration(np.array([-2.0, 2.0]), np.array([0.0, 1.0]))
    artifact = RouterArtifact(
        encoder.spec,
        RequirementsPredictor(CAPABILITIES, heads, (calibration,) * len(CAPABILITIES)),
        Bands(np.full(4, 0.0), np.full(4, 1.0)),
        ResidualSample(np.array([0.5]), np.zeros((2, 4, 4))),
        card={"sources": [{"source": "mine"}]},
    )
    write_artifact(artifact, root / "router")
    first = load_prompts(root / "data").iloc[:100]
    write_artifact(artifact, root / "half-seen", {SEEN: seen_bytes(first)})
    write_artifact(artifact, root / "all-seen", {SEEN: seen_bytes(load_prompts(root / "data"))})
    return root


def write_data(folder: Path, count: int, **score: float) -> None:
    folder.mkdir()
    prompts, outcomes = [], []
    rng = np.random.default_rng(0)
    for i in range(count):
        for language, words in WORDS.items():
            prompt_id = f"{language}{i}"
            content = " ".join(rng.choice(words.split(), 6 * (1 + i % 8)))  # no two alike
            row = {"source": "mine", "prompt_id": prompt_id, "language": language, "task_kind": "code", "group": f"{language}-{i}"}
            prompts.append(row | {"turns": [{"role": "user", "content": content}]})
            for model, value in (("small", float(i % 8 < 4)), ("large", 1.0)):
                outcomes.append({"source": "mine", "prompt_id": prompt_id, "model": model, "score_kind": "exact", "score": value} | score)
    for name, rows in (("prompts", prompts), ("outcomes", outcomes)):
        (folder / f"{name}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["interlock", "guarantee", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_threshold_with_its_statement_and_a_router_that_has_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    out, saved = tmp_path / "guarantee.json", tmp_path / "router"
    prices = ("--weak-prices", "1,1", "--strong-prices", "4,4")
    inputs = ("--data", folder / "data", "--router", folder / "router", "--held-out", *PAIR, *prices)
    assert run(monkeypatch, *inputs, "--epsilon", 0.05, "--output", out, "--save-router", saved) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert found["kept"]
    assert found["overall"]["loss"] < 0.05
    assert found["overall"]["cost_savings"] > 0.3
    assert found["about"]["groups"] == 400
    assert found["command"].startswith("interlock guarantee --data")
    artifact, _ = read_artifact(saved)
    assert artifact.default_threshold == found["default_threshold"] > 0
    assert artifact.card["guarantee"]["statement"] == found["statement"]
    assert found["statement"] in (saved / "README.md").read_text(encoding="utf-8")
    assert found["statement"] in capsys.readouterr().out


def test_families_are_those_the_router_reads_and_serve_at_their_own_threshold(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    out, saved = tmp_path / "guarantee.json", tmp_path / "router"
    inputs = ("--data", folder / "data", "--router", folder / "router", "--held-out", *PAIR, "--epsilon", 0.05, "--per-family")
    assert run(monkeypatch, *inputs, "--output", out, "--save-router", saved) == 0
    found = json.loads(out.read_text(encoding="utf-8"))
    assert set(found["family_thresholds"]) == {"Germanic", "Slavic"}
    assert read_artifact(saved)[0].family_thresholds == found["family_thresholds"]


def test_what_the_router_was_fitted_on_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    inputs = ("--data", folder / "data", "--router", folder / "half-seen", *PAIR, "--epsilon", 0.05)
    saved = tmp_path / "router"
    assert run(monkeypatch, *inputs, "--output", tmp_path / "g.json", "--save-router", saved) == 0
    assert json.loads((tmp_path / "g.json").read_text())["about"]["prompts"] == 300
    assert "100 prompts were left out" in capsys.readouterr().err
    assert (saved / SEEN).read_bytes() == (folder / "half-seen" / SEEN).read_bytes()


def test_too_few_prompts_are_told_and_the_strictest_threshold_is_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    inputs = ("--data", folder / "few", "--router", folder / "router", "--held-out", *PAIR, "--epsilon", 0.05)
    assert run(monkeypatch, *inputs, "--output", tmp_path / "g.json") == 3
    found = json.loads((tmp_path / "g.json").read_text())
    assert (found["kept"], found["default_threshold"]) == (False, 0.0)
    assert "there are 20 groups of prompts" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--epsilon", 0.05), "was trained on prompts of mine and does not say on which ones"),
        (("--epsilon", 0.05, "--router", "all-seen"), "fitted on every one of these 400 prompts"),
        (("--epsilon", 2), "epsilon of the guarantee is 2.0"),
        (("--epsilon", 0.05, "--delta", 0), "delta of the guarantee is 0"),
        (("--epsilon", 0.05, "--router", "nowhere"), "no router artefact"),
        (("--epsilon", 0.05, "--strong", "huge"), "unknown model 'huge'"),
        ((), "Missing option '--epsilon'"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    options: tuple[object, ...], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    given = ["router" if "--router" not in options else "", *options]
    arguments = ["--data", folder / "data", "--output", tmp_path / "g.json", *PAIR[:2]]
    arguments += [] if "--strong" in options else list(PAIR[2:])
    arguments += ["--router", folder / "router"] if given[0] else []
    arguments += [folder / o if o in ("all-seen", "nowhere") else o for o in options]
    assert run(monkeypatch, *arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("error: ")
    assert said.count("\n") == 1
    assert message in said
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("score", "message"), [({"score": 1.0}, "one class only"), ({"score": float("nan")}, "column 'score' is nan")], ids=["identical", "NaN"]
)
def test_models_that_are_identical_and_scores_that_are_none_are_refused(
    score: dict[str, float], message: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path
) -> None:
    write_data(tmp_path / "data", 20, **score)
    arguments = ("--data", tmp_path / "data", "--router", folder / "router", "--held-out", *PAIR, "--epsilon", 0.05)
    assert run(monkeypatch, *arguments, "--output", tmp_path / "g.json") == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "g.json").exists()
