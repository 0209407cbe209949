"""Models to choose from: prices, limits, and how capable each is relative to the others in the pool."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
from numpy.typing import NDArray

from router.errors import CatalogError
from router.nearest import unknown_name
from router.types import MODALITIES, Modality

CATALOG_FORMAT: Final = 1
_LARGEST: Final = 1e12
Array = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a model is reached: an OpenAI-compatible server and the environment variable that holds its key."""

    base_url: str = ""
    model: str = ""
    api_key_env: str | None = None


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars per million tokens; cache prices are multipliers of the input price."""

    input_per_mtok: float
    output_per_mtok: float
    cache_read_multiplier: float = 1.0
    cache_write_multiplier: float = 1.0
    cache_ttl_seconds: float = 300.0
    cache_minimum_tokens: int = 1024


@dataclass(frozen=True, slots=True)
class BenchmarkResult:
    """One public figure of a model in [0, 1], and where it was published."""

    score: float
    source: str


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """A model of the catalog. ``raw`` maps a capability to its benchmark-derived figure in [0, 1]."""

    name: str
    provider: str
    prices: Prices
    raw: Mapping[str, float]
    endpoint: Endpoint = field(default_factory=Endpoint)
    context_window_tokens: int = 128_000
    max_output_tokens: int = 4_096
    modalities: frozenset[Modality] = frozenset({"text"})
    tools: bool = True
    benchmarks: Mapping[str, BenchmarkResult] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Bands:
    """Range [low, high] of the predictor's own scores on real traffic, one a capability; both have shape (K,)."""

    low: Array
    high: Array

    def __post_init__(self) -> None:
        if (
            self.low.shape != self.high.shape
            or not (np.isfinite(self.low).all() and np.isfinite(self.high).all())
            or (self.low > self.high).any()
        ):
            raise CatalogError(f"bands must be finite with low <= high, got low {self.low.tolist()} and high {self.high.tolist()}")

    @property
    def width(self) -> Array:
        """Widths of the bands, at least 0.01 so that a collapsed head cannot take all the weight."""
        return np.maximum(self.high - self.low, 0.01)


