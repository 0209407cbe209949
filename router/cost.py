"""What one turn is expected to cost on a model."""

from __future__ import annotations

from dataclasses import dataclass

from router.catalog import ModelProfile
from router.languages import estimate_tokens
from router.types import Conversation

# Long texts are measured by a sample: the estimate needs the order of magnitude, not each character.
_SAMPLE_CHARS = 4_000
_TOKENS_PER_MESSAGE = 4
_SCHEMA_CHARS_PER_TOKEN = 4
_TOKENS_PER_IMAGE = 1_000


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """Expected tokens of the next turn."""

    input: int
    output: int


def tokens_of(conversation: Conversation, expected_output_tokens: int) -> TurnTokens:
    """Estimate the tokens of the next turn: the whole history with tool schemas and images in, the expected answer out."""
    total = sum(tool.schema_chars for tool in conversation.tools) // _SCHEMA_CHARS_PER_TOKEN
    for message in conversation.messages:
        total += _TOKENS_PER_MESSAGE + _sampled_tokens(message.text)
        total += sum(len(call.arguments) for call in message.tool_calls) // _SCHEMA_CHARS_PER_TOKEN
        total += _TOKENS_PER_IMAGE * sum(part.modality != "text" for part in message.parts)
    output = expected_output_tokens
    if conversation.max_output_tokens is not None:
        output = min(output, conversation.max_output_tokens)
    return TurnTokens(total, output)


def _sampled_tokens(text: str) -> int:
    if len(text) <= _SAMPLE_CHARS:
        return estimate_tokens(text)
    half = _SAMPLE_CHARS // 2
    middle = len(text) // 2
    sample = text[:half] + text[middle : middle + half]
    return round(estimate_tokens(sample) * len(text) / len(sample))


def expected_cost_usd(model: ModelProfile, tokens: TurnTokens, *, cached: bool = False) -> float:
    """US dollars of one turn at list price; ``cached`` prices the input as a cache read where the provider caches that much."""
    prices = model.prices
    multiplier = prices.cache_read_multiplier if cached and tokens.input >= prices.cache_minimum_tokens else 1.0
    return (tokens.input * prices.input_per_mtok * multiplier + tokens.output * prices.output_per_mtok) / 1e6
