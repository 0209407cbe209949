"""What a router is trained on: which pairs of models, of which sources, scored how. Read from TOML, checked once."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, TypeVar

from router.errors import InvalidInput
from router.nearest import unknown_name
from router.requirements import CAPABILITIES
from router.text import TextBudget
from training.promise import GuaranteeOptions
from training.targets import TargetMapping

RECIPE_NAME: Final = "recipe.toml"
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Pair:
    """A weak and a strong model and the sources in which their difference is learned from.

    Parameters
    ----------
    weak, strong
        Names that the sources give to the one and to the other model; several names are one model.
    sources
        Sources to use; empty means all in which both models were scored.
    score_kinds
        Kinds of score, best first; empty takes the only one there is.
    bandwidth
        Width in mean score of the kernel that lets models of like strength speak too (:func:`training.targets.pool_need`); 0 for none.
    weight
        Weight of every row of the pair.
    licence
        Why an artefact may be trained on it.
    """

    weak: tuple[str, ...]
    strong: tuple[str, ...]
    sources: tuple[str, ...] = ()
    score_kinds: tuple[str, ...] = ()
    bandwidth: float = 0.0
    weight: float = 1.0
    licence: str = ""


@dataclass(frozen=True, slots=True)
class ParallelText:
    """Texts that say the same in several languages. No answers are needed; they teach what should not matter.

    Parameters
    ----------
    sources
        Sources of the prompt tables whose groups hold translations.
    file
        A Parquet file in a data folder with the columns ``group`` (equal means equal meaning), ``language``, ``text`` and maybe ``source``
        and ``outcome_prompt_id``, the prompt that the text is a translation of: while it is held out, no translation of it is learned from.
    meanings
        Groups taken of each source, drawn at random where there are more.
    licence
        Why an artefact may be trained on it.
    """

    sources: tuple[str, ...] = ()
    file: str = ""
    meanings: int = 200
    licence: str = ""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides what a training run makes of its tables.

    ``language_effects`` lets the router learn what languages add to the need where the outcomes show it
    (:mod:`training.language_effects`); without, the task alone speaks. Beside parallel text, so many ``changed_prompts`` teach with copies
    that ask the same (:mod:`training.robustness.copies`).

    ``encoder_prefix`` stands before every text that a SentenceTransformer reads; None takes the model's own default prompt. With
    ``guarantee`` a share of the groups is not fitted on and chooses the threshold; without it, ``quality_goal`` does.
    """

    pairs: tuple[Pair, ...]
    parallel: tuple[ParallelText, ...] = ()
    title: str = ""
    capabilities: tuple[str, ...] = CAPABILITIES
    encoder: str = "fast"
    encoder_prefix: str | None = None
    targets: TargetMapping = field(default_factory=TargetMapping)
    budget: TextBudget = field(default_factory=TextBudget)
    heads: Mapping[str, Any] = field(default_factory=dict)
    quality_goal: float = 0.98
    guarantee: GuaranteeOptions | None = None
    language_effects: bool = True
    changed_prompts: int = 0
    seed: int = 0

    def with_encoder(self, encoder: str | None, prefix: str | None) -> Recipe:
        """The recipe with another encoder, another prefix, or both; another encoder does not inherit the prefix of the first."""
        if encoder is not None:
            return replace(self, encoder=encoder, encoder_prefix=prefix)
        return self if prefix is None else replace(self, encoder_prefix=prefix)

    @property
    def models(self) -> frozenset[str]:
        """Every name that the sources give to a weak or a strong model."""
        return frozenset(name for pair in self.pairs for name in (*pair.weak, *pair.strong))

    @property
    def weak_title(self) -> str:
        """The weak model as a report names it."""
        return self.pairs[0].weak[0] if len(self.pairs) == 1 else f"weak of {len(self.pairs)} pairs"

    @property
    def strong_title(self) -> str:
        """The strong model as a report names it."""
        return self.pairs[0].strong[0] if len(self.pairs) == 1 else f"strong of {len(self.pairs)} pairs"


_FIELDS: Final = frozenset(Recipe.__dataclass_fields__) - {"pairs"} | {"pair"}
_HEADS: Final = frozenset(
    {
        "kind",
        "n_estimators",
        "learning_rate",
        "num_leaves",
        "max_depth",
        "min_child_samples",
        "feature_fraction",
        "reg_lambda",
        "noise",
        "noisy_copies",
        "knots",
        "C",
        "consistency",
        "calibration_folds",
        "band_percentiles",
        "most_rows",
    }
)


