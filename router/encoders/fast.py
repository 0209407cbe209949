"""``fast``: our own multilingual student of the ``full`` encoder. A table of piece vectors, one narrow convolution, two poolings.

For the pieces ``t = 1..n`` of a text, with rows ``x_t`` of the table::

    y_t = relu(x_{t-1} A + x_t B + x_{t+1} C + a)          a window of three pieces, so order and phrases count
    p   = [mean_t x_t ; mean_t y_t ; max_t y_t]
    v   = p D + relu(p E + e) F + f                        then scaled to length 1

Piece weights are part of the rows. Only numpy and ``tokenizers`` are needed.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.encoder import EncoderSpec, l2_normalise
from router.errors import ArtifactError, EncoderError

CONFIG, PIECES, WEIGHTS = "config.json", "pieces.txt", "weights.npz"
CHARACTERS_PER_TOKEN = 5  # what is read belongs to the vector: another number needs weights under another name
UNKNOWN = 0  # first line of the pieces
# What the normaliser does to ASCII: white space becomes a space, other control characters go.
ASCII = {code: " " if chr(code) in "\t\n\f\r" else None for code in (*range(1, 32), 127)}
MATRICES = ("before", "at", "after", "window_bias", "direct", "hidden", "hidden_bias", "output", "output_bias")
Array = NDArray[np.float32]


class FastEncoder:
    """See the module's formula. Built from bytes; the same object serves and embeds training data."""

    def __init__(
        self, spec: EncoderSpec, tokenizer: Any, normalizer: Any, table: NDArray[np.int8], scale: Array, network: Mapping[str, Array]
    ) -> None:
        self._spec = spec
        self._tokenizer = tokenizer
        self._normalizer = normalizer
        self._table = table
        self._scale = scale
        self._network = network
        self._window = np.concatenate([network["before"], network["at"], network["after"]])

    @classmethod
    def from_bytes(cls, parts: Mapping[str, bytes]) -> FastEncoder:
        """Load ``config.json``, ``pieces.txt`` and ``weights.npz``.

        Raises
        ------
        ArtifactError
            A part is missing, unreadable, or of a shape that does not fit the others.
        EncoderError
            The ``tokenizers`` package is missing.
        """
        missing = sorted({CONFIG, PIECES, WEIGHTS} - set(parts))
        if missing:
            raise ArtifactError(f"fast encoder has no part {missing[0]!r}; install interlock again")
        try:
            config = json.loads(parts[CONFIG])
            pieces = parts[PIECES].decode().split("\n")
            with np.load(io.BytesIO(parts[WEIGHTS]), allow_pickle=False) as stored:
                arrays = {name: stored[name] for name in stored.files}
            spec = EncoderSpec("fast", config["name"], parts_revision(parts), "", config["max_tokens"], config["dimension"])
            network = {name: arrays[name].astype(np.float32) for name in MATRICES}
            table, scale, scores = arrays["table"], arrays["scale"].astype(np.float32), arrays["scores"]
        except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise ArtifactError(f"fast encoder cannot be read: {type(error).__name__} {error}") from error
        _check_shapes(spec, pieces, table, scale, scores, network)
        tokenizer = build_piece_tokenizer(pieces, scores.tolist(), spec.max_tokens, normalise=False)
        return cls(spec, tokenizer, _normalizer(), table, scale, network)

    @property
    def spec(self) -> EncoderSpec:
        """What this encoder is."""
        return self._spec

    def encode(self, texts: Sequence[str]) -> Array:
        """Vectors of shape ``(len(texts), spec.dimension)``, rows of length 1; zero rows for blank texts."""
        vectors = np.zeros((len(texts), self._spec.dimension), np.float32)
        for row, text in enumerate(texts):
            ids = self.piece_ids(text)
            if ids:
                vectors[row] = self._network_output(self._pool(ids))
        return l2_normalise(vectors)

    def piece_ids(self, text: str) -> list[int]:
        """Table rows of the text's pieces, at most ``spec.max_tokens``; empty for blank text."""
        shown = text[: self._spec.max_tokens * CHARACTERS_PER_TOKEN]
        return list(self._tokenizer.encode(self._normalise(shown)).ids) if shown.strip() else []

    def _normalise(self, text: str) -> str:
        """What the tokenizer's own normaliser makes of a text, sooner where the text is ASCII."""
        if not text.isascii():
            return str(self._normalizer.normalize_str(text))
        text = text.translate(ASCII)
        while "  " in text:
            text = text.replace("  ", " ")
        return text

    def _pool(self, ids: list[int]) -> Array:
        at = np.array(ids)
        rows = self._table.take(at, axis=0).astype(np.float32)
        rows *= self._scale.take(at)[:, None]
        edge = np.zeros((1, rows.shape[1]), np.float32)
        windows = np.concatenate([np.concatenate([edge, rows[:-1]]), rows, np.concatenate([rows[1:], edge])], axis=1)
        active = windows @ self._window
        active += self._network["window_bias"]
        np.maximum(active, 0.0, out=active)
        return np.concatenate([rows.mean(axis=0), active.mean(axis=0), active.max(axis=0)])

    def _network_output(self, pooled: Array) -> Array:
        network = self._network
        hidden = np.maximum(pooled @ network["hidden"] + network["hidden_bias"], 0.0)
        return np.asarray(pooled @ network["direct"] + hidden @ network["output"] + network["output_bias"], np.float32)


