"""What a labelling run needs to know, read from ``label.toml`` or from flags and checked once."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx

from router.errors import LabelError
from router.nearest import unknown_name
from training.label.prompts import MAX_TOKENS, digest

Role = Literal["weak", "strong", "pool", "judge"]
ROLES: tuple[Role, ...] = ("weak", "strong", "pool", "judge")
TOOL_MODES = ("native", "prompt")
DIMENSIONS = ("correctness", "completeness", "instruction_following", "clarity")
DEFAULT_WEIGHTS: Mapping[str, float] = {
    "correctness": 0.7,
    "completeness": 0.1,
    "instruction_following": 0.1,
    "clarity": 0.1,
}


@dataclass(frozen=True)
class Rule:
    """What a setting may be, in words and as a test."""

    allowed: str
    fits: Callable[[Any], bool]

    def check(self, where: str, name: str, value: Any) -> None:
        """Refuse a value in one line that names it, its place and what is allowed."""
        if not self.fits(value):
            raise LabelError(f"{where}: {name} is {one_line(repr(value))}; allowed: {self.allowed}")


def one_line(text: str, limit: int = 80) -> str:
    """Cut a text that is shown in an error."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def is_number(value: Any) -> bool:
    """Tell whether a value is a finite number."""
    return (isinstance(value, int) and not isinstance(value, bool)) or (isinstance(value, float) and math.isfinite(value))


def is_json(value: Any) -> bool:
    """Tell whether a value has a form in JSON: TOML also knows dates, infinity and what is not a number."""
    if isinstance(value, list):
        return all(map(is_json, value))
    if isinstance(value, Mapping):
        return all(isinstance(name, str) and is_json(content) for name, content in value.items())
    return value is None or isinstance(value, str | bool) or is_number(value)


def _number(low: float, high: float, words: str) -> Rule:
    return Rule(words, lambda value: is_number(value) and low <= value <= high)


def _whole(low: int, high: int) -> Rule:
    words = f"a whole number from {low} to {high}" if high < _HUGE else f"a whole number from {low}"
    return Rule(words, lambda value: isinstance(value, int) and is_number(value) and low <= value <= high)


_HUGE = 2**63 - 1  # what JSON readers, Parquet and 64-bit seeds can take
_SWITCH = Rule("true or false", lambda value: isinstance(value, bool))
_TEXT = Rule("a non-empty string", lambda value: isinstance(value, str) and bool(value.strip()))
_PRICE = _number(0, 1e6, "USD per million tokens, from 0 to 1000000")
_WEIGHT = _number(0, 1e6, "a number from 0 to 1000000")
RULES: Mapping[str, Mapping[str, Rule]] = {
    "models": {
        "name": _TEXT,
        "role": _TEXT,
        "base_url": _TEXT,
        "model": _TEXT,
        "api_key_env": _TEXT,
        "price_in_per_mtok": _PRICE,
        "price_out_per_mtok": _PRICE,
        "tool_mode": _TEXT,
        "concurrency": _whole(1, _HUGE),
        "extra_body": Rule("a table of JSON values", lambda value: isinstance(value, Mapping) and is_json(value)),
    },
    "run": {
        "temperature": _number(0, 100, "a number from 0 to 100"),
        "seed": _whole(0, _HUGE),
        "max_tokens": _whole(1, MAX_TOKENS),
        "judge_max_tokens": _whole(1, MAX_TOKENS),
        "timeout_s": Rule("a number of seconds above 0, to 1000000", lambda value: is_number(value) and 0 < value <= 1e6),
        "retries": _whole(0, 1000),
        "models_at_once": _SWITCH,
        "judge_everything": _SWITCH,
    },
    "budget": {"usd": _number(0, 1e12, "a number from 0"), "tokens": _whole(0, _HUGE)},
    "prompts": {"source": _TEXT, "licence": _TEXT},
    "quality_weights": dict.fromkeys(DIMENSIONS, _WEIGHT),
}


