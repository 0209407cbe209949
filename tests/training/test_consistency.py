"""Heads that answer alike for the same meaning in another language."""

import numpy as np
import pytest

from training.consistency import ParallelRows
from training.fit import RequirementsEstimator

LANGUAGES = 6


def world(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs, need, and their translations: column 0 bears the task, column 1 task and language, column 2 language alone."""
    task = rng.normal(size=n)
    language = rng.normal(size=n)
    x = np.column_stack([task + 0.5 * rng.normal(size=n), task + 1.5 * language, language])
    return x, task, language


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    x, task, _ = world(rng, 2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-2 * task))).astype(float)
    return x, y


@pytest.fixture(scope="module")
def parallel():
    rng = np.random.default_rng(1)
    x, _, _ = world(rng, 100)
    inputs = np.repeat(x, LANGUAGES, axis=0)
    moved = rng.normal(size=len(inputs))
    inputs[:, 1] += 1.5 * moved
    inputs[:, 2] += moved
    meaning = np.repeat(np.arange(100), LANGUAGES).astype(str).astype(object)
    return ParallelRows(inputs, meaning, np.full(len(inputs), "ours", dtype=object))


def spread(estimator: RequirementsEstimator, parallel: ParallelRows) -> float:
    """How far the requirement moves between translations, as a share of how far it moves between meanings."""
    said = estimator.predict(parallel.inputs).reshape(-1, LANGUAGES)
    return float(said.std(axis=1).mean() / said.mean(axis=1).std())


@pytest.mark.parametrize("kind", ["linear", "blend"])
def test_translations_make_the_requirement_depend_less_on_the_language(data, parallel, kind):
    x, y = data
    ignorant = RequirementsEstimator(kind=kind, n_estimators=60).fit(x, y)
    taught = RequirementsEstimator(kind=kind, n_estimators=60).fit(x, y, parallel=parallel)
    assert spread(taught, parallel) < 0.8 * spread(ignorant, parallel)
    assert np.corrcoef(taught.predict(x), y)[0, 1] > 0.4


def test_more_consistency_means_less_language(data, parallel):
    x, y = data
    spreads = [
        spread(RequirementsEstimator(kind="linear", consistency=c).fit(x, y, parallel=parallel), parallel) for c in (0.0, 10.0, 1000.0)
    ]
    assert spreads[0] > spreads[1] > spreads[2]


def test_every_source_of_translations_weighs_the_same():
    rng = np.random.default_rng(2)
    inputs = np.concatenate([rng.normal(size=(900, 2)) * [1, 0], rng.normal(size=(30, 2)) * [0, 1]])
    meaning = np.repeat(np.arange(310), 3).astype(object)
    source = np.array(["big"] * 900 + ["small"] * 30, dtype=object)
    rows = ParallelRows(inputs, meaning, source)
    covariance = rows.covariance(inputs)
    assert covariance[0, 0] == pytest.approx(covariance[1, 1], rel=0.5)
    noise = rows.noise(inputs, 4000, rng)
    assert (noise[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)


def test_equal_names_of_meanings_in_two_sources_are_two_meanings():
    rows = ParallelRows(np.array([[0.0], [2.0], [10.0], [14.0]]), np.array(["1"] * 4, object), np.array(["a", "a", "b", "b"], object))
    assert rows.covariance(rows.inputs)[0, 0] == pytest.approx((1 + 4) / 2)
