# SPDX-License-Identifier: Apache-2.0
"""`lagging compare`."""

from __future__ import annotations

from typing import Any

import click

from lagging.cli.gates import gate_option, report_failed_gates
from lagging.cli.layout import check_unsigned, layout_options, signature_option
from lagging.cli.messages import Messages, emit, has_colour, progress_bar, terminal_width
from lagging.cli.options import (
    column_options,
    confidence_option,
    convention_option,
    cutting_options,
    format_option,
    message_options,
    metric_option,
    output_option,
    pair_options,
    parse_metrics,
    plugin_option,
    quarantine_options,
    read_options,
    rename_option,
    word_options,
)
from lagging.cli.quarantine import Quarantine
from lagging.cli.systems import (
    make_names_distinct,
    name_systems,
    parse_renames,
    parse_system,
    parse_systems,
    path_names,
    refuse_overwrite,
)
from lagging.comparison import Comparison, compare
from lagging.comparison.comparison import find_metric
from lagging.comparison.degeneracy import judge, verdict_plan
from lagging.comparison.gates import check_names, failed, gate, worse
from lagging.comparison.published import read_scores
from lagging.data.units import Amount
from lagging.errors import UsageError
from lagging.formats import ReadOptions
from lagging.longform.cutting import Cutting
from lagging.metrics.conventions import convention as named_convention
from lagging.render.comparison import render_comparison
from lagging.render.table import Layout
from lagging.scoring.columns import Columns
from lagging.scoring.log import Log
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores

__all__ = ["command"]


