# SPDX-License-Identifier: Apache-2.0
"""Metrics of segments cut from a stream: the delays of a segment are counted from its beginning in the recording.

AL, AP, LAAL and DAL have the same meaning on such segments as on sentences (OmniSTEval calls them LongAL, …). The
stream-level AP and AL of Iranzo-Sánchez et al. (2021) are AP and AL on such segments, with the default
`length=hypothesis`. The metrics of this module use the neighbours of a segment as well: its words may be written before
it begins or after it ends, and delay is carried over to the next segment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lagging.data.ragged import Floats, Ragged
from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.metrics.laal import NO_REFERENCE, POLAK, mean_lag_before
from lagging.metrics.offsets import BIBTEX, SIMULEVAL
from lagging.metrics.paper import EMPTY
from lagging.metrics.record import Param
from lagging.metrics.registry import alias, register
from lagging.metrics.tail import DRIFT_SPAN, locate_segments, slope_terms

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

STREAMATT = """\
@inproceedings{papi-etal-2024-streamatt,
  title     = {{S}tream{A}tt: Direct Streaming Speech-to-Text Translation with Attention-based Audio History Selection},
  author    = {Papi, Sara and Gaido, Marco and Negri, Matteo and Bentivogli, Luisa},
  booktitle = {Proceedings of the 62nd Annual Meeting of the Association for Computational Linguistics
               (Volume 1: Long Papers)},
  year      = {2024}
}"""
IRANZO_SANCHEZ = """\
@inproceedings{iranzo-sanchez-etal-2021-stream-level,
  title     = {Stream-level Latency Evaluation for Simultaneous Machine Translation},
  author    = {Iranzo-S{\\'a}nchez, Javier and Civera Saiz, Jorge and Juan, Alfons},
  booktitle = {Findings of the Association for Computational Linguistics: EMNLP 2021},
  year      = {2021}
}"""
CUT = "Only on segments cut from a stream (`--segmentation`, or a log of such segments); any other log is refused."


def _check_cut(s: Schedule) -> None:
    """Refuse segments that were not cut from a stream."""
    if s.run.seg == "none":
        raise MetricError(
            "it is defined on segments cut from a stream, and these are not\n"
            "  fix: cut the log of the recordings by `--segmentation`; a log of segments says how it was cut by `seg`."
        )


@register(
    "LongYAAL",
    length="longest",
    needs={"recording_end", "offset"},
    params=(
        Param(
            "end",
            "recording",
            "the end before which tokens count: of the recording, or of the segment",
            ("recording", "segment"),
        ),
    ),
    summary="YAAL on segments cut from a stream, up to the end of the recording instead of the segment.",
    formula="LongYAAL = mean of g(t) − (t−1)/γ over the leading t with g(t) < the end of the recording",
    latex=r"\mathrm{LongYAAL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ g(t) - \frac{t-1}{\gamma} \right], \qquad"
    r" \tau = \max\{t : g(t) < T\}",
    paper="Polák et al. 2025 (arXiv:2509.17349)",
    bibtex=POLAK,
    edge_cases=(
        EMPTY,
        NO_REFERENCE,
        "The end T is taken from the log (`recording_end`; OmniSTEval: `time_to_recording_end`). It is the end of the "
        "last reference segment, not of the sound.",
        "OmniSTEval up to 0.1.9 wrote the segment's own end for simulstream logs: it published 2171.8 ms where 0.1.10 "
        "gives 2621.5. `LongYAAL(end=segment)` repeats that on any log: T = |x|, exactly.",
        "Everything written after the end of the recording, or the end not known: undefined.",
    ),
    undefined="nothing was written before the end, or the end is not known",
)
def _long_yaal(s: Schedule, *, end: str) -> Floats:
    if end == "recording":
        return mean_lag_before(s, s.column("recording_end"))
    begin = np.zeros(len(s.x)) if s.run.offset is None else np.nan_to_num(s.run.offset)
    # rounded as in OmniSTEval, so that words written exactly at the end are treated as there
    return mean_lag_before(s, (begin + s.x) - begin)


@register(
    "StreamLAAL",
    length="longest",
    needs={"cutoff"},
    params=(
        Param("version", "2", "the delay of a token written before its segment: negative (1), or 0 (2)", ("1", "2")),
    ),
    summary="LAAL on segments cut from a stream.",
    formula="StreamLAAL = LAAL of max(g(t), 0); version 1: LAAL of g(t), which may be negative",
    latex=r"\mathrm{StreamLAAL} = \frac{1}{\tau} \sum_{t=1}^{\tau} \left[ \max\{g(t), 0\} - \frac{t-1}{\gamma} \right],"
    r" \qquad \gamma = \frac{\max(|y|, |y^*|)}{|x|}",
    paper="Papi et al. 2024",
    bibtex=STREAMATT,
    edge_cases=(
        EMPTY,
        NO_REFERENCE,
        CUT,
        "Three tools differ under this name. FBK's first script and simulstream leave delays negative (`version=1`, "
        "`StreamLAAL_v1`); FBK's script since March 2025 raises them to 0 (`version=2`, `StreamLAAL_v2`, the default). "
        "OmniSTEval's LongLAAL is version 1 on its own segmentation. `seg` in the signature says how the stream was "
        "cut.",
        "Computation-aware: `StreamLAAL_CA` is what FBK's script prints by that name, `StreamLAAL(clock=fbk)`. "
        "`StreamLAAL_v1_CA` is what the script printed before its version 2.0, and what simulstream prints for its own "
        "logs. With `clock=elapsed`, SimulEval's times give minutes: they add up all computing since the beginning of "
        "the recording.",
        "The cut-off τ is that of AL: of the words after the end of the segment, only the first counts.",
    ),
)
def _stream_laal(s: Schedule, *, version: str) -> Floats:
    _check_cut(s)
    g = s.g if version == "1" else s.g.by_token(lambda g: np.maximum(g, 0.0))
    return g.by_token(kernels.lags, s.x, s.y).by_row(kernels.al, g.by_row(kernels.cutoff, s.source_end))


alias("StreamLAAL_v1", "StreamLAAL(version=1)")
alias("StreamLAAL_v2", "StreamLAAL(version=2)")
alias("StreamLAAL_CA", "StreamLAAL(clock=fbk)")
alias("StreamLAAL_v1_CA", "StreamLAAL(version=1, clock=fbk1)")
alias("StreamLAAL_v2_CA", "StreamLAAL(version=2, clock=fbk)")


@register(
    "StreamDAL",
    length="hypothesis",
    needs={"corpus", "offset", "recording_end", "document"},
    params=(Param("scale", 0.95, "s: writing a token takes s·d", kind=float, least=0),),
    summary="DAL over a whole recording: delay is carried over from one segment to the next.",
    formula="g'(t) = max(g(t), g'(t−1) + s·d), in the time of the recording, d = |x|/|y| of the segment of t−1; "
    "StreamDAL = mean over the tokens i of a segment of g'(t) − its beginning − (i−1)d, with its own d",
    latex=r"\mathrm{StreamDAL} = \frac{1}{|y|} \sum_{i=1}^{|y|} \left[ g'(t) - o - (i-1)d \right], \qquad"
    r" g'(t) = \max\{g(t),\; g'(t-1) + s\,d_{t-1}\}, \quad d = \frac{|x|}{|y|}",
    paper="Iranzo-Sánchez et al. 2021",
    bibtex=IRANZO_SANCHEZ,
    edge_cases=(
        EMPTY,
        CUT,
        "s = 1 is the DAL of the paper over the recording: lag is never recovered up to its end. The default 0.95 is "
        "that of the figures of Iranzo-Sánchez et al. With s = 0 writing is free: the value is the mean of the lags, "
        "except that no token comes before an earlier one.",
        "d is not scaled in the lag itself, so on a single segment s < 1 does not give DAL.",
        "The segments of a `document` are one recording, in the order of their `offset` (or `recording_end`); without "
        "that column, all segments are one. For a part of the log, the carried delay is a different one.",
        "A segment without a value takes no time to write, but its tokens, if it has any, keep their place.",
        "The AP and AL of the same paper are AP and AL on these segments.",
    ),
)
def _stream_dal(s: Schedule, *, scale: float) -> Floats:
    _check_cut(s)
    recording, begin = locate_segments(s, s.g.lengths > 0)
    order = np.lexsort((begin, recording))
    g, begin, x, y = s.g.take(order), begin[order], s.x[order], s.y[order]
    d = np.where((x > 0) & (y > 0), x / y, 0.0)
    begins, costs = (np.repeat(column, g.lengths) for column in (begin, scale * d))
    sizes = np.bincount(recording[order], g.lengths)
    spent = Ragged.from_lengths(costs, sizes)
    carried = Ragged.from_lengths(begins + g.values, sizes).by_token(kernels.carried, spent)
    delays = Ragged(carried.values - begins, g.offsets)
    values = np.empty(len(order))
    values[order] = delays.by_row(lambda delays, d: kernels.al_y(kernels.budget(delays, d)), d)
    return values


@register(
    "StreamDrift",
    unit="drift",
    length="hypothesis",
    needs={"corpus", "offset", "recording_end", "document"},
    aggregate="ratio",
    summary="Growth of the mean lag of the segments per minute of a recording.",
    formula="slope of AL_y of the segments over where they begin in their recording, by least squares, × 1 min (or 100 "
    "tokens): one slope for all recordings, each with its own mean",
    latex=r"60\,\mathrm{s} \cdot \frac{\sum_r \sum_{i \in r} (o_i - \bar o_r)(\ell_i - \bar\ell_r)}"
    r"{\sum_r \sum_{i \in r} (o_i - \bar o_r)^2}",
    paper="not from a paper; that latency accumulates over long speech: Xue et al. 2026 (arXiv:2606.15059)",
    edge_cases=(
        EMPTY,
        CUT,
        "Seconds per minute for speech; source tokens per 100 source tokens for text.",
        "LagDrift is the same over tokens: there every token has the same weight, here every segment.",
        "The value of a segment is the slope of its recording. The only segment of a recording has none.",
        "The segments of a `document` are one recording; without that column, all segments are one.",
        "An interval by documents is exact; an interval by segments treats the means of a recording as constants.",
    ),
    undefined="no other segment of its recording begins at another time",
    segment_values=lambda rows: rows[:, 2],
)
def _stream_drift(s: Schedule) -> Floats:
    _check_cut(s)
    defined = (s.g.lengths > 0) & (s.x > 0) & (s.y > 0)
    recording, begin = locate_segments(s, defined)
    first = np.full(len(begin), np.inf)
    np.minimum.at(first, recording[defined], begin[defined])
    time = Ragged.from_lengths((begin - first[recording])[defined] / DRIFT_SPAN[s.run.unit], defined)
    lag = Ragged.from_lengths(s.lags.by_row(kernels.al_y)[defined], defined)
    top, bottom = slope_terms(time, lag, recording).T
    slope = np.bincount(recording, top) / np.bincount(recording, bottom)
    rows = np.stack([top, bottom, slope[recording]], axis=1)
    return np.where(defined[:, None], rows, np.nan)


@register(
    "StreamEndOffset",
    needs={"corpus", "recording_end", "document"},
    aggregate="ratio",
    summary="How long after the end of a recording its last target token was written.",
    formula="max over the segments i of a recording of g_i(|y_i|) − T_i, T_i the end of the recording as segment i "
    "counts; the mean over recordings",
    latex=r"\frac{1}{R} \sum_r \max_{i \in r} \left[ g_i(|y_i|) - T_i \right]",
    paper=f"EndOffset of {SIMULEVAL}, for each recording instead of each segment",
    bibtex=BIBTEX,
    edge_cases=(
        EMPTY,
        CUT,
        "EndOffset compares the last token of a segment with the end of that segment; Speech-to-Speech-Latency prints "
        "that as `ending_offset`. Of a log that is not cut, with a row per recording, EndOffset is this metric.",
        "The segments of a `document` are one recording; without that column, all segments are one. The value of a "
        "segment is that of its recording.",
        "Negative where the system stopped writing before the recording ended.",
    ),
    undefined="nothing was written, or the end of the recording is not known",
    segment_values=lambda rows: rows[:, 2],
)
def _stream_end_offset(s: Schedule) -> Floats:
    _check_cut(s)
    after = s.g.last() - s.column("recording_end")
    defined = (s.g.lengths > 0) & ~np.isnan(after)
    recording, _ = locate_segments(s, defined)
    last = np.full(recording.max(initial=-1) + 1, -np.inf)
    np.maximum.at(last, recording[defined], after[defined])
    share = 1 / np.maximum(np.bincount(recording[defined], minlength=len(last)), 1)
    rows = np.stack([(last * share)[recording], share[recording], last[recording]], axis=1)
    return np.where(defined[:, None], rows, np.nan)
