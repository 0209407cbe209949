"""The two routers of a comparison: read from report folders, or evaluated now, and brought onto the same prompts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from router.errors import InvalidInput
from training.decisions import COLUMNS, KEY
from training.evaluate import EvaluationResult
from training.report.files import DECISIONS, RESULTS, RESULTS_FORMAT

_ABOUT: Final = ("router", "encoder", "command", "created", "warning", "weak", "strong", "threshold")


@dataclass(frozen=True)
class Side:
    """One router: what the user called it, its decisions (:func:`training.decisions.decision_table`), and what is known about it."""

    name: str
    decisions: pd.DataFrame
    about: Mapping[str, Any]

    @property
    def margin(self) -> float:
        """From which gain on the strong model adds value."""
        return float(self.about.get("margin", 0.0))


def side_of(name: str, result: EvaluationResult) -> Side:
    """An evaluation as a side."""
    return Side(name, result.decisions, _about(result.about))


def read_side(name: str, folder: Path) -> Side:
    """The side of a report folder of ``interlock evaluate``.

    Raises
    ------
    InvalidInput
        The folder holds no report, or one whose decisions are missing or damaged.
    """
    try:
        raw = json.loads((folder / RESULTS).read_text(encoding="utf-8"))
        version, about = raw["format"], raw["about"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{folder} holds no report that can be read ({RESULTS}: {error}): run interlock evaluate again") from error
    if version != RESULTS_FORMAT or not isinstance(about, dict):
        raise InvalidInput(f"{folder / RESULTS} has format {version!r}: {RESULTS_FORMAT} was expected; run interlock evaluate again")
    path = folder / DECISIONS
    if not path.is_file():
        raise InvalidInput(f"{folder} has no {DECISIONS}, so its prompts cannot be paired: run interlock evaluate again")
    try:
        table = pd.read_parquet(path)
    except Exception as error:
        raise InvalidInput(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return Side(name, _checked(table, path), _about(about))


def aligned(a: Side, b: Side, *, common: bool = False) -> tuple[Side, Side, list[str]]:
    """Both sides on the same rows in the same order, and notes on what had to be left out or joined.

    Groups that one report keeps apart and the other joins are joined. Where both count different costs, neither counts any; where heads
    were to predict different targets, both are held against whether the strong model adds value.

    Raises
    ------
    InvalidInput
        The prompts differ and ``common`` does not allow that, or the same prompt has other scores.
    """
    if a.margin != b.margin:
        raise InvalidInput(f"A counts gains above {a.margin:g} and B above {b.margin:g}: evaluate both with the same --margin")
    left, right = (side.decisions.set_index(list(KEY)).sort_index() for side in (a, b))
    notes: list[str] = []
    if not left.index.equals(right.index):
        shared = left.index.intersection(right.index).sort_values()
        _require_same(left.index, right.index, len(shared), common)
        notes.append(f"compared on the {len(shared):,} prompts that both have; A has {len(left):,} and B {len(right):,}")
        left, right = left.loc[shared], right.loc[shared]
    _require_scores(left, right)
    if not (left["group"] == right["group"]).all():
        joined = _joined(left["group"], right["group"])
        left, right = left.assign(group=joined), right.assign(group=joined)
        notes.append("the reports split the prompts into different groups; groups that share a prompt were joined")
    left, right = _same_costs(left, right, notes)
    left, right = _same_target(left, right, a.margin, notes)
    return replace(a, decisions=left.reset_index()), replace(b, decisions=right.reset_index()), notes


def _about(about: Mapping[str, Any]) -> dict[str, Any]:
    options = about.get("options")
    margin = options.get("margin", 0.0) if isinstance(options, dict) else 0.0
    return {key: about[key] for key in _ABOUT if key in about} | {"margin": margin}


def _checked(table: pd.DataFrame, path: Path) -> pd.DataFrame:
    missing = [column for column in COLUMNS if column not in table]
    if missing:
        raise InvalidInput(f"{path} lacks column {missing[0]!r}: run interlock evaluate again")
    if table.empty or table.duplicated(list(KEY)).any():
        raise InvalidInput(f"{path} is empty or has a prompt twice: run interlock evaluate again")
    numbers = table[["weak", "strong", "requirement", "target", "chosen"]]
    if not all(pd.api.types.is_numeric_dtype(kind) for kind in numbers.dtypes) or not np.isfinite(numbers.to_numpy(dtype=float)).all():
        raise InvalidInput(f"{path} has a score, requirement or choice that is not a finite number: run interlock evaluate again")
    return table


def _require_same(left: pd.MultiIndex, right: pd.MultiIndex, shared: int, common: bool) -> None:
    if shared == 0:
        raise InvalidInput("A and B share no prompt: evaluate both on the same data")
    if common:
        return
    only = left.difference(right) if len(left) > shared else right.difference(left)
    example = "/".join(map(str, only[0][1:]))
    raise InvalidInput(
        f"A and B are not on the same prompts: {len(left) - shared:,} are only in A and {len(right) - shared:,} only in B (such as "
        f"{example}); evaluate both on the same data, or compare the {shared:,} that both have with --common"
    )


def _require_scores(left: pd.DataFrame, right: pd.DataFrame) -> None:
    for column in ("weak", "strong"):
        other = ~np.isclose(left[column], right[column], atol=1e-9)
        if other.any():
            row = int(np.flatnonzero(other)[0])
            raise InvalidInput(
                f"{int(other.sum()):,} prompts have other scores in A than in B, such as {'/'.join(map(str, left.index[row][1:]))} with "
                f"{column} {left[column].iloc[row]:g} and {right[column].iloc[row]:g}: both reports must be of the same pair of models and "
                "kind of score"
            )


def _joined(a: pd.Series[Any], b: pd.Series[Any]) -> list[str]:
    """Groups so that two prompts are together where either report has them together."""
    left, names = pd.factorize(a.astype(str))
    right, others = pd.factorize(b.astype(str))
    size = len(names) + len(others)
    links = coo_array((np.ones(len(left)), (left, right + len(names))), shape=(size, size))
    return [f"joined {number}" for number in connected_components(links, directed=False)[1][left]]


def _same_costs(left: pd.DataFrame, right: pd.DataFrame, notes: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    columns = ["weak_cost_usd", "strong_cost_usd"]
    if np.allclose(left[columns].astype(float), right[columns].astype(float), rtol=1e-6, atol=0, equal_nan=True):
        return left, right
    notes.append("the reports count different costs, so savings are not compared: evaluate both with the same prices")
    unknown = dict.fromkeys(columns, np.nan)
    return left.assign(**unknown), right.assign(**unknown)


def _same_target(left: pd.DataFrame, right: pd.DataFrame, margin: float, notes: list[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
    if np.allclose(left["target"], right["target"], atol=1e-9):
        return left, right
    notes.append("the heads of A and B were to predict different targets; ECE of both is against whether the strong model adds value")
    gain = (left["strong"] - left["weak"] > margin).astype(float)
    return left.assign(target=gain), right.assign(target=gain)
