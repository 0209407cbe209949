"""Rows and predictions with known answers, for the tests of the evaluation."""

from __future__ import annotations

import numpy as np
import pandas as pd

from router.artifact import RouterArtifact
from router.catalog import Bands
from router.confidence import ResidualSample
from router.encoder import EncoderSpec
from router.features import FEATURE_NAMES
from router.requirements import Calibration, LinearHead, RequirementsPredictor
from router.route import Router
from router.selection import RoutingPolicy
from training.pairs import pair_catalog
from training.predictions import Predictions

FAMILIES = {"en": "English", "de": "Germanic", "ja": "Japonic", "ar": "Semitic"}
CAPABILITIES = ("reasoning", "code_gen")


def make_rows(n: int = 400, seed: int = 0) -> pd.DataFrame:
    """Two sources, four families, half of the prompts hard for the weak model; costs 1 and 4."""
    rng = np.random.default_rng(seed)
    hard = rng.random(n) < 0.5
    language = rng.choice(list(FAMILIES), n, p=[0.4, 0.3, 0.25, 0.05])
    return pd.DataFrame(
        {
            "source": np.where(rng.random(n) < 0.5, "exams", "試験問題"),
            "prompt_id": [f"p{i}" for i in range(n)],
            "language": language,
            "family": [FAMILIES[code] for code in language],
            "capability": rng.choice(CAPABILITIES, n),
            "group": [f"g{i // 2}" for i in range(n)],
            "weak": (rng.random(n) < np.where(hard, 0.1, 0.9)).astype(float),
            "strong": (rng.random(n) < np.where(hard, 0.8, 0.9)).astype(float),
            "weak_cost_usd": 1.0,
            "strong_cost_usd": 4.0,
            "tokens": rng.integers(1, 300, n).astype(float),
        }
    )


def predictions_of(need: np.ndarray, threshold: float = 0.5) -> Predictions:
    """Predictions whose weak shortfall is ``need``; the strong model never falls short."""
    need = np.asarray(need, dtype=float)
    return Predictions(np.stack([need, np.zeros_like(need)], axis=1), np.repeat(need[:, None], 2, axis=1), CAPABILITIES, threshold)


class ToyEncoder:
    spec = EncoderSpec("fast", "toy", "1", "", 64, 1)

    def encode(self, texts: list[str]) -> np.ndarray:
        return np.array([[1.0 if "hard" in text else -1.0] for text in texts], dtype=np.float32)


def toy_router(weak: str = "small", strong: str = "large", threshold: float = 0.3) -> Router:
    """Requires 0.9 of everything where a text has the word hard, else 0.1."""
    weights = np.zeros(1 + len(FEATURE_NAMES))
    weights[0] = 3.0
    heads = tuple(LinearHead(weights, 0.0) for _ in CAPABILITIES)
    calibration = Calibration(np.array([-3.0, 3.0]), np.array([0.1, 0.9]))
    artifact = RouterArtifact(
        ToyEncoder.spec,
        RequirementsPredictor(CAPABILITIES, heads, (calibration,) * 2),
        Bands(np.full(2, 0.1), np.full(2, 0.9)),
        ResidualSample(np.array([0.5]), np.zeros((2, 4, 2))),
    )
    pool, _ = pair_catalog(None, weak, strong, CAPABILITIES)
    return Router(artifact, ToyEncoder(), pool, RoutingPolicy(shortfall_threshold=threshold))
