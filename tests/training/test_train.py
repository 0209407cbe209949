"""The offline path on a small table of our own: two models, four capabilities, four languages."""

import json
import zlib
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from router.encoder import EncoderSpec
from router.errors import InvalidInput
from router.features import FEATURE_NAMES
from router.files.artifacts import load_router, read_artifact
from router.requirements import Calibration
from router.types import Conversation
from training.assemble import assemble, load_tables
from training.card import model_card
from training.inputs import inputs_of
from training.learned_baselines import answer_table, held_out_policies
from training.pool.recipe import read_pool_recipe
from training.promise import GuaranteeOptions
from training.recipe import Pair, Recipe, read_recipe, recipe_from_mapping, recipe_of
from training.report.page import render_page
from training.seen import seen_bytes, was_seen
from training.targets import TargetMapping
from training.train import cross_validate, quality_words, threshold_for_quality, train_router

LANGUAGES = ("en", "zh", "ar", "ru")
TASKS = {
    "code": ("Write a function that sorts a list", "写一个对列表排序的函数", "اكتب دالة لترتيب القائمة", "Напиши функцию сортировки"),
    "debug": ("Fix this Traceback of mine", "修复这个错误 Traceback", "أصلح هذا الخطأ Traceback", "Исправь ошибку Traceback"),
    "math": ("How many apples are left", "还剩几个苹果", "كم تفاحة بقيت", "Сколько яблок осталось"),
    "tool_use": ("Book a table for two tonight", "今晚订两个人的位子", "احجز طاولة لشخصين", "Забронируй столик на двоих"),
}
REPOSITORY = Path(__file__).resolve().parents[2]
HARD = {"code": 0.7, "debug": 0.5, "math": 0.1, "tool_use": 0.3}


class BigramEncoder:
    """Counts of character bigrams, hashed: no weights, and texts that share words are near."""

    spec = EncoderSpec("fast", "bigrams", "1", "", 256, 64)

    def encode(self, texts):
        rows = np.zeros((len(texts), 64), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for pair in pairwise(text):
                row[zlib.crc32("".join(pair).encode()) % 64] += 1
        return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)


@pytest.fixture(scope="module")
def encoder():
    return BigramEncoder()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    rng = np.random.default_rng(0)
    prompts, outcomes = [], []
    for number in range(80):
        for task, texts in TASKS.items():
            for language, text in zip(LANGUAGES, texts, strict=True):
                prompt_id = f"{task}-{number}-{language}"
                noise = "".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz "), 60))
                turns = json.dumps([{"role": "user", "content": f"{text} {noise}"}])
                prompts.append(("ours", prompt_id, language, task, turns, f"{task}-{number}"))
                strong = float(rng.random() < 0.9)
                weak = strong * float(rng.random() > HARD[task])
                outcomes += [("ours", prompt_id, "small", "pass", weak), ("ours", prompt_id, "large", "pass", strong)]
    path = tmp_path_factory.mktemp("data")
    pd.DataFrame(prompts, columns=["source", "prompt_id", "language", "task_kind", "turns", "group"]).to_parquet(path / "prompts.parquet")
    pd.DataFrame(outcomes, columns=["source", "prompt_id", "model", "score_kind", "score"]).to_parquet(path / "outcomes.parquet")
    (path / "recipe.toml").write_text('[heads]\nkind = "linear"\n[[pair]]\nweak = "small"\nstrong = "large"\n')
    return path


@pytest.fixture(scope="module")
def plan():
    return Recipe((Pair(("small",), ("large",)),), heads={"kind": "linear", "calibration_folds": 3})


@pytest.fixture(scope="module")
def training(folder, plan):
    return assemble(*load_tables([folder]), plan)


def test_rows_conversations_and_targets_are_in_one_order(training):
    for row, conversation, target in zip(training.rows.itertuples(), training.conversations, training.targets, strict=True):
        assert conversation.user_texts[0] == row.turns[0]["content"]
        assert target.sum() == pytest.approx(row.need)
        assert np.count_nonzero(target) <= 1


