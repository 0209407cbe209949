"""What a router decided on every prompt, as a table without any text: what two routers are compared by."""

from __future__ import annotations

from typing import Final

import pandas as pd

from training.predictions import Predictions
from training.slices import target_of

KEY: Final = ("pair", "source", "prompt_id")
"""Columns that say which row is which; ``pair`` is the number of the pair of models, where several were evaluated together."""
COLUMNS: Final = (
    *KEY, "language", "family", "capability", "group", "weak", "strong", "weak_cost_usd", "strong_cost_usd", "need", "requirement",
    "target", "chosen",
)  # fmt: skip


def decision_table(rows: pd.DataFrame, predictions: Predictions, margin: float = 0.0) -> pd.DataFrame:
    """One row a prompt, in the order of ``rows``.

    ``need`` is the weak model's shortfall, ``requirement`` that of the capability the prompt exercises, ``target`` what it should predict,
    ``chosen`` 1 where the strong model is called at the router's threshold. Costs in US dollars, NaN where unknown.
    """
    made = {
        "pair": rows["pair"].to_numpy() if "pair" in rows else 0,
        "need": predictions.need,
        "requirement": predictions.probability(rows["capability"].tolist()),
        "target": target_of(rows, margin),
        "chosen": predictions.decided().astype(int),
    }
    return rows.assign(**made)[list(COLUMNS)].reset_index(drop=True)
