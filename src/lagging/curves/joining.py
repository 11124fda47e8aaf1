# SPDX-License-Identifier: Apache-2.0
"""From the settings of several systems, logs or publications, to their curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lagging.comparison.derived import Draws
from lagging.comparison.published.labels import QUALITY
from lagging.comparison.published.rows import PublishedRow, check_ours, published_metric
from lagging.curves.estimates import Curves
from lagging.curves.points import Axis, Curve, Point
from lagging.data.run import Run
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.scoring.log import score
from lagging.scoring.plan import default_resample
from lagging.scoring.scores import Score, Scores
from lagging.stats import RESAMPLES, SEED

__all__ = ["Setting", "axis", "check_axes", "curves", "joined", "scores_of"]

Setting = Run | Scores | PublishedRow


def curves(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    latency: str | Metric = "AL",
    quality: str | Metric = "BLEU",
    *,
    convention: str | Convention = "paper",
    by: str | None = None,
    level: float = 0.95,
    method: str | None = None,
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> Curves:
    """Join the settings of each system to a curve of quality against latency, with intervals on both axes.

    Args:
        settings: by system, the name of each setting, and its Run, or Scores, or what was published of it.
        latency, quality: the metrics of the two axes.
        convention: how Runs are counted.
        by: what is resampled: "segment" or "document"; recordings where segments were cut from several, by default.
        level, method, resamples, seed: of the intervals; see `lagging.stats.interval`.

    Returns:
        Curves, whose logs are scored on the segments that all of them have.

    Raises:
        UsageError: no setting, or two of one name, or latencies in different units, or a metric without direction.

    Example:
        >>> import lagging
        >>> def run(k, good):
        ...     texts = [f"a b c {'d' if n < good else 'x'} e f" for n in range(8)]
        ...     delays = [[min(k + t, 6) for t in range(6)]] * 8
        ...     return lagging.Run.from_delays(
        ...         delays, source_length=[6] * 8, prediction=texts, reference=["a b c d e f"] * 8)
        >>> found = curves({"wait-k": [("k=1", run(1, 4)), ("k=3", run(3, 6)), ("k=5", run(5, 8))]}, resamples=1000)
        >>> [(p.setting, p.latency.value, round(p.quality.value, 1)) for p in found[0].points]
        [('k=1', 1.0, 69.2), ('k=3', 3.0, 85.1), ('k=5', 5.0, 100.0)]
        >>> at = found.quality_at(2)[0]
        >>> round(at.value, 1), round(at.low, 1), round(at.high, 1)
        (77.2, 54.2, 92.6)
        >>> found.quality_at(6)[0].reason
        'its latency goes from 1 to 5 tokens'
        >>> [one.setting for one in found.front() if one.on]
        ['k=1', 'k=3', 'k=5']
    """
    x, y = axis(latency), axis(quality)
    check_axes(x, y)
    how: dict[str, Any] = {"by": by, "level": level, "method": method, "resamples": resamples, "seed": seed}
    return joined(settings, x, y, convention=convention, **how)


def joined(
    settings: Mapping[str, Sequence[tuple[str, Setting]]],
    x: Metric,
    y: Metric,
    *,
    convention: str | Convention = "paper",
    by: str | None = None,
    **how: Any,
) -> Curves:
    """Two metrics of the settings of each system, on the same segments and resamples, whatever the metrics are."""
    if x == y:
        raise UsageError(f"{x!r} cannot be on both axes")
    if not isinstance(settings, Mapping):
        raise UsageError("settings are given by system: {'wait-k': [('k=3', run), …]}")
    if not settings or not all(settings.values()):
        raise UsageError("a curve needs at least one setting")
    known: dict[tuple[str, str], Scores | PublishedRow] = {}
    for system, some in settings.items():
        for setting, given in _settings(system, some):
            if (system, setting) in known:
                raise UsageError(f"{system} has the setting {setting!r} twice")
            known[system, setting] = scores_of(_called(system, setting), given, [x, y], convention)
    logs: dict[str, Scores] = {}
    for name, given in known.items():
        if _called(*name) in logs:
            raise UsageError(f"two settings are called {_called(*name)!r}")
        if isinstance(given, Scores):
            logs[_called(*name)] = given
    draws, drawn = None, {}
    if logs:
        by = default_resample(*logs.values()) if by is None else by
        draws = Draws.make(logs, [x, y], by=by, **how)
        drawn = {scores.system: (place, scores) for place, scores in enumerate(draws.scores())}
    found, places = [], []
    for system, some in settings.items():
        points = []
        for setting, _ in some:
            given = known[system, setting]
            if isinstance(given, PublishedRow):
                points.append((Point(setting, Axis(given.value(x)), Axis(given.value(y))), -1))
            else:
                place, scores = drawn[_called(system, setting)]
                points.append((Point(setting, _of(scores[x]), _of(scores[y]), scores), place))
        points.sort(key=lambda pair: (np.isnan(pair[0].latency.value), pair[0].latency.value))
        found.append((system, tuple(point for point, _ in points)))
        places.append(tuple(place for _, place in points))
    unit, quality_unit = (_unit(known, m) for m in (x, y))
    return Curves(
        curves=tuple(Curve(system, points, x, y, unit) for system, points in found),
        latency=x,
        quality=y,
        unit=unit,
        quality_unit=quality_unit,
        draws=draws,
        places=tuple(places),
        unmatched={} if draws is None else draws.joint.matched.unmatched,
        published={
            system: tuple(dict.fromkeys(row.path for _, row in some if isinstance(row, PublishedRow)))
            for system, some in settings.items()
            if any(isinstance(row, PublishedRow) for _, row in some)
        },
    )


def axis(name: str | Metric) -> Metric:
    """A metric, or a quality that is only known from publications."""
    if isinstance(name, str) and name in (*QUALITY, "SacreBLEU"):
        return published_metric(name) or metric(name)
    return metric(name)


def scores_of(
    name: str, given: Setting, metrics: Sequence[Metric], convention: str | Convention
) -> Scores | PublishedRow:
    """What a setting has by some metrics: a Run is scored."""
    if isinstance(given, Scores | PublishedRow):
        return given
    if not isinstance(given, Run):
        raise UsageError(f"{name} is a {type(given).__name__}, and not a Run, Scores, or a row that was published")
    check_ours(metrics)
    return score(given, metrics, convention=convention)


def _settings(system: str, some: Sequence[tuple[str, Setting]]) -> Sequence[tuple[str, Setting]]:
    if isinstance(some, Setting | str) or not all(isinstance(one, tuple | list) and len(one) == 2 for one in some):
        raise UsageError(f"{system} needs settings with their names: {{{system!r}: [('k=3', run), …]}}")
    return some


def check_axes(x: Metric, y: Metric) -> None:
    """Refuse what is no latency, or no quality."""
    if x.higher_is_better is not False:
        raise UsageError(f"{x!r} is no latency: less of it is not better")
    if not _timed(x):
        raise UsageError(f"{x!r} is no latency: it is not about time")
    if y.higher_is_better is None:
        raise UsageError(f"{y!r} is no quality: neither more nor less of it is better")
    if _timed(y) and y != x:
        against = f"`--against {x!r},{y!r}`, or `lagging.curves.ranking.lines`"
        raise UsageError(f"{y!r} is no quality, but about time\n  fix: {against}.")


def _timed(m: Metric) -> bool:
    return m.unit in ("time", "drift") or m.has("clock")


def _called(system: str, setting: str) -> str:
    return f"{system} {setting}".strip()


def _of(one: Score) -> Axis:
    return Axis(one.value, one.low, one.high)


def _unit(known: Mapping[tuple[str, str], Scores | PublishedRow], m: Metric) -> str:
    """What all settings measure a metric in: the metric says it, unless that is a time."""
    if m.unit not in ("time", "drift"):
        return m.unit
    units = {
        name: given.unit_of(m) if isinstance(given, PublishedRow) else given[m].unit for name, given in known.items()
    }
    if len(set(units.values())) > 1:
        said = ", ".join(f"{unit or 'nothing'} ({_called(*name)})" for name, unit in units.items())
        raise UsageError(f"latencies in different units cannot be on one axis: {said}")
    return next(iter(units.values()))
