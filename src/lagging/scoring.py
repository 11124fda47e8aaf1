# SPDX-License-Identifier: Apache-2.0
"""score(run, metrics) → Scores: per segment first, aggregate second, every number with its signature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.conventions import Convention, convention
from lagging.errors import DataError, Fault, MetricError, Note, UsageError, merge_notes
from lagging.metrics import Metric, metric
from lagging.ragged import Floats
from lagging.run import Ids, Run, join_ids
from lagging.schedule import REASONS, Schedules
from lagging.signature import Signature
from lagging.text import is_unspaced
from lagging.version import __version__

__all__ = ["DEFAULT_METRICS", "Score", "Scorer", "Scores", "Settings", "Undefined", "score", "settings"]

DEFAULT_METRICS = ("AP", "AL", "LAAL", "DAL")


class Undefined(int):
    """How many segments have no value; a number that also knows which they are, and why.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2], id=["a", "b"])
        >>> u = lagging.score(run, ["DAL"])["DAL"].undefined
        >>> u, u.ids, u.reasons
        (1, ('b',), {'empty hypothesis': ('b',)})
    """

    reasons: dict[str, tuple[Any, ...]]

    def __new__(cls, reasons: dict[str, tuple[Any, ...]]) -> Undefined:
        """Count the ids of all reasons."""
        self = super().__new__(cls, sum(map(len, reasons.values())))
        self.reasons = reasons
        return self

    @property
    def ids(self) -> tuple[Any, ...]:
        """The segments without a value."""
        return tuple(i for ids in self.reasons.values() for i in ids)

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle with the reasons."""
        return Undefined, (self.reasons,)


@dataclass(frozen=True, eq=False)
class Score:
    """One metric of one system.

    Attributes:
        metric: the metric as asked for.
        value: the corpus value, in `unit`; NaN if no segment has one.
        statistics: a row per segment, from which `value` and `segments` are made.
        ids: the segments' ids.
        n: number of segments, undefined ones included.
        undefined: how many have no value; which, and why.
        unit: "token", "ms", "ratio", "count" or "points".
        signature: how the number was made.
        low, high: ends of the interval, where one was asked for.
    """

    metric: Metric
    value: float
    statistics: Floats = field(repr=False)
    ids: Ids = field(repr=False)
    undefined: Undefined
    unit: str
    signature: Signature
    low: float | None = None
    high: float | None = None

    @property
    def n(self) -> int:
        """Number of segments, undefined ones included."""
        return len(self.statistics)

    @cached_property
    def segments(self) -> Floats:
        """The value of each segment, in the order of the Run; NaN where it is undefined."""
        return self.metric.segments(self.statistics)


class Scores:
    """The scores of one system, by metric: `scores["DAL"].value`.

    Attributes:
        system: name of the system.
        notes: what a reader of these scores must know.
    """

    def __init__(self, scores: Iterable[Score], system: str = "", notes: tuple[Note, ...] = ()) -> None:
        self._scores = {score.metric: score for score in scores}
        self.system = system
        self.notes = notes

    def __getitem__(self, name: str | Metric) -> Score:
        """The score of a metric, by its name as asked for, or an alias of it."""
        found = self._scores.get(metric(name))
        if found is None:
            raise MetricError(f"{name} was not scored; these were: {', '.join(map(repr, self._scores))}")
        return found

    def __iter__(self) -> Iterator[Score]:
        """The scores, in the order asked for."""
        return iter(self._scores.values())

    def __len__(self) -> int:
        """How many metrics were scored."""
        return len(self._scores)

    def __repr__(self) -> str:
        """`Scores('base', DAL=4.0, …)`."""
        inside = [repr(self.system)] if self.system else []
        return f"Scores({', '.join(inside + [f'{s.metric!r}={s.value:.6g}' for s in self])})"


