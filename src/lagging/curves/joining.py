# SPDX-License-Identifier: Apache-2.0
"""Make the curves of several systems from their settings: logs, or published numbers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lagging.comparison.derivations import Draws
from lagging.comparison.published.labels import QUALITY
from lagging.comparison.published.rows import PublishedRow, check_ours, published_metric
from lagging.curves.estimates import Curves
from lagging.curves.points import Axis, Curve, Point
from lagging.data.run import Run
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.columns import Column, Columns
from lagging.scoring.log import score
from lagging.scoring.plan import default_resample
from lagging.scoring.scores import Score, Scores
from lagging.stats import RESAMPLES, SEED

__all__ = ["Setting", "axis", "check_axes", "curves", "join_settings", "score_setting"]

Setting = Run | Scores | PublishedRow


def curves(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    latency: str | Metric = "AL",
    quality: str | Metric = "BLEU",
    *,
    convention: str | Convention = "paper",
    resample: str | None = None,
    confidence: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
    columns: Iterable[Column] = (),
) -> Curves:
    """Join the settings of each system to a curve of quality against latency, with intervals on both axes.

    Args:
        settings: by system, the name of each setting, and its Run, its Scores, or its published numbers.
        latency, quality: the metrics of the two axes.
        convention: the convention by which Runs are scored.
        resample: "segment" or "document"; by default documents where segments were cut from several recordings.
        confidence, method, resamples, seed: options of the intervals; see `lagging.stats.intervals`.
        columns: scores of segments that another program computed, such as COMET, one column for each setting of a Run;
            its `system` is the name of the system and that of the setting, "wait-k k=3".

    Returns:
        Curves; the logs are scored on the segments that all of them have.

    Raises:
        UsageError: no setting, two settings of one name, latencies in different units, or a metric without direction.

    Example:
        >>> import lagging
        >>> def run(k, good):
        ...     texts = [f"a b c {'d' if n < good else 'x'} e f" for n in range(8)]
        ...     delays = [[min(k + t, 6) for t in range(6)]] * 8
        ...     return lagging.Run.from_delays(
        ...         delays, source_length=[6] * 8, prediction=texts, reference=["a b c d e f"] * 8)
        >>> result = curves({"wait-k": [("k=1", run(1, 4)), ("k=3", run(3, 6)), ("k=5", run(5, 8))]}, resamples=1000)
        >>> [(p.setting, p.latency.value, round(p.quality.value, 1)) for p in result[0].points]
        [('k=1', 1.0, 69.2), ('k=3', 3.0, 85.1), ('k=5', 5.0, 100.0)]
        >>> at = result.quality_at(2)[0]
        >>> round(at.value, 1), round(at.low, 1), round(at.high, 1)
        (77.2, 54.2, 92.6)
        >>> result.quality_at(6)[0].reason
        'its latency goes from 1 to 5 tokens'
        >>> [setting.setting for setting in result.front() if setting.on]
        ['k=1', 'k=3', 'k=5']
    """
    given = Columns(columns)
    x, y = axis(latency, given), axis(quality, given)
    check_axes(x, y)
    return join_settings(
        settings,
        x,
        y,
        convention=convention,
        resample=resample,
        confidence=confidence,
        method=method,
        resamples=resamples,
        seed=seed,
        columns=given,
    )


def join_settings(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    x: Metric,
    y: Metric,
    *,
    convention: str | Convention = "paper",
    resample: str | None = None,
    columns: Columns | None = None,
    **options: Any,
) -> Curves:
    """Join the settings of each system by any two metrics, on the same segments and resamples; see `curves`."""
    if x == y:
        raise UsageError(f"{x!r} cannot be on both axes")
    if not isinstance(settings, Mapping):
        raise UsageError("settings are given by system: {'wait-k': [('k=3', run), …]}")
    if not settings or not all(settings.values()):
        raise UsageError("a curve needs at least one setting")
    results: dict[tuple[str, str], Scores | PublishedRow] = {}
    for system, pairs in settings.items():
        for setting, value in _check_settings(system, pairs):
            if (system, setting) in results:
                raise UsageError(f"{system} has the setting {setting!r} twice")
            results[system, setting] = score_setting(_full_name(system, setting), value, [x, y], convention, columns)
    if columns is not None:
        columns.check_taken([_full_name(*name) for name in results])
    logs: dict[str, Scores] = {}
    for name, result in results.items():
        if _full_name(*name) in logs:
            raise UsageError(f"two settings are called {_full_name(*name)!r}")
        if isinstance(result, Scores):
            logs[_full_name(*name)] = result
    draws, scored = None, {}
    if logs:
        resample = default_resample(*logs.values()) if resample is None else resample
        draws = Draws.make(logs, [x, y], resample=resample, **options)
        scored = {scores.system: (index, scores) for index, scores in enumerate(draws.scores())}
    points_of, indices = {}, []
    for system, pairs in settings.items():
        points = []
        for setting, _ in pairs:
            result = results[system, setting]
            if isinstance(result, PublishedRow):
                points.append((Point(setting, Axis(result.value(x)), Axis(result.value(y))), -1))
            else:
                index, scores = scored[_full_name(system, setting)]
                points.append((Point(setting, _axis_of(scores[x]), _axis_of(scores[y]), scores), index))
        points.sort(key=lambda pair: (np.isnan(pair[0].latency.value), pair[0].latency.value))
        points_of[system] = tuple(point for point, _ in points)
        indices.append(tuple(index for _, index in points))
    unit, quality_unit = (_unit(results, m) for m in (x, y))
    return Curves(
        curves=tuple(Curve(system, points, x, y, unit) for system, points in points_of.items()),
        latency=x,
        quality=y,
        unit=unit,
        quality_unit=quality_unit,
        draws=draws,
        indices=tuple(indices),
        unmatched={} if draws is None else draws.matched.unmatched,
        published={
            system: tuple(dict.fromkeys(row.path for _, row in pairs if isinstance(row, PublishedRow)))
            for system, pairs in settings.items()
            if any(isinstance(row, PublishedRow) for _, row in pairs)
        },
    )


def axis(name: str | Metric, columns: Columns | None = None) -> Metric:
    """The metric of an axis; it may be one that is read from columns, or only published, such as COMET."""
    if columns is not None and isinstance(name, str) and name in columns.metrics:
        return columns.metrics[name]
    if isinstance(name, str) and name in (*QUALITY, "SacreBLEU"):
        return published_metric(name) or metric(name)
    return metric(name)


def score_setting(
    name: str,
    setting: Setting,
    metrics: Sequence[Metric],
    convention: str | Convention,
    columns: Columns | None = None,
) -> Scores | PublishedRow:
    """Score a setting if it is a Run; return Scores and published numbers as they are."""
    if isinstance(setting, Scores | PublishedRow):
        return setting
    if not isinstance(setting, Run):
        raise UsageError(f"{name} must be a Run, Scores, or a published row, but is a {type(setting).__name__}")
    check_ours(metrics)
    own = () if columns is None else columns.take(name)
    return score(setting, metrics, convention=convention, columns=[replace(column, system="") for column in own])


def _check_settings(system: str, pairs: Any) -> Sequence[tuple[str, Setting]]:
    if isinstance(pairs, Setting | str) or not all(isinstance(p, tuple | list) and len(p) == 2 for p in pairs):
        raise UsageError(f"{system} needs settings with their names: {{{system!r}: [('k=3', run), …]}}")
    checked: Sequence[tuple[str, Setting]] = pairs
    return checked


def check_axes(x: Metric, y: Metric) -> None:
    """Refuse an x that is no latency, or a y that is no quality."""
    if x.higher_is_better is not False:
        raise UsageError(f"{x!r} is no latency: lower is not better")
    if not _is_time(x):
        raise UsageError(f"{x!r} is no latency: it is not about time")
    if y.higher_is_better is None:
        raise UsageError(f"{y!r} is no quality: neither higher nor lower is better")
    if _is_time(y) and y != x:
        against = f"`--against {x!r},{y!r}`, or `lagging.curves.slopes.lines`"
        raise UsageError(f"{y!r} is no quality, but about time\n  fix: {against}.")


def _is_time(m: Metric) -> bool:
    return m.unit in ("time", "drift") or m.has("clock")


def _full_name(system: str, setting: str) -> str:
    return f"{system} {setting}".strip()


def _axis_of(score: Score) -> Axis:
    return Axis(score.value, score.low, score.high)


def _unit(results: Mapping[tuple[str, str], Scores | PublishedRow], m: Metric) -> str:
    """The unit of a metric: that of the metric itself; of times, that of all settings."""
    if m.unit not in ("time", "drift"):
        return m.unit
    units = {
        name: result.unit_of(m) if isinstance(result, PublishedRow) else result[m].unit
        for name, result in results.items()
    }
    if len(set(units.values())) > 1:
        listed = ", ".join(f"{unit or 'nothing'} ({_full_name(*name)})" for name, unit in units.items())
        raise UsageError(f"latencies in different units cannot be on one axis: {listed}")
    return next(iter(units.values()))
