# SPDX-License-Identifier: Apache-2.0
"""`lagging score`: one command, its options and the steps from them to a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import click
from click.core import ParameterSource

from lagging.cli.gates import gate_option, report_failed_gates
from lagging.cli.layout import check_unsigned, layout_options, signature_option
from lagging.cli.messages import Messages, emit, has_colour, print_message, progress_bar, terminal_width
from lagging.cli.options import (
    column_options,
    convention_option,
    cutting_options,
    format_option,
    message_options,
    metric_option,
    output_option,
    parse_metrics,
    plugin_option,
    quarantine_options,
    read_options,
    rename_option,
    word_options,
)
from lagging.cli.quarantine import Quarantine
from lagging.cli.request import Request, parse_columns
from lagging.cli.segments import segments_file, write_segments
from lagging.cli.spark import Engine, engine_options, find_local_systems, parse_spark_systems, score_on_spark
from lagging.cli.systems import (
    group_paths,
    make_names_distinct,
    name_systems,
    parse_renames,
    parse_systems,
    refuse_overwrite,
)
from lagging.comparison.degeneracy import judge, verdict_plan
from lagging.comparison.gates import check_names, failed, gate
from lagging.comparison.regimes import REGIMES, Verdict, apply_regime
from lagging.data.run import Run
from lagging.data.units import SHOWN, scale
from lagging.errors import LaggingError, UsageError, counted
from lagging.formats import ReadOptions
from lagging.formats.source import own_path
from lagging.longform.cutting import Cutting
from lagging.metrics import metric
from lagging.metrics.conventions import convention as named_convention
from lagging.render import render
from lagging.render.scores import signature_lines
from lagging.render.table import Layout
from lagging.scoring.columns import Columns
from lagging.scoring.intervals import add_intervals, finish_scores
from lagging.scoring.log import Log
from lagging.scoring.plan import IntervalSettings, Plan
from lagging.scoring.processes import MOST
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Signature, settings

__all__ = ["command"]


@click.command("score")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@metric_option
@format_option
@signature_option
@layout_options
@convention_option
@click.option("--like", multiple=True, metavar="SIGNATURE", help="Score in the way that this signature describes.")
@click.option("--ci", is_flag=True, help="Add bootstrap intervals at 95 %, by recording where there are several.")
@click.option(
    "--resample", type=click.Choice(["segment", "document"]), help="Unit that the intervals of --ci resample."
)
@click.option(
    "--by",
    multiple=True,
    metavar="COLUMNS",
    help="Score each group of segments; columns name the groups, such as lang,model.",
)
@click.option(
    "--regime", "task", type=click.Choice(list(REGIMES)), help="Score and judge by the rules of a shared task."
)
@click.option(
    "--segment-scores", metavar="FILE", help="Write the scores of every segment to a TSV file, or to FILE.parquet."
)
@click.option(
    "--audit",
    "audited",
    is_flag=True,
    help="State for each system whether its latency is sound, suspicious or degenerate.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Number of processes, if there is work for as many; if not given, all cores for a large log.",
)
@click.option("--strict", is_flag=True, help="Stop at the first log that cannot be scored, and score none.")
@column_options
@gate_option
@rename_option
@engine_options
@quarantine_options
@output_option
@cutting_options
@word_options
@read_options
@plugin_option
@message_options
def command(
    logs: tuple[str, ...],
    names: tuple[str, ...],
    form: str,
    unsigned: bool,
    layout: Layout,
    convention: str,
    like: tuple[str, ...],
    ci: bool,
    resample: str | None,
    by: tuple[str, ...],
    task: str | None,
    segment_scores: str | None,
    audited: bool,
    jobs: int | None,
    strict: bool,
    columns: Columns,
    conditions: tuple[str, ...],
    renames: tuple[str, ...],
    output: str | None,
    quarantine: Quarantine,
    engine: Engine,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> int:
    """Score the logs of one or more systems.

    A log is a file, a folder that holds one, a quoted glob, or - for standard input. Of several logs, those that can be
    scored are; the others are named at the end, and the exit code is 1. Without -m: AP, AL, LAAL
    and DAL, WordLag and WordsMatched with --word-times, and BLEU where there are references; LongYAAL, StreamLAAL, DAL
    and StreamDAL of segments cut from a stream; LongYAAL, DAL and EndOffset of segments of output speech; BLEU and chrF
    of a text without delays.

    \b
    lagging score runs/wait-3
    lagging score base=a.log new=b.log -m 'AL,DAL,DAL(write_cost=1)' -f latex
    lagging score a.log --convention simuleval -m AL,AL_CA
    lagging score talks.log --segmentation dev.yaml --reference dev.de
    lagging score a.log --column COMET=comet.json --fail-if 'COMET<0.8'
    lagging score 'lake/*.parquet' --by lang,model --ci --on-error quarantine
    lagging score 's3a://lake/*.parquet' --by lang --unit ms --engine spark --master yarn
    """
    cutting.check()
    check_unsigned(unsigned, form, output)
    _check_files(output, segment_scores)
    if resample is not None and not ci:
        raise UsageError("--resample says what --ci resamples; give --ci too")
    gates = [gate(text) for text in conditions]
    interval = IntervalSettings(resample=resample) if ci else None
    metrics = parse_metrics(names, columns)
    request = Request(metrics, named_convention(convention), cutting, options, interval, parse_columns(by))
    explicit = click.get_current_context().get_parameter_source("convention") is ParameterSource.COMMANDLINE
    if task is not None:
        request = request.by_regime(task, named=bool(like) or explicit)
    if like:
        request = request.by_signatures([Signature.parse(text) for text in like], explicit)
    check_names(gates, [] if request.adds_bleu else request.metrics or [], columns.metrics)
    if request.interval is None and task is None and (about := next((g for g in gates if g.needs_interval), None)):
        raise UsageError(f"the gate {about} is about an interval; give --ci too")
    engine.check(logs, cutting, options, task, jobs, columns)
    systems = parse_spark_systems(logs) if engine.spark else parse_systems(logs)
    new_names = parse_renames(renames)
    if new_names and (engine.spark or request.group_by):
        raise UsageError("--rename gives systems other names, and --by and --engine spark take theirs from the data")
    if not engine.spark and not request.group_by:
        systems = name_systems(systems, new_names)
    failures: list[_Failure] = []
    local = find_local_systems(systems) if engine.spark else systems
    plan = request.plan(
        adds_up=bool(request.group_by) or engine.spark or request.is_poisson,
        keeps_values=segment_scores is not None or messages.verbose,
        systems=len(systems),
        columns=columns,
    )
    files = [*request.cutting.files, *options.word_files, *columns.files]
    refuse_overwrite(local, output, segment_scores, quarantine.file, inputs=files)
    if audited and (engine.spark or request.group_by):
        raise UsageError("--audit judges whole systems on this machine; leave out --by and --engine spark")
    if engine.spark:
        paths, groups = score_on_spark(
            systems, plan, request.interval, request.options, segment_scores, quarantine, engine, messages
        )
        results = [_Result(path, scores) for path, scores in zip(paths, groups, strict=True)]
    else:
        results, failures = _score_logs(
            systems, request, plan, columns, segment_scores, audited, jobs, quarantine, messages, strict=strict
        )
    _name_and_describe(results, messages)
    every = [scores for result in results for scores in result.groups]
    broken = failed(gates, every)  # a gate about what was not scored is refused before anything is printed
    messages.print_notes(filter(None, (each.doubt(every) for each in gates)))
    if not plan.summary:
        _print_peers(results, messages)
        _print_shared(every, messages)
    messages.print_differences([result.groups[0] for result in results])
    _print_repeated(every, request.signatures, messages)
    if segment_scores is not None and not plan.summary:
        write_segments(segment_scores, every)
    quarantine.close()
    text = render(
        every,
        form,
        width=terminal_width(),
        colour=has_colour() and output is None,
        verdicts=[result.verdict for result in results if result.verdict is not None],
        notes=[*_audit_lines(results, messages), *([quarantine.summary] if quarantine.summary else [])],
        fields={} if quarantine.record is None else {"quarantine": quarantine.record},
        signed=not unsigned,
        layout=layout,
    )
    emit(text, output)
    messages.flush()
    _print_failures(failures, len(results), messages)
    return report_failed_gates(broken) or int(bool(failures))


@dataclass
class _Result:
    """What was scored of one system.

    Attributes:
        path: its log, or the first of several.
        groups: the Scores of each group of its segments; one without groups.
        peer: AL as SimulEval counts it, where that is known.
        audited: the scores that a verdict on degeneracy is made of, where one is requested and there are delays.
        verdict: that of a shared task.
    """

    path: str
    groups: list[Scores]
    peer: Score | None = None
    audited: Scores | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class _Failure:
    """A log that could not be scored."""

    name: str
    path: str
    error: LaggingError


def _score_logs(
    systems: list[tuple[str | None, str]],
    request: Request,
    plan: Plan,
    columns: Columns,
    segment_scores: str | None,
    audited: bool,
    jobs: int | None,
    quarantine: Quarantine,
    messages: Messages,
    *,
    strict: bool,
) -> tuple[list[_Result], list[_Failure]]:
    """Score the logs of systems on this machine; where segments are only added up, write their scores on the way.

    Returns:
        What was scored, and what could not be: of several logs, unless `strict`, one that is broken stops no other.
    """
    logs = group_paths(systems) if request.group_by else [(name, [path]) for name, path in systems]
    results: list[_Result] = []
    failures: list[_Failure] = []
    columns.check_number(len(logs))
    with ExitStack() as stack:
        table = None
        if segment_scores is not None and plan.summary:
            table = stack.enter_context(segments_file(segment_scores, request.group_by))
        for name, paths in logs:
            try:
                with progress_bar(name or paths[0], paths, messages) as progress:
                    aliases = (paths[0], own_path(paths[0]).name)
                    log = Log(paths, request.options, name, request.cutting, progress, quarantine.add, columns, aliases)
                    scored, *more = log.score(
                        plan,
                        lambda first: verdict_plan(first, request.convention) if audited else None,
                        lambda first: None if messages.quiet else _peer_plan(plan, first),
                        jobs=jobs,
                        on_first=messages.announce,
                        on_part=None if table is None else table.add_part,
                    )
            except LaggingError as error:
                if strict or table is not None or len(logs) == 1:
                    raise
                failures.append(_Failure(name or paths[0], paths[0], error))
                continue
            by_metric = {score.metric.name: scores for scores in (each.scores() for each in more) for score in scores}
            peer, audit_scores = by_metric.get("AL"), by_metric.get("HiddenShare")
            result = _Result(paths[0], [], None if peer is None else peer["AL"], audit_scores)
            if request.task is None:
                result.groups = finish_scores(scored, scored.system, request.interval)
            else:
                scores, result.verdict = apply_regime(scored.scores(scored.system), request.task)
                result.groups = [scores if request.interval is None else add_intervals(scores, request.interval)]
            results.append(result)
        if not results:
            raise failures[0].error
        columns.check_taken([*(result.groups[0].system for result in results), *(f.name for f in failures)])
        if table is not None:
            table.signatures = signature_lines([s for result in results for s in result.groups], segments=True)
    return results, failures


def _check_files(output: str | None, segment_scores: str | None) -> None:
    if segment_scores is not None and str(segment_scores) == "-":
        raise UsageError("--segment-scores needs a file: standard output holds the scores")
    if output is not None and output == segment_scores:
        raise UsageError(f"-o and --segment-scores would both write {output}")


def _peer_plan(plan: Plan, first: Run) -> Plan | None:
    """A Plan for AL as SimulEval counts it, where the paper's AL is scored and there are references."""
    if plan.summary or plan.convention.name != "paper" or first.reference is None:
        return None
    if first.seg != "none" or first.unit == "none":
        return None
    metrics = plan.resolve(first).metrics or ()
    return Plan.make(["AL"], "simuleval", keep="sums") if metric("AL") in metrics else None


