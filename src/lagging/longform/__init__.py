# SPDX-License-Identifier: Apache-2.0
"""Long-form: what was written over a whole recording, cut into the segments of a reference.

segmentation, entries    where segments lie, and what their references are
recordings               which row of a log is which recording
corridor, optimum, words the best path, proven, and what a pair of words is worth
aligners                 mwer, soft, timed, omnisteval
resegment                a stream per recording in, a segment per reference out
texts                    which line of a file belongs to which row
"""

from __future__ import annotations

from lagging.longform.aligners import ALIGNERS
from lagging.longform.recordings import is_one_recording
from lagging.longform.resegment import Cut, cut, resegment
from lagging.longform.segmentation import Segmentation, read_segmentation
from lagging.longform.stream import Stream
from lagging.longform.texts import with_predictions, with_references

__all__ = [
    "ALIGNERS",
    "Cut",
    "Segmentation",
    "Stream",
    "cut",
    "is_one_recording",
    "read_segmentation",
    "resegment",
    "with_predictions",
    "with_references",
]
