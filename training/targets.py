"""From scores of models to requirement targets in [0, 1].

The mapping is documented in docs/targets.md. In short: the quality delta (strong minus weak) of a prompt says how much a stronger model
adds; what it adds is required of the capability that the prompt exercises, and nothing is required of the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput

Array = NDArray[np.float64]

CAPABILITY_OF_TASK: Final[Mapping[str, str]] = {
    "code": "code_gen",
    "debug": "debugging",
    "tool_use": "tool_use",
    "math": "reasoning",
    "reasoning": "reasoning",
    "knowledge": "reasoning",
    "chat": "reasoning",
    "translation": "reasoning",
    "code_gen": "code_gen",
    "debugging": "debugging",
}
"""Capability that each kind of task of the canonical prompt table exercises; the names of capabilities stand for themselves."""


@dataclass(frozen=True, slots=True)
class TargetMapping:
    """How a quality delta becomes a need.

    Parameters
    ----------
    margin
        Deltas up to this are noise: they need nothing.
    full
        From this delta on the need is 1; in between it rises linearly.
    soft
        False makes the need 0 or 1, at the margin.
    """

    margin: float = 0.0
    full: float = 1.0
    soft: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.margin < self.full <= 1:
            raise InvalidInput(f"target mapping margin {self.margin!r}, full {self.full!r}: 0 <= margin < full <= 1 was expected")

    def need(self, delta: Array) -> Array:
        """Need in [0, 1], shape (n,), of quality deltas in [-1, 1]. A weak model that was better needs nothing."""
        if not self.soft:
            return (delta > self.margin).astype(np.float64)
        return np.asarray(np.clip((delta - self.margin) / (self.full - self.margin), 0.0, 1.0))


def pair_need(weak: Array, strong: Array, mapping: TargetMapping | None = None) -> Array:
    """Need of every prompt from the scores of two models, shape (n,).

    Raises
    ------
    InvalidInput
        If a score is not a finite number in [0, 1].
    """
    for name, scores in (("weak", weak), ("strong", strong)):
        wrong = ~(np.isfinite(scores) & (scores >= 0) & (scores <= 1))
        if wrong.any():
            row = int(np.flatnonzero(wrong)[0])
            raise InvalidInput(f"{name} score of row {row} is {scores[row]!r}: a number within [0, 1] was expected")
    return (mapping or TargetMapping()).need(strong - weak)


def pool_need(scores: Array, weak: Array, strong: Array, bandwidth: float = 0.05, mapping: TargetMapping | None = None) -> Array:
    """Need of every prompt from the scores of many models, shape (n,).

    One answer is a coin toss. Models of about the same strength toss it again: the weak and the strong score of a prompt become averages
    over all models, weighted by how near their mean score lies to that of the named one (a Gaussian kernel of width ``bandwidth``).

    Parameters
    ----------
    scores
        Scores of all models, shape (n, models), NaN where a model did not answer.
    weak, strong
        Scores of the named models, shape (n,).
    bandwidth
        Width of the kernel in mean score; 0 uses the named models alone.
    """
    if bandwidth <= 0:
        return pair_need(weak, strong, mapping)
    means = np.nanmean(scores, axis=0)
    return pair_need(
        _kernel_mean(scores, means, float(np.nanmean(weak)), bandwidth),
        _kernel_mean(scores, means, float(np.nanmean(strong)), bandwidth),
        mapping,
    )


def _kernel_mean(scores: Array, means: Array, anchor: float, bandwidth: float) -> Array:
    kernel = np.exp(-0.5 * ((means - anchor) / bandwidth) ** 2)
    there = np.isfinite(scores)
    weight = np.where(there, kernel, 0.0).sum(axis=1)
    # A mean of ones can come out one rounding step above 1.
    return np.asarray(np.clip((np.where(there, scores, 0.0) @ kernel) / np.maximum(weight, 1e-12), 0.0, 1.0))


def capability_weights(tasks: Sequence[str], capabilities: Sequence[str]) -> Array:
    """Which capability each prompt exercises, shape (n, K), from its task kind or the name of a capability.

    Raises
    ------
    InvalidInput
        For a task kind that belongs to none of the capabilities.
    """
    weights = np.zeros((len(tasks), len(capabilities)))
    for row, task in enumerate(tasks):
        capability = task if task in capabilities else CAPABILITY_OF_TASK.get(task)
        if capability not in capabilities:
            allowed = sorted(set(capabilities) | {t for t, c in CAPABILITY_OF_TASK.items() if c in capabilities})
            raise InvalidInput(f"task kind {task!r} belongs to no capability: allowed are {', '.join(allowed)}")
        weights[row, list(capabilities).index(str(capability))] = 1.0
    return weights


def requirement_targets(need: Array, exercised: Array) -> Array:
    """Targets of the heads, shape (n, K): the need where the capability is exercised, 0 elsewhere."""
    return exercised * need[:, None]
