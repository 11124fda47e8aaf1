# SPDX-License-Identifier: Apache-2.0
"""`lagging score`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

import click
from click.core import ParameterSource

from lagging.cli.gates import gate_option, report_failed_gates
from lagging.cli.messages import Messages, emit, has_colour, progress_bar, terminal_width
from lagging.cli.options import (
    convention_option,
    cutting_options,
    format_option,
    message_options,
    metric_option,
    output_option,
    parse_metrics,
    quarantine_options,
    read_options,
)
from lagging.cli.quarantine import Quarantine
from lagging.cli.segments import segments_file, write_segments
from lagging.cli.spark import Engine, engine_options, find_local_systems, parse_spark_systems, score_on_spark
from lagging.cli.systems import group_paths, make_names_distinct, parse_systems, refuse_overwrite
from lagging.comparison.gates import check_names, failed, gate
from lagging.comparison.regimes import REGIMES, Verdict, judge, regime
from lagging.data.run import Run
from lagging.data.tokens import is_spm
from lagging.data.units import COUNTED
from lagging.errors import UsageError, counted
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics import Metric, metric
from lagging.metrics.conventions import Convention
from lagging.metrics.conventions import convention as named_convention
from lagging.render import render
from lagging.render.scores import signature_lines
from lagging.scoring.intervals import add_intervals, finish_scores
from lagging.scoring.log import Log
from lagging.scoring.plan import IntervalSettings, Keep, Plan
from lagging.scoring.processes import MOST
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Settings, Signature, settings
from lagging.stats import RESAMPLES, check_confidence

__all__ = ["command"]


@click.command("score")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@metric_option
@format_option
@convention_option
@click.option("--like", multiple=True, metavar="SIGNATURE", help="Score as the number with this signature was made.")
@click.option("--ci", is_flag=True, help="Add bootstrap intervals at 95 %, by recording where there are several.")
@click.option("--resample", type=click.Choice(["segment", "document"]), help="What the intervals of --ci resample.")
@click.option(
    "--by", multiple=True, metavar="COLUMNS", help="Score each group of segments, such as lang,model, in one pass."
)
@click.option(
    "--regime", "task", type=click.Choice(list(REGIMES)), help="Score and judge by the rules of a shared task."
)
@click.option(
    "--segment-scores", metavar="FILE", help="Write the scores of every segment to a TSV file, or to FILE.parquet."
)
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Number of processes, if there is work for as many; if not given, all cores for a large log.",
)
@gate_option
@engine_options
@quarantine_options
@output_option
@cutting_options
@read_options
@message_options
def command(
    logs: tuple[str, ...],
    names: tuple[str, ...],
    form: str,
    convention: str,
    like: tuple[str, ...],
    ci: bool,
    resample: str | None,
    by: tuple[str, ...],
    task: str | None,
    segment_scores: str | None,
    jobs: int | None,
    conditions: tuple[str, ...],
    output: str | None,
    quarantine: Quarantine,
    engine: Engine,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> int:
    """Score the logs of one or more systems.

    A log is a file, a directory with an instances.log, a quoted glob, or - for standard input. Without -m: AP, AL, LAAL
    and DAL, and BLEU where there are references; LongYAAL, StreamLAAL, DAL and StreamDAL of segments cut from a stream;
    BLEU and chrF of a text without delays.

    \b
    lagging score runs/wait-3
    lagging score base=a.log new=b.log -m 'AL,DAL,DAL(write_cost=1)' -f latex
    lagging score a.log --convention simuleval -m AL,AL_CA
    lagging score talks.log --segmentation dev.yaml --reference dev.de
    lagging score 'lake/*.parquet' --by lang,model --ci --on-error quarantine
    lagging score 's3a://lake/*.parquet' --by lang --unit ms --engine spark --master yarn
    """
    cutting.check()
    _check_files(output, segment_scores)
    if resample is not None and not ci:
        raise UsageError("--resample says what --ci resamples; give --ci too")
    gates = [gate(text) for text in conditions]
    interval = IntervalSettings(resample=resample) if ci else None
    request = _Request(parse_metrics(names), named_convention(convention), cutting, options, interval)
    explicit = click.get_current_context().get_parameter_source("convention") is ParameterSource.COMMANDLINE
    if task is not None:
        request = request.by_regime(task, named=bool(like) or explicit)
    if like:
        request = request.by_signatures([Signature.parse(text) for text in like], explicit)
    check_names(gates, request.metrics or [])
    if request.interval is None and task is None and (about := next((g for g in gates if g.needs_interval), None)):
        raise UsageError(f"the gate {about} is about an interval; give --ci too")
    engine.check(logs, cutting, task, jobs)
    columns = _parse_columns(by)
    adds_up = bool(columns) or engine.spark or (request.interval is not None and request.interval.method == "poisson")
    if adds_up:
        _check_groups(request.cutting, task, request.interval)
    systems = parse_spark_systems(logs) if engine.spark else parse_systems(logs)
    local = find_local_systems(systems) if engine.spark else systems
    refuse_overwrite(local, output, segment_scores, quarantine.file, inputs=request.cutting.files)
    keeps_values = request.interval is not None or task is not None or segment_scores is not None or messages.verbose
    plan = Plan.make(
        request.metrics,
        request.convention,
        group_by=columns,
        keep=_keep(keeps_values, len(systems)),
        summary=adds_up,
        seed=request.interval.seed if adds_up and request.interval is not None else None,
    )
    verdicts: list[Verdict] = []
    peers: list[Score | None] = []
    results: list[list[Scores]]
    if engine.spark:
        paths, results = score_on_spark(
            systems, plan, request.interval, request.options, segment_scores, quarantine, engine, messages
        )
    else:
        groups = group_paths(systems) if columns else [(name, [path]) for name, path in systems]
        paths, results = [files[0] for _, files in groups], []
        with ExitStack() as stack:
            table = None
            if segment_scores is not None and adds_up:
                table = stack.enter_context(segments_file(segment_scores, columns))
            for name, files in groups:
                with progress_bar(name or files[0], files, messages) as progress:
                    log = Log(files, request.options, name, request.cutting, progress, quarantine.add)
                    accumulators = log.score(
                        plan,
                        lambda first: None if messages.quiet else _peer_plan(plan, first),
                        jobs=jobs,
                        on_first=messages.announce,
                        on_part=None if table is None else table.add_part,
                    )
                scored = accumulators[0]
                peers.append(accumulators[1].scores()["AL"] if len(accumulators) > 1 else None)
                if task is None:
                    results.append(finish_scores(scored, scored.system, request.interval))
                else:
                    scores, verdict = judge(scored.scores(scored.system), task)
                    verdicts.append(verdict)
                    results.append([scores if request.interval is None else add_intervals(scores, request.interval)])
            if table is not None:
                table.signatures = signature_lines([scores for group in results for scores in group], segments=True)
    _name_and_describe(results, paths, messages)
    every = [scores for group in results for scores in group]
    broken = failed(gates, every)  # a gate about what was not scored is refused before anything is printed
    if not adds_up:
        _print_peers(every, peers, messages)
        _print_shared(every, messages)
    messages.print_differences([group[0] for group in results])
    _print_repeated(every, request.signatures, messages)
    if segment_scores is not None and not adds_up:
        write_segments(segment_scores, every)
    quarantine.close()
    summary = [quarantine.summary] if quarantine.summary else []
    more = {} if quarantine.record is None else {"quarantine": quarantine.record}
    colour = has_colour() and output is None
    text = render(every, form, width=terminal_width(), colour=colour, verdicts=verdicts, notes=summary, fields=more)
    emit(text, output)
    return report_failed_gates(broken)


# ---- what is requested ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Request:
    """What is scored, and how: by the options alone, by a shared task, or as a signature says.

    Attributes:
        metrics: None for the default ones.
        signatures: those that are repeated.
    """

    metrics: list[Metric] | None
    convention: Convention
    cutting: Cutting
    options: ReadOptions
    interval: IntervalSettings | None
    signatures: tuple[Signature, ...] = ()

    def by_regime(self, task: str, named: bool) -> _Request:
        """The request of a shared task, with the metrics that were named beside its own."""
        if named or self.cutting.aligner is not None:
            raise UsageError("--regime says itself how to cut and count; leave --like, --convention and --aligner out")
        official = regime(task)
        return replace(
            self,
            metrics=[metric(official.metric), *(self.metrics or [metric("BLEU")])],
            convention=named_convention(official.convention),
            cutting=self.cutting.with_aligner(official.aligner),
        )

    def by_signatures(self, signatures: Sequence[Signature], explicit: bool) -> _Request:
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
        if (s.convention, s.repair, s.strip) != (first.convention, first.repair, first.strip):
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
    )


def _parse_columns(texts: Sequence[str]) -> tuple[str, ...]:
    """The columns of `--by`, which may be repeated."""
    names = [name.strip() for text in texts for name in text.split(",")]
    if "" in names:
        raise UsageError("--by takes names of columns with commas between, such as lang,model")
    if repeated := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"--by names the column {repeated[0]!r} twice")
    return tuple(names)


def _check_files(output: str | None, segment_scores: str | None) -> None:
    if segment_scores is not None and str(segment_scores) == "-":
        raise UsageError("--segment-scores needs a file: standard output holds the scores")
    if output is not None and output == segment_scores:
        raise UsageError(f"-o and --segment-scores would both write {output}")


def _check_groups(cutting: Cutting, task: str | None, interval: IntervalSettings | None) -> None:
    """Refuse what cannot be done by group."""
    if cutting.requested:
        raise UsageError("--by groups segments as they are in the log; leave --segmentation and --reference out")
    if task is not None:
        raise UsageError("--regime judges a whole log; leave --by out")
    if interval is not None and (interval.resample == "document" or interval.method not in (None, "poisson")):
        raise UsageError("intervals of groups are those of a Poisson bootstrap over segments, and no others")


def _keep(values: bool, systems: int) -> Keep:
    """What is kept of segments: their values, or what tells whether systems have the same ones, or nothing."""
    if values:
        return "values"
    return "keys" if systems > 1 else "sums"


def _peer_plan(plan: Plan, first: Run) -> Plan | None:
    """A Plan for AL as SimulEval counts it, where the paper's AL is scored and there are references."""
    if plan.summary or plan.convention.name != "paper" or first.reference is None or first.seg != "none":
        return None
    metrics = plan.resolve(first).metrics or ()
    return Plan.make(["AL"], "simuleval", keep="sums") if metric("AL") in metrics else None


