"""Our router beside the learned baselines: ``python -m benchmarks.baselines --data DIR --output runs/baselines``.

On every pool the router and all baselines are fitted on the same folds of groups and tuned on the training part only; every prompt is
judged by a fit that did not see its group. Baselines read the embedding alone, or exactly what our heads read. The run goes on where it
was stopped: needs are kept in ``OUTPUT/cache`` and made anew only when inputs, labels or code change.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import time
from pathlib import Path

import pandas as pd

from benchmarks.baselines.compare import compare
from benchmarks.baselines.needs import ALL, EMBEDDING, OURS, OURS_ALONE, label_of, learned_needs, our_needs, our_needs_alone, rule_needs
from benchmarks.baselines.pools import POOLS, PoolData, load_pool
from benchmarks.baselines.report import against_best, markdown, plot, records, summary
from training.bootstrap import Array
from training.learned_baselines import METHODS, method_names

_BEGUN = time.monotonic()


def needs_of(pool: PoolData, methods: tuple[str, ...], cache: Path) -> dict[str, Array]:
    """Needs of ours, the rules and the learned baselines."""
    needs = {OURS: our_needs(pool, cache, _say), OURS_ALONE: our_needs_alone(pool, cache, _say), **rule_needs(pool)}
    for method in methods:
        for inputs in (EMBEDDING, ALL):
            needs[label_of(method, inputs)] = learned_needs(pool, method, inputs, cache, _say)
    return needs


def main() -> None:
    """Run and write ``baselines.md``, ``.json``, ``.csv`` and ``.png``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with prompts.parquet and outcomes.parquet; not needed for the sample alone")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--pools", nargs="+", default=list(POOLS), help=f"any of {', '.join(POOLS)}")
    parser.add_argument("--methods", default="all", help=f"all, or any of {','.join(METHODS)}")
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--most", type=int, help="prompts a source at most, drawn by seed; default all")
    parser.add_argument("--bootstrap", type=int, default=2000)
    arguments = parser.parse_args()

    methods = method_names(arguments.methods)
    found = []
    for name in arguments.pools:
        pool = load_pool(name, arguments.data, arguments.encoder, arguments.most)
        _say(f"{name}: {len(pool.rows)} prompts, {pool.inputs.shape[1]} columns, answers of {pool.scores.shape[1]} models")
        needs = needs_of(pool, methods, arguments.output / "cache" / arguments.encoder)
        found.append(compare(pool.rows, needs, OURS, n_bootstrap=arguments.bootstrap).assign(pool=name))
        write(pd.concat(found, ignore_index=True), arguments.output, f"python -m benchmarks.baselines {shlex.join(sys.argv[1:])}")
        _say(f"{name}: written")


def write(table: pd.DataFrame, folder: Path, command: str) -> None:
    """All files, from the pools that are done."""
    folder.mkdir(parents=True, exist_ok=True)
    table.to_csv(folder / "baselines.csv", index=False)
    (folder / "baselines.md").write_text(markdown(table, command), encoding="utf-8")
    content = {"command": command, "summary": records(summary(table)), "against_best": records(against_best(table)), "all": records(table)}
    (folder / "baselines.json").write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")
    plot(table, folder / "baselines.png")


def _say(text: str) -> None:
    print(f"{time.monotonic() - _BEGUN:7.0f} s  {text}", flush=True)


if __name__ == "__main__":
    main()
