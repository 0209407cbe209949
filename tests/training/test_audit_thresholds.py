from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from router.errors import InvalidInput
from training.audit.measures import MEASURES
from training.audit.slices import COLUMNS
from training.audit.thresholds import Thresholds, judge_thresholds, read_thresholds, thresholds_from_mapping


def _figures(*rows: tuple[Any, ...]) -> pd.DataFrame:
    records = [
        dict.fromkeys(COLUMNS, None)
        | {"measure": m, "subject": "", "slice_kind": k, "slice": s, "value": v, "low": lo, "high": hi, "note": note}
        for m, k, s, v, lo, hi, note in rows
    ]
    return pd.DataFrame(records).astype({"value": float, "low": float, "high": float})


def _parsed(text: str) -> Thresholds:
    return thresholds_from_mapping(tomllib.loads(text), "audit.toml")


def _verdicts(figures: pd.DataFrame, text: str) -> list[tuple[str, str, str, bool]]:
    rows = [row for row in judge_thresholds(figures, _parsed(text)) if row["limit_from"] == "file"]
    return [(row["measure"], row["slice"], row["verdict"], row["fails"]) for row in rows]


CUT = ("answers_cut", "all", "all", 0.15, 0.1, 0.2, "")


def test_a_limit_is_kept_or_not() -> None:
    assert _verdicts(_figures(CUT), "[overall]\nanswers_cut = 0.15") == [("answers_cut", "all", "pass", False)]
    assert _verdicts(_figures(CUT), "[overall]\nanswers_cut = 0.05") == [("answers_cut", "all", "fail", True)]
    assert _verdicts(_figures(CUT), "[overall]\nanswers_cut = {at_least = 0.2}") == [("answers_cut", "all", "fail", True)]
    slope = ("length_slope", "all", "all", -0.2, None, None, "")
    assert _verdicts(_figures(slope), "[overall]\nlength_slope = 0.1") == [("length_slope", "all", "fail", True)]
    assert _verdicts(_figures(slope), "[overall]\nlength_slope = 0.2") == [("length_slope", "all", "pass", False)]


def test_a_verdict_within_the_interval_says_so() -> None:
    rows = judge_thresholds(_figures(CUT), _parsed("[overall]\nanswers_cut = 0.12"))
    assert rows[0]["verdict"] == "fail"
    assert rows[0]["note"] == "the limit is within the interval"


def test_defaults_warn_and_never_fail_unless_the_file_sets_the_measure() -> None:
    rows = {row["measure"]: row for row in judge_thresholds(_figures(CUT), None)}
    assert set(rows) == {name for name, m in MEASURES.items() if m.default is not None}
    assert (rows["answers_cut"]["verdict"], rows["answers_cut"]["fails"]) == ("warn", False)
    assert rows["swap_kappa"]["verdict"] == "not measurable"
    assert not any(row["fails"] for row in rows.values())
    own = [row for row in judge_thresholds(_figures(CUT), _parsed("[overall]\nanswers_cut = 0.5")) if row["measure"] == "answers_cut"]
    assert [(row["limit_from"], row["verdict"]) for row in own] == [("file", "pass")]


def test_what_cannot_be_measured_fails_unless_allowed() -> None:
    absent = _figures(("swap_kappa", "all", "all", None, None, None, "not measurable: no judge's verdicts are here"))
    assert _verdicts(absent, "[overall]\nswap_kappa = 0.4") == [("swap_kappa", "all", "not measurable", True)]
    assert _verdicts(absent, 'not_measurable = "pass"\n[overall]\nswap_kappa = 0.4') == [("swap_kappa", "all", "not measurable", False)]


def test_a_family_with_too_few_rows_is_named_and_does_not_fail_beside_others() -> None:
    few = ("answers_cut", "family", "Baltic", None, None, None, "too few rows: 3, at least 30 are needed")
    enough = ("answers_cut", "family", "English", 0.05, 0.0, 0.1, "")
    text = "[family]\nanswers_cut = 0.1"
    assert _verdicts(_figures(few, enough), text) == [
        ("answers_cut", "Baltic", "not measurable", False),
        ("answers_cut", "English", "pass", False),
    ]
    assert _verdicts(_figures(few), text) == [("answers_cut", "Baltic", "not measurable", True)]


def test_overall_checks_each_source_where_a_measure_is_taken_by_source() -> None:
    one = ("kinds_within_prompt", "source", "a", 0.9, None, None, "")
    other = ("kinds_within_prompt", "source", "b", 0.1, None, None, "")
    assert _verdicts(_figures(one, other), "[overall]\nkinds_within_prompt = 0.5") == [
        ("kinds_within_prompt", "b", "fail", True),
        ("kinds_within_prompt", "a", "pass", False),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[overall]\nanswers_cutt = 0.1", r"\[overall\]: unknown threshold 'answers_cutt'.*did you mean 'answers_cut'"),
        ("[familly]\nanswers_cut = 0.1", r"unknown table 'familly'.*did you mean 'family'"),
        ("answers_cut = 0.1", r"unknown table 'answers_cut'.*\[overall\]"),
        ("[overall]\nfirst_position = 0.5", r"first_position is 0.5: it has two ends"),
        ("[overall]\nlength_slope = -1", r"how far from 0"),
        ("[overall]\nanswers_cut = nan", r"answers_cut is nan: a number"),
        ('[overall]\nanswers_cut = "10 %"', r"answers_cut is '10 %'"),
        ("[overall]\nanswers_cut = true", r"answers_cut is True"),
        ("[overall]\nanswers_cut = {}", r"answers_cut is {}"),
        ("[overall]\nanswers_cut = {atmost = 0.1}", r"unknown end 'atmost'.*did you mean 'at_most'"),
        ("[overall]\nanswers_cut = {at_most = inf}", r"at_most is inf"),
        ("[overall]\nanswers_cut = {at_least = 0.5, at_most = 0.1}", r"nothing would pass"),
        ("[overall]", r"sets no limit"),
        ("", r"sets no limit"),
        ('not_measurable = "ignore"\n[overall]\nanswers_cut = 0.1', r"not_measurable is 'ignore'"),
        ("overall = 3", r"overall is 3"),
    ],
)
def test_a_wrong_limit_is_one_line(text: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=message) as refused:
        _parsed(text)
    assert "\n" not in str(refused.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"no thresholds at .*audit\.toml"):
        read_thresholds(tmp_path / "audit.toml")
    (tmp_path / "audit.toml").write_text("[overall")
    with pytest.raises(InvalidInput, match=r"audit\.toml cannot be read as TOML"):
        read_thresholds(tmp_path / "audit.toml")
