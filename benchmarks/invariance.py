"""Does the router decide alike in every language? ``python -m benchmarks.invariance --parallel FILE [--router DIR]``.

FILE holds translated prompts (Parquet or JSONL, docs/data-format.md) whose ``group`` or source rule names the meaning, such as the 80
MT-Bench questions in 35 languages. Only the first user turn is asked. Every prompt goes through ``Router.route``.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd

from router.files.artifacts import load_router, read_artifact
from router.languages import script_statistics
from router.text import classify_text
from router.types import Conversation
from training.agreement import LanguageAgreement, language_agreement
from training.pairs import pair_catalog
from training.predictions import Route, predict_pair
from training.prompts import load_prompts, to_conversations

SHARES: Final = (0.2, 0.35, 0.65, 0.8)


def first_turn(conversation: Conversation) -> Conversation:
    """The conversation as it was when it began."""
    return Conversation.from_text(conversation.user_texts[0])


def parallel_prompts(path: Path) -> tuple[pd.DataFrame, list[Conversation]]:
    """The prompt table and the first turn of each."""
    prompts = load_prompts(path)
    return prompts, [first_turn(conversation) for conversation in to_conversations(prompts)]


def agreement_of(
    route: Route, prompts: pd.DataFrame, conversations: Sequence[Conversation], thresholds: dict[str, float]
) -> LanguageAgreement:
    """Agreement with the English decision at named thresholds, at round shares of English strong calls, and at the English median."""
    need = predict_pair(route, conversations, "weak", "strong", 0.0).need
    statistics = [script_statistics(classify_text(conversation).words) for conversation in conversations]
    english = need[(prompts["language"] == "en").to_numpy()]
    points = {**thresholds, **{f"{share:.0%}": float(np.quantile(english, 1 - share)) for share in SHARES}}
    return language_agreement(
        need,
        [item.latin_letters for item in statistics],
        prompts["group"].tolist(),
        prompts["language"].tolist(),
        points,
        digits=[item.count("digit") for item in statistics],
    )


def main() -> None:
    """Print the figures of every language."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parallel", type=Path, required=True)
    parser.add_argument("--router", type=Path, help="default: the shipped router")
    parser.add_argument("--output", type=Path, help="write the table of languages as CSV")
    arguments = parser.parse_args()

    artifact, _ = read_artifact(arguments.router)
    pool, _ = pair_catalog(None, "weak", "strong", artifact.capabilities)
    router, _ = load_router(arguments.router, pool)
    result = agreement_of(router.route, *parallel_prompts(arguments.parallel), {"tau": artifact.default_threshold})
    with pd.option_context("display.width", 200, "display.max_rows", None, "display.float_format", "{:.3f}".format):
        print(result.languages.to_string(index=False))
        print(f"\n{len(result.languages)} languages beside English, tau {artifact.default_threshold:.3f};")
        print("agreement@20% is at the tau that sends 20 % of the English prompts to the strong model.\n")
        print(result.summary().to_string())
    if arguments.output:
        result.languages.to_csv(arguments.output, index=False)


if __name__ == "__main__":
    main()
