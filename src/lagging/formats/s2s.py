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
from lagging.errors import Fault, Note
from lagging.formats.line import name_of, shown
from lagging.formats.report import ReadReport

__all__ = ["check_units", "count_units", "empty_unaligned"]


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


def check_units(rows: Sequence[Any], lines: Sequence[int], path: str, report: ReadReport) -> None:
    """Report units that are no list of texts."""
    for row, line in zip(rows, lines, strict=True):
        units = UNSET if row.raw_units is None else row.raw_units
        if units is UNSET or (isinstance(units, list) and all(isinstance(unit, str) for unit in units)):
            continue
        detail = f"raw_units: {shown(units)}, which is no list of texts"
        report.faults.add(Fault("bad-value", detail, path, line, name_of(row)))


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
