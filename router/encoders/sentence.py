"""``sentence``: any SentenceTransformer name or folder, for training and comparison."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.encoder import EncoderSpec, l2_normalise
from router.errors import EncoderError

CHARACTERS_PER_TOKEN = 32


class SentenceEncoder:
    """Wraps a SentenceTransformer; its default prompt, if it has one, becomes the prefix."""

    def __init__(self, spec: EncoderSpec, model: Any, batch_size: int = 16) -> None:
        self._spec = spec
        self._model = model
        self._batch_size = batch_size

    @classmethod
    def load(cls, name: str, revision: str = "", prefix: str | None = None, max_tokens: int | None = None) -> SentenceEncoder:
        """Load by name or folder.

        Raises
        ------
        EncoderError
            sentence-transformers is not installed, or the model cannot be loaded.
        """
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EncoderError(
                f"encoder {name!r} needs sentence-transformers; run: pip install 'interlock[encoders]', "
                "or use the encoders 'fast' or 'full'"
            ) from error
        try:
            model = SentenceTransformer(name, revision=revision or None, device="cpu")
        except Exception as error:  # hub, file and configuration errors come in many types
            first_line = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise EncoderError(f"cannot load the SentenceTransformer {name!r}: {first_line}") from error
        prompts = getattr(model, "prompts", None) or {}
        chosen = prompts.get(getattr(model, "default_prompt_name", None) or "", "") if prefix is None else prefix
        limit = min(filter(None, (max_tokens, model.max_seq_length)), default=512)
        model.max_seq_length = limit
        dimension = _dimension(model)
        return cls(EncoderSpec("sentence", name, revision or "default", chosen, limit, dimension), model)

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
        encoded = self._model.encode(shown, prompt="", batch_size=self._batch_size, show_progress_bar=False)
        vectors[filled] = l2_normalise(np.asarray(encoded, np.float32))
        return vectors


def _dimension(model: Any) -> int:
    """The method was renamed in sentence-transformers 5.x; both names are tried."""
    for method in ("get_embedding_dimension", "get_sentence_embedding_dimension"):
        if hasattr(model, method):
            return int(getattr(model, method)())
    raise EncoderError("the SentenceTransformer does not say its dimension; update sentence-transformers")
