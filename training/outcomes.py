"""The canonical outcome table (a score for each prompt, model and kind of score), and the pairs and pools fitted on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.tables import Table, optional, read_batches, refuse_duplicates, require_columns, require_text, shared_texts

REQUIRED: Final = ("source", "prompt_id", "model", "score_kind", "score")
KEY: Final = ["source", "prompt_id", "model", "score_kind"]
_ONE_SCORE: Final = "average repeated answers, or name judges apart"
PAIR_COLUMNS: Final = ("source", "prompt_id", "score_kind", "weak", "strong")


def load_outcomes(path: Path | str) -> pd.DataFrame:
    """Read the canonical outcome table from Parquet, JSONL, or the folder that holds ``outcomes`` as either.

    Returns
    -------
    pandas.DataFrame
        Columns ``source``, ``prompt_id``, ``model``, ``score_kind``, ``score`` (float64, in [0, 1]) and ``cost_usd`` (float64, USD for
        this one answer, NaN where unknown); further columns are kept behind them, but not those of a Parquet file of more than 50,000
        rows, which is read in batches.

    Raises
    ------
    InvalidInput
        One line that names file, line or row, column, value and what is allowed.
    """
    batches = read_batches(Path(path), "outcomes", (*REQUIRED, "cost_usd"))
    table = next(batches)
    first = check_outcomes(table, name=str(path))
    others = [check_outcomes(further, name=str(path)) for further in batches]
    if not others:
        return first
    frame = pd.concat([first, *others], ignore_index=True)
    frame = frame.assign(**{column: shared_texts(frame[column]) for column in KEY})
    refuse_duplicates(Table(frame, ((0, table.places[0][1], 1),)), KEY, _ONE_SCORE)
    return frame


def check_outcomes(table: Table, *, name: str = "outcomes") -> pd.DataFrame:
    """Check a table in the canonical format; see :func:`load_outcomes`."""
    require_columns(table.frame, name, REQUIRED)
    table = replace(table, frame=table.frame.assign(**{column: require_text(table, column) for column in KEY}))
    refuse_duplicates(table, KEY, _ONE_SCORE)
    frame = table.frame.copy()
    frame["score"] = _numbers(table, "score", highest=1.0)
    frame["cost_usd"] = _numbers(table, "cost_usd", highest=math.inf) if "cost_usd" in frame else math.nan
    return frame[[*REQUIRED, "cost_usd", *(column for column in frame.columns if column not in (*REQUIRED, "cost_usd"))]]


def match_prompts(outcomes: pd.DataFrame, prompts: pd.DataFrame) -> None:
    """Refuse outcomes of prompts that the prompt table does not have.

    Raises
    ------
    InvalidInput
        Naming the first such prompt and how many rows are concerned.
    """
    have = pd.MultiIndex.from_frame(prompts[["source", "prompt_id"]])
    orphan = ~pd.MultiIndex.from_frame(outcomes[["source", "prompt_id"]]).isin(have)
    if orphan.any():
        row = outcomes[orphan].iloc[0]
        what = f"prompt {row['prompt_id']!r} of source {row['source']!r}"
        raise InvalidInput(f"outcomes: {what} is not in the prompt table ({int(orphan.sum())} such rows); add the prompt or drop the rows")


def known_model(name: str, outcomes: pd.DataFrame) -> str:
    """The name as given, if the outcomes have that model.

    Raises
    ------
    InvalidInput
        With the closest names there are.
    """
    known = outcomes["model"].unique().tolist()
    if name in known:
        return name
    raise InvalidInput(unknown_name("model", name, sorted(known)))


def pair_scores(
    outcomes: pd.DataFrame,
    weak: str,
    strong: str,
    score_kind: str | Sequence[str] | None = None,
    *,
    sources: Sequence[str] | None = None,
    check_labels: bool = True,
) -> pd.DataFrame:
    """Scores of a weak and a strong model on the prompts both answered, each source by one kind of score for both.

    Parameters
    ----------
    outcomes
        Canonical outcome table.
    weak, strong
        Model names.
    score_kind
        Kinds of score (judges) to use, best first: a source takes the first that both models have, and is left out if both have none of
        them. None takes the only one both have.
    sources
        Sources to use; by default all in which both models were scored.
    check_labels
        Refuse pairs from which nothing can be learned.

    Returns
    -------
    pandas.DataFrame
        Columns ``source``, ``prompt_id``, ``score_kind``, ``weak``, ``strong``; scores in [0, 1]; one row a prompt.

    Raises
    ------
    InvalidInput
        Unknown model, source or kind; a source with several kinds in common and none named; no prompt in common; or, with
        ``check_labels``, a strong model that is better on no prompt, or on every one.
    """
    for name in (weak, strong):
        known_model(name, outcomes)
    if weak == strong:
        raise InvalidInput(f"weak and strong are the same model, {weak!r}; name two")
    rows = _of_sources(outcomes, sources)
    rows = rows[rows["model"].isin([weak, strong])]
    wanted = _wanted_kinds(score_kind, rows)
    parts = [_source_pairs(str(source), part, weak, strong, wanted) for source, part in rows.groupby("source", sort=True)]
    pairs = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(PAIR_COLUMNS))
    if pairs.empty:
        raise InvalidInput(_nothing_shared(rows, weak, strong))
    if check_labels:
        require_two_classes(pairs, weak, strong)
    return pairs


def require_two_classes(pairs: pd.DataFrame, weak: str = "weak", strong: str = "strong") -> None:
    """Refuse pairs in which the strong model is better everywhere or nowhere: there is nothing to tell apart.

    Raises
    ------
    InvalidInput
        Saying which, on how many prompts.
    """
    better = pairs["strong"].to_numpy() > pairs["weak"].to_numpy()
    if better.all() or not better.any():
        how = "better than" if better.all() else "never better than"
        where = "on all" if better.all() else "on any of"
        raise InvalidInput(
            f"one class only: {strong!r} is {how} {weak!r} {where} {len(pairs)} prompts, so no router can be learned; "
            "use more prompts, another kind of score, or another pair"
        )


def pool_scores(
    outcomes: pd.DataFrame,
    source: str,
    score_kind: str | None = None,
    *,
    models: Sequence[str] | None = None,
    complete: bool = True,
) -> pd.DataFrame:
    """Scores of many models on the prompts of one source.

    Parameters
    ----------
    outcomes
        Canonical outcome table.
    source
        Source to read.
    score_kind
        Kind of score; needed where the source has several.
    models
        Models to keep, in this order; by default all, sorted by name.
    complete
        Keep only prompts that every kept model has a score for; otherwise a missing score is NaN.

    Returns
    -------
    pandas.DataFrame
        Index ``prompt_id``, one column a model, scores in [0, 1].

    Raises
    ------
    InvalidInput
        Unknown source, kind or model; several kinds and none named; no prompt that all models have.
    """
    rows = _of_sources(outcomes, [source])
    kinds = sorted(rows["score_kind"].unique())
    if score_kind is None and len(kinds) > 1:
        raise InvalidInput(f"source {source!r} has {len(kinds)} kinds of score ({', '.join(kinds)}); name one")
    if score_kind is not None and score_kind not in kinds:
        raise InvalidInput(f"source {source!r}: {unknown_name('score_kind', score_kind, kinds)}")
    rows = rows[rows["score_kind"] == (score_kind or kinds[0])]
    for name in models or ():
        known_model(name, rows)
    table = rows.pivot(index="prompt_id", columns="model", values="score").rename_axis(columns=None)
    table = table[list(models)] if models is not None else table
    kept = table.dropna() if complete else table.dropna(how="all")
    if kept.empty:
        raise InvalidInput(f"source {source!r}: no prompt was answered by all {table.shape[1]} models; name fewer models or allow gaps")
    return kept


def _numbers(table: Table, column: str, *, highest: float) -> pd.Series[Any]:
    """A column of finite numbers in [0, highest]; only ``cost_usd`` may be missing."""
    values = table.frame[column]
    numbers = pd.to_numeric(values, errors="coerce").astype("float64")
    if not pd.api.types.is_numeric_dtype(values) or pd.api.types.is_bool_dtype(values):
        # A number in quotes, or true, is a mistake and not a number.
        numbers[[isinstance(value, str | bool | np.bool_) for value in values]] = math.nan
    wrong = ~(np.isfinite(numbers) & numbers.between(0.0, highest))
    if column != "score":
        wrong &= optional(table.frame, column).notna()
    if wrong.any():
        row = int(wrong.to_numpy().argmax())
        allowed = "a number in [0, 1]" if highest == 1.0 else "a finite number from 0"
        key = ", ".join(str(table.frame[name].iloc[row]) for name in KEY)
        more = f" ({int(wrong.sum())} such rows)" if wrong.sum() > 1 else ""
        value = values.iloc[row]
        shown = repr(value.item() if isinstance(value, np.generic) else value)
        raise InvalidInput(f"{table.where(row)}: column {column!r} is {shown} for {key}; {allowed} is needed{more}")
    return numbers


def _of_sources(outcomes: pd.DataFrame, sources: Sequence[str] | None) -> pd.DataFrame:
    if sources is None:
        return outcomes
    known = outcomes["source"].unique().tolist()
    for source in sources:
        if source not in known:
            raise InvalidInput(unknown_name("source", source, sorted(known)))
    return outcomes[outcomes["source"].isin(list(sources))]


def _wanted_kinds(score_kind: str | Sequence[str] | None, rows: pd.DataFrame) -> tuple[str, ...] | None:
    if score_kind is None:
        return None
    wanted = (score_kind,) if isinstance(score_kind, str) else tuple(score_kind)
    known = rows["score_kind"].unique().tolist()
    for kind in wanted:
        if kind not in known:
            raise InvalidInput(f"of these two models, {unknown_name('score_kind', kind, sorted(known))}")
    return wanted


def _source_pairs(source: str, rows: pd.DataFrame, weak: str, strong: str, wanted: tuple[str, ...] | None) -> pd.DataFrame:
    tables = {}
    for kind, part in rows.groupby("score_kind", sort=True):
        table = part.pivot(index="prompt_id", columns="model", values="score")
        if {weak, strong} <= set(table.columns) and not (both := table[[weak, strong]].dropna()).empty:
            tables[str(kind)] = both
    kind = _choose_kind(source, tables, wanted)
    if kind is None:
        return pd.DataFrame(columns=list(PAIR_COLUMNS))
    pairs = tables[kind].rename(columns={weak: "weak", strong: "strong"}).rename_axis(columns=None).reset_index()
    return pairs.assign(source=source, score_kind=kind)[list(PAIR_COLUMNS)]


def _choose_kind(source: str, tables: dict[str, pd.DataFrame], wanted: tuple[str, ...] | None) -> str | None:
    if wanted is not None:
        return next((kind for kind in wanted if kind in tables), None)
    if len(tables) > 1:
        listed = ", ".join(f"{kind} ({len(table)} prompts)" for kind, table in tables.items())
        raise InvalidInput(f"source {source!r}: both models have {len(tables)} kinds of score, {listed}; name one (score_kind)")
    return next(iter(tables), None)


def _nothing_shared(rows: pd.DataFrame, weak: str, strong: str) -> str:
    def have(model: str) -> str:
        kinds = rows.loc[rows["model"] == model, ["source", "score_kind"]].drop_duplicates()
        listed = [f"{source}/{kind}" for source, kind in kinds.itertuples(index=False)]
        return ", ".join(listed[:5]) + (f" and {len(listed) - 5} more" if len(listed) > 5 else "") or "nothing"

    return f"{weak!r} and {strong!r} share no scored prompt: {weak!r} has {have(weak)}; {strong!r} has {have(strong)}"
