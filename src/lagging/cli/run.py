# SPDX-License-Identifier: Apache-2.0
"""`lagging run`."""

from __future__ import annotations

import math
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from lagging.agents.failures import REMEDIES
from lagging.agents.hypothesis import JOINTS, LEVELS
from lagging.agents.loading import Spec
from lagging.agents.protocol import Traits
from lagging.agents.runner.jobs import Job, Settings
from lagging.agents.runner.run import Progress, Result, run_job
from lagging.agents.sentence import Limits
from lagging.agents.sources import SOURCE_LEVELS
from lagging.cli.common import Talk, colour, emit, say, talking, width
from lagging.cli.logs import Announcer, named_metrics, parts_of, score_log
from lagging.cli.longform import Cutting
from lagging.data.run import Run
from lagging.errors import UsageError, counted
from lagging.metrics.conventions import CONVENTIONS
from lagging.policies import policy
from lagging.render import RENDERERS, render
from lagging.scoring.plan import Plan
from lagging.scoring.serial import score

__all__ = ["command"]

EVERY = 60
"""Seconds between two lines of progress where there is no terminal."""

WIDE = 90
"""Columns of a terminal that has room for a bar."""


@click.command("run")
@click.argument("agent", required=False, metavar="[AGENT.py[:CLASS]]")
@click.option("--source", required=True, metavar="FILE", help="Sentences, or paths of sound files, one a line.")
@click.option("--reference", "--target", metavar="FILE", help="Reference translations, one a line.")
@click.option("-o", "--output", required=True, metavar="FOLDER", help="Where log and scores go; a run goes on there.")
@click.option("-a", "--option", "options", multiple=True, metavar="NAME=VALUE", help="An option of the agent.")
@click.option("--simuleval", is_flag=True, help="The agent is one of SimulEval's.")
@click.option("--remote", metavar="URL", help="The agent is served elsewhere: ws://127.0.0.1:8765.")
@click.option("--chunk", "--source-segment-size", type=float, help="Source tokens (1) or ms (500) for each read.")
@click.option("--source-level", type=click.Choice(SOURCE_LEVELS), default="word", help="What a text is read by.")
@click.option("--spm-model", metavar="FILE", help="The SentencePiece model of --source-level spm.")
@click.option(
    "--joined-by", type=click.Choice(list(JOINTS)), default="word", help="How what it writes joins to a text."
)
@click.option("--level", type=click.Choice(LEVELS), default="word", help="What of the target gets a delay.")
@click.option("--workers", type=int, default=1, help="Processes, each with an agent of its own.")
@click.option("--batch", type=int, default=1, help="Sentences at once, for an agent with `policies`.")
@click.option("--realtime", is_flag=True, help="Give the source out at its own pace, by the clock on the wall.")
@click.option("--pace", type=float, metavar="N", help="Of text in real time: tokens a second.")
@click.option("--step-limit", type=float, default=300.0, metavar="S", help="Seconds for one answer (300).")
@click.option("--sentence-limit", type=float, default=3600.0, metavar="S", help="Seconds for a sentence (3600).")
@click.option(
    "--token-limit", type=click.IntRange(1), metavar="N", help="Tokens of a sentence (1000, and 10 per source token)."
)
@click.option(
    "--call-limit", type=click.IntRange(1), metavar="N", help="Calls for a sentence (one per read, two per token)."
)
@click.option("--byte-limit", type=click.IntRange(1), metavar="N", help="Bytes of a translation (16 MiB of text).")
@click.option("--strict", is_flag=True, help="Stop at the first sentence that fails.")
@click.option("--retry-failed", is_flag=True, help="Try again what failed before.")
@click.option(
    "--first", type=click.IntRange(1), metavar="N", help="Only the first N sentences; the rest may follow later."
)
@click.option("--no-times", is_flag=True, help="Leave out what was measured: the same log to the byte, every time.")
@click.option("-m", "--metric", "names", multiple=True, metavar="LIST", help="Metrics of the scores at the end.")
@click.option("-f", "--format", "form", type=click.Choice(RENDERERS), default="table", help="How to print the scores.")
@click.option("--convention", "named", type=click.Choice(list(CONVENTIONS)), default="paper", help="Whose counting.")
@click.option("--no-scores", is_flag=True, help="Only the log.")
@talking
def command(
    agent: str | None,
    source: str,
    reference: str | None,
    output: str,
    options: tuple[str, ...],
    simuleval: bool,
    remote: str | None,
    strict: bool,
    retry_failed: bool,
    first: int | None,
    workers: int,
    no_times: bool,
    step_limit: float,
    sentence_limit: float,
    token_limit: int | None,
    call_limit: int | None,
    byte_limit: int | None,
    names: tuple[str, ...],
    form: str,
    named: str,
    no_scores: bool,
    talk: Talk,
    **settings: Any,
) -> int:
    """Take an agent over a test set, and score what it did.

    Every finished sentence is in the log at once: after a crash, the same command goes on. What the agent does wrong
    costs it the sentence, not the run. AGENT is a Python file with a class that has `policy(self, state)`, or a policy
    (wait-3, antagonist-4, …) that writes the reference.

    \b
    lagging run my_agent.py --source test.de --reference test.en -o out/
    lagging run my_agent.py:WaitK -a k=5 --source test.de --reference test.en -o out/ --workers 4
    lagging run --simuleval agent.py -a waitk=3 --source wavs.txt --reference test.en -o out/
    lagging run --remote ws://127.0.0.1:8765 --source test.de --reference test.en -o out/
    """
    asked = named_metrics(names)
    if not output:
        raise UsageError("-o was given without a folder")
    limits = Limits(_above_0(step_limit), _above_0(sentence_limit), token_limit, call_limit, byte_limit)
    job = Job(
        spec(agent, simuleval, remote, options), source, reference, output,
        Settings(limits=limits, times=not no_times, **settings),
    )  # fmt: skip
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # who ends jobs politely is treated as Ctrl-C is
    go_on = f"to go on: {shlex.join(['lagging', *sys.argv[1:]])}"
    try:
        with _watched(talk) as progress:
            result = run_job(
                job,
                workers=workers,
                strict=strict,
                first=first,
                retry_failed=retry_failed,
                arguments=sys.argv[1:],
                progress=progress,
                ready=_can_be_scored(asked, named, reference) if asked and not no_scores else None,
            )
    except KeyboardInterrupt:  # before there was anything to finish
        talk.say(f"interrupted; {go_on}")
        return 130
    _say(result, talk)
    if result.interrupted:
        talk.say(f"interrupted; {go_on}")
        return 130
    if not no_scores and result.done == len(result.failed):
        talk.say("every sentence failed: there are no scores")
    elif not no_scores:
        _score(result, asked, named, form, talk)
    return 1 if result.failed else 0


