"""A labelling run: answer, judge, grade, and write the tables; every stage resumes."""

from __future__ import annotations

import asyncio
import json
import platform
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd

from router.errors import LabelError
from router.files.atomic import write_atomically
from training.label.answering import ANSWER_KEY, ClientFactory, Tally, answer_all, needs_asking, now, stored_answer
from training.label.budget import Ledger
from training.label.client import ChatClient, EndpointUnusable
from training.label.config import LabelConfig, ModelSpec
from training.label.deltas import deltas_table, outcomes_table
from training.label.graders import GRADER_VERSION
from training.label.interrupt import termination_interrupts
from training.label.judge import JUDGE_VERSION
from training.label.judging import JUDGEMENT_KEY, judge_all, judged_scores, questions
from training.label.output import held, require_files
from training.label.progress import Progress
from training.label.prompts import LabelPrompt
from training.label.records import wrong_in_answer, wrong_in_judgement
from training.label.scoring import Row, grade_all, judge_rows
from training.label.store import JsonlStore, write_jsonl
from training.tables import write_tables

STAGES = ("answer", "judge", "grade")


@dataclass(frozen=True)
class RunReport:
    """What a run did, for the command line and for tests."""

    answers: int
    answers_wanted: int
    verdicts: int
    verdicts_wanted: int
    failures: int
    budget_reached: bool
    tokens: int
    usd: float
    outcomes: int
    to_replace: int = 0


