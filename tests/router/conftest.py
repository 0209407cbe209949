"""A deterministic encoder, three models and hand-made heads: everything a decision needs, in memory."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import settings
from numpy.typing import NDArray

from router.artifact import RouterArtifact
from router.catalog import Bands, ModelCatalog
from router.confidence import ResidualSample
from router.encoder import EncoderSpec
from router.features import FEATURE_NAMES
from router.requirements import CAPABILITIES, Calibration, LinearHead, MeanHead, RequirementsPredictor, TreeHead
from router.route import Router
from router.selection import RoutingPolicy

settings.register_profile("interlock", derandomize=True, deadline=None, max_examples=60)
settings.load_profile("interlock")

DIMENSION = 16
WIDTH = DIMENSION + len(FEATURE_NAMES)


class ToyEncoder:
    """Vectors of length 1 from a hash of the text: equal texts are equal, others have nothing in common."""

    spec = EncoderSpec("fast", "toy", "1", "", 256, DIMENSION)

    def __init__(self) -> None:
        self.texts: list[str] = []

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts.extend(texts)
        seeds = [int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) for text in texts]
        rows = np.stack([np.random.default_rng(seed).normal(size=DIMENSION) for seed in seeds])
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)


MODELS = {
    "small": {
        "prices": {"input_per_mtok": 0.1, "output_per_mtok": 0.4, "cache_read_multiplier": 0.1, "cache_minimum_tokens": 1},
        "context_window_tokens": 4_000,
        "max_output_tokens": 1_000,
        "tools": False,
        "raw": {"reasoning": 0.2, "code_gen": 0.3, "debugging": 0.1, "tool_use": 0.1},
    },
    "middle": {
        "prices": {"input_per_mtok": 1, "output_per_mtok": 4},
        "context_window_tokens": 32_000,
        "modalities": ["text", "image"],
        "raw": {"reasoning": 0.5, "code_gen": 0.6, "debugging": 0.5, "tool_use": 0.6},
    },
    "large": {
        "prices": {"input_per_mtok": 5, "output_per_mtok": 20},
        "context_window_tokens": 2_000_000,
        "raw": {"reasoning": 0.9, "code_gen": 0.8, "debugging": 0.9, "tool_use": 0.9},
    },
}


@pytest.fixture(scope="session")
def models() -> dict:
    return MODELS


@pytest.fixture(scope="session")
def catalog() -> ModelCatalog:
    return ModelCatalog.from_mapping({"models": MODELS})


def tree_head(rng: np.random.Generator, trees: int = 5) -> TreeHead:
    """Trees of three leaves: root 0, inner node 1, leaves 2, 3, 4."""
    return TreeHead(
        feature=np.tile(np.array([0, 3, 0, 0, 0], np.int32), (trees, 1)),
        threshold=np.tile(np.array([0.0, 0.1, 0, 0, 0]), (trees, 1)),
        left=np.tile(np.array([1, 2, 2, 3, 4], np.int32), (trees, 1)),
        right=np.tile(np.array([4, 3, 2, 3, 4], np.int32), (trees, 1)),
        value=rng.normal(size=(trees, 5)),
        bias=0.25,
        depth=2,
    )


@pytest.fixture(scope="session")
def artifact() -> RouterArtifact:
    rng = np.random.default_rng(11)
    linear = [LinearHead(rng.normal(size=WIDTH) * 0.3, float(rng.normal())) for _ in range(3)]
    heads = (linear[0], tree_head(rng), MeanHead((linear[1], tree_head(rng))), linear[2])
    curve = Calibration(np.array([-4.0, 0.0, 4.0]), np.array([0.02, 0.4, 0.95]))
    return RouterArtifact(
        encoder=ToyEncoder.spec,
        predictor=RequirementsPredictor(CAPABILITIES, heads, (curve,) * 4),
        bands=Bands(np.array([0.1, 0.2, 0.1, 0.3]), np.array([0.8, 0.7, 0.9, 0.9])),
        residuals=ResidualSample(np.array([0.5]), rng.normal(size=(2, 64, 4)) * 0.1),
        card={"sources": ["toy"], "note": "Prüfung 検査"},
        metrics={"apgr": 0.5},
    )


class FixedHead:
    """The same log-odds for every input."""

    def __init__(self, requirement: float) -> None:
        self.requirement = requirement

    def decision(self, x: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.full(len(x), self.requirement)

    def to_arrays(self) -> dict:
        return {}


MakeRouter = Callable[..., Router]


@pytest.fixture(scope="session")
def make_router(artifact: RouterArtifact, catalog: ModelCatalog) -> MakeRouter:
    """Build a router; with ``requirements`` every conversation requires exactly those."""

    def make(requirements: Sequence[float] | None = None, models: ModelCatalog = catalog, **policy: object) -> Router:
        used = artifact
        if requirements is not None:
            identity = Calibration(np.array([0.0, 1.0]), np.array([0.0, 1.0]))
            predictor = RequirementsPredictor(CAPABILITIES, tuple(map(FixedHead, requirements)), (identity,) * 4)
            used = RouterArtifact(artifact.encoder, predictor, Bands(np.zeros(4), np.ones(4)), artifact.residuals)
        return Router(used, ToyEncoder(), models, RoutingPolicy(**policy) if policy else None)

    return make


@pytest.fixture(scope="session")
def router(make_router: MakeRouter) -> Router:
    return make_router()
