"""A malformed catalog gets one line that names the model, the field and the value."""

import copy
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from router.catalog import Bands, ModelCatalog
from router.errors import CatalogError
from router.files.artifacts import read_catalog

ROOT = Path(__file__).parents[2]
ENTRY = {
    "provider": "acme",
    "endpoint": {"base_url": "http://127.0.0.1:1/v1", "model": "m-1", "api_key_env": "KEY"},
    "prices": {
        "input_per_mtok": 1,
        "output_per_mtok": 4.5,
        "cache_read_multiplier": 0.1,
        "cache_ttl_seconds": 300,
        "cache_minimum_tokens": 512,
    },
    "context_window_tokens": 1000,
    "max_output_tokens": 100,
    "modalities": ["text", "image"],
    "tools": True,
    "benchmarks": {"bench": {"score": 0.5, "source": "here"}},
    "raw": {"reasoning": 0.4},
    "notes": "free text",
}


def catalog(**changes: object) -> dict:
    return {"format": 1, "capabilities": {"code_gen": {"bench": 1.0}}, "models": {"m": copy.deepcopy(ENTRY) | changes}}


def test_reads_every_field() -> None:
    model = ModelCatalog.from_mapping(catalog())["m"]
    assert model.prices.cache_minimum_tokens == 512
    assert model.endpoint.model == "m-1"
    assert model.modalities == {"text", "image"}
    assert model.raw == {"reasoning": 0.4, "code_gen": 0.5}
    assert model.benchmarks["bench"].source == "here"


def test_defaults_hold_where_a_field_is_left_out_or_empty() -> None:
    raw = {"models": {"m": {"prices": {"input_per_mtok": 0, "output_per_mtok": 0}, "modalities": None, "tools": None, "endpoint": None}}}
    model = ModelCatalog.from_mapping(raw)["m"]
    assert (model.tools, model.modalities, model.endpoint.model) == (True, {"text"}, "m")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("provider", 5),
        ("endpoint", "http://x"),
        ("endpoint", {"base_url": 5}),
        ("endpoint", {"model": ["m"]}),
        ("endpoint", {"api_key_env": 1}),
        ("endpoint", {"key": "secret"}),
        ("prices", 3),
        ("prices", None),
        ("prices", {"input_per_mtok": 1}),
        ("prices", {"input_per_mtok": -1, "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": 1, "output_per_mtok": math.nan}),
        ("prices", {"input_per_mtok": math.inf, "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": 10**400, "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": True, "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": "1", "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": None, "output_per_mtok": 1}),
        ("prices", {"input_per_mtok": 1, "output_per_mtok": 1, "cache_minimum_tokens": 0.5}),
        ("prices", {"input_per_mtok": 1, "output_per_mtok": 1, "cach_ttl": 0.5}),
        ("context_window_tokens", 0),
        ("context_window_tokens", 1000.5),
        ("context_window_tokens", "128k"),
        ("context_window_tokens", True),
        ("max_output_tokens", -1),
        ("modalities", "text"),
        ("modalities", 5),
        ("modalities", ["smell"]),
        ("modalities", [["text"]]),
        ("tools", "no"),
        ("tools", 1),
        ("benchmarks", []),
        ("benchmarks", {"bench": 0.5}),
        ("benchmarks", {"bench": {"score": 0.5}}),
        ("benchmarks", {"bench": {"score": 50, "source": "x"}}),
        ("benchmarks", {"bench": {"score": math.nan, "source": "x"}}),
        ("benchmarks", {"bench": {"score": 0.5, "source": 5}}),
        ("benchmarks", {"bench": {"score": 0.5, "source": "x", "date": 1}}),
        ("raw", 0.5),
        ("raw", {"reasoning": 1.1}),
        ("raw", {"reasoning": "high"}),
        ("contextwindow", 5),
    ],
)
def test_a_malformed_field_is_named_with_its_model(field: str, value: object) -> None:
    with pytest.raises(CatalogError, match=r"^model 'm'") as error:
        ModelCatalog.from_mapping(catalog(**{field: value}))
    message = str(error.value)
    assert field.rstrip("s") in message
    assert "\n" not in message
    assert len(message) < 400


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda c: c.update(format=2), "catalog format 2 is not 1"),
        (lambda c: c.update(format=True), "catalog format True"),
        (lambda c: c.update(modles={}), r"unknown field 'modles'.*did you mean 'models'"),
        (lambda c: c.update(models=[]), "has no models"),
        (lambda c: c.update(models={}), "has no models"),
        (lambda c: c["models"].update(m=None), "model 'm' is a NoneType"),
        (lambda c: c["models"].update({"": ENTRY}), "empty name"),
        (lambda c: c["models"].update({1: ENTRY, "1": ENTRY}), "model '1' stands twice"),
        (lambda c: c.update(capabilities=[1]), "capabilities is a list"),
        (lambda c: c["capabilities"].update(x={}), "capability 'x' must map"),
        (lambda c: c["capabilities"].update(x={"bench": 0}), r"capability 'x': bench is 0"),
        (lambda c: c["capabilities"].update(x={"bnech": 1}), r"capability 'x': unknown benchmark 'bnech'.*did you mean 'bench'"),
    ],
)
def test_a_malformed_catalog_is_refused(change: Callable[[dict], None], match: str) -> None:
    raw = catalog()
    change(raw)
    with pytest.raises(CatalogError, match=match):
        ModelCatalog.from_mapping(raw)


