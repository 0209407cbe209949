"""The profile of a new model from outcome tables to catalog figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
import pandas as pd

from router.catalog import ModelCatalog
from router.errors import InvalidInput
from training.probes.bank import Bank
from training.probes.choose import Method, choose_probes, shares_of
from training.probes.estimate import MIN_PROBES, ScoreEstimate, estimate_score
from training.probes.irt import fit_items
from training.probes.link import Figure, linked, unlinked

Scale = Literal["catalog", "outcomes"]
ENOUGH: Final = 0.05


@dataclass(frozen=True)
class CapabilityProfile:
    """What the probes say of one capability.

    Attributes
    ----------
    estimate
        Mean score over the bank; None where there are too few probes.
    figure
        On the catalog's scale; None likewise.
    enough
        Whether the interval is narrow enough to take the figure itself; otherwise its lower end counts.
    notes
        What is doubtful, or why there is no figure.
    """

    capability: str
    n_probes: int
    n_references: int
    estimate: ScoreEstimate | None
    figure: Figure | None
    enough: bool
    notes: tuple[str, ...]

    @property
    def raw(self) -> float | None:
        """The figure for the catalog."""
        if self.figure is None:
            return None
        return self.figure.value if self.enough else self.figure.low


def profile_model(
    banks: Mapping[str, Bank],
    model: str,
    catalog: ModelCatalog,
    *,
    scale: Scale = "catalog",
    level: float = 0.95,
    enough: float = ENOUGH,
    min_probes: int = MIN_PROBES,
) -> list[CapabilityProfile]:
    """Estimate a model's capabilities.

    Parameters
    ----------
    banks
        From :func:`training.probes.bank.banks_of`, with the new model's scores.
    scale
        ``catalog`` puts the figures on the scale of those that the catalog has; ``outcomes`` writes mean scores as they are.
    level
        Coverage of the intervals.
    enough
        Half width of an interval, in the unit of the figures, from which on the figure itself is taken and not its lower end.
    min_probes
        Fewer probes of a capability than this give no figure.

    Raises
    ------
    InvalidInput
        If no capability has enough probes, or a figure cannot be put on the catalog's scale.
    """
    if min_probes < 1 or not 0 <= enough <= 1:
        raise InvalidInput(f"min_probes {min_probes!r} and enough {enough!r}: at least 1, and a number within [0, 1], were expected")
    found = [_capability(bank, model, catalog, scale, level, enough, min_probes) for bank in banks.values()]
    if all(profile.figure is None for profile in found):
        counts = ", ".join(f"{profile.capability} {profile.n_probes}" for profile in found)
        raise InvalidInput(f"{model!r} has too few probes ({counts}): at least {min_probes} of one capability are needed")
    return found


def _capability(
    bank: Bank, model: str, catalog: ModelCatalog, scale: Scale, level: float, enough: float, min_probes: int
) -> CapabilityProfile:
    n = int(np.isfinite(bank.new).sum())
    if n < min_probes:
        why = f"{n} probes, at least {min_probes} are needed" if n else "no probe"
        return CapabilityProfile(bank.capability, n, len(bank.models), None, None, False, (why,))
    items = fit_items(bank.scores)
    estimate = estimate_score(items, bank.new, level=level, telling=bank.telling)
    if scale == "outcomes":
        figure = unlinked(estimate)
    else:
        anchors = [
            (estimate_score(items, bank.scores[j]).score, catalog[name].raw[bank.capability])
            for j, name in enumerate(bank.models)
            if name != model and name in catalog and bank.capability in catalog[name].raw
        ]
        x, y = np.array(anchors, dtype=np.float64).reshape(-1, 2).T
        figure = linked(estimate, x, y, bank.capability)
    return CapabilityProfile(bank.capability, n, len(bank.models), estimate, figure, figure.half_width <= enough, figure.notes)


def provenance(profiles: Sequence[CapabilityProfile], date: str, level: float) -> str:
    """What the catalog's ``notes`` say of the figures."""
    parts = []
    for profile in profiles:
        if profile.figure is not None:
            used = "" if profile.enough else ", lower end used until the interval is narrower"
            figure = profile.figure
            parts.append(
                f"{profile.capability} {figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f}{used}; {profile.n_probes} probes, "
                f"{profile.n_references} reference models, {figure.link})"
            )
    return f"Figures estimated from probes on {date}, {level:.0%} intervals: {'; '.join(parts)}."


def probes_table(banks: Mapping[str, Bank], n: int, method: Method = "spread", seed: int = 0) -> pd.DataFrame:
    """The prompts to ask, rows of the prompt table, n in all and alike for every capability."""
    parts = [banks[name].prompts.iloc[choose_probes(banks[name], share, method, seed)] for name, share in shares_of(n, banks).items()]
    return pd.concat(parts, ignore_index=True)
