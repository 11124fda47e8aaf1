# SPDX-License-Identifier: Apache-2.0
"""A system as the report sees it: its Run on the shared segments, its clocks, and its scores on each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lagging.comparison.match import UNDEFINED_ELSEWHERE
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Run
from lagging.errors import MetricError
from lagging.metrics import Metric, kernels, metric, registered
from lagging.metrics.conventions import Convention
from lagging.metrics.schedule import Schedule, Schedules
from lagging.scoring.log import score
from lagging.scoring.scores import Score, Scores

__all__ = ["CLOCKS", "System", "shared_rows"]

CLOCKS = ("ideal", "elapsed", "queue")
"""The clocks that the page can be switched to; the others are there to reproduce published numbers."""

DEGENERACY = ("AL", "DAL", "HiddenLag(where=writes)", "HiddenLag(where=tail)", "HiddenShare", "Offline", "SWF")


@dataclass(frozen=True, eq=False)
class System:
    """One system.

    Attributes:
        name: as the page calls it.
        whole: its Run, with the segments that others do not have.
        run: the segments that all systems have, in one order.
        scores: of the comparison, on these segments in an order of their own.
        order: where in that order each segment of `run` is.
        convention: whose counting.
    """

    name: str
    whole: Run
    run: Run
    scores: Scores
    order: Ints
    convention: Convention

    @property
    def timed(self) -> bool:
        """Whether there are any delays."""
        return self.run.unit != "none"

    @cached_property
    def schedules(self) -> Schedules:
        """What the metrics see."""
        return Schedules(self.run, self.convention)

    @cached_property
    def clocks(self) -> tuple[str, ...]:
        """The clocks that the log has times for."""
        found = []
        for name in CLOCKS if self.timed else ():
            try:
                self.schedule(name)
            except MetricError:
                continue
            found.append(name)
        return tuple(found)

    def schedule(self, clock: str = "ideal") -> Schedule:
        """g, |x| and lags by the length of the hypothesis, as AL and DAL of the paper see them."""
        return self.schedules.for_metric(metric("DAL")(clock=clock, length="hypothesis"))

    @cached_property
    def degeneracy(self) -> dict[str, Score]:
        """What AL hides, by the names of the metrics."""
        found = score(self.run, DEGENERACY, convention=self.convention)
        return dict(zip(DEGENERACY, found, strict=True))

    def values(self, m: Metric) -> Floats:
        """The values of the segments, in the order of `run`: its own, be there none in another system."""
        found = self.scores[m]
        if UNDEFINED_ELSEWHERE in found.undefined.reasons and is_registered(m):
            return score(self.run, [m], convention=self.convention)[m].segments
        return found.segments[self.order]

    def lags(self, clock: str = "ideal") -> Ragged:
        """ℓ(t) of every token."""
        s = self.schedule(clock)
        return s.lags.keep(s.x > 0)

    def segment_lags(self, clock: str = "ideal") -> Floats:
        """DAL of every segment; NaN where nothing was written."""
        return self.lags(clock).by_row(kernels.dal)

    def on(self, clock: str, metrics: Sequence[Metric]) -> Scores:
        """Metrics of time on one of the clocks."""
        return score(self.run, [m(clock=clock) for m in metrics], convention=self.convention)


def is_registered(m: Metric) -> bool:
    """Whether it can be computed; a column that was given cannot."""
    return m.name in {one.name for one in registered()}


def shared_rows(run: Run, ids: Sequence[str]) -> Ints | None:
    """The rows of the given segments; None if they are all rows, in order."""
    names = list(map(str, run.id.tolist()))
    if names == list(ids):
        return None
    place = {name: row for row, name in enumerate(names)}
    return np.array([place[name] for name in ids], dtype=np.int64)
