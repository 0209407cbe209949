"""What each step towards one decision in every language gives, and what it costs.

``python -m benchmarks.consistency --data DIR --data data/sample --parallel FILE``

Each variant of the heads is fitted on the recipe's prompts; its held-out predictions (folds of groups) give APGR and ECE, and the router
fitted on everything is asked the translated prompts of FILE, which it has not met. The figures are those of
``docs/decisions/0014-language-invariance.md``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks.invariance import SHARES, parallel_prompts
from benchmarks.projections import contrastive, distilled_to_english
from router.features import FEATURE_NAMES
from router.files.encoders import load_encoder
from router.languages import script_statistics
from router.selection import shortfalls
from router.text import classify_text
from training import metrics
from training.agreement import language_agreement
from training.assemble import TrainingRows, assemble, load_tables
from training.consistency import ParallelRows
from training.embed import CachedEncoder
from training.fit import RequirementsEstimator
from training.inputs import inputs_of
from training.recipe import Recipe, read_recipe
from training.train import parallel_inputs

Array = NDArray[np.float64]
Move = Callable[[Array, NDArray[np.object_]], Array]
RECIPE: Final = Path(__file__).parent / "recipes" / "haiku-sonnet.toml"


@dataclass(frozen=True)
class Variant:
    """A way to fit: parameters of the estimator, which translations it may learn from, and what happens to the embedding before."""

    name: str
    heads: Mapping[str, Any] = field(default_factory=dict)
    translations: str = "all"
    embedding: str = "as it is"
    trees_read_embedding: bool = False


VARIANTS: Final = (
    Variant("trees on embedding and columns", {"kind": "lightgbm"}, "none", trees_read_embedding=True),
    Variant("linear, columns and embedding", {"kind": "linear"}, "none"),
    Variant("the same, embedding centred by language", {"kind": "linear"}, "none", "centred by language"),
    Variant("the same, language directions projected out", {"kind": "linear"}, "none", "language directions out"),
    Variant("the same, distilled to English by ridge regression", {"kind": "linear"}, "none", "distilled to English"),
    Variant("the same, 64 directions trained contrastively", {"kind": "linear"}, "none", "trained contrastively"),
    Variant("the same, 16 between- against within-meaning directions", {"kind": "linear"}, "none", "16 directions of meaning"),
    Variant("linear, no embedding", {"kind": "linear"}, "none", "none"),
    Variant("linear, consistency 10", {"kind": "linear", "consistency": 10.0}),
    Variant("linear, consistency 100", {"kind": "linear", "consistency": 100.0}),
    Variant("linear, consistency 300", {"kind": "linear", "consistency": 300.0}),
    Variant("linear, consistency 1000", {"kind": "linear", "consistency": 1000.0}),
    Variant("linear, consistency 10000", {"kind": "linear", "consistency": 10000.0}),
    Variant("trees on the columns, no noise", {"kind": "lightgbm", "noise": 0.0}),
    Variant("trees on the columns, noise", {"kind": "lightgbm"}),
    Variant("blend, trees without noise", {"noise": 0.0}),
    Variant("blend, translations of our sample alone", {}, "ours"),
    Variant("blend, as shipped", {}),
    Variant("blend, consistency 1000", {"consistency": 1000.0}),
    Variant("blend, consistency 3000, noise 6", {"consistency": 3000.0, "noise": 6.0}),
)


class Bench:
    """Inputs of everything, made once."""

    def __init__(self, training: TrainingRows, plan: Recipe, parallel: Path) -> None:
        encoder = CachedEncoder(load_encoder("fast", 1))
        self.training, self.plan = training, plan
        self.width = encoder.spec.dimension
        self.inputs = inputs_of(encoder, training.conversations, plan.budget)
        self.languages = training.rows["language"].to_numpy(object)
        found = parallel_inputs(encoder, training, plan)
        if found is None or training.translations is None:
            raise SystemExit("the recipe names no parallel text")
        self.parallel, self.parallel_languages = found, training.translations.language
        self.prompts, conversations = parallel_prompts(parallel)
        self.asked = inputs_of(encoder, conversations, plan.budget)
        self.asked_languages = self.prompts["language"].to_numpy(object)
        statistics = [script_statistics(classify_text(conversation).words) for conversation in conversations]
        self.letters, self.digits = [s.latin_letters for s in statistics], [s.count("digit") for s in statistics]

    def measure(self, variant: Variant) -> dict[str, Any]:
        """Quality and agreement of one variant."""
        move = self._mover(variant.embedding)
        inputs = move(self.inputs, self.languages)
        parallel = self._translations(variant, move)
        embedded = 0 if variant.trees_read_embedding else inputs.shape[1] - len(FEATURE_NAMES)
        heads = {**self.plan.heads, **variant.heads}
        estimator = RequirementsEstimator(capabilities=self.plan.capabilities, n_embedding=embedded, **heads)
        rows, training = self.training.rows, self.training
        weight = rows["row_weight"].to_numpy(dtype=float)
        estimator.fit(inputs, training.targets, training.groups, weight, training.exercised, parallel)
        need = self._need(estimator, estimator.held_out_)
        own = estimator.held_out_[np.arange(len(rows)), training.exercised.argmax(axis=1)]
        asked = self._need(estimator, estimator.predict(move(self.asked, self.asked_languages)))
        return {
            "variant": variant.name,
            "APGR": metrics.apgr(rows["weak"], rows["strong"], need),
            "ECE": metrics.expected_calibration_error(own, rows["need"]),
            **self._agreement(asked),
        }

    def _need(self, estimator: RequirementsEstimator, requirements: Array) -> Array:
        weights = np.ones(requirements.shape[1])
        return np.asarray(shortfalls(requirements, estimator.bands_.low, weights).sum(axis=1), dtype=np.float64)

    def _agreement(self, need: Array) -> dict[str, float]:
        english = need[self.asked_languages == "en"]
        points = {f"{share:.0%}": float(np.quantile(english, 1 - share)) for share in SHARES}
        names = (self.prompts["group"].tolist(), self.prompts["language"].tolist())
        table = language_agreement(need, self.letters, *names, points, digits=self.digits).languages.set_index("language")
        return {
            "correlation": table["correlation"].mean(),
            "least": table["correlation"].min(),
            **{name: table[f"agreement@{name}"].mean() for name in points},
            "median": table["agreement@median"].mean(),
            "median, worst": table["agreement@median"].min(),
        }

    def _translations(self, variant: Variant, move: Move) -> ParallelRows | None:
        if variant.translations == "none":
            return None
        chosen = np.arange(len(self.parallel.meaning))
        if variant.translations == "ours":
            chosen = np.flatnonzero(self.parallel.source == "interlock_sample")
        rows = self.parallel.of(chosen)
        return ParallelRows(move(rows.inputs, self.parallel_languages[chosen]), rows.meaning, rows.source)

    def _mover(self, embedding: str) -> Move:
        vectors, width = self.parallel.inputs[:, : self.width], self.width
        if embedding == "as it is":
            return lambda x, _: x
        if embedding == "none":
            return lambda x, _: x[:, width:]
        means = {name: vectors[self.parallel_languages == name].mean(axis=0) for name in set(self.parallel_languages)}
        if embedding == "centred by language":
            middle = vectors.mean(axis=0)

            def centred(x: Array, languages: NDArray[np.object_]) -> Array:
                shift = np.stack([means.get(str(name).split("-")[0], middle) for name in languages])
                return np.concatenate([x[:, :width] - shift, x[:, width:]], axis=1)

            return centred
        if embedding == "language directions out":
            _, _, axes = np.linalg.svd(np.stack(list(means.values())) - vectors.mean(axis=0), full_matrices=False)
            out = np.eye(width) - axes[:32].T @ axes[:32]
            return lambda x, _: np.concatenate([x[:, :width] @ out, x[:, width:]], axis=1)
        meaning = [f"{source}/{name}" for source, name in zip(self.parallel.source, self.parallel.meaning, strict=True)]
        if embedding == "distilled to English":
            directions = distilled_to_english(vectors, meaning, self.parallel_languages)
        elif embedding == "trained contrastively":
            directions = contrastive(vectors, meaning, self.parallel_languages, 64)
        else:
            directions = self._directions(vectors, 16)
        return lambda x, _: np.concatenate([x[:, :width] @ directions, x[:, width:]], axis=1)

    def _directions(self, vectors: Array, count: int) -> Array:
        """Directions that vary most between meanings for what they vary within (a linear discriminant)."""
        within = self.parallel.covariance(vectors)
        within += 0.05 * np.eye(len(within)) * np.trace(within) / len(within)
        _, axes = eigh(np.cov(vectors.T) - within, within)
        return np.asarray(axes[:, ::-1][:, :count], dtype=np.float64)


def main() -> None:
    """Print a line a variant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, action="append", required=True)
    parser.add_argument("--parallel", type=Path, required=True)
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    parser.add_argument("--only", action="append", default=[], help="a part of the names of the variants wanted; may be repeated")
    parser.add_argument("--output", type=Path, help="write the table as CSV")
    arguments = parser.parse_args()
    plan = read_recipe(arguments.recipe)
    bench = Bench(assemble(*load_tables(arguments.data), plan, arguments.data), plan, arguments.parallel)
    found = []
    for variant in (v for v in VARIANTS if not arguments.only or any(part in v.name for part in arguments.only)):
        found.append(bench.measure(variant))
        line = pd.DataFrame(found[-1:]).round(3).to_string(index=False, header=len(found) == 1, formatters={"variant": "{:56}".format})
        print(line, flush=True)
    if arguments.output:
        pd.DataFrame(found).to_csv(arguments.output, index=False)


if __name__ == "__main__":
    main()
