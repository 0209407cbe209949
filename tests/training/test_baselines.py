from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.baselines import BASELINES, TrainedBaselines, baseline_policies
from training.metrics import apgr, quality_of


def _rows(n: int = 300, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    return pd.DataFrame(
        {
            "source": np.where(hard, "hard", "easy"),
            "group": [f"g{i // 3}" for i in range(n)],
            "tokens": rng.integers(1, 500, n).astype(float),
            "weak": (rng.random(n) < np.where(hard, 0.2, 0.9)).astype(float),
            "strong": (rng.random(n) < np.where(hard, 0.8, 0.9)).astype(float),
        }
    )


def _by_name(rows: pd.DataFrame, training: pd.DataFrame | None = None) -> dict[str, object]:
    return {policy.name: policy for policy in baseline_policies(rows, training)}


def test_every_baseline_is_there_and_described() -> None:
    assert [policy.name for policy in baseline_policies(_rows())] == list(BASELINES)


def test_each_baseline_does_what_it_says() -> None:
    rows = _rows()
    found = {policy.name: policy for policy in baseline_policies(rows, _rows(seed=1))}
    weak, strong = rows["weak"].to_numpy(), rows["strong"].to_numpy()
    assert quality_of(weak, strong, found["always_weak"].chosen).mean() == weak.mean()
    assert quality_of(weak, strong, found["always_strong"].chosen).mean() == strong.mean()
    assert (quality_of(weak, strong, found["oracle"].chosen) == np.maximum(weak, strong)).all()
    assert apgr(weak, strong, found["random"].need) == pytest.approx(0.5)
    assert (found["length"].need == rows["tokens"]).all()
    assert found["best_single"].chosen.tolist() == [1.0] * len(rows)
    assert apgr(weak, strong, found["source_mean"].need) > 0.6


def test_only_training_rows_teach() -> None:
    rows, training = _rows(), _rows(seed=1)
    flipped = rows.assign(weak=rows["strong"], strong=rows["weak"])
    first, second = (_by_name(table, training) for table in (rows, flipped))
    for name in ("best_single", "source_mean", "length", "random"):
        for attribute in ("need", "chosen", "probability"):
            one, two = getattr(first[name], attribute), getattr(second[name], attribute)
            assert (one is None) == (two is None)
            assert one is None or (one == two).all()


def test_within_one_source_its_mean_is_random_routing() -> None:
    rows = _rows().assign(source="only")
    policy = {p.name: p for p in baseline_policies(rows)}["source_mean"]
    assert policy.need is not None
    assert apgr(rows["weak"], rows["strong"], policy.need) == pytest.approx(0.5)


def test_a_source_of_a_few_rows_teaches_nothing() -> None:
    rows = _rows(30).assign(source=[f"s{i // 3}" for i in range(30)])
    assert TrainedBaselines.fit(rows).gain == {}


def test_an_unknown_source_gets_the_overall_mean() -> None:
    fitted = TrainedBaselines.fit(_rows())
    assert fitted.source_gain(pd.Series(["hard", "new"])).tolist() == [fitted.gain["hard"], fitted.mean_gain]


def test_no_training_rows_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="no training rows"):
        TrainedBaselines.fit(_rows().head(0))
