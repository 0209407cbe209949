"""What turns text into numbers: the description of an encoder and the protocol every encoder follows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, Protocol, get_args, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from router.errors import EncoderError
from router.nearest import unknown_name

EncoderKind = Literal["fast", "full", "sentence"]
ENCODER_KINDS: tuple[str, ...] = get_args(EncoderKind)


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Everything that decides which vector a text gets.

    Parameters
    ----------
    kind
        ``fast`` (shipped static student), ``full`` (multilingual-e5-small, int8) or ``sentence`` (any SentenceTransformer).
    name
        Name within the kind; for ``sentence`` the model name or folder.
    revision
        Version of the weights: for ``fast`` from the SHA-256 of its parts, for ``full`` from the SHA-256 of the container it
        was built from and the version of the builder, for ``sentence`` from the SHA-256 of its folder or the commit of the hub, so other
        weights are another spec.
    prefix
        Put before every text.
    max_tokens
        Tokens read from the start of a text; the rest is ignored.
    dimension
        Length of the vectors.

    Raises
    ------
    EncoderError
        Unknown kind, empty name, or a size that is not positive.
    """

    kind: EncoderKind
    name: str
    revision: str
    prefix: str
    max_tokens: int
    dimension: int

    def __post_init__(self) -> None:
        if self.kind not in ENCODER_KINDS:
            raise EncoderError(f"encoder kind {self.kind!r} is unknown; use one of {', '.join(ENCODER_KINDS)}")
        if not self.name:
            raise EncoderError("encoder name is empty; use 'fast', 'full', or a SentenceTransformer name or folder")
        for field in ("max_tokens", "dimension"):
            if getattr(self, field) < 1:
                raise EncoderError(f"encoder {field} is {getattr(self, field)}; it must be at least 1")

    @property
    def fingerprint(self) -> str:
        """16 hex digits over all fields: equal exactly when two encoders give equal vectors for equal text."""
        canonical = json.dumps(self.to_mapping(), sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(canonical.encode()).hexdigest()[:16]

    def to_mapping(self) -> dict[str, str | int]:
        """Plain values for a manifest."""
        return asdict(self)

    @classmethod
    def from_mapping(cls, values: Mapping[str, object]) -> EncoderSpec:
        """Read back what :meth:`to_mapping` wrote."""
        wanted = {"kind": str, "name": str, "revision": str, "prefix": str, "max_tokens": int, "dimension": int}
        for field, kind in wanted.items():
            if not isinstance(values.get(field), kind):
                raise EncoderError(f"encoder spec field {field!r} is {values.get(field)!r}; expected {kind.__name__}")
        unknown = sorted(set(values) - set(wanted))
        if unknown:
            raise EncoderError(f"encoder spec: {unknown_name('field', unknown[0], wanted)}")
        return cls(**values)  # type: ignore[arg-type]


@runtime_checkable
class TextEncoder(Protocol):
    """Text to vectors. The same object embeds in training and in serving."""

    @property
    def spec(self) -> EncoderSpec:
        """What this encoder is."""
        ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape ``(len(texts), spec.dimension)``; rows have L2 norm 1, or are zero where a text is blank."""
        ...


def l2_normalise(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale rows to length 1; zero rows stay zero."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0), dtype=np.float32)
