from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.evaluate import EvaluationOptions, EvaluationResult, evaluate_predictions
from training.report import evaluation_files, render_page, write_evaluation

sys.path.insert(0, str(Path(__file__).parent))
from evaluation_rows import make_rows, predictions_of


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
    assert "nan" not in re.findall(r">\s*(nan)\s*<", page)


def test_plots_take_their_colours_from_the_page(page: str) -> None:
    assert page.count("<svg") >= 4
    assert "#0a0b0" not in page
    used = set(re.findall(r"var\((--[\w-]+)\)", page))
    assert used <= set(re.findall(r"(--[\w-]+):", page))


def test_tables_and_json_agree(result: EvaluationResult) -> None:
    files = evaluation_files(result)
    assert set(files) == {
        "report.html", "results.json", "pooled.csv", "by_source.csv", "by_family.csv", "by_capability.csv", "operating_points.csv",
        "curve.csv", "reliability.csv", "data.csv",
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
