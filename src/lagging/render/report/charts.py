# SPDX-License-Identifier: Apache-2.0
"""What the figures of the page show: points, distributions, lag by source length and over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from lagging.comparison import Comparison
from lagging.comparison.match import on_common_segments
from lagging.comparison.regimes import REGIMES
from lagging.data.ragged import Floats
from lagging.errors import MetricError
from lagging.metrics import Metric
from lagging.render.analysis import Analysis, common_clocks
from lagging.scoring.intervals import intervals
from lagging.scoring.scores import Score, Scores, sign_interval

__all__ = ["by_length", "distribution", "finite", "hidden", "number", "over_time", "tradeoff"]

LEAST, DRAWN = 1000, 30_000_000
"""Intervals on other clocks are of fewer resamples where segments × resamples would be more than that."""
GRID = 240
"""On how many lags the cumulative distributions are given."""
PERCENTILES = (50, 90, 99)
BINS = 8
"""Of source length, with at least `CROWD` segments of a system in each."""
CROWD = 10
TIMES = 40
"""Bins of lag over time at most, with at least `SOME` tokens of a system in each on average."""
SOME = 20
FEW = 5
"""A bin with fewer tokens is left out."""
LONG = {"ms": 60_000.0, "token": 200.0}
"""From this source length on, a segment is a recording, and its lag over time is shown."""


def finite(value: float | None) -> float | None:
    """A number, or None, which JSON has, for NaN, which it has not."""
    return None if value is None or not math.isfinite(value) else float(value)


def number(values: Floats, digits: int) -> list[float | None]:
    """A column of rounded numbers, None where there is none; whole numbers without a point."""
    rounded = np.round(values, digits)
    return [None if v != v else int(v) if v == int(v) else v for v in rounded.tolist()]


# ---- quality against latency --------------------------------------------------------------------------------------


def tradeoff(found: Comparison, systems: Sequence[Analysis]) -> dict[str, Any]:
    """Latency on every clock that all systems have, and quality, with intervals: the points of the curve."""
    latency = systems[0].latency_metrics
    quality = [
        m
        for m in found.metrics
        if m.unit in ("points", "score") and m.higher_is_better is not None and not m.has("clock")
    ]
    points = _points(found, systems, common_clocks(systems), latency) if latency else {}
    names = {repr(m) for m in latency}
    return {
        "clocks": list(points),
        "latency": [repr(m) for m in latency],
        "quality": [repr(m) for m in quality],
        "points": points,
        "regimes": [
            {"name": r.name, "metric": r.metric, "limits": [list(limit) for limit in r.limits], "source": r.source}
            for r in REGIMES.values()
            if r.metric in names and all(one.run.unit == "ms" for one in systems)
        ],
    }


def _points(
    found: Comparison, systems: Sequence[Analysis], clocks: Sequence[str], metrics: Sequence[Metric]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """By clock and metric, the point of each system; intervals of all of them on the same resamples."""
    resamples = min(found.resamples, max(LEAST, DRAWN // max(found.n, 1)))
    scores = {"ideal": [[one.scores[m] for m in metrics] for one in systems]}
    other = {
        clock: on_common_segments(
            {one.name: one.on(clock) for one in systems}, [m(clock=clock) for m in metrics], resample=found.resample
        ).scores
        for clock in clocks
        if clock != "ideal"
    }
    ends = iter(
        intervals(
            [score for rows in other.values() for row in rows for score in row],
            resample=found.resample,
            confidence=found.confidence,
            resamples=resamples,
            seed=found.seed,
        )
    )
    scores |= {
        clock: [[sign_interval(score, next(ends)) for score in row] for row in rows] for clock, rows in other.items()
    }
    return {
        clock: {repr(m): [_point(row[at]) for row in scores[clock]] for at, m in enumerate(metrics)} for clock in clocks
    }


def _point(one: Score) -> dict[str, Any]:
    return {
        "value": finite(one.value),
        "low": finite(one.low),
        "high": finite(one.high),
        "signature": str(one.signature),
    }


# ---- AL against DAL -----------------------------------------------------------------------------------------------


def hidden(systems: Sequence[Analysis]) -> list[dict[str, Any]]:
    """Of each system, AL, DAL, and where the difference comes from; per segment, these are columns of the segments.

    As in a comparison, a segment in which one of the systems has no value counts for none.
    """
    names = {
        "al": "AL",
        "dal": "DAL",
        "writes": "HiddenLag(where=writes)",
        "tail": "HiddenLag(where=tail)",
        "share": "HiddenShare",
    }
    if not all(one.timed for one in systems):
        return []
    found = on_common_segments(
        {one.name: Scores([one.diagnostics[name] for name in names.values()], one.name) for one in systems}
    )
    return [dict(zip(names, (finite(one.value) for one in row), strict=True)) for row in found.scores]


# ---- distributions ------------------------------------------------------------------------------------------------


def distribution(systems: Sequence[Analysis]) -> dict[str, Any]:
    """Cumulative distributions of token and segment lags on a common grid, with percentiles, per clock."""
    out: dict[str, Any] = {}
    for clock in common_clocks(systems):
        kinds = {
            "token": [np.sort(one.lags(clock).values) for one in systems],
            "segment": [np.sort(v[~np.isnan(v)]) for v in (one.segment_lags(clock) for one in systems)],
        }
        out[clock] = {kind: _ecdf(values) for kind, values in kinds.items()}
    return out


def _ecdf(columns: Sequence[Floats]) -> dict[str, Any]:
    some = [values for values in columns if len(values)]
    if not some:
        return {"grid": [], "systems": []}
    low = min(float(np.percentile(values, 0.1, method="lower")) for values in some)
    high = max(float(np.percentile(values, 99.9, method="higher")) for values in some)
    grid = np.linspace(low, max(high, low + 1e-9), GRID)
    of = []
    for values in columns:
        share = np.searchsorted(values, grid, side="right") / max(len(values), 1)
        p = np.percentile(values, PERCENTILES).tolist() if len(values) else [None] * len(PERCENTILES)
        of.append({"n": len(values), "share": np.round(share, 4).tolist(), "percentiles": p})
    return {"grid": np.round(grid, 4).tolist(), "percentiles": list(PERCENTILES), "systems": of}


def by_length(systems: Sequence[Analysis]) -> dict[str, Any]:
    """DAL of the segments, in bins of source length with about as many segments in each: quartiles.

    A bin stands at the median length of its segments, which one long segment does not move.
    """
    timed = [one for one in systems if one.timed]
    if not timed:
        return {"edges": [], "middles": [], "systems": []}
    lengths = np.concatenate([one.run.source_length for one in timed])
    some = lengths[lengths > 0]
    bins = max(1, min(BINS, len(some) // (CROWD * len(timed))))
    edges: Floats = np.unique(np.quantile(some, np.linspace(0, 1, bins + 1))) if len(some) else np.zeros(0)
    bin_of = np.clip(np.searchsorted(edges, some, side="right") - 1, 0, max(len(edges) - 2, 0))
    middles = [float(np.median(some[bin_of == at])) for at in range(len(edges) - 1)]
    out = []
    for one in timed:
        place = np.clip(np.searchsorted(edges, one.run.source_length, side="right") - 1, 0, max(len(edges) - 2, 0))
        lag = one.segment_lags()
        found = []
        for at in range(max(len(edges) - 1, 1)):
            values = lag[(place == at) & ~np.isnan(lag)]
            ends = np.percentile(values, (25, 50, 75)).tolist() if len(values) else [None] * 3
            found.append({"n": len(values), "quartiles": ends})
        out.append(found)
    return {"edges": edges.tolist(), "middles": middles, "systems": out}


def over_time(systems: Sequence[Analysis]) -> dict[str, Any] | None:
    """Median and 90th percentile of the token lags over the time of their recordings, and the drift.

    None where no segment is a recording, or part of one.
    """
    timed = [one for one in systems if one.timed]
    long = [one.run.seg != "none" or _long(one) for one in timed]
    if not timed or not any(long):
        return None
    placed = [_placed(one) for one in timed]
    ends = [float(time.max()) for time, _, _ in placed if len(time)]
    if not ends:
        return {"edges": [], "systems": [{"reason": reason} for _, _, reason in placed]}
    bins = max(2, min(TIMES, min(len(time) for time, _, _ in placed if len(time)) // SOME))
    edges = np.linspace(0.0, max(ends) or 1.0, bins + 1)
    out: list[dict[str, Any]] = []
    for one, (time, lag, reason) in zip(timed, placed, strict=True):
        place = np.minimum(np.searchsorted(edges, time, side="right") - 1, bins - 1)
        order = np.argsort(place, kind="stable")
        cuts = np.searchsorted(place[order], np.arange(1, bins))
        lines = [
            np.percentile(part, (50, 90)).tolist() if len(part) >= FEW else None for part in np.split(lag[order], cuts)
        ]
        out.append({"bins": lines, "drift": finite(one.drift()), "reason": reason})
    return {"edges": edges.tolist(), "systems": out}


def _long(one: Analysis) -> bool:
    some = one.run.source_length[one.run.delays.lengths > 0]
    return bool(len(some)) and float(np.median(some)) >= LONG[one.run.unit]


def _placed(one: Analysis) -> tuple[Floats, Floats, str]:
    """When in its recording each token was due, and its lag; or why that is not known."""
    try:
        return *one.lags_over_time(), ""
    except MetricError as error:
        return np.zeros(0), np.zeros(0), str(error).splitlines()[0]
