# SPDX-License-Identifier: Apache-2.0
"""A Plan: what is scored of a log, by which metrics and convention, in which groups, and what is kept of segments."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, Self

from lagging.data.run import Run
from lagging.data.scripts import bleu_tokenizer
from lagging.errors import MetricError, UsageError
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.metrics.conventions import convention as convention_named
from lagging.scoring.poisson import SEED

if TYPE_CHECKING:
    from lagging.scoring.columns import Column
    from lagging.scoring.scores import Scores

__all__ = [
    "DEFAULT_METRICS",
    "LONGFORM_METRICS",
    "IntervalSettings",
    "Keep",
    "Plan",
    "check_additive",
    "default_bleu",
    "default_metrics",
    "default_resample",
]

DEFAULT_METRICS = ("AP", "AL", "LAAL", "DAL")
LONGFORM_METRICS = ("LongYAAL", "StreamLAAL", "DAL", "StreamDAL")
SPEECH_SEGMENT_METRICS = ("LongYAAL", "DAL", "EndOffset")
"""Of segments of output speech, where it is not known when they begin."""
"""Of segments cut from a stream, where AP has no meaning."""
WORD_METRICS = ("WordLag", "WordsMatched")
"""Beside the others, where the times of the source words are known."""

Keep = Literal["all", "values", "keys", "sums"]
"""What is kept of segments. The scores are the same.

