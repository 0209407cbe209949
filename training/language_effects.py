"""How much a language adds to the need, estimated with partial pooling on predictions for prompts that were not learned from.

Only sources in several languages say anything: elsewhere a language and its benchmark are one and the same. Within those, the need of a
prompt is its predicted one, times odds of its source, its family and its language. Families and languages are random effects whose variance
comes from the data (DerSimonian and Laird 1986), so that where languages differ by no more than chance they get no effect at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq

from router.language_effects import LanguageEffects

Array = NDArray[np.float64]
_EDGE: Final = 1e-4
_WIDEST: Final = 10.0
_SMALLEST: Final = 0.02
"""Log-odds below which an effect is not worth an entry."""


@dataclass(frozen=True)
class _Shift:
    """Log-odds by which a set of rows needs more than predicted, and the variance of that estimate."""

    value: float
    variance: float


def fit_language_effects(
    predicted: Array, need: Array, source: NDArray[np.object_], language: NDArray[np.object_], family: NDArray[np.object_], weight: Array
) -> LanguageEffects:
    """Effects of families and languages.

    Parameters
    ----------
    predicted, need
        Predicted requirement of the exercised capability and the observed need, shape (n,), within [0, 1].
    source, language, family, weight
        Of every row, shape (n,).

    Returns
    -------
    LanguageEffects
        Empty where no source has several languages, or they do not differ by more than chance.
    """
    table = pd.DataFrame({"source": source, "language": language, "family": family, "need": need, "weight": weight})
    inside = np.clip(predicted, _EDGE, 1 - _EDGE)
    table["offset"] = np.log(inside / (1 - inside))
    table = table[table.groupby("source")["language"].transform("nunique") > 1]
    if table.empty:
        return LanguageEffects()
    for _, part in table.groupby("source"):
        table.loc[part.index, "offset"] += _shift(part).value
    families = _pooled({str(name): _shift(part) for name, part in table.groupby("family")})
    table["offset"] += table["family"].map(families).astype(float)
    within = _pooled({str(name): _shift(part) for name, part in table.groupby("language")})
    of = table.groupby("language")["family"].first()
    languages = {name: families[str(of[name])] + effect for name, effect in within.items()}
    if all(abs(effect) < _SMALLEST for effect in (*languages.values(), *families.values())):
        return LanguageEffects()
    return LanguageEffects(_rounded(languages), _rounded(families))


def _shift(rows: pd.DataFrame) -> _Shift:
    """Maximum-likelihood log-odds to add to the offsets of some rows, and its variance from the spread of the rows."""
    offset, need = rows["offset"].to_numpy(), rows["need"].to_numpy()
    weight = rows["weight"].to_numpy() / rows["weight"].mean()
    # A row more on each side keeps a language that always or never needs the strong model finite (Agresti and Coull 1998, in spirit).
    prior = 0.5

    def excess(shift: float) -> float:
        at = 1 / (1 + np.exp(-(offset + shift)))
        return float(weight @ (need - at) + prior * (1 - 2 / (1 + np.exp(-shift))))

    value = float(brentq(excess, -_WIDEST, _WIDEST))
    at = 1 / (1 + np.exp(-(offset + value)))
    information = float(weight @ (at * (1 - at))) + prior / 2
    spread = float((weight**2) @ ((need - at) ** 2)) + prior / 2
    return _Shift(value, spread / information**2)


def _pooled(shifts: dict[str, _Shift]) -> dict[str, float]:
    """Random effects: each shift less their mean, shrunk by how much of it is chance."""
    value = np.array([shift.value for shift in shifts.values()])
    variance = np.array([shift.variance for shift in shifts.values()])
    precision = 1 / variance
    mean = float(precision @ value / precision.sum())
    heterogeneity = float(precision @ (value - mean) ** 2)
    scale = precision.sum() - (precision**2).sum() / precision.sum()
    between = max(0.0, (heterogeneity - (len(value) - 1)) / scale) if scale > 0 else 0.0
    mean = float((value / (variance + between)).sum() / (1 / (variance + between)).sum())
    return dict(zip(shifts, ((value - mean) * between / (between + variance)).tolist(), strict=True))


def _rounded(effects: dict[str, float]) -> dict[str, float]:
    return {name: round(effect, 4) for name, effect in sorted(effects.items())}
