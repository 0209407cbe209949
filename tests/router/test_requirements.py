"""Heads and calibrations, and that trees evaluated here are the trees that were grown."""

import lightgbm
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.errors import ArtifactError, InvalidInput
from router.requirements import (
    CAPABILITIES,
    Calibration,
    ConditionalHead,
    LinearHead,
    MeanHead,
    Requirements,
    RequirementsPredictor,
    TreeHead,
    head_from_arrays,
)


def tree_head(dump: dict, bias: float = 0.0) -> TreeHead:
    """LightGBM's own description of its trees, written out as arrays."""
    trees = []
    for info in dump["tree_info"]:
        nodes: list[list[float]] = []
        deepest = _collect(info["tree_structure"], nodes)
        trees.append((nodes, deepest))
    size = max(len(nodes) for nodes, _ in trees)
    table = np.zeros((len(trees), size, 5))
    table[:, :, 2] = table[:, :, 3] = np.arange(size)
    for row, (nodes, _) in enumerate(trees):
        table[row, : len(nodes)] = nodes
    feature, threshold, left, right, value = np.moveaxis(table, 2, 0)
    return TreeHead(
        feature.astype(np.int32), threshold, left.astype(np.int32), right.astype(np.int32), value, bias, max(depth for _, depth in trees)
    )


def _collect(node: dict, nodes: list[list[float]]) -> int:
    index = len(nodes)
    nodes.append([0.0, 0.0, index, index, node.get("leaf_value", 0.0)])
    if "split_feature" not in node:
        return 0
    assert node["decision_type"] == "<="
    nodes[index][:2] = [node["split_feature"], node["threshold"]]
    nodes[index][2] = len(nodes)
    left = _collect(node["left_child"], nodes)
    nodes[index][3] = len(nodes)
    right = _collect(node["right_child"], nodes)
    return 1 + max(left, right)


def grown(rows: int, trees: int, leaves: int, seed: int) -> tuple[lightgbm.Booster, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 12))
    y = (x[:, 0] + x[:, 3] * x[:, 5] + rng.normal(size=rows) > 0).astype(float)
    options = {"objective": "binary", "num_leaves": leaves, "min_data_in_leaf": 5, "verbose": -1, "num_threads": 1, "seed": seed}
    return lightgbm.train(options, lightgbm.Dataset(x, y), num_boost_round=trees), x


@pytest.mark.parametrize(("rows", "trees", "leaves"), [(400, 20, 31), (300, 3, 2), (60, 5, 4)])
def test_trees_predict_what_lightgbm_predicts(rows: int, trees: int, leaves: int) -> None:
    booster, x = grown(rows, trees, leaves, seed=rows)
    head = tree_head(booster.dump_model())
    # Values that lie exactly on a threshold as well: the row goes left there.
    on_threshold = x[: min(50, rows)].copy()
    on_threshold[:, head.feature[0, 0]] = head.threshold[0, 0]
    for inputs in (x, on_threshold, x[:1], x[:0], np.zeros((1, 12))):
        expected = booster.predict(inputs, raw_score=True) if len(inputs) else np.empty(0)
        np.testing.assert_allclose(head.decision(inputs), expected, rtol=0, atol=1e-12)
    again = head_from_arrays(head.to_arrays(), 12)
    assert np.array_equal(again.decision(x), head.decision(x))


def test_more_rows_than_a_block() -> None:
    booster, x = grown(300, 4, 8, seed=1)
    many = np.tile(x, (15, 1))
    head = tree_head(booster.dump_model(), bias=0.5)
    np.testing.assert_allclose(head.decision(many), booster.predict(many, raw_score=True) + 0.5, atol=1e-12)


def test_a_view_of_a_larger_array_is_read_right() -> None:
    booster, x = grown(200, 4, 8, seed=2)
    wide = np.concatenate([x, x], axis=1)[::2, :12]
    head = tree_head(booster.dump_model())
    np.testing.assert_allclose(head.decision(wide), head.decision(wide.copy()))


