"""``interlock audit``: how far the labels of a folder can be trusted."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.audit.run import AuditResult
    from training.recipe import Pair


def audit(
    labels: Annotated[Path, typer.Argument(help="Folder as `interlock label` writes it, or with prompts and outcomes alone.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for audit.html, audit.json and the CSV tables; new, empty, or an earlier audit.")
    ],
    thresholds: Annotated[
        Path | None, typer.Option(help="TOML with limits (docs/audit.md). Without it, default limits warn and nothing fails.")
    ] = None,
    weak: Annotated[list[str] | None, typer.Option(help="Weak model of the labels; repeat for other names of the same one.")] = None,
    strong: Annotated[list[str] | None, typer.Option(help="Strong model; may be repeated likewise.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="TOML with the pairs of models. Default: recipe.toml in the folder, else the models of the run.")
    ] = None,
    score_kind: Annotated[list[str] | None, typer.Option(help="Kind of score of the pair; repeat it, best first.")] = None,
    margin: Annotated[float, typer.Option(min=0, max=1, help="A strong model adds value if it is better by more than this.")] = 0.0,
    similarity: Annotated[float, typer.Option(min=0.1, max=1, help="From which Jaccard similarity prompts are near duplicates.")] = 0.8,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for the intervals; 0 leaves them out.")] = 1000,
    min_rows: Annotated[int, typer.Option(min=1, help="A source or family with fewer rows gets counts and no figure.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
) -> None:
    """Audit labels: judge bias and agreement, coverage, duplicates and leakage, and what the labels say, per family and source.

    Exit code 3 if a limit of --thresholds is not kept, 2 for what cannot be read, 0 otherwise.

    Example: interlock audit data/sample --output runs/audit
    """
    from training.audit.files import check_output, write_audit
    from training.audit.run import FAILED, audit_folder
    from training.audit.slices import AuditOptions
    from training.audit.thresholds import read_thresholds

    check_output(output)
    result = audit_folder(
        labels,
        thresholds=None if thresholds is None else read_thresholds(thresholds),
        pairs=_pairs(labels, recipe, weak or [], strong or [], score_kind or []),
        options=AuditOptions(margin=margin, n_bootstrap=bootstrap, seed=seed, min_rows=min_rows, similarity=similarity),
        say=lambda text: typer.echo(text, err=True),
    )
    write_audit(result.with_about(command=f"interlock {shlex.join(sys.argv[1:])}"), output)
    _print(result)
    typer.echo(f"card: {output / 'audit.html'}")
    if result.failed:
        raise typer.Exit(FAILED)


def _pairs(labels: Path, recipe: Path | None, weak: list[str], strong: list[str], kinds: list[str]) -> tuple[Pair, ...]:
    """The pairs that were asked for; none where the labels themselves have to say."""
    from training.recipe import RECIPE_NAME, recipe_of

    if not (weak or strong or kinds or recipe) and not (labels / RECIPE_NAME).is_file():
        return ()
    return recipe_of(recipe, [labels], weak, strong, kinds).pairs


def _print(result: AuditResult) -> None:
    from training.audit import view

    about = result.about
    more = "".join(f", {about[name]:,} {name}" for name in ("answers", "verdicts") if about[name] is not None)
    typer.echo(f"{about['labels']}: {about['prompts']:,} prompts, {about['outcomes']:,} scores of {about['models']} models{more}")
    for note in result.notes:
        typer.echo(f"note: {note}")
    rows = view.threshold_rows(result)
    for row in rows:
        if row["verdict"] in ("fail", "warn") or row["fails"]:
            where = (
                f" ({', '.join(filter(None, (row['where'], row['subject'])))})" if (row["where"], row["subject"]) != ("overall", "") else ""
            )
            interval = f" [{row['interval']}]" if row["interval"] else ""
            remark = f"; {row['note']}" if row["note"] else ""
            typer.echo(f"{row['verdict']:14} {row['title']}{where}: {row['value']}{interval}, {row['limit']} is the limit{remark}")
    counts = view.verdict_counts(result)
    said = [f"{counts.get('pass', 0)} of {len(rows)} limits kept"]
    said += [
        f"{counts[name]} {word}"
        for name, word in (("fail", "failed"), ("warn", "warned"), ("not measurable", "not measurable"))
        if name in counts
    ]
    typer.echo(", ".join(said))
