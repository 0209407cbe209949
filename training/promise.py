"""What is to be promised of a router, and what is: plain data, with its words."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Final

from router.errors import InvalidInput
from training.risk import groups_needed

EVERYTHING: Final = "all"
THE_REST: Final = "the other families together"


@dataclass(frozen=True, slots=True)
class GuaranteeOptions:
    """What is to be promised.

    Parameters
    ----------
    epsilon
        Largest loss of mean score against always-strong.
    delta
        Probability at most that the promise is broken.
    relative
        Whether ``epsilon`` is a share of always-strong's mean score instead of a difference.
    per_family
        Whether every language family that has groups enough gets a threshold and a promise of its own.
    share
        Share of the groups that training sets aside for calibration.
    """

    epsilon: float
    delta: float = 0.05
    relative: bool = False
    per_family: bool = False
    share: float = 0.3

    def __post_init__(self) -> None:
        for name in ("epsilon", "delta", "share"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1:
                raise InvalidInput(f"{name} of the guarantee is {value!r}: a number between 0 and 1 was expected")
        for name in ("relative", "per_family"):
            if not isinstance(getattr(self, name), bool):
                raise InvalidInput(f"{name} of the guarantee is {getattr(self, name)!r}: true or false was expected")


@dataclass(frozen=True, slots=True)
class Promise:
    """What is promised for some of the prompts, and what was seen of them at ``threshold``.

    Attributes
    ----------
    kept
        Whether anything is promised. If not, ``threshold`` is 0, the strictest, or that of the other families together, and ``statement``
        says why.
    delta
        Level of this one test.
    groups_needed
        Groups below which nothing can be promised, even if no answer is worse than always-strong's; 0 where no number is enough.
    loss, prompt_loss
        Mean score of always-strong minus that of the router; every group counts once, and every prompt counts once.
    strong_score
        Mean score of always-strong, every group counted once.
    cost_savings
        Share of the cost of always-strong that is saved; None where costs are unknown.
    p_value
        Of the threshold, or of the strictest if that failed; None where nothing was tested.
    """

    name: str
    kept: bool
    threshold: float
    delta: float
    groups: int
    groups_needed: int
    prompts: int
    loss: float
    prompt_loss: float
    strong_score: float
    strong_share: float
    cost_savings: float | None
    p_value: float | None
    statement: str = ""


@dataclass(frozen=True, slots=True)
class Guarantee:
    """The promise for all prompts at one threshold, those by language family, and the thresholds that are in force."""

    options: GuaranteeOptions
    overall: Promise
    families: tuple[Promise, ...]

    @property
    def by_family(self) -> bool:
        """Whether the promises of single families are in force: they are wanted, and some family has groups enough."""
        return self.options.per_family and any(promise.p_value is not None for promise in self.families)

    @property
    def default_threshold(self) -> float:
        """Tau where a family has none of its own."""
        if not self.by_family:
            return self.overall.threshold
        return next((promise.threshold for promise in self.families if promise.name == THE_REST), 0.0)

    @property
    def family_thresholds(self) -> dict[str, float]:
        """Tau of the families that have their own."""
        return {p.name: p.threshold for p in self.families if p.name != THE_REST and p.p_value is not None} if self.by_family else {}

    @property
    def in_force(self) -> tuple[Promise, ...]:
        """What is said of the thresholds that are in force."""
        return self.families if self.by_family else (self.overall,)

    @property
    def kept(self) -> bool:
        """Whether anything at all is promised."""
        return any(promise.kept for promise in self.in_force)

    @property
    def statement(self) -> str:
        """What is promised, in words."""
        said = [promise.statement for promise in self.in_force]
        if self.by_family and (tested := sum(promise.p_value is not None for promise in self.families)) > 1:
            said.append(f"The {tested} statements that were tested hold together with that confidence.")
        elif self.options.per_family and not self.by_family:
            needed = groups_needed(self.options.epsilon, self.options.delta)
            said.append(f"No language family has the {needed:,} groups that a promise of its own needs at least.")
        return " ".join(said)

    def to_mapping(self) -> dict[str, Any]:
        """Plain JSON data."""
        return {
            "options": asdict(self.options),
            "default_threshold": self.default_threshold,
            "family_thresholds": self.family_thresholds,
            "kept": self.kept,
            "statement": self.statement,
            "overall": asdict(self.overall),
            "families": [asdict(promise) for promise in self.families],
        }