- "all": what a comparison needs: values, ids, documents, source lengths and hashes of the references;
- "values": values, ids and documents;
- "keys": a number for each id, by which systems are known to have the same segments;
- "sums": nothing but sums.
"""


@dataclass(frozen=True)
class IntervalSettings:
    """How intervals are made.

    Attributes:
        resample: "segment" or "document"; None to decide by the log.
        confidence: between 0 and 1.
        method: "bca", "wild", … or "poisson", for segments that are only added up; None to decide by the log.
        resamples: their number; None for the default of the method.
        seed: of the random numbers.
    """

    resample: str | None = None
    confidence: float = 0.95
    method: str | None = None
    resamples: int | None = None
    seed: int = SEED


@dataclass(frozen=True)
class Plan:
    """What is scored of a log, and how.

    Attributes:
        metrics: None until the first part of a log decides the defaults.
        convention: how lengths, the end of the source and `</s>` are treated.
        group_by: the columns that divide the segments into groups; their labels are in `Run.group`.
        keep: what is kept of segments; of groups, nothing but sums is.
        summary: whether percentiles of the segments' values are kept beside sums; groups always have them.
        seed: of a Poisson bootstrap over sums; None without one.
        external: columns of scores that were made elsewhere, which are matched with the segments.
        adds_bleu: whether BLEU is scored beside the metrics that were named, by the tokenizer that fits the references.
        default_bleu: whether the references have decided the tokenizer of BLEU.

    Example:
        >>> Plan.make("AL").metrics
        (AL,)
    """

    metrics: tuple[Metric, ...] | None
    convention: Convention
    group_by: tuple[str, ...] = ()
    keep: Keep = "all"
    summary: bool = False
    seed: int | None = None
    external: tuple[Column, ...] = ()
    adds_bleu: bool = False
    default_bleu: bool = False

    @classmethod
    def make(
        cls,
        metrics: Iterable[str | Metric] | str | None = None,
        convention: str | Convention = "paper",
        *,
        group_by: Iterable[str] = (),
        keep: Keep = "all",
        summary: bool = False,
        seed: int | None = None,
        external: Iterable[Column] = (),
        adds_bleu: bool = False,
    ) -> Self:
        """Make a Plan of names.

        A metric may also be named by a column: then it is read, and not computed.

        Raises:
            MetricError: there is no such metric, or it cannot be scored by group.
        """
        names = [metrics] if isinstance(metrics, str) else metrics
        columns = tuple(external)
        read = {column.name for column in columns}
        chosen = None if names is None else tuple(dict.fromkeys(metric(n) for n in names if str(n) not in read))
        if chosen == () and not columns:
            raise UsageError("no metric was named")
        groups = tuple(group_by)
        summary = summary or bool(groups) or seed is not None
        plan = cls(chosen, convention_named(convention), groups, "sums" if summary else keep, summary, seed, columns)
        plan = replace(plan, adds_bleu=adds_bleu)
        return plan._checked()

    def _checked(self) -> Self:
        if self.summary and self.metrics is not None:
            check_additive(self.metrics, self.convention)
        return self

    def resolve(self, run: Run) -> Self:
        """The same Plan with metrics: the defaults for a log that begins with this Run, if none were named."""
        if self.metrics is None:
            return replace(self, metrics=tuple(map(metric, default_metrics(run))), default_bleu=True)._checked()
        if self.adds_bleu:
            metrics = (*self.metrics, metric(default_bleu(run)))
            return replace(self, metrics=metrics, adds_bleu=False, default_bleu=True)._checked()
        return self

    @property
    def resolved_metrics(self) -> dict[Metric, Metric]:
        """Each metric as it was named, and with what the convention sets."""
        defaults = (*DEFAULT_METRICS, *LONGFORM_METRICS, *SPEECH_SEGMENT_METRICS)
        metrics = map(metric, dict.fromkeys(defaults)) if self.metrics is None else self.metrics
        return {m: self.convention.resolve(m) for m in metrics}

    @property
    def columns(self) -> set[str]:
        """The columns of a log that must be read: what the metrics need, and, where segments are kept, documents."""
        needed = {column for m in self.resolved_metrics.values() for column in m.columns}
        needed |= {"prediction", "reference"} if self.adds_bleu else set()
        return needed if self.summary else {"document", *needed}

    @property
    def keeps_values(self) -> bool:
        """Whether the values of segments are kept."""
        return self.keep in ("all", "values")


def default_metrics(run: Run) -> tuple[str, ...]:
    """The metrics that are scored if none is named: of latency, with WordLag and BLEU where they can be computed.

    The tokenizer of BLEU is the one that fits the references: see `default_bleu`.

    Args:
        run: a Run, or the first part of one.

    Raises:
        MetricError: it has neither delays nor references.

    Example:
        >>> import lagging
        >>> default_metrics(lagging.Run.from_delays([[1, 2]], source_length=[2]))
        ('AP', 'AL', 'LAAL', 'DAL')
        >>> default_metrics(lagging.Run.from_texts(["good day"], reference=["good day"]))
        ('BLEU', 'chrF')
    """
    quality = run.reference is not None and run.has_text and any(run.reference)
    if run.unit == "none" and not quality:
        raise MetricError(
            f"{run.origin.path or run.name} has neither delays nor references, so nothing can be scored\n"
            "  fix: give each segment its `delays`, or its `reference`."
        )
    if run.unit == "none":
        return default_bleu(run), "chrF"
    is_longform = run.seg != "none" and run.offset is not None and run.recording_end is not None
    latency: tuple[str, ...] = LONGFORM_METRICS if is_longform else DEFAULT_METRICS
    if run.origin.format == "s2s" and run.recording_end is not None and not is_longform:
        latency = SPEECH_SEGMENT_METRICS
    words = WORD_METRICS if run.spoken is not None else ()
    return (*latency, *words, default_bleu(run)) if quality else (*latency, *words)


def default_bleu(run: Run) -> str:
    """BLEU with the tokenizer that fits most references: `zh` for Chinese, `char` for other scripts without spaces.

    Args:
        run: a Run, or the first part of one; its first 200 references decide.

    Example:
        >>> import lagging
        >>> default_bleu(lagging.Run.from_texts(["你好"], reference=["你好吗"]))
        'BLEU(tok=zh)'
    """
    tokenizer = bleu_tokenizer(() if run.reference is None else run.reference)
    return "BLEU" if tokenizer == "13a" else f"BLEU(tok={tokenizer})"


def default_resample(*systems: Scores) -> str:
    """What is resampled if nothing is named: recordings, where segments were cut from several; else segments.

    Segments of which one has no recording can be resampled by segment only.

    Example:
        >>> import lagging
        >>> def scores(seg):
        ...     run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], document=["a", "b"], seg=seg)
        ...     return lagging.score(run, ["DAL"])
        >>> default_resample(scores("none")), default_resample(scores("given"))
        ('segment', 'document')
    """
    firsts = [next(iter(scores)) for scores in systems]
    documents = [set(s.documents.tolist()) for s in firsts if s.documents is not None]
    several = any(len(names) > 1 for names in documents) and not any(None in names for names in documents)
    return "document" if several and all(s.signature.get("seg") != "none" for s in firsts) else "segment"


def check_additive(metrics: Iterable[Metric], convention: Convention) -> None:
    """Refuse metrics whose corpus value is not a function of sums over the segments.

    Example:
        >>> check_additive([metric("AL"), metric("LagPercentile")], convention_named("paper"))
        Traceback (most recent call last):
        lagging.errors.MetricError: LagPercentile cannot be tallied: it pools the tokens of all segments
    """
    for m in metrics:
        resolved = convention.resolve(m)
        reason = ""
        if resolved.needs_corpus:
            reason = "the value of a segment depends on the other segments"
        elif resolved.pool is not None:
            reason = "it pools the tokens of all segments"
        elif not resolved.adds_up:
            reason = "its value is no function of sums over the segments"
        if reason:
            raise MetricError(f"{m!r} cannot be tallied: {reason}")
