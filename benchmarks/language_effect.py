"""A task part that knows no language, and a language effect on top: what each of them gives.

``python -m benchmarks.language_effect --data DIR --data data/sample``

Translation into 28 languages is where languages truly differ: for some pairs of models Icelandic and Estonian need the strong one far more
often than Swedish or Thai. Cross-validated by source document, every prompt through ``Router.route``: the task part alone, the language
effect alone (the mean gain of each language on the training folds), and both; then the effect itself beside what was observed.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from router.files.encoders import load_encoder
from router.languages import family_of
from training import metrics
from training.assemble import TrainingRows, assemble, load_tables
from training.bootstrap import estimate, group_index
from training.embed import CachedEncoder
from training.recipe import Pair, Recipe, read_recipe
from training.split import group_folds
from training.train import cross_validate

PAIRS = (("CommandR7B", "CommandA", "judge_gemba_esa_gpt4.1"), ("Gemma-3-27B", "GPT-4.1", "judge_gemba_esa_commandA"))
FOLDS = 5
SHRINK = 20.0
_RECIPE = Path(__file__).parent / "recipes" / "wmt25-translation.toml"


def language_mean(rows: pd.DataFrame, fold: np.ndarray) -> np.ndarray:
    """Mean gain of every prompt's language on the other folds, drawn to the mean of all by twenty prompts."""
    gain = rows["strong"] - rows["weak"]
    need = np.zeros(len(rows))
    for number in np.unique(fold):
        seen = fold != number
        grouped = gain[seen].groupby(rows["language"][seen])
        mean = (grouped.sum() + SHRINK * gain[seen].mean()) / (grouped.size() + SHRINK)
        need[~seen] = rows["language"][~seen].map(mean).fillna(gain[seen].mean())
    return need


def routed_need(training: TrainingRows, plan: Recipe, encoder: CachedEncoder, effects: bool) -> np.ndarray:
    """Need of every prompt as a router says it that has not seen its document."""
    result = cross_validate(training, encoder, replace(plan, language_effects=effects), folds=FOLDS, say=lambda _: None)
    return np.asarray(result.decisions["need"], dtype=np.float64)


def main() -> None:
    """Print the ablation of each pair."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True, help="the outcome tables, and data/sample")
    arguments = parser.parse_args()
    prompts, outcomes = load_tables(arguments.data)
    encoder = CachedEncoder(load_encoder("fast", 1))
    for weak, strong, kind in PAIRS:
        plan = replace(read_recipe(_RECIPE), pairs=(Pair((weak,), (strong,), ("wmt25_genmt_doc",), (kind,)),))
        training = assemble(prompts, outcomes, plan, arguments.data)
        rows = training.rows
        fold = group_folds(training.groups, FOLDS, plan.seed, strata=rows["source"].to_numpy())
        task, both = (routed_need(training, plan, encoder, effects) for effects in (False, True))
        needs = {"task part alone": task, "language alone": language_mean(rows, fold), "task part and language effect": both}
        group = group_index(rows["group"])
        w, s = rows["weak"].to_numpy(dtype=float), rows["strong"].to_numpy(dtype=float)
        statistics = {name: metrics.apgr_statistic(w, s, need, group) for name, need in needs.items()}
        found = estimate(statistics, group, n_bootstrap=1000, seed=0)
        print(f"\n{weak} -> {strong}, {kind}: {len(rows)} prompts, {rows['group'].nunique()} documents")
        for name, value in found.items():
            print(f"  {name:32} APGR {value.value:.3f} ({value.low:.3f} to {value.high:.3f})")
        gain = pd.DataFrame({"language": rows["language"], "observed": s - w, "task": task, "both": both}).groupby("language").mean()
        gain.insert(0, "family", [family_of(str(name)) for name in gain.index])
        correlation = gain[["task", "both"]].corrwith(gain["observed"], method="spearman")
        said = ", ".join(f"{name} {value:.2f}" for name, value in correlation.items())
        print(f"  rank correlation of the languages' mean need with their mean gain: {said}")
        print(gain.sort_values("observed").round(3).to_string())


if __name__ == "__main__":
    main()
