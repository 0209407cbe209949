"""Limits that labels must keep: read from ``audit.toml``, held against the figures, each with a verdict."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

import pandas as pd

from router.errors import InvalidInput
from router.nearest import unknown_name
from training.audit.measures import MEASURES, Limit

SCOPES: Final = ("overall", "family", "source")
VERDICTS: Final = ("fail", "not measurable", "warn", "pass")
_ENDS: Final = ("at_least", "at_most")
_ROUNDING: Final = 1e-12


@dataclass(frozen=True)
class Thresholds:
    """The user's limits by scope and measure.

    Parameters
    ----------
    limits
        Scope (``overall``, ``family``, ``source``) to measure to limit.
    not_measurable
        Whether a limit that nothing can be measured for fails the audit.
    """

    limits: Mapping[str, Mapping[str, Limit]] = field(default_factory=dict)
    not_measurable: Literal["fail", "pass"] = "fail"


def read_thresholds(path: Path) -> Thresholds:
    """Read limits from TOML.

    Raises
    ------
    InvalidInput
        In one line: no file, no TOML, an unknown scope or measure (with what was probably meant), a limit that is none.
    """
    try:
        raw = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InvalidInput(f"no thresholds at {path}: name a TOML file, or leave --thresholds out to be warned by the defaults") from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{path} cannot be read as TOML: {error}") from error
    return thresholds_from_mapping(raw, str(path))


def thresholds_from_mapping(raw: Mapping[str, Any], where: str) -> Thresholds:
    """Check limits as parsed from TOML; see :func:`read_thresholds`."""
    policy = raw.get("not_measurable", "fail")
    if policy not in ("fail", "pass"):
        raise InvalidInput(f'{where}: not_measurable is {policy!r}: "fail" or "pass" was expected')
    limits: dict[str, dict[str, Limit]] = {}
    for scope, table in raw.items():
        if scope == "not_measurable":
            continue
        if scope not in SCOPES:
            hint = f"; limits stand below a heading, such as [overall]: {scope}" if scope in MEASURES else ""
            raise InvalidInput(f"{where}: {unknown_name('table', scope, (*SCOPES, 'not_measurable'))}{hint}")
        if not isinstance(table, Mapping):
            raise InvalidInput(f"{where}: {scope} is {table!r}: a table of limits was expected")
        for name in table:
            if name not in MEASURES:
                raise InvalidInput(f"{where}: [{scope}]: {unknown_name('threshold', name, MEASURES)}")
        limits[scope] = {name: _limit(value, name, f"{where}: [{scope}]") for name, value in table.items()}
    if not any(limits.values()):
        raise InvalidInput(f"{where} sets no limit: at least one is needed, such as swap_consistency = 0.65 below [overall]")
    return Thresholds(limits, policy)


def _limit(value: Any, name: str, where: str) -> Limit:
    better = MEASURES[name].better
    if _is_number(value):
        if better == "between":
            raise InvalidInput(f"{where}: {name} is {value!r}: it has two ends, so {{at_least = ..., at_most = ...}} was expected")
        if better == "near" and value < 0:
            raise InvalidInput(f"{where}: {name} is {value!r}: how far from 0 it may lie was expected, a number from 0")
        return {"high": Limit(at_least=value), "low": Limit(at_most=value), "near": Limit(-value, value)}[better]
    if not isinstance(value, Mapping) or not value:
        raise InvalidInput(f"{where}: {name} is {value!r}: a number, or {{at_least = ..., at_most = ...}}, was expected")
    for end, number in value.items():
        if end not in _ENDS:
            raise InvalidInput(f"{where}: {name}: {unknown_name('end', end, _ENDS)}")
        if not _is_number(number):
            raise InvalidInput(f"{where}: {name}: {end} is {number!r}: a finite number was expected")
    limit = Limit(**value)
    if limit.at_least is not None and limit.at_most is not None and limit.at_least > limit.at_most:
        raise InvalidInput(f"{where}: {name}: at_least {limit.at_least:g} is above at_most {limit.at_most:g}: nothing would pass")
    return limit


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def judge_thresholds(estimates: pd.DataFrame, thresholds: Thresholds | None) -> list[dict[str, Any]]:
    """Verdict of every limit on every figure it applies to, those that need a look first.

    The user's limits pass or fail; where a measure has none overall, its default limit passes or warns. A limit that nothing could be
    measured for is ``not measurable``; ``fails`` says whether the audit fails by the row.
    """
    given = thresholds or Thresholds()
    rows: list[dict[str, Any]] = []
    for scope in SCOPES:
        for name, limit in given.limits.get(scope, {}).items():
            rows += _judged(estimates, scope, name, limit, "file", strict=given.not_measurable == "fail")
    own = given.limits.get("overall", {})
    for name, measure in MEASURES.items():
        if measure.default is not None and name not in own:
            rows += _judged(estimates, "overall", name, measure.default, "default", strict=False)
    return sorted(rows, key=lambda row: (VERDICTS.index(row["verdict"]), SCOPES.index(row["scope"])))


def _judged(estimates: pd.DataFrame, scope: str, name: str, limit: Limit, origin: str, *, strict: bool) -> list[dict[str, Any]]:
    mine = estimates[estimates["measure"] == name]
    found = mine[mine["slice_kind"] == ("all" if scope == "overall" else scope)]
    if scope == "overall" and not found["value"].notna().any() and len(mine[mine["slice_kind"] == "source"]):
        found = mine[mine["slice_kind"] == "source"]  # a measure that is taken source by source
    measured = bool(found["value"].notna().any())
    rows = [_verdict(row, scope, limit, origin) for row in found.to_dict("records")]
    if not rows:
        note = f"not measurable: it is not taken by {scope}" if scope != "overall" else "not measurable: there is nothing to take it from"
        rows = [_verdict({"measure": name, "subject": "", "slice": "all", "note": note}, scope, limit, origin)]
    for row in rows:
        row["fails"] = row["verdict"] == "fail" or (strict and row["verdict"] == "not measurable" and not measured)
    return rows


def _verdict(row: Mapping[str, Any], scope: str, limit: Limit, origin: str) -> dict[str, Any]:
    value, low, high = (None if row.get(key) is None or pd.isna(row[key]) else float(row[key]) for key in ("value", "low", "high"))
    note = str(row.get("note") or "")
    if value is None:
        verdict = "not measurable"
        note = note.removeprefix("not measurable: ").removeprefix("undefined: ")
    elif limit.allows(value) or limit.allows(value - _ROUNDING) or limit.allows(value + _ROUNDING):
        verdict = "pass"
    else:
        verdict = "fail" if origin == "file" else "warn"
    ends = [end for end in (low, high) if end is not None]
    if value is not None and ends and any(limit.allows(end) != limit.allows(value) for end in ends):
        note = "; ".join(filter(None, (note, "the limit is within the interval")))
    return {
        "scope": scope, "slice": row["slice"], "measure": row["measure"], "subject": row["subject"], "value": value, "low": low,
        "high": high, "at_least": limit.at_least, "at_most": limit.at_most, "limit_from": origin, "verdict": verdict, "note": note,
    }  # fmt: skip
