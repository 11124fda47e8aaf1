# SPDX-License-Identifier: Apache-2.0
"""A Schedule: the g, |x| and |y| that a metric sees, once clock, lengths and convention are settled."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.conventions import PAPER, Convention
from lagging.errors import MetricError
from lagging.metrics import kernels
from lagging.metrics.record import Metric
from lagging.ragged import Floats, Kernel, Ragged
from lagging.run import Run
from lagging.text import count_spaces, without_eos

__all__ = ["REASONS", "Schedule", "Schedules"]

REASONS = ("", "empty hypothesis", "empty source", "no reference", "empty reference")
"""Why a segment has no value: the text for each code of `Schedule.undefined`."""


@dataclass(frozen=True)
class Schedule:
    """What a metric sees of a Run.

    Attributes:
        run: the Run.
        g: delays, on the clock asked for, without a stripped `</s>`.
        x: |x|, source lengths.
        y: |y| as it enters γ; NaN where the reference that it should come from is missing.
        reach: from which delay on the source counts as fully read.
        length: whose length y is.
        reference_length: reference lengths under the convention; None without references.
        stood_in: where the hypothesis length stood in for a missing reference.
        strip: whether a final `</s>` is stripped.
    """

    run: Run
    g: Ragged
    x: Floats
    y: Floats
    reach: Floats
    length: str
    reference_length: Floats | None
    stood_in: npt.NDArray[np.bool_]
    strip: bool

    @cached_property
    def lags(self) -> Ragged:
        """ℓ(t) = g(t) − (t−1)/γ of every token: what AL, LAAL, YAAL and DAL average."""
        return self.g.by_token(kernels.lags, self.x, self.y)

    @cached_property
    def cutoff(self) -> Floats:
        """τ of every segment."""
        return self.g.by_row(kernels.cutoff, self.reach)

    def by_row(self, kernel: Kernel, *columns: npt.NDArray[np.generic]) -> Floats:
        """`kernel(g, *columns)` for the segments of each length: one number per segment."""
        return self.g.by_row(kernel, *columns)

    @cached_property
    def predictions(self) -> list[str | None]:
        """Texts of the hypotheses, without a stripped `</s>`."""
        if self.run.prediction is None:
            raise MetricError("this Run has no predictions; quality needs their text")
        texts: list[str | None] = self.run.prediction.tolist()
        return [text and without_eos(text) for text in texts] if self.strip else texts

    @cached_property
    def references(self) -> list[str | None]:
        """Texts of the references, without the newline that some logs leave at their end."""
        if self.run.reference is None:
            raise MetricError("this Run has no references; quality needs them")
        return [None if text is None else text.strip() for text in self.run.reference]

    def undefined(self, metric: Metric) -> npt.NDArray[np.int8]:
        """Why each segment has no value under this metric: a place in `REASONS`; 0 where it may have one."""
        code = np.zeros(len(self.run), dtype=np.int8)
        if "reference" in metric.needs:
            for row, text in enumerate(self.references):
                code[row] = 3 if text is None else 4 if not text else 0
        if "length" in metric.needs:
            code[np.isnan(self.y)] = 3
            code[self.y == 0] = 4
        if metric.has("clock") or "tokens" in metric.needs:
            code[self.x == 0] = 2
        if metric.has("clock"):
            code[self.g.lengths == 0] = 1
        return code


class Schedules:
    """The schedules of one Run under one convention; what several metrics need is made once."""

    def __init__(self, run: Run, convention: Convention = PAPER) -> None:
        self.run = run
        self.convention = convention
        self._made: dict[tuple[object, ...], Schedule] = {}

    @cached_property
    def _stripped(self) -> dict[str, Ragged]:
        strip = self.convention.eos == "strip" and self.run.eos.any()
        columns = {"ideal": self.run.delays, "elapsed": self.run.elapsed}
        return {c: g.drop_last(self.run.eos) if strip else g for c, g in columns.items() if g is not None}

    @cached_property
    def reference_length(self) -> Floats | None:
        """Tokens of each reference as the convention counts them; NaN where there is none.

        standard    words between white space, or characters other than white space: as the hypothesis is counted
        simuleval   `split(" ")`, so that double spaces count and an empty reference is 1; characters with spaces
        omnisteval  the same, and characters without stripping the ends
        """
        texts, level = self.run.reference, self.run.level
        if self.run.reference_length is not None and (level == "token" or texts is None):
            return self.run.reference_length
        if texts is None or level == "token":
            return None
        count = self.convention.count
        if level == "word" and count != "standard" and None not in (known := texts.tolist()):
            return (count_spaces(known) + 1).astype(np.float64)
        if level == "word":
            counted = (lambda t: len(t.split())) if count == "standard" else (lambda t: t.count(" ") + 1)
        elif count == "standard":
            counted = lambda t: len("".join(t.split()))  # noqa: E731  one of five ways to count, side by side
        elif count == "simuleval":
            counted = lambda t: len(t.strip())  # noqa: E731
        else:
            counted = len
        return np.array([np.nan if t is None else counted(t) for t in texts.tolist()], dtype=np.float64)

    def length_of(self, metric: Metric) -> str:
        """Whose length is |y|: as set in the metric, else by the convention, else the metric's default."""
        if not metric.has("length"):
            return "hypothesis"
        if metric.is_set("length"):
            return str(metric.get("length"))
        return self.convention.length.get(metric.name, str(metric.get("length")))

    def of(self, metric: Metric) -> Schedule:
        """The schedule that the metric sees."""
        length = self.length_of(metric)
        clock = str(metric.get("clock")) if metric.has("clock") else "ideal"
        empty = str(metric.get("empty")) if metric.has("empty") else "nan"
        key = (length, clock, empty)
        if key not in self._made:
            self._check(metric, length, clock)
            self._made[key] = self._make(length, clock, empty)
        if "tokens" in metric.needs and self.run.unit != "token":
            raise MetricError(f"{metric} is defined for source tokens only; this log's delays are milliseconds")
        return self._made[key]

    def _check(self, metric: Metric, length: str, clock: str) -> None:
        if clock == "elapsed" and self.run.elapsed is None:
            raise MetricError(f"{metric} needs elapsed times, and this log has none")
        if clock == "elapsed" and self.run.unit != "ms":
            raise MetricError(
                f"{metric} cannot be computed: this log counts its source in tokens and elapsed time in milliseconds\n"
                "  fix: ask for the ideal clock, or score a log of speech input."
            )
        if length == "reference" and self.reference_length is None and not self.convention.stand_in:
            raise MetricError(f"{metric} needs reference lengths, and this log has no references counted in its tokens")

    def _make(self, length: str, clock: str, empty: str) -> Schedule:
        run, g = self.run, self._stripped[clock]
        x = run.source_length
        if empty == "source":
            g = g.fill_empty(x)
        hypothesis = g.lengths.astype(np.float64)
        reference = self.reference_length if length != "hypothesis" else None
        missing = np.isnan(reference) if reference is not None else np.ones(len(run), dtype=bool)
        y, stood_in = hypothesis, np.zeros(len(run), dtype=bool)
        if length != "hypothesis":
            known = np.where(missing, hypothesis, np.nan if reference is None else reference)
            if length == "longest":
                y, stood_in = np.maximum(hypothesis, known), missing
            elif self.convention.stand_in:
                y, stood_in = known, missing
            else:
                y = np.where(missing, np.nan, known)
        reach = x - (self.convention.tolerance if run.unit == "ms" else 0.0)
        strip = self.convention.eos == "strip" and bool(self.run.marked.any())
        return Schedule(run, g, x, y, reach, length, reference, stood_in, strip)