# ---- messages ---------------------------------------------------------------------------------------------------


def _name_and_describe(results: Sequence[Sequence[Scores]], paths: Sequence[str], messages: Messages) -> None:
    """Give every system a name of its own, and print the notes about it."""
    make_names_distinct([group[0] for group in results], paths)
    for group in results:
        for scores in group:
            scores.system = group[0].system
        messages.print_notes(group[0].notes, group[0].system)
        for scores in group:
            messages.print_undefined(scores)


def _print_peers(systems: Sequence[Scores], peers: Sequence[Score | None], messages: Messages) -> None:
    """Print AL as SimulEval counts it, because nearly every published AL is."""
    values = []
    for scores, al in zip(systems, peers, strict=True):
        # nothing to print where it is undefined, or no reference could be counted, or it is the same
        if al is None or math.isnan(al.value) or al.signature.get("noref"):
            continue
        value = f"{al.value:.6g}"
        if value != f"{scores['AL'].value:.6g}":
            values.append(f"{value} {COUNTED[al.unit]}" + (f" ({scores.system})" if len(systems) > 1 else ""))
    if len(values) > 4:
        values[3:] = ["…"]
    if values:
        messages.print(f"SimulEval's convention gives AL {', '.join(values)}: --convention simuleval")


def _print_shared(systems: Sequence[Scores], messages: Messages) -> None:
    """Print which systems do not have the same segments."""
    first = systems[0]
    for scores in systems[1:]:
        shared, n_first, n = first.shared(scores)
        if shared < max(n_first, n):
            both = f"{first.system} ({counted(n_first, 'segment')}) and {scores.system} ({counted(n, 'segment')})"
            messages.print(f"note: {both} share {shared}: their scores are not about the same sentences")


def _print_repeated(systems: Sequence[Scores], signatures: Sequence[Signature], messages: Messages) -> None:
    """Print where a score was not made as the signature says that it repeats."""
    for signature in signatures:
        for scores in systems:
            score = next(s for s in scores if s.metric == settings(signature).metric).signature
            now, then = dict(score.fields), dict(signature.fields)
            for key in [*then, *(key for key in now if key not in then)]:
                if now.get(key) != then.get(key):
                    here, there = now.get(key, "none"), then.get(key, "none")
                    messages.print(
                        f"note: {scores.system}: {score.metric} has {key}:{here}, the signature given has {there}"
                    )
