from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from router.errors import InvalidInput
from training.baselines import LEARNED
from training.learned_baselines import METHODS, answer_table, fit_baseline, held_out_policies, method_names
from training.learned_baselines.answers import gains
from training.learned_baselines.items import ItemResponse, _Answers, _thinned
from training.learned_baselines.matrix import MatrixFactorisation, _Battles, _battles
from training.learned_baselines.pair import PairClassifier
from training.learned_baselines.tune import gain_over_random
from training.metrics import apgr
from training.split import group_folds

N, D = 400, 4


@pytest.fixture(scope="module")
def world() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, answers of five models, groups. The larger the first column, the surer all fail but the strong model, which errs anywhere."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D))
    ability = np.array([-1.0, 2.5, 0.0, 1.0, -2.0])
    solved = 1 / (1 + np.exp(-(ability[None, :] - 2.5 * X[:, :1])))
    solved[:, 1] = 0.85
    scores = (rng.random(solved.shape) < solved).astype(float)
    scores[rng.random((N, 5)) < [0, 0, 0.3, 0.5, 0.9]] = np.nan
    return X, scores, np.array([f"g{i // 2}" for i in range(N)], dtype=object)


def test_every_baseline_has_a_description_and_candidates() -> None:
    assert list(METHODS) == list(LEARNED)
    for candidates in METHODS.values():
        settings = [said for said, _ in candidates(100, 0)]
        assert len(set(settings)) == len(settings) > 1


