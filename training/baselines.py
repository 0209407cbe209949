"""What a router has to beat. Whatever a baseline learns, it learns from training rows only.

Every baseline either ranks prompts by how much they need the strong model or makes one fixed choice. A ranking is judged at every share of
strong calls; where one choice is needed it is taken at the router's own share, so that baselines and router cost the same number of calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from training.bootstrap import Array
from training.metrics import adds_value

BASELINES: Final[Mapping[str, str]] = {
    "always_weak": "always the weak model",
    "always_strong": "always the strong model",
    "best_single": "the model that was better on the training rows",
    "random": "random (the expectation, not a draw)",
    "length": "longer prompts to the strong model",
    "source_mean": "mean gain of the prompt's source on the training rows",
    "oracle": "knows both scores: the upper bound",
}
"""Name of every baseline and what it does."""
LEARNED: Final[Mapping[str, str]] = {
    "knn": "gain of the nearest training prompts",
    "svm": "linear support vector machine",
    "logistic": "logistic regression",
    "mlp": "network with one hidden layer",
    "mf": "RouteLLM's matrix factorisation",
    "irt": "item response theory: abilities of models, difficulty of prompts",
    "forest": "random forest on the gain",
    "boosted": "boosted trees on everything",
}
"""Name of every baseline that is learned from the router's own inputs (:mod:`training.learned_baselines`), and what it does."""
_MIN_SOURCE_ROWS: Final = 10


@dataclass(frozen=True, slots=True)
class Policy:
    """A way to route, applied to n prompts.

    Attributes
    ----------
    need
        Larger where the strong model is wanted more, shape (n,); None for a fixed choice.
    chosen
        Probability of a strong call, shape (n,); None where the share of strong calls is free.
    probability
        Probability that the strong model adds value, shape (n,); None where the policy says none.
    """

    name: str
    need: Array | None = None
    chosen: Array | None = None
    probability: Array | None = None


@dataclass(frozen=True, slots=True)
class TrainedBaselines:
    """What baselines know of the training rows: mean gain and share of gains, overall and by source where it has ten rows or more."""

    gain: Mapping[str, float]
    share: Mapping[str, float]
    mean_gain: float
    mean_share: float

    @classmethod
    def fit(cls, training: pd.DataFrame, margin: float = 0.0) -> TrainedBaselines:
        """Learn from rows with columns ``source``, ``weak`` and ``strong``."""
        if training.empty:
            raise InvalidInput("no training rows for the baselines: at least one is needed")
        table = pd.DataFrame(
            {
                "source": training["source"].to_numpy(),
                "gain": training["strong"].to_numpy(dtype=float) - training["weak"].to_numpy(dtype=float),
                "share": adds_value(training["weak"], training["strong"], margin).astype(float),
            }
        )
        grouped = table.groupby("source")[["gain", "share"]]
        means = grouped.mean()[grouped.size() >= _MIN_SOURCE_ROWS]
        return cls(means["gain"].to_dict(), means["share"].to_dict(), float(table["gain"].mean()), float(table["share"].mean()))

    def source_gain(self, sources: pd.Series) -> Array:
        """Mean gain of each row's source, shape (n,); the overall mean for a source that training hardly had."""
        return np.array([self.gain.get(str(source), self.mean_gain) for source in sources])

    def source_share(self, sources: pd.Series) -> Array:
        """Share of each row's source where the strong model added value, shape (n,)."""
        return np.array([self.share.get(str(source), self.mean_share) for source in sources])


def baseline_policies(rows: pd.DataFrame, training: pd.DataFrame | None = None, *, margin: float = 0.0) -> list[Policy]:
    """All baselines on ``rows``.

    Parameters
    ----------
    rows
        Columns ``source``, ``tokens``, ``weak``, ``strong``.
    training
        Rows that the learned baselines may see. None lets them see ``rows`` themselves, which errs in their favour: they learn one number a
        source. (Cross-fitting would err against them: the mean of the other folds runs counter to the fold it is applied to.)
    margin
        Smallest gain that counts as added value.
    """
    fitted = TrainedBaselines.fit(rows if training is None else training, margin)
    n = len(rows)
    delta = rows["strong"].to_numpy(dtype=float) - rows["weak"].to_numpy(dtype=float)
    gains = (delta > margin).astype(float)
    return [
        Policy("always_weak", chosen=np.zeros(n)),
        Policy("always_strong", chosen=np.ones(n)),
        Policy("best_single", chosen=np.full(n, float(fitted.mean_gain > 0))),
        Policy("random", need=np.zeros(n)),
        Policy("length", need=rows["tokens"].to_numpy(dtype=float)),
        Policy("source_mean", need=fitted.source_gain(rows["source"]), probability=fitted.source_share(rows["source"])),
        Policy("oracle", need=delta, chosen=gains, probability=gains),
    ]