def test_a_router_learns_the_kind_of_work_and_holds_it_in_every_language(training, plan, encoder):
    trained = train_router(training, encoder, plan, say=lambda _: None)
    assert trained.held_out.get("apgr").value > 0.6
    assert trained.artifact.card["sources"][0]["weak"] == "small"
    assert set(trained.artifact.metrics["family"]) == {"English", "Sinitic", "Semitic", "Slavic"}
    card = model_card(trained.artifact)
    assert "| Sinitic |" in card
    assert "held-out" in card


def test_a_guarantee_rests_on_groups_that_were_not_fitted_on(training, plan, encoder):
    said = []
    promised = replace(plan, guarantee=GuaranteeOptions(epsilon=0.2, delta=0.1, share=0.4))
    trained = train_router(training, encoder, promised, say=said.append)
    found = trained.guarantee
    assert found.kept
    assert trained.artifact.default_threshold == found.default_threshold > 0
    assert trained.artifact.card["guarantee"]["statement"] == found.statement in said
    fitted = set(trained.fitted["group"])
    assert found.overall.groups + len(fitted) == training.rows["group"].nunique()
    assert 1 - was_seen(training.rows, np.frombuffer(seen_bytes(trained.fitted), dtype="<u4")).mean() == pytest.approx(0.4, abs=0.05)
    assert "## Guarantee" in model_card(trained.artifact)
    assert trained.held_out.about["threshold"] == found.default_threshold


def test_a_guarantee_that_cannot_be_given_is_told_and_the_strictest_threshold_taken(training, plan, encoder):
    trained = train_router(training, encoder, replace(plan, guarantee=GuaranteeOptions(epsilon=0.001)), say=lambda _: None)
    assert not trained.guarantee.kept
    assert trained.artifact.default_threshold == 0.0
    assert "Nothing can be promised: there are 96 groups" in trained.artifact.card["guarantee"]["statement"]


def test_families_with_a_promise_are_measured_at_their_own_threshold(training, plan, encoder):
    options = GuaranteeOptions(epsilon=0.3, delta=0.2, per_family=True, share=0.4)
    trained = train_router(training, encoder, replace(plan, guarantee=options), say=lambda _: None)
    thresholds = trained.artifact.family_thresholds
    assert set(thresholds) >= {"Sinitic", "Semitic"}
    assert trained.held_out.about["family_thresholds"] == thresholds


def test_cross_validation_routes_every_prompt_with_a_router_that_has_not_seen_its_group(training, plan, encoder):
    result = cross_validate(training, encoder, plan, folds=3, say=lambda _: None)
    assert result.get("apgr").n == len(training.rows)
    assert result.get("apgr").value > 0.58
    assert result.get("apgr", "oracle").value > result.get("apgr").value


def test_learned_baselines_stand_beside_the_router_on_its_folds_and_inputs(training, folder, plan, encoder):
    scores = answer_table(training.rows, load_tables([folder])[1], plan.models)
    seen = []

    def learn(inputs, fold):
        seen.append((inputs.shape, sorted(set(fold))))
        return held_out_policies(["logistic"], inputs, scores, training.groups, fold, say=lambda _: None)[0]

    about = {"weak": "small", "strong": "large"}
    result = cross_validate(training, encoder, plan, folds=2, learn=learn, about=about, say=lambda _: None)
    assert seen == [((len(training.rows), 64 + len(FEATURE_NAMES)), [0, 1])]
    assert result.get("apgr", "logistic").value > 0.58
    assert result.get("strong_share", "logistic").value == pytest.approx(result.get("strong_share").value)
    assert "logistic regression" in render_page(result)
    assert "matrix factorisation" not in render_page(result)


def test_training_and_serving_see_the_same_inputs(training, plan, encoder):
    together = inputs_of(encoder, training.conversations[:20], plan.budget)
    alone = np.concatenate([inputs_of(encoder, [c], plan.budget) for c in training.conversations[:20]])
    assert together == pytest.approx(alone, abs=1e-6)


def test_more_folds_than_groups_are_refused(training, plan, encoder):
    few = training.of(np.flatnonzero(training.groups == training.groups[0]))
    with pytest.raises(InvalidInput, match="1 groups cannot fill 5 folds"):
        cross_validate(few, encoder, plan)


