"""What must stay together when a table is split, and splits that keep it together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from router.errors import InvalidInput
from training.dedup import near_duplicates

FEW_ROWS: Final = 20
"""A language family with fewer prompts teaches little and is worth a note."""


def rule_group(source: str, prompt_id: str, category: str | None = None) -> str:
    """Split key of a prompt by the rule of its source; the prompt alone where no rule is known.

    Prompts with equal keys share a document (WMT25), a repository (SWE-bench), a subject (MMLU), a problem (LiveCodeBench, generation
    and repair alike) or a question (MT-Bench, in every language and turn). Keys hold across sources, so that two editions of a
    benchmark cannot lie on both sides of a split.
    """
    for prefix, rule in _RULES.items():
        if source.startswith(prefix):
            return rule(prompt_id, category)
    return f"{source}/{prompt_id}"


def _wmt(prompt_id: str, category: str | None) -> str:
    """``en-ja_JP_#_news_#_site.123`` -> the document, whatever the language pair."""
    return f"wmt/{prompt_id.split('_#_', 1)[-1]}"


def _swebench(prompt_id: str, category: str | None) -> str:
    """``astropy__astropy-12907`` -> the repository ``astropy__astropy``."""
    return f"swebench/{prompt_id.rsplit('-', 1)[0]}"


def _mmlu(prompt_id: str, category: str | None) -> str:
    """``mmlu#anatomy#12`` -> the subject."""
    return f"mmlu/{category or prompt_id.rsplit('#', 1)[0]}"


def _second_part(name: str) -> Callable[[str, str | None], str]:
    """``lcb_repair#1873_A`` -> the problem; ``mtbench#81#t2`` and ``mtbench#81#ja`` -> the question; ``gsm8k#7`` -> the problem."""

    def key(prompt_id: str, category: str | None) -> str:
        parts = prompt_id.split("#")
        return f"{name}/{parts[1] if len(parts) > 1 else prompt_id}"

    return key


_RULES: Final[Mapping[str, Callable[[str, str | None], str]]] = {
    "wmt25": _wmt,
    "swebench": _swebench,
    "routellm_mmlu": _mmlu,
    "routellm_gsm8k": _second_part("gsm8k"),
    "mgsm": _second_part("gsm8k"),
    "routellm_mtbench": _second_part("mtbench"),
    "mtbench": _second_part("mtbench"),
    "livecodebench": _second_part("livecodebench"),
}


def group_key(
    prompts: pd.DataFrame, *, similarity: float | None = 0.8, duplicates: Iterable[tuple[int, int]] | None = None
) -> pd.Series[Any]:
    """Split key of every prompt: its translation group or source rule, joined wherever two prompts have nearly the same text.

    Parameters
    ----------
    prompts
        Canonical prompt table.
    similarity
        Jaccard similarity of character n-grams from which two prompts count as the same; None leaves texts unread.
    duplicates
        Pairs of row numbers that belong together, if the caller has them (:func:`training.dedup.near_duplicates`).

    Returns
    -------
    pandas.Series
        One key a row, on the index of ``prompts``. Rows with one key must not be separated.
    """
    given = prompts["group"] if "group" in prompts else pd.Series([None] * len(prompts), index=prompts.index, dtype=object)
    category = prompts.get("category", given)
    rows = zip(given, prompts["source"], prompts["prompt_id"], category, strict=True)
    keys = [g if isinstance(g, str) and g else rule_group(s, p, c if isinstance(c, str) else None) for g, s, p, c in rows]
    if duplicates is None and similarity is not None:
        duplicates = near_duplicates(prompt_texts(prompts), similarity=similarity)
    keys = _joined(keys, duplicates or ())
    return pd.Series(keys, index=prompts.index, name="group", dtype=object)


def prompt_texts(prompts: pd.DataFrame) -> list[str]:
    """What the user wrote in each prompt, turns joined by newlines."""
    from training.prompts import Conversations

    return ["\n".join(conversation.user_texts) for conversation in Conversations(prompts)]


def _joined(keys: Sequence[str], pairs: Iterable[tuple[int, int]]) -> list[str]:
    """Union-find over keys; a joined set is named after its first key in order of appearance."""
    parent = {key: key for key in keys}

    def root(key: str) -> str:
        while parent[key] != key:
            parent[key] = parent[parent[key]]
            key = parent[key]
        return key

    order = {key: position for position, key in enumerate(parent)}
    for left, right in pairs:
        first, second = sorted((root(keys[left]), root(keys[right])), key=order.__getitem__)
        parent[second] = first
    return [root(key) for key in keys]


