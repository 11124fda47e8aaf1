# SPDX-License-Identifier: Apache-2.0
"""What a mean does not show: percentiles of the token lags, the largest lag, and the drift over a recording."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Ints, Ragged
from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.metrics.paper import EMPTY
from lagging.metrics.record import Param
from lagging.metrics.registry import register

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

EFFECTIVE = Param(
    "effective", False, "whether writing takes time: lags of g', as in DAL, instead of g", ("False", "True")
)
OWN = "`lagging.lags` gives the lags of one sentence, token by token."


def _lags(s: Schedule, effective: bool) -> Ragged:
    """ℓ(t) = g(t) − (t−1)/γ, or ℓ'(t) = g'(t) − (t−1)/γ."""
    return s.lags.by_token(kernels.running) if effective else s.lags


def _percentile(lags: Floats, *, p: float, effective: bool) -> Floats:
    return np.asarray(np.percentile(lags, p, axis=-1))


@register(
    "LagPercentile",
    length="hypothesis",
    pool=_percentile,
    quantile="p",
    params=(Param("p", 90, "which percentile: from 0 to 100", kind=float, least=0, most=100), EFFECTIVE),
    summary="The p-th percentile of the lags of all target tokens of the corpus.",
    formula="LagPercentile(p) = the p-th percentile of ℓ(t) = g(t) − (t−1)/γ over all t of all segments",
    latex=r"\mathrm{LagPercentile}(p) = Q_p\{g(t) - (t-1)/\gamma\}",
    paper="not from a paper",
    edge_cases=(
        EMPTY,
        "A percentile between two tokens is interpolated linearly.",
        "The value of a segment is the percentile of its own tokens; the corpus value is not their mean.",
        "Every token counts, also after τ. p=50 is the median, p=100 the largest lag of the corpus.",
        "It is exact, so it needs 8 bytes of memory per target token; other metrics need 8 per segment.",
        OWN,
    ),
)
def _lag_percentile(s: Schedule, *, p: float, effective: bool) -> Ragged:
    return _lags(s, effective)


def _largest(rows: Floats) -> float:
    return float(rows[:, 0].max())


@register(
    "MaxLag",
    length="hypothesis",
    aggregate=_largest,
    summary="The largest lag of a target token.",
    formula="MaxLag = max_t [g(t) − (t−1)/γ]; of the corpus, the largest of all segments",
    latex=r"\mathrm{MaxLag} = \max_t \left[ g(t) - \frac{t-1}{\gamma} \right]",
    paper="not from a paper",
    edge_cases=(
        EMPTY,
        "The value is the same for g and g': the running maximum of the lags ends at their maximum.",
        OWN,
    ),
)
def _max_lag(s: Schedule) -> Floats:
    return s.by_lag(lambda lag: lag.max(axis=1))


DRIFT_SPAN = {"ms": 60_000.0, "token": 100.0}
"""The amount of source that a drift refers to: a minute of speech, or 100 tokens."""


@register(
    "LagDrift",
    unit="drift",
    length="hypothesis",
    needs={"corpus", "offset", "recording_end", "document"},
    aggregate="ratio",
    params=(EFFECTIVE,),
    summary="Growth of the lag per minute of source: whether a system falls behind.",
    formula="slope of ℓ(t) over the source time (t−1)/γ at which it was due, by least squares, × 1 min (or 100 tokens)",
    latex=r"60\,\mathrm{s} \cdot \frac{\sum (s_t - \bar s)(\ell_t - \bar\ell)}{\sum (s_t - \bar s)^2},"
    r" \qquad s_t = (t-1)/\gamma",
    paper="not from a paper; that latency accumulates over long speech: Xue et al. 2026 (arXiv:2606.15059)",
    edge_cases=(
        EMPTY,
        "Seconds per minute for speech; source tokens per 100 source tokens for text.",
        "Segments cut from a stream: one slope per recording, over all its segments, placed by `offset` or "
        "`recording_end`; the recordings are pooled by least squares. The value of a segment is its own slope.",
        "Segments of the same `document` are one recording; without that column, all segments are one.",
        "OmniSTEval up to 0.1.9 wrote wrong ends for simulstream logs. They do not say where a segment lies, and are "
        "refused.",
        "One token has no slope: such a segment is left out.",
        "On the queue clock, the lag of a system with a real-time factor above 1 grows without end.",
    ),
    undefined="one token has no slope",
    segment_values=lambda rows: np.asarray(rows[:, 2] / np.where(rows[:, 3] > 0, rows[:, 3], np.nan)),
)
def _lag_drift(s: Schedule, *, effective: bool) -> Floats:
    defined = (s.g.lengths > 1) & (s.x > 0) & (s.y > 0)
    lag = _lags(s, effective).keep(defined)
    due = lag.by_token(lambda lag, x, y: np.arange(lag.shape[1]) * (x / y), s.x, s.y)
    own = slope_terms(due, lag, np.arange(len(s.x)))
    recording, begin = locate_segments(s, defined)
    time = due.by_token(lambda due, begin: begin + due, begin)
    span = DRIFT_SPAN[s.run.unit]
    rows = np.concatenate([slope_terms(time, lag, recording), own], axis=1) * [span, 1, span, 1]
    return np.where(defined[:, None], rows, np.nan)


def slope_terms(time: Ragged, lag: Ragged, group: Ints) -> Floats:
    """The part of each row in Σ (s − s̄)(ℓ − ℓ̄) and in Σ (s − s̄)², with the means of its group."""
    row = np.repeat(np.arange(len(lag)), lag.lengths)
    label = group[row]

    def centre(values: Floats) -> Floats:
        return values - (np.bincount(label, values) / np.maximum(np.bincount(label), 1))[label]

    t, lags = centre(time.values), centre(lag.values)
    return np.stack([np.bincount(row, t * v, minlength=len(lag)) for v in (lags, t)], axis=1)


def locate_segments(s: Schedule, required: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """The number of the recording of each segment, and the time at which the segment begins in it.

    The time is that of `offset`, or, counted back from the end of the recording, that of `recording_end`.

    Args:
        s: the schedule of the segments.
        required: the segments whose place must be known.

    Raises:
        MetricError: it is not known where a required segment lies.
    """
    run = s.run
    if run.seg == "none":
        return np.arange(len(run)), np.zeros(len(run))
    names = [None] * len(run) if run.document is None else run.document.tolist()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    recording = np.array([numbers[name] for name in names], dtype=np.int64)
    for times, sign in ((run.offset, 1.0), (run.recording_end, -1.0)):
        if times is None or np.isnan(times[required]).any():
            continue
        several = len(np.unique(recording[required])) < required.sum()
        if sign < 0 and several and np.allclose(times[required], run.source_length[required]):
            raise MetricError(
                "`recording_end` is the end of each segment, not of its recording, as OmniSTEval up to 0.1.9 wrote it "
                "for simulstream logs\n  fix: cut the log of the whole recordings again, by `--segmentation`."
            )
        if run.document is None and (np.diff(sign * times[required]) < 0).any():
            raise MetricError(
                "segments begin before those above them, and the log does not say whether they belong to other "
                "recordings: it needs `document`"
            )
        return recording, sign * times
    raise MetricError("it needs to know where in its recording each segment lies: `offset`, or `recording_end`")
