"""What a pool is evaluated with: its models, sources, list prices, and how its routers are fitted. Read from TOML, checked once."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final

from router.catalog import Prices
from router.errors import InvalidInput
from router.nearest import unknown_name
from training.fit import HEAD_KINDS, RequirementsEstimator
from training.pool.rows import PoolModel

_KEYS: Final = ("title", "encoder", "sources", "score_kinds", "bandwidths", "heads", "seed", "cost_basis", "model")
_MODEL_KEYS: Final = ("names", "input_per_mtok", "output_per_mtok")


@dataclass(frozen=True, slots=True)
class PoolRecipe:
    """A pool and how its routers are fitted.

    Parameters
    ----------
    models
        The models, in any order.
    sources, score_kinds
        See :func:`training.pool.rows.pool_rows`.
    bandwidths
        Kernel widths of :func:`training.targets.pool_need` to try; training rows decide between them.
    heads
        Parameters of :class:`training.fit.RequirementsEstimator`.
    cost_basis
        What the list prices are, for the report.
    """

    models: tuple[PoolModel, ...]
    title: str = ""
    encoder: str = "fast"
    sources: tuple[str, ...] = ()
    score_kinds: tuple[str, ...] = ()
    bandwidths: tuple[float, ...] = (0.0, 0.05)
    heads: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    cost_basis: str = ""


def read_pool_recipe(path: Path) -> PoolRecipe:
    """Read a recipe with a ``[[model]]`` for each model of the pool.

    Raises
    ------
    InvalidInput
        Naming file, field, value and what is allowed.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"no recipe at {path}") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from error
    _known(str(path), raw, _KEYS)
    models = raw.get("model")
    if not isinstance(models, list) or len(models) < 2:
        raise InvalidInput(f"{path}: at least two [[model]] tables were expected, each with names")
    return PoolRecipe(
        models=tuple(_model(f"{path}: model {i + 1}", entry) for i, entry in enumerate(models)),
        title=_text(path, raw, "title", ""),
        encoder=_text(path, raw, "encoder", "fast"),
        sources=_texts(str(path), raw.get("sources", []), "sources"),
        score_kinds=_texts(str(path), raw.get("score_kinds", []), "score_kinds"),
        bandwidths=_bandwidths(path, raw.get("bandwidths", [0.0, 0.05])),
        heads=_heads(path, raw.get("heads", {})),
        seed=_seed(path, raw.get("seed", 0)),
        cost_basis=_text(path, raw, "cost_basis", ""),
    )


def _model(where: str, raw: object) -> PoolModel:
    _known(where, raw, _MODEL_KEYS)
    assert isinstance(raw, dict)
    names = _texts(where, raw.get("names", []), "names")
    if not names:
        raise InvalidInput(f"{where} has no names: the name of the model in the outcomes, or a list of its names")
    given = [raw.get("input_per_mtok"), raw.get("output_per_mtok")]
    if given == [None, None]:
        return PoolModel(names)
    for key, value in zip(_MODEL_KEYS[1:], given, strict=True):
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e6:
            raise InvalidInput(f"{where}: {key} is {value!r}: USD per million tokens, a number from 0, was expected")
    return PoolModel(names, Prices(float(raw["input_per_mtok"]), float(raw["output_per_mtok"])))


def _heads(path: Path, raw: object) -> dict[str, Any]:
    allowed = sorted(set(RequirementsEstimator().get_params()) - {"capabilities", "n_embedding", "random_state"})
    _known(f"{path}: heads", raw, allowed)
    assert isinstance(raw, dict)
    if raw.get("kind", HEAD_KINDS[0]) not in HEAD_KINDS:
        raise InvalidInput(f"{path}: heads.kind is {raw['kind']!r}: allowed are {', '.join(HEAD_KINDS)}")
    return raw


def _bandwidths(path: Path, raw: object) -> tuple[float, ...]:
    values = raw if isinstance(raw, list) else [raw]
    for value in values or [None]:
        if isinstance(value, bool) or not isinstance(value, int | float) or not (math.isfinite(value) and 0 <= value <= 1):
            raise InvalidInput(f"{path}: bandwidths has {value!r}: one or several numbers within [0, 1] were expected")
    return tuple(map(float, values))


def _seed(path: Path, raw: object) -> int:
    if isinstance(raw, bool) or not isinstance(raw, int) or not 0 <= raw < 2**31:
        raise InvalidInput(f"{path}: seed is {raw!r}: a whole number from 0 was expected")
    return raw


def _text(path: Path, raw: Mapping[str, Any], key: str, default: str) -> str:
    value = raw.get(key, default)
    if not isinstance(value, str):
        raise InvalidInput(f"{path}: {key} is {value!r}: a text was expected")
    return value


def _texts(where: str, raw: object, key: str) -> tuple[str, ...]:
    values = [raw] if isinstance(raw, str) else raw
    if not isinstance(values, list) or not all(isinstance(value, str) and value for value in values):
        raise InvalidInput(f"{where}: {key} is {raw!r}: a text or a list of texts was expected")
    return tuple(values)


def _known(where: str, raw: object, allowed: Sequence[str]) -> None:
    if not isinstance(raw, dict):
        raise InvalidInput(f"{where} is a {type(raw).__name__}, not a table")
    for key in raw:
        if key not in allowed:
            raise InvalidInput(f"{where}: {unknown_name('field', str(key), sorted(allowed))}")


assert {name.name for name in fields(PoolRecipe)} == {*_KEYS, "models"} - {"model"}
