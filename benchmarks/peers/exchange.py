"""What goes to a peer's environment and what comes back: plain files of arrays and texts, fold by fold, never a held-out label."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.baselines.needs import key_of
from benchmarks.baselines.pools import PoolData
from router.errors import InvalidInput
from router.files.atomic import write_atomically
from training.bootstrap import Array

_OFFLINE: Final = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OMP_NUM_THREADS": "1",
    # RouteLLM builds a client when it is imported; nothing is ever sent.
    "OPENAI_API_KEY": "unused",
}


def export(pool: PoolData, folder: Path) -> None:
    """Write ``fold-N/train.npz`` (X, weak, strong), ``held.npz`` (X) and ``texts.json`` (train, held). X is the embedding, float32."""
    texts = ["\n".join(conversation.user_texts) for conversation in pool.training.conversations]
    weak, strong = (pool.rows[name].to_numpy(dtype=float) for name in ("weak", "strong"))
    X = pool.embedding.astype(np.float32)
    for number in np.unique(pool.fold):
        learn, held = np.flatnonzero(pool.fold != number), np.flatnonzero(pool.fold == number)
        part = folder / f"fold-{number}"
        part.mkdir(parents=True)
        np.savez(part / "train.npz", X=X[learn], weak=weak[learn], strong=strong[learn])
        np.savez(part / "held.npz", X=X[held])
        said = {"train": [texts[i] for i in learn], "held": [texts[i] for i in held]}
        (part / "texts.json").write_text(json.dumps(said), encoding="utf-8", errors="replace")


def peer_needs(pool: PoolData, python: Path, script: Path, cache: Path, timeout_s: float) -> dict[str, Array]:
    """:func:`run_peer`, kept; run anew when embedding, scores, folds, script or pinned packages change."""
    pinned = script.parent / "requirements" / f"{script.stem.removeprefix('run_')}.txt"
    scores = pool.rows[["weak", "strong"]].to_numpy(dtype=float)
    key = key_of(pool.embedding, scores, pool.fold, script.read_bytes(), pinned.read_bytes())
    file = cache / pool.name / f"{script.stem}-{key}.npz"
    if not file.is_file():
        buffer = io.BytesIO()
        np.savez(buffer, allow_pickle=False, **run_peer(pool, python, script, timeout_s))
        write_atomically(file, buffer.getvalue())
    with np.load(file) as found:
        return {name: np.asarray(found[name], dtype=np.float64) for name in found.files}


def run_peer(pool: PoolData, python: Path, script: Path, timeout_s: float) -> dict[str, Array]:
    """Needs of every variant that a peer's script offers, shape (n,) each.

    The script gets the folder as its only argument, writes ``fold-N/needs.npz``, and sees neither our packages nor our environment.

    Raises
    ------
    InvalidInput
        If there is no such interpreter, or the script fails; with the last lines it said.
    """
    if not python.is_file():
        raise InvalidInput(f"no interpreter at {python}: make the peer's environment as benchmarks/peers/README.md says")
    with tempfile.TemporaryDirectory(prefix="interlock-peer-") as name:
        folder = Path(name)
        export(pool, folder)
        environment = {"PATH": os.environ.get("PATH", ""), "HOME": name, **_OFFLINE}
        command = [str(python), "-I", str(script), name]
        done = subprocess.run(command, env=environment, cwd=name, capture_output=True, text=True, timeout=timeout_s, check=False)
        if done.returncode != 0:
            raise InvalidInput(f"{script.name} failed with code {done.returncode}: {' / '.join(done.stderr.strip().splitlines()[-3:])}")
        return _collected(pool, folder)


def _collected(pool: PoolData, folder: Path) -> dict[str, Array]:
    needs: dict[str, Array] = {}
    for number in np.unique(pool.fold):
        held = np.flatnonzero(pool.fold == number)
        with np.load(folder / f"fold-{number}" / "needs.npz") as said:
            for variant in said.files:
                values = np.asarray(said[variant], dtype=np.float64)
                if values.shape != (len(held),) or not np.isfinite(values).all():
                    raise InvalidInput(
                        f"variant {variant!r} has shape {values.shape} or holds NaN for {len(held)} prompts of fold {number}"
                    )
                needs.setdefault(variant, np.full(len(pool.rows), np.nan))[held] = values
    return needs
