# SPDX-License-Identifier: Apache-2.0
"""Figures as files: the same figure is the same bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from lagging.data.files import write_whole
from lagging.errors import UsageError, did_you_mean, optional
from lagging.render.plots.theme import figure_of
from lagging.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["save", "signatures"]

METADATA: dict[str, tuple[str, dict[str, str | None]]] = {
    "pdf": ("Subject", {"Creator": f"lagging {__version__}", "Producer": None, "CreationDate": None}),
    "svg": ("Description", {"Creator": f"lagging {__version__}", "Date": None}),
    "png": ("Description", {"Software": f"lagging {__version__}"}),
}
"""By format: the field for signatures, and the other fields."""

SETTINGS: Any = {"svg.hashsalt": "lagging", "svg.fonttype": "path", "pdf.fonttype": 42, "path.simplify": True}
"""Constant ids, letters as paths, and fonts that publishers accept (no Type 3)."""


def signatures(figure: Figure | Axes) -> tuple[str, ...]:
    """How the numbers in a figure were made, for its caption.

    Example:
        >>> from lagging import Run, plots
        >>> ax = plots.ecdf({"antagonist": Run.from_delays([[4, 4, 4, 4, 5]], source_length=[5])}, metric="DAL")
        >>> signatures(ax)[0].partition("|v:")[0]
        'DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:1'
    """
    axes = _whole_figure(figure).axes
    return tuple(dict.fromkeys(line for ax in axes for line in str(ax.get_label()).splitlines() if "|" in line))


def save(figure: Figure | Axes, path: str | Path, *, dpi: float = 200.0) -> None:
    """Write a figure, by the ending of its name: .pdf, .svg or .png.

    There is no date in it, and nothing random: the same figure gives the same bytes, by the same matplotlib. The
    signatures of its numbers are in the file's description. The file is written whole, or not at all.

    Args:
        figure: a figure, or axes of it.
        path: the file to write.
        dpi: dots per inch of a png.

    Raises:
        UsageError: another ending, or a file that cannot be written.
    """
    optional("matplotlib", "plot")
    from matplotlib import rc_context

    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in METADATA:
        raise UsageError(
            f"cannot write a figure to {path}: no format is called {ending!r}.{did_you_mean(ending, METADATA)}"
        )
    field, fixed = METADATA[ending]
    metadata: dict[str, Any] = dict(fixed)
    if lines := signatures(figure):
        metadata[field] = "\n".join(lines)
    with rc_context(SETTINGS), write_whole(path, binary=True) as file:
        _whole_figure(figure).savefig(file, format=ending, dpi=dpi, metadata=metadata, bbox_inches="tight")


def _whole_figure(figure: Figure | Axes) -> Figure:
    from matplotlib.figure import Figure

    return figure if isinstance(figure, Figure) else figure_of(figure)