def _above_0(seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise UsageError(f"a limit is a number of seconds above 0, but got {seconds:g}")
    return seconds


def spec(agent: str | None, simuleval: bool, remote: str | None, options: tuple[str, ...]) -> Spec:
    """Which agent is meant."""
    pairs = []
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"cannot read -a {text!r}; write it like k=3")
        pairs.append((name, value))
    if remote is not None:
        if agent is not None:
            raise UsageError("--remote says itself which agent it is; leave the file out")
        if simuleval:
            raise UsageError("--remote is told what its agent is; give --simuleval to lagging serve, which makes it")
        return Spec("remote", remote, tuple(pairs))
    if agent is None:
        raise UsageError("give the file of an agent, the name of a policy, or --remote")
    if simuleval:
        return Spec("simuleval", agent, tuple(pairs))
    if agent.partition(":")[0].endswith(".py") or Path(agent).exists():
        return Spec("file", agent, tuple(pairs))
    policy(agent)  # a wrong name is told here
    return Spec("policy", agent, tuple(pairs))


def _say(result: Result, talk: Talk) -> None:
    """How it ended."""
    if result.torn:
        talk.say(f"mended: {counted(result.torn, 'line')} had broken off; kept in torn.txt, and translated again")
    if result.before == result.done and result.finished:
        talk.say("there was nothing left to do")
    elif result.before:
        talk.say(f"went on after {counted(result.before, 'sentence')}")
    talk.say(f"{result.log.parent}: {result.done} of {counted(result.total, 'sentence')}, {len(result.failed)} failed")
    kinds: dict[str, list[int]] = {}
    for index, kind in result.failed.items():
        kinds.setdefault(kind, []).append(index)
    for kind, indices in kinds.items():
        shown = ", ".join(map(str, sorted(indices)[:5])) + (" …" if len(indices) > 5 else "")
        first = f", sentence {min(indices)}" if len(indices) > 1 else ""
        talk.say(f"failed: {counted(len(indices), 'sentence')} ({shown}){first}: {result.reasons[kind]}")
        if kind in REMEDIES:
            talk.say(f"  fix: {REMEDIES[kind]}.")
    if not result.finished and not result.interrupted:
        talk.say("stopped at the first failure, as --strict says")
    if result.failed and talk.quiet:
        say(f"error: {len(result.failed)} of {counted(result.total, 'sentence')} failed")


