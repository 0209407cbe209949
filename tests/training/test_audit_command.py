from __future__ import annotations

import io
import json
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from interlock.cli import main
from training.audit.files import audit_files
from training.audit.measures import MEASURES
from training.audit.run import audit_folder
from training.audit.slices import AuditOptions

sys.path.insert(0, str(Path(__file__).parent))
from audit_folder import fair, first_is_best, label_run, prompt_rows, scores_only

Capture = pytest.CaptureFixture[str]
QUICK = ("--bootstrap", 20, "--min-rows", 10)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return label_run(tmp_path_factory.mktemp("audit") / "run", first_is_best, n=30)


def _run(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["interlock", "audit", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    return int(ended.value.code or 0)


def test_a_card_from_a_folder_and_again_over_it(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    out = tmp_path / "audit"
    for _ in range(2):
        assert _run(monkeypatch, folder, *QUICK, "--output", out) == 0
    data = json.loads((out / "audit.json").read_text(encoding="utf-8"))
    assert data["about"]["command"].startswith("interlock audit ")
    assert data["failed"] is False
    figures = pd.read_csv(out / "figures.csv")
    assert set(figures["measure"]) == set(MEASURES)
    found = next(row for row in data["figures"] if (row["measure"], row["slice"]) == ("first_position", "Germanic"))
    assert found["value"] == 1
    said = capsys.readouterr()
    assert "warn           wins of the first position (overall, referee): 100.0 %" in said.out
    assert str(out / "audit.html") in said.out
    assert "check 7 of 7" in said.err
    assert [path.name for path in tmp_path.iterdir()] == ["audit"]


def test_limits_decide_the_exit_code(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    limits = tmp_path / "audit.toml"
    out = tmp_path / "audit"
    for text, code in (("swap_consistency = 0.7", 3), ("verdict_ties = 0.1", 0), ("kinds_alpha = 0.1", 3)):
        limits.write_text(f"[overall]\n{text}\n")
        assert _run(monkeypatch, folder, *QUICK, "--thresholds", limits, "--output", out) == code
    said = capsys.readouterr().out
    assert "fail           same verdict in both orders (overall, referee): 0.0 %" in said
    assert "at least 70 % is the limit" in said
    assert re.search(r"not measurable alpha of all kinds of score: –, at least 0\.1 is the limit; no answer has more than one kind", said)
    assert json.loads((out / "audit.json").read_text(encoding="utf-8"))["failed"] is True


def _corrupt(folder: Path) -> None:
    (folder / "outcomes.jsonl").unlink()
    (folder / "outcomes.parquet").write_bytes(b"PAR1 not really PAR1")


def _line(name: str, **changes: Any) -> Any:
    def change(folder: Path) -> None:
        lines = (folder / name).read_text(encoding="utf-8").splitlines()
        lines[2] = json.dumps({**json.loads(lines[2]), **changes})
        (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")

    return change


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda folder: [path.unlink() for path in folder.iterdir()], "has no prompts.parquet or prompts.jsonl"),
        (lambda folder: (folder / "outcomes.jsonl").unlink(), "has no outcomes.parquet or outcomes.jsonl"),
        (_corrupt, "outcomes.parquet: not a readable Parquet file"),
        (_line("outcomes.jsonl", score=float("nan")), "outcomes.jsonl:3: column 'score' is nan"),
        (_line("outcomes.jsonl", prompt_id="elsewhere"), "is not in the prompt table"),
        (_line("scores.jsonl", score=2), "scores.jsonl:3: 'score' is missing or not what it should be"),
        (_line("judgements.jsonl", first_scores={"correctness": None}), "judgements.jsonl:3: 'first_scores'"),
        (_line("answers.jsonl", text=None), "answers.jsonl:3: 'text'"),
        (lambda folder: (folder / "answers.jsonl").write_bytes(b'{"prompt_id": "p0", "te'), "answers.jsonl:1: not JSON"),
        (lambda folder: (folder / "run.json").write_text("[]"), "run.json is not a run card"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    damage: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    mine = label_run(tmp_path / "run", fair, n=30)
    damage(mine)
    assert _run(monkeypatch, mine, *QUICK, "--output", tmp_path / "audit") == 2
    said = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert len(said) == 1
    assert message in said[0]
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--thresholds", "/nowhere.toml"), "no thresholds at /nowhere.toml"),
        (("--weak", "smal", "--strong", "large"), "unknown model 'smal'"),
        (("--weak", "small"), "--weak and --strong go together"),
        (("--score-kind", "quality"), "no pair of models"),
        (("--similarity", "7"), "--similarity"),
    ],
)
def test_wrong_options_are_one_line(
    options: tuple[str, ...], message: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert _run(monkeypatch, folder, *QUICK, *options, "--output", tmp_path / "audit") == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_none_and_one_that_is_taken(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    assert _run(monkeypatch, tmp_path / "nowhere", "--output", tmp_path / "audit") == 2
    assert "does not exist" in capsys.readouterr().err
    before = sorted(path.name for path in folder.iterdir())
    assert _run(monkeypatch, folder, "--output", folder) == 2  # the labels themselves are not replaced
    assert "holds other files" in capsys.readouterr().err
    assert sorted(path.name for path in folder.iterdir()) == before


def test_an_interrupted_audit_leaves_the_earlier_one(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "audit"
    assert _run(monkeypatch, folder, *QUICK, "--output", out) == 0
    before = {path.name: path.read_bytes() for path in out.iterdir()}

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("training.audit.run.check_overlap", interrupt)
    assert _run(monkeypatch, folder, *QUICK, "--output", out) == 130
    assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["audit"]


class _Balanced(HTMLParser):
    VOID = frozenset({"meta", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: object) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def pages(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    prompts = [{**row, "source": "試験 <b>" if i % 2 else "own"} for i, row in enumerate(prompt_rows(60))]
    alone = scores_only(
        tmp_path_factory.mktemp("audit") / "a & b", prompts, {"نموذج <i>": lambda i: i % 2, "large": lambda i: float(i % 3 > 0)}
    )
    options = AuditOptions(n_bootstrap=20, min_rows=10)
    return [audit_files(audit_folder(place, options=options, say=lambda _: None))["audit.html"].decode() for place in (folder, alone)]


def test_the_page_stands_alone_and_escapes_names(pages: list[str]) -> None:
    for page in pages:
        parser = _Balanced()
        parser.feed(page)
        assert parser.open == []
        assert "http" not in page
        assert not re.search(r"<(script|link|img|iframe|object)\b|@import|url\(", page)
        used = set(re.findall(r"var\((--[\w-]+)\)", page))
        assert used <= set(re.findall(r"(--[\w-]+):", page))
        assert not re.search(r">\s*(nan|None|inf)\s*<", page)
    assert "試験 &lt;b&gt;" in pages[1]
    assert "نموذج &lt;i&gt;" in pages[1]
    assert "<title>Label audit: a &amp; b</title>" in pages[1]


def test_the_page_has_every_family_and_says_what_is_missing(pages: list[str]) -> None:
    for page in pages:
        for family in ("English", "Germanic", "Japonic"):
            assert f'<th scope="row"><bdi>{family}</bdi></th>' in page
        assert "Question 1" not in page  # prompts stand by id
    assert "first in both" in pages[0]
    assert "Not measurable (no judge&#39;s verdicts are here)" in pages[1]


def test_equal_audits_give_equal_bytes_but_for_the_time(folder: Path) -> None:
    result = audit_folder(folder, options=AuditOptions(n_bootstrap=20), say=lambda _: None)
    assert audit_files(result) == audit_files(result)
    assert "swap_consistency" in pd.read_csv(io.BytesIO(audit_files(result)["thresholds.csv"]))["measure"].tolist()


@pytest.mark.slow
def test_the_embedded_sample_can_be_audited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Path(__file__).parents[2] / "data" / "sample"
    if not (sample / "answers.jsonl").is_file():
        pytest.skip("data/sample is not part of this copy")
    assert _run(monkeypatch, sample, "--bootstrap", 20, "--output", tmp_path / "audit") == 0
    data = json.loads((tmp_path / "audit" / "audit.json").read_text(encoding="utf-8"))
    values = {row["measure"]: row["value"] for row in data["figures"] if row["slice_kind"] == "all"}
    assert values["prompts_without_score"] == 0
    assert values["undeclared_duplicates"] == 0
    assert values["adds_value"] is not None