def group_folds(groups: ArrayLike, n: int = 5, seed: int = 0, *, strata: ArrayLike | None = None) -> NDArray[np.int64]:
    """Fold 0..n-1 of every row; a group lies in one fold, and folds are alike in size and in every stratum.

    Parameters
    ----------
    groups
        Split key of each row.
    n
        Folds.
    seed
        Decides among equally good assignments.
    strata
        Source or family of each row, to be spread evenly where groups allow it.

    Raises
    ------
    InvalidInput
        If there are fewer groups than folds.
    """
    if n < 2:
        raise InvalidInput(f"{n} folds: at least 2 are needed")
    return _assign(np.asarray(groups, dtype=object), n, seed, strata)


def held_out_groups(groups: ArrayLike, share: float, seed: int = 0) -> NDArray[np.bool_]:
    """Which rows belong to a share of the groups drawn at random, shape (n,).

    A plain draw, not balanced like :func:`group_folds`: drawn and other groups are then alike in distribution, which is what a guarantee
    calibrated on the drawn ones rests on.

    Raises
    ------
    InvalidInput
        If a part would be left with fewer than two groups.
    """
    names, number = np.unique(np.asarray(groups).astype(str), return_inverse=True)
    count = round(share * len(names))
    if not 2 <= count <= len(names) - 2:
        raise InvalidInput(f"a share of {share:g} of {len(names)} groups is {count}: at least two groups are needed on either side")
    drawn = np.random.default_rng(seed).permutation(len(names))[:count]
    return np.isin(number.reshape(-1), drawn)


def _assign(groups: NDArray[np.object_], n: int, seed: int, strata: ArrayLike | None) -> NDArray[np.int64]:
    """Give every group to a fold, largest first, where it adds least to the sum over strata and folds of (rows / total)^2.

    The sum is taken relative to a fold's share, which changes nothing but which of two equal sums rounds lower: published figures were made
    with these very folds.
    """
    codes, names = pd.factorize(groups)
    if (codes < 0).any():
        raise InvalidInput(f"row {int((codes < 0).argmax())} has no group: every row needs a split key")
    if len(names) < n:
        raise InvalidInput(f"{n} folds need at least {n} groups, there are {len(names)}; use fewer folds or more data")
    counts = _counts(codes, len(names), strata, len(groups))
    order = np.random.default_rng(seed).permutation(len(names))
    order = order[np.argsort(-counts.max(axis=1)[order], kind="stable")]
    load = np.zeros((n, counts.shape[1]))
    chosen = np.empty(len(names), dtype=np.int64)
    for group in order:
        used = np.flatnonzero(counts[group])
        rows = counts[group, used]
        chosen[group] = int((((2 * load[:, used] + rows) * rows).sum(axis=1) / (1 / n)).argmin())
        load[chosen[group], used] += rows
    return np.asarray(chosen[codes], dtype=np.int64)


def _counts(codes: NDArray[np.int64], n_groups: int, strata: ArrayLike | None, n_rows: int) -> NDArray[np.float64]:
    """Share of all rows, and of each stratum's rows, that a group holds; shape (groups, 1 + strata)."""
    sizes = np.bincount(codes, minlength=n_groups) / n_rows
    if strata is None:
        return sizes[:, None]
    stratum, names = pd.factorize(np.asarray(strata, dtype=object), use_na_sentinel=False)
    if len(stratum) != n_rows:
        raise InvalidInput(f"strata has {len(stratum)} values for {n_rows} rows")
    table = np.zeros((n_groups, len(names)))
    np.add.at(table, (codes, stratum), 1.0)
    return np.concatenate([sizes[:, None], table / table.sum(axis=0)], axis=1)


def few_rows(families: Iterable[str], minimum: int) -> dict[str, int]:
    """Families with fewer rows than ``minimum``, and how many they have; smallest first."""
    counts = pd.Series(list(families), dtype=object).value_counts()
    return {str(name): int(count) for name, count in sorted(counts.items(), key=lambda item: (item[1], item[0])) if count < minimum}


def require_rows(families: Iterable[str], minimum: int) -> None:
    """Refuse a table in which a language family has too few rows to be fitted or judged.

    Raises
    ------
    InvalidInput
        Naming the families and their rows.
    """
    if short := few_rows(families, minimum):
        named = ", ".join(f"{name} {count}" for name, count in short.items())
        raise InvalidInput(f"too few rows in {len(short)} families ({named}): at least {minimum} are needed; add prompts or leave them out")
