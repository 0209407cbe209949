"""How far the token estimate is from a real tokenizer, language by language.

    python -m benchmarks.tokens PARALLEL.parquet TOKENIZER.json [--rows 100]

``PARALLEL`` has the columns ``language`` and ``text`` (any corpus will do; with parallel text the languages compare). ``TOKENIZER`` is the
``tokenizer.json`` of the model whose tokens are to be estimated.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from router.languages import estimate_tokens, family_of


def measure(texts: pd.DataFrame, tokenizer: Tokenizer) -> pd.DataFrame:
    """Ratio of estimated to true tokens by language: of the whole, and the spread over single texts; worst language first."""
    true = np.array([len(encoding.ids) for encoding in tokenizer.encode_batch(texts["text"].tolist(), add_special_tokens=False)])
    estimated = np.array([estimate_tokens(text) for text in texts["text"]])
    counted = texts.assign(true=true, estimated=estimated, ratio=estimated / np.maximum(1, true), chars=texts["text"].str.len())
    groups = counted.groupby("language")
    sums = groups[["true", "estimated", "chars"]].sum()
    table = pd.DataFrame(
        {
            "family": [family_of(language) for language in sums.index],
            "tokens_per_char": sums["true"] / sums["chars"],
            "ratio": sums["estimated"] / sums["true"],
            "ratio_p05": groups["ratio"].quantile(0.05),
            "ratio_p95": groups["ratio"].quantile(0.95),
        }
    )
    return table.loc[np.log(table["ratio"]).abs().sort_values(ascending=False).index]


def main(argv: list[str] | None = None) -> None:
    """Print the table and the worst and mean error."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parallel", type=Path)
    parser.add_argument("tokenizer", type=Path)
    parser.add_argument("--rows", type=int, default=100, help="texts a language (default 100)")
    options = parser.parse_args(argv)
    texts = pd.read_parquet(options.parallel, columns=["language", "text"]).groupby("language").head(options.rows)
    table = measure(texts, Tokenizer.from_file(str(options.tokenizer)))
    print(table.to_string(float_format=lambda value: f"{value:.3f}"))
    error = np.log2(table["ratio"]).abs()
    print(f"{len(table)} languages: mean error a factor of {2 ** error.mean():.2f}, worst {2 ** error.max():.2f} ({error.idxmax()})")


if __name__ == "__main__":
    main()
