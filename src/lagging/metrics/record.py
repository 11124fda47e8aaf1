# SPDX-License-Identifier: Apache-2.0
"""The Metric record: what a latency metric is, apart from its arithmetic."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

from lagging.data import notebooks
from lagging.data.exact import exact_sum
from lagging.data.ragged import Floats, Ragged
from lagging.errors import MetricError, MetricNameError, did_you_mean

if TYPE_CHECKING:
    from lagging.metrics.schedule import Schedule

__all__ = ["Metric", "Param", "Value"]

Value = str | float | int | bool | None
Statistics = Floats | Ragged
Compute = Callable[..., Statistics]
Aggregate = Callable[[Floats], float]
Unit = Literal["time", "drift", "ratio", "count", "points", "score"]

LENGTHS = ("hypothesis", "reference", "longest")
CLOCK_COLUMNS = {
    "ideal": frozenset[str](),
    "elapsed": frozenset({"elapsed"}),
    "queue": frozenset({"elapsed", "arrivals", "compute", "steps", "queue_times"}),
    "omnisteval": frozenset({"elapsed", "compute", "steps", "omnisteval_times"}),
    "fbk": frozenset({"elapsed", "compute", "steps", "fbk_times"}),
    "fbk1": frozenset({"elapsed", "compute", "steps", "fbk1_times"}),
    "first": frozenset({"first_times", "erased"}),
    "stable": frozenset[str](),
}
"""Which columns of a log each clock needs."""
CLOCKS = tuple(CLOCK_COLUMNS)
EMPTIES = ("nan", "source")
MEANS = ("segment", "token")


@dataclass(frozen=True)
class Param:
    """A declared parameter of a metric: its name, default, allowed values, and what it means.

    `kind` is the type of a numeric value, and `least` and `most` are its bounds. `choices` are the words that are
    allowed in addition to a number, or instead of one. `replaces` names a parameter that has no effect if this one is a
    number.
    """

    name: str
    default: Value
    help: str
    choices: tuple[str, ...] = ()
    kind: type | None = None
    least: float = -math.inf
    most: float = math.inf
    replaces: str = ""

    def parse(self, text: str) -> Value:
        """The value written as `text`, or a MetricError that says what is allowed."""
        if isinstance(self.default, bool) and text in self.choices:
            return text == "True"
        if text in self.choices:
            return text
        if self.default is None and text == "None":
            return None
        if self.kind is str and not self.choices:
            return text
        if self.kind in (int, float):
            try:
                value = self.kind(text)
            except ValueError:
                pass
            else:
                if math.isfinite(value) and self.least <= value <= self.most:
                    return int(value) if value == int(value) else float(value)
        allowed = [repr(c) for c in self.choices]
        if self.kind in (int, float):
            bound = f", {self.least:g} or more" if math.isfinite(self.least) else ""
            bound += f", {self.most:g} or less" if math.isfinite(self.most) else ""
            allowed.append(f"a {self.kind.__name__}{bound}")
        raise MetricNameError(f"{self.name} must be {' or '.join(allowed)}, but got {text!r}")


LENGTH = Param("length", "hypothesis", "whose length is |y| in γ = |y|/|x|", LENGTHS)
CLOCK = Param("clock", "ideal", "the clock that says when a token was written: see the page on clocks", CLOCKS)
EMPTY = Param("empty", "nan", "an empty hypothesis: undefined, or one token written after the whole source", EMPTIES)
MEAN = Param("mean", "segment", "the corpus mean: segments with equal weights, or weighted by target tokens", MEANS)
SHARED = frozenset(p.name for p in (LENGTH, CLOCK, EMPTY, MEAN))
"""Parameters that all metrics about time share; a metric cannot declare its own parameter of such a name."""


@dataclass(frozen=True, eq=False, repr=False)
class Metric:
    """A latency or quality metric: its identity, what it needs, and two functions.

    `statistics` maps a schedule (a Run under one convention) to an array with one row per segment; `corpus` maps such
    an array to one number. So a bootstrap resamples rows in the same way for every metric.

    Its `repr` is its identity, and parses back:

        >>> import lagging
        >>> lagging.metric("DAL(write_cost=1)")
        DAL(write_cost=1)
        >>> lagging.metric("AL_CA")
        AL(clock=elapsed)

    Attributes:
        name: as it is written in tables.
        compute: the first function.
        aggregate: "mean" (of the one column), "ratio" (sum of the first column ÷ sum of the second), or a function.
        pool: for a metric whose statistics are the values of all tokens (a Ragged): reduces the last axis to one
            number, from all tokens for the corpus, and from its own tokens for a segment. It gets the metric's own
            parameters as keywords.
        from_sums: column sums → corpus values, along the last axis, where `aggregate` is a function of such sums. With
            it, many resamples are scored at once.
        quantile: name of the parameter that says which percentile `pool` takes, if it takes one.
        params: declared parameters; `values` holds those that were set. A parameter that was set to its default is
            kept: under a convention, `AL(length=hypothesis)` is not `AL`.
        unit: the unit of the value: the time unit of the log, that unit per minute or 100 tokens (a drift), a ratio, a
            count, or points.
        higher_is_better: direction, for tables; None if neither higher nor lower is better.
        needs: columns and settings that the value depends on: "length", "cutoff", "reference", "prediction",
            "tokens" (defined for token units only), "corpus" (needs the whole Run at once).
        summary, formula, latex, paper, bibtex, edge_cases: the documentation of the metric, shown to users.
        undefined: the reason why a segment has no value, if none of the common reasons applies.
        segment_values: statistics → values of the segments, if these are neither a column nor a ratio of two columns.
        describe: more fields for the signature, e.g. those of sacreBLEU.
        describe_segments: fields of the signature that differ for the value of a single segment.
        counts: the names of the last columns of the statistics, whose sums are shown beside the value in JSON.
    """

    name: str
    compute: Compute
    aggregate: Literal["mean", "ratio"] | Aggregate = "mean"
    pool: Callable[..., Floats] | None = None
    from_sums: Callable[[Floats], Floats] | None = None
    quantile: str = ""
    params: tuple[Param, ...] = ()
    values: tuple[tuple[str, Value], ...] = ()
    unit: Unit = "time"
    higher_is_better: bool | None = False
    needs: frozenset[str] = frozenset()
    summary: str = ""
    formula: str = ""
    latex: str = ""
    paper: str = ""
    bibtex: str = ""
    edge_cases: tuple[str, ...] = ()
    undefined: str = "undefined"
    segment_values: Callable[[Floats], Floats] | None = None
    describe: Callable[[Metric], tuple[tuple[str, str], ...]] | None = None
    describe_segments: tuple[tuple[str, str], ...] = ()
    counts: tuple[str, ...] = ()

    _repr_html_ = notebooks.html

    def __call__(self, **values: Value) -> Metric:
        """The same metric with other parameters: `DAL(write_cost=1)`."""
        merged = dict(self.values)
        for name, value in values.items():
            param = self.param(name)
            merged[name] = param.parse(str(value)) if value is not None or param.default is not None else None
        return replace(self, values=tuple((p.name, merged[p.name]) for p in self.params if p.name in merged))

    def param(self, name: str) -> Param:
        """The declaration of a parameter.

        Raises:
            MetricNameError: there is no such parameter.
        """
        for param in self.params:
            if param.name == name:
                return param
        raise MetricNameError(
            f"{self.name} has no parameter {name!r}.{did_you_mean(name, [p.name for p in self.params])}"
        )

    def get(self, name: str) -> Value:
        """The value of a parameter: the one set, or the default."""
        return dict(self.values).get(name, self.param(name).default)

    def has(self, name: str) -> bool:
        """Whether there is a parameter of that name."""
        return any(param.name == name for param in self.params)

    def uses(self, name: str) -> bool:
        """Whether there is a parameter of that name, and it has an effect."""
        replaced = any(p.replaces == name and isinstance(self.get(p.name), int | float) for p in self.params)
        return self.has(name) and not replaced

    def is_set(self, name: str) -> bool:
        """Whether a parameter was set, even to its default."""
        return any(n == name for n, _ in self.values)

    @property
    def own_values(self) -> tuple[tuple[str, Value], ...]:
        """The values, other than defaults, of the parameters that only this metric has."""
        return tuple((n, v) for n, v in self.values if n not in SHARED and v != self.param(n).default)

    @property
    def needs_corpus(self) -> bool:
        """Whether the value of a segment depends on the other segments: then a log cannot be scored in parts."""
        return "corpus" in self.needs or "corpus" in (value for _, value in self.values)

    def __repr__(self) -> str:
        """The identity: name, and the parameters that were set."""
        return _format_call(self.name, self.values)

    @property
    def name_with_params(self) -> str:
        """Name and own parameters: the first field of a signature."""
        return _format_call(self.name, self.own_values)

    def __eq__(self, other: object) -> bool:
        """The same identity."""
        return repr(self) == repr(other) if isinstance(other, Metric) else NotImplemented

    def __hash__(self) -> int:
        """The hash of the identity."""
        return hash(repr(self))

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the identity; where it is unpickled, the metric must be registered."""
        from lagging.metrics.registry import metric

        return metric, (repr(self),)

    # ---- the two functions ------------------------------------------------------------------------------------

    @property
    def columns(self) -> frozenset[str]:
        """The columns and settings of a log that it needs, in addition to what every metric needs."""
        return self.needs | (CLOCK_COLUMNS[str(self.get("clock"))] if self.has("clock") else frozenset())

    @property
    def _own(self) -> dict[str, Value]:
        return {p.name: self.get(p.name) for p in self.params if p.name not in SHARED}

    def statistics(self, schedule: Schedule) -> Statistics:
        """A row per segment: its value, or the sufficient statistics from which `corpus` makes the value."""
        schedule.used.clear()
        try:
            with np.errstate(all="ignore"):
                rows = self.compute(schedule, **self._own)
        except SystemExit as error:  # its exit code would become that of the program
            raise MetricError(f"its function ended the program: SystemExit: {error}") from error
        undeclared = schedule.used - self.needs
        if undeclared:
            raise MetricError(f"its function uses what it did not declare: needs={sorted(undeclared)}")
        undefined = schedule.undefined(self) > 0
        if isinstance(rows, Ragged):
            if self.pool is None:
                raise MetricError("its function gave a value per token, and has no `pool` to reduce them")
            if len(rows) != len(schedule.run):
                raise MetricError(f"its function gave {len(rows)} rows for {len(schedule.run)} segments")
            return rows.keep(~undefined) if undefined.any() else rows
        rows = np.array(rows, dtype=np.float64)
        if rows.ndim not in (1, 2) or len(rows) != len(schedule.run):
            raise MetricError(f"its function gave an array of shape {rows.shape} for {len(schedule.run)} segments")
        rows = rows[:, None] if rows.ndim == 1 else rows
        rows[undefined] = np.nan
        if self.aggregate == "mean" and self.has("mean") and self.get("mean") == "token":
            weight = schedule.g.lengths[:, None].astype(np.float64)
            rows = np.hstack([rows * weight, np.where(np.isnan(rows), np.nan, weight)])
        return rows

    @property
    def adds_up(self) -> bool:
        """Whether the corpus value is a function of the column sums of the statistics."""
        return self.pool is None and (not callable(self.aggregate) or self.from_sums is not None)

    @property
    def ratio(self) -> bool:
        """Whether the corpus value is the sum of the first column ÷ the sum of the second."""
        return self.aggregate == "ratio" or (self.has("mean") and self.get("mean") == "token")

    def segments(self, statistics: Statistics) -> Floats:
        """The value of each segment; NaN where it is undefined."""
        if isinstance(statistics, Ragged):
            return statistics.by_row(partial(self._pool, **self._own))
        if statistics.shape[1] == 1 and missing(statistics).all():  # also of a metric that cannot be computed here
            return statistics[:, 0]
        if self.segment_values is not None:
            return self.segment_values(statistics)
        if self.ratio:
            with np.errstate(divide="ignore", invalid="ignore"):
                ratio: Floats = statistics[:, 0] / statistics[:, 1]
            return ratio
        return statistics[:, 0]

    def has_value(self, statistics: Statistics) -> npt.NDArray[np.bool_]:
        """Which segments have a value of their own.

        Where the formula of the corpus is also that of a segment, a segment without a value may count in the corpus:
        see DSPTV.
        """
        if isinstance(statistics, Ragged):
            return np.asarray(statistics.lengths > 0)
        if self.segment_values is not None and self.segment_values is self.from_sums:
            with np.errstate(divide="ignore", invalid="ignore"):
                return ~np.isnan(self.segments(statistics))
        return np.asarray(~np.isnan(statistics).any(axis=1))

    @property
    def _pool(self) -> Callable[..., Floats]:
        assert self.pool is not None  # `statistics` refuses a value per token without it
        return self.pool

    def corpus(self, statistics: Statistics) -> float:
        """The value of the corpus; NaN if no segment has one. The order of the segments does not change a bit of it."""
        if isinstance(statistics, Ragged):
            return float(self._pool(statistics.values, **self._own)) if len(statistics.values) else math.nan
        rows = statistics[~np.isnan(statistics).any(axis=1)]
        if not len(rows):
            return math.nan
        if callable(self.aggregate) and not self.adds_up:
            return self.aggregate(rows)
        return self.value_from_sums([exact_sum(column) for column in rows.T], len(rows))

    def value_from_sums(self, sums: Sequence[float], n: int) -> float:
        """The value of a corpus, from the column sums of the statistics of the n segments that have a value.

        Example:
            >>> import lagging
            >>> lagging.metric("AL").value_from_sums([6.2], 2)
            3.1
        """
        if not n:
            return math.nan
        if callable(self.aggregate):
            return float(self.aggregate(np.array([sums])))
        bottom = sums[1] if self.ratio else n
        return sums[0] / bottom if bottom else math.nan


def _format_call(name: str, values: Iterable[tuple[str, Value]]) -> str:
    arguments = ", ".join(f"{n}={v}" for n, v in values)
    return f"{name}({arguments})" if arguments else name


def missing(statistics: Statistics) -> npt.NDArray[np.bool_]:
    """Which segments have no statistics, and therefore no value."""
    if isinstance(statistics, Ragged):
        return np.asarray(statistics.lengths == 0, dtype=bool)
    return np.asarray(np.isnan(statistics).any(axis=1), dtype=bool)


def params_of(function: Compute) -> tuple[Param, ...]:
    """The keyword-only arguments of a metric's function, as declared parameters."""
    params = []
    for arg in inspect.signature(function).parameters.values():
        if arg.kind is arg.KEYWORD_ONLY:
            if arg.name in SHARED:
                raise MetricNameError(
                    f"{arg.name!r} is a parameter of every metric; {function.__name__} needs another name"
                )
            if arg.default is arg.empty:
                raise MetricNameError(f"parameter {arg.name!r} of {function.__name__} needs a default")
            kind = type(arg.default)
            choices = ("False", "True") if kind is bool else ()
            params.append(Param(arg.name, arg.default, "", choices, kind if kind in (int, float, str) else None))
    return tuple(params)
