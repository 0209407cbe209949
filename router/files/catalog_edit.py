"""Write a model's figures into a catalog file and leave the rest of the file, comments too, as it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from router.catalog import ModelCatalog
from router.errors import CatalogError
from router.files.artifacts import read_yaml
from router.files.atomic import write_atomically

_WIDTH: Final = 140


def with_figures(path: Path, model: str, raw: Mapping[str, float], notes: str, new: Mapping[str, Any] | None = None) -> str:
    """The text of a catalog file with ``raw`` figures and ``notes`` of a model replaced or added.

    Parameters
    ----------
    path
        The catalog file.
    raw
        Figures by capability; those of other capabilities are kept.
    notes
        Added to the model's notes, in place of what an earlier call added.
    new
        The other fields of the entry (``prices`` at least), for a model that the catalog does not have.

    Raises
    ------
    CatalogError
        If the file is not a catalog, the model is new and ``new`` is not given, or the entry is written in a way that cannot be edited in
        place. Nothing is written in any case.
    """
    before = read_yaml(path)
    ModelCatalog.from_mapping(before)
    text = path.read_text(encoding="utf-8")
    entry = before["models"].get(model)
    after = _edited(before, model, raw, notes, new)
    changed = _inserted(text, model, after["models"][model]) if entry is None else _replaced(text, model, after["models"][model])
    try:
        found = yaml.safe_load(changed)
    except yaml.YAMLError:
        found = None
    if found != after:
        raise CatalogError(f"{path}: the entry of {model!r} cannot be edited in place: write it by hand (without --write it is printed)")
    ModelCatalog.from_mapping(found)
    return changed


def write_figures(path: Path, model: str, raw: Mapping[str, float], notes: str, new: Mapping[str, Any] | None = None) -> None:
    """Put the text of :func:`with_figures` in the file's place, in one step."""
    write_atomically(path, with_figures(path, model, raw, notes, new).encode())


def entry_text(model: str, entry: Mapping[str, Any], indent: int = 2) -> str:
    """One entry of ``models`` as YAML lines."""
    lines = yaml.safe_dump({model: dict(entry)}, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=None).splitlines()
    return "\n".join(" " * indent + line for line in lines) + "\n"


def _edited(before: Mapping[str, Any], model: str, raw: Mapping[str, float], notes: str, new: Mapping[str, Any] | None) -> dict[str, Any]:
    """The catalog as data, with the new figures."""
    entry = before["models"].get(model)
    if entry is None:
        if not new or "prices" not in new:
            raise CatalogError(f"the catalog has no model {model!r}, and a new entry needs its prices (--prices INPUT,OUTPUT)")
        entry = dict(new)
    started = notes.split(" ", 4)[:4]
    kept = [line for line in str(entry.get("notes") or "").splitlines() if line.split(" ", 4)[:4] != started]
    changed = {**entry, "raw": {**(entry.get("raw") or {}), **raw}, "notes": "\n".join([*kept, notes]).strip()}
    return {**before, "models": {**before["models"], model: changed}}


def _replaced(text: str, model: str, entry: Mapping[str, Any]) -> str:
    """The text with the keys ``raw`` and ``notes`` of a block-style entry replaced, or added behind its last key."""
    node = _child(_child(yaml.compose(text), "models"), model)
    if not isinstance(node, yaml.MappingNode) or node.flow_style or not node.value:
        raise CatalogError(f"the entry of {model!r} is not written with one line a field, so it cannot be edited in place")
    column = node.value[0][0].start_mark.column
    keys = {key.value: (key, value) for key, value in node.value}
    edits = []
    for name in ("raw", "notes"):
        lines = _field(name, entry[name], column)
        if name in keys:
            key, value = keys[name]
            edits.append((key.start_mark.index - column, _line_end(text, value), lines))
        else:
            end = _line_end(text, node.value[-1][1])
            edits.append((end, end, lines))
    for start, end, lines in sorted(edits, key=lambda edit: edit[0], reverse=True):
        lead = "" if start == 0 or text[start - 1] == "\n" else "\n"
        text = text[:start] + lead + lines + text[end:]
    return text


def _inserted(text: str, model: str, entry: Mapping[str, Any]) -> str:
    """The text with a new entry behind the last model."""
    models = _child(yaml.compose(text), "models")
    if not isinstance(models, yaml.MappingNode) or models.flow_style or not models.value:
        raise CatalogError("the models of the catalog are not written one below the other, so none can be added in place")
    end = _line_end(text, models.value[-1][1])
    lead = "" if text[end - 1] == "\n" else "\n"
    return text[:end] + lead + "\n" + entry_text(model, entry, models.value[0][0].start_mark.column) + text[end:]


def _field(name: str, value: object, column: int) -> str:
    # A mapping stays on one line behind its key, as the shipped catalog writes figures and prices.
    style = None if isinstance(value, Mapping) else False
    lines = yaml.safe_dump({name: value}, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=style).splitlines()
    return "".join(" " * column + line + "\n" for line in lines)


def _child(node: yaml.Node | None, name: str) -> yaml.Node:
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if key.value == name:
            return value  # type: ignore[no-any-return]
    raise CatalogError(f"the catalog has no key {name!r} that can be edited in place")


def _line_end(text: str, node: yaml.Node) -> int:
    """Where the last line of a node ends. A block node ends where the next one begins, blank lines and comments between them left out."""
    end = node.end_mark.index
    lines = text[:end].split("\n")
    if text[:end].endswith("\n") or not lines[-1].strip():
        while lines and (not lines[-1].strip() or lines[-1].lstrip().startswith("#")):
            lines.pop()
        return len("\n".join(lines)) + 1 if len("\n".join(lines)) < len(text) else len(text)
    following = text.find("\n", end)
    return len(text) if following < 0 else following + 1
