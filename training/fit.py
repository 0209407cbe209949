"""Fit the heads, then calibrate them on predictions for prompts they have not seen."""

from __future__ import annotations

from typing import Any, Final, Literal, Self, get_args

import lightgbm
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from router.catalog import Bands
from router.confidence import ResidualSample
from router.errors import InvalidInput
from router.requirements import Calibration, ConditionalHead, Head, LinearHead, MeanHead, RequirementsPredictor, TreeHead

Array = NDArray[np.float64]
HeadKind = Literal["lightgbm", "linear", "blend"]
HEAD_KINDS: Final[tuple[HeadKind, ...]] = get_args(HeadKind)
_LOGIT_LIMIT: Final = 12.0


class RequirementsEstimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """K independent calibrated heads on soft targets in [0, 1].

    Every head is fitted on folds of the groups first; its predictions for the held-out folds fit the calibration and the residuals. Then
    it is fitted once more on everything.

    Parameters
    ----------
    capabilities
        Names of the heads; None names them ``capability_0`` and so on.
    kind
        ``lightgbm`` (boosted trees), ``linear`` (logistic) or ``blend`` (mean of their log-odds).
    n_estimators, learning_rate, num_leaves, max_depth, min_child_samples, feature_fraction, reg_lambda
        Of the trees. Their number and depth are what a decision spends on them.
    C
        Inverse strength of the L2 penalty of the linear head, on standardised columns.
    calibration_folds
        Folds whose held-out predictions calibrate; at least 2.
    band_percentiles
        Percentiles of a head's held-out scores over all prompts, the [low, high] of HyDRA (arXiv 2605.17106) Eq. 3.
    n_embedding
        Leading columns that are an embedding. Trees read only the columns behind it: they latch onto single coordinates, and those bear the
        language of a prompt more than its task (docs/decisions/0004).
    random_state
        Seed.

    Attributes
    ----------
    predictor_ : RequirementsPredictor
        What serving needs, as arrays.
    bands_ : Bands
        One [low, high] a capability.
    residuals_ : ResidualSample
        Held-out residuals.
    held_out_ : ndarray of shape (n, K)
        Calibrated predictions for every training row by heads that did not see its group.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 5))
    >>> Y = 1 / (1 + np.exp(-X[:, :2]))
    >>> RequirementsEstimator(kind="linear").fit(X, Y).predict(X).shape
    (200, 2)
    """

    def __init__(
        self,
        capabilities: tuple[str, ...] | None = None,
        kind: HeadKind = "blend",
        n_estimators: int = 150,
        learning_rate: float = 0.05,
        num_leaves: int = 8,
        max_depth: int = 6,
        min_child_samples: int = 30,
        feature_fraction: float = 0.4,
        reg_lambda: float = 5.0,
        C: float = 0.003,
        calibration_folds: int = 5,
        band_percentiles: tuple[float, float] = (1.0, 99.0),
        n_embedding: int = 0,
        random_state: int = 0,
    ) -> None:
        self.capabilities = capabilities
        self.kind = kind
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.max_depth = max_depth
        self.min_child_samples = min_child_samples
        self.feature_fraction = feature_fraction
        self.reg_lambda = reg_lambda
        self.C = C
        self.calibration_folds = calibration_folds
        self.band_percentiles = band_percentiles
        self.n_embedding = n_embedding
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        exercised: ArrayLike | None = None,
    ) -> Self:
        """Fit on inputs of shape (n, d) and targets of shape (n, K) in [0, 1].

        Parameters
        ----------
        X, y
            Inputs and targets.
        groups
            Split key of every row: rows of a group are never on both sides of a fold. None makes every row its own group.
        sample_weight
            Weight of every row.
        exercised
            Which capabilities every row exercises, shape (n, K), 0 or 1. With it a head is the product of one that says whether the
            capability is exercised, learned from all rows, and one for the need, learned from the rows that exercise it.
        """
        checked: tuple[Array, Array] = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        inputs, wanted = checked
        self._single_ = wanted.ndim == 1
        targets = _check_targets(wanted)
        names = _check_names(self.capabilities, targets.shape[1])
        if self.kind not in HEAD_KINDS:
            raise InvalidInput(f"kind {self.kind!r} of head is unknown: allowed are {', '.join(HEAD_KINDS)}")
        weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=False)
        keys = np.arange(len(inputs)) if groups is None else np.asarray(groups)
        kinds = None if exercised is None else np.asarray(exercised, dtype=np.float64).reshape(targets.shape)
        decisions = self._held_out_decisions(inputs, targets, weight, keys, kinds)
        calibrations = tuple(fit_calibration(decisions[:, k], targets[:, k], weight) for k in range(targets.shape[1]))
        self.held_out_ = np.stack([calibrate(decisions[:, k]) for k, calibrate in enumerate(calibrations)], axis=1)
        heads = tuple(
            self._fit_head(inputs, targets[:, k], weight, None if kinds is None else kinds[:, k]) for k in range(targets.shape[1])
        )
        self.predictor_ = RequirementsPredictor(names, heads, calibrations)
        self.bands_ = fit_bands(self.held_out_, self.band_percentiles)
        self.residuals_ = sample_residuals(self.held_out_, targets, seed=self.random_state)
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Calibrated requirements, shape (n, K); (n,) if one target was given as a vector."""
        check_is_fitted(self, "predictor_")
        inputs: Array = validate_data(self, X, dtype=np.float64, reset=False)
        requirements = self.predictor_.predict(inputs)
        return requirements[:, 0] if self._single_ else requirements

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _held_out_decisions(self, X: Array, targets: Array, weight: Array, groups: NDArray[Any], exercised: Array | None) -> Array:
        folds = min(self.calibration_folds, len(np.unique(groups)))
        if folds < 2:
            raise InvalidInput("all rows belong to one group: at least two groups are needed to calibrate on held-out rows")
        decisions = np.zeros(targets.shape)
        splitter = GroupKFold(folds, shuffle=True, random_state=self.random_state)
        for train, held_out in splitter.split(X, groups=groups):
            for k in range(targets.shape[1]):
                kind = None if exercised is None else exercised[train, k]
                decisions[held_out, k] = self._fit_head(X[train], targets[train, k], weight[train], kind).decision(X[held_out])
        return decisions

    def _fit_head(self, X: Array, y: Array, weight: Array, exercised: Array | None) -> Head:
        if exercised is None or np.ptp(exercised) == 0:
            return self._fit_one(X, y, weight)
        rows = exercised > 0
        return ConditionalHead(self._fit_one(X, exercised, weight), self._fit_one(X[rows], y[rows], weight[rows]))

    def _fit_one(self, X: Array, y: Array, weight: Array) -> Head:
        if np.ptp(y) < 1e-12:
            # Nothing to learn: the constant, which a fold of a rare capability can well be.
            return LinearHead(np.zeros(X.shape[1]), _logit(float(y[0])))
        heads: list[Head] = []
        if self.kind in ("lightgbm", "blend"):
            heads.append(self._fit_trees(X, y, weight))
        if self.kind in ("linear", "blend"):
            heads.append(_fit_linear(X, y, weight, self.C))
        return heads[0] if len(heads) == 1 else MeanHead(tuple(heads))

    def _fit_trees(self, X: Array, y: Array, weight: Array) -> TreeHead:
        first = self.n_embedding if self.n_embedding < X.shape[1] else 0
        booster = lightgbm.train(
            {
                "objective": "cross_entropy",
                "learning_rate": self.learning_rate,
                "num_leaves": self.num_leaves,
                "max_depth": self.max_depth,
                "min_data_in_leaf": self.min_child_samples,
                "feature_fraction": self.feature_fraction,
                "bagging_fraction": 0.8,
                "bagging_freq": 1,
                "lambda_l2": self.reg_lambda,
                "max_bin": 63,
                "seed": self.random_state,
                "deterministic": True,
                "num_threads": 1,
                "verbosity": -1,
            },
            lightgbm.Dataset(X[:, first:], y, weight=weight, free_raw_data=True),
            self.n_estimators,
        )
        return trees_from_booster(booster, first)


def _check_targets(y: Array) -> Array:
    targets = y[:, None] if y.ndim == 1 else y
    if targets.min() < 0 or targets.max() > 1:
        wrong = targets[(targets < 0) | (targets > 1)][0]
        raise InvalidInput(f"target {wrong!r} is outside [0, 1]")
    return np.asarray(targets, dtype=np.float64)


def _check_names(names: tuple[str, ...] | None, count: int) -> tuple[str, ...]:
    if names is None:
        return tuple(f"capability_{k}" for k in range(count))
    if len(names) != count:
        raise InvalidInput(f"{len(names)} capabilities ({', '.join(names)}) do not match {count} target columns")
    return tuple(names)


def _logit(p: float) -> float:
    return float(np.clip(np.log(max(p, 1e-9) / max(1 - p, 1e-9)), -_LOGIT_LIMIT, _LOGIT_LIMIT))


def _fit_linear(X: Array, y: Array, weight: Array, C: float) -> LinearHead:
    """Logistic regression on soft targets: every row counts as a positive with weight y and as a negative with weight 1 - y."""
    mean, scale = X.mean(axis=0), X.std(axis=0)
    scale[scale < 1e-12] = 1.0
    standardised = (X - mean) / scale
    twice = np.concatenate([standardised, standardised])
    labels = np.concatenate([np.ones(len(y)), np.zeros(len(y))])
    both = np.concatenate([weight * y, weight * (1 - y)])
    model = LogisticRegression(C=C, max_iter=500).fit(twice[both > 0], labels[both > 0], sample_weight=both[both > 0])
    weights = model.coef_[0] / scale
    return LinearHead(weights, float(model.intercept_[0] - mean @ weights))


def trees_from_booster(booster: lightgbm.Booster, first_column: int = 0) -> TreeHead:
    """Turn a LightGBM model with numeric splits into arrays that are read without LightGBM; its column 0 is our ``first_column``."""
    trees = [_flatten(info["tree_structure"]) for info in booster.dump_model()["tree_info"]]
    nodes = max(len(tree) for tree, _ in trees)
    shape = (len(trees), nodes)
    itself = np.broadcast_to(np.arange(nodes, dtype=np.int32), shape)
    feature, left, right = np.zeros(shape, np.int32), itself.copy(), itself.copy()
    threshold, value = np.zeros(shape), np.zeros(shape)
    for t, (tree, _) in enumerate(trees):
        for n, node in enumerate(tree):
            if "children" in node:
                feature[t, n], threshold[t, n] = node["feature"], node["threshold"]
                left[t, n], right[t, n] = node["children"]
            else:
                value[t, n] = node["value"]
    return TreeHead(feature + first_column, threshold, left, right, value, 0.0, max(depth for _, depth in trees))


def _flatten(root: dict[str, Any]) -> tuple[list[dict[str, Any]], int]:
    """Nodes of one tree, the root first, and its depth."""
    nodes: list[dict[str, Any]] = []

    def visit(node: dict[str, Any], depth: int) -> tuple[int, int]:
        index = len(nodes)
        nodes.append({})
        if "split_feature" not in node:
            nodes[index] = {"value": node["leaf_value"]}
            return index, depth
        if node["decision_type"] != "<=":
            raise InvalidInput(f"split type {node['decision_type']!r} of a tree is not supported: only numeric splits are")
        left, left_depth = visit(node["left_child"], depth + 1)
        right, right_depth = visit(node["right_child"], depth + 1)
        nodes[index] = {"feature": node["split_feature"], "threshold": node["threshold"], "children": (left, right)}
        return index, max(left_depth, right_depth)

    _, depth = visit(root, 0)
    return nodes, depth


def fit_calibration(
    decision: Array, target: Array, weight: Array | None = None, rows_per_bin: int = 60, most_bins: int = 24
) -> Calibration:
    """Monotone piecewise-linear calibration through the means of equal-mass bins.

    Isotonic regression on the bins and not on the rows keeps the map strictly rising between knots, so that calibration does not tie the
    prompts it should rank.
    """
    weight = np.ones(len(decision)) if weight is None else weight
    bins = int(np.clip(len(decision) // rows_per_bin, 1, most_bins))
    order = np.argsort(decision, kind="stable")
    parts = [part for part in np.array_split(order, bins) if weight[part].sum() > 0]
    x = np.array([np.average(decision[part], weights=weight[part]) for part in parts])
    y = np.array([np.average(target[part], weights=weight[part]) for part in parts])
    mass = np.array([weight[part].sum() for part in parts])
    x, first = np.unique(x, return_index=True)
    y = IsotonicRegression(y_min=0.0, y_max=1.0).fit(x, y[first], sample_weight=mass[first]).predict(x)
    if len(x) == 1:
        return Calibration(x, np.asarray(y, dtype=np.float64))
    return Calibration(*_extended(x, np.clip(y, 0.0, 1.0), float(decision[order[0]]), float(decision[order[-1]])))


def _extended(x: Array, y: Array, lowest: float, highest: float) -> tuple[Array, Array]:
    """Carry the outer slopes on to the extreme decisions, within [0, 1]."""
    low_slope = (y[1] - y[0]) / (x[1] - x[0])
    high_slope = (y[-1] - y[-2]) / (x[-1] - x[-2])
    below = [lowest] if lowest < x[0] else []
    above = [highest] if highest > x[-1] else []
    y_below = [max(0.0, y[0] - low_slope * (x[0] - lowest))] if below else []
    y_above = [min(1.0, y[-1] + high_slope * (highest - x[-1]))] if above else []
    return np.array([*below, *x, *above]), np.array([*y_below, *y, *y_above])


def fit_bands(predicted: Array, percentiles: tuple[float, float]) -> Bands:
    """Percentiles of every head's scores, shape (K,) each, over predictions of shape (n, K)."""
    low, high = np.percentile(predicted, percentiles, axis=0)
    return Bands(low, high)


def sample_residuals(predicted: Array, targets: Array, draws: int = 64, most_bins: int = 4, seed: int = 0) -> ResidualSample:
    """Draw held-out residuals by bins of the largest predicted requirement."""
    largest = predicted.max(axis=1)
    bins = int(np.clip(len(largest) // 50, 1, most_bins))
    edges = np.unique(np.quantile(largest, np.arange(1, bins) / bins)) if bins > 1 else np.empty(0)
    row = np.searchsorted(edges, largest, side="right")
    rng = np.random.default_rng(seed)
    every = np.arange(len(largest))
    picked = [rng.choice(members if (members := every[row == b]).size else every, size=draws) for b in range(edges.size + 1)]
    return ResidualSample(edges, np.stack([targets[rows] - predicted[rows] for rows in picked]))
