"""What a labelling run needs to know, read from ``label.toml`` or from flags and checked once."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

from router.errors import LabelError
from router.nearest import unknown_name
from training.label.prompts import digest

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
        _check_weights(self.quality_weights)

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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise LabelError(f"configuration {str(path)!r} cannot be read as TOML: {error}") from error
    return config_from_mapping(table, path.name)


def config_from_mapping(table: Mapping[str, Any], where: str) -> LabelConfig:
    """Check a parsed configuration; ``where`` names it in errors."""
    _known(table, ("models", "run", "budget", "prompts", "quality_weights"), where)
    models = table.get("models", [])
    if not isinstance(models, list) or not models:
        raise LabelError(f"{where}: no [[models]] entry; a run needs at least a weak and a strong model")
    return LabelConfig(
        models=tuple(model_from_mapping(entry, f"{where} [[models]] {n}") for n, entry in enumerate(models, start=1)),
        run=_settings(RunSettings, table.get("run", {}), f"{where} [run]"),
        budget=_settings(Budget, table.get("budget", {}), f"{where} [budget]"),
        prompts=_prompt_defaults(table.get("prompts", {}), f"{where} [prompts]"),
        quality_weights=dict(table.get("quality_weights", DEFAULT_WEIGHTS)),
    )


def model_from_mapping(entry: Mapping[str, Any], where: str) -> ModelSpec:
    """Check one ``[[models]]`` entry."""
    _known(entry, tuple(f.name for f in fields(ModelSpec)), where)
    for name in ("name", "role", "base_url"):
        if not isinstance(entry.get(name), str) or not entry[name].strip():
            raise LabelError(f"{where}: {name!r} is {entry.get(name)!r}; expected a non-empty string")
    spec = ModelSpec(**{"model": entry["name"], **entry})
    if spec.role not in ROLES:
        raise LabelError(f"{where}: role {spec.role!r} is unknown; allowed: {', '.join(ROLES)}")
    if spec.tool_mode not in TOOL_MODES:
        raise LabelError(f"{where}: tool_mode {spec.tool_mode!r} is unknown; allowed: {', '.join(TOOL_MODES)}")
    check_url(spec.base_url, where)
    if not isinstance(spec.concurrency, int) or spec.concurrency < 1:
        raise LabelError(f"{where}: concurrency is {spec.concurrency!r}; allowed: a whole number from 1")
    for name in ("price_in_per_mtok", "price_out_per_mtok"):
        price = getattr(spec, name)
        if not isinstance(price, int | float) or not 0 <= price < 1e6:
            raise LabelError(f"{where}: {name} is {price!r}; allowed: USD per million tokens, from 0")
    return spec


def check_url(url: str, where: str) -> None:
    """Refuse what cannot be the base URL of an OpenAI-compatible server."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise LabelError(f"{where}: base_url {url!r} is not a URL; expected something like http://127.0.0.1:8080/v1")


def override(config: LabelConfig, *, usd: float | None, tokens: int | None, concurrency: int | None) -> LabelConfig:
    """Apply command-line flags over a configuration."""
    budget = Budget(usd if usd is not None else config.budget.usd, tokens if tokens is not None else config.budget.tokens)
    for name, value in (("budget usd", budget.usd), ("budget tokens", budget.tokens)):
        if value is not None and not value >= 0:
            raise LabelError(f"{name} is {value!r}; allowed: a number from 0")
    models = config.models
    if concurrency is not None:
        models = tuple(replace(model, concurrency=concurrency) for model in models)
    return replace(config, budget=budget, models=models)


def _known(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for name in table:
        if name not in allowed:
            raise LabelError(f"{where}: {unknown_name('setting', name, allowed)}")


def _prompt_defaults(table: Any, where: str) -> PromptDefaults:
    if not isinstance(table, Mapping):
        raise LabelError(f"{where}: expected a table")
    _known(table, tuple(f.name for f in fields(PromptDefaults)), where)
    for name, value in table.items():
        if not isinstance(value, str) or not value.strip():
            raise LabelError(f"{where}: {name} is {value!r}; expected a non-empty string")
    return PromptDefaults(**table)


def _settings(kind: type[Any], table: Any, where: str) -> Any:
    if not isinstance(table, Mapping):
        raise LabelError(f"{where}: expected a table")
    _known(table, tuple(f.name for f in fields(kind)), where)
    defaults = kind()
    for name, value in table.items():
        default = getattr(defaults, name)
        wants_bool = isinstance(default, bool)
        if wants_bool != isinstance(value, bool):
            raise LabelError(f"{where}: {name} is {value!r}; expected {'true or false' if wants_bool else 'a number'}")
        if not wants_bool and (not isinstance(value, int | float) or value < 0):
            raise LabelError(f"{where}: {name} is {value!r}; allowed: a number from 0")
    return kind(**table)


def _check_weights(weights: Mapping[str, Any]) -> None:
    for name, weight in weights.items():
        if name not in DIMENSIONS:
            raise LabelError(f"quality_weights: {unknown_name('dimension', name, DIMENSIONS)}")
        if not isinstance(weight, int | float) or isinstance(weight, bool) or weight < 0:
            raise LabelError(f"quality_weights: {name} is {weight!r}; allowed: a number from 0")
    if not any(weights.values()):
        raise LabelError("quality_weights: all weights are 0; at least one must be above 0")
