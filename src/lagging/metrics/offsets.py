# SPDX-License-Identifier: Apache-2.0
"""When output begins and ends, the number of its pieces, and the cost of computing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats, Ragged
from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.metrics.paper import EMPTY
from lagging.metrics.record import Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

SIMULEVAL = "SimulEval (Ma et al. 2020)"
BIBTEX = """\
@inproceedings{ma-etal-2020-simuleval,
  title     = {{SIMULEVAL}: An Evaluation Toolkit for Simultaneous Translation},
  author    = {Ma, Xutai and Dousti, Mohammad Javad and Wang, Changhan and Gu, Jiatao and Pino, Juan},
  booktitle = {Proceedings of the 2020 Conference on Empirical Methods in Natural Language Processing: System
               Demonstrations},
  year      = {2020}
}"""
PLAYED = "Output speech: a piece is played once it is available and the piece before has ended."
SILENCE = 1e-6
"""A nanosecond, in ms: a gap below it is rounding."""


def _played(s: Schedule) -> Ragged:
    """When each piece of output speech has been played: a queue in which playing is the work."""
    if s.durations is None:
        raise MetricError("it is defined for output speech, and this log has no `durations`")
    if s.run.unit != "ms":
        raise MetricError("the source is counted in tokens and the output speech in milliseconds")
    # the token that an empty hypothesis is charged with (NaN) makes no sound
    return s.g.by_token(lambda g, length: kernels.queue(g, np.nan_to_num(length)), s.durations)


@register(
    "StartOffset",
    summary="When the first target token was written.",
    formula="StartOffset = g(1)",
    latex=r"\mathrm{StartOffset} = g(1)",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(EMPTY, "Counted from the beginning of the source, which need not be the beginning of speech."),
)
def _start_offset(s: Schedule) -> Floats:
    return s.by_row(lambda g: g[:, 0])


@register(
    "EndOffset",
    needs={"durations"},
    summary="How long after the end of the source the last target token was written.",
    formula="EndOffset = g(|y|) − |x|",
    latex=r"\mathrm{EndOffset} = g(|y|) - |x|",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(
        EMPTY,
        f"{PLAYED} The end of the last piece counts.",
        "Negative where the system stopped writing before the source ended.",
        "With `clock=queue` on a whole recording, it is the backlog at its end.",
    ),
)
def _end_offset(s: Schedule) -> Floats:
    return (s.g if s.durations is None else _played(s)).last() - s.x


@register(
    "NumChunks",
    unit="count",
    higher_is_better=None,
    needs={"durations"},
    params=(Param("of", "chunks", "what is counted: runs of writes, or target tokens", ("chunks", "tokens")),),
    summary="The number of pieces in which the output came.",
    formula="NumChunks = number of t with g(t) > g(t−1), and the first",
    latex=r"\mathrm{NumChunks} = 1 + |\{t > 1 : g(t) > g(t-1)\}|",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(
        EMPTY,
        "SimulEval counts target words under this name; so does `--convention simuleval` (`of=tokens`).",
        "Output speech: every piece counts.",
    ),
)
def _num_chunks(s: Schedule, *, of: str) -> Floats:
    if of == "tokens" or s.durations is not None:
        return s.g.lengths.astype(np.float64)
    return s.by_row(lambda g: 1.0 + np.count_nonzero(kernels.waits(g)[:, 1:] > 0, axis=1))


@register(
    "RTF",
    unit="ratio",
    aggregate="ratio",
    needs={"elapsed", "arrivals", "compute", "durations", "compute_share", "recording_share"},
    params=(
        Param("of", "compute", "what is divided by |x|: computing time, or the last delay", ("compute", "delays")),
    ),
    summary="Real-time factor: computing time per source time. Above 1, a system falls further and further behind.",
    formula="RTF = Σ compute ÷ Σ |x|",
    latex=r"\mathrm{RTF} = \frac{\sum \mathrm{compute}}{\sum |x|}",
    paper="simulstream (Gaido et al. 2025)",
    bibtex="""\
