from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from training.against_english import AGAINST_METRICS, against_english
from training.baselines import Policy
from training.evaluate import EvaluationOptions

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import make_rows

OPTIONS = EvaluationOptions(n_bootstrap=200)


def _policy(rows: pd.DataFrame, seed: int = 1) -> Policy:
    need = np.random.default_rng(seed).random(len(rows))
    return Policy("router", need, (need > 0.5).astype(float), need)


def test_translations_of_english_differ_by_nothing_at_all() -> None:
    english = make_rows(60).assign(language="en", family="English")
    rows = pd.concat([english, english.assign(language="de", family="Germanic")], ignore_index=True)
    need = np.tile(np.random.default_rng(0).random(60), 2)
    table = against_english(rows, Policy("router", need, (need > 0.5).astype(float), need), OPTIONS)
    assert table["metric"].tolist() == list(AGAINST_METRICS)
    assert table[["value", "low", "high"]].to_numpy() == pytest.approx(0, abs=1e-12)


def test_what_is_resampled_is_shared() -> None:
    """Questions whose groups hold both languages have a narrower interval than the same questions kept apart."""
    rng = np.random.default_rng(3)
    english = make_rows(300).assign(language="en", family="English", group=[f"g{i}" for i in range(300)])
    german = english.assign(language="de", family="Germanic")
    german["weak"] = np.where(rng.random(300) < 0.1, 1 - german["weak"], german["weak"])
    together = pd.concat([english, german], ignore_index=True)
    apart = together.assign(group=[f"g{i}" for i in range(600)])
    policy = Policy("router", np.zeros(600), np.zeros(600))
    widths = []
    for rows in (together, apart):
        found = against_english(rows, policy, OPTIONS).set_index("metric").loc["routing_accuracy"]
        widths.append(found["high"] - found["low"])
    assert widths[0] < 0.7 * widths[1]


@pytest.mark.parametrize(
    ("english", "germanic", "note"),
    [
        (0, 100, "undefined: no prompt is in English, so there is nothing to compare with"),
        (12, 100, "undefined: only 12 prompts are in English, and at least 30 are needed to compare with"),
        (100, 3, "too few rows: 3, at least 30 are needed"),
    ],
)
def test_what_is_missing_is_said(english: int, germanic: int, note: str) -> None:
    rows = make_rows(english + germanic)
    rows["family"] = ["English"] * english + ["Germanic"] * germanic
    table = against_english(rows, _policy(rows), OPTIONS)
    assert set(table["note"]) == {note}
    assert table["value"].isna().all()
    assert set(table["n"]) == {germanic}


def test_only_english_gives_no_rows() -> None:
    rows = make_rows(50).assign(family="English")
    assert against_english(rows, _policy(rows), OPTIONS).empty


def test_a_family_of_one_group_has_no_interval_and_one_without_a_gap_no_apgr() -> None:
    rows = make_rows(200)
    rows["family"] = ["English"] * 120 + ["Germanic"] * 40 + ["Japonic"] * 40
    rows["group"] = [f"g{i}" for i in range(120)] + ["one"] * 40 + [f"j{i}" for i in range(40)]
    rows.loc[160:, "strong"] = rows.loc[160:, "weak"]
    table = against_english(rows, _policy(rows), OPTIONS).set_index(["family", "metric"])
    assert table.loc[("Germanic", "routing_accuracy"), "note"].startswith("no interval: all rows of the family")
    assert pd.isna(table.loc[("Germanic", "routing_accuracy"), "low"])
    assert table.loc[("Japonic", "apgr"), "note"] == "undefined: weak and strong model score the same on every prompt in Japonic"
