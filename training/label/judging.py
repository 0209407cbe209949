"""Ask the judge about every pair that needs it, keep every verdict, average the two orders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from training.label.answering import MAX_FAILURES_IN_A_ROW, Tally, each, failure, now, stored_answer
from training.label.budget import BudgetReached, Ledger
from training.label.client import ChatClient, EndpointError, EndpointUnusable
from training.label.config import LabelConfig, ModelSpec
from training.label.graders import Answer
from training.label.judge import JUDGE_VERSION, RESPONSE_FORMAT, Verdict, combine, judge_messages, parse_verdicts
from training.label.progress import Progress
from training.label.prompts import LabelPrompt, digest, encodable
from training.label.requests import estimate_tokens
from training.label.store import JsonlStore, Key

# What servers say that do not know response_format with a JSON schema.
NO_RESPONSE_FORMAT = (400, 415, 422, 500, 501)
JUDGEMENT_KEY = ("prompt_id", "pair_hash", "first", "second", "judge")


@dataclass(frozen=True)
class Question:
    """One request to the judge: two models' answers in one order."""

    prompt: LabelPrompt
    first: str
    second: str
    first_answer: Answer
    second_answer: Answer
    key: Key


def answer_of(record: Mapping[str, Any]) -> Answer:
    """Return what graders and judges read of a stored answer."""
    return Answer(encodable(record["text"]), tuple(encodable(record.get("tool_calls", []))), record["finish_reason"])


def needs_judge(config: LabelConfig, prompt: LabelPrompt) -> bool:
    """Tell whether a prompt goes to the judge."""
    return prompt.grader["kind"] == "judge" or config.run.judge_everything


def judge_identity(config: LabelConfig, judge: ModelSpec) -> str:
    """Name the judge with all that its verdicts depend on."""
    settings = {"version": JUDGE_VERSION, "temperature": config.run.temperature, "seed": config.run.seed, "extra": dict(judge.extra_body)}
    return f"{judge.model}#{digest(settings)}"


def questions(config: LabelConfig, judge: ModelSpec, prompts: Sequence[LabelPrompt], answers: JsonlStore) -> Iterator[Question]:
    """Yield both orders of (strong, other) for every prompt that needs the judge and has both answers."""
    identity = judge_identity(config, judge)
    strong, *others = config.answering
    for prompt in prompts:
        if not needs_judge(config, prompt):
            continue
        for other in others:
            records = [stored_answer(config, model, prompt, answers) for model in (strong, other)]
            if records[0] is None or records[1] is None:
                continue
            one, two = answer_of(records[0]), answer_of(records[1])
            for names, pair in (((strong.name, other.name), (one, two)), ((other.name, strong.name), (two, one))):
                yield Question(prompt, *names, *pair, key=(prompt.prompt_id, pair_digest(prompt, *pair), *names, identity))


def pair_digest(prompt: LabelPrompt, first: Answer, second: Answer) -> str:
    """Identify what a verdict is about: the prompt, its rubric and reference, and both answers in their order."""
    return digest([prompt.hash, dict(prompt.grader), prompt.reference, answer_digest(first), answer_digest(second)])


def answer_digest(answer: Answer) -> str:
    """Identify an answer by what it says."""
    return digest([answer.text, [dict(call) for call in answer.tool_calls]])


async def judge_all(
    config: LabelConfig,
    judge: ModelSpec,
    asked: Sequence[Question],
    store: JsonlStore,
    ledger: Ledger,
    client: ChatClient,
    progress: Progress,
    tally: Tally,
) -> None:
    """Ask the judge what the store does not hold yet; ``tally`` counts along, also when this raises."""
    missing = [question for question in asked if question.key not in store]
    tally.wanted, tally.done = len(asked), len(asked) - len(missing)
    structured, in_a_row = True, 0
    max_tokens = int(config.run.judge_max_tokens)

    async def ask(question: Question) -> None:
        nonlocal structured, in_a_row
        if tally.budget_reached:
            return
        messages = judge_messages(question.prompt, question.first_answer, question.second_answer)
        try:
            ticket = await ledger.reserve_in_turn(judge, estimate_tokens(messages), max_tokens)
        except BudgetReached:
            tally.budget_reached = True
            return
        try:
            try:
                completion = await client.complete(messages, max_tokens=max_tokens, response_format=RESPONSE_FORMAT if structured else None)
            except EndpointError as error:
                if not structured or error.status not in NO_RESPONSE_FORMAT:
                    raise
                completion = await client.complete(messages, max_tokens=max_tokens)
                structured = False  # this server does not know response_format
            cost = ledger.settle(ticket, judge, completion.prompt_tokens, completion.completion_tokens)
            verdicts = parse_verdicts(completion.text)
            if verdicts is None:
                raise EndpointError(f"judge {judge.name!r} gave no scores: {completion.text[:80]!r}")
        except EndpointError as error:
            ledger.release(ticket)
            in_a_row += 1
            if in_a_row > MAX_FAILURES_IN_A_ROW or (isinstance(error, EndpointUnusable) and tally.done == tally.wanted - len(missing)):
                raise EndpointUnusable(f"{error} ({in_a_row} failures in a row)") from error
            tally.failures.append(failure("judge", question.prompt, question.second, error))
            progress.failed()
            return
        except BaseException:
            ledger.release(ticket)
            raise
        in_a_row = 0
        store.append(
            {
                **dict(zip(JUDGEMENT_KEY, question.key, strict=True)),
                "first_scores": verdicts[0].scores,
                "second_scores": verdicts[1].scores,
                "prompt_tokens": completion.prompt_tokens,
                "completion_tokens": completion.completion_tokens,
                "cost_usd": cost,
                "at": now(),
            }
        )
        tally.done += 1
        progress.advance()

    progress.start(f"verdicts of {judge.name}", tally.wanted, tally.done)
    await each(missing, judge.concurrency, ask)


def judged_scores(asked: Sequence[Question], store: JsonlStore) -> list[dict[str, Any]]:
    """Average both orders of every fully judged pair into one row per prompt and model.

    The strong model meets every other one, so its scores are averaged over its pairs.
    """
    rows: dict[tuple[str, str], list[tuple[dict[str, float], bool]]] = {}
    for forward, backward in zip(asked[0::2], asked[1::2], strict=True):
        ahead, swapped = store.get(forward.key), store.get(backward.key)
        if ahead is None or swapped is None:
            continue
        first, second, agree = combine(_verdicts(ahead), _verdicts(swapped))
        rows.setdefault((forward.prompt.prompt_id, forward.first), []).append((first, agree))
        rows.setdefault((forward.prompt.prompt_id, forward.second), []).append((second, agree))
    return [
        {
            "prompt_id": prompt_id,
            "model": model,
            "scores": {name: sum(scores[name] for scores, _ in seen) / len(seen) for name in seen[0][0]},
            "orders_agree": all(agree for _, agree in seen),
        }
        for (prompt_id, model), seen in rows.items()
    ]


def _verdicts(record: Mapping[str, Any]) -> tuple[Verdict, Verdict]:
    return Verdict(record["first_scores"]), Verdict(record["second_scores"])
