"""Language effects are found where they are, and only there."""

import numpy as np
import pytest

from router.languages import family_of
from training.language_effects import fit_language_effects

LANGUAGES = ("en", "de", "is", "fr", "ro", "pl", "cs", "hi", "bn", "ja", "fi", "et")


def fit(effects: dict[str, float], n: int = 150, sources: dict[str, str] | None = None, seed: int = 0):
    rng = np.random.default_rng(seed)
    language = np.repeat(np.array(LANGUAGES, dtype=object), n)
    log_odds = rng.normal(-0.5, 1, len(language))
    true = log_odds + np.array([effects.get(name, 0.0) for name in language])
    need = (rng.random(len(language)) < 1 / (1 + np.exp(-true))).astype(float)
    source = np.array([(sources or {}).get(name, "all") for name in language], dtype=object)
    family = np.array([family_of(name) for name in language], dtype=object)
    return fit_language_effects(1 / (1 + np.exp(-log_odds)), need, source, language, family, np.ones(len(language)))


def test_a_language_that_is_harder_gets_an_effect_and_the_others_hardly_any() -> None:
    found = fit({"is": 1.5, "et": 1.2, "fi": 1.2})
    assert found.of("is") - found.of("en") > 0.6
    assert found.of("fi") - found.of("fr") > 0.7
    assert abs(found.of("fr") - found.of("hi")) < 0.4


def test_a_family_speaks_for_a_language_of_it_that_was_not_there() -> None:
    found = fit({"fi": 1.5, "et": 1.5})
    assert found.of("hu") - found.of("es") > 0.6


def test_where_languages_are_alike_there_is_next_to_nothing() -> None:
    largest = [max((abs(e) for e in fit({}, seed=seed).languages.values()), default=0.0) for seed in range(8)]
    assert np.median(largest) < 0.1


def test_a_benchmark_in_one_language_says_nothing_of_that_language() -> None:
    assert not fit({"ja": 3.0}, sources={name: name for name in LANGUAGES})


def test_languages_that_always_or_never_need_the_strong_model_stay_finite() -> None:
    found = fit({"is": 50.0, "ja": -50.0}, n=40)
    assert found.of("is") > found.of("de") > found.of("ja")
    assert all(np.isfinite(effect) for effect in found.languages.values())


def test_few_prompts_are_drawn_to_their_family() -> None:
    many, few = (fit({"is": 1.5}, n=n).of("is") for n in (400, 12))
    assert many > 0.7
    assert few < many


@pytest.mark.parametrize("seed", range(3))
def test_effects_do_not_shift_the_whole(seed: int) -> None:
    found = fit({"is": 1.0, "pl": -1.0}, seed=seed)
    assert abs(np.mean([found.of(name) for name in LANGUAGES])) < 0.25
