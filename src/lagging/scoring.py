# SPDX-License-Identifier: Apache-2.0
"""score(run, metrics) → Scores: per segment first, aggregate second, every number with its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np

from lagging import notebooks
from lagging.clocks import adding_up
from lagging.conventions import Convention, convention
from lagging.errors import DataError, Fault, MetricError, Note, UsageError, merge_notes, optional
from lagging.metrics import Metric, metric, metric_among
from lagging.metrics.record import Statistics
from lagging.ragged import Floats, Ints
from lagging.repeating import Settings, settings
from lagging.run import Ids, Run, Texts
from lagging.schedule import REASONS, Schedules
from lagging.signature import Signature
from lagging.stacking import Keep, Rows, Segments, Sums, keys
from lagging.text import is_unspaced
from lagging.undefined import Undefined
from lagging.validation import number
from lagging.version import __version__

if TYPE_CHECKING:
    import pandas

__all__ = ["DEFAULT_METRICS", "Keep", "Score", "Scorer", "Scores", "Settings", "Undefined", "score", "settings"]

DEFAULT_METRICS = ("AP", "AL", "LAAL", "DAL")
LONGFORM_METRICS = ("LongYAAL", "StreamLAAL", "DAL", "StreamDAL")
"""Of segments cut from a stream, where AP has no meaning."""

UNITS = {
    ("time", "token"): "token",
    ("time", "ms"): "ms",
    ("drift", "token"): "token/100",
    ("drift", "ms"): "ms/min",
}
"""What a value is measured in, by the metric's unit and the log's; a ratio, a count and points have none."""


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one system.

    Attributes:
        metric: the metric as asked for.
        value: the corpus value, in `unit`; NaN if no segment has one.
        statistics: a row per segment, from which `value` and `segments` are made.
        ids: the segments' ids; empty, as `statistics` is, if segments were only added up.
        n: number of segments, undefined ones included.
        undefined: how many have no value; which, and why.
        unit: "token", "ms", "ratio", "count", "points" or "score".
        signature: how the number was made.
        settled: the metric with what the convention set.
        low, high: ends of the interval, where one was asked for.
        documents: the document of each segment, where the log tells.
        sources, references: of each segment |x|, and a hash of the reference (0 without any): what tells whether two
            systems were given the same.
        count: number of segments, if they were only added up.
    """

    metric: Metric
    value: float
    statistics: Statistics = field(repr=False)
    ids: Ids = field(repr=False)
    undefined: Undefined
    unit: str
    signature: Signature
    settled: Metric = field(repr=False)
    low: float | None = None
    high: float | None = None
    documents: Texts | None = field(default=None, repr=False)
    sources: Floats | None = field(default=None, repr=False)
    references: Ints | None = field(default=None, repr=False)
    count: int | None = field(default=None, repr=False)

    @property
    def n(self) -> int:
        """Number of segments, undefined ones included."""
        return len(self.statistics) if self.count is None else self.count

    @cached_property
    def segments(self) -> Floats:
        """The value of each segment, in the order of the Run; NaN where it is undefined."""
        return self.settled.segments(self.statistics)

    @property
    def segment_signature(self) -> Signature:
        """How the values of the segments were made, where that is not how the corpus value was."""
        changed = dict(self.metric.describe_segments)
        plain = self.signature.without_interval()
        return Signature(plain.metric, tuple((k, changed.get(k, v)) for k, v in plain.fields))


