from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from interlock.cli import main
from router.errors import InvalidInput
from training.compare import Comparison, Side, aligned, compare, read_side
from training.compare.paired import bootstrap_p_value, holm, mcnemar
from training.decisions import decision_table
from training.evaluate import EvaluationOptions, evaluate_predictions
from training.predictions import Predictions
from training.report import write_evaluation
from training.report.comparison import comparison_files, write_comparison

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import make_rows, predictions_of

QUICK = EvaluationOptions(n_bootstrap=200)
Capture = pytest.CaptureFixture[str]


def predictions_with(rows: pd.DataFrame, noise: float, seed: int = 0, threshold: float = 0.5) -> Predictions:
    """A router that sees the gain through noise."""
    gain = (rows["strong"] - rows["weak"]).to_numpy()
    return predictions_of(np.clip(0.5 + 0.4 * gain + np.random.default_rng(seed).normal(0, noise, len(rows)), 0, 1), threshold)


def side(name: str, rows: pd.DataFrame, noise: float, seed: int = 0) -> Side:
    about = {"weak": "small", "strong": "large", "threshold": 0.5, "margin": 0.0}
    return Side(name, decision_table(rows, predictions_with(rows, noise, seed)), about)


@pytest.fixture(scope="module")
def better() -> Comparison:
    rows = make_rows()
    a, b, notes = aligned(side("old", rows, 1.0), side("<new>", rows, 0.2, 1))
    return compare(a, b, options=QUICK, notes=notes)


def test_a_better_router_is_found_better(better: Comparison) -> None:
    for metric, mode in (("apgr", "ranking"), ("quality", "equal"), ("routing_accuracy", "own")):
        row = better.row(metric, mode)
        assert row["value"] == pytest.approx(row["b"] - row["a"])
        assert 0 < row["low"] < row["value"] < row["high"]
        assert row["p"] < 0.05
    assert better.row("strong_share", "own")["b"] != better.row("strong_share", "own")["a"]
    pooled = better.disagreements.iloc[0]
    assert pooled["right_only_b"] > pooled["right_only_a"]
    assert pooled["p"] < 0.05
    assert pooled["differ"] == pooled["strong_only_a"] + pooled["strong_only_b"]


def test_equal_share_means_equal_calls(better: Comparison) -> None:
    own = better.row("strong_share", "own")
    assert better.about["equal_share"] == pytest.approx((own["a"] + own["b"]) / 2)
    saved = better.row("cost_savings", "equal")
    assert saved["value"] == pytest.approx(0, abs=1e-9)
    assert saved["a"] == pytest.approx(0.75 * (1 - better.about["equal_share"]))


def test_a_router_is_no_better_than_itself() -> None:
    rows = make_rows(120)
    one = side("one", rows, 0.5)
    found = compare(*aligned(one, one)[:2], options=QUICK)
    known = found.differences[found.differences["value"].notna()]
    assert known[["value", "low", "high"]].to_numpy(dtype=float) == pytest.approx(0, abs=1e-12)
    assert set(known["p"]) == {1.0}
    assert found.disagreements["note"].iloc[0] == "undefined: both are right on the same prompts"


def test_routers_that_differ_by_luck_are_not_told_apart() -> None:
    rejected = 0
    for seed in range(12):
        rows = make_rows(100, seed).assign(source="one", family="English", capability="reasoning")
        a, b, _ = aligned(side("a", rows, 9.0, 2 * seed + 100), side("b", rows, 9.0, 2 * seed + 101))
        rejected += compare(a, b, options=EvaluationOptions(n_bootstrap=100, min_rows=100)).row("apgr", "ranking")["p"] < 0.05
    assert rejected <= 3


def test_families_are_corrected_together_and_thin_ones_have_no_figure(better: Comparison) -> None:
    table = better.differences
    part = table[(table["slice_kind"] == "family") & (table["mode"] == "ranking") & (table["metric"] == "apgr")]
    known = part[part["p"].notna()]
    assert known["p_holm"].tolist() == pytest.approx(holm(known["p"].tolist()))
    assert part.set_index("slice").loc["Semitic", "note"].startswith("too few rows")
    assert part.set_index("slice").loc["Semitic", "a"] is None or np.isnan(part.set_index("slice").loc["Semitic", "a"])


def test_the_files_agree_and_load_nothing(better: Comparison, tmp_path: Path) -> None:
    files = comparison_files(better)
    assert set(files) == {"comparison.html", "comparison.json", "differences.csv", "disagreements.csv", "curve.csv"}
    page = files["comparison.html"].decode()
    assert "http" not in page
    assert "&lt;new&gt;" in page
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)
    assert page.count("<caption") == page.count("<table")
    assert not re.search(r"(?<![\w-])(?:nan|NaN|inf|None)(?![\w-])", page.partition("</style>")[2])
    data = json.loads(files["comparison.json"])
    table = pd.read_csv(io.BytesIO(files["differences.csv"]))
    assert len(table) == len(data["differences"])
    assert files == comparison_files(better)
    write_comparison(better, tmp_path / "out")
    write_comparison(better, tmp_path / "out")


def test_other_prompts_are_refused_or_left_out() -> None:
    rows = make_rows()
    a, b = side("a", rows, 0.5), side("b", rows.iloc[40:].reset_index(drop=True), 0.5, 1)
    with pytest.raises(InvalidInput, match=r"not on the same prompts: 40 are only in A and 0 only in B .*360 that both have with --common"):
        aligned(a, b)
    left, right, notes = aligned(a, b, common=True)
    assert len(left.decisions) == len(right.decisions) == 360
    assert (left.decisions["prompt_id"] == right.decisions["prompt_id"]).all()
    assert notes == ["compared on the 360 prompts that both have; A has 400 and B 360"]
    with pytest.raises(InvalidInput, match="share no prompt"):
        aligned(a, side("c", rows.assign(source="elsewhere"), 0.5), common=True)