@dataclass(frozen=True, slots=True)
class ModelCatalog:
    """The models of a pool, in the order of the configuration."""

    models: tuple[ModelProfile, ...]

    def __post_init__(self) -> None:
        if not self.models:
            raise CatalogError("the catalog has no models: at least one is needed")
        names = [model.name for model in self.models]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise CatalogError(f"model {twice!r} stands twice in the catalog")

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the models, in order."""
        return tuple(model.name for model in self.models)

    def __getitem__(self, name: str) -> ModelProfile:
        for model in self.models:
            if model.name == name:
                return model
        raise CatalogError(unknown_name("model", name, self.names))

    def __contains__(self, name: object) -> bool:
        return any(model.name == name for model in self.models)

    def pool(self, names: Iterable[str]) -> ModelCatalog:
        """The catalog restricted to the named models."""
        return ModelCatalog(tuple(self[name] for name in names))

    def raw(self, capabilities: Sequence[str]) -> Array:
        """Benchmark-derived figures, shape (models, K).

        Raises
        ------
        CatalogError
            If a model has no figure for one of the capabilities.
        """
        for model in self.models:
            missing = [name for name in capabilities if name not in model.raw]
            if missing:
                wanted = f"give it a benchmark that measures it, or raw.{missing[0]}"
                raise CatalogError(f"model {model.name!r} has no figure for capability {missing[0]!r}: {wanted}")
        return np.array([[model.raw[name] for name in capabilities] for model in self.models], dtype=np.float64)

    def capability(self, capabilities: Sequence[str], bands: Bands) -> Array:
        """Pool-relative capability of every model, shape (models, K): HyDRA (arXiv 2605.17106) Eq. 3.

        ``c_mk = lo_k + (raw_mk - min_m raw_k) / (max_m raw_k - min_m raw_k) * (hi_k - lo_k)``. Where all models of the pool are equal
        the span is zero and each gets ``hi_k``: none is worse than the rest.
        """
        raw = self.raw(capabilities)
        low, span = raw.min(axis=0), np.ptp(raw, axis=0)
        relative = np.where(span > 0, (raw - low) / np.where(span > 0, span, 1.0), 1.0)
        return np.asarray(bands.low + relative * (bands.high - bands.low), dtype=np.float64)

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> ModelCatalog:
        """Read a catalog as parsed from YAML or JSON (docs/catalog.md has every field).

        Raises
        ------
        CatalogError
            Naming the model and the field.
        """
        if not isinstance(raw, Mapping):
            raise CatalogError(f"a catalog is a mapping with a key 'models', not a {type(raw).__name__}")
        number = raw.get("format", CATALOG_FORMAT)
        if isinstance(number, bool) or number != CATALOG_FORMAT:
            raise CatalogError(f"catalog format {reprlib.repr(number)} is not {CATALOG_FORMAT}, the one this version reads")
        _known_keys("the catalog", raw, _CATALOG_KEYS)
        models = raw.get("models")
        if not isinstance(models, Mapping) or not models:
            raise CatalogError("the catalog has no models: 'models' must map names to their entries")
        capabilities = _weights_of_capabilities(raw.get("capabilities"))
        catalog = cls(tuple(_profile(str(name), entry, capabilities) for name, entry in models.items()))
        _check_benchmarks_exist(capabilities, catalog.models)
        return catalog


_CATALOG_KEYS: Final = frozenset({"format", "updated", "capabilities", "benchmarks", "models", "notes"})
_PROFILE_KEYS: Final = frozenset(
    {"provider", "endpoint", "prices", "context_window_tokens", "max_output_tokens", "modalities", "tools", "benchmarks", "raw", "notes"}
)


def _profile(name: str, entry: object, capabilities: Mapping[str, Mapping[str, float]]) -> ModelProfile:
    where = f"model {name!r}"
    if not name.strip():
        raise CatalogError("a model of the catalog has an empty name")
    if not isinstance(entry, Mapping):
        raise CatalogError(f"{where} is a {type(entry).__name__}, not a mapping")
    _known_keys(where, entry, _PROFILE_KEYS)
    benchmarks = _benchmarks(where, _given(entry, "benchmarks", {}))
    tools = _given(entry, "tools", True)
    if not isinstance(tools, bool):
        raise CatalogError(f"{where}: tools is {reprlib.repr(tools)}: true or false was expected")
    return ModelProfile(
        name=name,
        provider=_text(where, "provider", _given(entry, "provider", "")),
        prices=_prices(where, entry.get("prices")),
        raw=_raw(where, _given(entry, "raw", {}), benchmarks, capabilities),
        endpoint=_endpoint(where, name, _given(entry, "endpoint", {})),
        context_window_tokens=_whole(where, "context_window_tokens", _given(entry, "context_window_tokens", 128_000), low=1),
        max_output_tokens=_whole(where, "max_output_tokens", _given(entry, "max_output_tokens", 4_096), low=1),
        modalities=_modalities(where, _given(entry, "modalities", ["text"])),
        tools=tools,
        benchmarks=benchmarks,
    )


def _raw(
    where: str, given: object, benchmarks: Mapping[str, BenchmarkResult], capabilities: Mapping[str, Mapping[str, float]]
) -> dict[str, float]:
    """Weighted mean of the benchmarks a model has in each capability; a figure given under ``raw`` wins."""
    if not isinstance(given, Mapping):
        raise CatalogError(f"{where}: raw is {reprlib.repr(given)}, not a mapping of capabilities to figures")
    raw = {str(name): _number(where, f"raw.{name}", value, high=1) for name, value in given.items()}
    for capability, weights in capabilities.items():
        have = {name: weight for name, weight in weights.items() if name in benchmarks}
        if have and capability not in raw:
            raw[capability] = sum(weight * benchmarks[name].score for name, weight in have.items()) / sum(have.values())
    return raw


def _weights_of_capabilities(raw: object) -> dict[str, dict[str, float]]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        raise CatalogError(f"capabilities is a {type(raw).__name__}, not a mapping of capabilities to benchmark weights")
    weights: dict[str, dict[str, float]] = {}
    for name, entry in raw.items():
        if not isinstance(entry, Mapping) or not entry:
            raise CatalogError(f"capability {name!r} must map benchmarks to weights")
        weights[str(name)] = {str(b): _number(f"capability {name!r}", str(b), w, low=1e-9) for b, w in entry.items()}
    return weights


def _benchmarks(where: str, raw: object) -> dict[str, BenchmarkResult]:
    if not isinstance(raw, Mapping):
        raise CatalogError(f"{where}: benchmarks is {reprlib.repr(raw)}, not a mapping")
    results = {}
    for name, entry in raw.items():
        if not isinstance(entry, Mapping) or "score" not in entry or not entry.get("source"):
            raise CatalogError(f"{where}: benchmark {name!r} is {reprlib.repr(entry)}: it needs a score in [0, 1] and a source")
        _known_keys(f"{where}: benchmark {name!r}", entry, frozenset(BenchmarkResult.__dataclass_fields__))
        source = _text(where, f"benchmarks.{name}.source", entry["source"])
        results[str(name)] = BenchmarkResult(_number(where, f"benchmarks.{name}.score", entry["score"], high=1), source)
    return results


def _prices(where: str, raw: object) -> Prices:
    if not isinstance(raw, Mapping) or "input_per_mtok" not in raw or "output_per_mtok" not in raw:
        raise CatalogError(f"{where}: prices is {reprlib.repr(raw)}: it needs input_per_mtok and output_per_mtok")
    _known_keys(f"{where}: prices", raw, frozenset(Prices.__dataclass_fields__))
    values = {str(key): _number(where, f"prices.{key}", value) for key, value in raw.items() if key != "cache_minimum_tokens"}
    return Prices(**values, cache_minimum_tokens=_whole(where, "prices.cache_minimum_tokens", _given(raw, "cache_minimum_tokens", 1024)))


def _endpoint(where: str, name: str, raw: object) -> Endpoint:
    if not isinstance(raw, Mapping):
        raise CatalogError(f"{where}: endpoint is {reprlib.repr(raw)}, not a mapping")
    _known_keys(f"{where}: endpoint", raw, frozenset(Endpoint.__dataclass_fields__))
    key = raw.get("api_key_env")
    return Endpoint(
        base_url=_text(where, "endpoint.base_url", _given(raw, "base_url", "")),
        model=_text(where, "endpoint.model", _given(raw, "model", name)),
        api_key_env=None if key is None else _text(where, "endpoint.api_key_env", key),
    )


def _modalities(where: str, raw: object) -> frozenset[Modality]:
    if not isinstance(raw, list | tuple):
        raise CatalogError(f"{where}: modalities is {reprlib.repr(raw)}: a list of {', '.join(MODALITIES)} was expected")
    for modality in raw:
        if modality not in MODALITIES:
            raise CatalogError(f"{where}: modalities has {reprlib.repr(modality)}: allowed are {', '.join(MODALITIES)}")
    return frozenset(cast("Modality", modality) for modality in raw) | {"text"}


def _check_benchmarks_exist(capabilities: Mapping[str, Mapping[str, float]], models: Sequence[ModelProfile]) -> None:
    """A benchmark that no model has is a typing error, and would silently drop out of the mean."""
    known = {name for model in models for name in model.benchmarks}
    for capability, weights in capabilities.items():
        missing = next((name for name in weights if name not in known), None)
        if missing is not None and known:
            raise CatalogError(f"capability {capability!r}: {unknown_name('benchmark', missing, sorted(known))}")


def _known_keys(where: str, raw: Mapping[str, Any], allowed: frozenset[str]) -> None:
    for key in raw:
        if key not in allowed:
            raise CatalogError(f"{where}: {unknown_name('field', str(key), sorted(allowed))}")


def _given(raw: Mapping[str, Any], key: str, default: object) -> object:
    """The value of a key; left empty in YAML it counts as not given."""
    value = raw.get(key)
    return default if value is None else value


def _text(where: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise CatalogError(f"{where}: {key} is {reprlib.repr(value)}: a text was expected (put it in quotes)")
    return value


def _whole(where: str, key: str, value: object, *, low: int = 0) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= _LARGEST:
        raise CatalogError(f"{where}: {key} is {reprlib.repr(value)}: a whole number of at least {low} was expected")
    return value


def _number(where: str, key: str, value: object, *, low: float = 0.0, high: float = _LARGEST) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
        bound = f"within [{low:g}, {high:g}]" if high < _LARGEST else f"of at least {low:g}"
        raise CatalogError(f"{where}: {key} is {reprlib.repr(value)}: a number {bound} was expected")
    return float(value)
