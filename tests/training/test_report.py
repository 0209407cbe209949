from __future__ import annotations

import io
import json
import re
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate, evaluate_predictions
from training.report import evaluation_files, render_page, write_evaluation
from training.report.explained import explained_rows
from training.report.files import results_mapping
from training.report.texts import text_may_be_shown

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import make_rows, predictions_of, toy_router


@pytest.fixture(scope="module")
def result() -> EvaluationResult:
    rows = make_rows()
    need = np.clip(rows["strong"] - rows["weak"] + np.random.default_rng(0).normal(0.5, 0.5, len(rows)), 0, 1)
    about = {
        "weak": "通义-小",
        "strong": "نموذج <b>",
        "command": "interlock evaluate --data 'a b'",
        "router": "abc",
        "cost_basis": "as observed",
    }
    return evaluate_predictions(rows, predictions_of(need.to_numpy()), options=EvaluationOptions(n_bootstrap=60), about=about)


@pytest.fixture(scope="module")
def page(result: EvaluationResult) -> str:
    return render_page(result)


def missing_numbers(page: str) -> list[str]:
    """Words that stand where a number should, anywhere but in the style of the page."""
    return re.findall(r"(?<![\w-])(?:nan|NaN|inf|Infinity|None|NaT|null|undefined(?!:| in ))(?![\w-])", page.partition("</style>")[2])


