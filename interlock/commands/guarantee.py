"""``interlock guarantee``: the threshold at which a router keeps a promise about quality."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.guarantee_run import GuaranteedRouter

NOT_KEPT = 3
"""Exit code where nothing can be promised."""


def guarantee(
    output: Annotated[Path, typer.Option(help="JSON file for the thresholds, the statement and what it rests on.")],
    epsilon: Annotated[float, typer.Option(help="Largest loss of mean score against always-strong, such as 0.02.")],
    delta: Annotated[float, typer.Option(help="The promise may be broken with this probability at most.")] = 0.05,
    relative: Annotated[bool, typer.Option("--relative", help="epsilon is a share of always-strong's mean score.")] = False,
    per_family: Annotated[
        bool, typer.Option("--per-family", help="A threshold and a promise of its own for every language family with groups enough.")
    ] = False,
    data: Annotated[list[Path] | None, typer.Option(help="Folder with prompts and outcomes; may be repeated.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Prompt table (.parquet, .jsonl), with --outcomes, instead of --data.")] = None,
    outcomes: Annotated[Path | None, typer.Option(help="Outcome table, with --prompts.")] = None,
    router: Annotated[Path | None, typer.Option(help="Artefact folder. Default: the shipped router.")] = None,
    save_router: Annotated[Path | None, typer.Option(help="Folder for the router with these thresholds, for `interlock serve`.")] = None,
    held_out: Annotated[
        bool, typer.Option("--held-out", help="The router has seen none of these prompts, though its artefact does not record it.")
    ] = False,
    weak: Annotated[list[str] | None, typer.Option(help="Weak model; repeat for other names that sources give to the same one.")] = None,
    strong: Annotated[list[str] | None, typer.Option(help="Strong model; may be repeated likewise.")] = None,
    recipe: Annotated[Path | None, typer.Option(help="TOML with the pairs. Default: recipe.toml in the first data folder.")] = None,
    score_kind: Annotated[list[str] | None, typer.Option(help="Kind of score; repeat it, best first.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Source to use; may be repeated. Default: all.")] = None,
    catalog: Annotated[Path | None, typer.Option(help="Catalog with the models' prices. Default: the shipped one.")] = None,
    weak_prices: Annotated[
        str | None, typer.Option(help="INPUT,OUTPUT in USD per million tokens, for a model without a catalog entry.")
    ] = None,
    strong_prices: Annotated[str | None, typer.Option(help="The same for the strong model.")] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 1,
) -> None:
    """Choose the largest threshold that loses at most epsilon against always-strong, with confidence 1 - delta.

    The prompts must be ones the router was not fitted on; those it was are left out. Whole groups count (docs/guarantee.md). If nothing can
    be promised, the strictest threshold is written with the reason, and the exit code is 3.

    Example: interlock guarantee --data runs/fresh --router runs/router --epsilon 0.02 --output runs/guarantee.json
    """
    from interlock.commands.evaluate import progress_bar
    from router.files.artifacts import check_artifact_output, read_catalog
    from router.files.atomic import require_writable, write_atomically
    from training import evaluate_run as run
    from training.guarantee_run import guarantee_artifact
    from training.promise import GuaranteeOptions
    from training.recipe import recipe_of

    options = GuaranteeOptions(epsilon, delta, relative, per_family)
    require_writable(output.parent)
    if save_router is not None:
        check_artifact_output(save_router)
    plan = run.EvaluationPlan(
        *run.load_data(data or [], prompts, outcomes),
        recipe=recipe_of(recipe, data or [], weak or [], strong or [], score_kind or [], source or []),
        catalog=read_catalog(catalog),
        prices=run.parse_prices(weak_prices, strong_prices),
    )
    found = guarantee_artifact(plan, router, options, held_out=held_out, threads=threads, progress=progress_bar)
    said = {"format": 1, "command": f"interlock {shlex.join(sys.argv[1:])}", **found.to_mapping()}
    write_atomically(output, (json.dumps(said, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    _print(found)
    if save_router is not None:
        _save(found, router, save_router)
    if not found.guarantee.kept:
        raise typer.Exit(NOT_KEPT)


def _save(found: GuaranteedRouter, router: Path | None, folder: Path) -> None:
    from router.files.artifacts import SHIPPED_ROUTER, write_artifact
    from training.card import model_card
    from training.seen import SEEN

    extra = {"README.md": model_card(found.artifact, folder.name).encode()}
    seen = (SHIPPED_ROUTER if router is None else router) / SEEN
    if seen.is_file():
        extra[SEEN] = seen.read_bytes()
    typer.echo(f"artefact {write_artifact(found.artifact, folder, extra)} in {folder}")


def _print(found: GuaranteedRouter) -> None:
    about, guarantee = found.about, found.guarantee
    if about["left_out"]:
        typer.echo(f"note: {about['left_out']} prompts were left out, because the router was fitted on them or on their groups", err=True)
    typer.echo(f"{about['prompts']} prompts, {about['groups']} groups: {about['weak']} -> {about['strong']}")
    for promise in guarantee.in_force:
        typer.echo(promise.statement)
        if promise.kept and promise.cost_savings is not None:
            typer.echo(f"  it saves {promise.cost_savings:.1%} of the cost of always-strong on these prompts")
    typer.echo(f"default threshold {guarantee.default_threshold:.3f}")
    for family, tau in guarantee.family_thresholds.items():
        typer.echo(f"  {family:24} {tau:.3f}")
