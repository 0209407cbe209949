"""The only module that imports MLflow: one run a training, with its artefact registered, and one an evaluation, with its report."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from router.errors import InvalidInput

EXPERIMENT: Final = "interlock"
REGISTERED_MODEL: Final = "interlock-router"
CHAMPION: Final = "champion"
CHALLENGER: Final = "challenger"
DEFAULT_STORE: Final = "sqlite:///mlflow.db"


def check_store(tracking_uri: str | None = None) -> None:
    """Refuse a store that cannot be used, before anything is trained.

    Raises
    ------
    InvalidInput
        Naming the store and what MLflow says of it.
    """
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    os.environ.setdefault("DO_NOT_TRACK", "true")
    import mlflow
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    uri = tracking_uri or os.environ.get("MLFLOW_TRACKING_URI") or DEFAULT_STORE
    try:
        mlflow.set_tracking_uri(uri)
        mlflow.set_experiment(EXPERIMENT)
        MlflowClient().search_registered_models(max_results=1)
    except MlflowException as error:
        raise InvalidInput(f"MLflow store {uri!r} cannot be used: {str(error).splitlines()[0]}; name another, or --no-tracking") from error


def log_training(
    *,
    artifact: Path,
    report: Path | None,
    parameters: Mapping[str, Any],
    metrics: Mapping[str, float],
    tracking_uri: str | None = None,
    name: str = REGISTERED_MODEL,
) -> tuple[str, str]:
    """Log a run and register its artefact as the challenger; the first version of a name is the champion as well.

    Parameters
    ----------
    artifact, report
        Folders to keep with the run.
    parameters, metrics
        Flat mappings.
    tracking_uri
        Store of the runs; by default ``MLFLOW_TRACKING_URI`` or a SQLite file in the working folder.

    Returns
    -------
    The run id and the version of the registered model.

    Raises
    ------
    InvalidInput
        If the store cannot be reached.
    """
    folders = {"router": artifact} if report is None else {"router": artifact, "report": report}
    with _run("train", folders, parameters, metrics, tracking_uri) as (run_id, artifact_uri):
        version = _register(run_id, f"{artifact_uri}/router", name)
    return run_id, version


def log_evaluation(*, report: Path, parameters: Mapping[str, Any], metrics: Mapping[str, float], tracking_uri: str | None = None) -> str:
    """Log an evaluation with its report folder; see :func:`log_training`. Gives the run id."""
    with _run("evaluate", {"report": report}, parameters, metrics, tracking_uri) as (run_id, _):
        return run_id


@contextmanager
def _run(
    command: str, folders: Mapping[str, Path], parameters: Mapping[str, Any], metrics: Mapping[str, float], tracking_uri: str | None
) -> Iterator[tuple[str, str]]:
    """A run with everything logged, open while the caller adds to it: its id and where its artefacts lie."""
    check_store(tracking_uri)
    import mlflow
    from mlflow.exceptions import MlflowException

    uri = mlflow.get_tracking_uri()
    try:
        with mlflow.start_run(tags={"interlock.command": command}) as run:
            mlflow.log_params({key: str(value)[:500] for key, value in parameters.items()})
            mlflow.log_metrics({key: float(value) for key, value in metrics.items()})
            for name, folder in folders.items():
                mlflow.log_artifacts(str(folder), name)
            yield str(run.info.run_id), str(run.info.artifact_uri)
    except MlflowException as error:
        raise InvalidInput(f"MLflow store {uri!r} cannot be used: {str(error).splitlines()[0]}") from error


def _register(run_id: str, source: str, name: str) -> str:
    from mlflow import MlflowClient
    from mlflow.exceptions import MlflowException

    client = MlflowClient()
    try:
        client.create_registered_model(name, description="Interlock router artefacts")
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
    version = str(client.create_model_version(name, source, run_id).version)
    client.set_registered_model_alias(name, CHALLENGER, version)
    if CHAMPION not in client.get_registered_model(name).aliases:
        client.set_registered_model_alias(name, CHAMPION, version)
    return version


def flat_metrics(metrics: Mapping[str, Any]) -> dict[str, float]:
    """``{kind: {slice: {metric: [value, ...]}}}`` as ``{"kind/slice/metric": value}``, with names MLflow takes."""
    flat = {}
    for kind, slices in metrics.items():
        for name, values in slices.items():
            for metric, numbers in values.items():
                key = "/".join("".join(c if c.isalnum() or c in "_-. " else "_" for c in part) for part in (kind, name, metric))
                flat[key] = float(numbers[0])
    return flat