class _Balanced(HTMLParser):
    VOID = frozenset({"meta", "br", "path", "use"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID:
            assert self.open.pop() == tag


def test_the_page_has_every_family_source_and_capability(result: EvaluationResult, page: str) -> None:
    for kind in ("family", "source", "capability"):
        for name in result.slices(kind):
            assert f'<th scope="row"><bdi>{name}</bdi></th>' in page
    assert "too few rows: " in page


def test_the_page_loads_nothing(page: str) -> None:
    assert "http" not in page
    assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\((?!#)", page)
    assert set(re.findall(r'(?:src|href)="([^"]?)', page)) <= {"#"}


def test_the_page_is_well_formed_and_escapes_names(page: str) -> None:
    parser = _Balanced()
    parser.feed(page)
    assert parser.open == []
    assert "نموذج &lt;b&gt;" in page
    assert "通义-小" in page
    assert "interlock evaluate --data &#39;a b&#39;" in page
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert not missing_numbers(page)


def test_plots_take_their_colours_from_the_page(page: str) -> None:
    assert page.count("<svg") >= 4
    assert "#0a0b0" not in page
    used = set(re.findall(r"var\((--[\w-]+)\)", page))
    assert used <= set(re.findall(r"(--[\w-]+):", page))


def test_every_table_has_a_caption_and_every_plot_words(page: str) -> None:
    assert page.count("<caption") == page.count("<table")
    labels = re.findall(r'<svg viewBox="[^"]*" role="img" aria-label="([^"]+)"', page)
    assert len(labels) == page.count("<svg")
    assert len(set(labels)) == len(labels)
    assert any(re.search(r"Lowest \w+ .*, highest \w+", label) for label in labels)
    assert not re.search(r"<th(?! scope)", page.replace("<thead", ""))


def test_thresholds_are_said_in_words(result: EvaluationResult, page: str) -> None:
    own = result.operating_points[result.operating_points["tau"] == 0.5].iloc[0]
    values = [f"{100 * own[name]:.1f}\u00a0%" for name in ("quality_vs_strong", "cost_savings", "strong_share")]
    said = re.search(r"(?s)&tau; 0.500</th><td class=\"text\">(.*?)<small>", page)
    assert said is not None
    parts = ("Keeps {}", "of the quality of always-strong", "saves {}", "of its cost", "sends {}", "of prompts to the strong model.")
    found = iter(values)
    for part in parts:
        assert (part.format(next(found)) if "{}" in part else part) in said[1]


def test_families_are_compared_with_english(result: EvaluationResult, page: str) -> None:
    table = result.against_english.set_index(["family", "metric"])
    assert set(table.index.get_level_values("family")) == {"Germanic", "Japonic", "Semitic"}
    by_itself = [result.get("routing_accuracy", kind="family", name=name).value for name in ("Germanic", "English")]
    assert table.loc[("Germanic", "routing_accuracy"), "value"] == pytest.approx(by_itself[0] - by_itself[1])
    assert table.loc[("Semitic", "apgr"), "note"].startswith("too few rows")
    assert "English itself: APGR" in page
    for metric in ("apgr", "quality-vs-strong", "routing-accuracy"):
        assert f'id="english-{metric}-' in page


def test_no_english_is_said_and_not_guessed() -> None:
    rows = make_rows()
    rows = rows[rows["family"] != "English"].reset_index(drop=True)
    page = render_page(_evaluated(rows))
    assert "No family is compared with English: no prompt is in English, so there is nothing to compare with." in page
    assert not missing_numbers(page)


def test_worst_decisions_are_explained_by_the_router() -> None:
    result = _routed(make_rows(60).assign(turns=[[{"role": "user", "content": f"a hard secret {i}"}] for i in range(60)]))
    page = render_page(result)
    assert 0 < len(result.worst) <= 50
    first = result.worst.iloc[0]
    assert first["quality_lost"] == result.worst["quality_lost"].max() > 0
    assert first["reason"].startswith("large is the cheapest model")
    assert 0 <= first["confidence"] <= 1
    assert first["flip_tau"] > 0
    assert f"It said: {first['reason']}" in page.replace("&lt;", "<")
    assert "secret" not in page
    assert "secret" not in json.dumps(results_mapping(result))
    assert result.worst.groupby("kind").size().to_dict().keys() <= {"quality lost", "money wasted"}
    assert not missing_numbers(page)


def test_texts_are_shown_only_where_they_are_ours() -> None:
    rows = make_rows(60).assign(turns=[[{"role": "user", "content": f"a hard secret {i}"}] for i in range(60)])
    result = _routed(rows)
    for changes, shown in (
        ({"licence": "Apache-2.0"}, False),
        ({"licence": "Apache-2.0", "author": "us"}, True),
        ({"licence": "own"}, True),
    ):
        texts = [row.text for row in explained_rows(replace(result, rows=rows.assign(**changes)))]
        assert all("secret" in text for text in texts) if shown else not any(texts)


@pytest.mark.parametrize(
    ("licence", "author", "shown"),
    [
        ("own", None, True), ("Apache-2.0", "interlock", True), ("apache-2.0 ", "x", True), ("MIT (problem texts (c) others)", "x", False),
        ("Apache-2.0", None, False), ("Apache-2.0", " ", False), ("CC-BY-NC-4.0", "x", False), (None, "x", False), (np.nan, np.nan, False),
    ],
)  # fmt: skip
def test_whose_text_may_be_shown(licence: object, author: object, shown: bool) -> None:
    assert text_may_be_shown(licence, author) is shown


def test_decisions_are_written_without_text(result: EvaluationResult) -> None:
    table = pd.read_parquet(io.BytesIO(evaluation_files(result)["decisions.parquet"]))
    assert len(table) == 400
    assert table["chosen"].mean() == pytest.approx(result.get("strong_share").value)
    assert not {"turns", "text"} & set(table)


@pytest.mark.parametrize("case", ["identical models", "constant labels", "one family of three rows", "one row", "constant need", "free"])
def test_a_degenerate_run_says_why_and_shows_no_empty_number(case: str) -> None:
    rows = make_rows(120)
    need = np.random.default_rng(0).random(120)
    if case == "identical models":
        rows["strong"] = rows["weak"]
    elif case == "constant labels":
        rows = rows.assign(weak=0.0, strong=1.0)
    elif case == "one family of three rows":
        rows.loc[:2, ["language", "family"]] = ["hy", "Armenian"]
    elif case == "one row":
        rows, need = rows.iloc[:1], need[:1]
    elif case == "constant need":
        need = np.zeros(120)
    else:
        rows = rows.assign(weak_cost_usd=0.0, strong_cost_usd=0.0)
    page = render_page(_evaluated(rows, need))
    assert not missing_numbers(page)
    assert re.search(r"undefined: |too few rows: |no interval: ", page) or case == "constant need"


def test_a_name_may_hold_anything() -> None:
    rows = make_rows()
    rows["family"] = rows["family"].replace("Japonic", '"><script>x')
    page = render_page(_evaluated(rows))
    assert "<script" not in page


def _evaluated(rows: pd.DataFrame, need: np.ndarray | None = None) -> EvaluationResult:
    predictions = predictions_of(np.random.default_rng(1).random(len(rows)) if need is None else need)
    return evaluate_predictions(rows, predictions, options=EvaluationOptions(n_bootstrap=20), about={"weak": "a", "strong": "b"})


def _routed(rows: pd.DataFrame) -> EvaluationResult:
    return evaluate(toy_router().route, rows, "small", "large", 0.3, options=EvaluationOptions(n_bootstrap=20))


def test_tables_and_json_agree(result: EvaluationResult) -> None:
    files = evaluation_files(result)
    assert set(files) == {
        "report.html", "results.json", "pooled.csv", "by_source.csv", "by_family.csv", "by_capability.csv", "operating_points.csv",
        "curve.csv", "reliability.csv", "calibration.csv", "against_english.csv", "parity.csv", "gate.csv", "worst.csv", "data.csv",
        "families.csv", "decisions.parquet",
    }  # fmt: skip
    data = json.loads(files["results.json"])
    table = pd.read_csv(io.BytesIO(files["by_family.csv"]))
    row = table[(table["slice"] == "Germanic") & (table["policy"] == "router")].iloc[0]
    found = next(e for e in data["estimates"] if (e["slice"], e["policy"], e["metric"]) == ("Germanic", "router", "apgr"))
    assert row["apgr"] == pytest.approx(found["value"])
    assert row["apgr_low"] == pytest.approx(found["low"])
    few = next(e for e in data["estimates"] if (e["slice"], e["policy"], e["metric"]) == ("Semitic", "router", "apgr"))
    assert few["value"] is None
    assert few["note"].startswith("too few rows")


def test_equal_results_give_equal_bytes(result: EvaluationResult) -> None:
    assert evaluation_files(result) == evaluation_files(result)


def test_a_page_without_costs_and_without_a_gap(result: EvaluationResult) -> None:
    rows = make_rows(60).assign(weak_cost_usd=np.nan, strong_cost_usd=np.nan)
    rows["strong"] = rows["weak"]
    same = evaluate_predictions(
        rows, predictions_of(np.zeros(60)), options=EvaluationOptions(n_bootstrap=20), about={"weak": "a", "strong": "b"}
    )
    text = render_page(same)
    assert "undefined: weak and strong model score the same on every prompt" in text
    assert "no prices and no costs are known" in text
    assert "share of prompts kept on the weak model" in text


def test_an_earlier_report_is_replaced_and_other_files_are_not(result: EvaluationResult, tmp_path: Path) -> None:
    folder = tmp_path / "report"
    write_evaluation(result, folder)
    (folder / "old.csv").write_text("x")
    write_evaluation(result, folder)
    assert not (folder / "old.csv").exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    with pytest.raises(InvalidInput, match="holds other files"):
        write_evaluation(result, mine)
    assert [path.name for path in mine.iterdir()] == ["thesis.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine", "report"]