def test_constant_labels_are_refused(folder, plan):
    prompts, outcomes = load_tables([folder])
    with pytest.raises(InvalidInput, match="one class only"):
        assemble(prompts, outcomes.assign(score=1.0), plan)


def test_an_unknown_model_is_named_with_its_neighbours(folder):
    with pytest.raises(InvalidInput, match=r"'smal'.*small"):
        assemble(*load_tables([folder]), Recipe((Pair(("smal",), ("large",)),)))


def test_the_recipe_is_the_one_given_or_that_of_the_data_with_the_pair_named_instead(tmp_path):
    text = '[heads]\nkind = "linear"\n[[pair]]\nweak = "a"\nstrong = "b"\n'
    (tmp_path / "recipe.toml").write_text(text)
    (tmp_path / "other.toml").write_text(text.replace('"b"', '"c"'))
    assert recipe_of(None, [tmp_path], [], []).pairs == (Pair(("a",), ("b",)),)
    assert recipe_of(tmp_path / "other.toml", [tmp_path], [], [], ["exact"]).pairs == (Pair(("a",), ("c",), score_kinds=("exact",)),)
    named = recipe_of(tmp_path / "other.toml", [tmp_path], ["x"], ["y"])
    assert (named.pairs, named.heads["kind"], named.title) == ((Pair(("x",), ("y",)),), "linear", "x against y")
    assert not recipe_of(None, [tmp_path], ["x"], ["y"]).heads


@pytest.mark.parametrize(("weak", "strong", "message"), [(["x"], [], "go together"), ([], [], "no pair of models")])
def test_without_a_pair_there_is_no_recipe(tmp_path, weak, strong, message):
    with pytest.raises(InvalidInput, match=message):
        recipe_of(None, [tmp_path], weak, strong)


def test_the_same_folder_twice_is_refused(folder):
    with pytest.raises(InvalidInput, match="two of the data folders"):
        load_tables([folder, folder])


def test_outcomes_of_a_missing_prompt_are_refused(folder, tmp_path):
    prompts = pd.read_parquet(folder / "prompts.parquet")
    prompts.iloc[1:].to_parquet(tmp_path / "prompts.parquet")
    load_tables([folder])[1].to_parquet(tmp_path / "outcomes.parquet")
    with pytest.raises(InvalidInput, match=rf"prompt '{prompts['prompt_id'].iloc[0]}' of source .* is not in the prompt table"):
        load_tables([tmp_path])


def test_the_threshold_is_the_largest_that_keeps_the_goal():
    need = np.array([0.0, 0.1, 0.2, 0.9])
    weak, strong = np.array([1.0, 1.0, 0.0, 0.0]), np.array([1.0, 1.0, 1.0, 1.0])
    threshold = threshold_for_quality(need, weak, strong, 1.0)
    assert 0.1 < threshold < 0.2
    assert threshold_for_quality(need, weak, strong, 0.7) > 0.2
    assert threshold_for_quality(need, np.zeros(4), strong, 1.0) == 0.0


def test_a_goal_that_no_threshold_keeps_is_said():
    need, strong = np.array([0.0, 0.0, 0.3, 0.4]), np.ones(4)
    assert quality_words(need, np.zeros(4), strong, 0.0, 0.98).startswith("keeps 50.0% of always-strong on held-out rows and not 98%")
    assert quality_words(need, np.array([1.0, 1.0, 0.0, 0.0]), strong, 0.0, 0.98).startswith("the largest that keeps 98%")


def test_heads_that_tell_no_prompts_apart_are_refused(training, encoder, plan, monkeypatch):
    monkeypatch.setattr("training.fit.fit_calibration", lambda decision, *_: Calibration(np.zeros(1), np.full(1, 0.5)))
    with pytest.raises(InvalidInput, match=r"nothing was learned: every one of the \d+ prompts is given the same requirement"):
        train_router(training, encoder, replace(plan, language_effects=False), say=lambda _: None)


