"""``interlock evaluate-pool``: what a router keeps and saves over a pool of several models, on prompts that all of them answered."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from training.pool.evaluation import PoolResult
    from training.pool.recipe import PoolRecipe


def evaluate_pool(
    output: Annotated[
        Path, typer.Option(help="Folder for report.html, pool.json, curve.png and the CSV tables; new, empty, or an earlier one.")
    ],
    data: Annotated[list[Path] | None, typer.Option(help="Folder with prompts and outcomes; may be repeated.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Prompt table (.parquet, .jsonl), with --outcomes, instead of --data.")] = None,
    outcomes: Annotated[Path | None, typer.Option(help="Outcome table, with --prompts.")] = None,
    model: Annotated[list[str] | None, typer.Option(help="A model of the pool as the outcomes name it; repeat for each.")] = None,
    recipe: Annotated[
        Path | None, typer.Option(help="TOML with the models, their list prices, sources and heads, instead of --model.")
    ] = None,
    cv: Annotated[
        str | None,
        typer.Option(help="Train routers on all but one of N folds of groups, N times; 'groups' leaves out one group at a time."),
    ] = None,
    router: Annotated[
        Path | None, typer.Option(help="Artefact folder of the router to judge without --cv. Default: the shipped router.")
    ] = None,
    catalog: Annotated[
        Path | None, typer.Option(help="Catalog with list prices and, without --cv, profiles. Default: the shipped one.")
    ] = None,
    score_kind: Annotated[list[str] | None, typer.Option(help="Kind of score; repeat it, best first.")] = None,
    source: Annotated[list[str] | None, typer.Option(help="Source to use; may be repeated. Default: all that have every model.")] = None,
    within: Annotated[
        list[float] | None,
        typer.Option(min=0, max=100, help="Points of mean score below the best single model to aim at. Default: 0.3 and 3.2."),
    ] = None,
    encoder: Annotated[str | None, typer.Option(help="With --cv: fast, full, or a SentenceTransformer. Default: the recipe's.")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for the intervals; 0 leaves them out.")] = 1000,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 1,
) -> None:
    """Measure routing over a pool of several models: mean score against total cost at every threshold.

    Beside the router: every model alone, random mixtures of two, the oracle, and thresholds chosen on training rows, with 95 % intervals.
    Costs are those of the outcomes (cost_usd) where all models have them, else list prices.

    Example: interlock evaluate-pool --data runs/mine --model small --model medium --model large --cv 5 --output runs/pool
    """
    from router.errors import InvalidInput
    from router.files.artifacts import read_catalog
    from training.evaluate import EvaluationOptions
    from training.evaluate_run import load_data
    from training.pool import run
    from training.report.pool_page import check_pool_output, write_pool

    check_pool_output(output)
    if cv is not None and router is not None:
        raise InvalidInput("--cv trains routers and --router loads one: give one of them")
    if cv is None and encoder is not None:
        raise InvalidInput("--encoder says what --cv trains with, and a loaded router has its own: add --cv or leave it out")
    folds = _folds(cv)
    plan = run.PoolPlan(
        *load_data(data or [], prompts, outcomes),
        recipe=_recipe(recipe, model or [], source or [], score_kind or []),
        catalog=read_catalog(catalog),
        goals=tuple(points / 100 for points in within) if within else run.GOALS,
        options=EvaluationOptions(n_bootstrap=bootstrap, seed=seed),
    )
    if cv is not None:
        result = run.evaluate_cross_validated(plan, folds, encoder=encoder, threads=threads, say=typer.echo)
    else:
        result = run.evaluate_artifact(plan, router, threads=threads)
    result = result.with_about(command=f"interlock {shlex.join(sys.argv[1:])}")
    write_pool(result, output)
    _print(result)
    typer.echo(f"report: {output / 'report.html'}")


def _folds(cv: str | None) -> int | None:
    from router.errors import InvalidInput

    if cv is None or cv == "groups":
        return None
    if not cv.isdecimal() or int(cv) < 2:
        raise InvalidInput(f"--cv is {cv!r}: a whole number from 2, or 'groups', was expected")
    return int(cv)


def _recipe(path: Path | None, models: list[str], sources: list[str], score_kinds: list[str]) -> PoolRecipe:
    from dataclasses import replace

    from router.errors import InvalidInput
    from training.pool.recipe import PoolRecipe, read_pool_recipe
    from training.pool.rows import PoolModel

    if (path is None) == (not models):
        raise InvalidInput("say which models: either --model for each of them, or --recipe")
    base = read_pool_recipe(path) if path is not None else PoolRecipe(tuple(PoolModel((name,)) for name in models))
    return replace(base, sources=tuple(sources) or base.sources, score_kinds=tuple(score_kinds) or base.score_kinds)


def _print(result: PoolResult) -> None:
    from training.report.pool_page import lead_sentence

    about = result.about
    typer.echo(f"{about['prompts']} prompts, {about['groups']} groups; costs: {about['cost_basis']}")
    typer.echo(f"  {'policy':38} {'score':>7} {'USD':>10}  saved against {about['best']}")
    have = result.estimates.loc[result.estimates["metric"] == "quality", "policy"]
    for name in dict.fromkeys(have):
        quality, cost, saved = (result.get(metric, name) for metric in ("quality", "cost_usd", "saved_of_best"))
        if quality.value is None or cost.value is None:
            typer.echo(f"  {name:38} {quality.note}")
            continue
        interval = f"  [{saved.low:.1%}, {saved.high:.1%}]" if saved.low is not None and saved.high is not None else ""
        share = f"{saved.value:.1%}" if saved.value is not None else "-"
        typer.echo(f"  {name:38} {quality.value:7.3f} {cost.value * about['prompts']:10.2f}  {share}{interval}")
    typer.echo(lead_sentence(result))
