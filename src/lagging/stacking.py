# SPDX-License-Identifier: Apache-2.0
"""What is known of the segments of several parts of a log, end to end."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lagging.metrics.record import Statistics
from lagging.ragged import Floats, Ints, Ragged
from lagging.run import Ids, Run, Texts

__all__ = ["join_documents", "missing", "reference_hashes", "stack"]


def join_documents(parts: Sequence[Texts | None], ids: Sequence[Ids]) -> Texts | None:
    """The documents of all parts; None if no part has them."""
    if all(part is None for part in parts):
        return None
    nothing = (np.full(len(some), None) for some in ids)
    return np.concatenate([n if p is None else p for p, n in zip(parts, nothing, strict=True)])


def missing(rows: Statistics) -> npt.NDArray[np.bool_]:
    """Which segments have no value."""
    return np.asarray(rows.lengths == 0 if isinstance(rows, Ragged) else np.isnan(rows).any(axis=1), dtype=bool)


def stack(parts: Sequence[Statistics]) -> Statistics:
    """Rows of all parts; one whose segments are all undefined may have fewer columns."""
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if ragged:
        return Ragged.concat(ragged)
    return _stack_rows([part for part in parts if not isinstance(part, Ragged)])


def _stack_rows(parts: Sequence[Floats]) -> Floats:
    width = max(part.shape[1] for part in parts)
    full = [p if p.shape[1] == width else np.full((len(p), width), np.nan) for p in parts]
    return full[0] if len(full) == 1 else np.concatenate(full)


def reference_hashes(run: Run) -> Ints:
    """A number for each reference, other for other texts; 0 without any."""
    if run.reference is None:
        return np.zeros(len(run), dtype=np.int64)
    texts = run.reference.tolist()
    return np.array([zlib.crc32(text.strip().encode("utf-8", "replace")) if text else 0 for text in texts], np.int64)
