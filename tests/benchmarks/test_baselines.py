from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from benchmarks.baselines.compare import POOLED, compare, holm, two_sided
from benchmarks.baselines.needs import OURS
from benchmarks.baselines.pools import _drawn, load_pool
from benchmarks.baselines.report import against_best, markdown, summary
from benchmarks.peers.exchange import export, run_peer
from router.errors import InvalidInput
from training.metrics import apgr


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Two sources with a gap that is learnable, and one in which the models are equal."""
    rng = np.random.default_rng(0)
    n = 600
    hard = rng.random(n) < 0.5
    source = np.repeat(["first", "second", "level"], n // 3)
    weak = (rng.random(n) < np.where(hard, 0.1, 0.8)).astype(float)
    strong = np.where(source == "level", weak, (rng.random(n) < 0.9).astype(float))
    group = [f"g{i // 2}" for i in range(n)]
    return pd.DataFrame({"source": source, "group": group, "weak": weak, "strong": strong, "hard": hard.astype(float)})


@pytest.fixture(scope="module")
def table(rows: pd.DataFrame) -> pd.DataFrame:
    noise = np.random.default_rng(1).random(len(rows))
    needs = {
        OURS: rows["hard"].to_numpy() + 0.01 * noise,
        "noise": noise,
        "twin": rows["hard"].to_numpy(),
        "oracle": (rows["strong"] - rows["weak"]).to_numpy(),
    }
    return compare(rows, needs, OURS, n_bootstrap=400).assign(pool="p")


def _of(table: pd.DataFrame, name: str, router: str) -> pd.Series:
    return table[(table["slice"] == name) & (table["router"] == router)].iloc[0]


def test_a_difference_is_that_of_the_estimates_and_a_clear_one_is_found(rows: pd.DataFrame, table: pd.DataFrame) -> None:
    noise = _of(table, "first", "noise")
    part = rows[rows["source"] == "first"]
    mine = apgr(part["weak"], part["strong"], part["hard"] + 0.01 * np.random.default_rng(1).random(len(rows))[:200])
    assert _of(table, "first", OURS)["apgr"] == pytest.approx(mine)
    assert noise["ahead"] == pytest.approx(mine - noise["apgr"])
    assert noise["ahead_low"] > 0
    assert noise["p_holm"] < 0.05
    assert _of(table, "first", "twin")["p_holm"] > 0.05
    assert np.isnan(_of(table, "first", "oracle")["p"])


def test_equal_models_give_a_reason_and_no_number(table: pd.DataFrame) -> None:
    level = _of(table, "level", OURS)
    assert pd.isna(level["apgr"])
    assert "undefined" in level["note"]
    assert "undefined" in markdown(table, "command")
    assert "nan" not in markdown(table, "command")


def test_the_summary_counts_only_sources_with_an_interval(table: pd.DataFrame) -> None:
    found = summary(table).set_index("router")
    assert set(found["sources"]) == {2}
    assert found.loc["noise", "ours_ahead"] == 2
    assert found.loc["noise", "ours_behind"] == 0
    expected = np.mean([_of(table, name, OURS)["apgr"] for name in ("first", "second")])
    assert found.loc[OURS, "mean_apgr_sources"] == pytest.approx(expected)


def test_the_best_baseline_is_no_oracle_and_being_behind_any_is_said(rows: pd.DataFrame) -> None:
    noise = np.random.default_rng(1).random(len(rows))
    swapped = compare(rows, {OURS: noise, "good": rows["hard"].to_numpy(), "oracle": noise}, OURS, n_bootstrap=400).assign(pool="p")
    verdict = against_best(swapped).set_index("slice")
    assert verdict.loc[POOLED, "best"] == "good"
    assert verdict.loc[POOLED, "verdict"] == "behind"


def test_holm_steps_down() -> None:
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.9, 0.8])).tolist() == [1.0, 1.0]
    assert holm(np.array([])).size == 0


def test_no_p_value_is_zero() -> None:
    assert two_sided(np.full(99, 0.1)) == pytest.approx(0.02)
    assert two_sided(np.zeros(50)) == 1.0


def test_no_more_than_asked_is_drawn_of_a_source_the_same_each_time() -> None:
    source = pd.Series(["a"] * 50 + ["b"] * 5)
    drawn = _drawn(source, 10, 3)
    assert source.iloc[drawn].value_counts().to_dict() == {"a": 10, "b": 5}
    assert (drawn == _drawn(source, 10, 3)).all()


@pytest.mark.parametrize(("name", "message"), [("sampel", "'sampel'"), ("haiku-sonnet", "needs outcome tables")])
def test_a_pool_that_is_not_there_is_named(name: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        load_pool(name, None, "fast")


@pytest.fixture
def pool(rows: pd.DataFrame) -> SimpleNamespace:
    conversations = [SimpleNamespace(user_texts=[f"question {i}", "second turn"]) for i in range(len(rows))]
    fold = np.arange(len(rows)) % 2
    return SimpleNamespace(rows=rows, fold=fold, embedding=np.ones((len(rows), 3)), training=SimpleNamespace(conversations=conversations))


def test_a_peer_never_gets_a_held_out_label(pool: SimpleNamespace, tmp_path: Path) -> None:
    export(pool, tmp_path)
    with np.load(tmp_path / "fold-0" / "held.npz") as held, np.load(tmp_path / "fold-0" / "train.npz") as train:
        assert held.files == ["X"]
        assert train["weak"].tolist() == pool.rows["weak"][pool.fold != 0].tolist()
    assert sorted(file.name for file in (tmp_path / "fold-0").iterdir()) == ["held.npz", "texts.json", "train.npz"]


def test_needs_come_back_in_the_order_of_the_rows(pool: SimpleNamespace, tmp_path: Path) -> None:
    import sys

    script = tmp_path / "peer.py"
    script.write_text(
        "import json, sys, numpy as np\nfrom pathlib import Path\n"
        "for part in Path(sys.argv[1]).glob('fold-*'):\n"
        "    held = json.loads((part / 'texts.json').read_text())['held']\n"
        "    np.savez(part / 'needs.npz', number=[float(t.split()[1]) for t in held])\n"
    )
    assert (run_peer(pool, Path(sys.executable), script, 60)["number"] == np.arange(len(pool.rows))).all()
    script.write_text("raise SystemExit('no such model')")
    with pytest.raises(InvalidInput, match=r"peer.py failed with code 1: no such model"):
        run_peer(pool, Path(sys.executable), script, 60)
    with pytest.raises(InvalidInput, match="no interpreter"):
        run_peer(pool, tmp_path / "python", script, 60)