@article{gaido-etal-2025-simulstream,
  title   = {simulstream: Open-Source Toolkit for Evaluation and Demonstration of Streaming Speech-to-Text Translation
             Systems},
  journal = {CoRR},
  volume  = {abs/2512.17648},
  year    = {2025}
}""",
    edge_cases=(
        "A ratio of sums over the corpus, not a mean of ratios.",
        "From a SimulEval log: elapsed − delay of the last target token; undefined where nothing was written.",
        "Segments cut from a stream: each has a share of the computing time and of the length of its recording, in "
        "proportion to its own length. The value of a segment is that of its recording.",
        "SimulEval's RTF is g(|y|)/|x|, averaged over segments; so is that of `--convention simuleval` (`of=delays`). "
        "Output speech: the end of the last piece ÷ |x|, as SimulEval computes it in a run, but not from a log.",
    ),
    undefined="nothing was written, and the log does not say what was computed",
)
def _rtf(s: Schedule, *, of: str) -> Floats:
    if of == "delays":
        ends = s.g if s.durations is None else _played(s)
        return np.stack([ends.last() / s.x, np.ones(len(s.x))], axis=1)
    if s.g is not s.ideal:
        raise MetricError("computing time is the same on every clock: ask for RTF without a clock")
    if s.run.unit != "ms":
        raise MetricError("it is defined for a source in milliseconds only")
    if s.run.compute_share is not None and s.run.recording_share is not None:
        return np.stack([s.column("compute_share"), s.column("recording_share")], axis=1)
    if s.run.seg != "none" and s.run.compute is None:
        raise MetricError(
            "these segments do not say how long their recordings were, and how long the system computed on them\n"
            "  fix: cut the log of the recordings by `--segmentation`; it must have the computing time of each step, "
            "or elapsed times that add up, as SimulEval's do."
        )
    return np.stack([s.compute.by_row(lambda c: c.sum(axis=1)), s.x], axis=1)


def _silences(s: Schedule) -> Ragged:
    """The silence before each piece of output speech; 0 before the first."""

    def gaps(end: Floats, g: Floats) -> Floats:
        wait = g - np.concatenate([g[:, :1], end[:, :-1]], axis=1)
        return np.where(wait > SILENCE, wait, 0.0)

    return _played(s).by_token(gaps, s.g)


NO_TEXT = "Output text: not defined."


@register(
    "DiscontinuityNum",
    unit="count",
    needs={"durations"},
    summary="Output speech: the number of silences between pieces.",
    formula="number of pieces that begin after the piece before has ended",
    latex=r"|\{i > 1 : \mathrm{start}(i) > \mathrm{end}(i-1)\}|",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(EMPTY, PLAYED, NO_TEXT),
)
def _discontinuity_num(s: Schedule) -> Floats:
    return _silences(s).by_row(lambda gap: np.count_nonzero(gap > 0, axis=1).astype(np.float64))


@register(
    "DiscontinuitySum",
    needs={"durations"},
    summary="Output speech: the total length of the silences between pieces.",
    formula="Σ_i max(0, start(i) − end(i−1))",
    latex=r"\sum_{i>1} \max(0, \mathrm{start}(i) - \mathrm{end}(i-1))",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(EMPTY, PLAYED, NO_TEXT),
)
def _discontinuity_sum(s: Schedule) -> Floats:
    return _silences(s).by_row(lambda gap: gap.sum(axis=1))


@register(
    "DiscontinuityAve",
    needs={"durations"},
    summary="Output speech: the mean length of the silences between pieces.",
    formula="DiscontinuityAve = DiscontinuitySum ÷ DiscontinuityNum, 0 where there is no silence",
    latex=r"\mathrm{DiscontinuitySum} / \mathrm{DiscontinuityNum}",
    paper=SIMULEVAL,
    bibtex=BIBTEX,
    edge_cases=(EMPTY, PLAYED, NO_TEXT, "No silence: 0."),
)
def _discontinuity_ave(s: Schedule) -> Floats:
    return _silences(s).by_row(lambda gap: gap.sum(axis=1) / np.maximum(np.count_nonzero(gap > 0, axis=1), 1))
