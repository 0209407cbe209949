"""Decisions as people read them in a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.markup import escape
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from serve.wire import CandidateAnswer, ClassifiedAnswer, FlipAnswer, FlipMarginAnswer, RouteAnswer

_BAR_CELLS = 24
_PARTS = {"request": "original request", "recent_user_turns": "recent user turns", "assistant": "last answer"}


def decision_view(answer: RouteAnswer) -> RenderableType:
    """Everything in one decision: the choice, the sentence why, requirements, candidates, and what would change it."""
    head = Text.assemble((answer["model"], "bold green"), f"  ({answer['decision']}, confidence {answer['confidence']:.0%})")
    return Group(
        head,
        Text(answer["reason"]),
        Text(""),
        requirements_table(answer["requirements"]),
        candidates_table(answer["candidates"], answer["model"]),
        *(Text(f"• {line}") for line in flips_in_words(answer["flip_margin"], answer["model"])),
        Text(""),
        Text(_read_line(answer["classified"], answer["language"], answer["family"]), style="dim"),
        Text(f"{answer['boundary']['evidence']} · router {answer['router']} · {answer['latency_ms']:.1f} ms", style="dim"),
    )


def requirements_table(requirements: dict[str, float]) -> Table:
    """One bar a capability."""
    table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
    for name, value in requirements.items():
        table.add_row(escape(name), bar(value), f"{value:.2f}")
    return table


def bar(value: float, cells: int = _BAR_CELLS) -> Text:
    """A value in [0, 1] as a bar."""
    filled = round(max(0.0, min(1.0, value)) * cells)
    return Text.assemble(("█" * filled, "cyan"), ("░" * (cells - filled), "dim"))


def candidates_table(candidates: list[CandidateAnswer], chosen: str) -> Table:
    """One row a model, cheapest first."""
    table = Table(title_justify="left", header_style="bold")
    table.add_column("model")
    table.add_column("")
    table.add_column("shortfall", justify="right")
    table.add_column("most lacking")
    table.add_column("US$ / 1000 turns", justify="right")
    table.add_column("gates")
    for candidate in sorted(candidates, key=lambda item: (item["expected_cost_usd"], item["shortfall"])):
        style = "bold green" if candidate["model"] == chosen else "" if candidate["eligible"] else "dim"
        table.add_row(
            escape(candidate["model"]),
            "chosen" if candidate["model"] == chosen else "good enough" if candidate["eligible"] else "",
            f"{candidate['shortfall']:.3f}",
            _most_lacking(candidate["shortfall_by_capability"]),
            f"{candidate['expected_cost_usd'] * 1000:.3f}",
            escape("; ".join(candidate["gates"])),
            style=style,
        )
    return table


def _most_lacking(shortfall: dict[str, float]) -> str:
    name, value = max(shortfall.items(), key=lambda item: item[1])
    return f"{escape(name)} {value:.3f}" if value > 0 else "nothing"


def flips_in_words(margin: FlipMarginAnswer, chosen: str) -> list[str]:
    """What would have to change for another model to be chosen."""
    lines = []
    for flip, direction in ((margin["shortfall_threshold_up"], "raised"), (margin["shortfall_threshold_down"], "lowered")):
        if flip is not None:
            lines.append(
                f"the shortfall threshold {direction} by {abs(flip['change']):.3f} to {flip['value']:.3f} would choose {flip['model']}"
            )
    price = margin["price_factor"]
    if price is not None:
        lines.append(_price_line(price, chosen))
    for name, flip in margin["requirements"].items():
        if flip is not None:
            direction = "more" if flip["change"] >= 0 else "less"
            lines.append(f"{abs(flip['change']):.3f} {direction} {name} (to {flip['value']:.2f}) would choose {flip['model']}")
    return lines or ["nothing within the allowed range would change this choice"]


def _price_line(flip: FlipAnswer, chosen: str) -> str:
    if flip["change"] <= 0:
        return f"{chosen} made any dearer would give way to {flip['model']}, which costs the same"
    return f"{chosen} made dearer by {flip['change']:.0%} would give way to {flip['model']}"


def _read_line(classified: ClassifiedAnswer, language: str, family: str) -> str:
    kept = ", ".join(f"{_PARTS.get(part, part)} {count}" for part, count in classified["kept"].items()) or "nothing"
    cut = ", ".join(f"{reason.replace('_', ' ')} {count}" for reason, count in classified["cut"].items())
    return f"read as {language} ({family}) · characters read: {kept}" + (f" · left out: {cut}" if cut else "")