def _can_be_scored(asked: list[Any], named: str, reference: str | None) -> Callable[[Traits], None]:
    """A look at whether the metrics can be had of what such an agent leaves, before it has worked all night."""

    def look(traits: Traits) -> None:
        speech, sound = traits.source == "speech", traits.target == "speech"
        more: dict[str, Any] = (
            {"durations": [[1, 1]]} if sound else {"prediction": ["a b"], "erased": [0], "revisions": [0]}
        )
        more |= {"elapsed": [[1, 2]]} if speech else {}
        run = Run.from_delays(
            [[1, 2]],
            source_length=[2],
            reference=None if reference is None else ["a b"],
            unit="ms" if speech else "token",
            level="token" if sound else "word",
            arrivals=[[1, 2]],
            compute=[[0, 0]],
            steps=[[0, 1]],
            **more,
        )
        score(run, asked, convention=named)

    return look


def _score(result: Result, asked: list[Any], named: str, form: str, talk: Talk) -> None:
    """Score the log, print the scores, and keep them beside it."""
    plan = Plan.make(asked or None, named, keep="sums")
    scores = score_log(parts_of(str(result.log), None, plan, Cutting(), {}), plan, Announcer(talk))
    talk.notes(scores.notes, scores.system)
    result.manifest.sign(str(score.signature) for score in scores)
    emit(render([scores], "json"), str(result.log.parent / "scores.json"))
    emit(render([scores], form, width=width(), colour=colour()))


@contextmanager
def _watched(talk: Talk) -> Iterator[Callable[[Progress], None] | None]:
    """How far it is: a bar on a terminal, else a line a minute."""
    if talk.quiet or not talk.progress:
        yield None
        return
    if not sys.stderr.isatty():
        told, asked = time.monotonic(), False

        def line(progress: Progress) -> None:
            nonlocal told, asked
            if progress.stopping and not asked:
                asked = True
                talk.say("stopping when what is under way is over; asked again, at once")
            if time.monotonic() - told >= EVERY:
                told = time.monotonic()
                talk.say(progress.describe())

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True)
    said = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    look: list[ProgressColumn] = [MofNCompleteColumn(table_column=Column(min_width=WIDE // 10, no_wrap=True)), said]
    if console.width >= WIDE:  # else words come before pictures
        look = [BarColumn(), *look, TimeRemainingColumn()]
    with Bar(*look, console=console, transient=True) as bar:
        task = bar.add_task("making the agent", total=None)
        yield lambda progress: bar.update(
            task, completed=progress.done, total=progress.total, description=progress.describe(short=True)
        )