class Scorer:
    """Scores a system part by part: memory grows by scores and ids, never by tokens or text.

    Example:
        >>> import lagging
        >>> scorer = Scorer(["AL", "DAL"])
        >>> for delays in ([4, 5, 5, 5, 5], [4, 4, 4, 4, 5]):
        ...     scorer.add(lagging.Run.from_delays([delays], source_length=[5]))
        >>> scorer.result()
        Scores(AL=3.1, DAL=4)
    """

    def __init__(self, metrics: Iterable[str | Metric], convention_: str | Convention = "paper") -> None:
        self.metrics = list(dict.fromkeys(metric(m) for m in metrics))
        if not self.metrics:
            raise UsageError("no metric was asked for")
        self.convention = convention(convention_)
        self._kept: list[Run] = []
        self._whole = any(m.whole for m in self.metrics)
        self._ids: list[Ids] = []
        self._rows: dict[Metric, list[Floats]] = {m: [] for m in self.metrics}
        self._codes: dict[Metric, list[npt.NDArray[np.int8]]] = {m: [] for m in self.metrics}
        self._notes: list[Note] = []
        self._eos = 0
        self._stood_in: dict[Metric, int] = dict.fromkeys(self.metrics, 0)
        self._repaired: dict[str, int] = {}
        self._facts: tuple[str, str] | None = None
        self._lengths: dict[Metric, str] = {}

    def add(self, run: Run) -> None:
        """Score some more segments."""
        facts = (run.unit, run.level)
        if self._facts not in (None, facts):
            raise UsageError(f"segments in {facts} after segments in {self._facts}: their scores cannot be averaged")
        self._facts = facts
        if self._whole:
            self._kept.append(run)
        else:
            self._score(run)

    def _score(self, run: Run) -> None:
        schedules = Schedules(run, self.convention)
        self._ids.append(run.id)
        self._notes = list(merge_notes([*self._notes, *run.notes]))
        self._eos += int(run.marked.sum())
        for name, count in run.repaired:
            self._repaired[name] = self._repaired.get(name, 0) + count
        if any(m.has("tok") and m.get("tok") == "13a" for m in self.metrics) and _unspaced(run):
            text = "BLEU with the tokenizer 13a means little: ask for BLEU(tok=zh), ja-mecab or char"
            self._notes.append(Note("SCRIPT WITHOUT SPACES", text))
        for m in self.metrics:
            schedule = schedules.of(m)
            rows = m.statistics(schedule)
            codes = schedule.undefined(m)
            codes[np.isnan(rows).any(axis=1) & (codes == 0)] = len(REASONS)
            self._rows[m].append(rows)
            self._codes[m].append(codes)
            self._stood_in[m] += int(schedule.stood_in.sum()) if m.has("length") else 0
            self._lengths[m] = schedule.length

    def result(self, system: str = "") -> Scores:
        """The scores of all segments added."""
        if self._kept:
            self._score(Run.concat(self._kept))
            self._kept = []
        if not self._ids or self._facts is None:
            raise DataError(Fault("empty-log"))
        ids = join_ids(self._ids)
        return Scores([self._finish(m, ids) for m in self.metrics], system, self._all_notes())

    def _finish(self, m: Metric, ids: Ids) -> Score:
        rows = _stack(self._rows[m])
        codes = np.concatenate(self._codes[m])
        reasons = {}
        for code in sorted(set(codes[codes > 0].tolist())):
            reason = REASONS[code] if code < len(REASONS) else m.undefined
            reasons[reason] = tuple(ids[codes == code].tolist())
        unit = self._facts[0] if m.unit == "time" and self._facts else m.unit
        return Score(m, m.corpus(rows), rows, ids, Undefined(reasons), unit, self._signature(m, len(rows)))

    def _signature(self, m: Metric, n: int) -> Signature:
        unit, level = self._facts or ("token", "token")
        timed, tol = m.has("clock"), self.convention.tolerance
        by_reference = m.has("length") and self._lengths[m] != "hypothesis"
        known: dict[str, str | None] = {
            "unit": unit if timed or "tokens" in m.needs else None,
            "length": self._lengths[m] if m.has("length") else None,
            "clock": str(m.get("clock")) if timed else None,
            "level": level if timed or "tokens" in m.needs else None,
            "empty": str(m.get("empty")) if m.has("empty") else None,
            "seg": "none",
            "mean": str(m.get("mean")) if m.has("mean") else None,
            "tol": f"{tol:g}" if "cutoff" in m.needs and unit == "ms" and tol != 1.0 else None,
            "eos": {"strip": "stripped", "keep": "kept"}[self.convention.eos] if self._eos else None,
            "count": self.convention.count if by_reference and self.convention.count != "standard" else None,
            "noref": str(self._stood_in[m]) if self._stood_in[m] else None,
            "repair": "+".join(sorted(name for name, count in self._repaired.items() if count)) or None,
        }
        more = m.describe(m) if m.describe is not None else ()
        return Signature.make(m.head, known, more, n, __version__)

    def _all_notes(self) -> tuple[Note, ...]:
        notes = list(self._notes)
        if self._eos:
            done = "stripped with its delay" if self.convention.eos == "strip" else "counted as a token"
            notes.append(Note("</s>", f"the hypothesis ends in it: {done}", self._eos))
        for name, count in sorted(self._repaired.items()):
            notes.append(Note("repaired", f"by --repair {name}", count))
        stood_in = max(self._stood_in.values())
        if stood_in:
            notes.append(Note("no reference", "the hypothesis length stands in for that of the reference", stood_in))
        return merge_notes(notes)


