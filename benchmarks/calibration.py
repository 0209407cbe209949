"""Does a requirement mean what it says, and which calibration says it best: ``python -m benchmarks.calibration --data DIR``.

Five folds of groups, several times over. Every method is fitted on the held-out log-odds of the training folds and judged on the fold that
neither heads nor calibration have seen. ECE is that of the capability a prompt exercises; "heads" is the mean over the heads of the ECE on
all prompts, where nothing is required of a capability that is not exercised. "noise" is the ECE that a perfectly calibrated router would
have on as many rows. A family has rows enough to be held to a limit where the noise is at most half of it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from benchmarks.baselines.pools import FOLDS, POOLS, PoolData, load_pool
from training.bootstrap import Array
from training.consistency import ParallelRows
from training.fit import fit_calibration
from training.metrics import DEFAULT_BINS, apgr, expected_calibration_error
from training.reliability import expected_noise
from training.split import group_folds
from training.train import fit_estimator, parallel_inputs, unseen_translations

Map = Callable[[Array], Array]
Fit = Callable[[Array, Array], Map]
LIMITS: Final = {"all": 0.03, "family": 0.05}
"""What issue and report hold a router to."""


def logistic(columns: Callable[[Array], Array]) -> Fit:
    """Logistic regression on functions of the log-odds, on soft targets."""

    def fit(decision: Array, target: Array) -> Map:
        if np.ptp(target) == 0:
            return lambda new: np.full(len(new), target[0])
        x, weight = np.tile(columns(decision), (2, 1)), np.concatenate([target, 1 - target])
        label = np.repeat([1, 0], len(target))
        model = LogisticRegression(C=1e4, max_iter=1000).fit(x[weight > 0], label[weight > 0], sample_weight=weight[weight > 0])
        return lambda new: np.asarray(model.predict_proba(columns(new))[:, 1])

    return fit


def centred(rows_per_bin: int) -> Fit:
    """The router's own method, with other bins."""
    return lambda decision, target: fit_calibration(decision, target, rows_per_bin=rows_per_bin)


