# SPDX-License-Identifier: Apache-2.0
"""What all figures share: a style per system, titles with metric, unit and clock, and fonts for foreign text.

Colours are those of Okabe and Ito (2008), which people tell apart whatever colours they see. A system also has a marker
and a dash of its own, so that a figure can be printed in grey. Nothing here changes matplotlib's settings.
"""

from __future__ import annotations

import io
import math
import unicodedata
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from lagging.data.units import SHOWN, scale
from lagging.errors import UsageError, counted, optional
from lagging.metrics import Metric
from lagging.scoring.signature import Signature

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.text import Text

__all__ = [
    "Fonts",
    "Style",
    "add_note",
    "add_signatures",
    "axis_title",
    "check_named",
    "common_value",
    "figure_of",
    "format_amount",
    "prepare_axes",
    "scale",
    "shorten_names",
    "system_style",
    "unit_label",
]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9")
"""Okabe and Ito's, without the yellow, which white paper swallows."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "p")
DASHES = tuple(
    (0.0, dash) for dash in ((), (5.0, 1.5), (1.3, 1.3), (6.0, 1.5, 1.3, 1.5), (3.0, 1.0, 3.0, 1.0, 1.0, 1.0))
)
INK, GREY, FAINT = "#222222", "#777777", "#dddddd"
SMALL = 8.0
"""Size of all text but the titles of axes, in points."""

UNITS = {"token": "source tokens", "ms": SHOWN["ms"], "token/100": "tokens per 100 tokens", "ms/min": SHOWN["ms/min"]}
ARROWS = {True: " ↑", False: " ↓", None: ""}
LONGEST = 34
"""Characters of a system's name that are shown."""


@dataclass(frozen=True)
class Style:
    """Colour, marker and dash of a system."""

    colour: str
    marker: str
    dash: tuple[float, tuple[float, ...]]

    @property
    def line(self) -> dict[str, Any]:
        """The options of matplotlib for a line with markers."""
        style = {"color": self.colour, "linestyle": self.dash, "linewidth": 1.5}
        return style | {"marker": self.marker, "markersize": 5.5, "markeredgecolor": "white", "markeredgewidth": 0.6}


def system_style(index: int) -> Style:
    """The style of a system: the first 12 differ in their markers, and no two of the first 420 are the same."""
    return Style(COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], DASHES[index % len(DASHES)])


def check_named(systems: object) -> None:
    """Refuse systems without names."""
    if not isinstance(systems, Mapping):
        raise UsageError("systems are given by name, such as {'new': run}")


# ---- units and titles -----------------------------------------------------------------------------------------


def unit_label(unit: str) -> str:
    """A unit as it is written beside a value."""
    return UNITS.get(unit, "")


def format_amount(value: float, unit: str, digits: int = 2) -> str:
    """`1.92 s`, with a minus sign that is as wide as the plus sign; a dash where there is no value."""
    if math.isnan(value):
        return "–"
    return f"{value / scale(unit):.{digits}f} {unit_label(unit)}".strip().replace("-", "−")


def axis_title(metric: Metric, unit: str, quantity: str | None = None) -> str:
    """`LAAL ↓ (s, ideal clock)`: metric, or another name of the quantity, with direction, unit and clock."""
    name = quantity or repr(replace(metric, values=tuple((n, v) for n, v in metric.values if n != "clock")))
    clock = f"{metric.get('clock')} clock" if metric.has("clock") else ""
    details = ", ".join(part for part in (unit_label(unit), clock) if part)
    return f"{name}{ARROWS[metric.higher_is_better]}" + (f" ({details})" if details else "")


def common_value(kind: str, values: Iterable[Any]) -> Any:
    """The value that all systems have, such as a unit: one figure cannot mix several.

    Raises:
        UsageError: there are several, or none.
    """
    distinct = list(dict.fromkeys(values))
    if len(distinct) > 1:
        raise UsageError(f"one figure cannot show several {kind}: {', '.join(map(str, distinct))}")
    if not distinct:
        raise UsageError("there is nothing to draw")
    return distinct[0]


# ---- axes -----------------------------------------------------------------------------------------------------


def prepare_axes(ax: Axes | None, width: float = 6.0, height: float = 3.8) -> Axes:
    """The axes to draw on, new ones if there are none; with a light grid, and without a frame.

    Notebooks show new axes as the figure that they are all of.
    """
    if ax is None:
        optional("matplotlib", "plot")
        from matplotlib.figure import Figure

        figure = Figure(figsize=(width, height), layout="constrained")
        ax = figure.subplots()
        ax._repr_png_ = partial(_png, figure)  # type: ignore[attr-defined]
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.set_axisbelow(True)
    ax.tick_params(labelsize=SMALL)
    return ax


