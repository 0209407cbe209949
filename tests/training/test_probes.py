"""A new model's profile from a few probes: right within its interval, and silent where probes say nothing."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from interlock.cli import main
from router.catalog import ModelCatalog
from router.errors import CatalogError, InvalidInput
from router.files.catalog_edit import with_figures, write_figures
from training.probes.bank import Bank, banks_of
from training.probes.choose import METHODS, choose_probes, shares_of
from training.probes.estimate import estimate_score
from training.probes.irt import GRID, ability, fit_items
from training.probes.link import linked, unlinked
from training.prompts import load_prompts

CATALOG = """# our models
models:
  weak:  # cheap
    provider: ours
    prices: {input_per_mtok: 0.1, output_per_mtok: 0.4}
    raw: {reasoning: 0.30, code_gen: 0.25}
  strong:
    provider: ours
    prices: {input_per_mtok: 3.0, output_per_mtok: 15.0}
    raw: {reasoning: 0.80, code_gen: 0.75}
"""


def answers(ability_of: np.ndarray, n_items: int = 300, seed: int = 0) -> np.ndarray:
    """Right-or-wrong answers of models of known abilities, shape (J, I)."""
    rng = np.random.default_rng(seed)
    slope, intercept = rng.lognormal(0, 0.3, n_items), rng.normal(0, 1.5, n_items)
    p = 1 / (1 + np.exp(-(np.outer(ability_of, slope) + intercept)))
    return (rng.random(p.shape) < p).astype(float)


@pytest.fixture(scope="module")
def scores() -> np.ndarray:
    return answers(np.random.default_rng(1).normal(size=31))


@pytest.fixture(scope="module")
def bank(scores: np.ndarray) -> Bank:
    prompts = pd.DataFrame({"source": "s", "prompt_id": [f"p{i}" for i in range(300)], "group": [f"g{i // 2}" for i in range(300)]})
    return Bank("reasoning", prompts, tuple(f"m{j}" for j in range(30)), scores[:30], scores[30])


def test_abler_models_get_a_higher_ability(scores: np.ndarray) -> None:
    items = fit_items(scores)
    mean = np.array([ability(items, row) @ GRID for row in scores])
    assert np.corrcoef(mean, scores.mean(axis=1))[0, 1] > 0.97


def test_fifty_probes_are_nearer_than_their_own_mean(bank: Bank) -> None:
    rng = np.random.default_rng(2)
    ours, plain, inside = [], [], []
    everyone = answers(np.random.default_rng(3).normal(size=60), seed=4)
    items = fit_items(everyone[:30])
    for j in range(30, 60):
        asked = np.full(300, np.nan)
        picked = rng.choice(300, 50, replace=False)
        asked[picked] = everyone[j, picked]
        found, truth = estimate_score(items, asked), everyone[j].mean()
        ours.append(abs(found.score - truth))
        plain.append(abs(everyone[j, picked].mean() - truth))
        inside.append(found.low <= truth <= found.high)
    assert np.mean(ours) < np.mean(plain)
    assert np.mean(inside) > 0.85


def test_more_probes_are_surer(bank: Bank) -> None:
    items = fit_items(bank.scores)
    widths = []
    for n in (20, 50, 200):
        asked = np.where(np.arange(300) < n, bank.new, np.nan)
        found = estimate_score(items, asked)
        widths.append(found.high - found.low)
    assert widths[0] > widths[1] > widths[2]
    whole = estimate_score(items, bank.new)
    assert whole.low == whole.high == whole.score == pytest.approx(bank.new.mean())


@pytest.mark.parametrize(("value", "word"), [(1.0, "right"), (0.0, "wrong")])
def test_all_right_or_all_wrong_is_noted_and_stays_open_to_one_side(bank: Bank, value: float, word: str) -> None:
    asked = np.where(np.arange(300) < 30, value, np.nan)
    found = estimate_score(fit_items(bank.scores), asked)
    assert f"all 30 probes are {word}" in found.notes[0]
    assert 0 < found.score < 1
    assert found.high > found.low


@pytest.mark.parametrize("method", METHODS)
def test_probes_tell_models_apart_and_come_one_a_group(bank: Bank, method: str) -> None:
    picked = choose_probes(bank, 40, method)  # type: ignore[arg-type]
    assert len(set(picked.tolist())) == 40
    assert bank.telling[picked].all()
    assert bank.prompts["group"].iloc[picked].nunique() == 40


def test_more_probes_than_there_are_are_refused(bank: Bank) -> None:
    with pytest.raises(InvalidInput, match="from 1 to"):
        choose_probes(bank, 301)


def test_probes_are_shared_among_capabilities(bank: Bank) -> None:
    small = Bank("debugging", bank.prompts[:10], bank.models, bank.scores[:, :10], bank.new[:10])
    shares = shares_of(50, {"reasoning": bank, "debugging": small})
    assert sum(shares.values()) == 50
    assert shares["debugging"] <= 10


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.ones((5, 40)), "no prompt tells models apart"),
        (np.ones((1, 40)), "at least two models"),
        (np.full((5, 40), 1.5), "outside"),
    ],
)
def test_banks_that_say_nothing_are_refused(scores: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        fit_items(scores)


def test_figures_are_put_on_the_catalogs_scale(bank: Bank) -> None:
    estimate = estimate_score(fit_items(bank.scores), bank.new)
    x = np.array([0.2, 0.4, 0.6, 0.8])
    figure = linked(estimate, x, 0.1 + 0.5 * x, "reasoning")
    assert figure.value == pytest.approx(0.1 + 0.5 * estimate.score)
    assert unlinked(estimate).value == estimate.score
    with pytest.raises(InvalidInput, match="two of different scores are needed"):
        linked(estimate, x[:1], x[:1], "reasoning")
    with pytest.raises(InvalidInput, match="do not rise"):
        linked(estimate, x, 1 - x, "reasoning")


def test_a_catalog_keeps_its_comments_and_other_models(tmp_path: Path) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_text(CATALOG, encoding="utf-8")
    entry = {"provider": "ours", "prices": {"input_per_mtok": 1.0, "output_per_mtok": 2.0}}
    write_figures(path, "new", {"reasoning": 0.5, "code_gen": 0.4}, "from probes", entry)
    write_figures(path, "weak", {"reasoning": 0.35}, "from probes")
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# our models\n")
    found = ModelCatalog.from_mapping(yaml.safe_load(text))
    assert found["new"].raw == {"reasoning": 0.5, "code_gen": 0.4}
    assert found["weak"].raw == {"reasoning": 0.35, "code_gen": 0.25}
    assert found["strong"].raw == {"reasoning": 0.80, "code_gen": 0.75}
    with pytest.raises(CatalogError):
        with_figures(path, "unheard", {"reasoning": 0.5}, "")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """60 prompts that 12 models answered, two of them in the catalog, and the answers of a new one."""
    known = answers(np.r_[-1.0, 1.5, np.random.default_rng(5).normal(size=10), 0.7], 60, seed=6)
    names = ["weak", "strong", *(f"m{j}" for j in range(10)), "new"]
    prompts, outcomes, own = [], [], []
    for i in range(60):
        turns = [{"role": "user", "content": f"Aufgabe {i}: wie viel ist {i} mal {i + 7}?"}]
        prompts.append({"source": "exam", "prompt_id": f"p{i}", "language": "de", "task_kind": "math", "turns": turns, "group": f"g{i}"})
        for name, row in zip(names, known, strict=True):
            record = {"source": "exam", "prompt_id": f"p{i}", "model": name, "score_kind": "exact", "score": row[i]}
            (own if name == "new" else outcomes).append(record)
    for file, rows in (("prompts", prompts), ("outcomes", outcomes), ("new", own)):
        (tmp_path / f"{file}.jsonl").write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    (tmp_path / "catalog.yaml").write_text(CATALOG, encoding="utf-8")
    return tmp_path


def run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["interlock", "profile", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_new_model_gets_its_entry(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    data, catalog = folder / "data", folder / "catalog.yaml"
    data.mkdir()
    for name in ("prompts", "outcomes"):
        (folder / f"{name}.jsonl").rename(data / f"{name}.jsonl")
    known = ("--data", data, "--probes", folder / "new.jsonl", "--catalog", catalog)
    assert run(monkeypatch, "new", *known, "--prices", "1,2") == 0
    assert "reasoning" in capsys.readouterr().out
    assert "new" not in yaml.safe_load(catalog.read_text(encoding="utf-8"))["models"]
    assert run(monkeypatch, "new", *known, "--prices", "1,2", "--write") == 0
    entry = yaml.safe_load(catalog.read_text(encoding="utf-8"))["models"]["new"]
    assert 0.25 < entry["raw"]["reasoning"] < 0.85
    assert "60 probes" in entry["notes"]
    capsys.readouterr()
    probes = folder / "probes.jsonl"
    assert run(monkeypatch, "--choose-probes", 20, "--data", data, "--output", probes) == 0
    assert len(probes.read_text(encoding="utf-8").splitlines()) == 20
    assert len(load_prompts(probes)) == 20
    capsys.readouterr()
    before = catalog.read_bytes()
    for wrong, message in (
        (("newer", *known), "newer"),
        ((*known,), "give either the name of a model"),
        (("new", *known, "--min-probes", 100), "too few probes"),
        (("new", *known, "--scale", "other"), "allowed are catalog, outcomes"),
        (("new", *known, "--prices", "cheap", "--write"), "INPUT,OUTPUT"),
    ):
        assert run(monkeypatch, *wrong) == 2
        assert message in capsys.readouterr().err
    assert catalog.read_bytes() == before


def test_models_are_measured_only_by_others(folder: Path) -> None:
    from training.outcomes import load_outcomes

    prompts = load_prompts(folder / "prompts.jsonl")
    outcomes = load_outcomes(folder / "outcomes.jsonl")
    found = banks_of(prompts, outcomes, "weak")["reasoning"]
    assert "weak" not in found.models
    assert len(found.models) == 11
    with pytest.raises(InvalidInput, match="leave it out of the references"):
        banks_of(prompts, outcomes, "weak", references=["weak", "strong"])
