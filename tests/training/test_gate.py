"""A gate lets a router through only where every condition is met and could be measured."""

import sys
from pathlib import Path

import numpy as np
import pytest

from router.errors import InvalidInput
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate_predictions
from training.gate import Gate, checked, passed, read_gate
from training.parity import ParityOptions

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import make_rows, predictions_of


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    rows = make_rows(800)
    need = np.clip(rows["strong"] - rows["weak"] + np.random.default_rng(0).normal(0, 0.3, len(rows)), 0, 1).to_numpy()
    return evaluate_predictions(rows, predictions_of(need), options=EvaluationOptions(n_bootstrap=50, parity=ParityOptions(margin=0.3)))


def gate(tmp_path: Path, text: str) -> Gate:
    path = tmp_path / "gate.toml"
    path.write_text(text, encoding="utf-8")
    return read_gate(path)


@pytest.mark.parametrize(
    ("text", "open_"),
    [
        ("[overall]\napgr_min = 0.6\nece_max = 0.9\n", True),
        ("[overall]\napgr_min = 2\n", False),
        ("[family]\nquality_vs_strong_min = 0.1\n", True),
        ("[family]\nquality_vs_strong_min = 1.5\n", False),
        ('families = ["English", "Japonic"]\n', True),
        ('families = ["Sinitic"]\n', False),
        ('[parity]\nmargin = 0.3\ninconclusive = "pass"\n', True),
    ],
)
def test_a_gate_opens_where_every_condition_is_met(result: EvaluationResult, tmp_path: Path, text: str, open_: bool) -> None:
    assert passed(checked(result, gate(tmp_path, text))) is open_


def test_an_absent_family_that_is_required_is_named(result: EvaluationResult, tmp_path: Path) -> None:
    row = checked(result, gate(tmp_path, 'families = ["Sinitic"]\n')).gate.iloc[0]
    assert (row["name"], row["verdict"]) == ("Sinitic", "fail")
    assert "no prompt of this family" in row["note"]


def test_a_limit_that_cannot_be_measured_keeps_the_gate_shut(tmp_path: Path) -> None:
    rows = make_rows(200).assign(weak_cost_usd=np.nan, strong_cost_usd=np.nan)
    result = evaluate_predictions(rows, predictions_of(np.linspace(0, 1, 200)), options=EvaluationOptions(n_bootstrap=0))
    found = checked(result, gate(tmp_path, "[overall]\ncost_savings_min = 0.1\n"))
    assert found.gate["verdict"].tolist() == ["not measurable"]
    assert found.gate["note"].iloc[0]
    assert not passed(found)


def test_small_families_are_held_to_limits_only_where_they_are_required(tmp_path: Path) -> None:
    rows = make_rows(300)
    rows.loc[rows.index[:3], ["language", "family"]] = ["fi", "Uralic"]
    result = evaluate_predictions(rows, predictions_of(np.linspace(0, 1, 300)), options=EvaluationOptions(n_bootstrap=0))
    free = checked(result, gate(tmp_path, "[family]\nece_max = 1\n")).gate
    held = checked(result, gate(tmp_path, 'families = ["Uralic"]\n[family]\nece_max = 1\n')).gate.set_index("name")
    assert "Uralic" not in set(free["name"])
    assert held.loc["Uralic", "verdict"] == "not measurable"
    assert "too few rows: 3" in held.loc["Uralic", "note"]


def test_parity_without_english_cannot_be_shown(tmp_path: Path) -> None:
    rows = make_rows(300)
    rows = rows[rows["family"] != "English"].reset_index(drop=True)
    result = evaluate_predictions(rows, predictions_of(np.linspace(0, 1, len(rows))), options=EvaluationOptions(n_bootstrap=0))
    found = checked(result, gate(tmp_path, "[parity]\n"))
    assert not passed(found)
    assert "no prompt is in English" in found.gate["note"].iloc[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "asks for nothing"),
        ("[overal]\n", "overal"),
        ("[overall]\napgr_mim = 0.5\n", "apgr_min"),
        ('[overall]\napgr_min = "high"\n', "apgr_min is 'high'"),
        ("[overall]\napgr_min = nan\n", "a number was expected"),
        ("overall = 3\n", "overall is a int, not a table"),
        ('families = ["Slavik"]\n', "Slavic"),
        ('[parity]\ninconclusive = "maybe"\n', "'fail' or 'pass'"),
        ("[parity]\nmargim = 0.1\n", "margin"),
        ("[parity]\nmargin = -1\n", "margin of parity is -1"),
        ("[parity\n", "cannot be read as TOML"),
    ],
)
def test_gates_that_make_no_sense_are_refused(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        gate(tmp_path, text)


def test_a_missing_gate_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no gate at .*nowhere\.toml"):
        read_gate(tmp_path / "nowhere.toml")
