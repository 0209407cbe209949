"""Tables and plot of the comparison."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from benchmarks.baselines.compare import POOLED, UPPER_BOUND, is_baseline
from benchmarks.baselines.needs import OURS, RULES

LEVEL: Final = 0.05


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """One row a router: mean APGR over sources and over pools, mean rank among all but the oracle, and where ours is ahead or behind.

    A source counts where the gap between the models is larger than noise, that is where its APGR has an interval; in a pool of one source
    that source is the pool.
    """
    sources = table[(table["slice"] != POOLED) & table["low"].notna()]
    pools = table[(table["slice"] == POOLED) & table["low"].notna()]
    ranked = sources[sources["router"] != UPPER_BOUND]
    rank = ranked.groupby(["pool", "slice"])["apgr"].rank(ascending=False)
    records = []
    for router, part in sources.groupby("router", sort=False):
        records.append(
            {
                "router": router,
                "mean_apgr_sources": float(part["apgr"].mean()),
                "mean_apgr_pools": float(pools.loc[pools["router"] == router, "apgr"].mean()),
                "mean_rank": float(rank[ranked["router"] == router].mean()) if router != UPPER_BOUND else float("nan"),
                "sources": len(part),
                "ours_ahead": int(((part["p_holm"] < LEVEL) & (part["ahead"] > 0)).sum()),
                "ours_behind": int(((part["p_holm"] < LEVEL) & (part["ahead"] < 0)).sum()),
            }
        )
    return pd.DataFrame(records).sort_values("mean_apgr_sources", ascending=False, ignore_index=True)


def against_best(table: pd.DataFrame) -> pd.DataFrame:
    """One row a pool and slice: ours, the best baseline there (chosen on these very rows, in its favour), and the verdict."""
    records = []
    for (pool, name), part in table.groupby(["pool", "slice"], sort=False):
        mine = part[part["router"] == OURS].iloc[0]
        others = part[part["router"].map(lambda router: is_baseline(router, OURS)) & part["apgr"].notna()]
        record: dict[str, Any] = {"pool": pool, "slice": name, "n": int(mine["n"]), "n_groups": int(mine["n_groups"])}
        record |= {"ours": mine["apgr"], "ours_low": mine["low"], "ours_high": mine["high"], "note": mine["note"]}
        if pd.notna(mine["low"]):
            best = others.loc[others["apgr"].idxmax()]
            behind = bool(((others["p_holm"] < LEVEL) & (others["ahead"] < 0)).any())
            ahead = bool(best["p_holm"] < LEVEL and best["ahead"] > 0)
            record |= {"best": best["router"], "best_apgr": best["apgr"]}
            record |= {name: best[name] for name in ("ahead", "ahead_low", "ahead_high", "p_holm")}
            record["verdict"] = "behind" if behind else "ahead" if ahead else "no difference"
        records.append(record)
    return pd.DataFrame(records)


def markdown(table: pd.DataFrame, command: str) -> str:
    """Both tables with the command that made them."""
    lines = [
        f"`{command}`",
        "",
        "| router | mean APGR, sources | mean APGR, pools | mean rank | ours ahead / behind in |",
        "|---|---|---|---|---|",
    ]
    for row in summary(table).itertuples():
        rank = "-" if pd.isna(row.mean_rank) else f"{row.mean_rank:.1f}"
        tests = "-" if not is_baseline(row.router, OURS) else f"{row.ours_ahead} / {row.ours_behind} of {row.sources}"
        lines.append(f"| {row.router} | {row.mean_apgr_sources:.3f} | {row.mean_apgr_pools:.3f} | {rank} | {tests} |")
    lines += [
        "",
        "| pool | slice | prompts | ours | best baseline | ours minus best | p (Holm) | verdict |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in against_best(table).itertuples():
        head = f"| {row.pool} | {row.slice} | {row.n} |"
        if pd.isna(row.ours_low):
            lines.append(f"{head} {'-' if pd.isna(row.ours) else f'{row.ours:.3f}'} | - | - | - | {row.note} |")
            continue
        mine = f"{row.ours:.3f} ({row.ours_low:.3f} to {row.ours_high:.3f})"
        gap = f"{row.ahead:+.3f} ({row.ahead_low:+.3f} to {row.ahead_high:+.3f})"
        lines.append(f"{head} {mine} | {row.best} {row.best_apgr:.3f} | {gap} | {row.p_holm:.3f} | {row.verdict} |")
    return "\n".join(lines) + "\n"


def plot(table: pd.DataFrame, path: Path) -> None:
    """APGR by pool and source: ours with its interval, every baseline as a mark."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    shown = table[table["low"].notna() & (table["router"] != UPPER_BOUND)]
    slices = list(dict.fromkeys(zip(shown["pool"], shown["slice"], strict=True)))
    figure, axes = plt.subplots(figsize=(8, 0.36 * len(slices) + 1.4), layout="constrained")
    for y, (pool, name) in enumerate(slices):
        part = shown[(shown["pool"] == pool) & (shown["slice"] == name)]
        mine = part[part["router"] == OURS].iloc[0]
        learned = part[[is_baseline(router, OURS) and router not in RULES for router in part["router"]]]
        rules = part[part["router"].isin(RULES)]
        axes.plot(
            learned["apgr"], np.full(len(learned), y), "o", color="#8a8f98", markersize=4, label="learned baselines" if y == 0 else None
        )
        axes.plot(rules["apgr"], np.full(len(rules), y), "|", color="#8a8f98", markersize=9, label="rules" if y == 0 else None)
        axes.plot([mine["low"], mine["high"]], [y, y], color="#1f6feb", linewidth=1.6)
        axes.plot(mine["apgr"], y, "D", color="#1f6feb", markersize=6, label="our router, 95 % interval" if y == 0 else None)
    axes.set_yticks(range(len(slices)), [f"{pool}: {name}" for pool, name in slices])
    axes.invert_yaxis()
    axes.axvline(0.5, color="#c9ccd1", linewidth=1, zorder=0)
    axes.set_xlabel("APGR (random is 0.5)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="best", frameon=False, fontsize=8)
    figure.savefig(path, dpi=150)
    plt.close(figure)


def records(table: pd.DataFrame) -> Sequence[dict[str, Any]]:
    """Rows as plain data: what is missing is None."""
    return [{str(k): None if pd.isna(v) else v for k, v in row.items()} for row in table.to_dict("records")]
