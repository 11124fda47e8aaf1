# SPDX-License-Identifier: Apache-2.0
"""The numbers behind figures and the report: the clocks of a system, its scores on each of them, its lags over time.

Everything is computed when it is first needed, and once: a system is scored once per clock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.comparison import Comparison
from lagging.comparison.match import UNDEFINED_ELSEWHERE
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Run
from lagging.errors import MetricError
from lagging.metrics import Metric, metric, registered
from lagging.metrics.conventions import Convention
from lagging.metrics.schedule import Schedule, Schedules
from lagging.metrics.tail import locate_segments
from lagging.scoring.log import score
from lagging.scoring.scores import Score, Scores

__all__ = ["Analysis", "analyse", "common_clocks", "start_times"]

CLOCKS = ("ideal", "elapsed", "queue")
"""The clocks that a page can be switched to; the others are there to reproduce published numbers."""

DIAGNOSTICS = ("AL", "DAL", "HiddenLag(where=writes)", "HiddenLag(where=tail)", "HiddenShare", "Offline", "SWF")
"""The metrics that show what AL hides."""


@dataclass(frozen=True, eq=False)
class Analysis:
    """One system of a comparison.

    Attributes:
        name: name of the system.
        whole: its Run, with the segments that other systems do not have.
        run: the segments that all systems have, in one order.
        scores: the scores of the comparison, on these segments in an order of their own.
        order: the place in that order of each segment of `run`.
        convention: the convention of counting.
    """

    name: str
    whole: Run
    run: Run
    scores: Scores
    order: Ints
    convention: Convention
    _by_clock: dict[str, Scores] = field(default_factory=dict, repr=False)

    # ---- schedules ----------------------------------------------------------------------------------------------

    @property
    def timed(self) -> bool:
        """Whether there are any delays."""
        return self.run.unit != "none"

    @cached_property
    def schedules(self) -> Schedules:
        """What the metrics see."""
        return Schedules(self.run, self.convention)

    def schedule(self, clock: str = "ideal") -> Schedule:
        """g, |x| and lags by the length of the hypothesis, as AL and DAL of the paper see them."""
        return self.schedules.for_metric(metric("DAL")(clock=clock, length="hypothesis"))

    @cached_property
    def clocks(self) -> tuple[str, ...]:
        """The clocks that the log has times for."""
        clocks = []
        for clock in CLOCKS if self.timed else ():
            try:
                self.schedule(clock)
            except MetricError:
                continue
            clocks.append(clock)
        return tuple(clocks)

    # ---- scores -------------------------------------------------------------------------------------------------

    @cached_property
    def _ideal_scores(self) -> dict[Metric, Score]:
        """Scores on the ideal clock, in the order of `run`: diagnostics, and those of the comparison.

        A comparison leaves out a segment in which another system has no value; here it has its own value.
        """
        scores = {s.metric: self._in_order(s) for s in self.scores if UNDEFINED_ELSEWHERE not in s.undefined.reasons}
        needed = [*map(metric, DIAGNOSTICS if self.timed else ())]
        needed += [s.metric for s in self.scores if s.metric.name in {m.name for m in registered()}]
        if missing := [m for m in dict.fromkeys(needed) if m not in scores]:
            scores |= {s.metric: s for s in score(self.run, missing, convention=self.convention)}
        return {s.metric: self._in_order(s) for s in self.scores} | scores  # a column from elsewhere as it is

    def _in_order(self, compared: Score) -> Score:
        """A score of the comparison, without its interval, in the order of `run`."""
        rows = compared.statistics
        rows = rows.take(self.order) if isinstance(rows, Ragged) else rows[self.order]
        return replace(compared, statistics=rows, ids=self.run.id, documents=self.run.document, low=None, high=None)

    @property
    def diagnostics(self) -> dict[str, Score]:
        """The scores that show what AL hides, by the names of the metrics."""
        return {name: self._ideal_scores[metric(name)] for name in DIAGNOSTICS}

    def values(self, m: Metric) -> Floats:
        """The values of the segments in the order of `run`, even of those that have none in another system."""
        return self._ideal_scores[m].segments

    @property
    def latency_metrics(self) -> list[Metric]:
        """The metrics of time that can be computed on any clock."""
        metrics = [s.metric for s in self.scores]
        return [m for m in metrics if m.unit == "time" and m.has("clock") and not m.is_set("clock")]

    def on(self, clock: str) -> Scores:
        """The metrics of time, and DAL, on a clock other than the ideal one."""
        if clock not in self._by_clock:
            metrics = dict.fromkeys(m(clock=clock) for m in [*self.latency_metrics, metric("DAL")])
            self._by_clock[clock] = score(self.run, metrics, convention=self.convention)
        return self._by_clock[clock]

    # ---- lags ---------------------------------------------------------------------------------------------------

    def lags(self, clock: str = "ideal") -> Ragged:
        """ℓ(t) of every token."""
        s = self.schedule(clock)
        return s.lags.keep(s.x > 0)

    def segment_lags(self, clock: str = "ideal") -> Floats:
        """DAL of every segment; NaN where nothing was written."""
        m = metric("DAL")
        return self.values(m) if clock == "ideal" else self.on(clock)[m(clock=clock)].segments

    def lags_over_time(self) -> tuple[Floats, Floats]:
        """When in its recording each token was due, and its lag.

        Raises:
            MetricError: it is not known where in its recording a segment lies.
        """
        s = self.schedule()
        written = (s.g.lengths > 0) & (s.x > 0)
        start = start_times(s, written, from_first=True)
        lags = s.lags.keep(written)
        due = lags.by_token(lambda lag, x, y, start: start + np.arange(lag.shape[1]) * (x / y), s.x, s.y, start)
        return due.values, lags.values

    def drift(self) -> float | None:
        """LagDrift, per minute or 100 tokens; None where it is not known where segments lie."""
        try:
            return score(self.run, ["LagDrift"], convention=self.convention)["LagDrift"].value
        except MetricError:
            return None


def analyse(runs: Mapping[str, Run], comparison: Comparison, convention: Convention) -> list[Analysis]:
    """Each system, with the segments that all of them have in the order of the first."""
    compared = map(str, next(iter(comparison.scores[comparison.systems[0]])).ids.tolist())
    place = {name: index for index, name in enumerate(compared)}
    ids = [name for name in map(str, next(iter(runs.values())).id.tolist()) if name in place]
    order = np.array([place[name] for name in ids], dtype=np.int64)
    systems = []
    for name, run in runs.items():
        rows = _rows_of(run, ids)
        shared = run if rows is None else replace(run[rows], notes=run.notes)
        systems.append(Analysis(name, run, shared, comparison.scores[name], order, convention))
    return systems


def _rows_of(run: Run, ids: Sequence[str]) -> Ints | None:
    """The rows of the given segments; None if they are all rows, in order."""
    names = list(map(str, run.id.tolist()))
    if names == list(ids):
        return None
    place = {name: row for row, name in enumerate(names)}
    return np.array([place[name] for name in ids], dtype=np.int64)


def start_times(schedule: Schedule, written: npt.NDArray[np.bool_], *, from_first: bool) -> Floats:
    """When in its recording each segment begins; 0 for those that are not `written`.

    Args:
        schedule: the schedule of the segments.
        written: the segments whose place must be known.
        from_first: whether times are counted from the first segment of a recording, not from its beginning.

    Raises:
        MetricError: it is not known where a segment lies.
    """
    recording, start = locate_segments(schedule, written)
    if from_first:
        first = np.full(int(recording.max(initial=-1)) + 1, np.inf)
        np.minimum.at(first, recording[written], start[written])
        start = start - first[recording]
    return np.where(written, start, 0.0)


def common_clocks(systems: Iterable[Analysis]) -> list[str]:
    """The clocks that all systems have times for."""
    systems = list(systems)
    return [clock for clock in CLOCKS if systems and all(clock in system.clocks for system in systems)]
