"""Environment (``INTERLOCK_*``) and command line to settings, checked once at the start."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from router.errors import InvalidInput

ENV_PREFIX = "INTERLOCK_"
Names = Annotated[tuple[str, ...], NoDecode]


class Settings(BaseSettings):
    """Everything an operator may set; each field can be given as ``INTERLOCK_<NAME>``. Lists are separated by commas."""

    model_config = SettingsConfigDict(env_prefix=ENV_PREFIX, frozen=True, extra="forbid")

    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on; 0.0.0.0 opens the service to the network.")
    port: int = Field(8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    router: Path | None = Field(None, description="Folder of a router artefact; default: the shipped one.")
    catalog: Path | None = Field(None, description="Model catalog (YAML); default: the shipped one.")

    shortfall_threshold: float | None = Field(None, ge=0, allow_inf_nan=False, description="tau; default: the artefact's.")
    allow: Names = Field((), description="Models that may be chosen; default: all of the catalog.")
    deny: Names = Field((), description="Models that may not be chosen.")
    default_model: str | None = Field(None, description="Chosen when the classifier fails; default: the most capable one.")
    expected_output_tokens: int = Field(600, ge=1, description="Length of an answer, for the expected cost.")

    classifier_timeout_ms: int = Field(2_000, ge=1, description="After this the default model is the answer.")
    classifier_workers: int = Field(2, ge=1, le=256, description="Conversations classified at the same time.")
    encoder_threads: int = Field(1, ge=1, le=256, description="Cores that one text may use in the encoder.")

    max_body_bytes: int = Field(8 * 2**20, ge=1_024, description="Largest request body.")
    max_messages: int = Field(4_000, ge=1, description="Most messages in a conversation.")
    max_input_tokens: int = Field(4_000_000, ge=1, description="Most estimated tokens in a conversation.")

    shutdown_seconds: int = Field(10, ge=0, description="How long running requests may take to finish when the service stops.")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="Least severe records that are written.")
    log_format: Literal["json", "text"] = Field("json", description="One JSON object a line, or plain lines.")
    log_prompts: bool = Field(False, description="Write the classified text into the decision log.")

    @field_validator("allow", "deny", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(name.strip() for name in value.split(",") if name.strip()) if isinstance(value, str) else value

    @field_validator("port", mode="before")
    @classmethod
    def _not_a_service_link(cls, value: object) -> object:
        if isinstance(value, str) and value.startswith("tcp://"):
            raise ValueError("Kubernetes sets this for a service named interlock; set enableServiceLinks: false, or rename the service")
        return value


def read_settings(**given: Any) -> Settings:
    """Settings from the environment, with what is given and not None on top.

    Raises
    ------
    InvalidInput
        One line that names the setting, its value and what was allowed.
    """
    try:
        return Settings(**{key: value for key, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidInput("; ".join(_line(item, given) for item in error.errors(include_url=False))) from None


def _line(item: Any, given: dict[str, Any]) -> str:
    name = str(item["loc"][0]) if item["loc"] else "settings"
    source = f"--{name.replace('_', '-')}" if given.get(name) is not None else f"{ENV_PREFIX}{name.upper()}"
    message = str(item["msg"]).removeprefix("Value error, ")
    return f"{source} is {item['input']!r}: {message[:1].lower()}{message[1:]}"
