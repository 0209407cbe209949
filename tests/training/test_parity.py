"""Equivalence of families with English: shown, refuted, or honestly open."""

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.parity import ParityOptions, holm, parity_table


def rows(families: dict[str, tuple[int, float]], seed: int = 0, per_group: int = 1) -> pd.DataFrame:
    """Right-or-wrong scores; the strong model is always right, the weak one as often as the family says."""
    rng = np.random.default_rng(seed)
    parts = []
    for name, (n, right) in families.items():
        groups = [f"{name}-{i // per_group}" for i in range(n)]
        parts.append(pd.DataFrame({"family": name, "group": groups, "weak": (rng.random(n) < right).astype(float), "strong": 1.0}))
    return pd.concat(parts, ignore_index=True)


def table(frame: pd.DataFrame, **options: object) -> pd.DataFrame:
    n = len(frame)
    chosen, half = np.zeros(n), np.full(n, 0.5)
    return parity_table(frame, chosen, half, frame["strong"].to_numpy() - frame["weak"].to_numpy(), ParityOptions(**options)).set_index(
        "family"
    )


def test_many_prompts_without_a_difference_are_equivalent() -> None:
    found = table(rows({"English": (6000, 0.97), "Slavic": (6000, 0.97)}))
    assert found.loc["Slavic", "outcome"] == "equivalent"
    assert -0.02 < found.loc["Slavic", "low"] < found.loc["Slavic", "high"] < 0.02
    assert found.loc["English", "outcome"] == "baseline"


def test_few_prompts_without_a_difference_prove_nothing() -> None:
    found = table(rows({"English": (6000, 0.97), "Slavic": (60, 0.97)}))
    assert found.loc["Slavic", "outcome"] == "inconclusive"
    assert "groups would tell" in found.loc["Slavic", "note"]


def test_a_family_that_is_served_worse_is_different() -> None:
    assert table(rows({"English": (2000, 0.97), "Turkic": (2000, 0.80)})).loc["Turkic", "outcome"] == "different"


def test_a_small_family_without_a_single_loss_is_not_called_equivalent() -> None:
    assert table(rows({"English": (3000, 1.0), "Baltic": (40, 1.0)})).loc["Baltic", "outcome"] == "inconclusive"


@pytest.mark.parametrize(
    ("families", "family", "outcome", "note"),
    [
        ({"English": (500, 0.9), "Kra-Dai": (3, 0.9)}, "Kra-Dai", "too few rows", "too few rows: 3, at least 30 are needed"),
        ({"Slavic": (500, 0.9)}, "Slavic", "no baseline", "no prompt is in English"),
        ({"English": (5, 0.9), "Slavic": (500, 0.9)}, "Slavic", "no baseline", "English: too few rows: 5"),
    ],
)
def test_what_cannot_be_tested_says_why(families: dict, family: str, outcome: str, note: str) -> None:
    line = table(rows(families)).loc[family]
    assert line["outcome"] == outcome
    assert note in line["note"]
    assert pd.isna(line["difference"])


def test_repeated_groups_do_not_make_a_family_surer() -> None:
    once = rows({"English": (3000, 0.95), "Uralic": (300, 0.95)})
    often = pd.concat([once] * 5, ignore_index=True)
    widths = [table(frame).loc["Uralic", "high"] - table(frame).loc["Uralic", "low"] for frame in (once, often)]
    assert widths[1] == pytest.approx(widths[0], rel=0.05)


def test_wrong_equivalence_is_as_rare_as_promised() -> None:
    """A family that is exactly the margin worse is called equivalent in no more than alpha of the cases."""
    wrong = [
        table(rows({"English": (1500, 0.95), "Semitic": (1500, 0.90)}, seed=seed), margin=0.05).loc["Semitic", "outcome"] == "equivalent"
        for seed in range(200)
    ]
    assert np.mean(wrong) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 200)


def test_holm_corrects_in_steps() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metric": "qualty_vs_strong"}, "quality_vs_strong"),
        ({"margin": 0}, "margin of parity is 0"),
        ({"alpha": 0.9}, "alpha"),
        ({"min_rows": 1}, "min_rows"),
    ],
)
def test_options_that_make_no_sense_are_named(options: dict, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        ParityOptions(**options)
