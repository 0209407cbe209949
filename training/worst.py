"""The decisions that cost most, and what the router said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.decision import RoutingDecision
from router.types import Conversation
from training.bootstrap import Array
from training.metrics import quality_of
from training.predictions import Predictions, Route

N_WORST: Final = 50
QUALITY_LOST: Final = "quality lost"
MONEY_WASTED: Final = "money wasted"
_ABOUT: Final = ("source", "prompt_id", "language", "family", "capability", "weak", "strong")


@dataclass(frozen=True)
class Explainer:
    """Routes a prompt once more for the whole of its decision, so that only the few that are shown are ever kept.

    ``routes`` and ``fold`` are those of :func:`training.predictions.predict_pair`; their tau should be that of the predictions.
    """

    routes: Sequence[Route]
    conversations: Sequence[Conversation]
    weak: str
    strong: str
    fold: NDArray[np.integer] | None = None

    def decide(self, row: int) -> RoutingDecision:
        """The decision on the prompt of a row."""
        return self.routes[0 if self.fold is None else int(self.fold[row])](self.conversations[row])

    def explain(self, row: int, chosen: str) -> dict[str, Any]:
        """Confidence, reason, the weak model's shortfall by capability, and the least changes that would have altered the choice.

        ``chosen`` is the model that the evaluation counts; a router whose own tau says otherwise is quoted as such.
        """
        decision = self.decide(row)
        margin = decision.flip_margin
        taus = [flip.change for flip in (margin.shortfall_threshold_up, margin.shortfall_threshold_down) if flip is not None]
        flips = {name: flip.change for name, flip in margin.requirements.items() if flip is not None}
        nearest = min(flips, key=lambda name: abs(flips[name]), default=None)
        weak = next(candidate for candidate in decision.candidates if candidate.model == self.weak)
        agrees = decision.model == (self.strong if chosen == "strong" else self.weak)
        return {
            "confidence": decision.confidence,
            "reason": decision.reason if agrees else f"at its own threshold the router says: {decision.reason}",
            "flip_tau": min(taus, key=abs, default=None),
            "flip_capability": nearest,
            "flip_requirement": None if nearest is None else flips[nearest],
            **{f"shortfall:{name}": value for name, value in weak.shortfall_by_capability.items()},
        }


def worst_decisions(
    rows: pd.DataFrame, predictions: Predictions, *, margin: float = 0.0, explainer: Explainer | None = None, n: int = N_WORST
) -> pd.DataFrame:
    """Up to n rows: half of them the prompts that lost most quality, half those that wasted most money; worst first.

    Quality is lost where the other model scored higher, and its measure is by how much. Money is wasted where the strong model was called
    although the weak one scored above 0 and the strong one not more than ``margin`` better: the difference in cost. Among equals the
    decision furthest from tau comes first. Where one kind has fewer than its half, the other fills up.

    Returns
    -------
    pandas.DataFrame
        ``kind``, ``row`` (number in ``rows``), ids and slices, scores, ``chosen``, ``quality_lost``, ``money_wasted_usd``, ``need``,
        ``tau``, ``requirement:<capability>``, and with an explainer what :meth:`Explainer.explain` gives. No text.
    """
    chosen = predictions.decided()
    weak, strong = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
    lost = np.maximum(weak, strong) - quality_of(weak, strong, chosen)
    price = (rows["strong_cost_usd"] - rows["weak_cost_usd"]).to_numpy(dtype=float)
    wasted = np.where((chosen > 0) & (weak > 0) & (strong - weak <= margin) & (lost == 0) & (price > 0), price, 0.0)
    far = np.abs(np.where(np.isfinite(predictions.need), predictions.need, 1.0) - predictions.threshold)
    quality, money = _ranked(lost, far), _ranked(wasted, far)
    picked = [(QUALITY_LOST, row) for row in quality[: max(n // 2, n - len(money))]]
    picked += [(MONEY_WASTED, row) for row in money[: n - len(picked)]]
    records = []
    for kind, row in picked:
        model = "strong" if chosen[row] else "weak"
        record = {"kind": kind, "row": row, **rows.iloc[row][list(_ABOUT)].to_dict(), "chosen": model}
        record |= {"quality_lost": float(lost[row]), "money_wasted_usd": float(wasted[row])}
        record |= {"need": float(predictions.need[row]), "tau": predictions.threshold}
        record |= {f"requirement:{name}": float(value) for name, value in _requirements(predictions, row)}
        records.append(record | (explainer.explain(row, model) if explainer is not None else {}))
    return pd.DataFrame(records)


def _requirements(predictions: Predictions, row: int) -> list[tuple[str, float]]:
    return list(zip(predictions.capabilities, predictions.requirements[row], strict=True))


def _ranked(loss: Array, far: Array) -> list[int]:
    """Row numbers where something was lost: the greatest loss first, then the decision furthest from tau."""
    order = np.lexsort((-far, -np.round(loss, 12)))
    return [int(row) for row in order if loss[row] > 0]
