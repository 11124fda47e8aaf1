# SPDX-License-Identifier: Apache-2.0
"""Several curves on the same resamples: front, quality at a latency, latency at a quality, areas between curves."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from lagging.comparison.derivations import Derived, Draws, Function
from lagging.curves.points import NO_LOG, Area, Curve, CurveValue, OnFront, values_of
from lagging.data import notebooks
from lagging.data.ragged import Floats
from lagging.data.units import SHOWN, scale
from lagging.errors import UsageError
from lagging.metrics import Metric
from lagging.stats import CORRECTIONS, check_correction
from lagging.stats.polylines import common_range, front, height, mean_gap, ordered, reach

__all__ = ["Curves"]


@dataclass(frozen=True, eq=False)
class Curves:
    """The curves of several systems, on the same segments and the same resamples.

    Attributes:
        curves: the curves, in the order of the systems.
        latency, quality: the metrics of the two axes.
        unit, quality_unit: the units of the two axes.
        draws: the resamples; None if there is no log.
        indices: for each point of each curve, the index of its log in `draws`; −1 if it was published without a log.
        unmatched: of each setting, the ids of the segments that not all other settings have.
        published: the systems that have settings without a log, and the files from which these were read.
    """

    curves: tuple[Curve, ...]
    latency: Metric
    quality: Metric
    unit: str
    quality_unit: str
    draws: Draws | None = field(repr=False)
    indices: tuple[tuple[int, ...], ...] = field(repr=False)
    unmatched: dict[str, tuple[Any, ...]] = field(repr=False)
    published: dict[str, tuple[str, ...]] = field(repr=False)

    _repr_html_ = notebooks.html

    def __repr__(self) -> str:
        """`Curves(wait-k, adaptive: BLEU against DAL)`."""
        return f"Curves({', '.join(curve.system for curve in self.curves)}: {self.quality!r} against {self.latency!r})"

    def __iter__(self) -> Iterator[Curve]:
        """The curves."""
        return iter(self.curves)

    def __len__(self) -> int:
        """How many curves there are."""
        return len(self.curves)

    def __getitem__(self, index: int) -> Curve:
        """One of the curves."""
        return self.curves[index]

    @property
    def _sign(self) -> float:
        """The sign by which quality is multiplied, so that higher is better."""
        return 1.0 if self.quality.higher_is_better else -1.0

    def _format_latency(self, *values: float) -> str:
        """Latencies with their unit."""
        numbers = " to ".join(f"{value / scale(self.unit):.4g}" for value in values)
        return f"{numbers} {SHOWN.get(self.unit, '')}".rstrip()

    def quality_at(self, latency: float) -> tuple[CurveValue, ...]:
        """The quality of each curve at a latency, in the unit of the log, interpolated between neighbouring settings.

        In every resample, the settings are sorted and interpolated again.
        """
        sign = self._sign

        def function(values: Floats) -> Floats:
            return sign * height(values[..., 0], sign * values[..., 1], latency)

        def outside(x: Floats, y: Floats) -> str:
            first, last = x[0], float(np.nanmax(x))
            words = (
                f"is {self._format_latency(last)}"
                if first == last
                else f"goes from {self._format_latency(first, last)}"
            )
            return f"its latency {words}"

        return self._at("latency", latency, function, outside)

    def latency_at(self, quality: float) -> tuple[CurveValue, ...]:
        """The lowest latency at which each curve reaches a quality, interpolated between neighbouring settings."""
        sign = self._sign

        def function(values: Floats) -> Floats:
            return reach(values[..., 0], sign * values[..., 1], sign * quality)

        def outside(x: Floats, y: Floats) -> str:
            best = float(sign * np.nanmax(y))
            if sign * best < sign * quality:
                return f"its best is {best:.4g}"
            return f"it has {sign * y[0]:.4g} already at its lowest latency, {self._format_latency(x[0])}"

        return self._at("quality", quality, function, outside)

    def _at(
        self, axis: str, at: float, function: Function, outside: Callable[[Floats, Floats], str]
    ) -> tuple[CurveValue, ...]:
        if not np.isfinite(at):
            raise UsageError(f"the {axis} of a curve must be a finite number, but is {at}")
        results = []
        for curve, derived in zip(self.curves, self.derive([(function, (c,)) for c in range(len(self))]), strict=True):
            reason = derived.reason
            if np.isnan(derived.value):
                x, y = ordered(*values_of([curve]).T * np.array([[1.0], [self._sign]]))
                reason = "no setting has a latency and a quality" if np.isnan(x).all() else outside(x, y)
            results.append(CurveValue(curve.system, at, derived.value, derived.low, derived.high, reason))
        return tuple(results)

    def front(self) -> tuple[OnFront, ...]:
        """Which settings are on the Pareto front: curve by curve, by rising latency.

        The share of the resamples says how sure that is; there is none for a single segment, or document. Numbers that
        were published without a log are the same in every resample.
        """
        x, y = values_of(self.curves).T
        on = front(x, self._sign * y)
        shares = np.full(len(on), np.nan)
        indices = [index for row in self.indices for index in row]
        if self.draws is not None and not self.draws.too_few:
            logs = [point for point, index in enumerate(indices) if index >= 0]
            values = np.repeat(values_of(self.curves)[None], len(self.draws.values), axis=0)
            values[:, logs] = self.draws.values[:, [indices[point] for point in logs]]
            shares[logs] = front(values[..., 0], self._sign * values[..., 1])[:, logs].mean(axis=0)
        names = [(curve.system, point.setting) for curve in self.curves for point in curve.points]
        return tuple(
            OnFront(*name, bool(is_on), None if np.isnan(share) else float(share))
            for name, is_on, share in zip(names, on, shares, strict=True)
        )

    def areas(self, base: str | None = None, correction: str = "holm") -> tuple[Area, ...]:
        """The mean difference of quality of two curves over the latencies that both have, pair by pair.

        The two lines are integrated exactly, over the range of latencies that they share in each resample. With a curve
        of one setting, it is the difference at its latency. The test is whether it could be 0 (by bootstrap; by wild
        bootstrap for documents).

        Args:
            base: compare the other systems with this system only.
            correction: the correction of the p-values: "holm", "bh" or "none".
        """
        check_correction(correction)
        names = [curve.system for curve in self.curves]
        if base is not None and base not in names:
            raise UsageError(f"there is no curve {base!r}; there are {', '.join(names)}")
        pairs = list(combinations(range(len(self)), 2))
        if base is not None:
            pairs = [(names.index(base), other) for other in range(len(self)) if names[other] != base]
        gaps = self.derive([(self._gap(len(self.curves[a].points)), (a, b)) for a, b in pairs])
        adjusted = CORRECTIONS[correction]([gap.p for gap in gaps])
        areas = []
        for (a, b), gap, p_adjusted in zip(pairs, gaps, adjusted, strict=True):
            start, end = common_range(*(ordered(*values_of([self.curves[c]]).T)[0] for c in (a, b)))
            shared = bool(end >= start)
            areas.append(
                Area(
                    a=names[a],
                    b=names[b],
                    start=float(start) if shared else np.nan,
                    end=float(end) if shared else np.nan,
                    difference=gap.value,
                    low=gap.low,
                    high=gap.high,
                    p=gap.p,
                    p_adjusted=float(p_adjusted),
                    reason=gap.reason if shared else "they have no latency in common",
                )
            )
        return tuple(areas)

    def _gap(self, first: int) -> Function:
        """The mean gap between the curve of the `first` settings and that of the others."""
        sign = self._sign

        def function(values: Floats) -> Floats:
            x, y = values[..., 0], sign * values[..., 1]
            return sign * mean_gap(x[..., :first], y[..., :first], x[..., first:], y[..., first:])

        return function

    def derive(self, functions: Sequence[tuple[Function, Sequence[int]]]) -> list[Derived]:
        """The value of each function of some curves; with an interval where all of their settings have logs."""
        indices = [[index for c in which for index in self.indices[c]] for _, which in functions]
        logged = [min(row) >= 0 for row in indices]
        resampled = [(f, row) for (f, _), row, has_log in zip(functions, indices, logged, strict=True) if has_log]
        derived = iter(() if self.draws is None else self.draws.derive(resampled))
        return [
            next(derived) if has_log else Derived(float(f(values_of([self.curves[c] for c in which]))), reason=NO_LOG)
            for (f, which), has_log in zip(functions, logged, strict=True)
        ]
