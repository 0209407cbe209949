"""A toy router for any test: three models, a real but tiny fast encoder, seeded heads. On disk, so that processes can load it."""

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from router.artifact import RouterArtifact
from router.catalog import Bands
from router.confidence import ResidualSample
from router.encoder import TextEncoder
from router.encoders.fast import FastEncoder, pack
from router.features import FEATURE_NAMES
from router.files import artifacts, encoders
from router.requirements import CAPABILITIES, Calibration, LinearHead, RequirementsPredictor
from router.route import Router

CATALOG = """
models:
  small:
    provider: acme
    prices: {input_per_mtok: 0.1, output_per_mtok: 0.4, cache_read_multiplier: 0.1}
    context_window_tokens: 8000
    tools: false
    raw: {reasoning: 0.2, code_gen: 0.2, debugging: 0.1, tool_use: 0.1}
  middle:
    provider: acme
    prices: {input_per_mtok: 1.0, output_per_mtok: 4.0, cache_read_multiplier: 0.1}
    context_window_tokens: 32000
    modalities: [text, image]
    raw: {reasoning: 0.5, code_gen: 0.6, debugging: 0.5, tool_use: 0.6}
  large:
    provider: zenith
    prices: {input_per_mtok: 5.0, output_per_mtok: 20.0, cache_read_multiplier: 0.1}
    context_window_tokens: 64000
    raw: {reasoning: 0.9, code_gen: 0.9, debugging: 0.9, tool_use: 0.9}
"""


@dataclass(frozen=True)
class Toy:
    """Folders and files of the toy router."""

    encoder: Path
    artifact: Path
    catalog: Path

    def load(self) -> Router:
        parts = encoders.read_encoder_folder(self.encoder).parts
        return artifacts.load_router(self.artifact, self.catalog, encoder=FastEncoder.from_bytes(parts))[0]

    def command(self, *arguments: str) -> list[str]:
        """The console script as a process of its own, with the toy encoder in place of the shipped one."""
        code = (
            "import sys; from pathlib import Path; from router.files import encoders; from interlock.cli import main; "
            f"encoders.SHIPPED_FAST = Path({str(self.encoder)!r}); sys.argv[0] = 'interlock'; main()"
        )
        return [sys.executable, "-c", code, *arguments]


def toy_encoder(rng: np.random.Generator, width: int = 8, dimension: int = 12) -> dict[str, bytes]:
    pieces = ["<unk>", "▁", *(chr(c) for c in range(33, 127)), *"你好请写代码สวัดีمرحبا"]
    pieces = list(dict.fromkeys(pieces))

    def normal(*shape: int) -> np.ndarray:
        return rng.normal(size=shape).astype(np.float32) / 3

    arrays = {
        "scores": np.full(len(pieces), -5.0),
        "table": rng.integers(-127, 128, (len(pieces), width)).astype(np.int8),
        "scale": np.full(len(pieces), 0.01, np.float32),
        "before": normal(width, 4), "at": normal(width, 4), "after": normal(width, 4), "window_bias": normal(4),
        "direct": normal(width + 8, dimension), "hidden": normal(width + 8, 6), "hidden_bias": normal(6),
        "output": normal(6, dimension), "output_bias": normal(dimension),
    }  # fmt: skip
    return pack({"name": "toy", "max_tokens": 128, "dimension": dimension}, pieces, arrays)


def toy_artifact(encoder: TextEncoder, rng: np.random.Generator) -> RouterArtifact:
    size = encoder.spec.dimension + len(FEATURE_NAMES)
    weights = rng.normal(size=(len(CAPABILITIES), size)) * 0.2
    # Longer requests require more: a property that tests can rely on.
    weights[:, encoder.spec.dimension] = 1.0
    heads = tuple(LinearHead(row, -4.0) for row in weights)
    curve = Calibration(np.array([-4.0, 4.0]), np.array([0.05, 0.95]))
    residuals = ResidualSample(np.array([0.5]), rng.normal(size=(2, 64, len(CAPABILITIES))) * 0.1)
    predictor = RequirementsPredictor(CAPABILITIES, heads, (curve,) * len(heads))
    return RouterArtifact(encoder.spec, predictor, Bands(np.full(len(heads), 0.1), np.full(len(heads), 0.9)), residuals)


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> Toy:
    folder = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(7)
    parts = toy_encoder(rng)
    encoder = FastEncoder.from_bytes(parts)
    encoders.write_encoder_folder(folder / "fast", encoders.EncoderFolder(encoder.spec, parts, {}))
    artifacts.write_artifact(toy_artifact(encoder, rng), folder / "router")
    (folder / "catalog.yaml").write_text(CATALOG, encoding="utf-8")
    return Toy(folder / "fast", folder / "router", folder / "catalog.yaml")


@pytest.fixture(scope="session")
def toy_router(toy: Toy) -> Router:
    return toy.load()
