"""Catalog figures from outcomes one already has: mean scores per model and source, with their uncertainty.

A benchmark of a catalog entry is one number in [0, 1]. Where the outcomes of a model are at hand, prompt by prompt,
that number need not be looked up: :func:`source_scores` computes it with a standard error, and :func:`catalog_fragment`
writes it in the catalog's own form.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.outcomes import match_prompts
from training.tables import require_columns
from training.targets import CAPABILITY_OF_TASK

_OUTCOME_COLUMNS: Final = ("source", "prompt_id", "model", "score_kind", "score")
_PROMPT_COLUMNS: Final = ("source", "prompt_id", "task_kind")
_ROW_KEY: Final = ["source", "prompt_id", "model", "score_kind"]
_BENCHMARK_KEY: Final = ["source", "score_kind", "capability"]


@dataclass(frozen=True, slots=True)
class SourceScore:
    """How one model did on the prompts of one source that exercise one capability.

    Attributes
    ----------
    score
        Mean score, in [0, 1].
    standard_error
        Of the mean, in the unit of ``score``; infinite where there are fewer than two independent groups of prompts.
    n_prompts, n_groups
        Prompts averaged, and groups of them (translations of one task, questions about one document) that count as one
        observation each for the standard error.
    """

    model: str
    source: str
    score_kind: str
    capability: str
    score: float
    standard_error: float
    n_prompts: int
    n_groups: int

    @property
    def benchmark(self) -> str:
        """Name of the benchmark in a catalog."""
        return f"{self.source}/{self.score_kind}/{self.capability}"

    @property
    def provenance(self) -> str:
        """Value for the catalog's ``source`` field."""
        error = f"s.e. {self.standard_error:.3f}" if math.isfinite(self.standard_error) else "s.e. unknown"
        return f"computed from outcomes of {self.source} ({self.score_kind}), {self.n_prompts} prompts, {error}"


def source_scores(
    prompts: pd.DataFrame,
    outcomes: pd.DataFrame,
    *,
    models: Sequence[str] | None = None,
    sources: Sequence[str] | None = None,
    score_kinds: Sequence[str] | None = None,
    shared: bool = True,
) -> tuple[SourceScore, ...]:
    """Mean score and standard error for each (source, score kind, capability, model).

    Parameters
    ----------
    prompts
        Canonical prompt table. ``capability``, where given, is taken before ``task_kind``; ``group``, where given,
        clusters prompts.
    outcomes
        Canonical outcome table, one row a (source, prompt, model, score kind), scores in [0, 1].
    models, sources, score_kinds
        What to keep; everything by default.
    shared
        Average only over prompts that every kept model with outcomes of that source and score kind has answered, so
        that no model is flattered by having skipped the hard ones. Within a source, a model that answered nothing does
        not shrink the others' set.

    Raises
    ------
    InvalidInput
        If a table is empty or lacks a column, a name is unknown (the nearest ones are listed), a score is missing, not
        a number or outside [0, 1], a row stands twice, a prompt has no row or no known kind of task, or the models
        share no prompt.
    """
    kept = _kept(_checked_outcomes(outcomes), {"model": models, "source": sources, "score_kind": score_kinds})
    joined = _joined(_checked_prompts(prompts), kept)
    if shared:
        by_source = joined.groupby(["source", "score_kind"], sort=True)
        joined = pd.concat([_shared_prompts(key, part) for key, part in by_source])
    return tuple(_summary(key, part) for key, part in joined.groupby([*_BENCHMARK_KEY, "model"], sort=True))


