"""``sentence``: any SentenceTransformer, for routers whose prompts the shipped encoders read badly, and for comparison."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.encoder import EncoderSpec, l2_normalise
from router.errors import EncoderError

CHARACTERS_PER_TOKEN = 32
DEFAULT_MAX_TOKENS = 512


class SentenceEncoder:
    """Wraps a SentenceTransformer that is already loaded (``router.files.sentence_models`` loads them).

    One call at a time: fast tokenizers set padding on themselves and may refuse a second thread (huggingface/transformers#47085).
    """

    def __init__(self, spec: EncoderSpec, model: Any, batch_size: int = 16) -> None:
        self._spec = spec
        self._model = model
        self._batch_size = batch_size
        self._lock = Lock()

    @classmethod
    def of(cls, model: Any, name: str, revision: str, prefix: str | None = None, max_tokens: int | None = None) -> SentenceEncoder:
        """Describe a model: its default prompt, if it has one, is the prefix unless another is given."""
        prompts = getattr(model, "prompts", None) or {}
        chosen = prompts.get(getattr(model, "default_prompt_name", None) or "", "") if prefix is None else prefix
        limit = min(filter(None, (max_tokens, model.max_seq_length)), default=DEFAULT_MAX_TOKENS)
        model.max_seq_length = limit
        return cls(EncoderSpec("sentence", name, revision, chosen, limit, _dimension(model)), model)

    @property
    def spec(self) -> EncoderSpec:
        """What this encoder is."""
        return self._spec

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), spec.dimension)``, rows of length 1; zero rows for blank texts."""
        vectors = np.zeros((len(texts), self._spec.dimension), np.float32)
        filled = [row for row, text in enumerate(texts) if text.strip()]
        if not filled:
            return vectors
        limit = self._spec.max_tokens * CHARACTERS_PER_TOKEN
        shown = [self._spec.prefix + texts[row][:limit] for row in filled]
        with self._lock:
            encoded = self._model.encode(shown, prompt="", batch_size=self._batch_size, show_progress_bar=False)
        vectors[filled] = l2_normalise(np.asarray(encoded, np.float32))
        return vectors


def _dimension(model: Any) -> int:
    """The method was renamed in sentence-transformers 5.x; both names are tried."""
    for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        if hasattr(model, method):
            return int(getattr(model, method)())
    raise EncoderError("the SentenceTransformer does not say its dimension; update sentence-transformers")
