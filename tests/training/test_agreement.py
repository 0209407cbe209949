"""Agreement of a router with itself across languages."""

import numpy as np
import pytest

from router.errors import InvalidInput
from training.agreement import language_agreement

N = 40
ENGLISH = np.linspace(0, 1, N)


def agreement(needs: dict[str, np.ndarray], letters: dict[str, np.ndarray] | None = None, **options: object):
    languages = ["en", *needs]
    values = {"en": ENGLISH, **needs}
    lengths = {name: np.full(N, 100.0) for name in languages} | (letters or {})
    return language_agreement(
        np.concatenate([values[name] for name in languages]),
        np.concatenate([lengths[name] for name in languages]),
        [f"m{i}" for _ in languages for i in range(N)],
        [name for name in languages for _ in range(N)],
        **options,
    )


def test_a_router_blind_to_language_agrees_everywhere() -> None:
    result = agreement({"de": ENGLISH, "ja": ENGLISH}, thresholds={"tau": 0.8})
    table = result.languages.set_index("language")
    assert table["correlation"].tolist() == pytest.approx([1, 1])
    assert (table[["agreement@tau", "agreement@median"]] == 1).all(axis=None)
    assert table["family"].to_dict() == {"de": "Germanic", "ja": "Japonic"}


def test_a_shifted_language_disagrees_between_the_two_sides_of_a_threshold() -> None:
    table = agreement({"th": ENGLISH + 0.25}, thresholds={"high": 0.9}).languages.iloc[0]
    assert table["correlation"] == pytest.approx(1)
    assert table["shift"] == pytest.approx(0.25)
    assert table["agreement@median"] == pytest.approx(0.75)
    assert table["agreement@high"] == pytest.approx(0.75)


def test_the_summary_names_the_worst_language() -> None:
    summary = agreement({"de": ENGLISH, "ur": 1 - ENGLISH}).summary()
    assert summary.loc["agreement@median", "language"] == "ur"
    assert summary.loc["agreement@median", "worst"] == pytest.approx(0.0)
    assert summary.loc["correlation", "mean"] == pytest.approx(0.0, abs=1e-9)


def test_a_translation_without_its_passage_is_set_aside() -> None:
    short = np.full(N, 100.0)
    short[:5] = 20.0
    need = ENGLISH.copy()
    need[:5] = 1.0
    row = agreement({"pl": need}, {"pl": short}).languages.iloc[0]
    assert (row["n"], row["faulty"], row["agreement@median"]) == (N - 5, 5, 1.0)


def test_a_translation_without_its_numbers_is_set_aside_where_digits_are_told() -> None:
    digits = np.full(2 * N, 40)
    digits[N : N + 5] = 2
    row = agreement({"ro": ENGLISH}, digits=digits).languages.iloc[0]
    assert (row["n"], row["faulty"]) == (N - 5, 5)


def test_few_pairs_give_no_figure() -> None:
    short = np.full(N, 1.0)
    short[:20] = 100.0
    row = agreement({"ga": ENGLISH}, {"ga": short}).languages.iloc[0]
    assert row["n"] == 20
    assert np.isnan(row["correlation"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"need": [np.nan, 1.0]}, "need of row 0 is"),
        ({"language": ["de", "fr"]}, "no prompt is in the reference language 'en': there are de, fr"),
        ({"language": ["en", "en"]}, "meaning 'm' is there twice in language 'en'"),
    ],
)
def test_what_cannot_be_compared_is_named(change: dict, message: str) -> None:
    given = {"need": [0.0, 1.0], "letters": [1.0, 1.0], "meaning": ["m", "m"], "language": ["en", "de"], **change}
    with pytest.raises(InvalidInput, match=message):
        language_agreement(**given)
