# SPDX-License-Identifier: Apache-2.0
"""What a file cannot hold of a Run, in the same words for every format."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import Run
from lagging.data.tokens import is_spm
from lagging.errors import UsageError

__all__ = ["elapsed_without_steps", "lost", "require_timed_text"]


def lost(
    run: Run,
    kept: Collection[str],
    *more: str,
    unit: str | None = None,
    level: str | None = None,
    seg: str | None = None,
) -> list[str]:
    """What a format cannot hold.

    Args:
        run: what is written.
        kept: the columns that the format holds.
        more: further losses that the writer found.
        unit, level, seg: what a reader of the file will assume; None if the file declares it.

    Example:
        >>> run = Run.from_delays([[1, 2]], source_length=[2], level="word")
        >>> lost(run, {"id", "delays"}, unit="token", level="char")
        ['source_length', 'level (read it with --level word)']
    """
    losses = [column for column in run.columns if column not in kept]
    losses += more
    if level not in (None, run.level):
        model = " spm --spm-model FILE" if is_spm(run.level) else f" {run.level}"
        losses.append(f"level (read it with --level{model})")
    if unit not in (None, run.unit):
        losses.append(f"unit (read it with --unit {run.unit})")
    if seg not in (None, run.seg):
        losses.append(f"seg ({run.seg}, read back as {seg})")
        if seg == "none" and "delays" in kept and (run.delays.values < 0).any():
            losses.append("negative delays (a fault when read back)")
    return losses


def elapsed_without_steps(run: Run) -> tuple[Ragged | None, list[str]]:
    """The elapsed times for a format without steps, and what is lost.

    Where each counts the computing of its own step alone they may decrease; without the steps that is a fault.

    Example:
        >>> steps = {"arrivals": [[1000, 2000]], "compute": [[900, 50]], "steps": [[0, 1]]}
        >>> run = Run.from_delays([[1000, 1800]], source_length=[2000], elapsed=[[1900, 1850]], unit="ms", **steps)
        >>> elapsed_without_steps(run)
        (None, ['elapsed (it decreases, which is a fault without the steps)'])
    """
    if run.elapsed is None or run.unit != "ms" or not len(run.elapsed.falls()):
        return run.elapsed, []
    return None, ["elapsed (it decreases, which is a fault without the steps)"]


def require_timed_text(run: Run, *, times: str, text: str) -> None:
    """Refuse a Run for a format that needs times in ms and the text whose words or characters they belong to.

    Args:
        run: what is to be written.
        times, text: what the format has of them, as the beginning of a sentence.

    Example:
        >>> require_timed_text(Run.from_delays([[1, 2]], source_length=[2]), times="a stream has times", text="")
        Traceback (most recent call last):
        lagging.errors.UsageError: a stream has times, and these delays count source tokens
          fix: write jsonl, which holds everything.
    """
    fix = "\n  fix: write jsonl, which holds everything."
    if run.unit != "ms":
        raise UsageError(f"{times}, and these delays count source tokens{fix}")
    written = run.delays.lengths > 0
    silent = run.prediction is None or any(run.prediction[row] is None for row in np.flatnonzero(written))
    if written.any() and (silent or run.level not in ("word", "char")):
        reason = "there is no text" if silent else f"the {run.level}s that these delays count are not known"
        raise UsageError(f"{text}, and {reason}{fix}")
