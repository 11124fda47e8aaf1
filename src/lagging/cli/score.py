# SPDX-License-Identifier: Apache-2.0
"""`lagging score`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any

import click
from click.core import ParameterSource

from lagging.cli.common import Talk, colour, emit, output, reading, spare, systems, talking, watched, width
from lagging.cli.gates import fail_if, tell
from lagging.cli.groups import grouped, lakes, named_columns
from lagging.cli.logs import columns_of, distinct, named_metrics, parts_of, say_unlike, scored
from lagging.cli.longform import Cutting, cutting
from lagging.cli.quarantine import Aside, setting_aside
from lagging.cli.segments import segments_file, write_segments
from lagging.cli.spark import Engine, on_spark, spark_scores, spark_systems
from lagging.comparison.gates import check_names, failed, gate
from lagging.comparison.regimes import REGIMES, Verdict, judge, regime
from lagging.data.tokens import is_spm
from lagging.data.units import COUNTED
from lagging.errors import UsageError, counted
from lagging.metrics.conventions import CONVENTIONS, Convention, convention
from lagging.render import RENDERERS, render
from lagging.render.cells import signatures
from lagging.scoring.plan import Keep, default_resample
from lagging.scoring.poisson import RESAMPLES, SEED
from lagging.scoring.processes import MOST, spread
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import Settings, Signature, settings
from lagging.stats import check_drawn, with_intervals

__all__ = ["command"]


@click.command("score")
@click.argument("logs", nargs=-1, required=True, metavar="[NAME=]PATH…")
@click.option(
    "-m", "--metric", "names", multiple=True, metavar="LIST", help="Metrics, comma-separated; may be repeated."
)
@click.option("-f", "--format", "form", type=click.Choice(RENDERERS), default="table", help="How to print the scores.")
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@click.option("--like", multiple=True, metavar="SIGNATURE", help="Repeat the score that has this signature.")
@click.option("--ci", is_flag=True, help="Bootstrap intervals (95 %), by recording where there are several.")
@click.option("--resample", type=click.Choice(["segment", "document"]), help="What --ci resamples.")
@click.option("--by", multiple=True, metavar="COLUMNS", help="Score each group of segments: lang,model. In one pass.")
@click.option("--regime", "task", type=click.Choice(list(REGIMES)), help="Score and judge as a shared task does.")
@click.option("--segment-scores", metavar="FILE", help="Write the score of every segment: TSV, or FILE.parquet.")
@click.option(
    "--jobs",
    type=click.IntRange(1, MOST),
    metavar="N",
    help="Processes, if there is work for as many; all cores, of a large log, if not given.",
)
@fail_if
@on_spark
@setting_aside
@output
@cutting
@reading
@talking
def command(
    logs: tuple[str, ...],
    names: tuple[str, ...],
    form: str,
    named: str,
    like: tuple[str, ...],
    ci: bool,
    resample: str | None,
    by: tuple[str, ...],
    task: str | None,
    segment_scores: str | None,
    jobs: int | None,
    conditions: tuple[str, ...],
    output: str | None,
    aside: Aside,
    engine: Engine,
    cutting: Cutting,
    talk: Talk,
    how: dict[str, Any],
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
    if segment_scores is not None and str(segment_scores) == "-":
        raise UsageError("--segment-scores needs a file: standard output holds the scores")
    if output is not None and output == segment_scores:
        raise UsageError(f"-o and --segment-scores would both write {output}")
    asked, gates = named_metrics(names), [gate(text) for text in conditions]
    chosen: Convention = convention(named)
    explicit = click.get_current_context().get_parameter_source("named") is ParameterSource.COMMANDLINE
    wanted: list[Signature] = []
    interval: dict[str, Any] | None = {"by": resample} if ci else None
    if resample is not None and not ci:
        raise UsageError("--resample says what --ci resamples; give --ci too")
    if task is not None:
        if like or explicit or cutting.aligner is not None:
            raise UsageError("--regime says itself how to cut and count; leave --like, --convention and --aligner out")
        official = regime(task)
        asked = [official.metric, *(asked or ["BLEU"])]
        chosen, cutting = convention(official.convention), cutting.by(official.aligner)
    if like:
        if asked:
            raise UsageError("--like names its metric itself; leave -m out")
        if explicit:
            raise UsageError("--like says itself how to count; leave --convention out")
        wanted = [Signature.parse(text) for text in like]
        agreed = [settings(signature) for signature in wanted]
        asked, chosen = [s.metric for s in agreed], _agreed(agreed, how)
        cutting = cutting.by(agreed[0].aligner) if agreed[0].aligner else cutting
        if (drawn := agreed[0].interval) is not None:
            check_drawn(drawn.level, drawn.resamples)
            interval = asdict(drawn)
    check_names(gates, asked)
    if interval is None and task is None and (about := next((g for g in gates if g.needs_interval), None)):
        raise UsageError(f"the gate {about} is about an interval; give --ci too")
    results, peers, verdicts = [], [], []
    said: set[str] = set()
    if engine.spark:
        if cutting.asked or task is not None:
            raise UsageError("--engine spark takes segments as they are; leave --segmentation and --regime out")
        _refuse(cutting, task, interval)
        lake, columns = spark_systems(logs), named_columns(by)
        results = spark_scores(lake, asked, chosen, columns, interval, how, segment_scores, aside, talk, engine)
        broken = failed(gates, results)
        _emit(results, form, output, aside, talk)
        return tell(broken)
    named_logs = systems(logs)
    spare(named_logs, output, segment_scores, aside.file, inputs=cutting.files)
    poisson = interval is not None and interval.get("method") == "poisson"
    if by or poisson:
        _refuse(cutting, task, interval)
        columns = named_columns(by)
        results = _by_group(named_logs, asked, chosen, columns, interval, how, segment_scores, aside, talk, jobs)
        broken = failed(gates, results)
        _emit(results, form, output, aside, talk)
        return tell(broken)
    keep: Keep = "keys" if len(named_logs) > 1 else "sums"
    if interval is not None or task is not None or segment_scores is not None or talk.verbose:
        keep = "values"
    for name, path in named_logs:
        with watched(name or path, path, talk) as progress:
            given = {**how, **aside.reading(), "progress": progress}
            parts = parts_of(path, name, asked, chosen, cutting, given)
            shared = None if cutting.asked else spread(path, jobs, columns=columns_of(asked, chosen), **given)
            tell_of = None if talk.quiet else said
            scores, peer = scored(parts, asked, chosen, tell_of, peers=True, shared=shared, keep=keep)
        if task is not None:
            scores, verdict = judge(scores, task)
            verdicts.append(verdict)
        if interval is not None:
            scores = with_intervals(scores, **{**interval, "by": interval["by"] or default_resample(scores)})
        talk.notes(scores.notes, scores.system)
        talk.undefined(scores)
        results.append(scores)
        peers.append(peer)
    results = distinct(results, [path for _, path in named_logs])
    broken = failed(gates, results)  # a gate about what was not scored is told before anything is printed
    _say_peers(results, peers, talk)
    _compare_signatures(results, wanted, talk)
    if segment_scores is not None:
        write_segments(segment_scores, results)
    _emit(results, form, output, aside, talk, verdicts)
    return tell(broken)


def _emit(
    results: list[Scores], form: str, output: str | None, aside: Aside, talk: Talk, verdicts: Sequence[Verdict] = ()
) -> None:
    """Print the scores, and what was set aside beside them."""
    aside.close()
    bright = colour() and output is None
    said = [aside.said] if aside.said else []
    more = {} if aside.record is None else {"quarantine": aside.record}
    emit(render(results, form, width=width(), colour=bright, verdicts=verdicts, said=said, more=more), output)


def _refuse(cutting: Cutting, task: str | None, interval: dict[str, Any] | None) -> None:
    """Refuse what cannot be done by group."""
    if cutting.asked:
        raise UsageError("--by groups segments as they are in the log; leave --segmentation and --reference out")
    if task is not None:
        raise UsageError("--regime judges a whole log; leave --by out")
    if interval is not None and (interval["by"] == "document" or interval.get("method") not in (None, "poisson")):
        raise UsageError("intervals of groups are those of a Poisson bootstrap over segments, and no others")


def _by_group(
    logs: list[tuple[str | None, str]],
    asked: list[Any],
    chosen: Convention,
    by: tuple[str, ...],
    interval: dict[str, Any] | None,
    how: dict[str, Any],
    segment_scores: str | None,
    aside: Aside,
    talk: Talk,
    jobs: int | None,
) -> list[Scores]:
    """The scores of each group of each log."""
    drawn = None if interval is None else {"level": 0.95, "resamples": RESAMPLES, "seed": SEED, **interval}
    found: list[list[Scores]] = []
    said: set[str] = set()
    named_logs = lakes(logs) if by else [(name, [path]) for name, path in logs]
    with ExitStack() as files:
        segments = None if segment_scores is None else files.enter_context(segments_file(segment_scores, by))
        for name, paths in named_logs:
            each = None if segments is None else segments.add
            with watched(name or paths[0], paths, talk) as progress:
                given = {**how, **aside.reading(), "progress": progress}
                found.append(grouped(paths, name, asked, chosen, by, drawn, given, talk, said, each, jobs))
        firsts = distinct([some[0] for some in found], [paths[0] for _, paths in named_logs])
        for first, some in zip(firsts, found, strict=True):
            for scores in some:
                scores.system = first.system
            talk.notes(first.notes, first.system)
        for scores in (scores for some in found for scores in some):
            talk.undefined(scores)
        say_unlike(firsts, talk)
        results = [scores for some in found for scores in some]
        if segments is not None:
            segments.signatures = signatures(results, segments=True)
    return results


def _agreed(all_of: list[Settings], how: dict[str, Any]) -> Convention:
    """The one way of reading and counting that several signatures ask for; it is put into `how`."""
    first = all_of[0]
    for key in ("level", "unit"):
        said = {value for s in all_of if (value := getattr(s, key)) is not None}
        if len(said) > 1:
            raise UsageError(f"the signatures differ in {key}: {', '.join(sorted(said))}; score them one at a time")
        wanted = said.pop() if said else None
        if key == "unit":
            how["unit_hint"] = wanted  # what the log itself says of its unit goes before
        elif how[key] is None or (how[key] == "spm" and is_spm(wanted or "")):
            how[key] = wanted  # a level that names its model must be given that one
    for s in all_of:
        if (s.convention, s.repair, s.strip) != (first.convention, first.repair, first.strip):
            raise UsageError("the signatures differ in how the log is read or counted; score them one at a time")
    for key in ("repair", "strip"):
        how[key] = (*how[key], *getattr(first, key))
    return first.convention


def _say_peers(results: list[Scores], peers: list[Score | None], talk: Talk) -> None:
    """What nearly every published AL would be compared with."""
    shown = []
    for scores, al in zip(results, peers, strict=True):
        # nothing to say where it is undefined, or no reference could be counted, or it is ours
        if al is None or math.isnan(al.value) or al.signature.get("noref"):
            continue
        value = f"{al.value:.6g}"
        if value != f"{scores['AL'].value:.6g}":
            shown.append(f"{value} {COUNTED[al.unit]}" + (f" ({scores.system})" if len(results) > 1 else ""))
    if len(shown) > 4:
        shown[3:] = ["…"]
    if shown:
        talk.say(f"SimulEval's convention gives AL {', '.join(shown)}: --convention simuleval")


def _compare_signatures(results: list[Scores], wanted: list[Signature], talk: Talk) -> None:
    """Say where scores side by side, or a score and the one it repeats, were not made alike."""
    for one in results[1:]:
        common, of, other = results[0].shared(one)
        if common < max(of, other):
            both = f"{results[0].system} ({counted(of, 'segment')}) and {one.system} ({counted(other, 'segment')})"
            talk.say(f"note: {both} share {common}: their scores are not about the same sentences")
    say_unlike(results, talk)
    for signature in wanted:
        for scores in results:
            made = next(s for s in scores if s.metric == settings(signature).metric).signature
            now, then = dict(made.fields), dict(signature.fields)
            for key in [*then, *(key for key in now if key not in then)]:
                if now.get(key) != then.get(key):
                    here, there = now.get(key, "none"), then.get(key, "none")
                    talk.say(f"note: {scores.system}: {made.metric} has {key}:{here}, the signature given has {there}")
