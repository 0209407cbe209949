"""Counting flips: on the toy router, and bounds that the shipped one has to keep on prompts of our own."""

import json
import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from interlock import cli
from router.files import encoders
from router.files.artifacts import load_router, write_artifact
from router.types import Conversation
from training.progress import Advance, uncounted
from training.report.robustness import robustness_files
from training.robustness.attack import AttackOptions, run_attacks
from training.robustness.battery import conversations_of, run_battery, summarise, wilson
from training.robustness.gadgets import SearchOptions, search_gadget, with_gadget
from training.robustness.groups import paraphrases
from training.robustness.probe import Probe
from training.robustness.registry import chosen
from training.robustness.run import RobustnessOptions, run_robustness

SMALL = AttackOptions(SearchOptions(length=3, candidates=4, iterations=4, patience=4), learned_on=4, own=2, draws=1)


@pytest.fixture(scope="session")
def probe(toy_router) -> Probe:
    return Probe(toy_router)


@pytest.fixture(scope="session")
def prompts() -> pd.DataFrame:
    return paraphrases().drop_duplicates("group").reset_index(drop=True)


def test_what_the_router_does_not_read_flips_nothing(probe: Probe, prompts: pd.DataFrame) -> None:
    cases = run_battery(probe, prompts[:12], chosen(["white space", "client envelope", "pasted 50 kB log"]))
    assert len(cases) > 100
    assert not cases["flipped"].any()
    assert (cases["before"] == cases["after"]).all()


def test_a_change_that_lengthens_is_seen(probe: Probe, prompts: pd.DataFrame) -> None:
    """The toy router asks for more where a request is longer, so options must move the need."""
    cases = run_battery(probe, prompts[:12], chosen(["options"]))
    table = summarise(cases, probe.thresholds(cases["before"].to_numpy()), probe.capabilities).iloc[0]
    assert table["n"] == 12
    assert table["mean_need"] > 0
    assert table["low"] <= table["flipped"] <= table["high"]


def test_excused_capabilities_may_move(probe: Probe) -> None:
    before = probe.router.route(Conversation.from_text("Sort a list"))
    after = probe.router.route(Conversation.from_text("Sort a list of names by length. " * 300))
    strict, lenient = (probe.difference(before, after, excused) for excused in ((), probe.capabilities))
    assert strict.flipped
    assert not lenient.flipped
    assert lenient.before == lenient.after
    assert np.allclose(strict.shift, lenient.shift)


def test_wilson_interval() -> None:
    assert wilson(0.0, 100) == pytest.approx((0.0, 0.0370), abs=1e-4)
    assert wilson(0.5, 40) == pytest.approx((0.3520, 0.6480), abs=1e-4)
    assert wilson(1.0, 10)[1] == 1.0


def test_the_search_only_gets_better(probe: Probe, prompts: pd.DataFrame) -> None:
    conversation = Conversation.from_text("Sort a list")
    calls: list[float] = []

    def needs(conversations):
        found = probe.need(probe.requirements(conversations))
        calls.extend(found.tolist())
        return found

    words = ["aa", "bbb", "?", "{", "12", "cc"]
    gadget, asked = search_gadget(needs, [conversation], words, "up", "suffix", SearchOptions(4, 3, 10, 5), random.Random(1))
    assert asked == len(calls) <= 1 + 3 * 10
    assert max(calls) == pytest.approx(needs([with_gadget(conversation, gadget, "suffix")])[0])


def test_attacks_report_every_kind_and_the_learned_prompts_are_left_out(probe: Probe, prompts: pd.DataFrame) -> None:
    thresholds = probe.thresholds(probe.needs(map(probe.router.route, map(Conversation.from_text, ["Hi", "Sort a list", "x" * 90]))))
    steps: list[int] = []
    table = run_attacks(probe, prompts, thresholds, SMALL, progress=steps.append)
    assert sum(steps) == SMALL.steps
    assert len(table) == 4 * 2 * 2 * len(thresholds)
    universal = table[(table["kind"] == "universal") & (table["threshold"] == "own")].groupby("position")["n"].sum()
    assert (universal == len(prompts) - SMALL.learned_on).all()
    assert table.loc[table["n"] == 0, "success"].isna().all()
    assert table.equals(run_attacks(probe, prompts, thresholds, SMALL, progress=uncounted))


