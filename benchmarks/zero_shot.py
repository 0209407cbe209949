"""Agreement of a router with its English decision in families it never met.

``python -m benchmarks.zero_shot --data DIR --data data/sample --parallel FILE``

For every language family with prompts in FILE (as ``benchmarks.invariance`` reads it) a router is trained twice: on everything, and without
that family, neither labelled prompts nor translations. The agreement of the family's languages with English is compared.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from benchmarks.invariance import agreement_of, parallel_prompts
from router.files.artifacts import language_identifier
from router.files.encoders import load_encoder
from router.languages import family_of
from router.route import Router
from router.selection import RoutingPolicy
from training.agreement import LanguageAgreement
from training.assemble import TrainingRows, assemble, load_tables
from training.embed import CachedEncoder
from training.inputs import inputs_of
from training.pairs import pair_catalog
from training.recipe import Recipe, read_recipe
from training.train import add_language_effects, artifact_of, fit_estimator, parallel_inputs

RECIPE: Final = Path(__file__).parent / "recipes" / "haiku-sonnet.toml"


class Trainer:
    """Trains routers on all families but one, embedding every text once."""

    def __init__(self, training: TrainingRows, plan: Recipe) -> None:
        self.training, self.plan = training, plan
        self.encoder = CachedEncoder(load_encoder("fast", 1))
        self.inputs = inputs_of(self.encoder, training.conversations, plan.budget)
        self.parallel = parallel_inputs(self.encoder, training, plan)

    def without(self, family: str | None) -> Router:
        """A router that has met nothing of a family; None leaves nothing out."""
        learn = np.flatnonzero((self.training.rows["family"] != family).to_numpy())
        part, parallel = self.training.of(learn), self.parallel
        if parallel is not None and self.training.translations is not None:
            families = np.array([family_of(language) for language in self.training.translations.language])
            parallel = parallel.of(np.flatnonzero(families != family))
        estimator = fit_estimator(self.inputs[learn], part, self.plan, parallel)
        effects = add_language_effects(estimator, part, self.plan)
        artifact = artifact_of(estimator, self.encoder, self.plan, 0.1, effects)
        pool, _ = pair_catalog(None, "weak", "strong", artifact.capabilities)
        return Router(artifact, self.encoder, pool, RoutingPolicy(), language_identifier())


def mean_agreement(result: LanguageAgreement, family: str) -> pd.Series:
    """Mean over the languages of a family."""
    part = result.languages[result.languages["family"] == family]
    return part.filter(regex="^(correlation|agreement@)").mean()


def main() -> None:
    """Print, by family, agreement of the router that met it and of the one that did not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--parallel", type=Path, required=True)
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--output", type=Path, help="write the table as CSV")
    arguments = parser.parse_args()
    plan = read_recipe(arguments.recipe)
    trainer = Trainer(assemble(*load_tables(arguments.data), plan, arguments.data), plan)
    prompts, conversations = parallel_prompts(arguments.parallel)
    everything = agreement_of(trainer.without(None).route, prompts, conversations, {})
    rows = []
    for family in sorted(set(everything.languages["family"])):
        alone = mean_agreement(agreement_of(trainer.without(family).route, prompts, conversations, {}), family)
        met = mean_agreement(everything, family)
        rows.append({"family": family, "languages": int((everything.languages["family"] == family).sum())} | _side_by_side(met, alone))
        print(pd.DataFrame(rows[-1:]).round(3).to_string(index=False, header=len(rows) == 1), flush=True)
    table = pd.DataFrame(rows)
    numbers = table.drop(columns=["family", "languages"])
    print(pd.DataFrame({"mean": numbers.mean(), "least": numbers.min()}).round(3).to_string())
    if arguments.output:
        table.to_csv(arguments.output, index=False)


def _side_by_side(met: pd.Series, alone: pd.Series) -> dict[str, float]:
    change = {f"{name} change": float(alone[name] - met[name]) for name in met.index}
    return {f"{name}": float(met[name]) for name in met.index} | change


if __name__ == "__main__":
    main()