@pytest.mark.parametrize("name", list(METHODS))
def test_a_baseline_finds_a_need_that_is_in_the_inputs(name: str, world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, groups = world
    learn, held = np.arange(300), np.arange(300, N)
    probability = fit_baseline(name, X[learn], scores[learn], groups[learn]).probability(X[held])
    assert ((probability > 0) & (probability < 1)).all()
    assert np.corrcoef(probability, X[held, 0])[0, 1] > 0.6


def test_the_same_seed_gives_the_same_needs(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, groups = world
    one, two = (fit_baseline("irt", X, scores, groups, seed=3).probability(X) for _ in range(2))
    assert (one == two).all()


def test_held_out_rows_teach_nothing(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, groups = world
    fold = group_folds(groups, 2)
    changed = scores.copy()
    changed[fold == 0] = 1 - changed[fold == 0]
    for name in ("knn", "logistic"):
        (first,), settings = held_out_policies([name], X, scores, groups, fold, say=lambda _: None)
        (second,), _ = held_out_policies([name], X, changed, groups, fold, say=lambda _: None)
        assert first.need is not None
        assert second.need is not None
        assert (first.need[fold == 0] == second.need[fold == 0]).all()
        assert not (first.need[fold == 1] == second.need[fold == 1]).all()
        assert len(settings[name]) == 2


def test_gain_over_random_is_apgr_times_the_gap() -> None:
    rng = np.random.default_rng(1)
    weak, strong, need = rng.random(50) / 2, 0.5 + rng.random(50) / 2, rng.integers(0, 5, 50).astype(float)
    assert gain_over_random(need, strong - weak) == pytest.approx((apgr(weak, strong, need) - 0.5) * (strong - weak).mean())
    assert gain_over_random(np.zeros(50), strong - weak) == pytest.approx(0)


@pytest.mark.parametrize("constant", [0.0, 1.0])
def test_one_class_gives_a_constant(constant: float, world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, groups = world
    same = np.column_stack([np.zeros(N), np.full(N, constant), scores[:, 2]])
    for name in ("svm", "mf", "boosted"):
        assert np.isfinite(fit_baseline(name, X, same, groups).probability(X)).all()
    assert (PairClassifier().fit(X, same).predict(X) == 0).all()


def test_where_there_is_nothing_to_learn_calibration_never_turns_the_order_round() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(100, 3))
    slopes = [fit_baseline("svm", X, rng.integers(0, 2, (100, 2)).astype(float), np.arange(100), seed).slope for seed in range(8)]
    assert min(slopes) == 0


@pytest.mark.parametrize("kind", ["battles", "answers"])
def test_gradients_are_those_of_the_loss(kind: str, world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, _ = world
    rng = np.random.default_rng(0)
    objective: _Battles | _Answers
    if kind == "battles":
        shapes = ((D, 3), (3,), (5, 3), (3,))
        objective = _Battles(X, *_battles(scores, 2, rng), 5, shapes, 0.1)
        size = D * 3 + 3 + 15 + 3
    else:
        objective = _Answers(X, scores, 2, 0.1)
        size = D * 2 + 2 + D + 1 + 10
    at = rng.normal(0, 0.5, size)
    gradient = objective(at)[1]
    for i in range(size):
        step = np.zeros(size)
        step[i] = 1e-6
        assert gradient[i] == pytest.approx((objective(at + step)[0] - objective(at - step)[0]) / 2e-6, abs=1e-6)


def test_battles_are_between_models_that_answered_and_have_a_winner(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    _, scores, _ = world
    row, winner, loser = _battles(scores, 4, np.random.default_rng(0))
    assert (scores[row, winner] > scores[row, loser]).all()
    assert set(winner) | set(loser) == {0, 1, 2, 3, 4}
    row, winner, loser = _battles(scores, 0, np.random.default_rng(0))
    assert set(winner) | set(loser) == {0, 1}
    assert len(row) == (scores[:, 0] != scores[:, 1]).sum()


def test_other_models_teach_the_ones_that_can_use_them(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, _ = world
    for estimator in (ItemResponse(), MatrixFactorisation()):
        assert not np.allclose(estimator.fit(X, scores).predict(X), type(estimator)().fit(X, scores[:, :2]).predict(X))


def test_a_prompt_that_many_answered_is_thinned_but_keeps_the_pair() -> None:
    scores = np.ones((20, 30))
    thinned = _thinned(scores, 4, np.random.default_rng(0))
    assert (np.isfinite(thinned).sum(axis=1) == 6).all()
    assert np.isfinite(thinned[:, :2]).all()
    assert np.isfinite(thinned).any(axis=0).sum() > 6


def test_the_answer_table_has_the_pair_first_and_only_scores_of_the_rows_kind() -> None:
    rows = pd.DataFrame({"source": ["a", "a", "b"], "prompt_id": ["1", "2", "1"], "score_kind": ["x", "x", "y"]}, index=[7, 3, 5])
    rows = rows.assign(weak=[0.1, 0.2, 0.3], strong=[1.0, 0.9, 0.8])
    answers = ["a 1 small x 0.1", "a 2 middle x 0.5", "a 1 middle z 0.7", "b 1 middle y 0.6", "b 1 big y 0.8"]
    outcomes = pd.DataFrame([line.split() for line in answers], columns=["source", "prompt_id", "model", "score_kind", "score"])
    outcomes["score"] = outcomes["score"].astype(float)
    table = answer_table(rows, outcomes, {"small", "big"})
    assert table[:, :2].tolist() == [[0.1, 1.0], [0.2, 0.9], [0.3, 0.8]]
    assert table.shape == (3, 3)
    assert np.array_equal(table[:, 2], [np.nan, 0.5, 0.6], equal_nan=True)


@pytest.mark.parametrize(
    ("scores", "message"), [(np.zeros((3, 1)), "shape \\(3, 1\\)"), (np.array([[0.0, 1.0], [np.nan, 1.0]]), "row 1 has no score")]
)
def test_an_answer_table_without_the_pair_is_refused(scores: np.ndarray, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        gains(scores)


def test_one_group_cannot_be_tuned_on(world: tuple[np.ndarray, np.ndarray, np.ndarray]) -> None:
    X, scores, _ = world
    with pytest.raises(InvalidInput, match="one group"):
        fit_baseline("knn", X, scores, np.zeros(N))


def test_names_are_checked() -> None:
    assert method_names("all") == tuple(METHODS)
    assert method_names("svm, knn,svm") == ("svm", "knn")
    for asked, message in (("kn", "'kn'.*knn"), (",", "names none")):
        with pytest.raises(InvalidInput, match=message):
            method_names(asked)
