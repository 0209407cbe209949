"""What a conversation requires of a model: one number in [0, 1] a capability, and the predictor that says it.

A predictor is arrays and nothing else. Trees are evaluated here, so that serving needs neither the library that grew them nor a pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from router.basis import HatBasis
from router.errors import ArtifactError, InvalidInput
from router.forest import Forest, fits

Array = NDArray[np.float64]
CAPABILITIES: Final[tuple[str, ...]] = ("reasoning", "code_gen", "debugging", "tool_use")
_DEEPEST: Final = 256


@dataclass(frozen=True, slots=True)
class Requirements:
    """Requirement in [0, 1] of every capability."""

    values: Mapping[str, float]

    @classmethod
    def from_array(cls, row: ArrayLike, capabilities: Sequence[str]) -> Requirements:
        """Name the columns of one predicted row, shape (K,)."""
        return cls(dict(zip(capabilities, np.asarray(row, dtype=np.float64).tolist(), strict=True)))

    def to_array(self, capabilities: Sequence[str]) -> Array:
        """The requirements in the order asked for, shape (K,)."""
        missing = [name for name in capabilities if name not in self.values]
        if missing:
            raise InvalidInput(f"no requirement for capability {missing[0]!r}: there are {', '.join(self.values)}")
        return np.array([self.values[name] for name in capabilities])


class Head(Protocol):
    """One capability's raw prediction."""

    def decision(self, x: Array) -> Array:
        """Log-odds, shape (n,), of inputs with shape (n, d)."""
        ...

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The head as named arrays."""
        ...


@dataclass(frozen=True, slots=True)
class LinearHead:
    """Logistic head: log-odds = standardised x @ weights + bias, with the standardisation folded in."""

    weights: Array
    bias: float

    def decision(self, x: Array) -> Array:
        """Log-odds, shape (n,)."""
        return x @ self.weights + self.bias

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Arrays ``weights`` (d,) and ``bias`` ()."""
        return {"weights": self.weights, "bias": np.array(self.bias)}


@dataclass(frozen=True, slots=True)
class TreeHead:
    """Boosted trees: all trees side by side, walked one level at a time.

    ``feature``, ``threshold``, ``left`` and ``right`` have shape (trees, nodes). A leaf points at itself, so that walking on stays there.
    A row goes left where its value is at most the threshold.
    """

    feature: NDArray[np.int32]
    threshold: Array
    left: NDArray[np.int32]
    right: NDArray[np.int32]
    value: Array
    bias: float
    depth: int
    # All nodes of all trees in one row: the two children of node n stand at 2n (greater) and 2n + 1 (at most the threshold).
    _children: NDArray[np.intp] = field(init=False, repr=False, compare=False)
    _roots: NDArray[np.intp] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        trees, nodes = self.feature.shape
        roots = np.arange(trees, dtype=np.intp) * nodes
        children = np.stack([self.right, self.left], axis=2) + roots[:, None, None]
        object.__setattr__(self, "_children", children.ravel())
        object.__setattr__(self, "_roots", roots)

    def decision(self, x: Array) -> Array:
        """Log-odds, shape (n,)."""
        out = np.empty(len(x))
        for start in range(0, len(x), 2048):
            rows = x[start : start + 2048]
            node = np.repeat(self._roots[None, :], len(rows), axis=0)
            first = (np.arange(len(rows)) * rows.shape[1])[:, None]
            for _ in range(self.depth):
                goes_left = rows.take(first + self.feature.take(node)) <= self.threshold.take(node)
                node = self._children.take(2 * node + goes_left)
            out[start : start + 2048] = self.value.take(node).sum(axis=1) + self.bias
        return out

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """The seven arrays of the head."""
        return {
            "feature": self.feature,
            "threshold": self.threshold,
            "left": self.left,
            "right": self.right,
            "value": self.value,
            "bias": np.array(self.bias),
            "depth": np.array(self.depth),
        }


