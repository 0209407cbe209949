"""The worst decisions as rows of the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from training.evaluate import EvaluationResult
from training.prompts import to_conversations
from training.report.cells import missing
from training.report.texts import shortened, text_may_be_shown


@dataclass(frozen=True, slots=True)
class ExplainedDecision:
    """One costly decision in words; ``text`` is empty unless the prompt's text may be shown."""

    anchor: str
    kind: str
    source: str
    prompt_id: str
    about: str
    outcome: str
    requirements: tuple[tuple[str, str], ...]
    need: str
    said: tuple[str, ...]
    text: str


def explained_rows(result: EvaluationResult) -> list[ExplainedDecision]:
    """Every row of ``result.worst`` in words."""
    if result.worst.empty:
        return []
    texts = _texts(result)
    return [
        ExplainedDecision(
            anchor=f"worst-{i + 1}",
            kind=record["kind"],
            source=str(record["source"]),
            prompt_id=str(record["prompt_id"]),
            about=f"{record['language']}, {record['family']}; {record['capability']}",
            outcome=_outcome(record),
            requirements=tuple(_requirement(record, name) for name in result.about["capabilities"]),
            need=_need(record),
            said=_said(record),
            text=texts[i],
        )
        for i, record in enumerate(result.worst.to_dict("records"))
    ]


def _texts(result: EvaluationResult) -> list[str]:
    """Text of every worst prompt, empty where it may not be shown."""
    rows = result.rows.iloc[result.worst["row"].tolist()]
    allowed = [text_may_be_shown(row.get("licence"), row.get("author")) for row in rows.to_dict("records")]
    if "turns" not in rows or not any(allowed):
        return [""] * len(rows)
    conversations = to_conversations(rows)
    return [shortened("\n".join(c.user_texts)) if may else "" for c, may in zip(conversations, allowed, strict=True)]


def _outcome(record: Mapping[str, Any]) -> str:
    scores = f"weak scored {record['weak']:.2f}, strong {record['strong']:.2f}"
    if record["quality_lost"] > 0:
        return f"chose the {record['chosen']} model and lost {record['quality_lost']:.2f} of the score; {scores}"
    wasted = _dollars(1000 * record["money_wasted_usd"])
    return f"chose the strong model and paid {wasted} more a thousand prompts for no better answer; {scores}"


def _dollars(amount: float) -> str:
    return f"US$ {amount:,.2f}" if amount >= 1 else f"US$ {amount:.4f}" if amount >= 0.0001 else "less than US$ 0.0001"


def _requirement(record: Mapping[str, Any], capability: str) -> tuple[str, str]:
    text = f"{record[f'requirement:{capability}']:.2f}"
    short = record.get(f"shortfall:{capability}", 0.0)
    return capability, f"{text} (short by {short:.2f})" if short >= 0.005 else text


def _need(record: Mapping[str, Any]) -> str:
    if not math.isfinite(record["need"]):
        return f"a gate closed the weak model; τ\u00a0{record['tau']:.3f}"
    return f"the weak model falls short by {record['need']:.3f}; τ\u00a0{record['tau']:.3f}"


def _said(record: Mapping[str, Any]) -> tuple[str, ...]:
    """Confidence, reason and what would have changed the choice; empty where the router was not asked."""
    if missing(record.get("reason")):
        return ()
    flips = []
    if not missing(record["flip_tau"]):
        flips.append(f"τ {_moved(record['flip_tau'])}")
    if not missing(record["flip_capability"]):
        flips.append(f"{record['flip_capability']} {_moved(record['flip_requirement'])}")
    flip = f"would flip with {' or '.join(flips)}" if flips else "no single change of τ or of one requirement would flip it"
    return (f"It said: {record['reason']}", f"Confidence {record['confidence']:.0%}; {flip}")


def _moved(change: float) -> str:
    return f"{'up' if change >= 0 else 'down'} by {abs(change):.3f}"
