# SPDX-License-Identifier: Apache-2.0
"""Several curves on the same resamples: front, quality at a latency, latency at a quality, areas between them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from lagging.comparison.derived import Derived, Draws, Function
from lagging.curves.points import NO_LOG, Area, At, Curve, OnFront, values_of
from lagging.data.ragged import Floats
from lagging.data.units import SHOWN, scale
from lagging.errors import UsageError
from lagging.metrics import Metric
from lagging.stats import CORRECTIONS
from lagging.stats.polylines import common, front, gap, height, ordered, reach

__all__ = ["Curves"]


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of several systems, on the same segments and the same resamples.

    Attributes:
        curves: in the order given.
        latency, quality: the metrics of the two axes.
        unit, quality_unit: what each is measured in.
        draws: the resamples; None if there is no log.
        places: which of the systems of `draws` each point of each curve is; −1 if it was published.
        unmatched: of each setting, the ids of the segments that not all others have.
        published: the systems that have settings without a log, and the files that these were read from.
    """

    curves: tuple[Curve, ...]
    latency: Metric
    quality: Metric
    unit: str
    quality_unit: str
    draws: Draws | None = field(repr=False)
    places: tuple[tuple[int, ...], ...] = field(repr=False)
    unmatched: dict[str, tuple[Any, ...]] = field(repr=False)
    published: dict[str, tuple[str, ...]] = field(repr=False)

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

    def _latency(self, *values: float) -> str:
        """Latencies in words."""
        numbers = " to ".join(f"{value / scale(self.unit):.4g}" for value in values)
        return f"{numbers} {SHOWN.get(self.unit, '')}".rstrip()

    def quality_at(self, latency: float) -> tuple[At, ...]:
        """The quality of each curve at a latency, in the unit of the log, interpolated between neighbouring settings.

        In every resample, settings are put in order and interpolated anew.
        """
        sign = self._sign

        def function(values: Floats) -> Floats:
            return sign * height(values[..., 0], sign * values[..., 1], latency)

        def outside(x: Floats, y: Floats) -> str:
            first, last = x[0], float(np.nanmax(x))
            words = f"is {self._latency(last)}" if first == last else f"goes from {self._latency(first, last)}"
            return f"its latency {words}"

        return self._at(latency, function, outside)

    def latency_at(self, quality: float) -> tuple[At, ...]:
        """The lowest latency at which each curve reaches a quality, interpolated between neighbouring settings."""
        sign = self._sign

        def function(values: Floats) -> Floats:
            return reach(values[..., 0], sign * values[..., 1], sign * quality)

        def outside(x: Floats, y: Floats) -> str:
            best = float(sign * np.nanmax(y))
            if sign * best < sign * quality:
                return f"its best is {best:.4g}"
            return f"it has {sign * y[0]:.4g} already at its lowest latency, {self._latency(x[0])}"

        return self._at(quality, function, outside)

    def _at(self, at: float, function: Function, outside: Callable[[Floats, Floats], str]) -> tuple[At, ...]:
        if not np.isfinite(at):
            raise UsageError(f"a curve is at a number, and not at {at}")
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

        The share of the resamples tells the sure ones from those that a few other sentences would beat; a single
        segment, or document, has none. What was published without a log is the same in every resample.
        """
        x, y = values_of(self.curves).T
        on = front(x, self._sign * y)
        shares = np.full(len(on), np.nan)
        places = [place for some in self.places for place in some]
        if self.draws is not None and not self.draws.too_few:
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
