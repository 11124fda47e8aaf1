# SPDX-License-Identifier: Apache-2.0
"""Tables in notebooks: `_repr_html_ = notebooks.html` in a class."""

from __future__ import annotations

import importlib

__all__ = ["html"]


def html(object: object) -> str:
    """A small table of a Run, Scores, Comparison, Curves, Metric or Timeline; the writer is imported when it is needed.

    Example:
        >>> import lagging
        >>> html(lagging.Run.from_delays([[1, 2]], source_length=[2]))[:40]
        '<table class="lagging"><caption>Run(1 se'
    """
    table = importlib.import_module("lagging.render.html").render_html(object)
    assert isinstance(table, str)
    return table
