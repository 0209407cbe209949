"""Other projects' own code on our split: ``python -m benchmarks.peers --venvs DIR --data DIR --output runs/peers``.

Each peer runs in an environment of its own (README.md says how to make them). It is trained on the same folds and the same embedding as the
routers of ``benchmarks.baselines``, and judged by the same metrics.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

import pandas as pd

from benchmarks.baselines.__main__ import write
from benchmarks.baselines.compare import compare
from benchmarks.baselines.needs import OURS, our_needs, rule_needs
from benchmarks.baselines.pools import POOLS, SAMPLE, load_pool
from benchmarks.peers.exchange import peer_needs

PEERS: Final = ("litellm", "routellm", "llmrouter")
_HERE: Final = Path(__file__).parent


def main() -> None:
    """Run and write the files of ``benchmarks.baselines`` under other names of routers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--venvs", type=Path, required=True, help="folder with a virtual environment a peer, named like it")
    parser.add_argument("--data", type=Path, help="folder with prompts.parquet and outcomes.parquet; not needed for the sample alone")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--peers", nargs="+", default=list(PEERS), choices=PEERS)
    parser.add_argument("--pools", nargs="+", default=["haiku-sonnet", SAMPLE], help=f"any of {', '.join(POOLS)}")
    parser.add_argument("--encoder", default="fast")
    parser.add_argument("--most", type=int, help="prompts a source at most, drawn by seed; default all")
    parser.add_argument("--bootstrap", type=int, default=2000)
    parser.add_argument("--timeout", type=float, default=3600, help="seconds that one peer may take for one pool")
    arguments = parser.parse_args()

    found = []
    for name in arguments.pools:
        pool = load_pool(name, arguments.data, arguments.encoder, arguments.most)
        cache = arguments.output / "cache" / arguments.encoder
        needs = {OURS: our_needs(pool, cache, print), **rule_needs(pool)}
        for peer in arguments.peers:
            python = arguments.venvs.resolve() / peer / "bin" / "python"
            needs |= peer_needs(pool, python, _HERE / f"run_{peer}.py", cache, arguments.timeout)
            print(f"{name}: {peer} done", flush=True)
        found.append(compare(pool.rows, needs, OURS, n_bootstrap=arguments.bootstrap).assign(pool=name))
        write(pd.concat(found, ignore_index=True), arguments.output, f"python -m benchmarks.peers {shlex.join(sys.argv[1:])}")


if __name__ == "__main__":
    main()
