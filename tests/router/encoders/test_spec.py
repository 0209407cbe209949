import pytest

from router.encoder import EncoderSpec
from router.errors import EncoderError

SPEC = EncoderSpec("fast", "tiny", "abc", "", 32, 8)


def test_mapping_round_trip_keeps_the_fingerprint():
    assert EncoderSpec.from_mapping(SPEC.to_mapping()) == SPEC
    assert EncoderSpec.from_mapping(SPEC.to_mapping()).fingerprint == SPEC.fingerprint


@pytest.mark.parametrize(
    ("field", "value"),
    [("kind", "full"), ("name", "b"), ("revision", "d"), ("prefix", "query: "), ("max_tokens", 33), ("dimension", 9)],
)
def test_every_field_changes_the_fingerprint(field, value):
    other = EncoderSpec.from_mapping({**SPEC.to_mapping(), field: value})
    assert other.fingerprint != SPEC.fingerprint


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("kind", "slow", "use one of fast, full, sentence"),
        ("name", "", "name is empty"),
        ("dimension", 0, "at least 1"),
        ("max_tokens", "12", "expected int"),
        ("colour", "red", "unknown field 'colour'"),
    ],
)
def test_bad_values_are_named(field, value, message):
    with pytest.raises(EncoderError, match=message):
        EncoderSpec.from_mapping({**SPEC.to_mapping(), field: value})
