"""Heads evaluated together say what each says alone, whatever their trees look like and however they are combined."""

from collections.abc import Iterator

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.forest import Forest, fits
from router.requirements import Calibration, ConditionalHead, Head, LinearHead, MeanHead, RequirementsPredictor, TreeHead
from training.fit import trees_from_booster

WIDTH = 6


def grown_at_random(rng: np.random.Generator, trees: int, most_leaves: int) -> TreeHead:
    """Trees of different shapes in one table; leaves that no tree uses fill it up."""
    size = 2 * most_leaves - 1
    own = np.tile(np.arange(size, dtype=np.int32), (trees, 1))
    left, right, depths = own.copy(), own.copy(), np.zeros((trees, size), int)
    for tree in range(trees):
        leaves, used = [0], 1
        for _ in range(rng.integers(0, most_leaves)):
            node = leaves.pop(rng.integers(len(leaves)))
            left[tree, node], right[tree, node] = used, used + 1
            depths[tree, used : used + 2] = depths[tree, node] + 1
            leaves += [used, used + 1]
            used += 2
    return TreeHead(
        rng.integers(0, WIDTH, own.shape).astype(np.int32),
        rng.integers(-3, 4, own.shape) / 2,
        left,
        right,
        rng.normal(size=own.shape),
        float(rng.normal()),
        int(depths.max()) + int(rng.integers(2)),
    )


def inputs(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Many values lie exactly on a threshold, some are no number."""
    x = rng.integers(-4, 5, (rows, WIDTH)) / 2
    return np.where(rng.random(x.shape) < 0.05, np.nan, x)


@given(st.integers(0, 2**32 - 1), st.lists(st.sampled_from([1, 2, 3, 9, 17, 64]), min_size=1, max_size=4), st.sampled_from([0, 1, 3, 40]))
def test_a_forest_says_what_the_walk_through_every_head_says(seed: int, leaves: list[int], rows: int) -> None:
    rng = np.random.default_rng(seed)
    heads = [grown_at_random(rng, int(rng.integers(1, 6)), most) for most in leaves]
    assert all(map(fits, heads))
    x = inputs(rng, rows)
    expected = np.stack([head.decision(x) for head in heads], axis=1)
    np.testing.assert_allclose(Forest(heads).decision(x), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("leaves", [2, 15, 31, 64])
def test_a_forest_predicts_what_lightgbm_predicts(leaves: int) -> None:
    rng = np.random.default_rng(leaves)
    x = rng.normal(size=(600, WIDTH))
    boosters = []
    for k in range(3):
        y = (x[:, k] + x[:, 3] * x[:, 5] + rng.normal(size=len(x)) > 0).astype(float)
        options = {"objective": "cross_entropy", "num_leaves": leaves, "min_data_in_leaf": 3, "verbosity": -1, "num_threads": 1}
        boosters.append(lightgbm.train(options, lightgbm.Dataset(x, y), 20 + k))
    expected = np.stack([booster.predict(x, raw_score=True) for booster in boosters], axis=1)
    forest = Forest([trees_from_booster(booster) for booster in boosters])
    np.testing.assert_allclose(forest.decision(x), expected, rtol=0, atol=1e-9)
    np.testing.assert_allclose(forest.decision(x[:1]), expected[:1], rtol=0, atol=1e-9)


def odd_heads() -> Iterator[TreeHead]:
    """Heads that a file may hold and that are no trees of at most 64 leaves."""

    def head(left: list[int], right: list[int], depth: int) -> TreeHead:
        n = len(left)
        indices = (np.array([side], np.int32) for side in (left, right))
        return TreeHead(np.zeros((1, n), np.int32), np.zeros((1, n)), *indices, np.arange(1.0, n + 1)[None], 0.0, depth)

    yield grown_at_random(np.random.default_rng(0), 40, 200)
    yield head([1, 1, 2], [2, 1, 2], 0)  # ends before its leaves
    yield head([1, 0, 2], [2, 2, 2], 5)  # a cycle, and a leaf with two parents
    yield head([1, 1], [1, 1], 1)  # both ways to one leaf
    yield head([0, 1, 2], [2, 1, 2], 3)  # one way back to itself
    yield TreeHead(*(np.zeros((0, 3), np.int32) if i in (0, 2, 3) else np.zeros((0, 3)) for i in range(5)), bias=0.5, depth=2)


@pytest.mark.parametrize("odd", list(odd_heads()))
def test_what_does_not_fit_into_a_forest_is_walked(odd: TreeHead) -> None:
    assert not fits(odd)
    rng = np.random.default_rng(1)
    check([MeanHead((grown_at_random(rng, 3, 5), odd)), MeanHead((odd, grown_at_random(rng, 2, 9)))], inputs(rng, 20))


class Square:
    """A head of a kind that the package does not know."""

    def decision(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x[:, 0] ** 2)

    def to_arrays(self) -> dict:
        return {}


@given(st.integers(0, 2**32 - 1), st.booleans())
def test_heads_together_say_what_each_says_alone(seed: int, alike: bool) -> None:
    rng = np.random.default_rng(seed)

    def build(shape: np.random.Generator, depth: int) -> Head:
        kind = shape.integers(5 if depth < 3 else 3)
        if kind == 0:
            return LinearHead(rng.normal(size=WIDTH), float(rng.normal()))
        if kind == 1:
            return grown_at_random(rng, int(rng.integers(1, 4)), int(rng.integers(1, 9)))
        if kind == 2:
            return Square()
        if kind == 3:
            return MeanHead(tuple(build(shape, depth + 1) for _ in range(shape.integers(1, 4))))
        return ConditionalHead(build(shape, depth + 1), build(shape, depth + 1))

    heads = [build(np.random.default_rng(seed if alike else seed + k), 0) for k in range(4)]
    for rows in (0, 1, 30):
        check(heads, np.nan_to_num(inputs(rng, rows)))


def check(heads: list[Head], x: np.ndarray) -> None:
    curve = Calibration(np.array([-4.0, 0.0, 4.0]), np.array([0.02, 0.4, 0.95]))
    predictor = RequirementsPredictor(tuple(f"c{k}" for k in range(len(heads))), tuple(heads), (curve,) * len(heads))
    expected = np.stack([curve(head.decision(x)) for head in heads], axis=1)
    np.testing.assert_allclose(predictor.predict(x), expected, rtol=0, atol=1e-9)
