"""``interlock train``: labelled prompts in, a router artefact out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from training.train import TrainedRouter

EngineName = Literal["local", "dask"]


def train(
    context: typer.Context,
    data: Annotated[list[Path], typer.Option(help="Folder with prompts and outcomes (docs/data-format.md); may be given several times.")],
    output: Annotated[Path, typer.Option(help="Folder for the artefact; replaced in one step when it is ready.")] = Path("runs/router"),
    recipe: Annotated[
        Path | None, typer.Option(help="TOML file that says what to learn from what. Default: recipe.toml in the first data folder.")
    ] = None,
    weak: Annotated[str | None, typer.Option(help="Weak model, instead of the recipe's pairs.")] = None,
    strong: Annotated[str | None, typer.Option(help="Strong model, instead of the recipe's pairs.")] = None,
    score_kind: Annotated[str | None, typer.Option(help="Kind of score, instead of the recipe's.")] = None,
    encoder: Annotated[str | None, typer.Option(help="fast, full, or a SentenceTransformer name or folder. Default: the recipe's.")] = None,
    encoder_prefix: Annotated[
        str | None,
        typer.Option(help="Text before every prompt that a SentenceTransformer reads, such as 'query: '. Default: the model's own."),
    ] = None,
    tracking: Annotated[bool, typer.Option(help="Log the run to MLflow and register the artefact.")] = True,
    tracking_uri: Annotated[str | None, typer.Option(help="MLflow store. Default: MLFLOW_TRACKING_URI, else sqlite:///mlflow.db.")] = None,
    min_rows: Annotated[int, typer.Option(min=0, help="Refuse to train if a language family has fewer prompts than this.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of the encoder.")] = 2,
    engine: Annotated[EngineName, typer.Option(help="Where prompts are embedded and heads fitted: here, or on a Dask cluster.")] = "local",
    workers: Annotated[
        int, typer.Option(min=1, help="Processes on this machine, where the engine is not a cluster elsewhere (docs/scale.md).")
    ] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="With --engine dask: address of the scheduler, such as tcp://host:8786. Default: a cluster here.")
    ] = None,
) -> None:
    """Fit, calibrate and measure a router, and write its artefact with a model card.

    Example: interlock train --data data/sample --output runs/router
    """
    from router.files.artifacts import check_artifact_output, read_artifact, write_artifact
    from router.files.encoders import load_encoder
    from training.assemble import assemble, load_tables
    from training.card import model_card
    from training.embed import CachedEncoder
    from training.engine import open_engine
    from training.recipe import recipe_of
    from training.seen import SEEN, seen_bytes
    from training.split import FEW_ROWS, few_rows, require_rows
    from training.tracking import check_store
    from training.train import train_router

    check_artifact_output(output)
    # First of all, so that a cluster that is not there is not found out about after hours of reading.
    where = context.with_resource(open_engine(engine, workers=workers, scheduler=scheduler))
    plan = recipe_of(recipe, data, _listed(weak), _listed(strong), _listed(score_kind)).with_encoder(encoder, encoder_prefix)
    text_encoder = CachedEncoder(load_encoder(plan.encoder, threads, prefix=plan.encoder_prefix), progress=True)
    training = assemble(*load_tables(data), plan, data)
    typer.echo(
        f"{len(training.rows)} prompts of {training.rows['source'].nunique()} sources in {training.rows['family'].nunique()} families, "
        f"{len(set(training.groups))} groups, mean need {training.rows['need'].mean():.3f}"
    )
    require_rows(training.rows["family"], min_rows)
    if few := few_rows(training.rows["family"], FEW_ROWS):
        listed = ", ".join(f"{family} {count}" for family, count in few.items())
        typer.echo(f"note: too few prompts to learn much of {listed}; {FEW_ROWS} a family are little enough (--min-rows refuses)", err=True)
    if tracking:
        check_store(tracking_uri)
    trained = train_router(training, text_encoder, plan, typer.echo, engine=where)
    extra = {"README.md": model_card(trained.artifact, output.name).encode(), SEEN: seen_bytes(trained.fitted)}
    name = write_artifact(trained.artifact, output, extra)
    read_artifact(output)
    for metric in ("apgr", "auc", "ece"):
        found = trained.held_out.get(metric)
        typer.echo(f"held out, pooled: {metric} {'-' if found.value is None else f'{found.value:.3f}'} {found.note}".rstrip())
    typer.echo(f"artefact {name} in {output}")
    if trained.guarantee is not None and not trained.guarantee.kept:
        typer.echo("note: nothing could be promised, see above; the threshold is the strictest", err=True)
    if tracking:
        _track(trained, output, tracking_uri)


def _listed(name: str | None) -> list[str]:
    return [] if name is None else [name]


def _track(trained: TrainedRouter, output: Path, tracking_uri: str | None) -> None:
    from tempfile import TemporaryDirectory

    from training.report import write_evaluation
    from training.tracking import flat_metrics, log_training

    artifact = trained.artifact
    parameters = {key: value for key, value in artifact.card.items() if key not in ("sources", "families")}
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        write_evaluation(trained.held_out, report)
        run, version = log_training(
            artifact=output,
            report=report,
            parameters=parameters | {"encoder": artifact.encoder.name, "default_threshold": artifact.default_threshold},
            metrics=flat_metrics(artifact.metrics),
            tracking_uri=tracking_uri,
        )
    typer.echo(f"MLflow run {run}, registered version {version}")
