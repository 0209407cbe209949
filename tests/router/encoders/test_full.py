import hashlib
from math import erf, sqrt

import numpy as np
import pytest

from router.encoder import TextEncoder
from router.encoders.e5_weights import read_e5
from router.encoders.full import MODEL, FullEncoder, build_full
from router.errors import ArtifactError

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

TEXTS = ["hello world", "مرحبا بالعالم", "你好世界", "the cat sat on a mat"]


@pytest.fixture(scope="module")
def built(container):
    return build_full(container, hashlib.sha256(container).hexdigest())


@pytest.fixture(scope="module")
def encoder(built):
    return FullEncoder.from_bytes(*built)


def reference(container, ids):
    """The transformer in float64, from the weights as stored."""
    weights = read_e5(container)
    shape = weights.shape
    width = shape.hidden // shape.heads

    def norm(x, name):
        scaled = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + shape.epsilon)
        return scaled * weights.vector(f"{name}.w") + weights.vector(f"{name}.b")

    def linear(x, name, outputs, inputs):
        return x @ weights.matrix(f"{name}.w", outputs, inputs).T.astype(float) + weights.vector(f"{name}.b")

    position = weights.vector("emb.pos").reshape(-1, shape.hidden)[: len(ids)] + weights.vector("emb.type")[: shape.hidden]
    x = norm(weights.matrix("emb.word", shape.vocabulary, shape.hidden)[ids] + position, "emb.ln")
    for layer in range(shape.layers):
        q, k, v = (
            linear(x, f"l{layer}.{part}", shape.hidden, shape.hidden).reshape(-1, shape.heads, width).transpose(1, 0, 2) for part in "qkv"
        )
        attention = np.exp(q @ k.transpose(0, 2, 1) / sqrt(width))
        attention /= attention.sum(-1, keepdims=True)
        mixed = (attention @ v).transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(mixed, f"l{layer}.ao", shape.hidden, shape.hidden), f"l{layer}.aln")
        wide = linear(x, f"l{layer}.fi", shape.feed_forward, shape.hidden)
        wide *= 0.5 * (1 + np.vectorize(erf)(wide / sqrt(2)))
        x = norm(x + linear(wide, f"l{layer}.fo", shape.hidden, shape.feed_forward), f"l{layer}.oln")
    mean = x.mean(0)
    return mean / np.linalg.norm(mean)


@pytest.mark.parametrize("text", TEXTS)
def test_graph_agrees_with_the_transformer(encoder, container, text):
    ids = encoder._tokenizer.encode("query: " + text).ids
    assert (ids[0], ids[-1]) == (0, 2)
    assert encoder.encode([text])[0] @ reference(container, ids) > 0.995


def test_it_is_a_text_encoder_and_a_batch_equals_singles(encoder):
    assert isinstance(encoder, TextEncoder)
    together = encoder.encode([*TEXTS, ""])
    np.testing.assert_array_equal(together[:-1], np.concatenate([encoder.encode([text]) for text in TEXTS]))
    np.testing.assert_allclose(np.linalg.norm(together[:-1], axis=1), 1.0, rtol=1e-5)
    assert not together[-1].any()


def test_two_threads_give_the_same_vectors(built, encoder):
    np.testing.assert_allclose(FullEncoder.from_bytes(*built, threads=2).encode(TEXTS), encoder.encode(TEXTS), atol=1e-6)


def test_text_longer_than_the_positions(encoder):
    assert np.isfinite(encoder.encode(["hello world 🙂 " * 100_000])).all()


def test_damaged_parts(built, container):
    spec, parts = built
    with pytest.raises(ArtifactError, match="tokenizer"):
        FullEncoder.from_bytes(spec, {MODEL: parts[MODEL]})
    with pytest.raises(ArtifactError, match="cannot be read"):
        FullEncoder.from_bytes(spec, {**parts, MODEL: b"no model"})
    with pytest.raises(ArtifactError, match="E5S1"):
        read_e5(b"PK\x03\x04" + container)
    with pytest.raises(ArtifactError, match="cut short"):
        read_e5(container[:300])