class Scores:
    """The scores of one system, by metric: `scores["DAL"].value`.

    Attributes:
        system: name of the system.
        notes: what a reader of these scores must know.
        group: what these segments have in common, by column, where a log was scored by group.
    """

    def __init__(
        self,
        scores: Iterable[Score],
        system: str = "",
        notes: tuple[Note, ...] = (),
        group: Mapping[str, str | None] | None = None,
        keys: Ints | None = None,
    ) -> None:
        self._keys = keys
        self._scores = {score.metric: score for score in scores}
        self.system = system
        self.notes = notes
        self.group = dict(group or {})

    @property
    def called(self) -> str:
        """The system, and the group of its segments: `new (de-en, v2)`."""
        labels = ", ".join("–" if label is None else label for label in self.group.values())
        return f"{self.system} ({labels})" if self.group else self.system

    def __getitem__(self, name: str | Metric) -> Score:
        """The score of a metric, by its name as asked for, or an alias of it."""
        found = self._scores.get(metric_among(name, self._scores))
        if found is None:
            raise MetricError(f"{name} was not scored; these were: {', '.join(map(repr, self._scores))}")
        return found

    def __iter__(self) -> Iterator[Score]:
        """The scores, in the order asked for."""
        return iter(self._scores.values())

    def shared(self, other: Scores) -> tuple[int, int, int]:
        """How many segments two systems have in common, and how many each has."""
        mine, theirs = (keys(next(iter(s)).ids) if s._keys is None else s._keys for s in (self, other))
        same = np.array_equal(mine, theirs)
        return len(mine) if same else len(np.intersect1d(mine, theirs)), len(mine), len(theirs)

    def to_pandas(self) -> pandas.DataFrame:
        """A row per segment: its id, and a column per metric (needs pandas)."""
        return optional("pandas").DataFrame({"id": next(iter(self)).ids, **{repr(s.metric): s.segments for s in self}})

    _repr_html_ = notebooks.html

    def __len__(self) -> int:
        """How many metrics were scored."""
        return len(self._scores)

    def __repr__(self) -> str:
        """`Scores('base', DAL=4.0, …)`."""
        inside = [repr(self.system)] if self.system else []
        return f"Scores({', '.join(inside + [f'{s.metric!r}={s.value:.6g}' for s in self])})"


