"""A router on real outcomes: quality, cost and calibration, per source, family and capability, with intervals and beside its baselines.

Everything here is a function of frames and arrays. Predictions come from :mod:`training.predictions`, whichever router or fold made them;
the choice at every tau is :func:`router.selection.cheapest_capable`, the rule that serves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from router.errors import InvalidInput
from router.types import Conversation
from training import metrics
from training.baselines import Policy, baseline_policies
from training.bootstrap import MIN_ROWS, Array, Estimate, Key, Statistic, estimate, group_index
from training.pairs import ROW_COLUMNS
from training.predictions import Predictions, Route, predict_pair
from training.prompts import to_conversations
from training.sweep import curves, listed_taus

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
}
"""Name and title of every metric."""
SLICES: Final = ("pooled", "source", "family", "capability")
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
    reliability
        Bins of the reliability diagram of the router, pooled.
    """

    about: Mapping[str, Any]
    estimates: pd.DataFrame
    operating_points: pd.DataFrame
    curve: pd.DataFrame
    reliability: pd.DataFrame
    data: pd.DataFrame = field(default_factory=pd.DataFrame)

    def with_about(self, **about: Any) -> EvaluationResult:
        """The result with more said about it (a command, a catalog, a date)."""
        return replace(self, about={**self.about, **about})

    def get(self, metric: str, policy: str = ROUTER, kind: str = "pooled", name: str = "all") -> Estimate:
        """One estimate."""
        table = self.estimates
        found = table[(table["metric"] == metric) & (table["policy"] == policy) & (table["slice_kind"] == kind) & (table["slice"] == name)]
        if len(found) != 1:
            raise InvalidInput(f"no {metric!r} of {policy!r} for {kind} {name!r} in this evaluation")
        row = found.iloc[0]
        value, low, high = (None if pd.isna(row[column]) else float(row[column]) for column in ("value", "low", "high"))
        return Estimate(value, low, high, int(row["n"]), int(row["n_groups"]), str(row["note"]))

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
    fold: NDArray[np.integer] | None = None,
    training: pd.DataFrame | None = None,
    options: EvaluationOptions | None = None,
    about: Mapping[str, Any] | None = None,
    progress: Callable[[Iterable[Conversation]], Iterable[Conversation]] = iter,
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
    training
        Rows that the baselines may learn from; None lets them learn from ``rows``, which errs in their favour.
    """
    predictions = predict_pair(route, to_conversations(rows), weak, strong, threshold, fold=fold, progress=progress)
    return evaluate_predictions(
        rows, predictions, training=training, options=options, about={"weak": weak, "strong": strong, **(about or {})}
    )


def evaluate_predictions(
    rows: pd.DataFrame,
    predictions: Predictions,
    *,
    training: pd.DataFrame | None = None,
    learned: Sequence[Policy] = (),
    options: EvaluationOptions | None = None,
    about: Mapping[str, Any] | None = None,
) -> EvaluationResult:
    """Measure predictions that were made already, cross-validated ones for instance; see :func:`evaluate`.

    ``learned`` are further policies on the same rows, which did not learn from them (:mod:`training.learned_baselines`).

    An optional column ``target`` in ``rows`` is what the requirement is meant to predict (for ECE); without it, whether the strong model
    adds value.
    """
    options = options or EvaluationOptions()
    rows = _checked(rows, predictions)
    chosen = predictions.chosen(predictions.threshold)
    router = Policy(ROUTER, predictions.need, chosen, predictions.probability(rows["capability"].tolist()))
    simple = baseline_policies(rows, training, margin=options.margin)
    baselines = [_at_share(policy, float(chosen.mean())) for policy in (*simple, *learned)]
    return EvaluationResult(
        about={**_about(rows, predictions, training, options), **(about or {})},
        estimates=_estimates(rows, [router, *baselines], options),
        operating_points=_operating_points(rows, predictions, options),
        curve=curves(rows, predictions, ROUTER, baselines),
        reliability=pd.DataFrame(
            [asdict(row) for row in metrics.reliability(_probability(router), _target(rows, options.margin), options.bins)]
        ),
        data=_data_table(rows),
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


def slices_of(rows: pd.DataFrame) -> Iterator[tuple[str, str, NDArray[np.intp]]]:
    """Kind, name and row numbers of every slice: all, all but English, then each source, family and capability."""
    everything = np.arange(len(rows))
    yield "pooled", "all", everything
    other = everything[(rows["family"] != "English").to_numpy()]
    if 0 < other.size < everything.size:
        yield "pooled", "all but English", other
    for kind in SLICES[1:]:
        for name in sorted(rows[kind].astype(str).unique(), key=lambda n: (n != "English", n)):
            yield kind, name, everything[(rows[kind].astype(str) == name).to_numpy()]


def _estimates(rows: pd.DataFrame, policies: Sequence[Policy], options: EvaluationOptions) -> pd.DataFrame:
    records = []
    for kind, name, members in slices_of(rows):
        part = rows.iloc[members]
        group = group_index(part["group"])
        statistics = {
            (p.name, metric): s for p in policies for metric, s in _statistics(part, p, members, group, options.margin, options.bins)
        }
        found = _estimated(statistics, group, options)
        records += [{"slice_kind": kind, "slice": name, "policy": p, "metric": m, **asdict(e)} for (p, m), e in found.items()]
    return pd.DataFrame(records)


def _estimated(statistics: Mapping[Key, Statistic], group: NDArray[np.intp], options: EvaluationOptions) -> dict[Key, Estimate]:
    return estimate(statistics, group, n_bootstrap=options.n_bootstrap, seed=options.seed, level=options.level, min_rows=options.min_rows)


def _statistics(
    rows: pd.DataFrame, policy: Policy, members: NDArray[np.intp], group: NDArray[np.intp], margin: float, bins: int
) -> Iterator[tuple[str, Statistic]]:
    """The metrics of one policy on one slice, in the order of METRICS."""
    weak, strong = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
    if policy.need is not None:
        need = policy.need[members]
        yield "apgr", metrics.apgr_statistic(weak, strong, need, group)
        yield "auc", metrics.auc_statistic(metrics.adds_value(weak, strong, margin), need, group)
    if policy.probability is not None:
        yield "ece", metrics.ece_statistic(policy.probability[members], _target(rows, margin), group, bins)
    if policy.chosen is not None:
        chosen = policy.chosen[members]
        yield "quality", metrics.mean_statistic(metrics.quality_of(weak, strong, chosen), group)
        yield "quality_vs_strong", metrics.relative_quality_statistic(weak, strong, chosen, group)
        yield "quality_retention", metrics.retention_statistic(weak, strong, chosen, group)
        yield "cost_savings", metrics.savings_statistic(rows["weak_cost_usd"], rows["strong_cost_usd"], chosen, group)
        yield "strong_share", metrics.mean_statistic(chosen, group)
        yield "misroute", metrics.misroute_statistic(weak, strong, chosen, group, margin)


def _target(rows: pd.DataFrame, margin: float) -> Array:
    if "target" in rows:
        return np.asarray(rows["target"], dtype=np.float64)
    return metrics.adds_value(rows["weak"], rows["strong"], margin).astype(np.float64)


def _probability(policy: Policy) -> Array:
    assert policy.probability is not None
    return policy.probability


def _operating_points(rows: pd.DataFrame, predictions: Predictions, options: EvaluationOptions) -> pd.DataFrame:
    why = listed_taus(rows, predictions)
    group = group_index(rows["group"])
    records = []
    for tau in sorted(why):
        policy = Policy(ROUTER, chosen=predictions.chosen(tau))
        statistics = dict(_statistics(rows, policy, np.arange(len(rows)), group, options.margin, options.bins))
        record: dict[str, Any] = {"tau": tau, "why": "; ".join(why[tau])}
        for name, value in _estimated(statistics, group, options).items():
            record |= {name: value.value, f"{name}_low": value.low, f"{name}_high": value.high, f"{name}_note": value.note}
        records.append(record)
    return pd.DataFrame(records)


def _data_table(rows: pd.DataFrame) -> pd.DataFrame:
    """One row a source: prompts, groups, languages, families, kind of score and mean scores."""
    records = []
    for source, part in rows.groupby("source", sort=True):
        kinds = sorted(part["score_kind"].astype(str).unique()) if "score_kind" in part else []
        licences = sorted(part["licence"].dropna().astype(str).unique()) if "licence" in part else []
        records.append(
            {
                "source": source,
                "prompts": len(part),
                "groups": part["group"].nunique(),
                "languages": part["language"].nunique(),
                "families": part["family"].nunique(),
                "score_kind": ", ".join(kinds),
                "weak_mean": float(part["weak"].mean()),
                "strong_mean": float(part["strong"].mean()),
                "strong_adds_value": float((part["strong"] > part["weak"]).mean()),
                "licence": ", ".join(licences),
            }
        )
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
        "capabilities": list(predictions.capabilities),
        "baselines_fitted_on": "the evaluated rows themselves, which errs in their favour"
        if training is None
        else f"{len(training)} training rows",
        "options": asdict(options),
    }
