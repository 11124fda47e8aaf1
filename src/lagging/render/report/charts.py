# SPDX-License-Identifier: Apache-2.0
"""Data of the figures of the page: points of the curve, distributions, lag by source length and over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lagging.comparison import Comparison
from lagging.comparison.match import on_common_segments
from lagging.comparison.regimes import REGIMES
from lagging.data.ragged import Floats, Ints
from lagging.errors import MetricError
from lagging.metrics import Metric
from lagging.render.analysis import Analysis, common_clocks
from lagging.render.records import estimate_record, finite
from lagging.scoring.columns import is_read
from lagging.scoring.intervals import intervals
from lagging.scoring.scores import Score, Scores, sign_interval

__all__ = ["by_length", "distribution", "hidden_lag", "over_time", "round_column", "tradeoff"]

LEAST_RESAMPLES, MOST_DRAWS = 1000, 30_000_000
"""Intervals on other clocks have fewer resamples where segments × resamples would be more than that."""
GRID = 240
"""The number of lags at which the cumulative distributions are given."""
PERCENTILES = (50, 90, 99)
LENGTH_BINS = 8
"""The most bins of source length; each has at least `BIN_SEGMENTS` segments of a system."""
BIN_SEGMENTS = 10
TIME_BINS = 40
"""The most bins of lag over time; each has at least `BIN_TOKENS` tokens of a system on average."""
BIN_TOKENS = 20
FEWEST_TOKENS = 5
"""A bin with fewer tokens is left out."""
OVER_TIME = {"ms": 60_000.0, "token": 200.0}
"""Lag over time is shown where half of the segments have this source length or more."""


def round_column(values: Floats, digits: int) -> list[float | None]:
    """A column of rounded numbers, None for NaN; whole numbers are int, which JSON writes without a point."""
    rounded = np.round(values, digits)
    return [None if v != v else int(v) if v == int(v) else v for v in rounded.tolist()]


# ---- quality against latency --------------------------------------------------------------------------------------


def tradeoff(comparison: Comparison, systems: Sequence[Analysis]) -> dict[str, Any]:
    """Latency on every clock that all systems have, and quality, with intervals: the points of the curve."""
    latency = systems[0].latency_metrics
    quality = [
        m
        for m in comparison.metrics
        if m.unit in ("points", "score") and m.higher_is_better is not None and not m.has("clock")
    ]
    quality.sort(key=lambda m: not is_read(m))  # the first is drawn: a column that was given, as in `lagging curve`
    points = _points(comparison, systems, common_clocks(systems), latency) if latency else {}
    names = {repr(m) for m in latency}
    return {
        "clocks": list(points),
        "latency": [repr(m) for m in latency],
        "quality": [repr(m) for m in quality],
        "points": points,
        "regimes": [
            {"name": r.name, "metric": r.metric, "limits": [list(limit) for limit in r.limits], "source": r.source}
            for r in REGIMES.values()
            if r.metric in names and all(system.run.unit == "ms" for system in systems)
        ],
    }


def _points(
    comparison: Comparison, systems: Sequence[Analysis], clocks: Sequence[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By clock and metric, the point of each system; all intervals on the same resamples."""
    c = comparison
    resamples = min(c.resamples, max(LEAST_RESAMPLES, MOST_DRAWS // max(c.n, 1)))
    scores = {"ideal": [[system.scores[m] for m in metrics] for system in systems]}
    other = {
        clock: on_common_segments(
            {system.name: system.on(clock) for system in systems},
            [m(clock=clock) for m in metrics],
            resample=c.resample,
        ).scores
        for clock in clocks
        if clock != "ideal"
    }
    every = [score for rows in other.values() for row in rows for score in row]
    ends = iter(intervals(every, resample=c.resample, confidence=c.confidence, resamples=resamples, seed=c.seed))
    scores |= {
        clock: [[sign_interval(score, next(ends)) for score in row] for row in rows] for clock, rows in other.items()
    }
    return {
        clock: {repr(m): [_point(row[i]) for row in scores[clock]] for i, m in enumerate(metrics)} for clock in clocks
    }


def _point(score: Score) -> dict[str, Any]:
    return {**(estimate_record(score) or {}), "signature": str(score.signature)}


# ---- AL against DAL -----------------------------------------------------------------------------------------------


def hidden_lag(systems: Sequence[Analysis]) -> list[dict[str, Any]]:
    """AL and DAL of each system, and the parts of their difference; per segment, these are columns of the segments.

    As in a comparison, a segment in which one of the systems has no value is left out of all.
    """
    names = {
        "al": "AL",
        "dal": "DAL",
        "writes": "HiddenLag(where=writes)",
        "tail": "HiddenLag(where=tail)",
        "share": "HiddenShare",
    }
    if not all(system.timed for system in systems):
        return []
    matched = on_common_segments(
        {system.name: Scores([system.diagnostics[name] for name in names.values()], system.name) for system in systems}
    )
    return [dict(zip(names, (finite(score.value) for score in row), strict=True)) for row in matched.scores]


# ---- distributions ------------------------------------------------------------------------------------------------


def distribution(systems: Sequence[Analysis]) -> dict[str, Any]:
    """Cumulative distributions of token and segment lags on a common grid, with percentiles, per clock."""
    distributions: dict[str, Any] = {}
    for clock in common_clocks(systems):
        tokens = [np.sort(system.lags(clock).values) for system in systems]
        segments = [np.sort(lags[~np.isnan(lags)]) for lags in (system.segment_lags(clock) for system in systems)]
        distributions[clock] = {"token": _ecdf(tokens), "segment": _ecdf(segments)}
    return distributions


def _ecdf(columns: Sequence[Floats]) -> dict[str, Any]:
    filled = [values for values in columns if len(values)]
    if not filled:
        return {"grid": [], "systems": []}
    low = min(float(np.percentile(values, 0.1, method="lower")) for values in filled)
    high = max(float(np.percentile(values, 99.9, method="higher")) for values in filled)
    grid = np.linspace(low, max(high, low + 1e-9), GRID)
    systems = []
    for values in columns:
        share = np.searchsorted(values, grid, side="right") / max(len(values), 1)
        percentiles = np.percentile(values, PERCENTILES).tolist() if len(values) else [None] * len(PERCENTILES)
        systems.append({"n": len(values), "share": np.round(share, 4).tolist(), "percentiles": percentiles})
    return {"grid": np.round(grid, 4).tolist(), "percentiles": list(PERCENTILES), "systems": systems}


def by_length(systems: Sequence[Analysis]) -> dict[str, Any]:
    """Quartiles of the DAL of segments, in bins of source length with about as many segments in each.

    A bin stands at the median length of its segments, which a single long segment does not move.
    """
    timed = [system for system in systems if system.timed]
    if not timed:
        return {"edges": [], "middles": [], "systems": []}
    lengths = np.concatenate([system.run.source_length for system in timed])
    lengths = lengths[lengths > 0]
    bins = max(1, min(LENGTH_BINS, len(lengths) // (BIN_SEGMENTS * len(timed))))
    edges: Floats = np.unique(np.quantile(lengths, np.linspace(0, 1, bins + 1))) if len(lengths) else np.zeros(0)
    bin_of = _bins(edges, lengths)
    middles = [float(np.median(lengths[bin_of == i])) for i in range(len(edges) - 1)]
    rows = []
    for system in timed:
        bin_of, lags = _bins(edges, system.run.source_length), system.segment_lags()
        row = []
        for i in range(max(len(edges) - 1, 1)):
            values = lags[(bin_of == i) & ~np.isnan(lags)]
            quartiles = np.percentile(values, (25, 50, 75)).tolist() if len(values) else [None] * 3
            row.append({"n": len(values), "quartiles": quartiles})
        rows.append(row)
    return {"edges": edges.tolist(), "middles": middles, "systems": rows}


def _bins(edges: Floats, lengths: Floats) -> Ints:
    """The bin of each length."""
    return np.clip(np.searchsorted(edges, lengths, side="right") - 1, 0, max(len(edges) - 2, 0))


def over_time(systems: Sequence[Analysis]) -> dict[str, Any] | None:
    """Median and 90th percentile of the token lags over the time of their recordings, and the drift.

    None where no segment is a recording, or part of one.
    """
    timed = [system for system in systems if system.timed]
    if not any(system.run.seg != "none" or _has_recordings(system) for system in timed):
        return None
    series = [_lags_over_time(system) for system in timed]
    ends = [float(time.max()) for time, _, _ in series if len(time)]
    if not ends:
        return {"edges": [], "systems": [{"reason": reason} for _, _, reason in series]}
    bins = max(2, min(TIME_BINS, min(len(time) for time, _, _ in series if len(time)) // BIN_TOKENS))
    edges = np.linspace(0.0, max(ends) or 1.0, bins + 1)
    rows: list[dict[str, Any]] = []
    for system, (time, lags, reason) in zip(timed, series, strict=True):
        bin_of = np.minimum(np.searchsorted(edges, time, side="right") - 1, bins - 1)
        order = np.argsort(bin_of, kind="stable")
        cuts = np.searchsorted(bin_of[order], np.arange(1, bins))
        percentiles = [
            np.percentile(part, (50, 90)).tolist() if len(part) >= FEWEST_TOKENS else None
            for part in np.split(lags[order], cuts)
        ]
        rows.append({"bins": percentiles, "drift": finite(system.drift()), "reason": reason})
    return {"edges": edges.tolist(), "systems": rows}


def _has_recordings(system: Analysis) -> bool:
    lengths = system.run.source_length[system.run.delays.lengths > 0]
    return bool(len(lengths)) and float(np.median(lengths)) >= OVER_TIME[system.run.unit]


def _lags_over_time(system: Analysis) -> tuple[Floats, Floats, str]:
    """When in its recording each token was due, and its lag; or why that is not known."""
    try:
        return *system.lags_over_time(), ""
    except MetricError as error:
        return np.zeros(0), np.zeros(0), str(error).splitlines()[0]
