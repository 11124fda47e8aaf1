# SPDX-License-Identifier: Apache-2.0
"""Scores with known segment values, for the tests of statistics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import lagging
from lagging.data.ragged import Ragged
from lagging.scoring.scores import Score, Undefined
from lagging.scoring.signature import Signature


def made(
    name: str, statistics, ids: Sequence[object] | None = None, documents: Sequence[object] | None = None
) -> Score:
    """A score of a registered metric with these statistics: a value per segment, or a row."""
    metric = lagging.metric(name)
    rows = statistics
    if not isinstance(rows, Ragged):
        rows = np.array(rows, dtype=np.float64)
        rows = rows[:, None] if rows.ndim == 1 else rows
    names = np.array(range(len(rows)) if ids is None else ids)
    talks = None if documents is None else np.array(documents, dtype=object)
    signature = Signature.make(metric.name_with_params, {}, (), len(rows), "0")
    return Score(metric, metric.corpus(rows), rows, names, Undefined({}), "token", signature, metric, documents=talks)
