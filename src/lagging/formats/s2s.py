# SPDX-License-Identifier: Apache-2.0
"""Segments of output speech, as Speech-to-Speech-Latency cuts them from transcripts of whole recordings.

Segments that nothing was aligned with have no source length and no delays. Where a segment has `raw_units`, these are
the tokens that its delays count; its text may have others, such as punctuation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import UNSET

from lagging.data.ragged import Floats
from lagging.data.tokens import count_tokens
from lagging.errors import Note
from lagging.formats.line import name_of
from lagging.formats.report import ReadReport

__all__ = ["count_units", "empty_unaligned"]


def empty_unaligned(rows: Sequence[Any], report: ReadReport) -> None:
    """Make empty hypotheses of segments that nothing was aligned with; they have no length either."""
    names: list[Any] = []
    for row in rows:
        if row.source_length in (UNSET, None) and row.delays in (UNSET, None, []) and not (row.prediction or ""):
            row.source_length, row.delays, row.prediction = 0.0, [], ""
            names.append(name_of(row))
    if names:
        text = "nothing was aligned with it (`source_length` is null): an empty hypothesis"
        report.notes.append(Note("NOT ALIGNED", text, len(names), tuple(names[:5])))


def count_units(references: Sequence[Any], level: str) -> Floats:
    """The length of each reference in units like those of the hypothesis; NaN where there is none.

    Example:
        >>> count_units(["good day", None], "word")
        array([ 2., nan])
    """
    texts = [text if isinstance(text, str) else None for text in references]
    counts = count_tokens(texts, level, np.zeros(len(texts), np.int64)).astype(np.float64)
    lengths: Floats = np.where([text is None for text in texts], np.nan, counts)
    return lengths