def parts_revision(parts: Mapping[str, bytes]) -> str:
    """12 hex digits over the three parts."""
    digests = (hashlib.sha256(parts[name]).digest() for name in (CONFIG, PIECES, WEIGHTS))
    return hashlib.sha256(b"".join(digests)).hexdigest()[:12]


def build_piece_tokenizer(pieces: Sequence[str], scores: Sequence[float], max_tokens: int, *, normalise: bool = True) -> Any:
    """A Unigram tokenizer (NFKC, word starts marked) over the given pieces and log-probabilities; piece 0 stands for the unknown.

    Without ``normalise`` its texts have to come normalised.
    """
    try:
        import tokenizers
    except ImportError as error:
        raise EncoderError("the fast encoder needs the tokenizers package; run: pip install tokenizers") from error
    model = tokenizers.models.Unigram(list(zip(pieces, scores, strict=True)), UNKNOWN, False)
    tokenizer = tokenizers.Tokenizer(model)
    if normalise:
        tokenizer.normalizer = _normalizer()
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.enable_truncation(max_tokens)
    return tokenizer


def _normalizer() -> Any:
    import tokenizers

    spaces = tokenizers.normalizers.Replace(tokenizers.Regex(" {2,}"), " ")
    return tokenizers.normalizers.Sequence([tokenizers.normalizers.Nmt(), tokenizers.normalizers.NFKC(), spaces])


def pack(config: Mapping[str, Any], pieces: Sequence[str], arrays: Mapping[str, NDArray[Any]]) -> dict[str, bytes]:
    """The three parts. ``arrays`` holds ``scores``, ``table`` (int8), ``scale`` and the matrices; equal input gives equal bytes."""
    buffer = io.BytesIO()
    np.savez(buffer, **dict(sorted(arrays.items())))  # type: ignore[arg-type]
    return {
        CONFIG: (json.dumps(dict(config), sort_keys=True) + "\n").encode(),
        PIECES: "\n".join(pieces).encode(),
        WEIGHTS: buffer.getvalue(),
    }


def _check_shapes(spec: EncoderSpec, pieces: list[str], table: Any, scale: Array, scores: Any, network: Mapping[str, Array]) -> None:
    width, window = network["at"].shape
    pooled = width + 2 * window
    hidden = network["hidden"].shape[1]
    expected = {
        "table": (table.shape, (len(pieces), width)),
        "scale": (scale.shape, (len(pieces),)),
        "scores": (scores.shape, (len(pieces),)),
        "before": (network["before"].shape, (width, window)),
        "after": (network["after"].shape, (width, window)),
        "window_bias": (network["window_bias"].shape, (window,)),
        "direct": (network["direct"].shape, (pooled, spec.dimension)),
        "hidden": (network["hidden"].shape, (pooled, hidden)),
        "hidden_bias": (network["hidden_bias"].shape, (hidden,)),
        "output": (network["output"].shape, (hidden, spec.dimension)),
        "output_bias": (network["output_bias"].shape, (spec.dimension,)),
    }
    for name, (found, wanted) in expected.items():
        if found != wanted:
            raise ArtifactError(f"fast encoder part {name!r} has shape {found}; expected {wanted}")
