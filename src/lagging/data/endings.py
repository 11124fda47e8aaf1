# SPDX-License-Identifier: Apache-2.0
"""Which rows of a Run end in a token that is no word, but the end of the sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lagging.data.tokens import EOS, ends_in_eos

if TYPE_CHECKING:
    from lagging.data.run import Run

__all__ = ["LONE", "find_ends", "find_lone", "find_marked"]


def find_marked(run: Run) -> npt.NDArray[np.bool_]:
    """Which predictions end in `</s>`, be it a token of its own or glued to the last word."""
    texts = [] if run.prediction is None else run.prediction.tolist()
    if EOS not in "\n".join(filter(None, texts)):  # one search is much quicker than one per text
        return np.zeros(len(run), dtype=bool)
    return np.array([ends_in_eos(text, "char") for text in texts], dtype=bool)


LONE = ", that of the end of an empty text: `--strip eos` leaves it out"
"""What a fault about one delay beside an empty text says."""


def find_lone(run: Run) -> npt.NDArray[np.bool_]:
    """Which rows have one delay and an empty text: SimulEval logs so an agent that wrote the end and nothing else."""
    rows = np.zeros(len(run), dtype=bool)
    if run.prediction is None or run.level == "token" or run.unit == "none" or run.speech_out:
        return rows
    for row in np.flatnonzero(run.delays.lengths == 1).tolist():
        rows[row] = not (run.prediction[row] or "").strip()
    return rows


def find_ends(run: Run) -> npt.NDArray[np.bool_]:
    """Which rows have the end of the sentence as their last token, with its own delay; not known of a log's own tokens.

    An empty prediction beside one delay is such: the delay is that of the end.
    """
    if run.prediction is None or run.level == "token" or not run.marked.any():
        return run.lone
    ended: npt.NDArray[np.bool_] = np.array([ends_in_eos(text, run.level) for text in run.prediction.tolist()], bool)
    return np.logical_or(run.lone, ended)
