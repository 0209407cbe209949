"""Conditions that a router has to meet before it is let out, read from TOML and checked on an evaluation."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from router.errors import InvalidInput
from router.languages import FAMILIES
from router.nearest import unknown_name
from training.bootstrap import Estimate
from training.evaluate import METRICS, EvaluationResult
from training.parity import PARITY_TITLES, ParityOptions

Verdict = Literal["pass", "fail", "not measurable"]
FAILED: Final = 3
"""Exit code of a command whose gate is not passed."""
LIMITS: Final[Mapping[str, tuple[str, str]]] = {f"{metric}_{bound}": (metric, bound) for metric in METRICS for bound in ("min", "max")}
"""Name of every limit, its metric, and whether it is the least or the most that is allowed."""
GATE_COLUMNS: Final = ("where", "name", "condition", "value", "low", "high", "n", "verdict", "note")
_INCONCLUSIVE: Final = ("fail", "pass")


@dataclass(frozen=True)
class Gate:
    """What is asked of a router.

    Parameters
    ----------
    overall, family
        Limits by name (:data:`LIMITS`), on all prompts and on every family.
    families
        Families that must be there, with rows enough for every limit; an absent one fails.
    parity
        The equivalence test of every family against a baseline; None asks for none.
    inconclusive
        Whether a family whose parity could not be shown either way fails or passes. Too few rows to test count as inconclusive.
    """

    overall: Mapping[str, float] = field(default_factory=dict)
    family: Mapping[str, float] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    parity: ParityOptions | None = None
    inconclusive: str = "fail"


def read_gate(path: Path) -> Gate:
    """Read a gate.

    Raises
    ------
    InvalidInput
        Naming file, field, value and what is allowed.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"no gate at {path}: a TOML file with [overall], [family] or [parity] was expected") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from error
    _known(str(path), raw, ("overall", "family", "families", "parity"))
    parity = dict(_table(path, raw, "parity"))
    inconclusive = parity.pop("inconclusive", "fail")
    if inconclusive not in _INCONCLUSIVE:
        raise InvalidInput(f"{path}: inconclusive of parity is {inconclusive!r}: 'fail' or 'pass' was expected")
    _known(f"{path}: parity", parity, [option.name for option in fields(ParityOptions)])
    gate = Gate(
        overall=_limits(path, raw, "overall"),
        family=_limits(path, raw, "family"),
        families=_families(path, raw.get("families", [])),
        parity=ParityOptions(**parity) if "parity" in raw else None,
        inconclusive=inconclusive,
    )
    if not (gate.overall or gate.family or gate.families or gate.parity):
        raise InvalidInput(f"{path} asks for nothing: give it limits in [overall] or [family], families, or [parity]")
    return gate


def checked(result: EvaluationResult, gate: Gate) -> EvaluationResult:
    """The result with the gate's verdicts in ``gate``, one row a condition (columns :data:`GATE_COLUMNS`)."""
    conditions = [*_overall(result, gate), *_by_family(result, gate), *_parity(result, gate)]
    return replace(result, gate=pd.DataFrame(conditions, columns=list(GATE_COLUMNS)))


def passed(result: EvaluationResult) -> bool:
    """Whether no condition failed and every one that was set on all prompts or on a required family could be measured."""
    return not (result.gate["verdict"] != "pass").any()


def _overall(result: EvaluationResult, gate: Gate) -> Iterator[dict[str, Any]]:
    for name, limit in gate.overall.items():
        metric, bound = LIMITS[name]
        yield _limit("overall", "all", metric, bound, limit, result.get(metric))


def _by_family(result: EvaluationResult, gate: Gate) -> Iterator[dict[str, Any]]:
    there = result.slices("family")
    for family in gate.families:
        if family not in there:
            yield _condition("family", family, "is evaluated", "fail", note="no prompt of this family is in the evaluation")
    for name, limit in gate.family.items():
        metric, bound = LIMITS[name]
        for family in there:
            found = result.get(metric, kind="family", name=family)
            if found.value is not None or family in gate.families:
                yield _limit("family", family, metric, bound, limit, found)


def _limit(where: str, name: str, metric: str, bound: str, limit: float, found: Estimate) -> dict[str, Any]:
    condition = f"{METRICS[metric]} {'at least' if bound == 'min' else 'at most'} {limit:g}"
    if found.value is None:
        return _condition(where, name, condition, "not measurable", note=found.note, n=found.n)
    kept = found.value >= limit if bound == "min" else found.value <= limit
    return _condition(where, name, condition, "pass" if kept else "fail", found.value, found.low, found.high, found.n, found.note)


def _parity(result: EvaluationResult, gate: Gate) -> Iterator[dict[str, Any]]:
    if gate.parity is None:
        return
    condition = f"{PARITY_TITLES[gate.parity.metric]} within {gate.parity.margin:g} of {gate.parity.baseline}"
    rows = result.parity.to_dict("records")
    if not any(row["outcome"] not in ("baseline", "too few rows", "no baseline") for row in rows):
        reasons = {str(row["note"]) for row in rows if row["note"]} or {f"no family beside {gate.parity.baseline}"}
        yield _condition("parity", "every family", condition, "not measurable", note="; ".join(sorted(reasons)))
    for row in rows:
        if row["outcome"] == "baseline":
            continue
        open_ = row["outcome"] in ("inconclusive", "too few rows", "no baseline")
        fails = row["outcome"] == "different" or (open_ and gate.inconclusive == "fail")
        note = "; ".join(filter(None, (str(row["outcome"]), str(row["note"]))))
        verdict: Verdict = "fail" if fails else "pass"
        yield _condition("parity", row["family"], condition, verdict, row["difference"], row["low"], row["high"], int(row["n"]), note)


def _condition(
    where: str,
    name: str,
    condition: str,
    verdict: Verdict,
    value: float | None = None,
    low: float | None = None,
    high: float | None = None,
    n: int | None = None,
    note: str = "",
) -> dict[str, Any]:
    return dict(zip(GATE_COLUMNS, (where, name, condition, value, low, high, n, verdict, note), strict=True))


def _table(path: Path, raw: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = raw.get(key, {})
    if not isinstance(found, Mapping):
        raise InvalidInput(f"{path}: {key} is a {type(found).__name__}, not a table")
    return found


def _limits(path: Path, raw: Mapping[str, Any], key: str) -> dict[str, float]:
    limits = _table(path, raw, key)
    _known(f"{path}: {key}", limits, LIMITS)
    for name, value in limits.items():
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise InvalidInput(f"{path}: {key}: {name} is {value!r}: a number was expected")
    return {name: float(value) for name, value in limits.items()}


def _families(path: Path, raw: object) -> tuple[str, ...]:
    if not isinstance(raw, list):
        raise InvalidInput(f"{path}: families is {raw!r}: a list of language families was expected")
    for name in raw:
        if name not in FAMILIES:
            raise InvalidInput(f"{path}: families: {unknown_name('family', str(name), FAMILIES)}")
    return tuple(raw)


def _known(where: str, raw: Mapping[str, Any], allowed: Any) -> None:
    for key in raw:
        if key not in allowed:
            raise InvalidInput(f"{where}: {unknown_name('field', str(key), sorted(allowed))}")