def _audit_lines(results: Sequence[_Result], messages: Messages) -> list[str]:
    """A verdict on each system; with -v, the numbers behind it."""
    lines = []
    for result in results:
        if result.audited is not None:
            verdict = judge(result.audited, result.groups[0].system)
            lines.append(f"{verdict} ({verdict.numbers})" if messages.verbose else str(verdict))
    return lines


# ---- messages ---------------------------------------------------------------------------------------------------


def _name_and_describe(results: Sequence[_Result], messages: Messages) -> None:
    """Give every system a name of its own, and print the notes about it."""
    make_names_distinct([result.groups[0] for result in results], [result.path for result in results])
    messages.print_notes_of([result.groups[0] for result in results])
    for result in results:
        first = result.groups[0]
        for scores in result.groups:
            scores.system = first.system
            messages.print_undefined(scores)


def _print_failures(failures: Sequence[_Failure], scored: int, messages: Messages) -> None:
    """Print what could not be scored, and why: a line each, or with -v all that is wrong."""
    if not failures:
        return
    for number, failure in enumerate(failures, 1):
        text = str(failure.error)
        first, *rest = text.splitlines()
        more = "" if messages.verbose or not rest else f" (all of it: lagging validate {failure.path})"
        place = f"{number} of {len(failures)}, of {counted(scored + len(failures), 'log')}"
        print_message(f"NOT SCORED ({place}): {failure.name}: {text if messages.verbose else first}{more}")


