"""``interlock profile``: the capabilities of a new model from a few probes, and which prompts to ask it."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import pandas as pd

    from training.probes.run import CapabilityProfile


def profile(
    model: Annotated[str | None, typer.Argument(help="The new model as the outcomes name it.")] = None,
    data: Annotated[
        list[Path] | None, typer.Option(help="Folder with prompts and outcomes of models that are known already; may be repeated.")
    ] = None,
    probes: Annotated[
        Path | None, typer.Option(help="Outcome table with the new model's scores, where they are not among those of --data.")
    ] = None,
    catalog: Annotated[Path | None, typer.Option(help="Catalog to read the scale from, and to write to. Default: the shipped one.")] = None,
    write: Annotated[
        bool, typer.Option("--write", help="Write the figures into the catalog file; without it the entry is only printed.")
    ] = False,
    prices: Annotated[str | None, typer.Option(help="INPUT,OUTPUT in USD per million tokens, for a model new to the catalog.")] = None,
    provider: Annotated[str, typer.Option(help="Provider of a model new to the catalog.")] = "",
    reference: Annotated[
        list[str] | None, typer.Option(help="Model to measure by; repeat it. Default: all that answered half of the prompts.")
    ] = None,
    source: Annotated[list[str] | None, typer.Option(help="Source to use; may be repeated. Default: all.")] = None,
    score_kind: Annotated[list[str] | None, typer.Option(help="Kind of score; repeat it, best first.")] = None,
    scale: Annotated[
        str, typer.Option(help="catalog: put the figures on the scale of the catalog's. outcomes: write mean scores as they are.")
    ] = "catalog",
    level: Annotated[float, typer.Option(min=0.5, max=0.999, help="Coverage of the intervals.")] = 0.95,
    enough: Annotated[
        float | None,
        typer.Option(
            min=0, max=1, help="Half width of an interval from which on the figure and not its lower end is written. Default: 0.05."
        ),
    ] = None,
    min_probes: Annotated[int, typer.Option(min=1, help="Fewer probes of a capability give no figure.")] = 20,
    choose: Annotated[int | None, typer.Option("--choose-probes", min=1, help="Choose this many prompts to ask, and stop.")] = None,
    method: Annotated[str, typer.Option(help="With --choose-probes: spread (over difficulty) or information (Fisher).")] = "spread",
    output: Annotated[Path | None, typer.Option(help="With --choose-probes: JSONL file for the prompts.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="With --choose-probes: decides among equally good prompts.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Estimate what a new model can do from 20 to 200 prompts that known models have answered, and write its catalog entry.

    First `interlock profile --choose-probes 50 --data DIR --output probes.jsonl` says what to ask. Ask the model, score its answers as
    those of the others were, and then

    interlock profile NAME --data DIR --probes outcomes.jsonl --catalog my-catalog.yaml --prices 0.5,2 --write
    """
    from router.errors import InvalidInput
    from training.probes.bank import banks_of

    if (model is None) == (choose is None):
        raise InvalidInput("give either the name of a model, to place it, or --choose-probes N, to say what to ask")
    if output is not None and choose is None:
        raise InvalidInput("--output goes with --choose-probes; figures are written to the catalog with --write")
    prompts, outcomes = _tables(data or [], probes)
    banks = banks_of(prompts, outcomes, model, references=reference or (), sources=source or (), score_kinds=score_kind or ())
    if choose is not None:
        _choose(banks, choose, method, seed, output)
    elif model is not None:
        settings = {"scale": scale, "level": level, "enough": enough, "min_probes": min_probes}
        _place(banks, model, settings, catalog, _new_entry(prices, provider), write=write, as_json=as_json)


def _tables(data: list[Path], probes: Path | None) -> tuple[pd.DataFrame, pd.DataFrame]:
    import pandas as pd

    from router.errors import InvalidInput
    from training.assemble import load_tables
    from training.outcomes import KEY, load_outcomes, match_prompts

    prompts, outcomes = load_tables(data)
    if probes is not None:
        extra = load_outcomes(probes)
        match_prompts(extra, prompts)
        outcomes = pd.concat([outcomes, extra], ignore_index=True)
        twice = outcomes.duplicated(KEY)
        if twice.any():
            row = outcomes[twice].iloc[0]
            raise InvalidInput(f"{probes}: the score of {row['model']!r} on {row['prompt_id']!r} is in --data as well; leave it out of one")
    return prompts, outcomes


