# SPDX-License-Identifier: Apache-2.0
"""How notebooks show an object: `_repr_html_ = notebooks.html` in its class."""

from __future__ import annotations

import importlib

__all__ = ["html"]


def html(shown: object) -> str:
    """A small table of a Run, Scores, Comparison or Timeline; what writes it is imported when it is asked for.

    Example:
        >>> import lagging
        >>> html(lagging.Run.from_delays([[1, 2]], source_length=[2]))[:40]
        '<table class="lagging"><caption>Run(1 se'
    """
    table = importlib.import_module("lagging.render.html").render_html(shown)
    assert isinstance(table, str)
    return table
