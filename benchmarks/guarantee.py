"""Is the promise kept? ``python -m benchmarks.guarantee --data DIR --data data/sample --output runs/guarantee``.

The held-out predictions of `interlock evaluate --cv` on real outcomes are the population: its groups of prompts are drawn anew with
replacement, so that the true loss of every threshold is known. On each draw of calibration groups a threshold is chosen, by the guarantee
and by the naive rule (the laxest whose loss on those very rows is within the limit); a promise is broken where the true loss exceeds the
limit.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import binomtest

from router.files.encoders import load_encoder
from training.assemble import assemble, load_tables
from training.bootstrap import group_index
from training.embed import CachedEncoder
from training.guarantee import control, threshold_grid
from training.predictions import Predictions
from training.promise import GuaranteeOptions
from training.recipe import read_recipe
from training.risk import group_means
from training.train import cross_validate

Array = NDArray[np.float64]
EPSILONS: Final = (0.01, 0.02, 0.05)
DELTAS: Final = (0.05, 0.1)
SIZES: Final = (300, 1000, 2500)
RECIPE: Final = Path(__file__).parent / "recipes" / "haiku-sonnet.toml"


class Population:
    """Prompts with their need and scores, and the true loss of every threshold of the grid."""

    def __init__(self, decisions: pd.DataFrame, capabilities: tuple[str, ...]) -> None:
        self.rows = decisions.assign(group=decisions["group"].astype(str))
        self.need = decisions["need"].to_numpy(dtype=np.float64)
        self.capabilities = capabilities
        self.members = [np.asarray(part) for part in self.rows.groupby("group", sort=True).indices.values()]
        self.taus = threshold_grid(len(capabilities))
        group = group_index(self.rows["group"])
        delta = (self.rows["strong"] - self.rows["weak"]).to_numpy(dtype=np.float64)
        self.loss = np.array([group_means(delta * (self.need <= tau), group).mean() for tau in self.taus])
        self.weak_share = np.array([(self.need <= tau).mean() for tau in self.taus])

    def draw(self, groups: int, generator: np.random.Generator) -> tuple[pd.DataFrame, Predictions]:
        """Calibration rows of groups drawn with replacement; a group drawn twice is two groups."""
        picked = generator.integers(0, len(self.members), groups)
        index = np.concatenate([self.members[g] for g in picked])
        name = np.repeat(np.arange(groups), [len(self.members[g]) for g in picked]).astype(str)
        rows = self.rows.iloc[index].assign(group=name).reset_index(drop=True)
        need = self.need[index]
        requirements = np.repeat(need[:, None], len(self.capabilities), axis=1).clip(0, 1)
        return rows, Predictions(np.stack([need, np.zeros_like(need)], axis=1), requirements, self.capabilities, 0.0)

    def naive(self, rows: pd.DataFrame, need: Array, epsilon: float) -> float:
        """The laxest threshold of the grid whose loss on these rows is within the limit."""
        group = group_index(rows["group"])
        delta = (rows["strong"] - rows["weak"]).to_numpy(dtype=np.float64)
        within = [tau for tau in self.taus if group_means(delta * (need <= tau), group).mean() <= epsilon]
        return float(max(within, default=0.0))


def simulate(population: Population, repeats: int, seed: int) -> Iterator[dict[str, Any]]:
    """One record a size of the calibration set, epsilon, delta and method."""
    best = {epsilon: population.weak_share[population.loss <= epsilon].max(initial=0.0) for epsilon in EPSILONS}
    for groups in SIZES:
        for epsilon in EPSILONS:
            generator = np.random.default_rng([seed, groups, round(1000 * epsilon)])
            draws = [population.draw(groups, generator) for _ in range(repeats)]
            naive = [population.naive(rows, predictions.need, epsilon) for rows, predictions in draws]
            yield _record(population, groups, epsilon, None, naive, best[epsilon], kept=repeats)
            for delta in DELTAS:
                options = GuaranteeOptions(epsilon, delta)
                found = [control(rows, predictions, options).overall for rows, predictions in draws]
                taus = [promise.threshold if promise.kept else -1.0 for promise in found]
                yield _record(population, groups, epsilon, delta, taus, best[epsilon], kept=sum(promise.kept for promise in found))


def _record(
    population: Population, groups: int, epsilon: float, delta: float | None, taus: list[float], best: float, *, kept: int
) -> dict[str, Any]:
    at = np.searchsorted(population.taus, np.array(taus) + 1e-12, side="right") - 1
    promised = at >= 0
    broken = int((population.loss[at[promised]] > epsilon).sum())
    interval = binomtest(broken, len(taus)).proportion_ci(method="exact")
    weak_share = np.where(promised, population.weak_share[np.maximum(at, 0)], 0.0)
    return {
        "groups": groups,
        "epsilon": epsilon,
        "delta": delta,
        "method": "naive" if delta is None else "guarantee",
        "promises": kept,
        "broken": broken / len(taus),
        "low": float(interval.low),
        "high": float(interval.high),
        "weak_share": float(weak_share.mean()),
        "weak_share_if_truth_were_known": float(best),
    }


def plot(table: pd.DataFrame, path: Path) -> None:
    """How often each method breaks the limit, over the size of the calibration set."""
    with mpl.rc_context({"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}):
        figure = Figure(figsize=(7.2, 3.0), dpi=150, layout="constrained")
        panels = figure.subplots(1, len(EPSILONS), sharey=True)
        for axes, epsilon in zip(panels, EPSILONS, strict=True):
            for delta, colour in ((None, "#b4570b"), (0.05, "#1459b8"), (0.1, "#1d7a46")):
                part = table[(table["epsilon"] == epsilon) & (table["delta"].isna() if delta is None else table["delta"] == delta)]
                label = "naive" if delta is None else f"promised with {1 - delta:.0%}"
                error = [part["broken"] - part["low"], part["high"] - part["broken"]]
                axes.errorbar(part["groups"], part["broken"], error, fmt="o-", color=colour, capsize=2, markersize=4, label=label)
                if delta is not None:
                    axes.axhline(delta, color=colour, linestyle=":", linewidth=1)
            axes.set_xscale("log")
            axes.set_xticks(SIZES, [f"{size:,}" for size in SIZES])
            axes.set_xticks([], minor=True)
            axes.set_title(f"at most {epsilon:g} lost", fontsize=9)
            axes.set_xlabel("calibration groups")
        panels[0].set_ylabel("limit broken")
        panels[-1].legend(frameon=False, fontsize=7.5)
        FigureCanvasAgg(figure).print_png(str(path))  # type: ignore[no-untyped-call]


def main() -> None:
    """Print and write the table and its plot."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--repeats", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=Path("runs/guarantee"))
    arguments = parser.parse_args()
    plan = read_recipe(arguments.recipe)
    training = assemble(*load_tables(arguments.data), plan, arguments.data)
    result = cross_validate(training, CachedEncoder(load_encoder(plan.encoder, 1)), plan, say=lambda _: None)
    population = Population(result.decisions, plan.capabilities)
    print(f"{len(population.rows)} prompts of {len(population.members)} groups, {arguments.repeats} draws each", flush=True)
    records = []
    for record in simulate(population, arguments.repeats, arguments.seed):
        records.append(record)
        print(pd.DataFrame([record]).round(3).to_string(index=False, header=len(records) == 1), flush=True)
    arguments.output.mkdir(parents=True, exist_ok=True)
    (arguments.output / "guarantee.json").write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    plot(pd.DataFrame(records), arguments.output / "guarantee.png")


if __name__ == "__main__":
    main()
