"""Fit the heads, then calibrate them on predictions for prompts they have not seen."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal, Self, get_args

import lightgbm
import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.isotonic import IsotonicRegression
from sklearn.model_selection import GroupKFold
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from router.basis import HatBasis
from router.catalog import Bands
from router.confidence import ResidualSample
from router.errors import InvalidInput
from router.requirements import Calibration, ConditionalHead, Head, LinearHead, MeanHead, RequirementsPredictor, TreeHead
from training.consistency import ConsistentLogistic, ParallelRows
from training.engine import Engine, LocalEngine
from training.progress import Advance, uncounted

Array = NDArray[np.float64]
Inputs = NDArray[np.floating]
HeadKind = Literal["lightgbm", "linear", "blend"]
HEAD_KINDS: Final[tuple[HeadKind, ...]] = get_args(HeadKind)
EVERY: Final = -1
"""In place of the number of a fold that is left out: none is."""
_LOGIT_LIMIT: Final = 12.0
_ROWS_AT_ONCE: Final = 16_384


class RequirementsEstimator(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """K independent calibrated heads on soft targets in [0, 1].

    Every head is fitted on folds of the groups first; its predictions for the held-out folds fit the calibration and the residuals. Then
    it is fitted once more on everything.

    Parameters
    ----------
    capabilities
        Names of the heads; None names them ``capability_0`` and so on.
    kind
        ``lightgbm`` (boosted trees), ``linear`` (logistic on the embedding and smooth functions of the columns behind it) or ``blend``
        (mean of their log-odds; what kind of work it is, is said by the linear part alone).
    n_estimators, learning_rate, num_leaves, max_depth, min_child_samples, feature_fraction, reg_lambda
        Of the trees. Their number and depth are what a decision spends on them.
    noise, noisy_copies
        Trees see every row once as it is and so many times moved as a translation would move it, ``noise`` times as far.
    knots
        Corners of the smooth functions of the linear part (:class:`router.basis.HatBasis`).
    C, consistency
        Inverse strength of the penalty of the linear part, and how much more a direction is penalised that changes between translations
        (:class:`training.consistency.ConsistentLogistic`).
    calibration_folds
        Folds whose held-out predictions calibrate; at least 2.
    band_percentiles
        Percentiles of a head's held-out scores over all prompts, the [low, high] of HyDRA (arXiv 2605.17106) Eq. 3.
    most_rows
        A head learns from so many rows at most, drawn at random from those it could learn from (docs/decisions/0015). Calibration, bands
        and residuals are of all rows.
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
        n_estimators: int = 200,
        learning_rate: float = 0.05,
        num_leaves: int = 4,
        max_depth: int = 6,
        min_child_samples: int = 30,
        feature_fraction: float = 0.4,
        reg_lambda: float = 5.0,
        noise: float = 3.0,
        noisy_copies: int = 4,
        knots: int = 6,
        C: float = 0.01,
        consistency: float = 300.0,
        calibration_folds: int = 5,
        band_percentiles: tuple[float, float] = (1.0, 99.0),
        most_rows: int = 50_000,
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
        self.noise = noise
        self.noisy_copies = noisy_copies
        self.knots = knots
        self.C = C
        self.consistency = consistency
        self.calibration_folds = calibration_folds
        self.band_percentiles = band_percentiles
        self.most_rows = most_rows
        self.n_embedding = n_embedding
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        exercised: ArrayLike | None = None,
        parallel: ParallelRows | None = None,
        engine: Engine | None = None,
        progress: Advance = uncounted,
    ) -> Self:
        """Fit on inputs of shape (n, d) and targets of shape (n, K) in [0, 1]; inputs of single precision are not copied.

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
        parallel
            The same meanings in several languages, without targets: what they teach is which inputs depend on the language. None lets the
            linear part distrust all columns alike and the trees none.
        engine
            Where the heads are fitted, each a piece of work of its own; this process by default.
        progress
            Told of every head that is fitted, of ``(calibration_folds + 1) * K``.
        """
        number = [np.float64, np.float32]
        checked: tuple[Inputs, Array] = validate_data(self, X, y, dtype=number, multi_output=True, y_numeric=True, ensure_min_samples=2)
        inputs, wanted = checked
        self._single_ = wanted.ndim == 1
        targets = _check_targets(wanted)
        names = _check_names(self.capabilities, targets.shape[1])
        if self.kind not in HEAD_KINDS:
            raise InvalidInput(f"kind {self.kind!r} of head is unknown: allowed are {', '.join(HEAD_KINDS)}")
        if self.most_rows < 2:
            raise InvalidInput(f"most_rows is {self.most_rows!r}: at least 2 were expected")
        weight = _check_sample_weight(sample_weight, inputs, dtype=np.float64, ensure_non_negative=True, allow_all_zero_weights=False)
        keys = np.arange(len(inputs)) if groups is None else np.asarray(groups)
        kinds = None if exercised is None else np.asarray(exercised, dtype=np.float64).reshape(targets.shape)
        fold = self._folds(keys)
        job = _Job(_HeadFitter(self, inputs, parallel), targets, weight, kinds, fold)
        pieces = [(f, k) for f in (*range(int(fold.max()) + 1), EVERY) for k in range(targets.shape[1])]
        decisions, heads = np.zeros(targets.shape), {}
        for (f, k), (head, decided) in zip(pieces, (engine or LocalEngine()).map(fit_piece, job, pieces), strict=True):
            decisions[fold == f, k], heads[f, k] = decided, head
            progress(1)
        calibrations = tuple(fit_calibration(decisions[:, k], targets[:, k], weight) for k in range(targets.shape[1]))
        held_out = np.stack([calibrate(decisions[:, k]) for k, calibrate in enumerate(calibrations)], axis=1)
        self.predictor_ = RequirementsPredictor(
            names, tuple(heads[EVERY, k] for k in range(targets.shape[1])), calibrations, job.fitter.basis
        )
        self.take_held_out(held_out, targets)
        return self

    def take_held_out(self, predicted: Array, targets: Array) -> None:
        """Learn bands and residuals from held-out predictions and targets, shape (n, K) each."""
        self.held_out_ = predicted
        self.bands_ = fit_bands(predicted, self.band_percentiles)
        self.residuals_ = sample_residuals(predicted, targets, seed=self.random_state)

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

    def _folds(self, groups: NDArray[Any]) -> NDArray[np.intp]:
        """Fold of every row, shape (n,); a group lies in one."""
        _, number = np.unique(groups, return_inverse=True)
        folds = min(self.calibration_folds, int(number.max()) + 1)
        if folds < 2:
            raise InvalidInput("all rows belong to one group: at least two groups are needed to calibrate on held-out rows")
        fold = np.zeros(len(groups), dtype=np.intp)
        splitter = GroupKFold(folds, shuffle=True, random_state=self.random_state)
        for f, (_, held_out) in enumerate(splitter.split(fold, groups=number)):
            fold[held_out] = f
        return fold


