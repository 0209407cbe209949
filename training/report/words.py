"""Operating points as sentences for people who pay the bill."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.evaluate import EvaluationResult
from training.report.cells import PER_CENT, missing


@dataclass(frozen=True, slots=True)
class Sentence:
    """What one threshold does."""

    tau: str
    text: str
    why: str
    own: bool


def sentences(result: EvaluationResult) -> list[Sentence]:
    """One sentence a threshold, from the strictest to the thriftiest; thresholds that decide alike are said once."""
    found: dict[tuple[float, float], Sentence] = {}
    for record in result.operating_points.to_dict("records"):
        own = record["tau"] == result.about["threshold"]
        key = (record["strong_share"], record["quality"])
        if own or key not in found:
            found[key] = Sentence(f"{record['tau']:.3f}", sentence(record), str(record["why"]), own)
    return list(found.values())


def sentence(record: Mapping[str, Any]) -> str:
    """What one operating point keeps, saves and sends, with intervals.

    ``record`` has ``quality_vs_strong``, ``cost_savings`` and ``strong_share``, each with ``_low``, ``_high`` and ``_note``.
    """
    if missing(record["strong_share"]):
        return f"no figures: {_reason(record, 'strong_share')}"
    return f"{_keeps(record)}, {_saves(record)}, sends {_share(record, 'strong_share')} of prompts to the strong model"


def _keeps(record: Mapping[str, Any]) -> str:
    if missing(record["quality_vs_strong"]):
        return f"quality against always-strong cannot be said ({_reason(record, 'quality_vs_strong')})"
    return f"keeps {_share(record, 'quality_vs_strong')} of the quality of always-strong"


def _saves(record: Mapping[str, Any]) -> str:
    value = record["cost_savings"]
    if missing(value):
        return f"what it saves cannot be said ({_reason(record, 'cost_savings')})"
    return f"costs {_share(record, 'cost_savings', -1)} more" if value < 0 else f"saves {_share(record, 'cost_savings')} of its cost"


def _share(record: Mapping[str, Any], metric: str, sign: int = 1) -> str:
    low, high = record[f"{metric}_low"], record[f"{metric}_high"]
    value = f"{100 * sign * record[metric]:.1f}{PER_CENT}"
    if missing(low) or missing(high):
        return value
    first, last = (f"{end:.1f}".replace("-", "−") for end in sorted((100 * sign * low, 100 * sign * high)))
    return value if first == last else f"{value} ({first} to {last})"


def _reason(record: Mapping[str, Any], metric: str) -> str:
    return str(record[f"{metric}_note"]).removeprefix("undefined: ")
