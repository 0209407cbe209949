"""What one turn is expected to cost on a model."""

from __future__ import annotations

from dataclasses import dataclass

from router.catalog import ModelProfile
from router.languages import estimate_tokens
from router.types import Conversation

# Long histories are measured by windows: the estimate needs the order of magnitude, not each character.
_WINDOWS = 16
_WINDOW_CHARS = 1_000
_TOKENS_PER_MESSAGE = 4
_CHARS_PER_TOKEN_OF_JSON = 4
_TOKENS_PER_ATTACHMENT = 1_000


@dataclass(frozen=True, slots=True)
class TurnTokens:
    """Expected tokens of the next turn."""

    input: int
    output: int


def tokens_of(conversation: Conversation, expected_output_tokens: int) -> TurnTokens:
    """Estimate the tokens of the next turn: the whole history with tool schemas and images in, the expected answer out."""
    messages = conversation.messages
    json_chars = sum(tool.schema_chars for tool in conversation.tools)
    json_chars += sum(len(call.arguments) for message in messages for call in message.tool_calls)
    attachments = sum(part.modality != "text" for message in messages for part in message.parts)
    text = "\n".join(part.text for message in messages for part in message.parts if part.text)
    total = _TOKENS_PER_MESSAGE * len(messages) + json_chars // _CHARS_PER_TOKEN_OF_JSON + _TOKENS_PER_ATTACHMENT * attachments
    output = expected_output_tokens
    if conversation.max_output_tokens is not None:
        output = min(output, conversation.max_output_tokens)
    return TurnTokens(total + _sampled_tokens(text), output)


def _sampled_tokens(text: str) -> int:
    if len(text) <= _WINDOWS * _WINDOW_CHARS:
        return estimate_tokens(text)
    last = len(text) - _WINDOW_CHARS
    sample = "".join(text[start : start + _WINDOW_CHARS] for start in range(0, last + 1, last // (_WINDOWS - 1)))
    return round(estimate_tokens(sample) * len(text) / len(sample))


def expected_cost_usd(model: ModelProfile, tokens: TurnTokens, *, cached: bool = False) -> float:
    """US dollars of one turn at list price; ``cached`` prices the input as a cache read where the provider caches that much."""
    prices = model.prices
    multiplier = prices.cache_read_multiplier if cached and tokens.input >= prices.cache_minimum_tokens else 1.0
    return (tokens.input * prices.input_per_mtok * multiplier + tokens.output * prices.output_per_mtok) / 1e6