def read_recipe(path: Path) -> Recipe:
    """Read a recipe.

    Raises
    ------
    InvalidInput
        Naming file, field, value and what is allowed.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(
            f"no recipe at {path}: give --recipe, or --weak and --strong with the names of two models in the outcomes"
        ) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from error
    return recipe_from_mapping(raw, str(path))


def recipe_of(
    recipe: Path | None,
    data: Sequence[Path],
    weak: Sequence[str],
    strong: Sequence[str],
    score_kinds: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> Recipe:
    """The recipe a command was asked for: ``--recipe``, by default the one in the first data folder, with the pair of models named instead.

    Raises
    ------
    InvalidInput
        One model of a pair is named without the other, or neither a pair nor a recipe can be found.
    """
    if weak or strong:
        if not (weak and strong):
            raise InvalidInput("--weak and --strong go together: name both models")
        pair = Pair(tuple(weak), tuple(strong), tuple(sources), tuple(score_kinds))
        base = read_recipe(recipe) if recipe is not None else Recipe((pair,))
        return replace(base, pairs=(pair,), title=f"{weak[0]} against {strong[0]}")
    path = recipe if recipe is not None else data[0] / RECIPE_NAME if data else None
    if path is None or (recipe is None and not path.is_file()):
        raise InvalidInput("no pair of models: give --weak and --strong with names that the outcomes have, or --recipe")
    found = read_recipe(path)
    if score_kinds or sources:
        pairs = (replace(p, sources=tuple(sources) or p.sources, score_kinds=tuple(score_kinds) or p.score_kinds) for p in found.pairs)
        found = replace(found, pairs=tuple(pairs))
    return found


def recipe_from_mapping(raw: Mapping[str, Any], where: str) -> Recipe:
    """Check a recipe as parsed from TOML; see :func:`read_recipe`."""
    _known(where, raw, _FIELDS)
    pairs = raw.get("pair")
    if not isinstance(pairs, list) or not pairs:
        raise InvalidInput(f"{where} has no [[pair]]: at least one weak and strong model is needed")
    heads = raw.get("heads", {})
    _known(f"{where}: heads", heads, _HEADS)
    if "band_percentiles" in heads:
        heads = {**heads, "band_percentiles": tuple(heads["band_percentiles"])}
    goal = _number(where, "quality_goal", raw.get("quality_goal", 0.98), 1.0)
    return Recipe(
        pairs=tuple(_pair(f"{where}: pair {i + 1}", pair) for i, pair in enumerate(pairs)),
        parallel=tuple(_parallel(f"{where}: parallel {i + 1}", texts) for i, texts in enumerate(_tables(where, raw, "parallel"))),
        title=str(raw.get("title", "")),
        capabilities=tuple(_names(where, "capabilities", raw.get("capabilities", list(CAPABILITIES)))),
        encoder=_text(where, "encoder", raw.get("encoder", "fast")),
        encoder_prefix=_text(where, "encoder_prefix", raw["encoder_prefix"]) if "encoder_prefix" in raw else None,
        targets=_built(f"{where}: targets", TargetMapping, raw.get("targets", {})),
        budget=_built(f"{where}: budget", TextBudget, raw.get("budget", {})),
        heads=heads,
        quality_goal=goal,
        language_effects=_flag(where, "language_effects", raw.get("language_effects", True)),
        guarantee=_built(f"{where}: guarantee", GuaranteeOptions, raw["guarantee"]) if "guarantee" in raw else None,
        changed_prompts=int(_number(where, "changed_prompts", raw.get("changed_prompts", 0), 1e5)),
        seed=int(_number(where, "seed", raw.get("seed", 0), 2**31)),
    )


def _pair(where: str, raw: Mapping[str, Any]) -> Pair:
    _known(where, raw, set(Pair.__dataclass_fields__))
    for key in ("weak", "strong"):
        if key not in raw:
            raise InvalidInput(f"{where} has no {key!r}: the name of a model, or a list of its names")
    return Pair(
        weak=tuple(_names(where, "weak", raw["weak"])),
        strong=tuple(_names(where, "strong", raw["strong"])),
        sources=tuple(_names(where, "sources", raw.get("sources", []), empty=True)),
        score_kinds=tuple(_names(where, "score_kinds", raw.get("score_kinds", []), empty=True)),
        bandwidth=_number(where, "bandwidth", raw.get("bandwidth", 0.0), 1.0),
        weight=_number(where, "weight", raw.get("weight", 1.0), 1e6),
        licence=str(raw.get("licence", "")),
    )


def _parallel(where: str, raw: Mapping[str, Any]) -> ParallelText:
    _known(where, raw, set(ParallelText.__dataclass_fields__))
    sources = tuple(_names(where, "sources", raw.get("sources", []), empty=True))
    file = _text(where, "file", raw.get("file", ""))
    if bool(sources) == bool(file):
        raise InvalidInput(f"{where} needs either sources, whose groups are translations, or a file")
    meanings = int(_number(where, "meanings", raw.get("meanings", 200), 1e6))
    if meanings < 2:
        raise InvalidInput(f"{where}: meanings is {meanings}: at least 2 were expected")
    return ParallelText(sources, file, meanings, str(raw.get("licence", "")))


def _tables(where: str, raw: Mapping[str, Any], key: str) -> list[Any]:
    found = raw.get(key, [])
    if not isinstance(found, list):
        raise InvalidInput(f"{where}: {key} is a {type(found).__name__}: tables [[{key}]] were expected")
    return found


def _names(where: str, key: str, value: object, *, empty: bool = False) -> Sequence[str]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names) or not (names or empty):
        raise InvalidInput(f"{where}: {key} is {value!r}: a name or a list of names was expected")
    return names


def _text(where: str, key: str, value: object) -> str:
    if not isinstance(value, str):
        raise InvalidInput(f"{where}: {key} is {value!r}: a text was expected")
    return value


def _flag(where: str, key: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{where}: {key} is {value!r}: true or false was expected")
    return value


def _number(where: str, key: str, value: object, high: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= high:
        raise InvalidInput(f"{where}: {key} is {value!r}: a number within [0, {high:g}] was expected")
    return float(value)


def _built(where: str, kind: type[_T], raw: Mapping[str, Any]) -> _T:
    _known(where, raw, set(kind.__dataclass_fields__))  # type: ignore[attr-defined]
    try:
        return kind(**raw)
    except TypeError as error:
        raise InvalidInput(f"{where}: {error}") from error


def _known(where: str, raw: object, allowed: set[str] | frozenset[str]) -> None:
    if not isinstance(raw, Mapping):
        raise InvalidInput(f"{where} is a {type(raw).__name__}, not a table")
    for key in raw:
        if key not in allowed:
            raise InvalidInput(f"{where}: {unknown_name('field', str(key), sorted(allowed))}")
