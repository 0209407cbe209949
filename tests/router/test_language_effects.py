"""What a language adds: looked up from the most special to the most general, and monotone."""

import numpy as np
import pytest

from router.errors import ArtifactError
from router.language_effects import LanguageEffects

EFFECTS = LanguageEffects({"is": 1.0, "pt-BR": 0.5, "zh": -0.5}, {"Uralic": 0.7})


@pytest.mark.parametrize(
    ("language", "effect"), [("is", 1.0), ("pt-BR", 0.5), ("pt", 0.0), ("zh-Hant", -0.5), ("et", 0.7), ("en", 0.0), ("und", 0.0)]
)
def test_a_tag_then_its_language_then_its_family_decides(language: str, effect: float) -> None:
    assert EFFECTS.of(language) == effect


def test_effects_move_requirements_in_log_odds_and_keep_their_order() -> None:
    requirements = np.array([[0.0, 0.2, 0.5, 1.0]] * 3)
    moved = EFFECTS.apply(requirements, ["is", "en", "zh"])
    assert moved[0] == pytest.approx([0, 1 / (1 + 4 * np.exp(-1)), 1 / (1 + np.exp(-1)), 1])
    assert moved[1] == pytest.approx(requirements[1])
    assert (np.diff(moved, axis=1) > 0).all()
    assert (moved[2, 1:3] < requirements[2, 1:3]).all()


def test_no_effects_change_nothing() -> None:
    requirements = np.random.default_rng(0).random((4, 2))
    assert LanguageEffects().apply(requirements, ["is"] * 4) is requirements
    assert not LanguageEffects()


@pytest.mark.parametrize("effect", [float("nan"), float("inf"), 100.0])
def test_effects_that_are_no_effects_are_refused(effect: float) -> None:
    with pytest.raises(ArtifactError, match="language effect of 'is'"):
        LanguageEffects({"is": effect})
