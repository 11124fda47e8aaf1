# SPDX-License-Identifier: Apache-2.0
"""The results of `lagging score`: what was scored of each system on this machine, what could not be, and messages.

A result has one group of segments, or several with `--by`. Of several logs, one that is broken stops no other.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from lagging.cli.messages import Messages, print_message, progress_bar
from lagging.cli.quarantine import Quarantine
from lagging.cli.request import Request
from lagging.cli.segments import segments_file
from lagging.cli.systems import group_paths, make_names_distinct
from lagging.comparison.degeneracy import judge, verdict_plan
from lagging.comparison.regimes import Verdict, apply_regime
from lagging.data.run import Run
from lagging.data.units import SHOWN, scale
from lagging.errors import LaggingError, Note, counted
from lagging.formats.source import own_path
from lagging.metrics import metric
from lagging.render.scores import signature_lines
from lagging.scoring.columns import Columns
from lagging.scoring.intervals import add_intervals, finish_scores
from lagging.scoring.log import Log
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Score, Scores
from lagging.scoring.signature import ALIGNERS, Signature, settings

__all__ = [
    "Failure",
    "Result",
    "audit_lines",
    "name_and_describe",
    "print_doubts",
    "print_failures",
    "score_logs",
]


@dataclass
class Result:
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
class Failure:
    """A log that could not be scored."""

    name: str
    path: str
    error: LaggingError


def score_logs(
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
) -> tuple[list[Result], list[Failure]]:
    """Score the logs of systems on this machine; where segments are only added up, write their scores on the way.

    Returns:
        What was scored, and what could not be: of several logs, unless `strict`, one that is broken stops no other.
    """
    logs = group_paths(systems) if request.group_by else [(name, [path]) for name, path in systems]
    results: list[Result] = []
    failures: list[Failure] = []
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
                failures.append(Failure(name or paths[0], paths[0], error))
                continue
            by_metric = {score.metric.name: scores for scores in (each.scores() for each in more) for score in scores}
            peer, audit_scores = by_metric.get("AL"), by_metric.get("HiddenShare")
            result = Result(paths[0], [], None if peer is None else peer["AL"], audit_scores)
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


def _peer_plan(plan: Plan, first: Run) -> Plan | None:
    """A Plan for AL as SimulEval counts it, where the paper's AL is scored and there are references."""
    if plan.summary or plan.convention.name != "paper" or first.reference is None:
        return None
    if first.seg != "none" or first.unit == "none":
        return None
    metrics = plan.resolve(first).metrics or ()
    return Plan.make(["AL"], "simuleval", keep="sums") if metric("AL") in metrics else None


def audit_lines(results: Sequence[Result], messages: Messages) -> list[str]:
    """A verdict on each system; with -v, the numbers behind it."""
    lines = []
    for result in results:
        if result.audited is not None:
            verdict = judge(result.audited, result.groups[0].system)
            lines.append(f"{verdict} ({verdict.numbers})" if messages.verbose else str(verdict))
    return lines


# ---- messages ---------------------------------------------------------------------------------------------------


def name_and_describe(results: Sequence[Result], messages: Messages) -> None:
    """Give every system a name of its own, and print the notes about it."""
    make_names_distinct([result.groups[0] for result in results], [result.path for result in results])
    messages.print_notes_of([result.groups[0] for result in results])
    for result in results:
        first = result.groups[0]
        for scores in result.groups:
            scores.system = first.system
            messages.print_undefined(scores)


def print_doubts(
    results: Sequence[Result], doubts: Iterable[Note], plan: Plan, request: Request, messages: Messages
) -> None:
    """Print what else a reader of the scores must know: doubts of gates, other conventions, segments that differ."""
    every = [scores for result in results for scores in result.groups]
    messages.print_notes(doubts)
    if not plan.summary:
        _print_peers(results, messages)
        _print_cut(every, messages)
        _print_shared(every, messages)
    messages.print_differences([result.groups[0] for result in results])
    _print_repeated(every, request.signatures, messages)


def print_failures(failures: Sequence[Failure], scored: int, messages: Messages) -> None:
    """Print what could not be scored, and why: a line each, or with -v all that is wrong."""
    if not failures:
        return
    for number, failure in enumerate(failures, 1):
        text = str(failure.error)
        first, *rest = text.splitlines()
        more = "" if messages.verbose or not rest else f" (all of it: lagging validate {failure.path})"
        place = f"{number} of {len(failures)}, of {counted(scored + len(failures), 'log')}"
        print_message(f"NOT SCORED ({place}): {failure.name}: {text if messages.verbose else first}{more}")


def _print_peers(results: Sequence[Result], messages: Messages) -> None:
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


def _print_cut(systems: Sequence[Scores], messages: Messages) -> None:
    """Print which aligner repeats the numbers of OmniSTEval, where its convention is asked for and another one cut."""
    others = set(ALIGNERS) - {"omnisteval"}
    signatures = [score.signature for scores in systems for score in scores]
    if any(s.get("count") == "omnisteval" and s.get("seg") in others for s in signatures):
        messages.print_later("OmniSTEval cuts talks in its own way, so its numbers differ: --aligner omnisteval")


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
