"""``interlock evaluate``: what a router would have kept and saved on prompts whose outcomes are known."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from router.types import Conversation
    from training.evaluate import EvaluationResult


def evaluate(
    output: Annotated[
        Path, typer.Option(help="Folder for report.html, results.json and the CSV tables; new, empty, or an earlier report.")
    ],
    data: Annotated[list[Path] | None, typer.Option(help="Folder with prompts and outcomes; may be repeated.")] = None,
    prompts: Annotated[Path | None, typer.Option(help="Prompt table (.parquet, .jsonl), with --outcomes, instead of --data.")] = None,
    outcomes: Annotated[Path | None, typer.Option(help="Outcome table, with --prompts.")] = None,
    router: Annotated[Path | None, typer.Option(help="Artefact folder. Default: the shipped router.")] = None,
    cv: Annotated[
        int | None, typer.Option(min=2, help="Instead of one router: train by the recipe on all but one of N folds of groups, N times.")
    ] = None,
    baselines: Annotated[
        str | None,
        typer.Option(help="With --cv: routers of the literature beside ours, fitted on the same folds and inputs: all, or knn,svm,..."),
    ] = None,
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
    threshold: Annotated[float | None, typer.Option(min=0, help="tau of the choice metrics. Default: the router's own.")] = None,
    margin: Annotated[float, typer.Option(min=0, max=1, help="A strong model adds value if it is better by more than this.")] = 0.0,
    encoder: Annotated[str | None, typer.Option(help="With --cv: fast, full, or a SentenceTransformer. Default: the recipe's.")] = None,
    encoder_prefix: Annotated[str | None, typer.Option(help="With --cv: text before every prompt, as for `interlock train`.")] = None,
    bootstrap: Annotated[int, typer.Option(min=0, help="Resamples for the intervals; 0 leaves them out.")] = 1000,
    min_rows: Annotated[int, typer.Option(min=1, help="A source or family with fewer prompts is flagged and gets no number.")] = 30,
    seed: Annotated[int, typer.Option(min=0, help="Of the resampling.")] = 0,
    gate: Annotated[
        Path | None,
        typer.Option(help="TOML with conditions (docs/gate.md); exit code 3 if one is not met, after the report."),
    ] = None,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 1,
    workers: Annotated[int, typer.Option(min=1, help="Processes that route; without --cv.")] = 1,
    tracking: Annotated[bool, typer.Option(help="Log the report to MLflow.")] = True,
    tracking_uri: Annotated[str | None, typer.Option(help="MLflow store. Default: MLFLOW_TRACKING_URI, else sqlite:///mlflow.db.")] = None,
) -> None:
    """Measure a router on prompts that a weak and a strong model both answered.

    Every prompt is routed as serving would, then judged by the known scores: APGR, quality, savings, misroute and calibration, per source,
    language family and capability, with 95 % intervals and beside baselines.

    Example: interlock evaluate --data data/sample --weak small --strong large --score-kind quality --output runs/report
    """
    from router.errors import InvalidInput
    from router.files.artifacts import read_catalog
    from training import evaluate_run as run
    from training.engine import LocalEngine
    from training.environment import environment
    from training.evaluate import EvaluationOptions
    from training.gate import FAILED, checked, passed, read_gate
    from training.parity import ParityOptions
    from training.recipe import recipe_of
    from training.report import check_output, write_evaluation
    from training.tracking import check_store

    check_output(output)
    conditions = read_gate(gate) if gate is not None else None
    if cv is not None and router is not None:
        raise InvalidInput("--cv trains routers and --router loads one: give one of them")
    if cv is None and (encoder is not None or encoder_prefix is not None):
        raise InvalidInput(
            "--encoder and --encoder-prefix say what --cv trains with, and a loaded router has its own: add --cv or leave them out"
        )
    if cv is None and baselines is not None:
        raise InvalidInput("--baselines are learned from the folds that are not judged: add --cv or leave it out")
    learned: tuple[str, ...] = ()
    if baselines is not None:
        from training.learned_baselines import method_names

        learned = method_names(baselines)
    plan = run.EvaluationPlan(
        *run.load_data(data or [], prompts, outcomes),
        recipe=recipe_of(recipe, data or [], weak or [], strong or [], score_kind or [], source or []),
        catalog=read_catalog(catalog),
        prices=run.parse_prices(weak_prices, strong_prices),
        threshold=threshold,
        options=EvaluationOptions(
            margin=margin,
            n_bootstrap=bootstrap,
            seed=seed,
            min_rows=min_rows,
            parity=(conditions.parity if conditions else None) or ParityOptions(min_rows=max(2, min_rows)),
        ),
        folders=tuple(data or ([prompts.parent] if prompts else [])),
    )
    if tracking:
        check_store(tracking_uri)
    if cv is not None:
        result = run.evaluate_cross_validated(
            plan, cv, encoder=encoder, prefix=encoder_prefix, baselines=learned, threads=threads, say=typer.echo
        )
    else:
        result = run.evaluate_artifact(plan, router, threads=threads, progress=progress_bar, engine=LocalEngine(workers))
    result = result.with_about(command=f"interlock {shlex.join(sys.argv[1:])}", environment=environment(), created=_today())
    if conditions is not None:
        result = checked(result, conditions)
    write_evaluation(result, output)
    _print(result)
    typer.echo(f"report: {output / 'report.html'}")
    if tracking:
        _track(result, output, tracking_uri)
    if conditions is not None:
        _print_gate(result)
        if not passed(result):
            raise typer.Exit(FAILED)


def _print_gate(result: EvaluationResult) -> None:
    from training.report.verdicts import in_words

    rows = result.gate.to_dict("records")
    kept = [row for row in rows if row["verdict"] == "pass"]
    for row in rows:
        if row["verdict"] != "pass":
            typer.echo(f"{row['verdict']}: {row['name']}: {row['condition']}: {in_words(row)}", err=True)
    typer.echo(f"gate: {len(kept)} of {len(rows)} conditions met{'' if len(kept) == len(rows) else ', not passed'}")


def _today() -> str:
    from datetime import UTC, datetime

    return datetime.now(UTC).strftime("%Y-%m-%d")


def _track(result: EvaluationResult, output: Path, tracking_uri: str | None) -> None:
    from training.evaluate import METRICS
    from training.tracking import flat_metrics, log_evaluation
    from training.train import compact_metrics

    about = {key: value for key, value in result.about.items() if not isinstance(value, dict)}
    parameters = about | result.about["options"] | result.about["environment"]
    metrics = flat_metrics(compact_metrics(result, METRICS))
    run = log_evaluation(report=output, parameters=parameters, metrics=metrics, tracking_uri=tracking_uri)
    typer.echo(f"MLflow run {run}")


def progress_bar(conversations: Iterable[Conversation]) -> Iterator[Conversation]:
    """The conversations, with a bar on stderr while they are routed."""
    from rich.console import Console
    from rich.progress import track

    yield from track(conversations, description="routing", console=Console(stderr=True), transient=True)


def _print(result: EvaluationResult) -> None:
    if "warning" in result.about:
        typer.echo(f"note: {result.about['warning']}", err=True)
    about = result.about
    typer.echo(f"{about['prompts']} prompts, {about['groups']} groups, {about['families']} families: {about['weak']} -> {about['strong']}")
    titles = {"apgr": "APGR", "auc": "AUC", "ece": "ECE", "quality_vs_strong": "quality / always-strong", "cost_savings": "cost savings"}
    for metric, title in {**titles, "strong_share": "strong calls", "misroute": "misroute"}.items():
        found = result.get(metric)
        interval = f"  [{found.low:.3f}, {found.high:.3f}]" if found.low is not None and found.high is not None else ""
        value = f"{found.value:.3f}" if found.value is not None else "-"
        typer.echo(f"  {title:24} {value}{interval}{f'  ({found.note})' if found.note else ''}")