@dataclass(frozen=True)
class ModelSpec:
    """One endpoint and the part it plays; ``name`` is what tables show, ``model`` is what the server is asked for."""

    name: str
    role: Role
    base_url: str
    model: str
    api_key_env: str | None = None
    price_in_per_mtok: float = 0.0
    price_out_per_mtok: float = 0.0
    tool_mode: str = "native"
    concurrency: int = 4
    extra_body: Mapping[str, Any] = field(default_factory=dict)

    def cost_usd(self, prompt_tokens: int, completion_tokens: int) -> float:
        """Price of one answer in USD."""
        return (prompt_tokens * self.price_in_per_mtok + completion_tokens * self.price_out_per_mtok) / 1e6

    def api_key(self) -> str:
        """Return the key from the environment; local servers need none."""
        if self.api_key_env is None:
            return "none"
        key = os.environ.get(self.api_key_env, "").strip()
        if not key:
            raise LabelError(f"model {self.name!r}: environment variable {self.api_key_env!r} (api_key_env) is not set")
        if not (key.isascii() and key.isprintable()):
            raise LabelError(f"model {self.name!r}: environment variable {self.api_key_env!r} (api_key_env) holds more than a key")
        return key


@dataclass(frozen=True)
class RunSettings:
    """Sampling and transport settings shared by all models of a run."""

    temperature: float = 0.0
    seed: int = 7
    max_tokens: int = 512
    judge_max_tokens: int = 200
    timeout_s: float = 120.0
    retries: int = 4
    models_at_once: bool = False
    judge_everything: bool = False


@dataclass(frozen=True)
class Budget:
    """Ceilings for one invocation, answers and judgements together; ``None`` means no ceiling."""

    usd: float | None = None
    tokens: int | None = None


@dataclass(frozen=True)
class PromptDefaults:
    """What to write into the tables for prompts that do not say it themselves."""

    source: str | None = None
    licence: str | None = None


@dataclass(frozen=True)
class LabelConfig:
    """A checked labelling configuration."""

    models: tuple[ModelSpec, ...]
    run: RunSettings = RunSettings()
    budget: Budget = Budget()
    prompts: PromptDefaults = PromptDefaults()
    quality_weights: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_WEIGHTS))

    def __post_init__(self) -> None:
        names = [model.name for model in self.models if model.role != "judge"]
        for name in names:
            if names.count(name) > 1:
                raise LabelError(f"model name {name!r} is used twice; names must be unique")
        for role in ("weak", "strong", "judge"):
            if sum(model.role == role for model in self.models) > 1:
                raise LabelError(f'more than one model has role {role!r}; exactly one may (others: role = "pool")')
        for role in ("weak", "strong"):
            if not any(model.role == role for model in self.models):
                raise LabelError(f"no model has role {role!r}; a run needs one weak and one strong model")
        _check_weights(self.quality_weights, "quality_weights")

    def by_role(self, role: Role) -> ModelSpec | None:
        """Return the only model of a role, if there is one."""
        return next((model for model in self.models if model.role == role), None)

    @property
    def strong(self) -> ModelSpec:
        """The strong model."""
        return next(model for model in self.models if model.role == "strong")

    @property
    def weak(self) -> ModelSpec:
        """The weak model."""
        return next(model for model in self.models if model.role == "weak")

    @property
    def answering(self) -> tuple[ModelSpec, ...]:
        """Models that answer prompts, the strong one first."""
        order = {"strong": 0, "weak": 1, "pool": 2}
        return tuple(sorted((m for m in self.models if m.role != "judge"), key=lambda m: order[m.role]))

    @property
    def judge(self) -> ModelSpec | None:
        """The judge, if one is configured."""
        return self.by_role("judge")

    def settings_hash(self, model: ModelSpec, *, tools: bool) -> str:
        """Identify everything but the prompt and its token limit that an answer depends on."""
        return digest(
            {
                "model": model.model,
                "temperature": self.run.temperature,
                "seed": self.run.seed,
                "tool_mode": model.tool_mode if tools else None,
                "extra_body": dict(model.extra_body),
            }
        )

    def public(self) -> dict[str, Any]:
        """Return the configuration for ``run.json``: no endpoint address, no key."""
        hidden = ("base_url", "api_key_env")
        return {
            "models": [{k: v for k, v in asdict(model).items() if k not in hidden} for model in self.models],
            "run": asdict(self.run),
            "budget": asdict(self.budget),
            "quality_weights": dict(self.quality_weights),
        }