@dataclass(frozen=True, slots=True)
class _Job:
    """What all pieces of a fit share: shape (n, K) and (n,) arrays beside the fitter."""

    fitter: _HeadFitter
    targets: Array
    weight: Array
    kinds: Array | None
    fold: NDArray[np.intp]


def fit_piece(job: _Job, piece: tuple[int, int]) -> tuple[Head, Array]:
    """The head of capability k on all folds but f, and its log-odds for the rows of fold f; on all rows and for none if f is ``EVERY``."""
    f, k = piece
    learned = np.flatnonzero(job.fold != f)
    head = job.fitter.head(learned, job.targets[:, k], job.weight, None if job.kinds is None else job.kinds[:, k])
    return head, job.fitter.decision(head, np.flatnonzero(job.fold == f))


class _HeadFitter:
    """Fits heads on some of the rows. What needs no targets (basis, scales, translation noise) is learned once, from all of them."""

    def __init__(self, parameters: RequirementsEstimator, inputs: Inputs, parallel: ParallelRows | None) -> None:
        self.parameters = parameters
        self.embedded = parameters.n_embedding if parameters.n_embedding < inputs.shape[1] else 0
        self.inputs = inputs
        shown = self.drawn(np.arange(len(inputs)))
        self.basis = (
            HatBasis.of(inputs[shown].astype(np.float64, copy=False), self.embedded, parameters.knots)
            if parameters.kind != "lightgbm"
            else None
        )
        self.width = inputs.shape[1] + (0 if self.basis is None else self.basis.dimension)
        # The linear part reads the embedding and the hats, not the columns that the hats are made of.
        self.read = np.r_[: self.embedded, inputs.shape[1] : self.width]
        self.parallel = parallel
        self.linear = None if self.basis is None else self._linear(self.basis, shown)
        self._turned: tuple[NDArray[np.intp], Inputs] | None = None

    def _linear(self, basis: HatBasis, shown: NDArray[np.intp]) -> ConsistentLogistic:
        translations = None
        if self.parallel is not None:
            there = self.parallel.inputs
            translations = self.parallel.covariance(np.concatenate([there[:, : self.embedded], basis.expand(there)], axis=1))
        return ConsistentLogistic(self.expanded(shown)[:, self.read], translations, self.parameters.C, self.parameters.consistency)

    def drawn(self, rows: NDArray[np.intp]) -> NDArray[np.intp]:
        """The rows that are learned from: all of them, or so many at random, the same for the same number."""
        most = self.parameters.most_rows
        if len(rows) <= most:
            return rows
        return rows[np.sort(np.random.default_rng([self.parameters.random_state, len(rows)]).choice(len(rows), most, replace=False))]

    def expanded(self, rows: NDArray[np.intp]) -> Inputs:
        """Inputs of some rows and the hats behind them, in the precision of the inputs."""
        columns = self.inputs[rows]
        return (
            columns
            if self.basis is None
            else np.concatenate([columns, self.basis.expand(columns.astype(np.float64, copy=False))], axis=1, dtype=columns.dtype)
        )

    def decision(self, head: Head, rows: NDArray[np.intp]) -> Array:
        """Log-odds of some rows, shape (rows,)."""
        parts = [rows[start : start + _ROWS_AT_ONCE] for start in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([np.empty(0), *(head.decision(self.expanded(part).astype(np.float64)) for part in parts)])

    def head(self, rows: NDArray[np.intp], y: Array, weight: Array, exercised: Array | None) -> Head:
        """One capability's head, from some rows of all targets, weights and kinds of work, shape (n,) each."""
        if exercised is None or np.ptp(exercised[rows]) == 0:
            return self._one(rows, y, weight, self.parameters.kind)
        kind: HeadKind = "linear" if self.parameters.kind == "blend" else self.parameters.kind
        theirs = rows[exercised[rows] > 0]
        return ConditionalHead(self._one(rows, exercised, weight, kind), self._one(theirs, y, weight, self.parameters.kind))

    def _one(self, rows: NDArray[np.intp], y: Array, weight: Array, kind: HeadKind) -> Head:
        rows = self.drawn(rows)
        if np.ptp(y[rows]) < 1e-12:
            # Nothing to learn: the constant, which a fold of a rare capability can well be.
            return LinearHead(np.zeros(self.width), _logit(float(y[rows[0]])))
        heads: list[Head] = []
        if kind in ("lightgbm", "blend"):
            heads.append(self._trees(rows, y[rows], weight[rows]))
        if self.linear is not None and kind in ("linear", "blend"):
            weights = np.zeros(self.width)
            weights[self.read], bias = self.linear.fit(self._turned_of(self.linear, rows), y[rows], weight[rows])
            heads.append(LinearHead(weights, bias))
        return heads[0] if len(heads) == 1 else MeanHead(tuple(heads))

    def _turned_of(self, linear: ConsistentLogistic, rows: NDArray[np.intp]) -> Inputs:
        """Columns that the linear part reads of these rows; made once for the heads that are fitted on the same ones in turn."""
        if self._turned is None or not np.array_equal(self._turned[0], rows):
            self._turned = rows, linear.turned(self.expanded(rows)[:, self.read])
        return self._turned[1]

    def _trees(self, rows: NDArray[np.intp], y: Array, weight: Array) -> TreeHead:
        settings = self.parameters
        columns = self.inputs[rows, self.embedded :]
        copies = 1
        if self.parallel is not None and settings.noise > 0:
            copies += settings.noisy_copies
            generator = np.random.default_rng(settings.random_state)
            moved = self.parallel.noise(self.parallel.inputs[:, self.embedded :], len(rows) * settings.noisy_copies, generator)
            columns = np.concatenate([columns, np.tile(columns, (settings.noisy_copies, 1)) + settings.noise * moved])
        booster = lightgbm.train(
            {
                "objective": "cross_entropy",
                "learning_rate": settings.learning_rate,
                "num_leaves": settings.num_leaves,
                "max_depth": settings.max_depth,
                "min_data_in_leaf": settings.min_child_samples * copies,
                "feature_fraction": settings.feature_fraction,
                "bagging_fraction": 0.8,
                "bagging_freq": 1,
                "lambda_l2": settings.reg_lambda * copies,
                "max_bin": 63,
                "seed": settings.random_state,
                "deterministic": True,
                "num_threads": 1,
                "verbosity": -1,
            },
            lightgbm.Dataset(columns, np.tile(y, copies), weight=np.tile(weight, copies), free_raw_data=True),
            settings.n_estimators,
        )
        return trees_from_booster(booster, self.embedded)


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
