"""Translations for training: read from tables and files, checked, and hidden where their prompts are held out."""

import json

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from router.files.encoders import load_encoder
from router.text import TextBudget
from training.assemble import assemble, load_tables
from training.parallel import load_translations
from training.prompts import load_prompts
from training.recipe import Pair, ParallelText, Recipe, recipe_from_mapping
from training.train import cross_validate, train_router

TEXTS = {"en": "Add the numbers {} and seven.", "de": "Addiere die Zahlen {} und sieben.", "fr": "Additionne les nombres {} et sept."}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("data")
    rng = np.random.default_rng(0)
    prompts, outcomes = [], []
    for number in range(60):
        for language, text in TEXTS.items():
            name = f"{number}-{language}"
            turns = json.dumps([{"role": "user", "content": text.format(number)}])
            prompts.append(("ours", name, language, "math", turns, f"sum-{number}"))
            outcomes += [("ours", name, "small", "pass", float(rng.random() < 0.4)), ("ours", name, "large", "pass", 1.0)]
    pd.DataFrame(prompts, columns=["source", "prompt_id", "language", "task_kind", "turns", "group"]).to_parquet(path / "prompts.parquet")
    pd.DataFrame(outcomes, columns=["source", "prompt_id", "model", "score_kind", "score"]).to_parquet(path / "outcomes.parquet")
    rows = [(f"news-{i}", language, text.format(i)) for i in range(30) for language, text in TEXTS.items()]
    rows.append(("news-0", "it", "x"))
    columns = ["group", "language", "text"]
    pd.DataFrame(rows, columns=columns).assign(outcome_prompt_id="7-en").to_parquet(path / "linked.parquet")
    pd.DataFrame(rows, columns=columns).to_parquet(path / "news.parquet")
    return path


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("fast", 1)


@pytest.fixture(scope="module")
def prompts(folder):
    return load_prompts(folder)


def translations(prompts, folder, *wanted):
    return load_translations(wanted, prompts, [folder], TextBudget())


def test_groups_of_a_source_and_files_become_meanings(prompts, folder):
    found = translations(prompts, folder, ParallelText(sources=("ours",)), ParallelText(file="news.parquet", meanings=10))
    table = pd.DataFrame({"source": found.source, "meaning": found.meaning, "language": found.language})
    assert table.groupby("source")["meaning"].nunique().to_dict() == {"news": 10, "ours": 60}
    assert set(table["language"]) == set(TEXTS)


def test_a_translation_that_lacks_most_of_the_text_is_left_out(prompts, folder):
    found = translations(prompts, folder, ParallelText(file="news.parquet", meanings=30))
    assert len(found) == 90
    assert "it" not in set(found.language)


def test_more_data_keeps_the_choice(prompts, folder):
    few, more = (set(translations(prompts, folder, ParallelText(file="news.parquet", meanings=m)).meaning) for m in (5, 12))
    assert few < more


def test_meanings_of_held_out_prompts_are_hidden_in_every_language(prompts, folder):
    found = translations(prompts, folder, ParallelText(sources=("ours",)), ParallelText(file="news.parquet"))
    seen = found.of(found.seen_by(prompts[prompts["prompt_id"] == "3-de"]))
    assert "sum-3" not in set(seen.meaning)
    assert len(seen) == len(found) - len(TEXTS)


def test_texts_of_a_file_are_hidden_with_the_prompt_they_translate(prompts, folder):
    found = translations(prompts, folder, ParallelText(file="linked.parquet"))
    assert len(found.seen_by(prompts[prompts["prompt_id"] == "7-en"])) == 0
    assert len(found.seen_by(prompts[prompts["prompt_id"] == "8-en"])) == len(found)


def test_no_parallel_text_is_fine(prompts, folder):
    assert translations(prompts, folder) is None


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (ParallelText(sources=("theirs",)), "parallel source 'theirs' of the recipe is not in the prompts, which are of ours"),
        (ParallelText(file="missing.parquet"), "parallel text 'missing.parquet' of the recipe is in none of the data folders"),
        (ParallelText(file="outcomes.parquet"), "outcomes.parquet lacks column 'group'"),
    ],
)
def test_what_is_not_parallel_is_named(prompts, folder, wanted, message):
    with pytest.raises(InvalidInput, match=message):
        translations(prompts, folder, wanted)


def test_one_language_is_nothing_parallel(prompts, folder):
    with pytest.raises(InvalidInput, match="ours: no group is there in 2 languages"):
        translations(prompts[prompts["language"] == "en"], folder, ParallelText(sources=("ours",)))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, "parallel 1 needs either sources"),
        ({"sources": ["a"], "file": "b"}, "parallel 1 needs either sources"),
        ({"sources": ["a"], "meanings": 1}, "at least 2"),
        ({"sourcs": ["a"]}, "sourcs"),
    ],
)
def test_recipes_that_make_no_sense_are_refused(entry, message):
    with pytest.raises(InvalidInput, match=message):
        recipe_from_mapping({"pair": [{"weak": "a", "strong": "b"}], "parallel": [entry]}, "recipe.toml")


def test_routers_are_trained_and_cross_validated_with_translations(folder, encoder):
    plan = Recipe(
        (Pair(("small",), ("large",)),),
        (ParallelText(("ours",), licence="ours"), ParallelText(file="news.parquet", licence="theirs")),
        heads={"kind": "blend", "calibration_folds": 3, "n_estimators": 20},
    )
    training = assemble(*load_tables([folder]), plan, [folder])
    card = train_router(training, encoder, plan, say=lambda _: None).artifact.card
    assert [(entry["source"], entry["licence"]) for entry in card["parallel"]] == [("news", "theirs"), ("ours", "ours")]
    assert cross_validate(training, encoder, plan, folds=3, say=lambda _: None).get("apgr").n == 180
