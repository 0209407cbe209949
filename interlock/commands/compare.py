"""``interlock compare``: two routers on the same prompts, with paired tests."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.compare import Comparison, Side
    from training.evaluate_run import EvaluationPlan


def compare(
    a: Annotated[Path, typer.Argument(help="Report folder of `interlock evaluate`, or artefact folder of a router with --data.")],
    b: Annotated[Path, typer.Argument(help="The other one. Differences are B less A.")],
    output: Annotated[
        Path, typer.Option(help="Folder for comparison.html, comparison.json and CSV tables; new, empty, or an earlier comparison.")
    ] = Path("runs/compare"),
    common: Annotated[bool, typer.Option("--common", help="Compare the prompts that both reports have, instead of refusing.")] = False,
    data: Annotated[list[Path] | None, typer.Option(help="For artefacts: folder with prompts and outcomes; may be repeated.")] = None,
    weak: Annotated[list[str] | None, typer.Option(help="For artefacts: weak model, as for `interlock evaluate`.")] = None,
    strong: Annotated[list[str] | None, typer.Option(help="For artefacts: strong model.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="For artefacts: TOML with the pairs. Default: the data folder's.")] = None,
    score_kind: Annotated[list[str] | None, typer.Option(help="For artefacts: kind of score; repeat it, best first.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="For artefacts: source to use; may be repeated.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="For artefacts: catalog with prices. Default: the shipped one.")] = None,
    weak_prices: Annotated[str | None, typer.Option(help="For artefacts: INPUT,OUTPUT in USD per million tokens.")] = None,
    strong_prices: Annotated[str | None, typer.Option(help="The same for the strong model.")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for intervals and p values; 0 leaves them out.")] = 2000,
    min_rows: Annotated[int, typer.Option(min=1, help="A source or family with fewer prompts gets no number.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 1,
) -> None:
    """Put two routers side by side on the same prompts, with paired tests.

    APGR, quality, savings and calibration are compared at each router's own threshold and at equal share of strong calls, per family and
    source with Holm's correction, and so are the decisions themselves.

    Example: interlock compare runs/before runs/after --output runs/compare
    """
    from training.compare import aligned
    from training.compare import compare as compared
    from training.environment import environment
    from training.evaluate import EvaluationOptions
    from training.report.comparison import check_comparison_output, write_comparison

    check_comparison_output(output)
    plan = _plan(data or [], recipe, (weak or [], strong or [], score_kind or [], source or []), catalog, (weak_prices, strong_prices))
    sides = aligned(_side(a, plan, threads), _side(b, plan, threads), common=common)
    options = EvaluationOptions(n_bootstrap=bootstrap, min_rows=min_rows, seed=seed)
    comparison = compared(*sides[:2], options=options, notes=sides[2])
    made = {"command": f"interlock {shlex.join(sys.argv[1:])}", "environment": environment()}
    comparison = comparison.with_about(**made)
    write_comparison(comparison, output)
    _print(comparison)
    typer.echo(f"comparison: {output / 'comparison.html'}")


def _plan(
    data: list[Path],
    recipe: Path | None,
    pair: tuple[list[str], list[str], list[str], list[str]],
    catalog: Path | None,
    prices: tuple[str | None, str | None],
) -> EvaluationPlan | None:
    """What artefacts are evaluated on, or None where no data was given."""
    if not data:
        return None
    from router.files.artifacts import read_catalog
    from training import evaluate_run as run
    from training.evaluate import EvaluationOptions
    from training.recipe import recipe_of

    return run.EvaluationPlan(
        *run.load_data(data, None, None),
        recipe=recipe_of(recipe, data, *pair),
        catalog=read_catalog(catalog),
        prices=run.parse_prices(*prices),
        options=EvaluationOptions(n_bootstrap=0),
    )


def _side(folder: Path, plan: EvaluationPlan | None, threads: int) -> Side:
    from router.artifact import MANIFEST
    from router.errors import InvalidInput
    from training.compare import read_side, side_of
    from training.report.files import RESULTS

    if (folder / RESULTS).is_file():
        return read_side(str(folder), folder)
    if not (folder / MANIFEST).is_file():
        raise InvalidInput(f"{folder} is neither a report nor a router artefact: it has no {RESULTS} and no {MANIFEST}")
    if plan is None:
        raise InvalidInput(f"{folder} is a router artefact: say with --data what to evaluate it on, or give a report folder")
    from training.evaluate_run import evaluate_artifact

    return side_of(str(folder), evaluate_artifact(plan, folder, threads=threads))


def _print(comparison: Comparison) -> None:
    from training.compare.comparison import COMPARED, MODES
    from training.report.comparison import p_value, pooled_rows

    about = comparison.about
    for note in about["notes"]:
        typer.echo(f"note: {note}", err=True)
    typer.echo(f"A {about['a']['name']}, B {about['b']['name']}: {about['prompts']} prompts, {about['groups']} groups")
    for mode in COMPARED:
        share = f", {100 * about['equal_share']:.1f} %" if mode == "equal" else ""
        typer.echo(f"{MODES[mode] + share:40} {'A':>8} {'B':>8} {'B less A':>10} {'95 % interval':>18}  p")
        for row in pooled_rows(comparison, mode):
            cell = row["cell"]
            line = f"  {row['title']:38} {row['a']:>8} {row['b']:>8} {cell.value:>10} {cell.interval:>18}  {row['p']}"
            typer.echo(line if not cell.note else f"{line}  ({cell.note})")
    pooled = comparison.disagreements.iloc[0]
    typer.echo(
        f"decisions that differ: {pooled['differ']} of {pooled['n']}; right only in A {pooled['right_only_a']}, only in B "
        f"{pooled['right_only_b']}, McNemar p {p_value(pooled['p'])}"
    )