def test_ties_are_not_split_by_the_threshold():
    need, weak, strong = np.array([0.3, 0.3, 0.3]), np.array([1.0, 0.0, 0.0]), np.ones(3)
    assert threshold_for_quality(need, weak, strong, 0.9) == 0.0


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::ResourceWarning")  # inside MLflow
def test_the_command_trains_tracks_and_serves(folder, tmp_path):
    from interlock.cli import app

    runner = CliRunner()
    store = f"sqlite:///{tmp_path / 'mlflow.db'}"
    arguments = ["train", "--data", str(folder), "--output", str(tmp_path / "router"), "--tracking-uri", store]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INTERLOCK_CACHE", str(tmp_path / "cache"))
        patch.chdir(tmp_path)
        for _ in range(2):
            result = runner.invoke(app, arguments)
            assert result.exit_code == 0, result.output
    artifact, name = read_artifact(tmp_path / "router")
    assert name in result.output
    assert "registered version 2" in result.output
    router, _ = load_router(tmp_path / "router")
    noise = "lorem ipsum qxz vbk wjt dolor hgy sit pfm amet crn ueo dia nos lki"
    decision = router.route(Conversation.from_text(f"写一个对列表排序的函数 {noise}"))
    assert decision.requirements.values["code_gen"] == max(decision.requirements.values.values())
    assert artifact.card["prompts"] == 1280
    assert (tmp_path / "router" / "README.md").read_text().startswith("# Model card")


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "no \\[\\[pair\\]\\]"),
        ({"pair": [{"weak": "a"}]}, "no 'strong'"),
        ({"pair": [{"weak": "a", "strong": []}]}, "strong is \\[\\]"),
        ({"pair": [{"weak": "a", "strong": "b", "colour": 1}]}, "'colour'"),
        ({"pair": [{"weak": "a", "strong": "b", "bandwidth": -1}]}, "bandwidth is -1"),
        ({"pair": [{"weak": "a", "strong": "b"}], "quality_goal": 2}, "quality_goal is 2"),
        ({"pair": [{"weak": "a", "strong": "b"}], "targets": {"margin": 2}}, "margin 2"),
        ({"pair": [{"weak": "a", "strong": "b"}], "heads": {"depth": 3}}, "'depth'"),
        ({"pair": [{"weak": "a", "strong": "b"}], "encoder_prefix": 3}, "encoder_prefix is 3"),
        ({"pair": [{"weak": "a", "strong": "b"}], "guarantee": {"epsilon": 2}}, "epsilon of the guarantee is 2"),
        ({"pair": [{"weak": "a", "strong": "b"}], "guarantee": {"delta": 0.1}}, "epsilon"),
        ({"pair": [{"weak": "a", "strong": "b"}], "guarantee": {"epsilon": 0.1, "gamma": 1}}, "'gamma'"),
    ],
)
def test_a_recipe_that_cannot_be_meant_is_refused(raw, message):
    with pytest.raises(InvalidInput, match=message):
        recipe_from_mapping(raw, "recipe.toml")


def test_another_encoder_does_not_inherit_the_prefix():
    recipe = recipe_from_mapping({"pair": [{"weak": "a", "strong": "b"}], "encoder": "some/model", "encoder_prefix": "query: "}, "x")
    assert (recipe.encoder, recipe.encoder_prefix) == ("some/model", "query: ")
    assert recipe.with_encoder(None, None) == recipe
    assert recipe.with_encoder("fast", None).encoder_prefix is None
    assert recipe.with_encoder(None, "").encoder_prefix == ""


def test_recipes_of_the_repository_can_be_read():
    found = [REPOSITORY / "data/sample/recipe.toml", *REPOSITORY.glob("*/recipes/*.toml")]
    for path in found:
        if path.name.startswith("pool-"):
            assert len(read_pool_recipe(path).models) > 2
            continue
        recipe = read_recipe(path)
        assert recipe.pairs
        assert isinstance(recipe.targets, TargetMapping)


def test_training_never_replaces_a_folder_of_other_files(folder):
    from interlock.cli import app

    before = sorted(folder.iterdir())
    result = CliRunner().invoke(app, ["train", "--data", str(folder), "--output", str(folder)])
    assert isinstance(result.exception, InvalidInput)
    assert "holds other files" in str(result.exception)
    assert sorted(folder.iterdir()) == before


def test_a_missing_recipe_says_what_to_give(tmp_path):
    with pytest.raises(InvalidInput, match="--recipe, or --weak and --strong"):
        read_recipe(tmp_path / "recipe.toml")
