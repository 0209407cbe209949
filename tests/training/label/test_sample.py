"""The prompts of the embedded sample against their own graders."""

from collections import Counter
from pathlib import Path

import pytest

from training.label.graders import Answer, grade
from training.label.prompts import load_prompts

FOLDER = Path(__file__).parents[3] / "data" / "sample" / "prompts"
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="data/sample/prompts is not part of this copy")


@pytest.fixture(scope="module")
def sample():
    return load_prompts(FOLDER)


def test_every_quick_reference_passes_its_grader_and_nonsense_does_not(sample):
    for prompt in sample:
        if prompt.grader["kind"] in ("judge", "unit_tests"):
            continue
        assert prompt.reference, prompt.prompt_id
        result = grade(prompt.grader, Answer(prompt.reference), prompt.tools)
        assert result.correctness == 1.0, (prompt.prompt_id, result.detail)
        for wrong in ("", "???", "I do not know."):
            if prompt.grader.get("name", "x") is None and wrong:
                continue  # no tool fits: any text is right
            assert grade(prompt.grader, Answer(wrong), prompt.tools).correctness == 0.0, prompt.prompt_id


@pytest.mark.slow
def test_every_reference_program_passes_its_tests(sample):
    for prompt in sample:
        if prompt.grader["kind"] == "unit_tests":
            result = grade(prompt.grader, Answer(prompt.reference or ""), prompt.tools)
            assert result.correctness == 1.0, (prompt.prompt_id, result.detail)


def test_parallel_groups_share_their_key_and_spread_over_languages(sample):
    groups: dict[str, list] = {}
    for prompt in sample:
        if prompt.group:
            groups.setdefault(prompt.group, []).append(prompt)
    languages = {prompt.language for prompt in sample}
    for name, members in groups.items():
        assert len({member.language for member in members}) == len(members) == len(languages), name
        assert len({member.grader["kind"] for member in members}) == 1, name
        assert len({member.grader.get("answer", "") for member in members}) == 1, name


def test_the_sample_is_as_broad_as_promised(sample):
    assert len(sample) >= 600
    assert set(Counter(prompt.capability for prompt in sample)) == {"reasoning", "code_gen", "debugging", "tool_use"}
    by_family = Counter(prompt.family for prompt in sample)
    assert len(by_family) >= 16
    assert min(by_family.values()) >= 20
    programs = sum(prompt.grader["kind"] != "judge" for prompt in sample)
    assert programs / len(sample) > 0.8
    assert sum(bool(prompt.group) for prompt in sample) >= len(sample) / 3


def test_stored_answers_are_found_again(sample):
    digests = {prompt.prompt_id: prompt.hash for prompt in sample}
    assert (digests["ar-p10"], digests["en-p01"]) == ("22a7cfe4938d0d3a", "45a75c1077837801")