def leaf(**changes: object) -> dict[str, np.ndarray]:
    arrays = {
        "feature": np.zeros((1, 3), np.int32),
        "threshold": np.zeros((1, 3)),
        "left": np.array([[1, 1, 2]], np.int32),
        "right": np.array([[2, 1, 2]], np.int32),
        "value": np.array([[0.0, -1.0, 1.0]]),
        "bias": np.array(0.0),
        "depth": np.array(1),
    }
    return arrays | changes


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"something": np.zeros(3)},
        {"a.weights": np.zeros(4), "a.bias": np.array(0.0)},
        {"weights": np.zeros(3), "bias": np.array(0.0)},
        {"weights": np.zeros((4, 1)), "bias": np.array(0.0)},
        {"weights": np.zeros(4)},
        {"weights": np.zeros(4), "bias": np.zeros(2)},
        {"weights": np.array([0, 0, 0, np.nan]), "bias": np.array(0.0)},
        {"weights": np.zeros(4), "bias": np.array(np.inf)},
        {"weights": np.array(["a", "b", "c", "d"]), "bias": np.array(0.0)},
        {"weights": np.zeros(4, complex), "bias": np.array(0.0)},
        leaf(feature=np.full((1, 3), 4, np.int32)),
        leaf(feature=np.full((1, 3), -1, np.int32)),
        leaf(feature=np.full((1, 3), 2**40)),
        leaf(feature=np.zeros((1, 3))),
        leaf(left=np.array([[3, 1, 2]], np.int32)),
        leaf(right=np.array([[-2, 1, 2]], np.int32)),
        leaf(value=np.array([[0.0, np.nan, 1.0]])),
        leaf(threshold=np.full((1, 3), np.nan)),
        leaf(threshold=np.zeros((1, 2))),
        leaf(depth=np.array(10**6)),
        leaf(depth=np.array(-1)),
        leaf(depth=np.array([1, 2])),
        {name: array for name, array in leaf().items() if name != "left"},
        {name: array[:, :0] if array.ndim == 2 else array for name, array in leaf().items()},
        {f"0.{name}": array for name, array in leaf(left=np.array([[9, 1, 2]], np.int32)).items()},
    ],
)
def test_arrays_that_are_no_head_are_refused(arrays: dict) -> None:
    with pytest.raises(ArtifactError):
        head_from_arrays(arrays, 4)


def test_a_mean_of_heads_survives_in_order() -> None:
    heads = tuple(LinearHead(np.array([float(i)]), i / 7) for i in range(12))
    mean = MeanHead(heads)
    again = head_from_arrays(mean.to_arrays(), 1)
    assert [head.bias for head in again.heads] == [head.bias for head in heads]
    x = np.array([[0.3], [-2.0]])
    assert np.array_equal(again.decision(x), mean.decision(x))
    assert mean.decision(x) == pytest.approx(np.mean([head.decision(x) for head in heads], axis=0))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        ([0, 1], [0.5, 0.4]),
        ([1, 0], [0.4, 0.5]),
        ([0, 1], [0.0, 1.5]),
        ([0, 1], [-0.1, 1.0]),
        ([0, np.nan], [0.0, 1.0]),
        ([0, 1], [0.0, np.nan]),
        ([0, np.inf], [0.0, 1.0]),
        ([0, 1], [1e300, 1e301]),
        ([0, 1, 2], [0.0, 1.0]),
        ([], []),
    ],
)
def test_a_calibration_that_is_none_is_refused(x: list, y: list) -> None:
    with pytest.raises(ArtifactError, match="calibration"):
        Calibration(np.array(x, float), np.array(y, float))


@given(st.lists(st.floats(-50, 50), min_size=1, max_size=20))
def test_calibrated_requirements_rise_and_stay_within_bounds(values: list[float]) -> None:
    calibrated = Calibration(np.array([-3.0, 0.0, 2.0]), np.array([0.1, 0.1, 0.9]))(np.sort(values))
    assert ((calibrated >= 0.1) & (calibrated <= 0.9)).all()
    assert (np.diff(calibrated) >= 0).all()


@pytest.mark.parametrize("names", [("a", "a"), ("a", ""), ("a", "a/b")])
def test_capability_names_must_tell_the_heads_apart(names: tuple[str, str]) -> None:
    curve = Calibration(np.zeros(1), np.zeros(1))
    head = LinearHead(np.zeros(2), 0.0)
    with pytest.raises(ArtifactError, match="capability"):
        RequirementsPredictor(names, (head, head), (curve, curve))


def test_requirements_by_name() -> None:
    requirements = Requirements.from_array([0.1, 0.2, 0.3, 0.4], CAPABILITIES)
    assert requirements.to_array(["tool_use", "reasoning"]).tolist() == [0.4, 0.1]
    with pytest.raises(InvalidInput, match="no requirement for capability 'poetry'"):
        requirements.to_array(["poetry"])


def test_a_conditional_head_is_the_product_of_both_probabilities_and_survives_its_arrays() -> None:
    x = np.random.default_rng(0).normal(size=(50, 3))
    exercised, need = LinearHead(np.array([3.0, -1.0, 0.5]), -0.4), MeanHead((LinearHead(np.ones(3), 0.2), LinearHead(-np.ones(3), 1.0)))
    head = ConditionalHead(exercised, need)

    def sigmoid(decision: np.ndarray) -> np.ndarray:
        return np.asarray(1 / (1 + np.exp(-decision)))

    assert sigmoid(head.decision(x)) == pytest.approx(sigmoid(exercised.decision(x)) * sigmoid(need.decision(x)))
    again = head_from_arrays(head.to_arrays(), 3)
    assert np.array_equal(again.decision(x), head.decision(x))


@pytest.mark.parametrize("size", [1e-3, 50.0, 800.0])
def test_a_conditional_head_stays_finite_for_extreme_odds(size: float) -> None:
    sure = LinearHead(np.array([size]), 0.0)
    decision = ConditionalHead(sure, sure).decision(np.array([[-1.0], [0.0], [1.0]]))
    assert np.isfinite(decision).all()
    assert (np.diff(decision) > 0).all()
