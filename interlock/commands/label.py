"""``interlock label`` and ``interlock label-server``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from router.errors import LabelError


def label(
    prompts: Annotated[
        Path,
        typer.Argument(help="Prompts (docs/data-format.md): a JSONL or Parquet file, or a folder with prompts.parquet or of JSONL files."),
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Run folder; an existing one is resumed.")] = Path("label-run"),
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="label.toml with [[models]], [run], [budget], [quality_weights].")
    ] = None,
    weak_url: Annotated[str | None, typer.Option(help="Weak model's endpoint, e.g. http://127.0.0.1:8081/v1.")] = None,
    weak_model: Annotated[str | None, typer.Option(help="Model name the weak endpoint knows.")] = None,
    weak_api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key.")] = None,
    strong_url: Annotated[str | None, typer.Option(help="Strong model's endpoint.")] = None,
    strong_model: Annotated[str | None, typer.Option(help="Model name the strong endpoint knows.")] = None,
    strong_api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key.")] = None,
    judge_url: Annotated[str | None, typer.Option(help="Judge's endpoint; without one, prompts that need a judge get no score.")] = None,
    judge_model: Annotated[str | None, typer.Option(help="Model name the judge endpoint knows.")] = None,
    judge_api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key.")] = None,
    pool: Annotated[list[str] | None, typer.Option(help="Further model, NAME=URL or NAME=URL#MODEL; may be repeated.")] = None,
    tool_mode: Annotated[
        str | None, typer.Option(help="native, or prompt (tools written into a system message), for models given by flags.")
    ] = None,
    only: Annotated[list[str] | None, typer.Option(help="Answer with this model only; may be repeated.")] = None,
    answer_only: Annotated[bool, typer.Option("--answer-only", help="Only ask the models.")] = False,
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="Only ask the judge about stored answers, then grade and write tables.")
    ] = False,
    grade_only: Annotated[bool, typer.Option("--grade-only", help="Ask nobody: grade stored answers and write tables.")] = False,
    max_usd: Annotated[float | None, typer.Option(help="Stop cleanly before this run costs more than this many USD.")] = None,
    max_total_tokens: Annotated[
        int | None, typer.Option(help="Stop cleanly before this run uses more tokens (prompt + completion).")
    ] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, help="Requests in flight per endpoint.")] = None,
) -> None:
    """Let a weak and a strong model answer prompts, score the answers, and write outcome tables.

    Every answer is kept: run the same command again to resume, to grade anew, or to judge with another judge, without asking twice.

    Example: interlock label prompts/ --weak-url http://127.0.0.1:8081/v1 --weak-model small
    --strong-url http://127.0.0.1:8082/v1 --strong-model large --out runs/first
    """
    from router.files.atomic import require_writable
    from training.label.config import LabelConfig, load_config, override
    from training.label.output import require_apart
    from training.label.prompts import load_prompts
    from training.label.run import STAGES, LabelRun

    require_writable(out)
    require_apart(out, prompts)
    chosen = [name for name, on in (("answer", answer_only), ("judge", judge_only), ("grade", grade_only)) if on]
    if len(chosen) > 1:
        raise LabelError(f"--{chosen[0]}-only and --{chosen[1]}-only exclude each other; give one")
    stages = {"answer": ("answer",), "judge": ("judge", "grade"), "grade": ("grade",)}.get(chosen[0], STAGES) if chosen else STAGES
    entries = _flag_models(
        weak=(weak_url, weak_model, weak_api_key_env),
        strong=(strong_url, strong_model, strong_api_key_env),
        judge=(judge_url, judge_model, judge_api_key_env),
        pool=pool or [],
        tool_mode=tool_mode,
    )
    settings: LabelConfig = _merge(load_config(config) if config is not None else None, entries)
    settings = override(settings, usd=max_usd, tokens=max_total_tokens, concurrency=concurrency)
    run = LabelRun(settings, load_prompts(prompts), out, stages=stages, only=only or [])
    try:
        report = run.execute()
    except KeyboardInterrupt as error:
        kept = f"everything answered so far is in {out}; run again to go on" if out.exists() else "nothing was answered yet"
        typer.echo(f"interrupted; {kept}", err=True)
        raise typer.Exit(130) from error
    typer.echo(_summary(report, out))


def _flag_models(*, pool: list[str], tool_mode: str | None, **roles: tuple[str | None, str | None, str | None]) -> list[dict[str, Any]]:
    mode = {"tool_mode": tool_mode} if tool_mode else {}
    entries: list[dict[str, Any]] = []
    for role, (url, model, key) in roles.items():
        if url is None:
            if model is not None or key is not None:
                raise LabelError(f"--{role}-model and --{role}-api-key-env need --{role}-url")
            continue
        entry = {"name": model or role, "role": role, "base_url": url, "model": model or role, **mode}
        entries.append({**entry, **({"api_key_env": key} if key else {})})
    for text in pool:
        name, _, rest = text.partition("=")
        url, _, model = rest.partition("#")
        if not name or not url:
            raise LabelError(f"--pool {text!r} is not NAME=URL or NAME=URL#MODEL")
        entries.append({"name": name, "role": "pool", "base_url": url, "model": model or name, **mode})
    return entries


def _merge(config: Any, entries: list[dict[str, Any]]) -> Any:
    from dataclasses import replace

    from training.label.config import LabelConfig, model_from_mapping

    models = tuple(model_from_mapping(entry, f"--{entry['role']}") for entry in entries)
    if config is None:
        given = {model.role for model in models}
        for role in ("weak", "strong"):
            if role not in given:
                raise LabelError(f"no {role} model: give --config label.toml, or --{role}-url and --{role}-model")
        return LabelConfig(models=models)
    replaced = {model.role for model in models if model.role != "pool"}
    return replace(config, models=(*(m for m in config.models if m.role not in replaced), *models))


def _summary(report: Any, out: Path) -> str:
    lines = []
    if report.budget_reached:
        lines.append(f"budget reached, {report.answers} of {report.answers_wanted} answered; run again to go on")
    else:
        lines.append(f"{report.answers} of {report.answers_wanted} answered")
    if report.to_replace:
        lines.append(f"{report.to_replace} of them were cut at a lower token limit and stay in use; run again to replace them")
    if report.verdicts_wanted:
        lines.append(f"{report.verdicts} of {report.verdicts_wanted} verdicts")
    if report.failures:
        lines.append(f"{report.failures} failed, see {out / 'failures.jsonl'}; run again to retry them")
    lines.append(f"this run used {report.tokens} tokens, {report.usd:.4f} USD")
    if report.outcomes:
        lines.append(f"{report.outcomes} outcomes in {out / 'outcomes.parquet'}")
    return "\n".join(lines)


def label_server(
    model: Annotated[Path, typer.Argument(help="A .gguf file.")],
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on the host.")] = 8080,
    threads: Annotated[int, typer.Option(min=1, help="CPU threads.")] = 2,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Requests decoded together.")] = 1,
    context: Annotated[int, typer.Option(min=256, help="Tokens per request, prompt and answer.")] = 4096,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    name: Annotated[str | None, typer.Option(help="Model name to answer to; default: the file's name.")] = None,
) -> None:
    """Serve a GGUF file as an OpenAI-compatible endpoint for labelling on this machine."""
    from training.label.local_server import serve_forever

    serve_forever(model, port=port, threads=threads, parallel=parallel, context=context, host=host, name=name)