def catalog_fragment(scores: Iterable[SourceScore], *, digits: int = 4) -> dict[str, Any]:
    """Entries for a catalog: ``capabilities`` (equal weights), ``benchmarks`` and ``models`` with their ``benchmarks``.

    Prices, endpoint and limits are still to be added to each model. Use the figures of one fragment for a whole pool:
    they compare with one another, not with published figures of other benchmarks.

    Raises
    ------
    InvalidInput
        If there is no score; a source has several score kinds for one capability (their scales differ: keep one); or a
        model lacks a benchmark that another one has, which would make the two incomparable.
    """
    rows = list(scores)
    if not rows:
        raise InvalidInput("there are no scores to write: source_scores found nothing for this choice")
    _one_scale(rows)
    _same_benchmarks(rows)
    capabilities: dict[str, dict[str, float]] = {}
    models: dict[str, dict[str, Any]] = {}
    for row in rows:
        capabilities.setdefault(row.capability, {})[row.benchmark] = 1.0
        entry = models.setdefault(row.model, {"benchmarks": {}})
        entry["benchmarks"][row.benchmark] = {"score": round(row.score, digits), "source": row.provenance}
    titles = {row.benchmark: f"{row.source}, {row.score_kind}, prompts for {row.capability}" for row in rows}
    benchmarks = {name: {"title": title} for name, title in titles.items()}
    return {"capabilities": capabilities, "benchmarks": benchmarks, "models": models}


def standard_error(values: NDArray[np.float64], groups: Sequence[str]) -> float:
    """Cluster-robust standard error of a mean.

    ``sqrt(G / (G - 1) * sum_g (sum_{i in g} (x_i - mean))^2) / n`` (Cameron and Miller 2015, "A practitioner's guide to
    cluster-robust inference", the intercept-only case); with every group of size one it is the usual ``s / sqrt(n)``.
    Infinite for fewer than two groups.

    Parameters
    ----------
    values
        Scores, shape (n,).
    groups
        Group of each score, n of them.
    """
    _, index = np.unique(np.asarray(groups, dtype=str), return_inverse=True)
    count = int(index.max(initial=-1)) + 1
    if count < 2:
        return math.inf
    sums = np.bincount(index, weights=values - values.mean(), minlength=count)
    return float(np.sqrt(count / (count - 1) * np.sum(sums**2)) / len(values))


def _checked_outcomes(outcomes: pd.DataFrame) -> pd.DataFrame:
    table = _with_columns("outcomes", outcomes, _OUTCOME_COLUMNS)
    score = pd.to_numeric(table["score"], errors="coerce").astype("float64")
    wrong = ~score.between(0.0, 1.0)  # also true for missing and non-numeric values
    if wrong.any():
        row = table[wrong].iloc[0]
        where = f"source {row['source']!r}, prompt {row['prompt_id']!r}, model {row['model']!r}"
        many = f"rescale or drop {int(wrong.sum())} such row(s)"
        raise InvalidInput(f"outcomes: score {row['score']!r} ({where}) is not a number in [0, 1]; {many}")
    table["score"] = score
    _no_row_twice("outcomes", table, _ROW_KEY)
    return table


def _checked_prompts(prompts: pd.DataFrame) -> pd.DataFrame:
    table = _with_columns("prompts", prompts, _PROMPT_COLUMNS, optional=("capability", "group"))
    _no_row_twice("prompts", table, ["source", "prompt_id"])
    return table


def _with_columns(name: str, table: pd.DataFrame, required: Sequence[str], optional: Sequence[str] = ()) -> pd.DataFrame:
    """A copy with the wanted columns only, keys as plain strings; the score keeps its type until it is checked."""
    require_columns(table, name, required)
    if table.empty:
        raise InvalidInput(f"{name}: the table has no rows")
    copy = table[[*required, *(column for column in optional if column in table.columns)]].copy()
    for column in copy.columns.difference(["score"]):
        copy[column] = copy[column].astype(object).where(copy[column].notna(), None)
        empty = copy[column].isna().to_numpy()
        if column in required and empty.any():
            raise InvalidInput(f"{name}: column {column!r} has an empty value in row {int(empty.argmax())}")
        copy[column] = copy[column].map(lambda value: value if value is None else str(value))
    return copy.reset_index(drop=True)


