# SPDX-License-Identifier: Apache-2.0
"""What `lagging score` is asked for: by its options alone, by a shared task, or by signatures that it repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lagging.comparison.regimes import regime
from lagging.data.tokens import is_spm
from lagging.errors import UsageError
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.metrics.conventions import convention as named_convention
from lagging.scoring.columns import Columns
from lagging.scoring.plan import IntervalSettings, Keep, Plan
from lagging.scoring.signature import Settings, Signature, settings
from lagging.stats import RESAMPLES, check_confidence

__all__ = ["Request", "parse_columns"]


@dataclass(frozen=True)
class Request:
    """What is scored, and how: by the options alone, by a shared task, or as a signature says.

    Attributes:
        metrics: None for the default ones.
        convention: how lengths and edge cases are treated.
        cutting: how streams are cut, and which files give the texts.
        options: how the logs are read.
        interval: how intervals are made; None without them.
        group_by: the columns that divide the segments into groups.
        task: the shared task that judges the scores.
        signatures: those that are repeated.
        adds_bleu: whether BLEU is scored too, by the tokenizer that fits the references.
    """

    metrics: list[Metric] | None
    convention: Convention
    cutting: Cutting
    options: ReadOptions
    interval: IntervalSettings | None
    group_by: tuple[str, ...] = ()
    task: str | None = None
    signatures: tuple[Signature, ...] = ()
    adds_bleu: bool = False

    @property
    def is_poisson(self) -> bool:
        """Whether the intervals are those of a Poisson bootstrap over segments that are only added up."""
        return self.interval is not None and self.interval.method == "poisson"

    def resolve(self, task: str | None, like: Sequence[str], explicit: bool) -> Request:
        """The request with what a shared task, or signatures to repeat, say.

        Args:
            task: name of a shared task; None for none.
            like: signatures, as text.
            explicit: whether a convention was named beside them.
        """
        request = self if task is None else self.by_regime(task, named=bool(like) or explicit)
        return request.by_signatures([Signature.parse(text) for text in like], explicit) if like else request

    def by_regime(self, task: str, named: bool) -> Request:
        """The request of a shared task, with the metrics that were named beside its own."""
        if named or self.cutting.aligner is not None:
            raise UsageError("--regime says itself how to cut and count; leave --like, --convention and --aligner out")
        official = regime(task)
        return replace(
            self,
            metrics=[metric(official.metric), *(self.metrics or official.quality)],
            adds_bleu=self.metrics is None and official.tokenizer is None,
            convention=named_convention(official.convention),
            cutting=self.cutting.with_aligner(official.aligner),
            task=task,
        )

    def by_signatures(self, signatures: Sequence[Signature], explicit: bool) -> Request:
        """The request that makes the numbers with these signatures again.

        Args:
            signatures: the signatures; they must agree in how the log is read and counted.
            explicit: whether a convention was named beside them.
        """
        if self.metrics:
            raise UsageError("--like names its metric itself; leave -m out")
        if explicit:
            raise UsageError("--like says itself how to count; leave --convention out")
        repeated = [settings(signature) for signature in signatures]
        first = repeated[0]
        interval = self.interval
        if first.interval is not None:
            resamples = first.interval.resamples
            check_confidence(first.interval.confidence, RESAMPLES if resamples is None else resamples)
            interval = first.interval
        return replace(
            self,
            metrics=[s.metric for s in repeated],
            convention=first.convention,
            cutting=self.cutting.with_aligner(first.aligner) if first.aligner else self.cutting,
            options=_options_of(repeated, self.options),
            interval=interval,
            signatures=tuple(signatures),
        )

    def plan(self, *, adds_up: bool, keeps_values: bool, systems: int, columns: Columns) -> Plan:
        """The Plan of the request.

        Args:
            adds_up: whether segments are only added up: by group, on Spark, or for a Poisson bootstrap.
            keeps_values: whether the values of segments are needed for something else than intervals and verdicts.
            systems: their number; of several it must be known whether they have the same segments.
            columns: scores that were made elsewhere.
        """
        if adds_up:
            self._check_groups()
        keep: Keep = "keys" if systems > 1 else "sums"
        if keeps_values or self.interval is not None or self.task is not None:
            keep = "values"
        seed = self.interval.seed if adds_up and self.interval is not None else None
        return Plan.make(
            self.metrics,
            self.convention,
            group_by=self.group_by,
            keep=keep,
            summary=adds_up,
            seed=seed,
            external=columns.every,
            adds_bleu=self.adds_bleu,
        )

    def _check_groups(self) -> None:
        """Refuse what cannot be done by group."""
        if self.cutting.requested:
            raise UsageError("--by groups segments as they are in the log; leave --segmentation and --reference out")
        if self.task is not None:
            raise UsageError("--regime judges a whole log; leave --by out")
        interval = self.interval
        if interval is not None and (interval.resample == "document" or interval.method not in (None, "poisson")):
            raise UsageError("intervals of groups are those of a Poisson bootstrap over segments, and no others")


def _options_of(repeated: Sequence[Settings], options: ReadOptions) -> ReadOptions:
    """The read options that several signatures agree in."""
    first = repeated[0]
    agreed: dict[str, str | None] = {}
    for key in ("level", "unit"):
        values = {value for s in repeated if (value := getattr(s, key)) is not None}
        if len(values) > 1:
            raise UsageError(f"the signatures differ in {key}: {', '.join(sorted(values))}; score them one at a time")
        agreed[key] = values.pop() if values else None
    for s in repeated:
        if s.read_settings != first.read_settings:
            raise UsageError("the signatures differ in how the log is read or counted; score them one at a time")
    level = agreed["level"]
    both_pieces = is_spm(options.level or "") and is_spm(level or "")
    if both_pieces and level != options.level:
        raise UsageError(f"the model given is {options.level}, but {level} is needed")
    return replace(
        options,
        level=level if options.level in (None, "spm") else options.level,
        unit_hint=agreed["unit"],  # what the log itself says of its unit goes before
        repair=(*options.repair, *first.repair),
        strip=(*options.strip, *first.strip),
        time_unit=options.time_unit or first.time_unit,
        source_length=options.source_length or first.source_length,
    )


def parse_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """The columns of `--by`, which may be repeated."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if "" in names:
        raise UsageError("--by takes names of columns with commas between, such as lang,model")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--by names the column {repeated[0]!r} twice")
    return tuple(names)