@click.command("compare")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@metric_option
@pair_options
@confidence_option("Confidence level of the intervals, in percent; at 95, a difference with p < 0.05 is significant.")
@format_option
@signature_option
@layout_options
@convention_option
@click.option(
    "--published",
    multiple=True,
    metavar="[NAME=]FILE",
    help="File of scores without a log, to be shown beside the others. May be repeated.",
)
@column_options
@click.option(
    "--margin",
    "margins",
    multiple=True,
    metavar="METRIC=X",
    help="How much worse a system may be and still count as no worse: BLEU=0.5, AL=200ms; a number without a unit is "
    "in that of the table.",
)
@gate_option
@click.option("--fail-if-worse", metavar="NAME", help="Exit with 3 if a system is significantly worse than this one.")
@rename_option
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
    base: str | None,
    test: str | None,
    resample: str | None,
    correction: str,
    resamples: int,
    seed: int,
    confidence: float,
    form: str,
    unsigned: bool,
    layout: Layout,
    convention: str,
    published: tuple[str, ...],
    columns: Columns,
    margins: tuple[str, ...],
    conditions: tuple[str, ...],
    fail_if_worse: str | None,
    output: str | None,
    renames: tuple[str, ...],
    quarantine: Quarantine,
    cutting: Cutting,
    messages: Messages,
    options: ReadOptions,
) -> int:
    """Compare systems on the segments that all of them have.

    Every score with its interval; systems that share a letter do not differ significantly. With --base, + is
    significantly better than that system, and - worse. Without -m, the metrics are those of `lagging score`.

    \b
    lagging compare base=a.log new=b.log -m AL,DAL,BLEU
    lagging compare runs/*/instances.log --base wait-3 -f latex
    lagging compare base=a.log new=b.log --fail-if-worse base --fail-if 'DAL.high>2s'
    lagging compare base=a new=b --column base:COMET=a.json --column new:COMET=b.json
    """
    cutting.check()
    check_unsigned(unsigned, form, output)
    metrics, gates = parse_metrics(names, columns), [gate(text) for text in conditions]
    check_names(gates, metrics or [], columns.metrics)
    margin_amounts = dict(_parse_margin(text) for text in margins)
    if fail_if_worse is not None and base not in (None, fail_if_worse):
        raise UsageError(f"--fail-if-worse {fail_if_worse} needs comparisons with it, but --base is {base}")
    base = base or fail_if_worse
    published_scores = [score for text in published for score in _read_published(text)]
    systems = name_systems(parse_systems(logs), parse_renames(renames))
    files = [*cutting.files, *options.word_files, *columns.files, *(parse_system(text)[1] for text in published)]
    refuse_overwrite(systems, output, quarantine.file, inputs=files)
    columns = columns.renamed(path_names(systems))
    columns.check_number(len(systems))
    computed = None if metrics is None else [m for m in metrics if m.name not in columns.metrics] or None
    plan, results = Plan.make(computed, convention), []
    audited: list[Scores | None] = []
    for name, path in systems:
        with progress_bar(name or path, path, messages) as progress:
            log = Log(path, options, name, cutting, progress, quarantine.add)
            accumulator, *more = log.score(
                plan, lambda first: verdict_plan(first, named_convention(convention)), on_first=messages.announce
            )
        results.append(accumulator.scores(accumulator.system))
        audited.append(more[0].scores() if more else None)
    make_names_distinct(results, [path for _, path in systems])
    comparison = compare(
        {scores.system: scores for scores in results},
        metrics,
        base=base,
        test=test,
        resample=resample,
        correction=correction,
        confidence=confidence / 100,
        resamples=resamples,
        seed=seed,
        convention=convention,
        published=published_scores,
        columns=columns,
    )
    units = {repr(score.metric): score.unit for scores in comparison.scores.values() for score in scores}
    margin_values = {
        name: amount.value(units.get(repr(find_metric(name, comparison.metrics)), ""), f"--margin {name}={amount}")
        for name, amount in margin_amounts.items()
    }
    sentences = _summarise(comparison, margin_values)
    verdicts = [judge(scores, result.system) for scores, result in zip(audited, results, strict=True) if scores]
    sentences += [
        f"{verdict} ({verdict.numbers})" if messages.verbose else str(verdict)
        for verdict in verdicts
        if verdict.verdict != "sound" or messages.verbose
    ]
    messages.print_notes(filter(None, (each.doubt(list(comparison.scores.values())) for each in gates)))
    # a gate about what was not scored is refused before anything is printed
    broken = failed(gates, list(comparison.scores.values()))
    broken += worse(comparison.against(fail_if_worse), comparison.alpha) if fail_if_worse is not None else []
    for scores in comparison.scores.values():
        messages.print_notes(scores.notes, scores.system)
        messages.print_undefined(scores)
    messages.print_notes(comparison.notes)
    colour = has_colour() and output is None
    text = render_comparison(
        comparison,
        form,
        width=terminal_width(),
        colour=colour,
        every=messages.verbose,
        sentences=sentences,
        signed=not unsigned,
        layout=layout,
    )
    quarantine.close()
    emit(text, output)
    quarantine.print_summary(messages)
    messages.flush()
    return report_failed_gates(broken)


def _parse_margin(text: str) -> tuple[str, Amount]:
    """METRIC=X; the metric may have an = itself."""
    name, equals, number = text.rpartition("=")
    try:
        margin = Amount.parse(number, "--margin")
    except UsageError:
        equals = ""
    if not equals or not name.strip():
        raise UsageError(f"cannot read --margin {text!r}; write it like BLEU=0.5 or AL=200ms")
    return name.strip(), margin


def _read_published(text: str) -> list[Any]:
    name, path = parse_system(text)
    return read_scores(path, system=name)


def _summarise(comparison: Comparison, margins: dict[str, float]) -> list[str]:
    """Sentences about each system against the base, or the first: of two systems, or where margins were given."""
    first = comparison.base or comparison.systems[0]
    others = [name for name in comparison.systems if name != first]
    directed = any(m.higher_is_better is not None for m in comparison.metrics)
    if not comparison.pairs or not (margins or (len(others) == 1 and directed)):
        return []
    compared = {repr(m): 0.0 for m in comparison.metrics if m.higher_is_better is not None} | margins
    return [str(comparison.together(first, other, compared)) for other in others]