@dataclass
class LabelRun:
    """One run folder and what is to be done in it."""

    config: LabelConfig
    prompts: Sequence[LabelPrompt]
    out: Path
    stages: Sequence[str] = STAGES
    only: Sequence[str] = ()
    client_factory: ClientFactory | None = None
    progress: Progress = field(default_factory=Progress)

    def __post_init__(self) -> None:
        self.prompts = [self._with_defaults(prompt) for prompt in self.prompts]
        names = [model.name for model in self.config.answering]
        for name in self.only:
            if name not in names:
                raise LabelError(f"--only {name!r} is not a model of this run; models: {', '.join(names)}")
        self.ledger = Ledger(self.config.budget)
        self.tallies: dict[str, Tally] = {}

    def _open_stores(self) -> None:
        """Read what the folder holds; only the run that holds the folder may, since this mends a torn last line."""
        self.answers = JsonlStore(self.out / "answers.jsonl", ANSWER_KEY, wrong_in_answer)
        self.judgements = JsonlStore(self.out / "judgements.jsonl", JUDGEMENT_KEY, wrong_in_judgement)
        for store in (self.answers, self.judgements):
            if store.torn_lines:
                self.progress.say(f"{store.path.name}: dropped a line that an interrupted run left half-written")

    def _with_defaults(self, prompt: LabelPrompt) -> LabelPrompt:
        defaults = self.config.prompts
        return replace(prompt, source=prompt.source or defaults.source or "custom", licence=prompt.licence or defaults.licence)

    def execute(self) -> RunReport:
        """Run the chosen stages; answers are kept whatever happens in between."""
        self._refuse_unpriced()
        require_files(self.out)
        with held(self.out), termination_interrupts(), self.progress:
            self._open_stores()
            try:
                asyncio.run(self._ask_everything())
            except asyncio.CancelledError:
                raise KeyboardInterrupt from None
            self._refuse_silence()
            self._refuse_silent_judge()
            return self._write_tables()

    def _asked_models(self) -> list[ModelSpec]:
        """Return the models that this run may send requests to."""
        asked = [model for model in self.config.answering if not self.only or model.name in self.only] if "answer" in self.stages else []
        return [*asked, self.config.judge] if "judge" in self.stages and self.config.judge is not None else asked

    def _refuse_unpriced(self) -> None:
        """Refuse a money budget that could never stop the run."""
        if self.config.budget.usd is None:
            return
        for model in self._asked_models():
            if not model.price_in_per_mtok and not model.price_out_per_mtok:
                raise LabelError(
                    f"model {model.name!r} has no price, so a budget of {self.config.budget.usd:g} USD could never stop it: "
                    "give price_in_per_mtok and price_out_per_mtok in label.toml, or, if it is free, drop the USD budget"
                )

    def _refuse_silence(self) -> None:
        """A run without one usable answer to its prompts has failed; no tables are made of nothing."""
        if self._current_answers():
            return
        failed = [entry for tally in self.tallies.values() for entry in tally.failures]
        if failed:
            raise LabelError(f"none of {len(failed)} requests was answered; the first: {failed[0]['error']}")
        if any(tally.budget_reached for tally in self.tallies.values()):
            raise LabelError(
                "the budget does not cover the first request, so nothing was answered; raise [budget], or --max-usd and --max-total-tokens"
            )
        raise LabelError(
            f"{self.out} holds no answer to these prompts by these models and settings, and none was asked for: "
            "name the folder of the earlier run with --out, or run without --grade-only and --judge-only"
        )

    def _refuse_silent_judge(self) -> None:
        """A judge of whom no verdict could be had has failed: tables that stand are left, and new ones hold what programs graded."""
        tally = self.tallies.get("judge", Tally())
        if tally.done or not tally.failures:
            return
        kept = "the tables stay as they were"
        if not (self.out / "outcomes.parquet").exists():
            self._write_tables()
            kept = "the tables hold what programs graded"
        raise LabelError(
            f"the judge answered none of {len(tally.failures)} questions; the first: {tally.failures[0]['error']}; "
            f"every answer is kept, and {kept}: run again to ask the judge alone"
        )

    async def _ask_everything(self) -> None:
        try:
            if "answer" in self.stages:
                chosen = [model for model in self._asked_models() if model.role != "judge"]
                if self.config.run.models_at_once:
                    await asyncio.gather(*(self._answer(model) for model in chosen))
                else:
                    for model in chosen:
                        await self._answer(model)
            if "judge" in self.stages and self.config.judge is not None:
                await self._judge(self.config.judge)
        finally:
            self._write_failures()

    def _client(self, model: ModelSpec) -> ChatClient:
        return self.client_factory(model) if self.client_factory else ChatClient(model, self.config.run)

    async def _answer(self, model: ModelSpec) -> None:
        client = self._client(model)
        tally = self.tallies.setdefault(f"answer {model.name}", Tally())
        try:
            await answer_all(self.config, model, self.prompts, self.answers, self.ledger, client, self.progress, tally)
        finally:
            await client.close()

    async def _judge(self, judge: ModelSpec) -> None:
        asked = list(questions(self.config, judge, self.prompts, self.answers))
        client = self._client(judge)
        tally = self.tallies.setdefault("judge", Tally())
        try:
            await judge_all(self.config, judge, asked, self.judgements, self.ledger, client, self.progress, tally)
        except EndpointUnusable as error:
            raise EndpointUnusable(f"{error}; every answer is kept: run again to ask the judge alone") from error
        finally:
            await client.close()

    def _write_failures(self) -> None:
        failures = [entry for tally in self.tallies.values() for entry in tally.failures]
        path = self.out / "failures.jsonl"
        if failures:
            write_jsonl(path, failures)
        elif {"answer", "judge"} & set(self.stages):
            path.unlink(missing_ok=True)

    def _current_answers(self) -> dict[tuple[str, str], dict[str, Any]]:
        found = {}
        for prompt in self.prompts:
            for model in self.config.answering:
                record = stored_answer(self.config, model, prompt, self.answers)
                if record is not None:
                    found[prompt.prompt_id, model.name] = record
        return found

    def _write_tables(self) -> RunReport:
        current = self._current_answers()
        asked = list(questions(self.config, self.config.judge, self.prompts, self.answers)) if self.config.judge else []
        judged = judged_scores(asked, self.judgements)
        outcomes = 0
        if "grade" in self.stages:
            rows = grade_all(self.config, self.prompts, self.answers, self.out / "scores.jsonl", self.progress)
            if self.config.judge is not None:
                rows += judge_rows(judged, self.config.judge.name, rows)
            outcomes = self._write_outcomes(rows, current)
        done = sum(question.key in self.judgements for question in asked)
        report = RunReport(
            answers=len(current),
            answers_wanted=len(self.prompts) * len(self.config.answering),
            verdicts=done,
            verdicts_wanted=len(asked),
            failures=sum(len(tally.failures) for tally in self.tallies.values()),
            budget_reached=any(tally.budget_reached for tally in self.tallies.values()),
            tokens=self.ledger.tokens,
            usd=self.ledger.usd,
            outcomes=outcomes,
            to_replace=sum(
                needs_asking(self.config, model, prompt, self.answers)
                for prompt in self.prompts
                for model in self.config.answering
                if (prompt.prompt_id, model.name) in current
            ),
        )
        card = json.dumps(self._card(current, judged, report), indent=2, ensure_ascii=False)
        write_atomically(self.out / "run.json", card.encode() + b"\n")
        return report

    def _write_outcomes(self, rows: list[Row], current: dict[tuple[str, str], dict[str, Any]]) -> int:
        write_jsonl(self.out / "scores.jsonl", rows)
        # A model without a price costs nobody knows what, not nothing.
        priced = {model.name for model in self.config.answering if model.price_in_per_mtok or model.price_out_per_mtok}
        costs = {key: record["cost_usd"] for key, record in current.items() if key[1] in priced}
        outcomes = outcomes_table(self.config, self.prompts, rows, costs)
        deltas = deltas_table(self.config, self.prompts, rows)
        write_tables(self.out, {"prompts": prompts_table(self.prompts), "outcomes": outcomes, "deltas": deltas})
        return len(outcomes)

    def _card(self, current: dict[tuple[str, str], dict[str, Any]], judged: Sequence[dict[str, Any]], report: RunReport) -> dict[str, Any]:
        per_model = {}
        for model in self.config.answering:
            records = [record for (_, name), record in current.items() if name == model.name]
            per_model[model.name] = {
                "answers": len(records),
                "prompt_tokens": sum(record["prompt_tokens"] for record in records),
                "completion_tokens": sum(record["completion_tokens"] for record in records),
                "cost_usd": round(sum(record["cost_usd"] for record in records), 6),
                "cut_at_token_limit": sum(record["finish_reason"] == "length" for record in records),
                "first_at": min((record["at"] for record in records), default=None),
                "last_at": max((record["at"] for record in records), default=None),
            }
        agree = [entry["orders_agree"] for entry in judged]
        return {
            "format": 1,
            "written_at": now(),
            **self.config.public(),
            "prompts": len(self.prompts),
            "answers": per_model,
            "answers_missing": report.answers_wanted - report.answers,
            "answers_to_replace": report.to_replace,
            "verdicts": report.verdicts,
            "verdicts_missing": report.verdicts_wanted - report.verdicts,
            "judge_orders_agree": round(sum(agree) / len(agree), 4) if agree else None,
            "versions": {"grader": GRADER_VERSION, "judge": JUDGE_VERSION, "python": platform.python_version(), **_versions()},
        }


def _versions() -> dict[str, str]:
    found = {}
    for name in ("interlock", "openai", "jsonschema", "pandas", "pyarrow"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


def prompts_table(prompts: Sequence[LabelPrompt]) -> pd.DataFrame:
    """Return the prompts in the public column layout; lists and objects as JSON text."""

    def dump(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False)

    rows = [
        {
            "source": prompt.source,
            "prompt_id": prompt.prompt_id,
            "language": None if prompt.language == "und" else prompt.language,
            "family": prompt.family,
            "task_kind": prompt.task_kind or prompt.capability,
            "category": prompt.category,
            "turns": dump([dict(message) for message in prompt.messages]),
            "n_turns": sum(message["role"] == "user" for message in prompt.messages),
            "licence": prompt.licence,
            "group": prompt.group,
            "capability": prompt.capability,
            "difficulty": prompt.difficulty,
            "author": prompt.author,
            "tools": dump([dict(tool) for tool in prompt.tools]) if prompt.tools else None,
            "grader": dump(dict(prompt.grader)),
            "reference": prompt.reference,
            "max_tokens": prompt.max_tokens,
        }
        for prompt in prompts
    ]
    return pd.DataFrame(rows).astype({"max_tokens": "Int64"})
