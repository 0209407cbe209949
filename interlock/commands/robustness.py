"""``interlock robustness``: how many decisions flip when a request changes in ways that leave its work alone."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.robustness.run import Robustness


def robustness(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for robustness.html, .md, .json and .csv; new, empty, or an earlier one.")
    ],
    router: Annotated[Path | None, typer.Option(help="Artefact folder. Default: the shipped router.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="Catalog to choose from. Default: the shipped one.")] = None,
    data: Annotated[list[Path] | None, typer.Option(help="Folder with prompts; may be repeated. Default: the embedded sample.")] = None,
    sample: Annotated[int, typer.Option(min=1, help="Prompts that are changed, drawn from all of them.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of the draw, the changes and the attacks.")] = 0,
    only: Annotated[
        list[str] | None, typer.Option(help="A transformation or family (docs/robustness.md); may be repeated. Default: all.")
    ] = None,
    attack: Annotated[bool, typer.Option("--attack/--no-attack", help="Search for gadgets that reroute.")] = True,
    max_flips: Annotated[float, typer.Option(help="Largest share of decisions that a family of changes may flip.")] = 0.02,
    max_success: Annotated[float, typer.Option(help="Largest share of prompts that a gadget may send to the strong model.")] = 0.05,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 1,
) -> None:
    """Change prompts in ways that leave their work alone, search for tokens that reroute, and count the decisions that flip.

    Exit code 3 if a limit is not kept, after the report.

    Example: interlock robustness --sample 100 --output runs/robustness
    """
    from router.files.artifacts import load_router
    from training.environment import environment
    from training.gate import FAILED
    from training.progress import counting
    from training.report.robustness import check_robustness_output, write_robustness
    from training.robustness.attack import AttackOptions
    from training.robustness.run import RobustnessOptions, load_all, run_robustness

    check_robustness_output(output)
    options = RobustnessOptions(sample, seed, tuple(only or ()), AttackOptions() if attack else None, max_flips, max_success)
    loaded, name = load_router(router, catalog, threads=threads)
    result = run_robustness(loaded, load_all(data or []), options, counting)
    result = result.with_about(router=name, command=f"interlock {shlex.join(sys.argv[1:])}", environment=environment())
    write_robustness(result, output)
    _print(result)
    typer.echo(f"report: {output / 'robustness.html'}")
    if not result.passed:
        raise typer.Exit(FAILED)


def _print(result: Robustness) -> None:
    from training.robustness.battery import ALL

    about = result.about
    typer.echo(f"{about['prompts']} prompts in {about['languages']} languages, {len(about['models'])} models")
    for row in result.changes[result.changes["name"] == ALL].to_dict("records"):
        note = "" if row["gated"] else "  (no limit)"
        share, low, high = (100 * row[name] for name in ("flipped", "low", "high"))
        typer.echo(f"  {row['family']:38} {row['n']:>6} cases  {share:5.1f} % flipped  [{low:.1f}, {high:.1f}]{note}")
    for row in result.attacks[result.attacks["threshold"] == "own"].to_dict("records") if len(result.attacks) else []:
        share = "no prompt to start from" if row["success"] is None else f"{100 * row['success']:5.1f} %"
        typer.echo(f"  {row['kind']} {row['position']}, {row['direction']:28} {row['n']:>6} prompts {share}")
    broken = result.gate[~result.gate["kept"].astype(bool)]
    for row in broken.to_dict("records"):
        typer.echo(f"fail: {row['what']}: {100 * row['value']:.1f} %, at most {100 * row['limit']:.1f} % allowed", err=True)
    typer.echo(f"{len(result.gate) - len(broken)} of {len(result.gate)} limits kept")
