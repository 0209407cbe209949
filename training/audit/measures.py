"""What an audit measures: the name, title, meaning and default limit of every figure, on one page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Limit:
    """The values that are allowed, ends included; None leaves an end open."""

    at_least: float | None = None
    at_most: float | None = None

    def allows(self, value: float) -> bool:
        """Whether a value is within the limit."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure of the card.

    Attributes
    ----------
    section
        Part of the card.
    title, meaning
        Heading and definition as people read them.
    share
        Whether it is a share of rows, shown in per cent.
    better
        What a bare number in ``audit.toml`` limits: ``high`` at least, ``low`` at most, ``near`` as far as that on either side of 0;
        ``between`` has two ends, which have to be named.
    default
        Limit that is only warned about where the user sets none.
    sampled
        False for a fact about this very folder, which no resampling makes less certain: it has no interval and needs no number of rows.
    """

    section: str
    title: str
    meaning: str
    share: bool = True
    better: Literal["high", "low", "near", "between"] = "low"
    default: Limit | None = None
    sampled: bool = True


SECTIONS: Final[Mapping[str, str]] = {
    "judge": "The judge and the order of the answers",
    "length": "Length",
    "agreement": "Agreement",
    "coverage": "Coverage",
    "overlap": "Duplicates and leakage",
    "labels": "Labels",
}

MEASURES: Final[Mapping[str, Measure]] = {
    "swap_consistency": Measure(
        "judge",
        "same verdict in both orders",
        "Share of pairs of answers on which the judge names the same better answer, or a tie, whichever it read first. GPT-4 had 65 % "
        "in Zheng et al. 2023, table 2.",
        better="high",
        default=Limit(at_least=0.65),
    ),
    "swap_kappa": Measure(
        "judge",
        "kappa of the two orders",
        "Cohen's kappa between the verdicts of the two orders (one better, tie, other better): 0 is what the "
        "mix of verdicts gives by chance.",
        share=False,
        better="high",
        default=Limit(at_least=0.4),
    ),
    "first_position": Measure(
        "judge",
        "wins of the first position",
        "Share of the decided verdicts, on pairs judged in both orders, that prefer the answer read first. "
        "Without position bias it is 50 %.",
        better="between",
        default=Limit(0.4, 0.6),
    ),
    "first_score_shift": Measure(
        "judge",
        "marks won by standing first",
        "Mean difference, in marks from 0 to 1 over all dimensions, between an answer read first and the same answer read second.",
        share=False,
        better="near",
        default=Limit(-0.05, 0.05),
    ),
    "verdict_ties": Measure(
        "judge", "ties", "Share of the verdicts that give both answers the same marks on average.", default=Limit(at_most=0.4)
    ),
    "order_reliability": Measure(
        "judge",
        "correlation of the two orders",
        "Correlation, over pairs of answers, of the difference in marks in one order with that in the other. Marks are the mean of both "
        "orders, so the share of their variance that is not the judge's own noise is at most 2r / (1 + r).",
        share=False,
        better="high",
    ),
    "halo": Measure(
        "judge",
        "correlation between dimensions",
        "Mean correlation between the judge's marks for correctness, completeness, instruction following and "
        "clarity. Near 1 they are one mark.",
        share=False,
    ),
    "longer_preferred": Measure(
        "length",
        "wins of the longer answer",
        "Mean share of wins of the longer of two answers, both orders together; a tie is half a win.",
        better="between",
    ),
    "length_slope": Measure(
        "length",
        "wins per doubling",
        "Change in the share of wins where an answer is twice as long as the other: least squares on the difference of log2 lengths in "
        "characters, with an intercept for each pair of models.",
        share=False,
        better="near",
    ),
    "length_slope_controlled": Measure(
        "length",
        "the same at equal correctness",
        "The same slope with the difference in checked correctness as a second column, on pairs whose answers were checked by a program.",
        share=False,
        better="near",
        default=Limit(-0.1, 0.1),
    ),
    "length_slope_checked": Measure(
        "length",
        "what length is worth to the checks",
        "The same slope of checked correctness: how much more often the longer answer is the right one. Near the slope of the judge, the "
        "judge's liking for length is deserved.",
        share=False,
        better="near",
    ),
    "judge_picks_right": Measure(
        "agreement",
        "judge prefers the right answer",
        "Mean share of wins of the answer with the higher checked correctness, on pairs where a program tells them apart; 50 % is chance.",
        better="high",
        default=Limit(at_least=0.7),
    ),
    "judge_check_correlation": Measure(
        "agreement",
        "judged and checked correctness",
        "Correlation of the judge's mark for correctness (both orders) with the program's, over answers that have both.",
        share=False,
        better="high",
    ),
    "self_preference": Measure(
        "agreement",
        "judge favours itself",
        "Where a judge judges answers of its own model: its share of wins beyond what the checks give it, "
        "or, with several kinds of score, its "
        "mean percentile among the models beyond what the other kinds give it. 0 is even-handed.",
        share=False,
        better="near",
        default=Limit(-0.1, 0.1),
    ),
    "judges_kappa": Measure(
        "agreement",
        "kappa of two judges",
        "Cohen's kappa between two judges on which of two answers is better, both orders together.",
        share=False,
        better="high",
    ),
    "kinds_alpha": Measure(
        "agreement",
        "alpha of all kinds of score",
        "Krippendorff's alpha over (prompt, model) scored in several ways, each kind as its ranks within the "
        "source, so that scales do not count: "
        "1 is full agreement, 0 chance.",
        share=False,
        better="high",
        default=Limit(at_least=0.4),
    ),
    "judges_alpha": Measure(
        "agreement",
        "alpha of the judges' marks",
        "Krippendorff's alpha of the raw scores of all kinds named judge_..., so that a severe judge and a mild one disagree.",
        share=False,
        better="high",
    ),
    "kinds_spearman": Measure(
        "agreement",
        "rank correlation",
        "Spearman correlation of two kinds of score over (prompt, model), ranks taken once.",
        share=False,
        better="high",
    ),
    "kinds_within_prompt": Measure(
        "agreement",
        "agreement on the same prompt",
        "Correlation of two kinds of score after the mean of each prompt is taken off: whether they agree which models did better on it.",
        share=False,
        better="high",
        default=Limit(at_least=0.3),
    ),
    "kinds_interaction": Measure(
        "agreement",
        "agreement beyond reputation",
        "The same after the mean of each model is taken off as well: what they agree on that neither the prompt nor the model alone tells. "
        "This is all that routing can learn.",
        share=False,
        better="high",
    ),
    "prompts_without_score": Measure(
        "coverage",
        "prompts without a score",
        "Share of the prompts for which no model has a score.",
        default=Limit(at_most=0.02),
        sampled=False,
    ),
    "scores_missing": Measure(
        "coverage",
        "scores missing",
        "Share of (prompt, model) without a score, over the models that have scores in the source (any kind, and prompts that have one).",
        default=Limit(at_most=0.05),
        sampled=False,
    ),
    "checked_by_program": Measure(
        "coverage",
        "checked by a program",
        "Share of the prompts whose grader is a program and not a judge.",
        better="high",
        sampled=False,
    ),
    "answers_missing": Measure(
        "coverage",
        "answers missing",
        "Share of (prompt, model) without a stored answer.",
        default=Limit(at_most=0.02),
        sampled=False,
    ),
    "answers_cut": Measure("coverage", "answers cut", "Share of the answers that end at their token limit.", default=Limit(at_most=0.1)),
    "answers_empty": Measure(
        "coverage", "answers empty", "Share of the answers with neither text nor a tool call.", default=Limit(at_most=0.02)
    ),
    "answers_unreadable": Measure(
        "coverage",
        "answers not read",
        "Share of the answers checked by a program that it found nothing to check in: no number, option, JSON, tool call or function.",
        default=Limit(at_most=0.1),
    ),
    "answers_refused": Measure(
        "coverage",
        "refusals",
        "Share of the answers that open with a phrase of refusal (20 languages) and were not marked right. Other wordings are missed.",
        default=Limit(at_most=0.05),
    ),
    "answers_off_language": Measure(
        "coverage",
        "in another language",
        "Share of the answers with enough prose to tell (12 letters for the script, 40 for the language) "
        "that are in another script than asked, "
        "or in English where another language was asked. Code, JSON and tool calls are left out.",
        default=Limit(at_most=0.1),
    ),
    "near_duplicates": Measure(
        "overlap",
        "near-duplicates",
        "Share of the prompts that have a near-duplicate in the same source.",
        default=Limit(at_most=0.05),
        sampled=False,
    ),
    "cross_source": Measure(
        "overlap",
        "shared with another source",
        "Share of the prompts that have a near-duplicate in another source.",
        default=Limit(at_most=0.01),
        sampled=False,
    ),
    "undeclared_duplicates": Measure(
        "overlap",
        "near-duplicates not declared",
        "Share of the prompts with a near-duplicate of another declared group (column group, or the rule of "
        "the source): a split by the declared "
        "groups would leak them. Splits made here join them.",
        default=Limit(at_most=0.01),
        sampled=False,
    ),
    "row_split_leak": Measure(
        "overlap",
        "leak of a split by rows",
        "Expected share of the test prompts of a random 80 / 20 split by rows that have a relative (duplicate, translation, same document) "
        "in training.",
        sampled=False,
    ),
    "translation_leak": Measure(
        "overlap",
        "of it, translations",
        "The same over relatives in another language alone: prompts whose translation would be in training.",
        sampled=False,
    ),
    "split_crossing": Measure(
        "overlap",
        "groups across the given split",
        "Share of the prompts whose group lies in more than one part of the column split.",
        default=Limit(at_most=0.0),
        sampled=False,
    ),
    "same_answer_scores_differ": Measure(
        "overlap",
        "same answer, other score",
        "Share of the pairs of models that answered a prompt with the same words and were not scored the same.",
        default=Limit(at_most=0.02),
    ),
    "retest_differs": Measure(
        "overlap",
        "same prompt, other score",
        "Share of (prompt, model, kind of score) that stand twice under an exactly equal prompt and were "
        "scored differently: what one toss is worth.",
    ),
    "adds_value": Measure(
        "labels",
        "strong adds value",
        "Share of the prompts on which the strong model scores better than the weak one by more than the margin.",
        better="between",
        default=Limit(0.05, 0.95),
    ),
    "weak_better": Measure("labels", "weak better", "Share of the prompts on which the weak model is better by more than the margin."),
    "adds_without_correctness": Measure(
        "labels",
        "of it, not more correct",
        "Of the prompts on which the strong model adds value in quality, the share on which its answer is no "
        "more correct than the weak one's: "
        "form, completeness or clarity make the label.",
        default=Limit(at_most=0.5),
    ),
    "both_fail": Measure("labels", "both fail", "Share of the prompts on which both models of the pair score 0."),
    "both_solve": Measure("labels", "both solve", "Share of the prompts on which both models of the pair score 1."),
    "mean_gap": Measure("labels", "mean gap", "Mean score of the strong model less that of the weak one.", share=False, better="high"),
    "no_information": Measure(
        "labels",
        "all models alike",
        "Share of the prompts on which every model has the same score, so that no pair can be told apart. "
        "For a source with several kinds of "
        "score, in all of them.",
        default=Limit(at_most=0.5),
    ),
    "constant_kinds": Measure(
        "labels",
        "kinds of score without variance",
        "Share of the kinds of score (by source) whose scores are all the same.",
        default=Limit(at_most=0.0),
        sampled=False,
    ),
    "family_share": Measure(
        "labels",
        "largest family",
        "Share of the prompts that are of the largest language family.",
        default=Limit(at_most=0.8),
        sampled=False,
    ),
    "small_families": Measure(
        "labels",
        "families too small to judge",
        "Share of the language families with fewer prompts than a figure needs.",
        default=Limit(at_most=0.0),
        sampled=False,
    ),
}
