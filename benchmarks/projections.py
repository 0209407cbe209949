"""Linear maps of an embedding that are learned from parallel text: distilled to English, and trained contrastively."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Names = NDArray[np.object_]
_RIDGE: Final = 0.01
_STEPS: Final = 600
_PAIRS: Final = 256
_TEMPERATURE: Final = 0.05
_RATE: Final = 2e-3


def distilled_to_english(vectors: Array, meaning: Sequence[str], language: Names) -> Array:
    """Ridge regression of the English vector of a meaning on that of every translation: shape (d, d).

    Multilingual distillation (Reimers and Gurevych 2020) with a linear student and the encoder itself as the teacher.
    """
    english = {name: i for i, (name, tag) in enumerate(zip(meaning, language, strict=True)) if tag == "en"}
    rows = np.flatnonzero([name in english for name in meaning])
    x, y = vectors[rows], vectors[[english[meaning[int(i)]] for i in rows]]
    penalty = _RIDGE * np.trace(x.T @ x) / x.shape[1]
    return np.asarray(np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y), dtype=np.float64)


def contrastive(vectors: Array, meaning: Sequence[str], language: Names, width: int, seed: int = 0) -> Array:
    """A projection, shape (d, width), in which translations find each other among other sentences (InfoNCE, van den Oord et al. 2018).

    Adam on random pairs of languages of random meanings; it starts from the first principal directions.
    """
    generator = np.random.default_rng(seed)
    rows = {name: np.flatnonzero(np.asarray(meaning) == name) for name in dict.fromkeys(meaning)}
    several = [of for of in rows.values() if len(set(language[of])) > 1]
    spread = np.linalg.svd(vectors - vectors.mean(axis=0), full_matrices=False)[2][:width].T
    weights = spread / np.sqrt((vectors @ spread).var(axis=0).sum())
    first, second = np.zeros_like(weights), np.zeros_like(weights)
    for step in range(1, _STEPS + 1):
        drawn = generator.choice(len(several), min(_PAIRS, len(several)), replace=False)
        pairs = np.array([generator.choice(several[i], 2, replace=False) for i in drawn])
        gradient = _info_nce_gradient(vectors[pairs[:, 0]], vectors[pairs[:, 1]], weights)
        first, second = 0.9 * first + 0.1 * gradient, 0.999 * second + 0.001 * gradient**2
        weights = weights - _RATE * (first / (1 - 0.9**step)) / (np.sqrt(second / (1 - 0.999**step)) + 1e-8)
    return np.asarray(weights, dtype=np.float64)


def _info_nce_gradient(x: Array, y: Array, weights: Array) -> Array:
    """Gradient of the mean of both directions' cross-entropies, shape of ``weights``; x[i] and y[i] say the same."""
    a, b = x @ weights, y @ weights
    logits = a @ b.T / _TEMPERATURE
    right = np.eye(len(x))
    wrong = (_softmax(logits) - right + (_softmax(logits.T) - right).T) / (2 * len(x) * _TEMPERATURE)
    return np.asarray(x.T @ (wrong @ b) + y.T @ (wrong.T @ a), dtype=np.float64)


def _softmax(logits: Array) -> Array:
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True), dtype=np.float64)
