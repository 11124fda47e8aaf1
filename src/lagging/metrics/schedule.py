# SPDX-License-Identifier: Apache-2.0
"""A Schedule: the g, |x| and |y| that a metric sees, under one clock, length and convention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Floats, Kernel, Ragged
from lagging.data.run import Run
from lagging.data.tokens import count_spaces, count_tokens, count_words, is_spm, tokens, without_eos
from lagging.errors import MetricError
from lagging.metrics import clocks, kernels
from lagging.metrics.conventions import PAPER, Convention
from lagging.metrics.record import Metric

__all__ = ["REASONS", "Schedule", "Schedules"]

REASONS = ("", "empty hypothesis", "empty source", "no reference", "empty reference")
"""Why a segment has no value: the text of each code of `Schedule.undefined`."""


Shared = TypeVar("Shared")


@dataclass(frozen=True)
class Schedule:
    """What a metric sees of a Run.

    Attributes:
        run: the Run.
        g: delays on the requested clock, without a stripped `</s>`.
        ideal: delays on the ideal clock, the time of the source.
        clock: the requested clock.
        x: |x|, source lengths.
        length: whose length y is: "hypothesis", "reference" or "longest".
        length_from_hypothesis: which segments have the hypothesis length in place of a missing reference.
        strip: whether a final `</s>` is stripped.
        used: what a metric has used so far of the things that it must declare in `needs`.
    """

    run: Run
    g: Ragged
    ideal: Ragged
    clock: str
    x: Floats
    _y: Floats
    _source_end: Floats
    length: str
    length_from_hypothesis: npt.NDArray[np.bool_]
    strip: bool
    _durations: Ragged | None = None
    _shared: dict[str, Any] = field(default_factory=dict)
    _undefined: dict[tuple[bool, ...], npt.NDArray[np.int8]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)

    @property
    def y(self) -> Floats:
        """|y|, target lengths as they enter γ; NaN where the reference that they should come from is missing."""
        self.used.add("length")
        return self._y

    @property
    def source_end(self) -> Floats:
        """The smallest delay at which the source of each segment counts as fully read."""
        self.used.add("cutoff")
        return self._source_end

    @property
    def durations(self) -> Ragged | None:
        """Duration in ms of the output speech after each delay; NaN for an empty hypothesis that is charged."""
        self.used.add("durations")
        return self._durations

    @property
    def lags(self) -> Ragged:
        """ℓ(t) = g(t) − (t−1)/γ of every token: what AL, LAAL, YAAL and DAL average."""
        self.used.add("length")
        return self._lags

    @property
    def cutoff(self) -> Floats:
        """τ of every segment."""
        self.used.add("cutoff")
        return self.share("cutoff", lambda: self.g.by_row(kernels.cutoff, self._source_end))

    def share(self, name: str, compute: Callable[[], Shared]) -> Shared:
        """What several metrics need of these times: computed when the first of them asks for it."""
        if name not in self._shared:
            self._shared[name] = compute()
        shared: Shared = self._shared[name]
        return shared

    @cached_property
    def _lags(self) -> Ragged:
        return self.g.by_token(kernels.lags, self.x, self._y)

    @property
    def compute(self) -> Ragged:
        """The computing time of each step that the system took, in ms."""
        self.used.add("compute")
        return clocks.steps(self.run)[1]

    def column(self, name: str) -> Any:
        """A column of the Run that only a few logs have.

        Raises:
            MetricError: this log does not have it.
        """
        self.used.add(name)
        column = getattr(self.run, name)
        if column is None:
            raise MetricError(f"it needs `{name}`, and this log has none{WHERE.get(name, '')}")
        return column

    def by_row(self, kernel: Kernel, *columns: npt.NDArray[np.generic] | Ragged) -> Floats:
        """`kernel(g, *columns)` for the segments of each length: one number per segment."""
        return self.g.by_row(kernel, *columns)

    def by_lag(self, kernel: Kernel, *columns: npt.NDArray[np.generic] | Ragged) -> Floats:
        """`kernel(lags, *columns)`: as `lags.by_row`, without holding the lags of all segments in memory at once."""
        self.used.add("length")
        return self.g.by_row(lambda g, x, y, *rest: kernel(kernels.lags(g, x, y), *rest), self.x, self._y, *columns)

    @cached_property
    def predictions(self) -> list[str | None]:
        """Texts of the hypotheses, without a stripped `</s>`."""
        if self.run.prediction is None or not self.run.has_text:
            raise MetricError("there are no predictions whose text could be judged")
        texts: list[str | None] = self.run.prediction.tolist()
        return [text and without_eos(text) for text in texts] if self.strip else texts

    @cached_property
    def references(self) -> list[str | None]:
        """Texts of the references, without the newline that some logs leave at their end."""
        if self.run.reference is None:
            return [None] * len(self.run)
        return [None if text is None else text.strip() for text in self.run.reference]

    def undefined(self, metric: Metric) -> npt.NDArray[np.int8]:
        """Why each segment has no value under this metric: an index into `REASONS`; 0 where it may have one."""
        timed = metric.has("clock")
        needed = (
            "reference" in metric.needs,
            metric.uses("length"),
            timed or "tokens" in metric.needs,
            timed and "compute" not in metric.needs,  # computing counts even if nothing was written
        )
        if needed not in self._undefined:
            self._undefined[needed] = self._reasons(*needed)
        return self._undefined[needed].copy()

    def _reasons(self, reference: bool, length: bool, source: bool, written: bool) -> npt.NDArray[np.int8]:
        """The index into `REASONS` of what each segment lacks of what is needed."""
        code = np.zeros(len(self.run), dtype=np.int8)
        if reference:
            for row, text in enumerate(self.references):
                code[row] = 3 if text is None else 4 if not text else 0
        if length:
            code[np.isnan(self._y)] = 3
            code[self._y == 0] = 4
        if source:
            code[self.x == 0] = 2
        if written:
            code[self.g.lengths == 0] = 1
        return code


COUNTING: dict[tuple[str, str], Callable[[str], int]] = {
    ("word", "standard"): lambda text: len(text.split()),
    ("word", "simuleval"): lambda text: text.count(" ") + 1,
    ("word", "omnisteval"): lambda text: text.strip().count(" ") + 1,
    ("word", "fbk"): lambda text: text.strip().count(" ") + 1,
    ("char", "simuleval"): lambda text: len(text.strip()),
    ("char", "omnisteval"): lambda text: len(text.strip()),
    ("char", "fbk"): lambda text: len(text.strip()),
    ("char", "omnisteval, cut"): lambda text: len(text.strip().replace(" ", "")),
}
"""How the length of a reference is counted, by level and convention."""

WHERE = {
    "recording_end": "\n  fix: score segments cut from a stream, such as OmniSTEval's instances.resegmented.jsonl.",
    "erased": "\n  fix: score the log of a system that revises what it wrote: a stream, simulstream's or SLTev's; "
    "whole, since it is not known in which segment of a recording something was erased.",
    "gone": "\n  fix: score SLTev's log.",
    "spoken": ", the source words with their times\n"
    "  fix: give `--word-times FILE`; in Python, `lagging.with_word_times`.",
}
"""Which logs have a column that most logs do not have."""

CHARACTERS: tuple[Callable[[str], int], ...] = (
    lambda text: len(tokens(text, "char")),
    lambda text: len(text.strip()),
    lambda text: len(text.strip().replace(" ", "")),
)
"""Ways to count characters: without white space; with it (OmniSTEval's logs); without plain spaces (SimulEval's)."""


@dataclass(frozen=True)
class _Times:
    """Delays on one clock; `charged` empty hypotheses have one token; `shared` caches what metrics compute of them."""

    g: Ragged
    ideal: Ragged
    durations: Ragged | None
    charged: npt.NDArray[np.bool_]
    shared: dict[str, Any] = field(default_factory=dict)


class Schedules:
    """The schedules of one Run under one convention; what several metrics need is computed once."""

    def __init__(self, run: Run, convention: Convention = PAPER) -> None:
        self.run = run
        self.convention = convention
        self._schedules: dict[tuple[object, ...], Schedule] = {}
        self._times_by_clock: dict[tuple[str, str], _Times] = {}

    def _stripped(self, column: Ragged) -> Ragged:
        """The column without the last entry of each row that belongs to a stripped `</s>`."""
        strip = self.convention.eos == "strip" and self.run.eos.any()
        return column.drop_last(self.run.eos) if strip else column

    @cached_property
    def reference_length(self) -> Floats | None:
        """Tokens of each reference as the convention counts them; NaN where there is none.

        standard    words between white space, or characters other than white space: as the hypothesis is counted
        simuleval   words are `split(" ")`: double spaces and spaces at the ends count, and an empty reference has 1;
                    characters include spaces
        fbk         as simuleval, but spaces at the ends do not count
        omnisteval  as fbk; characters of segments cut from a stream do not include plain spaces
        """
        counted, logged = self._counted(), self.run.reference_length
        if counted is None or logged is None:
            return logged if counted is None else counted
        return np.where(np.isnan(counted), logged, counted)

    def _counted(self) -> Floats | None:
        """Tokens of each reference text; None without texts, or if they cannot be counted in the log's tokens."""
        column, level, count = self.run.reference, self.run.level, self.convention.count
        if column is None or (level == "token" and count == "standard"):
            return None
        texts = column.tolist()
        if is_spm(level):  # SimulEval counts the pieces of a reference in the same way
            pieces = count_tokens(texts, level, np.zeros(len(texts), dtype=np.int64)).astype(np.float64)
            return np.where([text is None for text in texts], np.nan, pieces)
        if level != "char" and count in ("standard", "simuleval") and None not in texts:
            return (count_words(texts) if count == "standard" else count_spaces(texts) + 1).astype(np.float64)
        if level == "char" and count == "standard":
            return self._characters(texts)
        cut = level == "char" and count == "omnisteval" and self.run.seg != "none"
        length = COUNTING.get((level, f"{count}, cut" if cut else count), COUNTING["word", count])
        return np.array([np.nan if text is None else length(text) for text in texts], dtype=np.float64)

    def _characters(self, references: list[str | None]) -> Floats:
        """Characters of each reference, counted as those of its own hypothesis are.

        Other hypotheses are not looked at: then the length would depend on which segments are scored together.
        """
        predictions, lengths = self.run.prediction, self.run.delays.lengths.tolist()
        counts = np.full(len(references), np.nan)
        for row, (text, n) in enumerate(zip(references, lengths, strict=True)):
            if text is not None:
                written = None if predictions is None else predictions[row]
                fitting = (length for length in CHARACTERS if written is not None and length(written) == n)
                counts[row] = next(fitting, CHARACTERS[0])(text)
        return counts

    def length_of(self, metric: Metric) -> str:
        """Whose length is |y|: as set in the metric; if not, by the convention; if not, the metric's default."""
        metric = self.convention.resolve(metric)
        return str(metric.get("length")) if metric.uses("length") else "hypothesis"

    def for_metric(self, metric: Metric) -> Schedule:
        """The schedule that the metric sees.

        Raises:
            MetricError: the Run does not have what the metric needs.
        """
        metric = self.convention.resolve(metric)
        if self.run.unit == "none" and (metric.has("clock") or "tokens" in metric.needs):
            raise MetricError(
                "it needs delays, and this log has none\n"
                "  fix: score a log with delays; for text alone, ask for BLEU, chrF or TER."
            )
        length = self.length_of(metric)
        clock = str(metric.get("clock")) if metric.has("clock") else "ideal"
        empty = str(metric.get("empty")) if metric.has("empty") else "nan"
        key = (length, clock, empty)
        if key not in self._schedules:
            self._schedules[key] = self._make(length, clock, empty)
        if "tokens" in metric.needs and self.run.unit != "token":
            raise MetricError("it is defined for source tokens only, and these delays are milliseconds")
        return self._schedules[key]

    @cached_property
    def _ideal(self) -> Ragged:
        return self._stripped(self.run.delays)

    def _times(self, clock: str, empty: str) -> _Times:
        """The part of a schedule that does not depend on whose length |y| is."""
        run, ideal = self.run, self._ideal
        g = ideal if clock == "ideal" else self._stripped(clocks.clock(run, clock))
        durations = None if run.durations is None else self._stripped(run.durations)
        charged = (g.lengths == 0) if empty == "source" else np.zeros(len(run), dtype=bool)
        if charged.any():
            ideal = ideal.fill_empty(run.source_length)
            g = ideal if clock == "ideal" else g.fill_empty(run.source_length)
            if durations is not None:
                durations = durations.fill_empty(np.full(len(run), np.nan))
        return _Times(g, ideal, durations, charged)

    def _make(self, length: str, clock: str, empty: str) -> Schedule:
        run, x = self.run, self.run.source_length
        times = self._times_by_clock.get((clock, empty)) or self._times(clock, empty)
        self._times_by_clock[clock, empty] = times
        g, charged = times.g, times.charged
        y = hypothesis = g.lengths.astype(np.float64)
        length_from_hypothesis = np.zeros(len(run), dtype=bool)
        if length != "hypothesis":
            known = self.reference_length
            reference = np.full(len(run), np.nan) if known is None else known
            if length == "longest" and self.convention.count == "standard":
                reference = np.where(reference > 0, reference, np.nan)  # an empty reference counts as none
            if length == "longest" or self.convention.replaces_missing_reference:
                length_from_hypothesis = np.isnan(reference)
                reference = np.where(length_from_hypothesis, hypothesis, reference)
            y = np.maximum(hypothesis, reference) if length == "longest" else reference
        y = np.where(charged, 1.0, y)  # the one token that an empty hypothesis is charged with
        source_end = x - (self.convention.tolerance if run.unit == "ms" else 0.0)
        strip = self.convention.eos == "strip" and bool(run.marked.any())
        return Schedule(
            run,
            g,
            times.ideal,
            clock,
            x,
            y,
            source_end,
            length,
            length_from_hypothesis,
            strip,
            times.durations,
            times.shared,
        )
