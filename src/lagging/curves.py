# SPDX-License-Identifier: Apache-2.0
"""Quality against latency: several settings per system, joined to a curve.

A curve joins its settings by straight lines, in the order of latency. Of settings that are equally late, the best
counts. Nothing is extrapolated: beyond its first and last setting, a curve has no quality.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from lagging.conventions import Convention
from lagging.defaults import default_unit
from lagging.derived import Derived, Draws, Function
from lagging.errors import UsageError
from lagging.metrics import Metric, metric
from lagging.polylines import common, front, gap, height, ordered, reach
from lagging.published.labels import QUALITY
from lagging.published.rows import PublishedRow, published_metric
from lagging.ragged import Floats
from lagging.run import Run
from lagging.scoring import Score, Scores, score
from lagging.stats import CORRECTIONS, RESAMPLES, SEED

__all__ = ["Area", "At", "Axis", "Curve", "Curves", "OnFront", "Point", "curves"]

Setting = Run | Scores | PublishedRow
NO_LOG = "published without a log"


@dataclass(frozen=True)
class Axis:
    """A value, and its interval where there is one.

    Attributes:
        value: in the unit of the log; NaN where it is undefined.
        low, high: ends of the interval; None where there is none.
    """

    value: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Point:
    """One setting of a system.

    Attributes:
        setting: its name, such as "k=3".
        latency, quality: where it lies; quality is None where there is none.
        scores: of the log; None where the numbers were published without one.
    """

    setting: str
    latency: Axis
    quality: Axis | None = None
    scores: Scores | None = None


@dataclass(frozen=True)
class Curve:
    """One system at several settings.

    Attributes:
        system: its name.
        points: its settings, by rising latency.
        latency, quality: the metrics of the two axes.
        unit: of latency: "token", "ms" or "ratio".
    """

    system: str
    points: tuple[Point, ...]
    latency: Metric
    quality: Metric
    unit: str


@dataclass(frozen=True)
class At:
    """Where a curve is at a given latency, or quality.

    Attributes:
        system: of the curve.
        at: what was given.
        value: the quality at that latency, or the latency at that quality; NaN where the curve does not get there.
        low, high: ends of its interval; None where there is none.
        reason: why there is no value, or no interval; empty otherwise.
    """

    system: str
    at: float
    value: float
    low: float | None
    high: float | None
    reason: str


@dataclass(frozen=True)
class OnFront:
    """Whether a setting is on the Pareto front of all settings of all systems.

    Attributes:
        system, setting: which.
        on: whether no other is as early and as good, and earlier or better.
        share: in which share of the resamples it is so; None where the numbers were published without a log.
    """

    system: str
    setting: str
    on: bool
    share: float | None


@dataclass(frozen=True)
class Area:
    """By how much one curve is above another, on average over the latencies that both have.

    Attributes:
        a, b: the systems.
        start, end: the latencies that both have, in the whole test set; NaN if there are none.
        difference: the mean of b − a, with an interval from `low` to `high` (None where there is none).
        p: two-sided p-value of no difference; `p_adjusted`: corrected for the number of pairs.
        reason: why there is no difference, or no interval; empty otherwise.
    """

    a: str
    b: str
    start: float
    end: float
    difference: float
    low: float | None
    high: float | None
    p: float
    p_adjusted: float
    reason: str


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of several systems, on the same segments and the same resamples.

    Attributes:
        curves: in the order given.
        latency, quality: the metrics of the two axes; `unit`: of latency.
        draws: the resamples; None if there is no log.
        places: which of the systems of `draws` each point of each curve is; −1 if it was published.
        unmatched: of each setting, the ids of the segments that not all others have.
    """

    curves: tuple[Curve, ...]
    latency: Metric
    quality: Metric
    unit: str
    draws: Draws | None = field(repr=False)
    places: tuple[tuple[int, ...], ...] = field(repr=False)
    unmatched: dict[str, tuple[Any, ...]] = field(repr=False)

    def __iter__(self) -> Iterator[Curve]:
        """The curves."""
        return iter(self.curves)

    def __len__(self) -> int:
        """How many curves there are."""
        return len(self.curves)

    def __getitem__(self, at: int) -> Curve:
        """One of the curves."""
        return self.curves[at]

    @property
    def _sign(self) -> float:
        """What makes the better quality the higher one."""
        return 1.0 if self.quality.higher_is_better else -1.0

    @property
    def _unit(self) -> str:
        return {"token": " tokens", "ms": " ms"}.get(self.unit, "")

    def quality_at(self, latency: float) -> tuple[At, ...]:
        """The quality of each curve at a latency, in the unit of the log, interpolated between neighbouring settings.

        In every resample, settings are put in order and interpolated anew.
        """
        sign = self._sign

        def function(values: Floats) -> Floats:
            return sign * height(values[..., 0], sign * values[..., 1], latency)

        def outside(x: Floats, y: Floats) -> str:
            first, last = _text(x[0]), _text(float(np.nanmax(x)))
            return f"its latency {'is' if first == last else f'goes from {first} to'} {last}{self._unit}"

        return self._at(latency, function, outside)

    def latency_at(self, quality: float) -> tuple[At, ...]:
        """The lowest latency at which each curve reaches a quality, interpolated between neighbouring settings."""
        sign = self._sign

        def function(values: Floats) -> Floats:
            return reach(values[..., 0], sign * values[..., 1], sign * quality)

        def outside(x: Floats, y: Floats) -> str:
            best = float(sign * np.nanmax(y))
            if sign * best < sign * quality:
                return f"its best is {_text(best)}"
            return f"it has {_text(sign * y[0])} already at its lowest latency, {_text(x[0])}{self._unit}"

        return self._at(quality, function, outside)

    def _at(self, at: float, function: Function, outside: Callable[[Floats, Floats], str]) -> tuple[At, ...]:
        found = []
        for curve, one in zip(self.curves, self.derive([(function, (c,)) for c in range(len(self))]), strict=True):
            reason = one.reason
            if np.isnan(one.value):
                x, y = ordered(*values_of([curve]).T * np.array([[1.0], [self._sign]]))
                reason = "no setting has a latency and a quality" if np.isnan(x).all() else outside(x, y)
            found.append(At(curve.system, at, one.value, one.low, one.high, reason))
        return tuple(found)

    def front(self) -> tuple[OnFront, ...]:
        """Which settings are on the Pareto front: curve by curve, by rising latency.

        The share of the resamples tells the sure ones from those that a few other sentences would beat. What was
        published without a log is the same in every resample.
        """
        x, y = values_of(self.curves).T
        on = front(x, self._sign * y)
        shares = np.full(len(on), np.nan)
        places = [place for some in self.places for place in some]
        if self.draws is not None:
            logs = [at for at, place in enumerate(places) if place >= 0]
            drawn = np.repeat(values_of(self.curves)[None], len(self.draws.values), axis=0)
            drawn[:, logs] = self.draws.values[:, [places[at] for at in logs]]
            shares[logs] = front(drawn[..., 0], self._sign * drawn[..., 1])[:, logs].mean(axis=0)
        named = [(curve.system, point.setting) for curve in self.curves for point in curve.points]
        return tuple(
            OnFront(*name, bool(one), None if np.isnan(share) else float(share))
            for name, one, share in zip(named, on, shares, strict=True)
        )

    def areas(self, base: str | None = None, correction: str = "holm") -> tuple[Area, ...]:
        """How much better one curve is than another over the latencies that both have, pair by pair.

        The mean difference of quality, by exact integration of the two lines; the common range is that of each
        resample. With a curve of one setting, it is the difference at its latency. The test is whether it could be 0
        (bootstrap; wild by documents).

        Args:
            base: compare the others with this system only.
            correction: of the p-values: "holm", "bh" or "none".
        """
        if correction not in CORRECTIONS:
            raise UsageError(f"there is no correction {correction!r}; there are {', '.join(CORRECTIONS)}")
        names = [curve.system for curve in self.curves]
        if base is not None and base not in names:
            raise UsageError(f"there is no curve {base!r}; there are {', '.join(names)}")
        pairs = list(combinations(range(len(self)), 2))
        if base is not None:
            pairs = [(names.index(base), other) for other in range(len(self)) if names[other] != base]
        found = self.derive([(self._gap(len(self.curves[a].points)), (a, b)) for a, b in pairs])
        adjusted = CORRECTIONS[correction]([one.p for one in found])
        out = []
        for (a, b), one, p in zip(pairs, found, adjusted, strict=True):
            start, end = common(*(ordered(*values_of([self.curves[c]]).T)[0] for c in (a, b)))
            shared = bool(end >= start)
            reason = one.reason if shared else "they have no latency in common"
            ends = (float(start), float(end)) if shared else (np.nan, np.nan)
            out.append(Area(names[a], names[b], *ends, one.value, one.low, one.high, one.p, float(p), reason))
        return tuple(out)

    def _gap(self, first: int) -> Function:
        """The mean gap between the first so many settings and the others."""
        sign = self._sign

        def function(values: Floats) -> Floats:
            x, y = values[..., 0], sign * values[..., 1]
            return sign * gap(x[..., :first], y[..., :first], x[..., first:], y[..., first:])

        return function

    def derive(self, functions: Sequence[tuple[Function, Sequence[int]]]) -> list[Derived]:
        """Each function of some curves; with an interval where all of their settings have logs."""
        places = [[place for c in which for place in self.places[c]] for _, which in functions]
        logged = [min(some) >= 0 for some in places]
        asked = [(f, some) for (f, _), some, log in zip(functions, places, logged, strict=True) if log]
        drawn = iter(() if self.draws is None else self.draws.derive(asked))
        return [
            next(drawn) if log else Derived(float(f(values_of([self.curves[c] for c in which]))), reason=NO_LOG)
            for (f, which), log in zip(functions, logged, strict=True)
        ]


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
    if x.higher_is_better is not False:
        raise UsageError(f"{x!r} is no latency: less of it is not better")
    if y.higher_is_better is None:
        raise UsageError(f"{y!r} is no quality: neither more nor less of it is better")
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
    if not settings or not all(settings.values()):
        raise UsageError("a curve needs at least one setting")
    known: dict[tuple[str, str], Scores | PublishedRow] = {}
    for system, some in settings.items():
        for setting, given in some:
            if (system, setting) in known:
                raise UsageError(f"{system} has the setting {setting!r} twice")
            known[system, setting] = score(given, [x, y], convention=convention) if isinstance(given, Run) else given
    logs = {_called(*name): given for name, given in known.items() if isinstance(given, Scores)}
    draws, drawn = None, {}
    if logs:
        by = default_unit(*logs.values()) if by is None else by
        draws = Draws.make(logs, [x, y], by=by, **how)
        drawn = {scores.system: (place, scores) for place, scores in enumerate(draws.scores())}
    units, found, places = {}, [], []
    for system, some in settings.items():
        points = []
        for setting, _ in some:
            given, name = known[system, setting], _called(system, setting)
            if isinstance(given, PublishedRow):
                points.append((_published(given, setting, x, y), -1))
                units[name] = (given.unit or "") if x.unit == "time" else x.unit
            else:
                place, scores = drawn[name]
                points.append((Point(setting, _of(scores[x]), _of(scores[y]), scores), place))
                units[name] = scores[x].unit
        points.sort(key=lambda pair: (np.isnan(pair[0].latency.value), pair[0].latency.value))
        found.append((system, tuple(point for point, _ in points)))
        places.append(tuple(place for _, place in points))
    if len(set(units.values())) > 1:
        said = ", ".join(f"{unit or 'nothing'} ({name})" for name, unit in units.items())
        raise UsageError(f"latencies in different units cannot be on one axis: {said}")
    unit = next(iter(units.values()))
    unmatched = {} if draws is None else draws.joint.matched.unmatched
    return Curves(
        tuple(Curve(system, points, x, y, unit) for system, points in found),
        x,
        y,
        unit,
        draws,
        tuple(places),
        unmatched,
    )


def axis(name: str | Metric) -> Metric:
    """A metric, or a quality that is only known from publications."""
    if isinstance(name, str) and name in (*QUALITY, "SacreBLEU"):
        return published_metric(name) or metric(name)
    return metric(name)


def _called(system: str, setting: str) -> str:
    return f"{system} {setting}".strip()


def _of(one: Score) -> Axis:
    return Axis(one.value, one.low, one.high)


def _published(row: PublishedRow, setting: str, x: Metric, y: Metric) -> Point:
    for m in (x, y):
        if m not in row.values:
            there = ", ".join(map(repr, row.values))
            raise UsageError(f"{row.path}:{row.line}: {row.system} {setting} has no {m!r}; it has {there}")
    return Point(setting, Axis(row.values[x]), Axis(row.values[y]))


def values_of(some: Sequence[Curve]) -> Floats:
    """Points × latency and quality."""
    points = [point for curve in some for point in curve.points]
    return np.array([[p.latency.value, np.nan if p.quality is None else p.quality.value] for p in points])


def _text(value: float) -> str:
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:.0f}"