def _png(figure: Figure) -> bytes:
    """A figure as a notebook shows it."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=150, bbox_inches="tight")
    return file.getvalue()


def figure_of(ax: Axes) -> Figure:
    """The figure that axes belong to."""
    if ax.figure is None:
        raise UsageError("these axes belong to no figure")
    return ax.figure.canvas.figure  # the whole one, of a part of it too


def add_note(ax: Axes, *notes: str) -> None:
    """Write above the axes what the figure does not show."""
    text = "\n".join(note for note in notes if note)
    if text:
        ax.set_title(text, loc="left", fontsize=SMALL - 1, color=GREY, parse_math=False)


def add_signatures(ax: Axes, signatures: Iterable[Signature | str]) -> None:
    """Keep the signatures of the numbers with the axes that show them."""
    ax.set_label("\n".join(dict.fromkeys(map(str, signatures))))


# ---- texts ----------------------------------------------------------------------------------------------------


def shorten_names(names: Sequence[str]) -> list[str]:
    """Names of systems, with the middle left out of long ones, unless that makes two alike."""
    plain = [_plain(name) for name in names]
    half = (LONGEST - 1) // 2
    cut = [n if len(n) <= LONGEST else f"{n[:half].rstrip()}…{n[-half:].lstrip()}" for n in plain]
    return [whole if cut.count(part) > 1 else part for whole, part in zip(plain, cut, strict=True)]


def _plain(text: str) -> str:
    """Text on one line: a character that cannot be seen becomes a space."""
    return "".join(c if c.isprintable() or unicodedata.category(c) == "Cf" else " " for c in text)


class Fonts:
    """The fonts that a figure needs for its texts: the one set in matplotlib, then installed ones that have the rest.

    A character that no installed font has is shown as � and warned of, once per figure: matplotlib would draw boxes.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        from matplotlib import font_manager, rcParams

        needed = {c for text in texts for c in _plain(text) if not c.isspace() and unicodedata.category(c) != "Cf"}
        installed = {font.name for font in font_manager.fontManager.ttflist}
        settings: Any = rcParams
        families = font_manager.FontProperties().get_family()
        preferred: list[str] = [name for family in families for name in settings.get(f"font.{family}", [family])]
        self.families = [name for name in dict.fromkeys([*preferred, "DejaVu Sans"]) if name in installed][:1]
        self.missing = needed - _characters(self.families[0])
        for name in _fallback_fonts(tuple(preferred)) if self.missing else ():
            if added := self.missing & _characters(name):
                self.families.append(name)
                self.missing -= added
            if not self.missing:
                break
        if self.missing:
            sample = "".join(sorted(self.missing)[:12])
            warnings.warn(
                f"no installed font has {sample} ({counted(len(self.missing), 'character')} in all)\n"
                "  fix: install a font that has them, such as Noto Sans CJK, or name one in "
                "matplotlib.rcParams['font.family'].",
                UserWarning,
                stacklevel=3,
            )

    def can_draw(self, text: str) -> bool:
        """Whether all characters of a text can be drawn."""
        return self.missing.isdisjoint(text)

    def replace_missing(self, text: str) -> str:
        """The text, with a � for every character that cannot be drawn."""
        lines = (
            "".join("\N{REPLACEMENT CHARACTER}" if c in self.missing else c for c in _plain(line))
            for line in text.split("\n")
        )
        return "\n".join(lines)

    def set_fonts(self, artist: Text) -> None:
        """Let an artist draw its text as it is, without mathematics, in fonts that have its characters."""
        artist.set_parse_math(False)
        artist.set_fontfamily(self.families)

    def write(self, artist: Text, text: str) -> None:
        """Make an artist show the text."""
        self.set_fonts(artist)
        artist.set_text(self.replace_missing(text))


@cache
def _characters(family: str) -> frozenset[str]:
    """The characters that a font has."""
    from matplotlib import font_manager

    path = font_manager.findfont(font_manager.FontProperties(family=[family]))
    return frozenset(map(chr, font_manager.get_font(path).get_charmap()))


@cache
def _fallback_fonts(preferred: tuple[str, ...]) -> tuple[str, ...]:
    """Upright fonts of normal weight: the preferred ones, then those without serifs, by name."""
    from matplotlib import font_manager

    fonts = font_manager.fontManager.ttflist
    names = {f.name for f in fonts if f.style == "normal" and f.weight in (400, "normal", "regular", "book")}
    names -= {name for name in names if name.startswith(("Last Resort", "cm", "STIX"))}  # boxes, and mathematics
    first = [name for name in preferred if name in names]
    return (*first, *sorted(names - set(first), key=lambda name: ("Sans" not in name, name)))
