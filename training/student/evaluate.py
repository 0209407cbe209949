"""How well an encoder knows translations and how near it stays to its teacher, on held-out meanings."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from router.encoder import TextEncoder
from training.student.texts import Texts


def translation_retrieval(encoder: TextEncoder, texts: Texts) -> dict[str, float]:
    """Share of sentences whose nearest English sentence (cosine) is their translation, per language and as ``mean``.

    Every language has as many candidates as there are English sentences in ``texts``.
    """
    vectors = encoder.encode(texts.text)
    english = texts.language == "en"
    names, candidates = texts.group[english], vectors[english]
    found: dict[str, float] = {}
    for language in sorted(set(texts.language.tolist()) - {"en"}):
        mask = (texts.language == language) & np.isin(texts.group.astype(str), names.astype(str))
        if mask.any():
            nearest = (vectors[mask] @ candidates.T).argmax(axis=1)
            found[language] = float((names[nearest] == texts.group[mask]).mean())
    return {"mean": float(np.mean(list(found.values()))), **found} if found else {"mean": float("nan")}


def mean_cosine(said: NDArray[np.float32], targets: NDArray[np.float32]) -> float:
    """Mean cosine of unit rows."""
    return float((said * targets).sum(axis=1).mean())
