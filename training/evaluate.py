"""A router on real outcomes: quality, cost and calibration, per source, family and capability, with intervals and beside its baselines.

Everything here is a function of frames and arrays. Predictions come from :mod:`training.predictions`, whichever router or fold made them;
the choice at every tau is :func:`router.selection.cheapest_capable`, the rule that serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.types import Conversation
from training import metrics
from training.against_english import against_english
from training.baselines import Policy, baseline_policies
from training.bootstrap import MIN_ROWS, Estimate, Key, Statistic, estimate, resampling_units
from training.data_card import family_table, source_table
from training.decisions import decision_table
from training.engine import Engine
from training.pairs import ROW_COLUMNS
from training.parity import ParityOptions, parity_table
from training.predictions import Predictions, Route, predict_pair
from training.prompts import Conversations
from training.reliability import calibration_errors, reliability_bins
from training.slices import policy_statistics, slices_of, target_of
from training.sweep import curves, listed_taus
from training.worst import Explainer, worst_decisions

ROUTER: Final = "router"
METRICS: Final[Mapping[str, str]] = {
    "apgr": "APGR",
    "auc": "AUC of “strong adds value”",
    "ece": "ECE",
    "quality": "mean score",
    "quality_vs_strong": "quality / always-strong",
    "quality_retention": "quality retention (of the pair's best)",
    "cost_savings": "cost savings",
    "strong_share": "strong calls",
    "misroute": "misroute",
    "routing_accuracy": "routing accuracy",
}
"""Name and title of every metric."""
_NEEDED: Final = tuple(column for column in ROW_COLUMNS if column != "score_kind")


@dataclass(frozen=True, slots=True)
class EvaluationOptions:
    """How to evaluate: smallest gain that counts, resamples, seed, bins of the reliability table, rows below which nothing is reported."""

    margin: float = 0.0
    n_bootstrap: int = 1000
    seed: int = 0
    bins: int = metrics.DEFAULT_BINS
    min_rows: int = MIN_ROWS
    level: float = 0.95
    parity: ParityOptions = field(default_factory=ParityOptions)


@dataclass(frozen=True)
class EvaluationResult:
    """Tables of one evaluation.

    Attributes
    ----------
    about
        Models, router, data, options and the command, as plain data.
    estimates
        One row a (slice_kind, slice, policy, metric): value, low, high, n, n_groups, note. A missing value has its reason in ``note``.
    operating_points
        One row a tau: why it is listed, share of strong calls, quality, savings, misroute.
    curve
        Quality and savings of every ranking policy over the share of strong calls, and of the router over the sweep of tau.
    reliability, calibration
        Bins of the reliability diagrams and ECE of the router: pooled, per head, per family (:mod:`training.reliability`).
    against_english
        Difference of every family to English (:func:`training.against_english.against_english`).
    parity
        Equivalence of every family with the baseline (:func:`training.parity.parity_table`), by the test of ``options.parity``.
    gate
        Verdicts of a gate (:mod:`training.gate`); empty if there is none.
    data, families
        What was evaluated on, by source and by family (:mod:`training.data_card`).
    decisions
        One row a prompt (:func:`training.decisions.decision_table`), and ``worst``, the dearest of them (:mod:`training.worst`).
    rows
        The rows that were evaluated, texts included. They are in none of the tables above and no file.
    """

    about: Mapping[str, Any]
    estimates: pd.DataFrame
    operating_points: pd.DataFrame
    curve: pd.DataFrame
    reliability: pd.DataFrame
    calibration: pd.DataFrame
    against_english: pd.DataFrame
    parity: pd.DataFrame
    data: pd.DataFrame
    families: pd.DataFrame
    decisions: pd.DataFrame
    worst: pd.DataFrame
    rows: pd.DataFrame = field(repr=False)
    gate: pd.DataFrame = field(default_factory=pd.DataFrame)

    def with_about(self, **about: Any) -> EvaluationResult:
        """The result with more said about it (a command, a catalog, a date)."""
        return replace(self, about={**self.about, **about})

    def get(self, metric: str, policy: str = ROUTER, kind: str = "pooled", name: str = "all") -> Estimate:
        """One estimate."""
        found = self._by_name.get((kind, name, policy, metric))
        if found is None:
            raise InvalidInput(f"no {metric!r} of {policy!r} for {kind} {name!r} in this evaluation")
        return found

    @cached_property
    def _by_name(self) -> dict[tuple[str, str, str, str], Estimate]:
        found = {}
        for row in self.estimates.itertuples():
            value, low, high = (None if pd.isna(number) else float(number) for number in (row.value, row.low, row.high))
            key = (str(row.slice_kind), str(row.slice), str(row.policy), str(row.metric))
            found[key] = Estimate(value, low, high, int(row.n), int(row.n_groups), str(row.note))
        return found

    def slices(self, kind: str) -> list[str]:
        """Names of the slices of one kind, in order."""
        return list(dict.fromkeys(self.estimates.loc[self.estimates["slice_kind"] == kind, "slice"]))


def evaluate(
    route: Route | Sequence[Route],
    rows: pd.DataFrame,
    weak: str,
    strong: str,
    threshold: float,
    *,
    family_thresholds: Mapping[str, float] | None = None,
    fold: NDArray[np.integer] | None = None,
    training: pd.DataFrame | None = None,
    options: EvaluationOptions | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Callable[[Iterable[Conversation]], Iterable[Conversation]] = iter,
    engine: Engine | None = None,
) -> EvaluationResult:
    """Route every prompt of ``rows`` and measure.

    Parameters
    ----------
    route
        ``Router.route`` over a pool of the two models, or one a fold (then ``fold`` says which, shape (n,)).
    rows
        From :func:`training.pairs.pair_rows`, with costs and tokens.
    threshold
        tau at which the choice metrics are taken.
    family_thresholds
        tau of families, as the router reads them, that have their own.
    training
        Rows that the baselines may learn from; None lets them learn from ``rows``, which errs in their favour.
    engine
        Where prompts are routed; this process by default.
    """
    conversations = Conversations(rows)
    predictions = predict_pair(route, conversations, weak, strong, threshold, fold=fold, progress=progress, engine=engine)
    predictions = replace(predictions, family_thresholds=family_thresholds or {})
    explainer = Explainer([route] if callable(route) else list(route), conversations, weak, strong, fold)
    about = {"weak": weak, "strong": strong, **(about or {})}
    return evaluate_predictions(rows, predictions, training=training, options=options, about=about, explainer=explainer)


def evaluate_predictions(
    rows: pd.DataFrame,
    predictions: Predictions,
    *,
    training: pd.DataFrame | None = None,
    learned: Sequence[Policy] = (),
    options: EvaluationOptions | None = None,
    about: Mapping[str, Any] | None = None,
    explainer: Explainer | None = None,
) -> EvaluationResult:
    """Measure predictions that were made already, cross-validated ones for instance; see :func:`evaluate`.

    ``learned`` are further policies on the same rows, which did not learn from them (:mod:`training.learned_baselines`).

    An optional column ``target`` in ``rows`` is what the requirement is meant to predict (for ECE); without it, whether the strong model
    adds value. Without an ``explainer`` the worst decisions come without the router's reasons.
    """
    options = options or EvaluationOptions()
    rows = _checked(rows, predictions)
    chosen = predictions.decided()
    probability = predictions.probability(rows["capability"].tolist())
    router = Policy(ROUTER, predictions.need, chosen, probability)
    simple = baseline_policies(rows, training, margin=options.margin)
    baselines = [_at_share(policy, float(chosen.mean())) for policy in (*simple, *learned)]
    return EvaluationResult(
        about={**_about(rows, predictions, training, options), **(about or {})},
        estimates=_estimates(rows, [router, *baselines], options),
        operating_points=_operating_points(rows, predictions, options),
        curve=curves(rows, predictions, ROUTER, baselines),
        reliability=reliability_bins(rows, predictions, options),
        calibration=calibration_errors(rows, predictions, options),
        against_english=against_english(rows, router, options),
        parity=parity_table(rows, chosen, probability, target_of(rows, options.margin), options.parity),
        data=source_table(rows),
        families=family_table(rows),
        decisions=decision_table(rows, predictions, options.margin),
        worst=worst_decisions(rows, predictions, margin=options.margin, explainer=explainer),
        rows=rows,
    )


def _checked(rows: pd.DataFrame, predictions: Predictions) -> pd.DataFrame:
    missing = [column for column in _NEEDED if column not in rows]
    if missing:
        raise InvalidInput(f"the evaluation rows lack column {missing[0]!r}: {', '.join(_NEEDED)} are needed")
    if rows.empty:
        raise InvalidInput("there is no prompt that both models answered: nothing to evaluate")
    if len(rows) != len(predictions.shortfall):
        raise InvalidInput(f"{len(predictions.shortfall)} predictions for {len(rows)} prompts: one each is needed")
    return rows.reset_index(drop=True)


def _at_share(policy: Policy, share: float) -> Policy:
    if policy.chosen is not None or policy.need is None:
        return policy
    return Policy(policy.name, policy.need, metrics.choose_share(policy.need, share), policy.probability)


def _estimates(rows: pd.DataFrame, policies: Sequence[Policy], options: EvaluationOptions) -> pd.DataFrame:
    records = []
    for kind, name, members in slices_of(rows):
        part = rows.iloc[members]
        group, n_groups = resampling_units(part["group"]), int(part["group"].nunique())
        statistics = {
            (p.name, metric): s for p in policies for metric, s in policy_statistics(part, p, members, group, options.margin, options.bins)
        }
        found = _estimated(statistics, group, options)
        records += [
            {"slice_kind": kind, "slice": name, "policy": p, "metric": m, **asdict(e), "n_groups": n_groups} for (p, m), e in found.items()
        ]
    return pd.DataFrame(records)


def _estimated(statistics: Mapping[Key, Statistic], group: NDArray[np.intp], options: EvaluationOptions) -> dict[Key, Estimate]:
    return estimate(statistics, group, n_bootstrap=options.n_bootstrap, seed=options.seed, level=options.level, min_rows=options.min_rows)


def _operating_points(rows: pd.DataFrame, predictions: Predictions, options: EvaluationOptions) -> pd.DataFrame:
    why = listed_taus(rows, predictions)
    group = resampling_units(rows["group"])
    records = []
    for tau in sorted(why):
        policy = Policy(ROUTER, chosen=predictions.decided() if tau == predictions.threshold else predictions.chosen(tau))
        statistics = dict(policy_statistics(rows, policy, np.arange(len(rows)), group, options.margin, options.bins))
        record: dict[str, Any] = {"tau": tau, "why": "; ".join(why[tau])}
        for name, value in _estimated(statistics, group, options).items():
            record |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high, f"{name}_note": value.note}
        records.append(record)
    return pd.DataFrame(records)


def _about(rows: pd.DataFrame, predictions: Predictions, training: pd.DataFrame | None, options: EvaluationOptions) -> dict[str, Any]:
    known = rows[["weak_cost_usd", "strong_cost_usd"]].notna().all(axis=1)
    return {
        "prompts": len(rows),
        "groups": int(rows["group"].nunique()),
        "languages": int(rows["language"].nunique()),
        "families": int(rows["family"].nunique()),
        "prompts_with_known_cost": int(known.sum()),
        "threshold": predictions.threshold,
        "family_thresholds": dict(predictions.family_thresholds),
        "capabilities": list(predictions.capabilities),
        "baselines_fitted_on": "the evaluated rows themselves, which errs in their favour"
        if training is None
        else f"{len(training)} training rows",
        "options": asdict(options),
    }
