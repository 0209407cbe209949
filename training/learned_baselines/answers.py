"""What all models of the outcome table scored on the rows of a pair: some routers learn from every model, not from two."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from training.bootstrap import Array
from training.outcomes import pool_scores

WEAK: Final = 0
STRONG: Final = 1


def answer_table(rows: pd.DataFrame, outcomes: pd.DataFrame, named: set[str] | frozenset[str] = frozenset()) -> Array:
    """Scores of every model on every row, shape (n, models): the weak model first, the strong one second, NaN where a model did not answer.

    Parameters
    ----------
    rows
        Columns ``source``, ``prompt_id``, ``score_kind``, ``weak`` and ``strong``. Only scores of a row's own kind are read.
    outcomes
        Canonical outcome table.
    named
        Names of the weak and the strong model, which are in the first two columns already.
    """
    parts = [rows[["weak", "strong"]].to_numpy(dtype=float)]
    others: dict[str, Array] = {}
    for (source, kind), part in rows.groupby(["source", "score_kind"], sort=True):
        scores = pool_scores(outcomes, str(source), str(kind), complete=False).reindex(part["prompt_id"])
        for model in scores.columns.difference(sorted(named)):
            column = others.setdefault(str(model), np.full(len(rows), np.nan))
            column[rows.index.get_indexer(part.index)] = scores[model].to_numpy(dtype=float)
    parts += [others[model][:, None] for model in sorted(others)]
    return np.concatenate(parts, axis=1)


def gains(scores: Array) -> Array:
    """Strong minus weak, shape (n,), of an answer table of shape (n, models).

    Raises
    ------
    InvalidInput
        If there are fewer than two models, or one of the two has no score on a row.
    """
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise InvalidInput(f"an answer table of shape {scores.shape}: a weak and a strong model are needed, one column each")
    delta = scores[:, STRONG] - scores[:, WEAK]
    if not np.isfinite(delta).all():
        raise InvalidInput(f"row {int(np.argmin(np.isfinite(delta)))} has no score of the weak or the strong model: both are needed")
    return np.asarray(delta, dtype=np.float64)