def load_config(path: Path) -> LabelConfig:
    """Read ``label.toml``."""
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise LabelError(f"configuration {str(path)!r} does not exist; give --config FILE or --weak-url and --strong-url") from error
    except (ValueError, RecursionError, OSError) as error:
        raise LabelError(f"configuration {str(path)!r} cannot be read as TOML: {error}") from error
    return config_from_mapping(table, path.name)


def config_from_mapping(table: Mapping[str, Any], where: str) -> LabelConfig:
    """Check a parsed configuration; ``where`` names it in errors."""
    _known(table, tuple(RULES), where)
    models = table.get("models", [])
    if not isinstance(models, list):
        raise LabelError(f"{where}: models is {one_line(repr(models))}; allowed: [[models]] entries")
    if not models:
        raise LabelError(f"{where}: no [[models]] entry; a run needs at least a weak and a strong model")
    weights = table.get("quality_weights", DEFAULT_WEIGHTS)
    _check_weights(weights, f"{where} [quality_weights]")
    parts: dict[str, Any] = {
        "models": tuple(model_from_mapping(entry, f"{where} [[models]] {n}") for n, entry in enumerate(models, start=1)),
        "run": RunSettings(**_section(table, "run", where)),
        "budget": Budget(**_section(table, "budget", where)),
        "prompts": PromptDefaults(**_section(table, "prompts", where)),
        "quality_weights": dict(weights),
    }
    try:
        return LabelConfig(**parts)
    except LabelError as error:
        raise LabelError(f"{where}: {error}") from None


def model_from_mapping(entry: Any, where: str) -> ModelSpec:
    """Check one ``[[models]]`` entry."""
    _check(entry, RULES["models"], where)
    for name in ("name", "role", "base_url"):
        _TEXT.check(where, name, entry.get(name))
    spec = ModelSpec(**{"model": entry["name"], **entry})
    if spec.role not in ROLES:
        raise LabelError(f"{where}: role {spec.role!r} is unknown; allowed: {', '.join(ROLES)}")
    if spec.tool_mode not in TOOL_MODES:
        raise LabelError(f"{where}: tool_mode {spec.tool_mode!r} is unknown; allowed: {', '.join(TOOL_MODES)}")
    check_url(spec.base_url, where)
    return spec


def check_url(url: str, where: str) -> None:
    """Refuse what cannot be the base URL of an OpenAI-compatible server."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and bool(httpx.URL(url).host)
    except (ValueError, httpx.InvalidURL):
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise LabelError(f"{where}: base_url {one_line(repr(url))} is not a URL; expected something like http://127.0.0.1:8080/v1")


def override(config: LabelConfig, *, usd: float | None, tokens: int | None, concurrency: int | None) -> LabelConfig:
    """Apply command-line flags over a configuration."""
    budget = Budget(usd if usd is not None else config.budget.usd, tokens if tokens is not None else config.budget.tokens)
    for name, flag, value in (("usd", "--max-usd", usd), ("tokens", "--max-total-tokens", tokens)):
        if value is not None:
            RULES["budget"][name].check(flag, f"budget {name}", value)
    models = config.models
    if concurrency is not None:
        models = tuple(replace(model, concurrency=concurrency) for model in models)
    return replace(config, budget=budget, models=models)


def _section(table: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    section = table.get(name, {})
    _check(section, RULES[name], f"{where} [{name}]")
    return dict(section)


def _check(table: Any, rules: Mapping[str, Rule], where: str) -> None:
    if not isinstance(table, Mapping):
        raise LabelError(f"{where}: it is {one_line(repr(table))}; allowed: a table with {', '.join(rules)}")
    _known(table, tuple(rules), where)
    for name, value in table.items():
        rules[name].check(where, name, value)


def _known(table: Mapping[str, Any], allowed: Sequence[str], where: str, what: str = "setting") -> None:
    """Refuse a name that nothing reads."""
    for name in table:
        if name not in allowed:
            raise LabelError(f"{where}: {unknown_name(what, name, allowed)}")


def _check_weights(weights: Any, where: str) -> None:
    if isinstance(weights, Mapping):
        _known(weights, DIMENSIONS, where, "dimension")
    _check(weights, RULES["quality_weights"], where)
    if not any(weights.values()):
        raise LabelError(f"{where}: all weights are 0; at least one must be above 0")