def test_other_scores_costs_groups_and_targets() -> None:
    rows = make_rows(100)
    a = side("a", rows, 0.5)
    with pytest.raises(InvalidInput, match=r"100 prompts have other scores in A than in B, such as .*same pair of models"):
        aligned(a, side("b", rows.assign(weak=1 - rows["weak"]), 0.5))
    dearer = aligned(a, side("b", rows.assign(strong_cost_usd=9.0), 0.5))
    assert "different costs" in dearer[2][0]
    assert compare(*dearer[:2], options=QUICK).row("cost_savings", "own")["note"] == "undefined: no prices and no costs are known"
    halves = aligned(a, side("b", rows.assign(group=[f"h{(i + 1) // 2}" for i in range(100)]), 0.5))
    assert "groups that share a prompt were joined" in halves[2][0]
    assert halves[0].decisions["group"].nunique() == 1
    other = aligned(a, side("b", rows.assign(target=0.3), 0.5))
    assert "different targets" in other[2][0]
    assert set(other[0].decisions["target"]) == {0.0, 1.0}


def test_holm_and_p_values() -> None:
    assert holm([0.01, None, 0.04, 0.03]) == [pytest.approx(0.03), None, pytest.approx(0.06), pytest.approx(0.06)]
    assert holm([0.9, 0.8]) == [1.0, 1.0]
    assert bootstrap_p_value(np.zeros(99)) == 1.0
    assert bootstrap_p_value(np.ones(99)) == pytest.approx(0.02)
    assert bootstrap_p_value(np.full(99, np.nan)) is None
    assert bootstrap_p_value(np.empty(0)) is None


def test_mcnemar() -> None:
    right_a = np.repeat([True, False, True], [10, 25, 40])
    right_b = np.repeat([False, True, True], [10, 25, 40])
    alone = mcnemar(right_a, right_b, np.arange(75))
    assert (alone.only_a, alone.only_b, alone.note) == (10, 25, "exact")
    assert alone.p == pytest.approx(stats.binomtest(10, 35).pvalue)
    doubled = mcnemar(np.repeat(right_a, 2), np.repeat(right_b, 2), np.repeat(np.arange(75), 2))
    assert doubled.note == "by group sums"
    assert doubled.p == pytest.approx(stats.chi2.sf(15**2 / 35, 1))
    few = mcnemar(np.repeat(right_a, 2)[:10], np.repeat(right_b, 2)[:10], np.zeros(10, dtype=np.intp))
    assert few.p is None
    assert "only 1 groups" in few.note


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["interlock", "compare", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("compare")
    rows = make_rows(150)
    for seed, (name, noise) in enumerate({"a": 0.9, "b": 0.2}.items()):
        options, about = EvaluationOptions(n_bootstrap=0), {"weak": "small", "strong": "large"}
        write_evaluation(evaluate_predictions(rows, predictions_with(rows, noise, seed), options=options, about=about), root / name)
    return root


def test_the_command_compares_reports(reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    assert _run(monkeypatch, reports / "a", reports / "b", "--bootstrap", 100, "--output", tmp_path / "out") == 0
    said = capsys.readouterr().out
    assert re.search(r"APGR +0\.\d{3} +0\.\d{3} +\+0\.\d{3} +\+0\.\d{3} to \+0\.\d{3}", said)
    assert "decisions that differ: " in said
    about = json.loads((tmp_path / "out" / "comparison.json").read_text(encoding="utf-8"))["about"]
    assert about["a"]["name"] == str(reports / "a")
    assert about["command"].startswith("interlock compare ")


def test_reports_that_cannot_be_read_are_named(reports: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture, tmp_path: Path) -> None:
    for name, change in {"empty": {}, "broken": {"results.json": b"{"}, "old": {"decisions.parquet": None}}.items():
        folder = tmp_path / name
        folder.mkdir()
        if name != "empty":
            for file in ("results.json", "decisions.parquet"):
                (folder / file).write_bytes((reports / "a" / file).read_bytes())
        for file, content in change.items():
            if content is None:
                (folder / file).unlink()
            else:
                (folder / file).write_bytes(content)
        assert _run(monkeypatch, reports / "a", folder, "--output", tmp_path / "out") == 2
        said = capsys.readouterr().err
        assert said.startswith("error: ")
        assert said.count("\n") == 1
        assert str(folder) in said
        assert not (tmp_path / "out").exists()


def test_a_damaged_table_is_named(reports: Path, tmp_path: Path) -> None:
    (tmp_path / "results.json").write_bytes((reports / "a" / "results.json").read_bytes())
    table = pd.read_parquet(reports / "a" / "decisions.parquet")
    for damaged, message in (
        (table.drop(columns=["need"]), "lacks column 'need'"),
        (pd.concat([table, table.iloc[:1]]), "has a prompt twice"),
        (table.assign(weak=np.nan), "not a finite number"),
    ):
        damaged.to_parquet(tmp_path / "decisions.parquet")
        with pytest.raises(InvalidInput, match=message):
            read_side("x", tmp_path)
    (tmp_path / "decisions.parquet").write_bytes(b"nothing")
    with pytest.raises(InvalidInput, match="cannot be read as Parquet"):
        read_side("x", tmp_path)