def _no_row_twice(name: str, table: pd.DataFrame, key: list[str]) -> None:
    twice = table.duplicated(key)
    if twice.any():
        row = table[twice].iloc[0]
        what = ", ".join(f"{column} {row[column]!r}" for column in key)
        raise InvalidInput(f"{name}: a row stands twice ({what}); keep one, or average repeated answers first")


def _kept(table: pd.DataFrame, choice: Mapping[str, Sequence[str] | None]) -> pd.DataFrame:
    keep = pd.Series(True, index=table.index)
    for column, wanted in choice.items():
        if wanted is not None:
            known = sorted(table[column].unique())
            for name in wanted:
                if name not in known:
                    raise InvalidInput(unknown_name(column, name, known))
            keep &= table[column].isin(list(wanted))
    if not keep.any():
        raise InvalidInput("outcomes: no row is left for this choice of models, sources and score kinds together")
    return table[keep]


def _joined(prompts: pd.DataFrame, outcomes: pd.DataFrame) -> pd.DataFrame:
    match_prompts(outcomes, prompts)
    joined = outcomes.merge(prompts, on=["source", "prompt_id"], how="left")
    kind = _filled(joined, "capability", "task_kind")
    unknown = kind[~kind.isin(list(CAPABILITY_OF_TASK))]
    if not unknown.empty:
        allowed = ", ".join(sorted(CAPABILITY_OF_TASK))
        given = f"task_kind {unknown.iloc[0]!r}"
        raise InvalidInput(f"prompts: {given} measures no known capability; allowed are {allowed}")
    joined["capability"] = kind.map(lambda name: CAPABILITY_OF_TASK[name])
    joined["group"] = _filled(joined, "group", "prompt_id")
    return joined


def _filled(table: pd.DataFrame, column: str, fallback: str) -> pd.Series[Any]:
    """An optional column, with another one in its place where it is empty or absent."""
    return table[column].where(table[column].notna(), table[fallback]) if column in table else table[fallback]


def _shared_prompts(key: Any, part: pd.DataFrame) -> pd.DataFrame:
    """The rows of prompts that all models of this source and score kind have answered."""
    n_models = part["model"].nunique()
    kept = part[part.groupby("prompt_id")["model"].transform("nunique") == n_models]
    if kept.empty:
        raise InvalidInput(
            f"source {key[0]!r} ({key[1]}): no prompt was answered by all {n_models} models; "
            "name fewer models, or pass shared=False to average what each has"
        )
    return kept


def _summary(key: Any, part: pd.DataFrame) -> SourceScore:
    source, score_kind, capability, model = key
    values = part["score"].to_numpy(dtype=np.float64)
    return SourceScore(
        model=model,
        source=source,
        score_kind=score_kind,
        capability=capability,
        score=float(values.mean()),
        standard_error=standard_error(values, part["group"].tolist()),
        n_prompts=len(values),
        n_groups=int(part["group"].nunique()),
    )


def _one_scale(rows: Sequence[SourceScore]) -> None:
    kinds: dict[tuple[str, str], set[str]] = {}
    for row in rows:
        kinds.setdefault((row.source, row.capability), set()).add(row.score_kind)
    for (source, capability), names in kinds.items():
        if len(names) > 1:
            found = f"source {source!r} has {len(names)} score kinds for {capability}: {', '.join(sorted(names))}"
            raise InvalidInput(f"{found}; their scales differ, so keep one (score_kinds)")


def _same_benchmarks(rows: Sequence[SourceScore]) -> None:
    have: dict[str, set[str]] = {}
    for row in rows:
        have.setdefault(row.model, set()).add(row.benchmark)
    needed = set().union(*have.values())
    for model, names in have.items():
        if lacking := sorted(needed - names):
            raise InvalidInput(
                f"model {model!r} has no outcomes for {lacking[0]}, which another model has: "
                "leave that source or one of the models out (they would not compare)"
            )
