# SPDX-License-Identifier: Apache-2.0
"""What a mean does not show: the tail of the token lags, the worst token, and the drift over a recording."""

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
    "effective", False, "whether writing takes time: lags of g', which DAL averages, not of g", ("False", "True")
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
    summary="The lag that p of 100 target tokens stay below, pooled over all tokens of the corpus.",
    formula="LagPercentile(p) = the p-th percentile of ℓ(t) = g(t) − (t−1)/γ over all t of all segments",
    latex=r"\mathrm{LagPercentile}(p) = Q_p\{g(t) - (t-1)/\gamma\}",
    paper="not from a paper",
    edge_cases=(
        EMPTY,
        "Between two tokens the percentile is interpolated linearly.",
        "The value of a segment is the percentile of its own tokens; the corpus value is not their mean.",
        "Every token counts, those after τ too. p=50 is the median, p=100 the worst token of the corpus.",
        "Exact, so that it holds 8 bytes per target token in memory, where other metrics hold 8 per segment.",
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
    summary="The lag of the worst target token.",
    formula="MaxLag = max_t [g(t) − (t−1)/γ]; of the corpus, the largest of all segments",
    latex=r"\mathrm{MaxLag} = \max_t \left[ g(t) - \frac{t-1}{\gamma} \right]",
    paper="not from a paper",
    edge_cases=(EMPTY, "The same for g and g': the running maximum of the lags ends at their maximum.", OWN),
)
def _max_lag(s: Schedule) -> Floats:
    return s.by_lag(lambda lag: lag.max(axis=1))


DRIFT_SPAN = {"ms": 60_000.0, "token": 100.0}
"""Over how much source a drift is told: a minute of speech, or 100 tokens."""


@register(
    "LagDrift",
    unit="drift",
    length="hypothesis",
    needs={"corpus", "offset", "recording_end", "document"},
    aggregate="ratio",
    params=(EFFECTIVE,),
    summary="By how much the lag grows per minute of source: whether a system falls behind.",
    formula="slope of ℓ(t) over the source time (t−1)/γ at which it was due, by least squares, × 1 min (or 100 tokens)",
    latex=r"60\,\mathrm{s} \cdot \frac{\sum (s_t - \bar s)(\ell_t - \bar\ell)}{\sum (s_t - \bar s)^2},"
    r" \qquad s_t = (t-1)/\gamma",
    paper="not from a paper; that latency accumulates over long speech: Xue et al. 2026 (arXiv:2606.15059)",
    edge_cases=(
        EMPTY,
        "Seconds per minute for speech; source tokens per 100 source tokens for text.",
        "Segments cut from a stream: one slope per recording, over all its segments, placed by `offset` or "
        "`recording_end`; the recordings are pooled by least squares. The value of a segment is its own slope.",
        "Segments of the same `document` are one recording; without that column, all are.",
        "OmniSTEval up to 0.1.9 wrote wrong ends for simulstream logs: they place no segment, and are refused.",
        "One token has no slope: such a segment counts for nothing.",
        "On the queue clock a system with a real-time factor above 1 drifts for ever.",
    ),
    undefined="one token has no slope",
    segment_values=lambda rows: np.asarray(rows[:, 2] / np.where(rows[:, 3] > 0, rows[:, 3], np.nan)),
)
def _lag_drift(s: Schedule, *, effective: bool) -> Floats:
    some = (s.g.lengths > 1) & (s.x > 0) & (s.y > 0)
    lag = _lags(s, effective).keep(some)
    due = lag.by_token(lambda lag, x, y: np.arange(lag.shape[1]) * (x / y), s.x, s.y)
    own = slope_terms(due, lag, np.arange(len(s.x)))
    recording, begin = locate_segments(s, some)
    placed = due.by_token(lambda due, begin: begin + due, begin)
    rows = np.concatenate([slope_terms(placed, lag, recording), own], axis=1) * [
        DRIFT_SPAN[s.run.unit],
        1,
        DRIFT_SPAN[s.run.unit],
        1,
    ]
    return np.where(some[:, None], rows, np.nan)


def slope_terms(time: Ragged, lag: Ragged, group: Ints) -> Floats:
    """Of each row, its part of Σ (s − s̄)(ℓ − ℓ̄) and of Σ (s − s̄)², with the means of its group."""
    row = np.repeat(np.arange(len(lag)), lag.lengths)
    of = group[row]

    def centred(values: Floats) -> Floats:
        return values - (np.bincount(of, values) / np.maximum(np.bincount(of), 1))[of]

    t, late = centred(time.values), centred(lag.values)
    return np.stack([np.bincount(row, t * v, minlength=len(lag)) for v in (late, t)], axis=1)


def locate_segments(s: Schedule, some: npt.NDArray[np.bool_]) -> tuple[Ints, Floats]:
    """The recording of each segment, by number, and when in it the segment begins, at least for some of them.

    Placed by `recording_end`, the beginning is counted back from the end of the recording.

    Raises:
        MetricError: it is not known where a segment lies.
    """
    run = s.run
    if run.seg == "none":
        return np.arange(len(run)), np.zeros(len(run))
    names = [None] * len(run) if run.document is None else run.document.tolist()
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    recording = np.array([numbers[name] for name in names], dtype=np.int64)
    for known, sign in ((run.offset, 1.0), (run.recording_end, -1.0)):
        if known is None or np.isnan(known[some]).any():
            continue
        several = len(np.unique(recording[some])) < some.sum()
        if sign < 0 and several and np.allclose(known[some], run.source_length[some]):
            raise MetricError(
                "`recording_end` is the end of each segment, not of its recording, as OmniSTEval up to 0.1.9 wrote it "
                "for simulstream logs\n  fix: cut the log of the whole recordings again, by `--segmentation`."
            )
        if run.document is None and (np.diff(sign * known[some]) < 0).any():
            raise MetricError(
                "segments begin before those above them, and nothing says that they are of other recordings: it needs "
                "`document`"
            )
        return recording, sign * known
    raise MetricError("it needs to know where in its recording each segment lies: `offset`, or `recording_end`")