@pytest.mark.parametrize("raw", [None, [], "models", 5])
def test_what_is_no_mapping_is_no_catalog(raw: object) -> None:
    with pytest.raises(CatalogError):
        ModelCatalog.from_mapping(raw)


def test_a_missing_capability_names_the_model_and_the_way_out() -> None:
    with pytest.raises(CatalogError, match=r"model 'm' has no figure for capability 'tool_use': .*raw\.tool_use"):
        ModelCatalog.from_mapping(catalog()).raw(("reasoning", "tool_use"))


def test_pools() -> None:
    raw = catalog()
    raw["models"] |= {"gpt-large": copy.deepcopy(ENTRY), "gpt-small": copy.deepcopy(ENTRY)}
    models = ModelCatalog.from_mapping(raw)
    assert models.pool(["gpt-small", "m"]).names == ("gpt-small", "m")
    assert "m" in models
    assert "n" not in models
    with pytest.raises(CatalogError, match=r"unknown model 'gpt-lrage': there are m, gpt-large, gpt-small; did you mean 'gpt-large'\?"):
        models.pool(["gpt-lrage"])
    with pytest.raises(CatalogError, match="stands twice"):
        models.pool(["m", "m"])
    with pytest.raises(CatalogError, match="no models"):
        models.pool([])


def test_adding_a_model_needs_no_more_than_an_entry() -> None:
    raw = catalog()
    bands = Bands(np.array([0.2]), np.array([0.8]))
    assert ModelCatalog.from_mapping(raw).capability(["reasoning"], bands).tolist() == [[0.8]]
    raw["models"]["n"] = copy.deepcopy(ENTRY) | {"raw": {"reasoning": 0.6}}
    assert ModelCatalog.from_mapping(raw).capability(["reasoning"], bands).ravel() == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize(("low", "high"), [([0.5], [0.4]), ([math.nan], [0.4]), ([0.1], [math.inf]), ([0.1, 0.2], [0.3])])
def test_bands_must_be_ranges(low: list[float], high: list[float]) -> None:
    with pytest.raises(CatalogError, match="bands"):
        Bands(np.array(low), np.array(high))


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "empty or not a mapping"),
        (b"- a\n- b\n", "empty or not a mapping"),
        (b"models: [", "cannot be read as YAML"),
        (b"models: {}\nmodels: {}\n", "key 'models' stands twice"),
        (b"updated: 2026-13-45\nmodels: {}\n", "cannot be read as YAML"),
        (b"\xff\xfe\x00", "cannot be read as YAML"),
        (b"models: !!python/object/apply:os.system [true]\n", "cannot be read as YAML"),
        (b"a: " + b"[" * 5000, "cannot be read as YAML"),
    ],
)
def test_a_file_that_is_no_catalog_is_named(tmp_path: Path, content: bytes, match: str) -> None:
    path = tmp_path / "catalog.yaml"
    path.write_bytes(content)
    with pytest.raises(CatalogError, match=match) as error:
        read_catalog(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_missing_file_and_a_folder_are_named(tmp_path: Path) -> None:
    with pytest.raises(CatalogError, match="no catalog at"):
        read_catalog(tmp_path / "none.yaml")
    with pytest.raises(CatalogError, match="cannot be read"):
        read_catalog(tmp_path)


@pytest.mark.parametrize("name", ["data/catalog.yaml", "data/sample/catalog.yaml"])
def test_the_catalogs_of_the_repository_are_good(name: str) -> None:
    from router.requirements import CAPABILITIES

    assert read_catalog(ROOT / name).raw(CAPABILITIES).min() >= 0
