"""Rows to train on, made of numbers and short words of our own."""

from __future__ import annotations

import os

import numpy as np
import pandas as pd

from router.errors import InvalidInput
from training.assemble import TrainingRows, assemble
from training.outcomes import check_outcomes
from training.prompts import complete_prompts
from training.recipe import Pair, Recipe
from training.tables import Table

TASKS = {
    "code": "write a function that sorts",
    "math": "how many apples are left",
    "debug": "fix this traceback",
    "tool_use": "book a table",
}
HARD = {"code": 0.7, "debug": 0.5, "math": 0.1, "tool_use": 0.3}


def tables(rows: int, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Prompts and outcomes of two models as somebody would write them."""
    rng = np.random.default_rng(seed)
    tasks = rng.choice(list(TASKS), rows)
    noise = ["".join(rng.choice(list("abcdefghijklmnopqrstuvwxyz "), rng.integers(40, 90))) for _ in range(rows)]
    prompts = pd.DataFrame(
        {
            "source": "ours",
            "prompt_id": [f"p{i}" for i in range(rows)],
            "language": rng.choice(["en", "de", "fi"], rows),
            "task_kind": tasks,
            "turns": [f"{TASKS[task]} {text}" for task, text in zip(tasks, noise, strict=True)],
            "group": [f"g{i // 2}" for i in range(rows)],
        }
    )
    strong = rng.random(rows) < 0.9
    weak = strong & (rng.random(rows) > np.array([HARD[task] for task in tasks]))
    key = prompts[["source", "prompt_id"]].assign(score_kind="pass")
    scores = [key.assign(model=model, score=right.astype(float)) for model, right in (("small", weak), ("large", strong))]
    return prompts, pd.concat(scores, ignore_index=True)


def generated(rows: int) -> TrainingRows:
    """Assembled rows of :func:`tables`."""
    prompts, outcomes = (Table(frame, ((0, "ours", 1),)) for frame in tables(rows))
    return assemble(complete_prompts(prompts), check_outcomes(outcomes), Recipe((Pair(("small",), ("large",)),)))


def plus(shared: np.ndarray, item: int) -> tuple[float, int]:
    """A piece of work, and the process it was done in; here and not in a test module, so that other processes can import it."""
    return float(shared.sum()) + item, os.getpid()


def refuse(shared: None, item: int) -> int:
    """A piece of work that fails."""
    raise InvalidInput(f"item {item} is refused")


def die(shared: None, item: int) -> None:
    """A piece of work that takes its process with it."""
    os._exit(1)
