"""A promise in words, and why there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from training.promise import GuaranteeOptions, Promise


def statement_of(promise: Promise, options: GuaranteeOptions, *, covered: bool = False) -> str:
    """One or two sentences that can stand alone; ``covered`` where the promise for the other families together holds."""
    who = "" if promise.name == "all" else f"{promise.name[:1].upper()}{promise.name[1:]}: "
    if promise.kept:
        text = (
            f"with {confidence_in_words(options)} confidence the router's mean score is {_below(options)} at tau "
            f"{promise.threshold:.3f} ({_seen(promise)})"
        )
        return f"{_begin(who, text)}."
    so = "It is one of the other families together." if covered else "tau is 0, the strictest; only always-strong is sure to lose nothing."
    return f"{_begin(who, _why_not(promise, options))} {so}"


def limit_in_words(options: GuaranteeOptions) -> str:
    """``0.02``, or ``2 % of always-strong's score``."""
    return f"{100 * options.epsilon:.3g} % of always-strong's score" if options.relative else f"{options.epsilon:.3g}"


def _below(options: GuaranteeOptions) -> str:
    if options.relative:
        return f"at most {100 * options.epsilon:.3g} % of always-strong's below it"
    return f"at most {options.epsilon:.3g} below always-strong's"


def confidence_in_words(options: GuaranteeOptions) -> str:
    """``95 %``."""
    return f"{100 * (1 - options.delta):.4g} %"


def _why_not(promise: Promise, options: GuaranteeOptions) -> str:
    limit = limit_in_words(options)
    confidence = confidence_in_words(options)
    if promise.groups_needed == 0:
        return "nothing can be promised: the strong model scores 0 on every prompt."
    if promise.groups < promise.groups_needed:
        return (
            f"nothing can be promised: there are {_count(promise.groups, 'group')} of prompts, and a loss of at most {limit} with "
            f"{confidence} confidence needs at least {promise.groups_needed:,}, even if no answer were worse than always-strong's."
        )
    return (
        f"nothing is promised: a loss of at most {limit} with {confidence} confidence cannot be shown at any tau, not even at 0 "
        f"({_seen(promise)})."
    )


def _seen(promise: Promise) -> str:
    return (
        f"seen: {promise.loss:.4f} below its {promise.strong_score:.3f} over {_count(promise.groups, 'group')} of "
        f"{_count(promise.prompts, 'prompt')}, {promise.strong_share:.0%} strong calls"
    )


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _begin(who: str, text: str) -> str:
    return f"{who}{text}" if who else f"{text[:1].upper()}{text[1:]}"