def _choose(banks: Any, n: int, method: str, seed: int, output: Path | None) -> None:
    from router.errors import InvalidInput
    from router.files.atomic import write_atomically
    from training.probes.choose import METHODS
    from training.probes.run import probes_table

    if method not in METHODS:
        raise InvalidInput(f"--method is {method!r}: allowed are {', '.join(METHODS)}")
    table = probes_table(banks, n, method, seed)
    lines = table.to_json(orient="records", lines=True, force_ascii=False)
    if output is None:
        typer.echo(lines, nl=False)
        return
    write_atomically(output, lines.encode())
    counts = ", ".join(f"{name} {count}" for name, count in table["capability"].value_counts().items())
    typer.echo(f"{len(table)} prompts to ask ({counts}): {output}")


def _place(
    banks: Any,
    model: str,
    settings: dict[str, Any],
    catalog: Path | None,
    new: dict[str, Any] | None,
    *,
    write: bool,
    as_json: bool,
) -> None:
    from datetime import UTC, datetime

    from router.errors import InvalidInput
    from router.files.artifacts import SHIPPED_CATALOG, read_catalog
    from router.files.catalog_edit import entry_text, write_figures
    from training.probes.run import ENOUGH, profile_model, provenance

    if settings["scale"] not in ("catalog", "outcomes"):
        raise InvalidInput(f"--scale is {settings['scale']!r}: allowed are catalog, outcomes")
    if write and catalog is None:
        raise InvalidInput("--write needs --catalog: the shipped catalog is not written to")
    settings["enough"] = ENOUGH if settings["enough"] is None else settings["enough"]
    known = read_catalog(catalog)
    found = profile_model(banks, model, known, **settings)
    raw = {profile.capability: round(profile.raw, 4) for profile in found if profile.raw is not None}
    notes = provenance(found, datetime.now(UTC).strftime("%Y-%m-%d"), settings["level"])
    if write:
        assert catalog is not None
        write_figures(catalog, model, raw, notes, new)
    if as_json:
        typer.echo(json.dumps({"model": model, "raw": raw, "notes": notes, "capabilities": [asdict(p) for p in found]}, ensure_ascii=False))
        return
    _print(found)
    lacking = [name for name in _capabilities(known) if name not in raw and (model not in known or name not in known[model].raw)]
    if lacking:
        typer.echo(f"note: no figure of {', '.join(lacking)}: a router that asks for it will refuse this entry until it has one", err=True)
    if write:
        typer.echo(f"written to {catalog}")
    else:
        where = catalog or SHIPPED_CATALOG
        typer.echo(f"\n# entry for {where.name}; --write puts it there")
        typer.echo(entry_text(model, {**({} if model in known else new or {}), "raw": raw, "notes": notes}), nl=False)


def _capabilities(catalog: Any) -> list[str]:
    return sorted({name for profile in catalog.models for name in profile.raw})


def _new_entry(prices: str | None, provider: str) -> dict[str, Any] | None:
    from router.errors import InvalidInput

    if prices is None:
        return None
    try:
        values = [float(part) for part in prices.split(",")]
    except ValueError:
        values = []
    if len(values) != 2 or not all(0 <= value < 1e6 for value in values):
        raise InvalidInput(f"--prices is {prices!r}: INPUT,OUTPUT in USD per million tokens was expected, such as 0.25,1.25")
    entry: dict[str, Any] = {"provider": provider} if provider else {}
    return {**entry, "prices": {"input_per_mtok": values[0], "output_per_mtok": values[1]}}


def _print(profiles: list[CapabilityProfile]) -> None:
    typer.echo(f"{'capability':12} {'probes':>6} {'right':>6}  {'of the bank':24} {'figure':24} written")
    for profile in profiles:
        estimate, figure = profile.estimate, profile.figure
        if estimate is None or figure is None or profile.raw is None:
            typer.echo(f"{profile.capability:12} {profile.n_probes:6}  {'; '.join(profile.notes)}")
            continue
        score = f"{estimate.score:.3f} ({estimate.low:.3f} to {estimate.high:.3f})"
        shown = f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"
        end = "" if profile.enough else "  lower end: the interval is wider than --enough allows"
        typer.echo(f"{profile.capability:12} {profile.n_probes:6} {estimate.probe_mean:6.3f}  {score:24} {shown:24} {profile.raw:.3f}{end}")
        for note in profile.notes:
            typer.echo(f"  note: {note}")
