from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import InvalidInput
from training.outcomes import load_outcomes
from training.prompts import load_prompts
from training.split import few_rows, group_folds, group_key, require_rows, rule_group


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (("wmt25_genmt_doc", "cs-de_DE_#_news_#_site.1", "news"), ("wmt25_genmt_doc", "cs-uk_UA_#_news_#_site.1", "news")),
        (("swebench_verified_mini", "astropy__astropy-12907", "astropy"), ("swebench_lite_systems2024", "astropy__astropy-6938", None)),
        (("routellm_mmlu", "mmlu#anatomy#1", "anatomy"), ("routellm_mmlu", "mmlu#anatomy#22", "anatomy")),
        (("livecodebench_gen", "lcb#1873_A", "codeforces/easy"), ("livecodebench_repair", "lcb_repair#1873_A", "codeforces/easy")),
        (("routellm_mtbench", "mtbench#81#t1", "writing"), ("mtbench_28lang", "mtbench#81#ja", "writing")),
        (("routellm_gsm8k", "gsm8k#7", None), ("mgsm", "mgsm#7", None)),
    ],
)
def test_rule_of_a_source_keeps_together(left: tuple[str, str, str | None], right: tuple[str, str, str | None]) -> None:
    assert rule_group(*left) == rule_group(*right)


def test_rule_of_a_source_keeps_apart() -> None:
    assert rule_group("wmt25_genmt_doc", "en-ja_JP_#_news_#_a") != rule_group("wmt25_genmt_doc", "en-ja_JP_#_news_#_b")
    assert rule_group("swebench_lite", "django__django-1") != rule_group("swebench_lite", "psf__requests-1")
    assert rule_group("livecodebench_gen", "lcb#1873_A") != rule_group("livecodebench_gen", "lcb#1873_B")
    assert rule_group("own", "1") != rule_group("other", "1")


def prompts(*rows: tuple[str, str, str | None]) -> pd.DataFrame:
    turns = [[{"role": "user", "content": text}] for _, text, _ in rows]
    return pd.DataFrame(
        {"source": "own", "prompt_id": [p for p, _, _ in rows], "turns": turns, "group": [g for _, _, g in rows]},
        index=range(5, 5 + len(rows)),
    )


def test_near_duplicates_join_whole_groups() -> None:
    text = "How many minutes does the ferry from the island to the mainland take on a summer Sunday?"
    table = prompts(
        ("a", text, "t1"), ("b", "Wie lange dauert die Überfahrt?", "t1"), ("c", text + " ", None), ("d", "Something else entirely.", None)
    )
    joined = group_key(table)
    assert joined.tolist() == ["t1", "t1", "t1", "own/d"]
    assert joined.index.tolist() == [5, 6, 7, 8]
    assert group_key(table, similarity=None).tolist() == ["t1", "t1", "own/c", "own/d"]
    assert group_key(table, duplicates=[(0, 3)]).tolist() == ["t1", "t1", "own/c", "t1"]


def test_joining_is_transitive() -> None:
    table = prompts(*((name, f"text {name}", None) for name in "abcde"))
    assert group_key(table, duplicates=[(3, 4), (1, 2), (2, 3)]).tolist() == ["own/a"] + ["own/b"] * 4


@given(st.lists(st.integers(0, 30), min_size=40, max_size=200), st.integers(2, 6), st.integers(0, 3))
@settings(max_examples=60, deadline=None)
def test_no_group_crosses_folds(groups: list[int], n: int, seed: int) -> None:
    if len(set(groups)) < n:
        return
    folds = group_folds(groups, n, seed)
    assert pd.DataFrame({"g": groups, "f": folds}).groupby("g")["f"].nunique().max() == 1
    assert set(folds) == set(range(n))
    np.testing.assert_array_equal(folds, group_folds(groups, n, seed))


def test_folds_are_even_in_size_and_in_every_stratum() -> None:
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 400, 2000)
    source = np.where(groups < 300, "big", "small")
    folds = group_folds(groups, 5, 1, strata=source)
    counts = pd.crosstab(source, folds)
    assert (counts.max(axis=1) / counts.min(axis=1) < 1.15).all()
    assert (group_folds(groups, 5, 2, strata=source) != folds).any()


@pytest.mark.parametrize(
    ("groups", "n", "message"),
    [
        (["a", "a", "b"], 5, "5 folds need at least 5 groups, there are 2"),
        (["a", "b"], 1, "1 folds: at least 2"),
        (["a", None, "b"], 2, "row 1 has no group"),
    ],
)
def test_impossible_folds(groups: list[str], n: int, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        group_folds(groups, n)


def test_families_with_too_few_rows() -> None:
    families = ["Baltic"] * 3 + ["Slavic"] * 30 + ["Uralic"]
    assert few_rows(families, 20) == {"Uralic": 1, "Baltic": 3}
    with pytest.raises(InvalidInput, match=r"too few rows in 2 families \(Uralic 1, Baltic 3\): at least 20 are needed"):
        require_rows(families, 20)
    require_rows(families, 1)


@pytest.mark.slow
def test_nothing_crosses_a_split_of_the_real_tables(shared_data: Path) -> None:
    table = load_prompts(shared_data / "prompts.parquet")
    groups = group_key(table)
    folds = pd.Series(group_folds(groups, 5, 0, strata=table["source"]), index=table.index)
    problem = table["prompt_id"].str.split("#").str[-1]
    code = table["source"].str.startswith("livecodebench")
    assert folds[code].groupby(problem[code]).nunique().max() == 1
    wmt = table["source"] == "wmt25_genmt_doc"
    document = table["prompt_id"].str.split("_#_", n=1).str[1]
    assert folds[wmt].groupby(document[wmt]).nunique().max() == 1
    text = table["turns"].map(lambda turns: turns[-1]["content"])
    assert folds.groupby(text).nunique().max() == 1
    assert groups.value_counts().iloc[0] < 0.1 * len(table)
    assert set(load_outcomes(shared_data / "outcomes.parquet")["source"]) <= set(table["source"])
