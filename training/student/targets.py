"""What the student should say: the teacher's vectors freed of language, turned to principal axes.

A sentence in any language gets its meaning's target: the mean, over the teacher's languages, of the teacher's vectors, each less its
language's mean. A prompt gets the teacher's vector less its language's mean. After centring both are projected on the principal
axes, and each axis divided by ``deviation ** whitening``, since e5 vectors fill a narrow cone. So the student is
also taught to be blind to language, as in the distillation of Reimers and Gurevych (2020, arXiv:2004.09813).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from router.encoder import l2_normalise
from training.student.texts import Texts

Array = NDArray[np.float32]


@dataclass(frozen=True)
class Projection:
    """Teacher space to student space."""

    language_mean: dict[str, Array]
    centre: Array
    axes: Array

    def centred(self, vectors: Array, languages: NDArray[np.object_]) -> Array:
        """Less the mean of each row's language; an unknown language gets the English mean."""
        means = np.stack([self.language_mean.get(language, self.language_mean["en"]) for language in languages])
        return vectors - means

    def project(self, centred: Array) -> Array:
        """Student-space targets, rows of length 1."""
        return l2_normalise(((centred - self.centre) @ self.axes).astype(np.float32))


def language_means(vectors: Array, languages: NDArray[np.object_]) -> dict[str, Array]:
    """Mean vector of every language, and of English when absent: the mean of all."""
    means = {str(language): vectors[languages == language].mean(axis=0) for language in np.unique(languages.astype(str))}
    means.setdefault("en", vectors.mean(axis=0))
    return means


def meaning_targets(centred: Array, groups: NDArray[np.object_]) -> tuple[NDArray[np.object_], Array]:
    """Group names and the mean vector of each."""
    names, index = np.unique(groups.astype(str), return_inverse=True)
    sums = np.zeros((len(names), centred.shape[1]), np.float64)
    np.add.at(sums, index, centred)
    return names.astype(object), (sums / np.bincount(index)[:, None]).astype(np.float32)


def fit_projection(means: dict[str, Array], meanings: Array, prompts: Array, dimension: int, whitening: float) -> Projection:
    """Principal axes of meanings and prompts, each side weighing the same."""
    weight = np.sqrt(np.concatenate([np.full(len(side), 0.5 / len(side)) for side in (meanings, prompts)]))
    stacked = np.concatenate([meanings, prompts])
    centre = (stacked * weight[:, None] ** 2).sum(axis=0)
    _, deviation, axes = np.linalg.svd((stacked - centre) * weight[:, None], full_matrices=False)
    scaled = axes[:dimension].T / np.maximum(deviation[:dimension], 1e-6) ** whitening
    return Projection(means, centre.astype(np.float32), scaled.astype(np.float32))


def targets_of(texts: Texts, names: NDArray[np.object_], vectors: Array) -> NDArray[np.int64]:
    """Row of each text's group among ``names``; -1 where the teacher has not seen the group."""
    row = {name: index for index, name in enumerate(names)}
    return np.array([row.get(group, -1) for group in texts.group], np.int64)
