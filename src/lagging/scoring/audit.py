# SPDX-License-Identifier: Apache-2.0
"""Audits of a Run: what can be scored, but should not be believed before it is explained.

A fault makes a log unfit to be scored; a finding does not. Each audit looks at one thing, says how many tokens or
segments show it, and which ones, or why it could not look. `docs/audits.md` lists them, with their thresholds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats
from lagging.data.run import Run
from lagging.data.tokens import noun, tokens
from lagging.errors import counted
from lagging.errors.printable import printable
from lagging.longform.resegment import UNTIMELY
from lagging.metrics.clocks import ROUNDING
from lagging.scoring.log import score

__all__ = ["AUDITS", "Finding", "audit"]

GRID = 10.0
"""In ms: chunks of sound are multiples of it, or all of one length that is longer."""
HALF = 0.5
"""In ms: how far a delay may be from a multiple of `GRID`, and still be rounded."""
OFF_GRID = 0.05
"""More delays than this share that are on no grid are a finding."""
FEWEST_DELAYS = 5
"""Fewer delays do not show whether there is a grid."""
SENTENCE = 5
"""A segment of so many tokens is a whole sentence."""
WORDS = 3
"""A reference of fewer tokens may be in a hypothesis by chance."""
FEWEST_SEGMENTS = 2
"""The reference is in the hypothesis of every segment if there are at least so many."""
EXAMPLES = 5
"""How many segments a finding names."""

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Finding:
    """The result of one audit.

    Attributes:
        name: name of the audit.
        what: what was looked for.
        why: what it may mean, and what to do.
        count: how many tokens or segments show it; 0 if none does, or if it could not be looked for.
        noun: what is counted.
        total: how many were looked at.
        segments: the ids of the first segments that show it.
        skipped: why it could not be looked for; empty if it was.

    Example:
        >>> run = Run.from_delays([[500, 900]], elapsed=[[480, 990]], source_length=[900], unit="ms")
        >>> print(audit(run)[0])
        emitted before its audio: 1 of 2 tokens, in segment 0
    """

    name: str
    what: str
    why: str
    count: int = 0
    noun: str = "segment"
    total: int = 0
    segments: tuple[int | str, ...] = ()
    skipped: str = ""

    def __str__(self) -> str:
        """One line: what, how many, where."""
        if self.skipped:
            return printable(f"{self.what}: not checked: {self.skipped}")
        if not self.count:
            return f"{self.what}: none of {counted(self.total, self.noun)}"
        names = ", ".join(map(str, self.segments)) + " …" * (len(self.segments) == EXAMPLES)
        place = f"in segment{'s' * (len(self.segments) > 1)} {names}"
        return printable(f"{self.what}: {self.count} of {counted(self.total, self.noun)}, {place}")


class _Skipped(Exception):
    """An audit cannot look for anything, and why."""


def audit(run: Run) -> list[Finding]:
    """What is suspicious about a Run: a Finding for each audit, in the order of `AUDITS`.

    Args:
        run: the Run; whether its times fit a segmentation is seen once it is cut.

    Example:
        >>> run = Run.from_delays([[400] * 5], source_length=[2000], prediction=["it is all at once"], unit="ms")
        >>> [finding.name for finding in audit(run) if finding.count]
        ['identical-times']
    """
    findings = []
    for name, (what, why, look) in AUDITS.items():
        finding = Finding(name, what, why)
        try:
            finding = look(run, finding)
        except _Skipped as reason:
            finding = replace(finding, skipped=str(reason))
        findings.append(finding)
    return findings


def _of_tokens(run: Run, finding: Finding, flags: Flags) -> Finding:
    """A finding about tokens."""
    rows = np.unique(run.delays.owner(np.flatnonzero(flags))[0])
    ids = tuple(run.id[rows[:EXAMPLES]].tolist())
    return replace(finding, count=int(flags.sum()), noun=noun(run.level), total=len(flags), segments=ids)


def _of_segments(run: Run, finding: Finding, flags: Flags, known: Flags) -> Finding:
    """A finding about segments, of those that are known to show it or not."""
    ids = tuple(run.id[np.flatnonzero(flags)[:EXAMPLES]].tolist())
    return replace(finding, count=int(flags.sum()), total=int(known.sum()), segments=ids)


def _check_timed(run: Run) -> None:
    if run.unit != "ms":
        raise _Skipped("there are no delays in ms")


def _emitted_early(run: Run, finding: Finding) -> Finding:
    _check_timed(run)
    if run.elapsed is None:
        raise _Skipped("there are no elapsed times")
    return _of_tokens(run, finding, run.elapsed.values < run.delays.values - ROUNDING)


def _below_unaware(run: Run, finding: Finding) -> Finding:
    _check_timed(run)
    if run.elapsed is None:
        raise _Skipped("there are no elapsed times")
    names = ("AL", "LAAL", "DAL")
    scores = score(run, [f"{name}(clock={clock})" for name in names for clock in ("ideal", "elapsed")])
    values = [column.segments for column in scores]
    with np.errstate(invalid="ignore"):
        below = np.any([ca < cu - ROUNDING for cu, ca in zip(values[::2], values[1::2], strict=True)], axis=0)
    return _of_segments(run, finding, below, ~np.isnan(values[-1]))


def _off_grid(run: Run, finding: Finding) -> Finding:
    _check_timed(run)
    if run.seg != "none" and run.offset is None:
        raise _Skipped("it is not known where the segments begin in their recordings")
    begin = np.zeros(len(run)) if run.seg == "none" or run.offset is None else run.offset
    rows = np.repeat(np.arange(len(run)), run.delays.lengths)
    g = run.delays.values + begin[rows]
    inside = run.delays.values < run.source_length[rows] - HALF if run.seg == "none" else np.ones(len(g), dtype=bool)
    if inside.sum() < FEWEST_DELAYS:
        raise _Skipped(f"fewer than {FEWEST_DELAYS} delays before the end of the source")
    off = inside & (_distance(g, GRID) > HALF)
    result = replace(_of_tokens(run, finding, off), total=int(inside.sum()))
    most = max(OFF_GRID * inside.sum(), 1)
    others = inside & (_distance(g, _shortest_gap(g[inside])) > 2 * HALF)  # the chunk is rounded as well
    return result if min(off.sum(), others.sum()) > most else replace(result, count=0, segments=())


def _distance(g: Floats, chunk: float) -> Floats:
    """How far each delay is from a multiple of a chunk."""
    return np.asarray(np.abs(g - np.round(g / chunk) * chunk))


def _shortest_gap(g: Floats) -> float:
    """How far apart two delays are at least, of those further apart than `GRID`: the chunk, if there is one."""
    times = np.unique(np.concatenate([[0.0], g]))
    gaps = np.diff(times)
    shortest = float(gaps[gaps > GRID].min(initial=np.inf))
    chunks = np.round(times[-1] / shortest)
    return float(times[-1] / chunks) if chunks else GRID  # not the gap itself: its rounding would add up


def _identical_times(run: Run, finding: Finding) -> Finding:
    if run.unit == "none":
        raise _Skipped("there are no delays")
    long = run.delays.lengths >= SENTENCE
    same = np.nan_to_num(run.delays.by_row(lambda g: (g.min(axis=1) == g.max(axis=1)).astype(np.float64))) == 1
    return _of_segments(run, finding, long & same, long)


def _reference_inside(run: Run, finding: Finding) -> Finding:
    if run.prediction is None or run.reference is None or run.speech_out:
        raise _Skipped("there are no references beside the texts")
    level = run.level if run.level in ("word", "char") else "word"
    known, inside = np.zeros(len(run), dtype=bool), np.zeros(len(run), dtype=bool)
    for row, (text, reference) in enumerate(zip(run.prediction, run.reference, strict=True)):
        if text is not None and reference is not None and len(tokens(reference, level)) >= WORDS:
            known[row] = True
            inside[row] = _plain(reference) in _plain(text)
    if known.sum() < FEWEST_SEGMENTS:
        raise _Skipped(f"fewer than {FEWEST_SEGMENTS} segments with a reference of {WORDS} {noun(level)}s or more")
    return _of_segments(run, finding, inside if inside.sum() == known.sum() else np.zeros_like(inside), known)


def _plain(text: str) -> str:
    """A text with single spaces around its words, so that no word is part of another."""
    return f" {' '.join(text.casefold().split())} "


def _outside_segments(run: Run, finding: Finding) -> Finding:
    if run.seg == "none" or run.unit == "none":
        raise _Skipped("nothing was cut; give --segmentation")
    early = run.delays.values < 0
    result = _of_tokens(run, finding, early)
    return result if early.sum() > UNTIMELY * len(early) else replace(result, count=0, segments=())


AUDITS: dict[str, tuple[str, str, Callable[[Run, Finding], Finding]]] = {
    "before-its-audio": (
        "emitted before its audio",
        "Elapsed time is below the delay: their clocks do not agree, or elapsed times count computing alone.",
        _emitted_early,
    ),
    "ca-below-cu": (
        "lower latency with computing than without",
        "AL, LAAL or DAL is lower on elapsed times than on delays: do not publish the two beside each other.",
        _below_unaware,
    ),
    "no-chunk-grid": (
        "delays on no grid of chunks",
        "A system reads sound in chunks; delays at any millisecond are perhaps times of a clock, computing included.",
        _off_grid,
    ),
    "identical-times": (
        "one time for a whole sentence",
        "All tokens have one delay: written at once, or the times of sentences were copied to their words.",
        _identical_times,
    ),
    "reference-in-hypothesis": (
        "the reference is in every hypothesis",
        "No system finds every reference: perhaps the references were taken for the output.",
        _reference_inside,
    ),
    "outside-the-segmentation": (
        "written before its segment begins",
        "The times of the segmentation are perhaps those of another recording, or of another speed.",
        _outside_segments,
    ),
}
"""The audits by name: what each looks for, what it may mean, and the function that looks."""