def _unspaced(run: Run) -> bool:
    """Whether most references are in a script without spaces, as far as the first few show."""
    sample = [] if run.reference is None else [text for text in run.reference[:200] if text]
    return bool(sample) and 2 * sum(map(is_unspaced, sample)) > len(sample)


def _stack(parts: Sequence[Floats]) -> Floats:
    """Rows of all parts; one whose segments are all undefined may have fewer columns."""
    width = max(part.shape[1] for part in parts)
    full = [p if p.shape[1] == width else np.full((len(p), width), np.nan) for p in parts]
    return full[0] if len(full) == 1 else np.concatenate(full)


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
        DAL|unit:token|length:hypothesis|clock:ideal|level:token|empty:nan|seg:none|mean:segment|n:2|v:0.1.0
    """
    scorer = Scorer([metrics] if isinstance(metrics, str) else metrics, convention)
    system = ""
    for part in [run] if isinstance(run, Run) else run:
        scorer.add(part)
        system = part.name
    return scorer.result(system)


@dataclass(frozen=True)
class Settings:
    """All that a signature says about how to make its number again.

    Attributes:
        metric: the metric, with its parameters.
        convention: how lengths, the end of the source and `</s>` are treated.
        level, unit: what to read the log as.
        repair: repairs to make.
    """

    metric: Metric
    convention: Convention
    level: str | None
    unit: str | None
    repair: tuple[str, ...]


def settings(signature: str | Signature) -> Settings:
    """What to do to make the number again that has this signature.

    Example:
        >>> s = settings("AL|unit:ms|length:reference|clock:elapsed|level:word|empty:nan|mean:segment|tol:0|n:9|v:1")
        >>> s.metric, s.convention.tolerance, s.unit
        (AL(length=reference, clock=elapsed), 0.0, 'ms')
    """
    said = Signature.parse(signature) if isinstance(signature, str) else signature
    base = metric(said.metric)
    if said.get("seg") not in (None, "none"):
        raise UsageError(f"this version cannot repeat seg:{said['seg']}")
    shared = [key for key in ("length", "clock", "empty", "mean") if base.has(key) and said.get(key)]
    chosen = {key: said[key] for key in shared if said[key] != base.get(key)}
    count = said.get("count") or "standard"
    tolerance = said.get("tol")
    return Settings(
        metric=base(**chosen),
        convention=Convention(
            "like",
            tolerance=1.0 if tolerance is None else float(tolerance),
            eos="keep" if said.get("eos") == "kept" else "strip",
            count=count,
            stand_in=count != "standard",
        ),
        level=said.get("level"),
        unit=said.get("unit"),
        repair=tuple((said.get("repair") or "").split("+")) if said.get("repair") else (),
    )