class Scorer:
    """Scores a system part by part: memory grows by what is kept of segments, never by tokens or text.

    Args:
        metrics, convention_: as in `score`.
        keep: what is kept of segments; the scores are the same. "all" is what comparing systems takes; "values" and
            names; "keys", by which systems are known to have the same segments; or nothing but "sums".

    Example:
        >>> import lagging
        >>> scorer = Scorer(["AL", "DAL"])
        >>> for delays in ([4, 5, 5, 5, 5], [4, 4, 4, 4, 5]):
        ...     scorer.add(lagging.Run.from_delays([delays], source_length=[5]))
        >>> scorer.result()
        Scores(AL=3.1, DAL=4)
    """

    def __init__(
        self, metrics: Iterable[str | Metric], convention_: str | Convention = "paper", *, keep: Keep = "all"
    ) -> None:
        self.metrics = list(dict.fromkeys(metric(m) for m in metrics))
        if not self.metrics:
            raise UsageError("no metric was asked for")
        self.convention = convention(convention_)
        self._kept: list[Run] = []
        self._settled = {m: self.convention.settle(m) for m in self.metrics}
        self._whole = any(m.whole for m in self._settled.values())
        self._segments = Segments(keep)
        self._rows = {m: Rows() if self._segments.valued or not s.adds_up else Sums() for m, s in self._settled.items()}
        self._notes: list[Note] = []
        self._stripped = self._marked = 0
        self._referenced = False
        self._stood_in: dict[Metric, int] = dict.fromkeys(self.metrics, 0)
        self._repaired: dict[str, int] = {}
        self._edited: dict[str, int] = {}
        self._facts: tuple[str, str, str] | None = None
        self._told = False
        self._lengths: dict[Metric, str] = {}

    def add(self, run: Run) -> None:
        """Score some more segments."""
        self._agree((run.unit, run.level, run.seg), told=len(run.delays.values) > 0)
        self._segments.add(run)
        if self._whole:
            self._kept.append(self._slim(run))
        else:
            self._score(run)

    def _agree(self, facts: tuple[str, str, str], *, told: bool) -> None:
        """Refuse segments that are counted otherwise; what nothing was written in tells nothing."""
        if told or self._facts is None:
            if self._told and facts != self._facts:
                raise UsageError(
                    f"segments in {facts} after segments in {self._facts}: their scores cannot be averaged"
                )
            self._facts, self._told = facts, self._told or told

    def empty(self) -> Scorer:
        """A Scorer that scores alike, and has scored nothing yet."""
        return Scorer(self.metrics, self.convention, keep=self._segments.keep)

    def join(self, other: Scorer) -> None:
        """Take over what another Scorer, made by `empty`, has scored: the segments that come next.

        Example:
            >>> import lagging
            >>> scorers = [Scorer(["DAL"]) for _ in range(2)]
            >>> for scorer, delays in zip(scorers, ([4, 5, 5], [1, 2, 3]), strict=True):
            ...     scorer.add(lagging.Run.from_delays([delays], source_length=[5]))
            >>> scorers[0].join(scorers[1])
            >>> scorers[0].result()["DAL"].n
            2
        """
        if other._facts is not None:
            self._agree(other._facts, told=other._told)
        self._kept += other._kept
        self._segments.join(other._segments)
        for m in self.metrics:
            self._rows[m].join(other._rows[m])  # type: ignore[arg-type]
        self._notes = list(merge_notes([*self._notes, *other._notes]))
        self._stripped += other._stripped
        self._marked += other._marked
        self._referenced |= other._referenced
        for counts, more in ((self._repaired, other._repaired), (self._edited, other._edited)):
            for name, count in more.items():
                counts[name] = counts.get(name, 0) + count
        for m in self.metrics:
            self._stood_in[m] += other._stood_in[m]
        self._lengths |= other._lengths

    def remark(self, notes: Iterable[Note]) -> None:
        """Add to what a reader of the scores must know."""
        self._notes = list(merge_notes([*self._notes, *notes]))

    def _slim(self, run: Run) -> Run:
        """The columns that must be kept until all segments are there."""
        texts = {"reference", "prediction"} & {need for m in self.metrics for need in m.needs}
        by_reference = any(Schedules(run, self.convention).length_of(m) != "hypothesis" for m in self.metrics)
        return replace(
            run,
            prediction=run.prediction if texts or run.marked.any() else None,
            reference=run.reference if texts or by_reference else None,
        )

    def _score(self, run: Run) -> None:
        schedules = Schedules(run, self.convention)
        self._notes = list(merge_notes([*self._notes, *run.notes]))
        self._referenced |= run.reference is not None or run.reference_length is not None
        self._stripped += int(run.eos.sum())
        self._marked += int(run.marked.sum())
        for name, count in run.repaired:
            self._repaired[name] = self._repaired.get(name, 0) + count
        for kind, count in run.stripped:
            self._edited[kind] = self._edited.get(kind, 0) + count
        if any(m.has("tok") and m.get("tok") == "13a" for m in self._settled.values()) and _unspaced(run):
            text = "BLEU with the tokenizer 13a means little: ask for BLEU(tok=zh), ja-mecab or char"
            self._notes.append(Note("SCRIPT WITHOUT SPACES", text))
        if any(m.has("clock") and m.get("clock") == "elapsed" for m in self._settled.values()):
            names = adding_up(run)
            text = (
                "clock=elapsed (_CA) counts all computing since the recording began, as if nothing were computed while "
                "it is heard: ask for clock=queue, what listeners see, or clock=fbk or omnisteval, what is published"
            )
            self._notes += (
                [Note("ELAPSED TIMES ADD UP", text, len(names), tuple(names[:5]), "recording")] if names else []
            )
        for m, settled in self._settled.items():
            try:
                schedule = schedules.of(settled)
                rows = settled.statistics(schedule)
            except MetricError as error:
                where = run.origin.path or run.name
                raise type(error)(f"{m!r}{f' of {where}' if where else ''}: {error}") from None
            codes = schedule.undefined(settled)
            codes[~settled.has_value(rows) & (codes == 0)] = len(REASONS)
            self._rows[m].add(rows, codes)
            self._stood_in[m] += int(schedule.stood_in.sum())
            self._lengths[m] = schedule.length

    def result(self, system: str = "") -> Scores:
        """The scores of all segments added."""
        if self._kept:
            self._score(Run.concat(self._kept))
            self._kept = []
        if self._facts is None:
            raise DataError(Fault("nothing-given"))
        segments, columns = self._segments, self._segments.columns()
        known = np.concatenate(segments.ids) if segments.keep == "keys" else None
        return Scores([self._finish(m, columns, system) for m in self.metrics], system, self._all_notes(), keys=known)

    def _finish(self, m: Metric, columns: dict[str, Any], system: str) -> Score:
        found, ids = self._rows[m].found(self._settled[m]), columns["ids"]
        if not self._referenced and found.n and found.counts[REASONS.index("no reference")] == found.n:
            whose = f" of {system}" if system else ""
            raise MetricError(f"{m!r}{whose}: there are no references to compare with")
        reasons, counts = {}, {}
        for code, count in sorted(found.counts.items()):
            if code:
                reason = REASONS[code] if code < len(REASONS) else m.undefined
                reasons[reason] = tuple(ids[found.codes == code].tolist()) if self._segments.valued else ()
                counts[reason] = count
        return Score(
            metric=m,
            value=found.value,
            statistics=found.statistics,
            undefined=Undefined(reasons, counts),
            unit=UNITS.get((m.unit, self._facts[0] if self._facts else ""), m.unit),
            signature=self._signature(m, found.n - sum(counts.values())),
            settled=self._settled[m],
            **columns,
        )

    def _signature(self, asked: Metric, n: int) -> Signature:
        m = self._settled[asked]
        unit, level, seg = self._facts or ("token", "token", "none")
        timed, counted = m.has("clock"), m.has("clock") or "tokens" in m.needs
        tol, count = self.convention.tolerance, self.convention.count
        by_reference = m.uses("length") and self._lengths[asked] != "hypothesis"
        cut = seg not in ("none", "given")  # by tokens of this level, and, in a unit, by their times
        known: dict[str, str | None] = {
            "unit": unit if counted or m.unit == "time" or cut else None,
            "length": self._lengths[asked] if m.uses("length") else None,
            "clock": str(m.get("clock")) if timed else None,
            "level": level if counted or "level" in m.needs or cut else None,
            "empty": str(m.get("empty")) if m.has("empty") else None,
            "seg": seg,
            "mean": str(m.get("mean")) if m.has("mean") else None,
            "tol": number(tol) if "cutoff" in m.needs and unit == "ms" and tol != 1.0 else None,
            "eos": self._eos_of(m),
            "count": count if by_reference and count != "standard" else None,
            "noref": str(self._stood_in[asked]) if self._stood_in[asked] else None,
            "repair": "+".join(sorted(name for name, times in self._repaired.items() if times)) or None,
            "strip": "+".join(sorted(kind for kind, times in self._edited.items() if times)) or None,
        }
        more = m.describe(m) if m.describe is not None else ()
        return Signature.make(m.head, known, more, n, __version__)

    def _eos_of(self, m: Metric) -> str | None:
        """What was done with final `</s>`: a metric of time drops its delay, a metric of text its text."""
        if not self._marked:
            return None
        dropped = self._stripped if m.has("clock") else self._marked
        return "stripped" if self.convention.eos == "strip" and dropped else "kept"

    @property
    def _timed(self) -> bool:
        return self._facts is None or self._facts[0] != "none"

    def _all_notes(self) -> tuple[Note, ...]:
        notes = list(self._notes)
        keep = self.convention.eos == "keep"
        if self._stripped:
            done = "counted as a token" if keep else f"stripped{' with its delay' * self._timed}"
            notes.append(Note("</s>", f"the hypothesis ends in it: {done}", self._stripped))
        if self._marked > self._stripped:
            done = "kept" if keep else "its text is stripped, and no delay is"
            text = f"the hypothesis ends in it, but it has no delay that could be told apart: {done}"
            notes.append(Note("</s>", text, self._marked - self._stripped))
        for name, count in sorted(self._repaired.items()):
            notes.append(Note("repaired", f"by --repair {name}", count))
        for kind, count in sorted(self._edited.items()):
            notes.append(Note("stripped", f"{kind}, of hypotheses and references", count, noun="token"))
        stood_in = max(self._stood_in.values())
        if stood_in:
            text = "the hypothesis length stands in for that of the reference"
            if self._referenced and self._facts is not None and self._facts[1] == "token":
                text += ", which the log does not tell in tokens of its own, or in pieces of speech"
            notes.append(Note("no reference", text, stood_in))
        return merge_notes(notes)


