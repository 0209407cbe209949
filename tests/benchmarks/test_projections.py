"""Maps of an embedding learned from parallel text."""

import numpy as np
import pytest

from benchmarks.projections import contrastive, distilled_to_english

MEANINGS, WIDTH = 60, 8


@pytest.fixture
def parallel():
    """English vectors, and their translations: turned, with much noise in the last three coordinates."""
    rng = np.random.default_rng(0)
    english = rng.normal(size=(MEANINGS, WIDTH))
    turn = np.linalg.qr(rng.normal(size=(WIDTH, WIDTH)))[0]
    noise = np.r_[np.full(WIDTH - 3, 0.05), np.full(3, 5.0)]
    other = english + rng.normal(size=english.shape) * noise
    vectors = np.concatenate([english, other]) / np.sqrt(WIDTH)
    meaning = [f"m{i}" for i in range(MEANINGS)] * 2
    language = np.array(["en"] * MEANINGS + ["hi"] * MEANINGS, dtype=object)
    return vectors @ turn, meaning, language


def retrieved(vectors):
    """Share of translations whose nearest English neighbour is the original."""
    english, other = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in np.split(vectors, 2))
    return float(((other @ english.T).argmax(axis=1) == np.arange(MEANINGS)).mean())


def test_both_maps_bring_translations_together(parallel):
    vectors, meaning, language = parallel
    before = retrieved(vectors)
    assert retrieved(vectors @ distilled_to_english(vectors, meaning, language)) > before + 0.1
    assert retrieved(vectors @ contrastive(vectors, meaning, language, 5)) > before + 0.1


def test_a_meaning_without_english_teaches_the_distilled_map_nothing(parallel):
    vectors, meaning, language = parallel
    alone = np.concatenate([vectors, vectors[:1] + 9]), [*meaning, "no English"], np.append(language, "hi")
    assert np.allclose(distilled_to_english(*alone), distilled_to_english(vectors, meaning, language))


def test_the_contrastive_projection_is_the_same_for_the_same_seed(parallel):
    assert np.array_equal(contrastive(*parallel, 4, seed=1), contrastive(*parallel, 4, seed=1))
