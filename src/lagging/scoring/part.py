# SPDX-License-Identifier: Apache-2.0
"""One Run scored by a Plan: the statistics of each segment, why some have none, and the signature of every number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from lagging.data.checks import about, number
from lagging.data.ragged import Floats, Ints
from lagging.data.run import Run
from lagging.data.scripts import SAMPLE, are_unspaced
from lagging.errors import MetricError, MetricNameError, Note, UnavailableError, merge_notes
from lagging.metrics import Metric
from lagging.metrics.clocks import find_cumulative_elapsed
from lagging.metrics.record import Statistics
from lagging.metrics.schedule import REASONS, Schedules
from lagging.scoring.columns import Matching, is_read
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
    ("time", "none"): "none",
    ("drift", "none"): "none",
}
"""The unit of a value, by the metric's unit and the log's; a ratio, a count and points have none. In a log without
times, a time is undefined, and has no unit."""


def reason(m: Metric, code: int, unavailable: str = "") -> str:
    """Why a segment has no value, in words; `unavailable` says why the whole metric has none, and how to fix it."""
    return REASONS[code] if code < len(REASONS) else unavailable.partition("\n")[0] or m.undefined


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
        unavailable: why the metric cannot be computed here; empty if it can.
    """

    metric: Metric
    resolved: Metric
    unit: str
    rows: Statistics
    codes: Codes
    length: str
    length_from_hypothesis: npt.NDArray[np.bool_]
    unavailable: str = ""

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
        more = m.resolved.describe(m.resolved) if m.resolved.describe is not None and not m.unavailable else ()
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
        if is_read(resolved):
            return {"seg": run.seg, "mean": "segment"}
        timed = resolved.has("clock")
        counted = timed or "tokens" in resolved.needs
        by_reference = resolved.uses("length") and m.length != "hypothesis"
        cut = run.seg not in ("none", "given")  # by tokens of this level, and, in a unit, by their times
        tolerance = convention.tolerance
        spoken = run.spoken if "spoken" in resolved.needs else None
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
            "words": None if spoken is None else spoken.times,
            "match": None if spoken is None else spoken.match,
            "align": None if spoken is None else spoken.alignment or None,
            **(dict(run.given) if counted or cut else {}),
        }

    def _eos(self, resolved: Metric, marked: int, dropped: int) -> str | None:
        """What was done with final `</s>`: a metric of time drops its delay, a metric of text its text."""
        affected = dropped if resolved.has("clock") else marked
        if not marked and not affected:
            return None
        return "stripped" if self.plan.convention.eos == "strip" and affected else "kept"

    @cached_property
    def notes(self) -> tuple[Note, ...]:
        """What a reader of the scores must know about the log."""
        notes = list(self.run.notes)
        resolved = [m.resolved for m in self.metrics]
        tokenizers = {str(m.get("tok")) for m in resolved if m.has("tok")}
        if "13a" in tokenizers and self.run.reference is not None and are_unspaced(self.run.reference, SAMPLE):
            text = "BLEU with the tokenizer 13a means little: ask for BLEU(tok=zh), ja-mecab or char"
            notes.append(Note("SCRIPT WITHOUT SPACES", text))
        elif self.plan.default_bleu and (chosen := tokenizers & {"zh", "char"}):
            text = f"of most references, so BLEU is counted with the tokenizer {chosen.pop()}, not with 13a"
            notes.append(Note("SCRIPT WITHOUT SPACES", text))
        for m in self.metrics:
            if m.unavailable:
                lines = [line.strip() for line in m.unavailable.splitlines()]
                notes.append(Note("UNDEFINED", f"{m.metric!r}: {'; '.join(lines)}"))
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
        run, notes = self.run, list[Note]()
        keep = self.plan.convention.eos == "keep"
        lone, marked = int(run.lone.sum()), int(run.marked.sum())
        dropped = int(run.eos.sum()) - lone
        if lone:
            action = (
                "counted as a token" if keep else "stripped, so there is no latency (--convention simuleval counts it)"
            )
            notes += about(run, "EMPTY TEXT WITH A DELAY", f"the delay is that of the end: {action}", run.lone)
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
        if run.spoken is not None and not any("spoken" in m.resolved.needs for m in self.metrics):
            notes.append(Note("WORD TIMES NOT USED", "no metric here needs them: ask for WordLag, MAAL or EVS"))
        replaced = max((int(m.length_from_hypothesis.sum()) for m in self.metrics), default=0)
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
                reason(m.metric, code, m.unavailable): tuple(self.run.id[m.codes == code].tolist())
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


def score_part(run: Run, plan: Plan, matchings: Sequence[Matching] = ()) -> Part:
    """Score a Run.

    A metric that cannot be computed on it stops no other: it has no value, and the reason is kept.

    Args:
        run: the Run.
        plan: the Plan.
        matchings: the columns of the Plan, matched with the segments before these.

    Raises:
        MetricError: no metric can be computed on it, or one has a parameter that does not exist; the message names
            metric and log.
    """
    assert plan.metrics is not None
    schedules = Schedules(run, plan.convention)
    metrics: list[MetricPart] = []
    errors: dict[Metric, MetricError] = {}
    for m, resolved in plan.resolved_metrics.items():
        try:
            schedule = schedules.for_metric(resolved)
            rows = resolved.statistics(schedule)
        except MetricNameError as error:
            raise _locate(error, m, run) from None
        except MetricError as error:
            errors[m] = error
            none, codes = np.full((len(run), 1), np.nan), np.full(len(run), len(REASONS), dtype=np.int8)
            unit, length = UNITS.get((m.unit, run.unit), m.unit), np.zeros(len(run), dtype=bool)
            metrics.append(MetricPart(m, resolved, unit, none, codes, "hypothesis", length, str(error)))
            continue
        codes = schedule.undefined(resolved)
        codes[~resolved.has_value(rows) & (codes == 0)] = len(REASONS)
        unit = UNITS.get((m.unit, run.unit), m.unit)
        metrics.append(MetricPart(m, resolved, unit, rows, codes, schedule.length, schedule.length_from_hypothesis))
    for matching in matchings:
        m, rows = matching.column.metric, matching.take(run.id)[:, None]
        codes = np.where(np.isnan(rows[:, 0]), len(REASONS), 0).astype(np.int8)
        metrics.append(MetricPart(m, m, m.unit, rows, codes, "", np.zeros(len(run), dtype=bool)))
    if len(errors) == len(metrics):
        for m, refusal in errors.items():
            if not isinstance(refusal, UnavailableError):
                raise _locate(refusal, m, run) from None
    return Part(run, plan, tuple(metrics))


def _locate(error: MetricError, m: Metric, run: Run) -> MetricError:
    """The error with the names of metric and log."""
    where = run.origin.path or run.name
    return type(error)(f"{m!r}{f' of {where}' if where else ''}: {error}")