def _unspaced(run: Run) -> bool:
    """Whether most references are in a script without spaces, as far as the first few show."""
    sample = [] if run.reference is None else [text for text in run.reference[:200] if text]
    return bool(sample) and 2 * sum(map(is_unspaced, sample)) > len(sample)


def score(
    run: Run | Iterable[Run],
    metrics: Iterable[str | Metric] | str = DEFAULT_METRICS,
    *,
    convention: str | Convention = "paper",
) -> Scores:
    """Score a Run, or a Run that comes in parts.

    Args:
        run: a Run, or an iterator over its parts such as `lagging.scan` returns.
        metrics: names or Metric records.
        convention: "paper" (default), "simuleval" or "omnisteval"; shows in the signatures by its effects.

    Returns:
        Scores, by metric.

    Raises:
        MetricError: a metric is unknown, or cannot be computed on this Run.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]], source_length=[5, 5])
        >>> scores = lagging.score(run, ["AL", "DAL"])
        >>> scores["AL"].value, scores["AL"].segments, scores["DAL"].value
        (3.1, array([4. , 2.2]), 4.0)
        >>> print(scores["DAL"].signature)
        DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:2|v:0.2.0.dev0
    """
    if isinstance(run, str | PathLike):
        raise UsageError(f"score takes a Run: lagging.score(lagging.read({str(run)!r}), …)")
    scorer = Scorer([metrics] if isinstance(metrics, str) else metrics, convention)
    system = ""
    for part in [run] if isinstance(run, Run) else run:
        scorer.add(part)
        system = part.name
    return scorer.result(system)
