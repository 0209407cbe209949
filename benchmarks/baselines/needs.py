"""Needs of every router for every prompt of a pool, each from a fit that did not see the prompt's group. Kept, so that a run goes on."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.baselines.pools import PoolData
from router.files.atomic import write_atomically
from training.baselines import baseline_policies
from training.bootstrap import Array
from training.learned_baselines import fit_baseline
from training.train import held_out_predictions

OURS: Final = "interlock"
OURS_ALONE: Final = "interlock without translations"
"""Ours by the pool's recipe, and without its parallel texts: what being held to answer alike in every language costs."""
EMBEDDING: Final = "embedding"
ALL: Final = "embedding + columns"
"""What a baseline reads: the embedding alone, or exactly what our heads read."""
RULES: Final = ("random", "length", "source_mean", "oracle")
_CODE: Final = Path(__file__).resolve().parents[2]
Say = Callable[[str], None]


def label_of(method: str, inputs: str) -> str:
    """Name of a baseline with what it reads."""
    return f"{method} ({inputs})"


def our_needs(pool: PoolData, cache: Path, say: Say) -> Array:
    """Weak model's shortfall by ``Router.route``, shape (n,)."""
    key = key_of(_sources("router", "training"), pool.inputs, pool.training.targets, pool.fold, repr(pool.recipe))

    def make() -> Array:
        return held_out_predictions(pool.training, pool.inputs, pool.fold, pool.encoder, pool.recipe, say=say)[0].need

    return _kept(cache / pool.name / f"{OURS}-{key}.npy", make)


def our_needs_alone(pool: PoolData, cache: Path, say: Say) -> Array:
    """:func:`our_needs` of a router that learns from no translations."""
    training = replace(pool.training, translations=None)
    return our_needs(replace(pool, training=training, recipe=replace(pool.recipe, parallel=())), cache, say)


def learned_needs(pool: PoolData, method: str, inputs: str, cache: Path, say: Say) -> Array:
    """Calibrated needs of a learned baseline, shape (n,), fold by fold."""
    table = pool.inputs if inputs == ALL else pool.embedding
    need = np.empty(len(table))
    for number in np.unique(pool.fold):
        learn, held = np.flatnonzero(pool.fold != number), np.flatnonzero(pool.fold == number)
        key = key_of(_sources("training/learned_baselines"), table, np.nan_to_num(pool.scores, nan=-1.0), pool.fold, str(number))
        file = cache / pool.name / f"{method}-{inputs.replace(' ', '')}-{number}-{key}.npy"

        def make(learn: Any = learn, held: Any = held, number: int = int(number)) -> Array:
            fitted = fit_baseline(method, table[learn], pool.scores[learn], pool.training.groups[learn], pool.recipe.seed)
            say(f"{pool.name}, {label_of(method, inputs)}, fold {number + 1}: {fitted.settings}")
            return fitted.probability(table[held])

        need[held] = _kept(file, make)
    return need


def rule_needs(pool: PoolData) -> dict[str, Array]:
    """Needs by the rules that read no embedding, and the oracle's."""
    return {p.name: p.need for p in baseline_policies(pool.rows) if p.name in RULES and p.need is not None}


def _kept(file: Path, make: Callable[[], Array]) -> Array:
    if file.is_file():
        return np.asarray(np.load(file), dtype=np.float64)
    made, buffer = make(), io.BytesIO()
    np.save(buffer, made)
    write_atomically(file, buffer.getvalue())
    return made


def _sources(*folders: str) -> bytes:
    """The code that makes a figure: with other code it is made anew."""
    files: Iterable[Path] = sorted(path for folder in folders for path in (_CODE / folder).glob("*.py"))
    return b"".join(path.read_bytes() for path in files)


def key_of(*parts: bytes | str | np.ndarray[Any, Any]) -> str:
    """Sixteen hex digits that change with any part."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode() if isinstance(part, str) else part if isinstance(part, bytes) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()[:16]
