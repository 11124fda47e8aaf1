# SPDX-License-Identifier: Apache-2.0
"""One Run scored by a Plan: the statistics of each segment, why some have none, and the signature of every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.data.checks import number
from lagging.data.ragged import Floats, Ints
from lagging.data.run import Run
from lagging.data.tokens import is_unspaced
from lagging.errors import MetricError, Note, merge_notes
from lagging.metrics import Metric
from lagging.metrics.clocks import find_cumulative_elapsed
from lagging.metrics.record import Statistics
from lagging.metrics.schedule import REASONS, Schedules
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature
from lagging.version import __version__

__all__ = ["Codes", "MetricPart", "Part", "reason", "score_part"]

Codes = npt.NDArray[np.int8]
"""Why each segment has no value; 0 if it has one."""

UNITS = {
    ("time", "token"): "token",
    ("time", "ms"): "ms",
    ("drift", "token"): "token/100",
    ("drift", "ms"): "ms/min",
}
"""The unit of a value, by the metric's unit and the log's; a ratio, a count and points have none."""


def reason(m: Metric, code: int) -> str:
    """Why a segment has no value, in words."""
    return REASONS[code] if code < len(REASONS) else m.undefined


@dataclass(frozen=True)
class MetricPart:
    """What one metric gives for the segments of one Run.

    Attributes:
        metric, resolved: the metric as it was named, and with what the convention sets.
        unit: of its values.
        rows: the statistics of each segment.
        codes: why each segment has no value; 0 if it has one.
        length: whose length is |y|.
        length_from_hypothesis: whether the hypothesis length stands in for that of a missing reference.
    """

    metric: Metric
    resolved: Metric
    unit: str
    rows: Statistics
    codes: Codes
    length: str
    length_from_hypothesis: npt.NDArray[np.bool_]

    @cached_property
    def segments(self) -> Floats:
        """The value of each segment."""
        return self.resolved.segments(self.rows)


@dataclass(frozen=True)
class Part:
    """A Run that was scored.

    Attributes:
        run: the Run.
        plan: the Plan.
        metrics: what each metric gives.
    """

    run: Run
    plan: Plan
    metrics: tuple[MetricPart, ...]

    @property
    def written(self) -> bool:
        """Whether anything was written in these segments; if not, they do not tell unit and level."""
        return len(self.run.delays.values) > 0

    @property
    def has_references(self) -> bool:
        """Whether the segments came with references, even empty ones."""
        return self.run.reference is not None or self.run.reference_length is not None

    def signatures(self, m: MetricPart, group: Ints | None = None, groups: int = 1) -> list[Signature]:
        """How the value of each group of segments was made."""
        group = np.zeros(len(self.run), dtype=np.int64) if group is None else group

        def count(mask: npt.NDArray[np.bool_]) -> list[int]:
            counts: list[int] = np.bincount(group[mask], minlength=groups).tolist()
            return counts

        defined = count(m.codes == 0)
        marked, dropped = count(self.run.marked), count(self.run.eos)
        replaced = count(m.length_from_hypothesis)
        more = m.resolved.describe(m.resolved) if m.resolved.describe is not None else ()
        fields, name = self._fields(m), m.resolved.name_with_params
        by_counts: dict[tuple[int, str | None, int], Signature] = {}
        signatures = []
        for g in range(groups):
            key = (defined[g], self._eos(m.resolved, marked[g], dropped[g]), replaced[g])
            if key not in by_counts:
                counted = {"eos": key[1], "noref": str(key[2]) if key[2] else None}
                by_counts[key] = Signature.make(name, fields | counted, more, key[0], __version__)
            signatures.append(by_counts[key])
        return signatures

    def _fields(self, m: MetricPart) -> dict[str, str | None]:
        """The fields of a signature that are the same for all segments."""
        resolved, run, convention = m.resolved, self.run, self.plan.convention
        timed = resolved.has("clock")
        counted = timed or "tokens" in resolved.needs
        by_reference = resolved.uses("length") and m.length != "hypothesis"
        cut = run.seg not in ("none", "given")  # by tokens of this level, and, in a unit, by their times
        tolerance = convention.tolerance
        return {
            "unit": run.unit if counted or resolved.unit == "time" or cut else None,
            "length": m.length if resolved.uses("length") else None,
            "clock": str(resolved.get("clock")) if timed else None,
            "level": run.level if counted or "level" in resolved.needs or cut else None,
            "empty": str(resolved.get("empty")) if resolved.has("empty") else None,
            "seg": run.seg,
            "mean": str(resolved.get("mean")) if resolved.has("mean") else None,
            "tol": number(tolerance) if "cutoff" in resolved.needs and run.unit == "ms" and tolerance != 1.0 else None,
            "count": convention.count if by_reference and convention.count != "standard" else None,
            "repair": "+".join(sorted(name for name, count in run.repaired if count)) or None,
            "strip": "+".join(sorted(kind for kind, count in run.stripped if count)) or None,
        }

    def _eos(self, resolved: Metric, marked: int, dropped: int) -> str | None:
        """What was done with final `</s>`: a metric of time drops its delay, a metric of text its text."""
        if not marked:
            return None
        affected = dropped if resolved.has("clock") else marked
        return "stripped" if self.plan.convention.eos == "strip" and affected else "kept"

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What a reader of the scores must know about the log."""
        notes = list(self.run.notes)
        resolved = [m.resolved for m in self.metrics]
        if any(m.has("tok") and m.get("tok") == "13a" for m in resolved) and _is_unspaced(self.run):
            text = "BLEU with the tokenizer 13a means little: ask for BLEU(tok=zh), ja-mecab or char"
            notes.append(Note("SCRIPT WITHOUT SPACES", text))
        if any(m.has("clock") and m.get("clock") == "elapsed" for m in resolved) and (
            names := find_cumulative_elapsed(self.run)
        ):
            text = (
                "clock=elapsed (_CA) counts all computing since the recording began, as if nothing were computed while "
                "it is heard: ask for clock=queue, what listeners see, or clock=fbk or omnisteval, what is published"
            )
            notes.append(Note("ELAPSED TIMES ADD UP", text, len(names), tuple(names[:5]), "recording"))
        return merge_notes(notes)

    @cached_property
    def scoring_notes(self) -> tuple[Note, ...]:
        """What a reader of the scores must know about how they were made; they come after all notes about the log."""
        run, notes = self.run, []
        keep = self.plan.convention.eos == "keep"
        dropped, marked = int(run.eos.sum()), int(run.marked.sum())
        if dropped:
            action = "counted as a token" if keep else f"stripped{' with its delay' * (run.unit != 'none')}"
            notes.append(Note("</s>", f"the hypothesis ends in it: {action}", dropped))
        if marked > dropped:
            action = "kept" if keep else "its text is stripped, and no delay is"
            text = f"the hypothesis ends in it, but it is not known which delay, if any, belongs to it: {action}"
            notes.append(Note("</s>", text, marked - dropped))
        for name, count in sorted(run.repaired):
            notes.append(Note("repaired", f"by --repair {name}", count))
        for kind, count in sorted(run.stripped):
            notes.append(Note("stripped", f"{kind}, of hypotheses and references", count, noun="token"))
        replaced = max(int(m.length_from_hypothesis.sum()) for m in self.metrics)
        if replaced:
            text = "the hypothesis length stands in for that of the reference"
            if self.has_references and run.level == "token":
                text += ", because the log does not give the reference length in its own tokens, or in pieces of speech"
            notes.append(Note("no reference", text, replaced))
        return merge_notes(notes)

    def scores(self, system: str = "") -> Scores:
        """The scores of these segments alone, with the value of each."""
        scores = []
        for m in self.metrics:
            reasons = {
                reason(m.metric, code): tuple(self.run.id[m.codes == code].tolist())
                for code in sorted(set(m.codes.tolist()) - {0})
            }
            scores.append(
                Score(
                    metric=m.metric,
                    value=m.resolved.corpus(m.rows),
                    statistics=m.rows,
                    ids=self.run.id,
                    undefined=Undefined(reasons),
                    unit=m.unit,
                    signature=self.signatures(m)[0],
                    resolved=m.resolved,
                    documents=self.run.document,
                )
            )
        return Scores(scores, system, merge_notes([*self.notes, *self.scoring_notes]))


def score_part(run: Run, plan: Plan) -> Part:
    """Score a Run.

    Raises:
        MetricError: a metric cannot be computed on it; the message names metric and log.
    """
    assert plan.metrics is not None
    schedules = Schedules(run, plan.convention)
    metrics = []
    for m, resolved in plan.resolved_metrics.items():
        try:
            schedule = schedules.for_metric(resolved)
            rows = resolved.statistics(schedule)
        except MetricError as error:
            where = run.origin.path or run.name
            raise type(error)(f"{m!r}{f' of {where}' if where else ''}: {error}") from None
        codes = schedule.undefined(resolved)
        codes[~resolved.has_value(rows) & (codes == 0)] = len(REASONS)
        unit = UNITS.get((m.unit, run.unit), m.unit)
        metrics.append(MetricPart(m, resolved, unit, rows, codes, schedule.length, schedule.length_from_hypothesis))
    return Part(run, plan, tuple(metrics))


def _is_unspaced(run: Run) -> bool:
    """Whether most references are in a script without spaces, as far as the first few show."""
    sample: Sequence[str] = [] if run.reference is None else [text for text in run.reference[:200] if text]
    return bool(sample) and 2 * sum(map(is_unspaced, sample)) > len(sample)