@dataclass(frozen=True, slots=True)
class MeanHead:
    """Average of the log-odds of several heads (a blend of linear and trees)."""

    heads: tuple[Head, ...]

    def decision(self, x: Array) -> Array:
        """Mean log-odds, shape (n,)."""
        return _mean([head.decision(x) for head in self.heads])

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Arrays of every member, prefixed with its position."""
        return {f"{i}.{name}": array for i, head in enumerate(self.heads) for name, array in head.to_arrays().items()}


@dataclass(frozen=True, slots=True)
class ConditionalHead:
    """Requirement = probability that the capability is exercised x need of a prompt that exercises it.

    Which kind of work a prompt is can be learned from every prompt; how much a stronger model adds, only from those of that kind.
    """

    exercised: Head
    need: Head

    def decision(self, x: Array) -> Array:
        """Log-odds of the product of both probabilities, shape (n,)."""
        return _product(self.exercised.decision(x), self.need.decision(x))

    def to_arrays(self) -> dict[str, NDArray[np.generic]]:
        """Arrays of both, prefixed with their part."""
        parts = (("exercised", self.exercised), ("need", self.need))
        return {f"{part}.{name}": array for part, head in parts for name, array in head.to_arrays().items()}


def _mean(decisions: Sequence[Array]) -> Array:
    return np.asarray(np.add.reduce(decisions) / len(decisions), dtype=np.float64)


def _product(a: Array, b: Array) -> Array:
    """Log-odds of the product of two probabilities that are given as log-odds."""
    # log of a sigmoid without overflow; the odds of a product p of probabilities are p / (1 - p).
    log_p = -np.logaddexp(0.0, -a) - np.logaddexp(0.0, -b)
    return np.asarray(log_p - np.log(-np.expm1(np.minimum(log_p, -1e-12))), dtype=np.float64)


def head_from_arrays(arrays: Mapping[str, NDArray[np.generic]], dimension: int) -> Head:
    """Rebuild a head from its arrays and check that it can only read the ``dimension`` columns it is given.

    Raises
    ------
    ArtifactError
        If the arrays are not those of a head, or point outside their bounds.
    """
    if "weights" in arrays:
        weights = _floats(arrays, "weights")
        if weights.shape != (dimension,):
            raise ArtifactError(f"a linear head has {weights.shape} weights: ({dimension},) were expected")
        return LinearHead(weights, _scalar(arrays, "bias"))
    if "feature" in arrays:
        return _tree_head(arrays, dimension)
    if any(name.startswith("need.") for name in arrays):
        return ConditionalHead(
            head_from_arrays(_below(arrays, "exercised."), dimension), head_from_arrays(_below(arrays, "need."), dimension)
        )
    members = {name.split(".", 1)[0] for name in arrays if "." in name}
    if not members or not all(member.isdecimal() for member in members):
        raise ArtifactError(f"no head is made of the arrays {sorted(arrays)[:8]}")
    ordered = sorted(members, key=int)
    return MeanHead(tuple(head_from_arrays(_below(arrays, f"{member}."), dimension) for member in ordered))


def _below(arrays: Mapping[str, NDArray[np.generic]], prefix: str) -> dict[str, NDArray[np.generic]]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _tree_head(arrays: Mapping[str, NDArray[np.generic]], dimension: int) -> TreeHead:
    feature, left, right = (_indices(arrays, name) for name in ("feature", "left", "right"))
    threshold, value = _floats(arrays, "threshold", finite=False), _floats(arrays, "value")
    depth = int(_scalar(arrays, "depth"))
    shape = feature.shape
    same = all(a.shape == shape for a in (threshold, left, right, value))
    if len(shape) != 2 or shape[1] < 1 or not same or not 0 <= depth <= _DEEPEST or np.isnan(threshold).any():
        raise ArtifactError(f"a tree head has arrays of different shapes, or a depth of {depth}: at most {_DEEPEST} was expected")
    limits = ((feature, dimension), (left, shape[1]), (right, shape[1]))
    if not all(a.size == 0 or (a.min() >= 0 and a.max() < limit) for a, limit in limits):
        raise ArtifactError("a tree head points outside its nodes or its features")
    return TreeHead(feature, threshold, left, right, value, _scalar(arrays, "bias"), depth)


def _array(arrays: Mapping[str, NDArray[np.generic]], name: str, kinds: str) -> NDArray[np.generic]:
    if name not in arrays:
        raise ArtifactError(f"a head lacks the array {name!r}")
    if arrays[name].dtype.kind not in kinds:
        raise ArtifactError(f"array {name!r} of a head has type {arrays[name].dtype}: numbers were expected")
    return arrays[name]


def _floats(arrays: Mapping[str, NDArray[np.generic]], name: str, *, finite: bool = True) -> Array:
    array = np.asarray(_array(arrays, name, "fiu"), dtype=np.float64)
    if finite and not np.isfinite(array).all():
        raise ArtifactError(f"array {name!r} of a head has values that are not finite")
    return array


def _indices(arrays: Mapping[str, NDArray[np.generic]], name: str) -> NDArray[np.int32]:
    array = np.asarray(_array(arrays, name, "iu"))
    if array.size and (array.min() < 0 or array.max() > np.iinfo(np.int32).max):
        raise ArtifactError("a tree head points outside its nodes or its features")
    return array.astype(np.int32)


def _scalar(arrays: Mapping[str, NDArray[np.generic]], name: str) -> float:
    array = _floats(arrays, name)
    if array.shape != ():
        raise ArtifactError(f"array {name!r} of a head has shape {array.shape}: one number was expected")
    return float(array)


@dataclass(frozen=True, slots=True)
class Calibration:
    """Monotone piecewise-linear map from log-odds to a calibrated requirement; constant beyond the outer knots."""

    x: Array
    y: Array

    def __post_init__(self) -> None:
        if self.x.ndim != 1 or self.x.shape != self.y.shape or self.x.size < 1:
            raise ArtifactError(f"a calibration needs matching knots, got shapes {self.x.shape} and {self.y.shape}")
        finite = np.isfinite(self.x).all() and np.isfinite(self.y).all()
        if not finite or (np.diff(self.x) < 0).any() or (np.diff(self.y) < 0).any() or self.y.min() < 0 or self.y.max() > 1:
            raise ArtifactError("a calibration must rise within [0, 1] over rising finite knots")

    def __call__(self, decision: Array) -> Array:
        """Calibrated requirement in [0, 1], same shape as the log-odds."""
        return np.interp(decision, self.x, self.y)


Formula = Callable[[Array], Array]


class _Together:
    """Several heads at once: linear parts as one product, trees as one forest, and one formula for all heads that are built alike."""

    def __init__(self, heads: Sequence[Head]) -> None:
        parts: list[Head] = []
        self._formula = _formula(heads, parts)
        linear = {i: part for i, part in enumerate(parts) if isinstance(part, LinearHead)}
        trees = {i: part for i, part in enumerate(parts) if isinstance(part, TreeHead) and fits(part)}
        self._parts, self._linear, self._trees = parts, list(linear), list(trees)
        self._others = [i for i in range(len(parts)) if i not in linear and i not in trees]
        self._weights = np.stack([part.weights for part in linear.values()], axis=1) if linear else None
        self._bias = np.array([part.bias for part in linear.values()])
        self._forest = Forest(list(trees.values())) if trees else None

    def decision(self, x: Array) -> Array:
        """Log-odds, shape (n, heads)."""
        ready = np.empty((len(x), len(self._parts)))
        if self._weights is not None:
            ready[:, self._linear] = x @ self._weights + self._bias
        if self._forest is not None:
            ready[:, self._trees] = self._forest.decision(x)
        for i in self._others:
            ready[:, i] = self._parts[i].decision(x)
        return self._formula(ready)


def _formula(heads: Sequence[Head], parts: list[Head]) -> Formula:
    """From the log-odds of the parts, shape (n, parts), to those of the heads; parts that they are made of are added to ``parts``."""
    conditional = [head for head in heads if isinstance(head, ConditionalHead)]
    means = [head for head in heads if isinstance(head, MeanHead)]
    if len(conditional) == len(heads):
        exercised, need = _formula([head.exercised for head in conditional], parts), _formula([head.need for head in conditional], parts)
        return partial(_product_of, exercised, need)
    if len(means) == len(heads) and len({len(head.heads) for head in means}) == 1:
        members = [_formula(alike, parts) for alike in zip(*(head.heads for head in means), strict=True)]
        return partial(_mean_of, members)
    if conditional or means:
        each = [_formula([head], parts) for head in heads]
        return partial(_side_by_side, each)
    own = slice(len(parts), len(parts) + len(heads))
    parts.extend(heads)
    return partial(_columns, own)


# Functions of the module and not of a call, so that a predictor can be pickled.
def _product_of(exercised: Formula, need: Formula, ready: Array) -> Array:
    return _product(exercised(ready), need(ready))


def _mean_of(members: Sequence[Formula], ready: Array) -> Array:
    return _mean([member(ready) for member in members])


def _side_by_side(each: Sequence[Formula], ready: Array) -> Array:
    return np.concatenate([one(ready) for one in each], axis=1)


def _columns(own: slice, ready: Array) -> Array:
    return ready[:, own]


@dataclass(frozen=True, slots=True)
class RequirementsPredictor:
    """K calibrated heads over one input row = embedding then features, and behind them the hats of the features if there is a basis."""

    capabilities: tuple[str, ...]
    heads: tuple[Head, ...]
    calibrations: tuple[Calibration, ...]
    basis: HatBasis | None = None
    _together: _Together = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not len(self.capabilities) == len(self.heads) == len(self.calibrations) > 0:
            raise ArtifactError(
                f"{len(self.capabilities)} capabilities, {len(self.heads)} heads and {len(self.calibrations)} calibrations do not match"
            )
        for name in self.capabilities:
            if not name or "/" in name or self.capabilities.count(name) > 1:
                raise ArtifactError(f"capability {name!r} stands twice, is empty, or has a slash in its name")
        object.__setattr__(self, "_together", _Together(self.heads))

    def predict(self, x: Array) -> Array:
        """Requirements in [0, 1], shape (n, K), of inputs with shape (n, d)."""
        expanded = x if self.basis is None else np.concatenate([x, self.basis.expand(x)], axis=1)
        decisions = self._together.decision(expanded).T
        return np.stack([calibrate(decision) for decision, calibrate in zip(decisions, self.calibrations, strict=True)], axis=1)
