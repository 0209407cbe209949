"""What changes with the number of rows: batches of a file, samples of a head, bundles of groups, crowds of like texts. Little may."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from router.files.artifacts import language_identifier, read_artifact
from router.files.encoders import load_encoder
from router.route import Router
from router.selection import RoutingPolicy
from training import bootstrap, dedup, metrics, tables
from training.assemble import assemble, load_tables
from training.bootstrap import estimate, group_index, resampling_units
from training.dedup import near_duplicates
from training.engine import LocalEngine
from training.fit import RequirementsEstimator
from training.inputs import EncoderSource
from training.pairs import pair_catalog
from training.predictions import LoadedRoute, predict_pair
from training.prompts import Conversations, to_conversations
from training.recipe import Pair, Recipe

sys.path.insert(0, str(Path(__file__).parent))
from scale_rows import generated
from scale_rows import tables as written

RECIPE = Recipe((Pair(("small",), ("large",)),))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    prompts, outcomes = written(90)
    # The categories of others, and a grader, are nothing that training reads.
    prompts.assign(note="x" * 100, grader='{"kind": "exact"}').to_parquet(tmp_path / "prompts.parquet")
    outcomes.assign(answer="y" * 100).to_parquet(tmp_path / "outcomes.parquet")
    return tmp_path


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "BATCH_ROWS", 40)


def test_a_file_read_in_batches_gives_the_rows_of_one_read_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = assemble(*load_tables([folder]), RECIPE)
    monkeypatch.setattr(tables, "BATCH_ROWS", 40)
    prompts, outcomes = load_tables([folder])
    assert "note" not in prompts
    assert "answer" not in outcomes
    assert isinstance(prompts["turns"].iloc[0], str)
    pieces = assemble(prompts, outcomes, RECIPE)
    same = [column for column in whole.rows if column in pieces.rows and column not in ("turns", "grader", "note")]
    pd.testing.assert_frame_equal(whole.rows[same], pieces.rows[same], check_dtype=False)
    assert list(whole.conversations) == list(pieces.conversations)
    np.testing.assert_array_equal(whole.targets, pieces.targets)


@pytest.mark.usefixtures("batches")
def test_a_bad_row_of_a_later_batch_is_named_by_its_number_in_the_file(folder: Path) -> None:
    prompts = pd.read_parquet(folder / "prompts.parquet")
    prompts.loc[77, "turns"] = " "
    prompts.to_parquet(folder / "prompts.parquet")
    with pytest.raises(InvalidInput, match=r"prompts\.parquet row 78: column 'turns'"):
        load_tables([folder])


@pytest.mark.usefixtures("batches")
def test_a_row_that_stands_in_two_batches_is_refused(folder: Path) -> None:
    prompts = pd.read_parquet(folder / "prompts.parquet")
    prompts.loc[88, "prompt_id"] = "p3"
    prompts.to_parquet(folder / "prompts.parquet")
    with pytest.raises(InvalidInput, match=r"prompts\.parquet row 89: .*stands already at prompts\.parquet row 4"):
        load_tables([folder])


def test_conversations_are_made_when_they_are_asked_for() -> None:
    frame = pd.DataFrame({"turns": [json.dumps([{"role": "user", "content": f"question {i}"}]) for i in range(5)], "language": "en"})
    lazy = Conversations(frame)
    assert (len(lazy), list(lazy)) == (5, to_conversations(frame))
    assert lazy[3].user_texts == ("question 3",)
    assert [c.user_texts[0] for c in lazy[1:5:2]] == ["question 1", "question 3"]
    with pytest.raises(IndexError):
        lazy[5]


def test_a_head_learns_as_much_from_a_sample_and_is_calibrated_on_everything() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(6000, 6)).astype(np.float32)
    p = 1 / (1 + np.exp(-(2 * x[:, :1] - 1)))
    y = (rng.random(p.shape) < p).astype(float)
    every = RequirementsEstimator(n_estimators=60).fit(x, y)
    sample = RequirementsEstimator(n_estimators=60, most_rows=2000).fit(x, y)
    for fitted in (every, sample):
        assert fitted.held_out_.shape == (6000, 1)
        assert metrics.expected_calibration_error(fitted.held_out_[:, 0], y[:, 0]) < 0.03
    assert np.corrcoef(every.held_out_[:, 0], sample.held_out_[:, 0])[0, 1] > 0.98
    again = RequirementsEstimator(n_estimators=60, most_rows=2000).fit(x, y)
    np.testing.assert_array_equal(again.held_out_, sample.held_out_)


def test_single_precision_is_not_copied_and_changes_little() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(900, 6))
    y = (rng.random((900, 1)) < 1 / (1 + np.exp(-x[:, :1]))).astype(float)
    double = RequirementsEstimator(n_estimators=40, n_embedding=3).fit(x, y)
    single = RequirementsEstimator(n_estimators=40, n_embedding=3).fit(x.astype(np.float32), y)
    assert np.abs(double.predict(x) - single.predict(x)).mean() < 0.002


def test_too_small_a_sample_is_refused() -> None:
    with pytest.raises(InvalidInput, match="most_rows is 1"):
        RequirementsEstimator(most_rows=1).fit(np.zeros((4, 2)), np.zeros((4, 1)))


def test_bundles_of_groups_give_the_intervals_that_groups_give(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    n = 12_000
    names = np.array([f"g{i // 2}" for i in range(n)])
    need = np.repeat(rng.random(n // 2), 2) + 0.1 * rng.random(n)
    strong, weak = np.ones(n), (rng.random(n) > 0.8 * need).astype(float)
    chosen = (need > 0.6).astype(float)

    def intervals(group: np.ndarray) -> dict[str, tuple[float, float, float]]:
        statistics = {
            "apgr": metrics.apgr_statistic(weak, strong, need, group),
            "auc": metrics.auc_statistic(strong > weak, need, group),
            "quality": metrics.relative_quality_statistic(weak, strong, chosen, group),
        }
        return {name: (e.value, e.low, e.high) for name, e in estimate(statistics, group, n_bootstrap=600).items()}

    exact = intervals(group_index(names))
    monkeypatch.setattr(bootstrap, "MANY_GROUPS", 5_000)
    monkeypatch.setattr(metrics, "_EXACT_ROWS", 5_000)
    bundles = resampling_units(names)
    assert bundles.max() + 1 == 1_000
    assert len({(name, bundle) for name, bundle in zip(names, bundles, strict=True)}) == n // 2
    for name, (value, low, high) in intervals(bundles).items():
        width = exact[name][2] - exact[name][1]
        assert value == pytest.approx(exact[name][0], abs=1e-5)
        assert high - low == pytest.approx(width, rel=0.2)
        assert low == pytest.approx(exact[name][1], abs=0.2 * width)


def test_few_groups_are_resampled_as_they_are() -> None:
    names = ["b", "a", "b", "c"]
    np.testing.assert_array_equal(resampling_units(names), group_index(names))


def test_a_crowd_of_like_texts_is_found_without_comparing_each_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    base = ["".join(rng.choice(list("abcdefghij "), 300)) for _ in range(3)]
    texts = [f"{base[i % 3]} {i}" for i in range(900)]
    compared: list[int] = []
    inner = dedup.jaccard
    monkeypatch.setattr(dedup, "jaccard", lambda left, right: compared.append(1) or inner(left, right))
    pairs = near_duplicates(texts)
    parent = list(range(len(texts)))
    for left, right in pairs:
        parent = [parent[left] if p == parent[right] else p for p in parent]
    assert len(set(parent)) == 3
    assert len(compared) < 30 * len(texts)


def test_routing_in_several_processes_says_what_one_says() -> None:
    artifact, _ = read_artifact(None)
    pool, _ = pair_catalog(None, "small", "large", artifact.capabilities)
    policy = RoutingPolicy(shortfall_threshold=0.1)
    conversations = list(generated(24).conversations)
    router = Router(artifact, load_encoder(artifact.encoder), pool, policy, language_identifier())
    alone = predict_pair(router.route, conversations, "small", "large", 0.1)
    loaded = LoadedRoute(artifact, EncoderSource(artifact.encoder), pool, policy)
    together = predict_pair(loaded, conversations, "small", "large", 0.1, engine=LocalEngine(2))
    np.testing.assert_array_equal(alone.shortfall, together.shortfall)
    np.testing.assert_array_equal(alone.requirements, together.requirements)
    assert alone.families == together.families
