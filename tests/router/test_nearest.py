import pytest

from router.nearest import did_you_mean, near_names, unknown_name


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("smal", ["large", "small"], ["small"]),
        ("Claude 3 Haiku", ["claude-3-opus-x1", "claude-3-haiku-20240307", "gpt"], ["claude-3-haiku-20240307", "claude-3-opus-x1"]),
        ("模型一号", ["模型二号", "other"], ["模型二号"]),
        ("xyz", ["large", "small"], []),
        ("", ["large"], []),
    ],
)
def test_near_names_are_found_whatever_case_and_punctuation(name: str, known: list[str], near: list[str]) -> None:
    assert near_names(name, known) == near


def test_one_line_says_what_there_is_and_what_was_meant() -> None:
    assert unknown_name("model", "smal", ["large", "small"]) == "unknown model 'smal': there are large, small; did you mean 'small'?"
    assert unknown_name("model", "x", []) == "unknown model 'x': there are none"
    assert did_you_mean("gpt", ["gpt-4", "gpt-41"]) == "; did you mean 'gpt-4' or 'gpt-41'?"


def test_a_long_list_is_cut_and_still_searched() -> None:
    said = unknown_name("model", "model-x77", [f"model-x{i}" for i in range(100, 10, -1)])
    assert " and 70 more" in said
    assert "did you mean 'model-x77'" in said
