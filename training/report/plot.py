"""How every plot of a report is drawn: inline SVG whose colours are CSS variables of the page, so that plots follow dark mode and print."""

from __future__ import annotations

import html
import io
import re
import unicodedata
import warnings
from collections.abc import Mapping
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

# Colours that occur nowhere else, each replaced by the CSS variable of the same name.
COLOURS: Final[Mapping[str, str]] = {
    "ink": "#0a0b01", "muted": "#0a0b02", "grid": "#0a0b03", "router": "#0a0b04", "random": "#0a0b05", "length": "#0a0b06",
    "source_mean": "#0a0b07", "oracle": "#0a0b08", "surface": "#0a0b09",
}  # fmt: skip
LINES: Final[Mapping[str, Any]] = {"random": (0, (4, 3)), "length": (0, (1, 1.5)), "source_mean": (0, (6, 2, 1, 2)), "oracle": (0, (8, 2))}
STYLE: Final[Any] = {
    "svg.fonttype": "none", "svg.hashsalt": "interlock", "font.size": 9, "axes.edgecolor": COLOURS["muted"],
    "axes.labelcolor": COLOURS["ink"], "text.color": COLOURS["ink"], "xtick.color": COLOURS["muted"], "ytick.color": COLOURS["muted"],
    "xtick.labelcolor": COLOURS["ink"], "ytick.labelcolor": COLOURS["ink"], "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "grid.color": COLOURS["grid"], "grid.linewidth": 0.7, "axes.axisbelow": True, "axes.unicode_minus": False,
}  # fmt: skip
WIDTH_IN: Final = 4.9
BACKED: Final = {"facecolor": COLOURS["surface"], "edgecolor": "none", "pad": 1.0}
_CHAR_IN: Final = 0.075
_LABEL_CELLS: Final = 28


def axes_of(width: float, height: float, *, left: float, bottom: float, right: float = 0.12, top: float = 0.2) -> tuple[Figure, Axes]:
    """A figure whose margins are in inches, so that long names are never cut."""
    figure = Figure(figsize=(width, height))
    figure.patch.set_alpha(0)
    axes = figure.add_axes((left / width, bottom / height, (width - left - right) / width, (height - bottom - top) / height))
    axes.patch.set_alpha(0)
    return figure, axes


def svg(figure: Figure, key: str, label: str) -> str:
    """The figure as an SVG element for HTML: ids begin with ``key``, no namespaces, no metadata, ``label`` for who cannot see it."""
    buffer = io.StringIO()
    with warnings.catch_warnings():
        # The page's fonts draw the text; that the measuring font lacks a glyph does not matter.
        warnings.filterwarnings("ignore", message=r"(Glyph .* missing from|Matplotlib currently does not support)")
        FigureCanvasSVG(figure).print_svg(buffer, metadata={"Date": None, "Creator": None, "Format": None, "Type": None})  # type: ignore[no-untyped-call]
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'\sxmlns(:\w+)?="[^"]*"', "", text)
    text = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{key}-", text)
    for name, colour in COLOURS.items():
        text = text.replace(colour, f"var(--{name.replace('_', '-')})")
    box = re.match(r'<svg[^>]*?viewBox="([^"]*)"[^>]*>', text)
    assert box is not None
    text = f'<svg viewBox="{box[1]}" role="img" aria-label="{html.escape(label)}">{text[box.end() :]}'
    return "\n".join(line for line in text.splitlines() if line.strip())


def label_width(labels: list[str]) -> float:
    """Inches that the widest of some labels takes beside a plot."""
    return max(1.0, _CHAR_IN * max(map(_display_width, labels), default=0) + 0.15)


def clipped(text: str) -> str:
    """The text, cut to the columns a label may take; the table beside the plot has it whole."""
    if _display_width(text) <= _LABEL_CELLS:
        return text
    while _display_width(text) > _LABEL_CELLS - 1:
        text = text[:-1]
    return text.rstrip() + "…"


def short_note(note: str) -> str:
    """A reason that fits into a plot."""
    note = note.removeprefix("undefined: ")
    return note if len(note) <= 50 else note[:47].rstrip() + "…"


def _display_width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
