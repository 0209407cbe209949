import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.encoder import TextEncoder
from router.encoders.fast import CONFIG, PIECES, WEIGHTS, FastEncoder, build_piece_tokenizer, pack
from router.errors import ArtifactError

TEXTS = ["hello world", "مرحبا بالعالم", "你好，世界", "こんにちは", "🙂🙂 cat", "the cat sat on a mat", "a"]


@pytest.fixture(scope="module")
def encoder(fast_parts):
    return FastEncoder.from_bytes(fast_parts)


def test_it_is_a_text_encoder_with_unit_rows(encoder):
    assert isinstance(encoder, TextEncoder)
    vectors = encoder.encode(TEXTS)
    assert vectors.shape == (len(TEXTS), encoder.spec.dimension)
    assert vectors.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, rtol=1e-5)


def test_batch_equals_single_and_repeats(encoder, fast_parts):
    together = encoder.encode(TEXTS)
    apart = np.concatenate([encoder.encode([text]) for text in TEXTS])
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(together, FastEncoder.from_bytes(fast_parts).encode(TEXTS))


def test_order_of_words_counts(encoder):
    there, back = encoder.encode(["the cat sat", "sat cat the"])
    assert not np.allclose(there, back)


@pytest.mark.parametrize("blank", ["", "   ", "\n\t"])
def test_blank_text_is_a_zero_row(encoder, blank):
    assert not encoder.encode([blank]).any()


def test_no_texts(encoder):
    assert encoder.encode([]).shape == (0, encoder.spec.dimension)


@pytest.mark.parametrize("odd", ["🙂" * 50, "\x00\x01", "\u200b", "e\u0301", "ﷺ", "𠮷" * 9])
def test_odd_text_gives_finite_vectors(encoder, odd):
    assert np.isfinite(encoder.encode([odd])).all()


def test_a_megabyte_costs_what_its_start_costs(encoder):
    start = "hello world the cat " * 200
    huge = start + "sat on a mat " * 80_000
    assert len(huge) > 1_000_000
    np.testing.assert_array_equal(encoder.encode([huge]), encoder.encode([start]))


def test_formula_against_plain_loops(encoder, fast_parts):
    with np.load(io.BytesIO(fast_parts[WEIGHTS]), allow_pickle=False) as stored:
        w = {name: stored[name].astype(np.float64) for name in stored.files}
    ids = encoder.piece_ids("the cat sat")
    rows = [w["table"][i] * w["scale"][i] for i in ids]
    zero = np.zeros_like(rows[0])
    active = []
    for t, row in enumerate(rows):
        before = rows[t - 1] if t else zero
        after = rows[t + 1] if t + 1 < len(rows) else zero
        active.append(np.maximum(before @ w["before"] + row @ w["at"] + after @ w["after"] + w["window_bias"], 0))
    pooled = np.concatenate([np.mean(rows, 0), np.mean(active, 0), np.max(active, 0)])
    hidden = np.maximum(pooled @ w["hidden"] + w["hidden_bias"], 0)
    expected = pooled @ w["direct"] + hidden @ w["output"] + w["output_bias"]
    np.testing.assert_allclose(encoder.encode(["the cat sat"])[0], expected / np.linalg.norm(expected), atol=1e-5)


def test_equal_weights_make_equal_bytes_and_other_weights_another_revision(fast_parts):
    with np.load(io.BytesIO(fast_parts[WEIGHTS]), allow_pickle=False) as stored:
        arrays = {name: stored[name] for name in stored.files}
    config = {"name": "tiny", "max_tokens": 32, "dimension": 8}
    pieces = fast_parts[PIECES].decode().split("\n")
    assert pack(config, pieces, arrays) == fast_parts
    arrays["table"] = arrays["table"] // 2
    changed = FastEncoder.from_bytes(pack(config, pieces, arrays)).spec
    assert changed.fingerprint != FastEncoder.from_bytes(fast_parts).spec.fingerprint


@pytest.mark.parametrize("name", [CONFIG, PIECES, WEIGHTS])
def test_missing_or_broken_parts_are_named(fast_parts, name):
    with pytest.raises(ArtifactError, match=name):
        FastEncoder.from_bytes({key: value for key, value in fast_parts.items() if key != name})
    with pytest.raises(ArtifactError, match="fast encoder"):
        FastEncoder.from_bytes({**fast_parts, name: fast_parts[name][:20]})


@given(st.text(st.characters(max_codepoint=127), max_size=60) | st.text(max_size=20))
def test_text_is_normalised_as_the_training_tokenizer_does(encoder, text):
    tokenizer = build_piece_tokenizer(["<unk>", "▁", "a"], [0.0, -1.0, -1.0], 32)
    assert encoder._normalise(text) == tokenizer.normalizer.normalize_str(text)


@given(st.text(st.sampled_from("the cat\t\n\x0b\x7f  é１ﬁ▁世界"), max_size=60))
def test_pieces_are_those_of_the_training_tokenizer(encoder, fast_parts, text):
    with np.load(io.BytesIO(fast_parts[WEIGHTS]), allow_pickle=False) as stored:
        scores = stored["scores"].tolist()
    tokenizer = build_piece_tokenizer(fast_parts[PIECES].decode().split("\n"), scores, encoder.spec.max_tokens)
    assert encoder.piece_ids(text) == (tokenizer.encode(text).ids if text.strip() else [])
