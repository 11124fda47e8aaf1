# SPDX-License-Identifier: Apache-2.0
"""`lagging score`: one command, its options and the steps from them to a table."""

from __future__ import annotations

from collections.abc import Sequence

import click
from click.core import ParameterSource

from lagging.cli.gates import gate_option, report_failed_gates
from lagging.cli.layout import check_unsigned, layout_options, signature_option
from lagging.cli.messages import Messages, emit, has_colour, terminal_width
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
from lagging.cli.results import (
    Failure,
    Result,
    audit_lines,
    name_and_describe,
    print_doubts,
    print_failures,
    score_logs,
)
from lagging.cli.segments import write_segments
from lagging.cli.spark import Engine, engine_options, find_local_systems, parse_spark_systems, score_on_spark
from lagging.cli.systems import (
    name_systems,
    parse_renames,
    parse_systems,
    refuse_overwrite,
)
from lagging.comparison.gates import Gate, check_names, failed, gate
from lagging.comparison.regimes import REGIMES
from lagging.errors import UsageError
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics.conventions import convention as named_convention
from lagging.render import render
from lagging.render.table import Layout
from lagging.scoring.columns import Columns
from lagging.scoring.plan import IntervalSettings
from lagging.scoring.processes import MOST

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
    request = request.resolve(task, like, explicit)
    _check_gates(gates, request, columns)
    engine.check(logs, cutting, options, task, jobs, columns)
    systems = parse_spark_systems(logs) if engine.spark else parse_systems(logs)
    new_names = parse_renames(renames)
    if new_names and (engine.spark or request.group_by):
        raise UsageError("--rename gives systems other names, and --by and --engine spark take theirs from the data")
    if not engine.spark and not request.group_by:
        systems = name_systems(systems, new_names)
    failures: list[Failure] = []
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
        results = [Result(path, scores) for path, scores in zip(paths, groups, strict=True)]
    else:
        results, failures = score_logs(
            systems, request, plan, columns, segment_scores, audited, jobs, quarantine, messages, strict=strict
        )
    name_and_describe(results, messages)
    every = [scores for result in results for scores in result.groups]
    broken = failed(gates, every)  # a gate about what was not scored is refused before anything is printed
    print_doubts(results, filter(None, (each.doubt(every) for each in gates)), plan, request, messages)
    if segment_scores is not None and not plan.summary:
        write_segments(segment_scores, every)
    quarantine.close()
    text = render(
        every,
        form,
        width=terminal_width(),
        colour=has_colour() and output is None,
        verdicts=[result.verdict for result in results if result.verdict is not None],
        notes=[*audit_lines(results, messages), *([quarantine.summary] if quarantine.summary else [])],
        fields={} if quarantine.record is None else {"quarantine": quarantine.record},
        signed=not unsigned,
        layout=layout,
    )
    emit(text, output)
    messages.flush()
    print_failures(failures, len(results), messages)
    return report_failed_gates(broken) or int(bool(failures))


def _check_gates(gates: Sequence[Gate], request: Request, columns: Columns) -> None:
    """Refuse a gate about what is not scored, before a log is read."""
    check_names(gates, [] if request.adds_bleu else request.metrics or [], columns.metrics)
    about = next((each for each in gates if each.needs_interval), None)
    if about is not None and request.interval is None and request.task is None:
        raise UsageError(f"the gate {about} is about an interval; give --ci too")


def _check_files(output: str | None, segment_scores: str | None) -> None:
    if segment_scores is not None and str(segment_scores) == "-":
        raise UsageError("--segment-scores needs a file: standard output holds the scores")
    if output is not None and output == segment_scores:
        raise UsageError(f"-o and --segment-scores would both write {output}")
