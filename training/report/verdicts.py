"""Parity and gate as the page and the console show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from training.evaluate import EvaluationResult
from training.parity import OUTCOMES, PARITY_TITLES
from training.report.cells import NO_NUMBER, missing


def parity_context(result: EvaluationResult) -> dict[str, Any]:
    """What the parity section needs: the test in words, and one row a family."""
    options = result.about["options"]["parity"]
    return {
        "parity_options": options,
        "parity_title": PARITY_TITLES[options["metric"]],
        "parity_rows": [
            {
                "family": row["family"],
                "n": int(row["n"]),
                "value": _percent(row["value"]),
                "difference": _percent(row["difference"], signed=True),
                "interval": "" if missing(row["low"]) else f"{_percent(row['low'], signed=True)} to {_percent(row['high'], signed=True)}",
                "outcome": row["outcome"],
                "note": row["note"],
            }
            for row in result.parity.to_dict("records")
        ],
        "parity_outcomes": {name: meaning for name, meaning in OUTCOMES.items() if name in set(result.parity["outcome"])},
    }


def gate_context(result: EvaluationResult) -> dict[str, Any]:
    """Rows of the gate's section; none without a gate."""
    rows = [{**row, "text": in_words(row)} for row in result.gate.to_dict("records")]
    return {"gate_rows": rows, "gate_open": all(row["verdict"] == "pass" for row in rows)}


def in_words(row: Mapping[str, Any]) -> str:
    """What a condition found: value, interval, note."""
    if missing(row["value"]):
        return str(row["note"])
    value = f"{row['value']:.3f}"
    between = "" if missing(row["low"]) or missing(row["high"]) else f" ({row['low']:.3f} to {row['high']:.3f})"
    return "; ".join(filter(None, (value + between, str(row["note"]))))


def _percent(value: Any, *, signed: bool = False) -> str:
    if missing(value):
        return NO_NUMBER
    text = f"{100 * value:{'+' if signed else ''}.1f}"
    return text.replace("-", "\N{MINUS SIGN}")
