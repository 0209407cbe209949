"""``interlock data``: list the public data sets that can be read, convert one, check tables."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

app = typer.Typer(help="Prompt and outcome tables: convert public data sets, check your own.", no_args_is_help=True)


@app.command()
def sources(name: Annotated[str | None, typer.Argument(help="Show one data set in full.")] = None) -> None:
    """List the public data sets that `convert` reads, where they are, and what is read of them."""
    from training.sources import SOURCES, source_named

    for source in SOURCES.values() if name is None else [source_named(name)]:
        typer.echo(f"{source.name}: {source.title}\n  {source.url}")
        if name is not None:
            typer.echo(f"  licence: {source.licence}\n  score:   {source.scores}\n  columns:")
            for column, meaning in source.columns.items():
                typer.echo(f"    {column}: {meaning}")


@app.command()
def convert(
    name: Annotated[str, typer.Argument(help="Data set: routellm, routerbench, lmarena, helpsteer3 or languagebench.")],
    path: Annotated[Path, typer.Argument(help="File you downloaded (Parquet, CSV, JSONL, JSON; text also as .gz). Pickles are not read.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for prompts.parquet and outcomes.parquet.")],
) -> None:
    """Turn a downloaded data set into prompts.parquet and outcomes.parquet."""
    from router.files.atomic import require_writable
    from training.sources import convert as convert_source
    from training.sources import write_converted

    require_writable(output)
    converted = convert_source(name, path)
    for file, rows in zip(write_converted(converted, output), (converted.prompts, converted.outcomes), strict=True):
        typer.echo(f"{len(rows):>9,} rows in {file}")
    for reason, count in converted.skipped.items():
        typer.echo(f"{count:>9,} rows skipped: {reason}")


@app.command()
def check(
    folder: Annotated[Path, typer.Argument(help="Folder with prompts.parquet (or JSONL) and, if any, outcomes.parquet.")],
    min_rows: Annotated[int, typer.Option(help="Prompts a language family should have.", min=1)] = 20,
    similarity: Annotated[float, typer.Option(help="From which Jaccard similarity prompts are near duplicates.", min=0.1, max=1.0)] = 0.8,
    source: Annotated[str | None, typer.Option(help="Source of prompts that name none.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with code 1 if there is any problem.")] = False,
) -> None:
    """Check tables row by row, and print what they hold and what is doubtful about them."""
    from rich.console import Console

    from training.summary import summarise

    summary = summarise(folder, minimum=min_rows, similarity=similarity, source=source)
    console = Console(width=None if sys.stdout.isatty() else 160)
    for title, frame in (("Sources", summary.sources), ("Scores", summary.scores), ("Language families", summary.families)):
        if len(frame):
            console.print(_table(title, frame))
    for problem in summary.problems:
        console.print(f"- {problem}", markup=False, highlight=False, soft_wrap=True)
    if not summary.problems:
        console.print("no problems found")
    elif strict:
        raise typer.Exit(1)


def _table(title: str, frame: pd.DataFrame) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE)
    for position, column in enumerate(frame.columns):
        numeric = frame[column].dtype.kind in "iuf"
        table.add_column(str(column).replace("_", " "), justify="right" if numeric else "left", no_wrap=position == 0, overflow="fold")
    for row in frame.itertuples(index=False):
        table.add_row(*(_cell(value) for value in row))
    return table


def _cell(value: object) -> str:
    return f"{value:.3f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)