def _print_peers(results: Sequence[_Result], messages: Messages) -> None:
    """Print AL as SimulEval counts it, because nearly every published AL is."""
    values = []
    for result in results:
        scores, al = result.groups[0], result.peer
        # nothing to print where it is undefined, or no reference could be counted, or it is the same
        if al is None or math.isnan(al.value) or al.signature.get("noref"):
            continue
        value = f"{al.value / scale(al.unit):.6g}"
        if value != f"{scores['AL'].value / scale(al.unit):.6g}":
            values.append(f"{value} {SHOWN[al.unit]}" + (f" ({scores.system})" if len(results) > 1 else ""))
    if len(values) > 4:
        values[3:] = ["…"]
    if values:
        messages.print_later(f"SimulEval's convention gives AL {', '.join(values)}: --convention simuleval")


def _print_shared(systems: Sequence[Scores], messages: Messages) -> None:
    """Print which systems do not have the same segments."""
    first = systems[0]
    for scores in systems[1:]:
        shared, n_first, n = first.shared(scores)
        if shared < max(n_first, n):
            both = f"{first.system} ({counted(n_first, 'segment')}) and {scores.system} ({counted(n, 'segment')})"
            text = f"{both} share {shared}: their scores are not about the same sentences"
            messages.print_doubt(text)


def _print_repeated(systems: Sequence[Scores], signatures: Sequence[Signature], messages: Messages) -> None:
    """Print where a score was not made as the signature says that it repeats."""
    for signature in signatures:
        for scores in systems:
            score = next(s for s in scores if s.metric == settings(signature).metric).signature
            now, then = dict(score.fields), dict(signature.fields)
            for key in [*then, *(key for key in now if key not in then)]:
                if now.get(key) != then.get(key):
                    here, there = now.get(key, "none"), then.get(key, "none")
                    text = f"{score.metric} has {key}:{here}, the signature given has {there}"
                    messages.print_doubt(f"{scores.system}: {text}")
