"""LiteLLM's complexity router, heuristics v1 and v2, in its own environment: ``python run_litellm.py FOLDER``.

v1 scores keywords and length; v2 looks up how often models of a tier succeed on prompts of a kind. v2 is run with the statistics that ship
with it, and with statistics of our training split: tier 1 is the weak model, the other three are the strong one. Only the four-way tier
is theirs to choose; a threshold that is swept needs the number behind it, which is taken as it is.
"""

import json
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
from litellm.router_strategy.adaptive_router.classifier import classify_prompt
from litellm.router_strategy.complexity_router import ComplexityRouter
from litellm.router_strategy.complexity_router.config import ComplexityTier
from litellm.router_strategy.complexity_router.tier_predictor import (
    TierCohortStatistic,
    TierDomainStatistic,
    TierGlobalStatistic,
    TierSuccessPredictor,
    TrainedTierArtifact,
    resolve_tier_artifact,
    similarity_cohort,
)

TIERS = list(ComplexityTier)


def refitted(texts: list[str], weak: np.ndarray, strong: np.ndarray) -> TrainedTierArtifact:
    """Their artefact with successes of the training prompts, overall, by request type and cohort; a graded score is a partial success."""
    domains, cohorts = defaultdict(list), defaultdict(list)
    for i, text in enumerate(texts):
        kind = classify_prompt(text)
        domains[kind].append(i)
        cohorts[similarity_cohort(text, kind)].append(i)

    def counts(rows: list[int]) -> list[dict[str, float]]:
        sums = [weak[rows].sum(), *[strong[rows].sum()] * 3]
        return [{"tier": tier, "successes": float(value), "observations": float(len(rows))} for tier, value in enumerate(sums, start=1)]

    return TrainedTierArtifact(
        global_statistics=tuple(TierGlobalStatistic(**c) for c in counts(list(range(len(texts))))),
        domain_statistics=tuple(TierDomainStatistic(request_type=kind, **c) for kind, rows in domains.items() for c in counts(rows)),
        cohort_statistics=tuple(TierCohortStatistic(cohort=name, **c) for name, rows in cohorts.items() for c in counts(rows)),
    )


def failures(predictor: TierSuccessPredictor, texts: list[str]) -> np.ndarray:
    """Probability that the first tier does not succeed: what their rule compares with its threshold."""
    return np.array([1 - predictor.predict(text, classify_prompt(text)).probabilities[1] for text in texts])


def main(folder: Path) -> None:
    """Needs of every fold."""
    v1 = ComplexityRouter("peer", None, {"classifier_type": "heuristic"})
    shipped = TierSuccessPredictor(resolve_tier_artifact("ultrafeedback"))
    for part in sorted(folder.glob("fold-*")):
        texts = json.loads((part / "texts.json").read_text())
        train = np.load(part / "train.npz")
        said = [v1.classify(text) for text in texts["held"]]
        own = TierSuccessPredictor(refitted(texts["train"], train["weak"], train["strong"]))
        np.savez(
            part / "needs.npz",
            **{
                "litellm v1 tier": np.array([float(TIERS.index(tier)) for tier, _, _ in said]),
                "litellm v1 score": np.array([score for _, score, _ in said]),
                "litellm v2 as shipped": failures(shipped, texts["held"]),
                "litellm v2 refitted": failures(own, texts["held"]),
            },
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
