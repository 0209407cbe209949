"""The request and response models of the REST interface, as OpenAPI shows them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from router.decision import Decision
from router.types import Role

Unit = Annotated[float, Field(ge=0, le=1)]


class Wire(BaseModel):
    """Types are taken literally (``"1"`` is no number); fields that are not known are ignored, so a whole chat request can be sent."""

    model_config = ConfigDict(strict=True, extra="ignore")


class ContentPart(Wire):
    """One piece of a message. Text is classified; images, audio and files only decide which models can read them."""

    type: str = Field(default="text", examples=["text", "image_url", "input_audio", "file"])
    text: str | None = None
    refusal: str | None = None


class ChatMessage(Wire):
    """One turn in the shape of OpenAI's chat messages."""

    role: Role
    content: str | list[ContentPart | str] | None = None
    tool_calls: list[dict[str, Any]] | None = None


class RouteRequest(Wire):
    """A conversation whose next turn needs a model."""

    messages: list[ChatMessage] = Field(min_length=1, description="The whole conversation, oldest turn first.")
    tools: list[dict[str, Any]] | None = Field(
        default=None, description="Tools on offer. Their schemas cost tokens but are never classified."
    )
    model: str | None = Field(default=None, description="Ignored, so that a chat completion request can be sent as it is.")
    current_model: str | None = Field(
        default=None, description="The model that holds this conversation's prompt cache. Without `compacted` the answer stays on it."
    )
    compacted: bool | None = Field(
        default=None, description="The history was summarised since the current model last answered: it may change now."
    )
    language: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z]{2,8}([-_][A-Za-z0-9]{1,8})*$",
        description="BCP-47 tag of the user's language. Found by itself if left out.",
    )
    metadata: dict[str, Any] | None = Field(default=None, description="Not read for the decision.")
    max_tokens: int | None = Field(default=None, ge=1, description="Longest answer, for cost and window.")
    max_completion_tokens: int | None = Field(default=None, ge=1, description="As max_tokens; wins over it.")
    shortfall_threshold: float | None = Field(
        default=None,
        ge=0,
        allow_inf_nan=False,
        description="tau for this request: larger saves more, 0 asks for every requirement to be met.",
    )
    allow: list[str] | None = Field(default=None, description="Models that may be chosen, out of those the operator allows.")
    deny: list[str] | None = Field(default=None, description="Models that may not be chosen.")


class Flip(Wire):
    """The smallest change that alters the choice: where it happens, how far that is, and the model that comes instead."""

    value: float
    change: float
    model: str


class FlipMargin(Wire):
    """How firm the choice is. null: no change of that kind alters it."""

    shortfall_threshold_up: Flip | None
    shortfall_threshold_down: Flip | None
    price_factor: Flip | None = Field(description="All prices of the chosen model times this factor.")
    requirements: dict[str, Flip | None] = Field(description="One capability's requirement moved at a time.")


class Candidate(Wire):
    """One model of the catalog as the selection saw it."""

    model: str
    eligible: bool = Field(description="No gate fired and the shortfall is within the threshold.")
    gates: list[str] = Field(description="Reasons why the model may not take this turn.")
    shortfall: float = Field(ge=0, description="Sum over the capabilities.")
    shortfall_by_capability: dict[str, float] = Field(description="How much the model lacks, weighted.")
    expected_cost_usd: float = Field(ge=0, description="US dollars for this turn.")


class Classified(Wire):
    """What was read of the conversation and what was left out, in characters by part and by reason."""

    text: str
    kept: dict[str, int]
    cut: dict[str, int]


class Boundary(Wire):
    """The cache boundary at which the conversation stands; null between boundaries."""

    kind: Literal["first_turn", "compaction"] | None
    evidence: str


class RouteResponse(Wire):
    """Which model takes the next turn, and everything the choice rests on."""

    model: str
    decision: Decision
    reason: str = Field(description="One sentence for people.")
    requirements: dict[str, Unit] = Field(description="What the conversation requires, by capability.")
    confidence: Unit = Field(description="Expected share of cases in which the same model is chosen once the true requirements are known.")
    candidates: list[Candidate]
    flip_margin: FlipMargin
    fallback_reason: str | None = Field(description="Why the conversation could not be classified; the default model was chosen then.")
    classified: Classified
    language: str
    family: str
    language_effect: float = Field(description="Log-odds that the language added to every requirement; 0 where the task alone spoke.")
    boundary: Boundary
    router: str = Field(description="Id of the router artefact.")
    latency_ms: float = Field(ge=0)


class Prices(Wire):
    """US dollars per million tokens, and cache prices as multipliers of the input price."""

    input_per_mtok: float
    output_per_mtok: float
    cache_read_multiplier: float
    cache_write_multiplier: float
    cache_ttl_seconds: float
    cache_minimum_tokens: int


class Model(Wire):
    """A model in the shape of OpenAI's list, with the catalog's data beside it. `auto` stands for the router's choice."""

    id: str
    object: Literal["model"] = "model"
    created: int = Field(default=0, description="Always 0: a catalog entry has no date.")
    owned_by: str
    virtual: bool = Field(default=False, description="True for `auto`, which stands for the router's choice.")
    context_window_tokens: int | None = None
    max_output_tokens: int | None = None
    modalities: list[str] | None = None
    tools: bool | None = None
    prices: Prices | None = None
    capability: dict[str, float] | None = Field(
        default=None, description="Relative to the other models of the pool, on the scale of requirements."
    )


class ModelList(Wire):
    """All models that can be chosen."""

    object: Literal["list"] = "list"
    data: list[Model]


class Health(Wire):
    """The process answers."""

    status: Literal["ok"] = "ok"


class Ready(Wire):
    """Artefact, encoder and catalog are loaded."""

    status: Literal["ready"] = "ready"
    router: str = Field(description="Id of the router artefact.")
    encoder: str
    models: int