def command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], toy, *arguments: str, router: Path | None = None
) -> tuple[object, str]:
    monkeypatch.setattr(encoders, "SHIPPED_FAST", toy.encoder)
    paths = ("--router", str(router or toy.artifact), "--catalog", str(toy.catalog))
    monkeypatch.setattr(sys, "argv", ["interlock", "robustness", *paths, *arguments])
    with pytest.raises(SystemExit) as stopped:
        cli.main()
    return stopped.value.code, capsys.readouterr().err


def test_the_command_writes_a_report_and_fails_a_broken_limit(
    probe: Probe, prompts: pd.DataFrame, toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # A threshold in the midst of the needs, so that other wordings cross it.
    middle = float(np.median(probe.needs(map(probe.router.route, conversations_of(prompts)))))
    write_artifact(replace(probe.router.artifact, default_threshold=middle), tmp_path / "router")
    data = tmp_path / "prompts.jsonl"
    rows = paraphrases().drop_duplicates("group")
    lines = [
        {"source": "own", "prompt_id": str(i), "language": row.language, "turns": row.turns} for i, row in enumerate(rows.itertuples())
    ]
    data.write_text("\n".join(json.dumps(line, ensure_ascii=False) for line in lines), encoding="utf-8")
    common = ("--data", str(data), "--sample", "10", "--no-attack", "--output", str(tmp_path / "out"))
    assert command(monkeypatch, capsys, toy, *common, "--only", "white space")[0] == 0
    code, said = command(
        monkeypatch, capsys, toy, *common, "--only", "paraphrase", "--only", "white space", "--max-flips", "0", router=tmp_path / "router"
    )
    assert code == 3
    assert "fail: paraphrase" in said
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {"robustness.html", "robustness.md", "robustness.json", "robustness.csv"}
    result = json.loads((out / "robustness.json").read_text(encoding="utf-8"))
    assert not result["passed"]
    assert {row["family"] for row in result["changes"]} == {"paraphrase", "white space"}
    page = (out / "robustness.html").read_text(encoding="utf-8")
    assert "<svg" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--only", "boldd"), "unknown transformation 'boldd'"),
        (("--max-flips", "2"), "max-flips is 2.0: a share within [0, 1] was expected"),
        (("--data", "nowhere"), "nowhere"),
        (("--sample", "3", "--only", "bold"), "too few for attacks"),
    ],
)
def test_wrong_input_is_one_line(
    arguments: tuple[str, ...], said: str, toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, error = command(monkeypatch, capsys, toy, *arguments, "--output", str(tmp_path / "out"))
    assert code == 2
    assert error.splitlines()[-1].startswith("error: ")
    assert said in error
    assert not (tmp_path / "out").exists()


FREE: tuple[str, ...] = ("white space", "Unicode", "client envelope", "long system prompt", "pasted 50 kB log", "mail history")


def shipped(prompts: pd.DataFrame, families: tuple[str, ...]) -> pd.Series:
    probe = Probe(load_router()[0])
    return run_battery(probe, prompts, chosen(families)).groupby("family")["flipped"].mean()


def test_the_shipped_router_keeps_its_decision_where_nothing_was_asked_anew(prompts: pd.DataFrame) -> None:
    """Bounds of docs/robustness.md, on 16 requests of our own in 14 languages."""
    few = prompts[::3].reset_index(drop=True)
    assert (shipped(few, FREE) == 0).all()


@pytest.mark.slow
def test_the_shipped_router_mostly_keeps_it_where_a_request_is_worded_otherwise(prompts: pd.DataFrame) -> None:
    assert (shipped(prompts, FREE) <= 0.02).all()
    assert (shipped(prompts, ("letter case", "typing errors", "courtesy", "benchmark frame")) <= 0.2).all()


def test_files_are_the_same_for_the_same_result(probe: Probe, prompts: pd.DataFrame) -> None:
    options = RobustnessOptions(sample=8, only=("courtesy",), attack=None)

    @contextmanager
    def silent(title: str, total: int) -> Iterator[Advance]:
        yield uncounted

    first, second = (
        run_robustness(probe.router, prompts, options, silent).with_about(router="toy", command="", environment={}) for _ in "ab"
    )
    assert robustness_files(first) == robustness_files(second)
