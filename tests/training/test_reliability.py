from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from training.evaluate import EvaluationOptions
from training.predictions import Predictions
from training.reliability import calibration_errors, expected_noise, reliability_bins, wilson_interval

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import CAPABILITIES, make_rows

OPTIONS = EvaluationOptions(n_bootstrap=50)


def _calibrated(n: int = 4000) -> tuple[pd.DataFrame, Predictions]:
    """Every prompt exercises one capability, and its head says the probability that it needs the strong model."""
    rng = np.random.default_rng(7)
    rows, p = make_rows(n), rng.random(n)
    exercised = (rows["capability"].to_numpy()[:, None] == np.array(CAPABILITIES)).astype(float)
    rows["target"] = (rng.random(n) < p).astype(float)
    return rows, Predictions(np.stack([p, np.zeros(n)], axis=1), exercised * p[:, None], CAPABILITIES, 0.5)


def test_calibrated_heads_have_the_error_of_noise() -> None:
    rows, predictions = _calibrated()
    table = calibration_errors(rows, predictions, OPTIONS)
    assert set(table["kind"]) == {"pooled", "head", "head on all", "family"}
    known = table[table["value"].notna()]
    assert (known["value"] < 3 * known["noise"]).all()
    assert table[table["kind"] == "head on all"]["n"].tolist() == [4000, 4000]


def test_a_head_that_says_too_much_shows() -> None:
    rows, predictions = _calibrated()
    loud = replace(predictions, requirements=np.minimum(1.0, predictions.requirements + np.array([0.2, 0.0])))
    table = calibration_errors(rows, loud, OPTIONS).set_index(["kind", "name"])["value"]
    assert table["head", "reasoning"] > 0.15
    assert table["head on all", "reasoning"] > 0.15
    assert table["head", "code_gen"] < 0.05


def test_bins_of_small_families_hold_ten_rows_and_those_of_tiny_ones_are_left_out() -> None:
    rows, predictions = _calibrated(400)
    rows["family"] = ["English"] * 340 + ["Germanic"] * 57 + ["Semitic"] * 3
    table = reliability_bins(rows, predictions, OPTIONS)
    assert table[table["name"] == "Germanic"]["n"].min() >= 10
    assert "Semitic" not in set(table["name"])
    low, high = table["observed"] - table["observed_low"], table["observed_high"] - table["observed"]
    assert min(low.min(), high.min()) > -1e-12


def test_wilson_stays_within_zero_and_one() -> None:
    assert wilson_interval(0.0, 10) == pytest.approx((0.0, 0.2775), abs=1e-4)
    assert wilson_interval(0.5, 100) == pytest.approx((0.4038, 0.5962), abs=1e-4)


def test_noise_shrinks_with_the_root_of_the_rows() -> None:
    rng = np.random.default_rng(1)
    noise = []
    for n in (400, 40_000):
        p = rng.random(n)
        noise.append(expected_noise(p, (rng.random(n) < p).astype(float), 10))
    assert noise[0] / noise[1] == pytest.approx(10, rel=0.2)