def isotonic_bins(decision: Array, target: Array) -> Map:
    """Isotonic regression on bins of 60 rows, pooled bins staying flat."""
    parts = np.array_split(np.argsort(decision, kind="stable"), int(np.clip(len(decision) // 60, 1, 24)))
    x, y, size = (np.array([of(part) for part in parts]) for of in (lambda p: decision[p].mean(), lambda p: target[p].mean(), len))
    y = IsotonicRegression().fit_transform(x, y, sample_weight=size)
    return lambda new: np.interp(new, x, y)


def isotonic_rows(decision: Array, target: Array) -> Map:
    """Isotonic regression on rows: a step function."""
    model = IsotonicRegression(out_of_bounds="clip").fit(decision, target)
    return lambda new: np.asarray(model.predict(new))


def none(decision: Array, target: Array) -> Map:
    """The heads as they are."""
    return lambda new: 1 / (1 + np.exp(-new))


def mean_of(*methods: Fit) -> Fit:
    """Mean of several methods."""

    def fit(decision: Array, target: Array) -> Map:
        maps = [method(decision, target) for method in methods]
        return lambda new: np.mean([one(new) for one in maps], axis=0)

    return fit


PLATT: Final = logistic(lambda d: d[:, None])
BETA: Final = logistic(lambda d: np.stack([-np.logaddexp(0, -d), np.logaddexp(0, d)], axis=1))
CHOSEN: Final = "centred isotonic, bins of 60"
METHODS: Final[Mapping[str, Fit]] = {
    "none": none,
    "Platt": PLATT,
    "beta": BETA,
    "isotonic on rows": isotonic_rows,
    "isotonic, bins of 60": isotonic_bins,
    "centred isotonic, bins of 30": centred(30),
    CHOSEN: centred(60),
    "centred isotonic, bins of 120": centred(120),
    "centred isotonic, bins of 240": centred(240),
    "mean of the chosen and Platt": mean_of(centred(60), PLATT),
}


def held_out(pool: PoolData, parallel: ParallelRows | None, seed: int) -> tuple[dict[str, Array], dict[str, Array]]:
    """Requirements of every prompt by every method, shape (n, K), and the lower ends of its bands, by heads and maps of the other folds."""
    training = pool.training
    fold = group_folds(training.groups, FOLDS, seed, strata=training.rows["source"].to_numpy())
    found = {name: np.empty(training.targets.shape) for name in METHODS}
    low = {name: np.zeros(training.targets.shape[1]) for name in METHODS}
    for number in range(FOLDS):
        learn, held = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        seen = unseen_translations(parallel, training, training.rows.iloc[held])
        estimator = fit_estimator(pool.inputs[learn], training.of(learn), pool.recipe, seen)
        predictor = estimator.predictor_
        inputs = pool.inputs[held]
        new = inputs if predictor.basis is None else np.concatenate([inputs, predictor.basis.expand(inputs)], axis=1)
        for k, head in enumerate(predictor.heads):
            decision = head.decision(new)
            for name, method in METHODS.items():
                calibrate = method(estimator.decisions_[:, k], training.targets[learn, k])
                found[name][held, k] = calibrate(decision)
                low[name][k] += np.percentile(calibrate(estimator.decisions_[:, k]), 1) / FOLDS
    return found, low


def compare(pool: PoolData, repeats: int) -> None:
    """Print a table of methods, and one of families for the chosen one."""
    parallel = parallel_inputs(pool.encoder, pool.training, pool.recipe)
    rows, exercised = pool.rows, pool.training.exercised.argmax(axis=1)
    weak, strong, need = (rows[name].to_numpy(dtype=float) for name in ("weak", "strong", "need"))
    runs = [held_out(pool, parallel, seed) for seed in range(repeats)]
    everything = np.arange(len(rows))

    print(f"\n{pool.name}: {len(rows)} prompts, {len(set(pool.training.groups))} groups, {repeats} times {FOLDS} folds")
    print(f"{'calibration':32} {'ECE':>6} {'sd':>6} {'heads':>6} {'APGR':>6} {'by source':>9}")
    for name in METHODS:
        found = [run[name] for run, _ in runs]
        ece = [expected_calibration_error(p[everything, exercised], need) for p in found]
        heads = [
            expected_calibration_error(p[:, k], pool.training.targets[:, k])
            for p in found
            for k in range(p.shape[1])
            if pool.training.targets[:, k].any()
        ]
        short = [np.maximum(0.0, p - low[name]).sum(axis=1) for p, (_, low) in zip(found, runs, strict=True)]
        sources = [np.mean([apgr(weak[part], strong[part], s[part]) for part in _sources(rows)]) for s in short]
        pooled = np.mean([apgr(weak, strong, s) for s in short])
        print(f"{name:32} {np.mean(ece):6.4f} {np.std(ece):6.4f} {np.mean(heads):6.4f} {pooled:6.4f} {np.mean(sources):9.4f}", flush=True)

    print(f"\n{'family':20} {'rows':>6} {'ECE':>6} {'noise':>6} {'limit':>6}  {CHOSEN}")
    for family in ("all", *rows["family"].value_counts().index):
        part = everything if family == "all" else np.flatnonzero((rows["family"] == family).to_numpy())
        own = [run[CHOSEN][part, exercised[part]] for run, _ in runs]
        error, noise = np.mean([expected_calibration_error(p, need[part]) for p in own]), expected_noise(own[0], need[part], DEFAULT_BINS)
        limit = LIMITS["all" if family == "all" else "family"]
        said = "too few rows to tell" if noise > limit / 2 else "within" if error <= limit else "above"
        print(f"{family:20} {len(part):6} {error:6.4f} {noise:6.4f} {limit:6.2f}  {said}", flush=True)


def _sources(rows: pd.DataFrame) -> list[np.ndarray[tuple[int], np.dtype[np.intp]]]:
    return [np.flatnonzero((rows["source"] == name).to_numpy()) for name in rows["source"].unique()]


def main() -> None:
    """Print both tables of every pool."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with prompts.parquet and outcomes.parquet; not needed for the sample alone")
    parser.add_argument("--pools", nargs="+", default=["haiku-sonnet", "sample"], help=f"any of {', '.join(POOLS)}")
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--most", type=int, default=4000, help="prompts a source at most, drawn by seed")
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    for name in arguments.pools:
        compare(load_pool(name, arguments.data, arguments.encoder, arguments.most), arguments.repeats)


if __name__ == "__main__":
    main()
