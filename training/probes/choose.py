"""Which prompts to ask a new model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from router.errors import InvalidInput
from training.probes.bank import Bank
from training.probes.estimate import NEW_MODEL_SD
from training.probes.irt import GRID, Items, fit_items, prior

Array = NDArray[np.float64]
Method = Literal["spread", "information"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)


def choose_probes(bank: Bank, n: int, method: Method = "spread", seed: int = 0, items: Items | None = None) -> NDArray[np.intp]:
    """Numbers of n prompts of a bank, from those that tell models apart, at most one a split group while there are others.

    Parameters
    ----------
    method
        ``spread``: sort the prompts by difficulty, cut them into n equal parts, and draw one from each. ``information``: add, one by one,
        the prompt that lowers the expected variance of the score most, by Fisher information. The second looks better on paper and is
        worse on real models (docs/decisions/0010-probes.md): what told the reference models apart most did so partly by chance.
    items
        What :func:`training.probes.irt.fit_items` says of the bank, if that is known already.

    Raises
    ------
    InvalidInput
        If fewer than n prompts tell models apart.
    """
    if method not in METHODS:
        raise InvalidInput(f"method {method!r}: allowed are {', '.join(METHODS)}")
    telling = np.flatnonzero(bank.telling)
    if not 1 <= n <= telling.size:
        raise InvalidInput(f"{n} probes of {bank.capability}: from 1 to {telling.size} can be chosen, the prompts that tell models apart")
    items = (items or fit_items(bank.scores)).of(telling)
    groups = bank.prompts["group"].to_numpy(dtype=object)[telling]
    picked = _spread(items, groups, n, seed) if method == "spread" else _informative(items, groups, n)
    return telling[picked]


def shares_of(n: int, banks: Mapping[str, Bank]) -> dict[str, int]:
    """How many of n probes each capability gets: equal shares, as far as its prompts go.

    Raises
    ------
    InvalidInput
        If there are fewer than n prompts in all.
    """
    room = {name: int(bank.telling.sum()) for name, bank in banks.items()}
    if n < len(room) or n > sum(room.values()):
        raise InvalidInput(f"{n} probes: from {len(room)} (one a capability) to {sum(room.values())} can be chosen here")
    share = dict.fromkeys(room, 0)
    for _ in range(n):
        open_ = [name for name in room if share[name] < room[name]]
        share[min(open_, key=lambda name: share[name])] += 1
    return share


def expected_score(items: Items) -> Array:
    """Chance that a model of unknown ability succeeds on each prompt, shape (I,): the prompt's easiness."""
    return np.asarray(prior(NEW_MODEL_SD) @ items.probability(GRID))


def _spread(items: Items, groups: NDArray[np.object_], n: int, seed: int) -> NDArray[np.intp]:
    rng = np.random.default_rng(seed)
    picked: list[int] = []
    used: set[object] = set()
    for part in np.array_split(np.argsort(expected_score(items), kind="stable"), n):
        fresh = [i for i in part if groups[i] not in used]
        picked.append(int(rng.choice(fresh or part)))
        used.add(groups[picked[-1]])
    return np.array(picked, dtype=np.intp)


def _informative(items: Items, groups: NDArray[np.object_], n: int) -> NDArray[np.intp]:
    p, information = items.probability(GRID), items.information(GRID)
    # Delta method: the variance of the mean score is its slope in theta, squared, over the information.
    slope = (items.slope * p * (1.0 - p)).mean(axis=1)
    weight = prior(NEW_MODEL_SD) * slope**2
    so_far = np.full(GRID.size, 1.0 / NEW_MODEL_SD**2)
    open_ = np.ones(groups.size, dtype=np.bool_)
    picked: list[int] = []
    used: set[object] = set()
    for _ in range(n):
        variance = (weight[:, None] / (so_far[:, None] + information)).sum(axis=0)
        fresh = open_ & np.array([group not in used for group in groups])
        picked.append(int(np.where(fresh if fresh.any() else open_, variance, np.inf).argmin()))
        open_[picked[-1]] = False
        used.add(groups[picked[-1]])
        so_far += information[:, picked[-1]]
    return np.array(picked, dtype=np.intp)
