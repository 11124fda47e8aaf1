# SPDX-License-Identifier: Apache-2.0
"""`lagging run`: one command, its options and the steps from them to an agent, a log and its scores."""

from __future__ import annotations

import math
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from lagging.agents.failures import REMEDIES
from lagging.agents.hypothesis import JOINTS, LEVELS
from lagging.agents.loading import Spec
from lagging.agents.protocol import Traits
from lagging.agents.runner.jobs import Job, Settings
from lagging.agents.runner.pool import WorkerPool
from lagging.agents.runner.run import Progress, Result, run_job
from lagging.agents.sentence import Limits
from lagging.agents.sources import SOURCE_LEVELS
from lagging.cli.grid import check_figure, grid_jobs, run_grid, score_grid
from lagging.cli.messages import Messages, emit, has_colour, print_message, terminal_width
from lagging.cli.options import (
    agent_options,
    convention_option,
    format_option,
    message_options,
    metric_option,
    parse_metrics,
)
from lagging.data.run import Run
from lagging.errors import UsageError, counted
from lagging.formats import ReadOptions
from lagging.metrics import Metric
from lagging.policies import policy
from lagging.render import render
from lagging.scoring.log import Log, score
from lagging.scoring.plan import Plan

__all__ = ["command"]

PROGRESS_SECONDS = 60
"""Seconds between two lines of progress, if standard error is not a terminal."""

HF = "hf:"
"""Before the folder or name of a model of Hugging Face."""

BAR_COLUMNS = 90
"""Columns that a terminal needs for a progress bar."""


@click.command("run")
@click.argument("agent", required=False, metavar="[AGENT.py[:CLASS] | hf:MODEL]")
@click.option(
    "--source", required=True, metavar="FILE", help="File with one sentence, or one path of a sound file, per line."
)
@click.option("--reference", "--target", metavar="FILE", help="File with one reference translation per line.")
@click.option(
    "-o",
    "--output",
    required=True,
    metavar="FOLDER",
    help="Folder of log and scores; an unfinished run in it is resumed.",
)
@agent_options
@click.option(
    "--simulstream",
    is_flag=True,
    help="AGENT is a speech processor of simulstream, as module:Class or file.py:Class; -a gives its configuration.",
)
@click.option(
    "--policy", "policy_name", metavar="NAME", help="Policy of a model (hf:MODEL), such as wait-k or local-agreement."
)
@click.option(
    "--grid",
    "grids",
    multiple=True,
    metavar="NAME=VALUES",
    help="Run the agent once for each of these values of an option: k=1,3,5. May be repeated, for all combinations.",
)
@click.option(
    "--figure", metavar="FILE", help="Draw the curve of a --grid, and write it to this .pdf, .svg or .png file."
)
@click.option("--remote", metavar="URL", help="Use the agent that `lagging serve` serves at this address.")
@click.option(
    "--chunk",
    "--source-segment-size",
    type=float,
    help="Size of each read, in source tokens (default 1) or ms (default 500).",
)
@click.option(
    "--source-level", type=click.Choice(SOURCE_LEVELS), default="word", help="Unit in which source text is read."
)
@click.option("--spm-model", metavar="FILE", help="SentencePiece model for --source-level spm.")
@click.option(
    "--joined-by",
    type=click.Choice(list(JOINTS)),
    help="How the pieces that the agent writes are joined (default word; none for a model, hf:NAME).",
)
@click.option(
    "--level",
    type=click.Choice(LEVELS),
    default="word",
    help="Target unit that gets a delay: word, character, or token of the agent.",
)
@click.option("--workers", type=int, default=1, help="Number of worker processes, each with its own agent.")
@click.option("--batch", type=int, default=1, help="Number of sentences per call, for an agent with `policies`.")
@click.option(
    "--realtime", is_flag=True, help="Read the source in real time, at the pace of its recording or at --pace."
)
@click.option("--pace", type=float, metavar="N", help="Pace of source text in real time, in tokens per second.")
@click.option(
    "--step-limit", type=float, default=300.0, metavar="S", help="Time limit for one answer, in seconds (default 300)."
)
@click.option(
    "--sentence-limit",
    type=float,
    default=3600.0,
    metavar="S",
    help="Time limit for a sentence, in seconds (default 3600).",
)
@click.option(
    "--token-limit",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of tokens of a translation (default 1000 + 10 per source token).",
)
@click.option(
    "--call-limit",
    type=click.IntRange(1),
    metavar="N",
    help="Largest number of calls for a sentence (default one per read + two per token).",
)
@click.option(
    "--byte-limit",
    type=click.IntRange(1),
    metavar="N",
    help="Largest size of a translation, in bytes (default 16 MiB of text).",
)
@click.option("--strict", is_flag=True, help="Stop at the first sentence that fails.")
@click.option("--retry-failed", is_flag=True, help="Translate again the sentences that failed before.")
@click.option(
    "--first",
    type=click.IntRange(1),
    metavar="N",
    help="Translate only the first N sentences; a later run can continue.",
)
@click.option(
    "--no-times", is_flag=True, help="Leave measured times out of the log, which is then the same every time."
)
@metric_option
@format_option
@convention_option
@click.option("--no-scores", is_flag=True, help="Write the log, but compute no scores.")
@message_options
def command(
    agent: str | None,
    source: str,
    reference: str | None,
    output: str,
    options: tuple[str, ...],
    simuleval: bool,
    simulstream: bool,
    policy_name: str | None,
    grids: tuple[str, ...],
    figure: str | None,
    remote: str | None,
    joined_by: str | None,
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
    convention: str,
    no_scores: bool,
    messages: Messages,
    **settings: Any,
) -> int:
    """Run an agent over a test set, and score its output.

    Every finished sentence is in the log at once: after a crash, the same command resumes the run. A failure of the
    agent costs one sentence, not the run. AGENT is a Python file with a class that has `policy(self, state)`; the name
    of a policy (wait-3, antagonist-4, …) that writes the reference; or hf: and a model of Hugging Face, with --policy.

    \b
    lagging run my_agent.py --source test.de --reference test.en -o out/
    lagging run my_agent.py:WaitK -a k=5 --source test.de --reference test.en -o out/ --workers 4
    lagging run --simuleval agent.py -a waitk=3 --source wavs.txt --reference test.en -o out/
    lagging run --simulstream processor.py:Mine -a speech_chunk_size=1 --source wavs.txt -o out/
    lagging run hf:FOLDER --policy local-agreement -a n=2 --source test.de --reference test.en -o out/
    lagging run hf:FOLDER --policy wait-k --grid k=1,3,5 --source test.de --reference test.en -o out/
    lagging run --remote ws://127.0.0.1:8765 --source test.de --reference test.en -o out/
    """
    metrics = parse_metrics(names)
    if not output:
        raise UsageError("-o was given without a folder")
    limits = Limits(_above_0(step_limit), _above_0(sentence_limit), token_limit, call_limit, byte_limit)
    spec = agent_spec(agent, simuleval, remote, options, policy_name, simulstream)
    if simulstream and settings["chunk"] is None:
        settings["chunk"] = chunk_of_processor(spec)
    if spec.kind == "hf":
        from lagging.agents.hf import match_levels

        pairs = match_levels(dict(spec.options), settings["level"], settings["source_level"])
        spec = replace(spec, options=tuple(pairs.items()))
    joined_by = joined_by or ("none" if spec.kind == "hf" else "word")
    settings_made = Settings(limits=limits, times=not no_times, joined_by=joined_by, **settings)
    job = Job(spec, source, reference, output, settings_made)
    if figure is not None and not grids:
        raise UsageError("--figure is the curve of several settings\n  fix: give --grid, such as --grid k=1,3,5.")
    jobs = grid_jobs(job, grids) if grids else []
    if figure is not None:
        check_figure(figure)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM is handled like Ctrl-C
    resume_hint = f"to resume: {shlex.join(['lagging', *sys.argv[1:]])}"

    def run(one: Job, pool: WorkerPool | None = None) -> Result:
        with _reporting(messages) as progress:
            return run_job(
                one,
                workers=workers,
                strict=strict,
                first=first,
                retry_failed=retry_failed,
                arguments=sys.argv[1:],
                progress=progress,
                ready=_can_be_scored(metrics, convention, reference) if metrics and not no_scores else None,
                pool=pool,
            )

    try:
        if grids:
            done, refused, interrupted = run_grid(jobs, run, lambda r: _report_result(r, messages), workers, strict)
        else:
            result = run(job)
    except KeyboardInterrupt:  # before the first sentence
        messages.print(f"interrupted; {resume_hint}")
        return 130
    if grids:
        if interrupted:
            messages.print(f"interrupted; {resume_hint}")
            return 130
        if done and not no_scores:
            score_grid(done, metrics, convention, form, figure, Path(output).name or output, messages)
        return 1 if refused or len(done) < len(jobs) or any(one.failed for _, one in done) else 0
    _report_result(result, messages)
    if result.interrupted:
        messages.print(f"interrupted; {resume_hint}")
        return 130
    if not no_scores and result.done == len(result.failed):
        messages.print("every sentence failed: there are no scores")
    elif not no_scores:
        _score(result, metrics, convention, form, messages)
    return 1 if result.failed else 0


def _above_0(seconds: float) -> float:
    if not 0 < seconds < math.inf:
        raise UsageError(f"a time limit must be a number of seconds above 0, but got {seconds:g}")
    return seconds


def chunk_of_processor(spec: Spec) -> float | None:
    """The size of a read, in ms, that the configuration of a speech processor names; None if it names none."""
    text = next((text for name, text in spec.options if name.replace("-", "_") == "speech_chunk_size"), None)
    try:
        return None if text is None else float(text) * 1000
    except ValueError:
        raise UsageError(f"speech_chunk_size is a number of seconds, not {text!r}") from None


def agent_spec(
    agent: str | None,
    simuleval: bool,
    remote: str | None,
    options: tuple[str, ...],
    policy_name: str | None = None,
    simulstream: bool = False,
) -> Spec:
    """The agent that the command line describes."""
    pairs = []
    for text in options:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"-a {text!r} is not NAME=VALUE\n  fix: write it like -a k=3.")
        pairs.append((name, value))
    if policy_name is not None:
        if agent is None or not agent.startswith(HF):
            raise UsageError("--policy goes with a model: hf:FOLDER, or hf: and its name on the hub")
        pairs.insert(0, ("policy", policy_name))
    if remote is not None:
        if agent is not None:
            raise UsageError("--remote already names the agent\n  fix: leave out the file.")
        if simulstream:
            raise UsageError("--simulstream does not go with --remote\n  fix: leave out one of them.")
        if simuleval:
            raise UsageError("--simuleval does not go with --remote\n  fix: give --simuleval to lagging serve instead.")
        return Spec("remote", remote, tuple(pairs))
    if agent is None:
        raise UsageError("no agent was given\n  fix: give the file of an agent, the name of a policy, or --remote.")
    if simulstream and simuleval:
        raise UsageError("--simulstream does not go with --simuleval\n  fix: leave out one of them.")
    if simulstream:
        return Spec("simulstream", agent, tuple(pairs))
    if simuleval:
        return Spec("simuleval", agent, tuple(pairs))
    if agent.startswith(HF):
        return Spec("hf", agent.removeprefix(HF), tuple(pairs))
    if agent.partition(":")[0].endswith(".py") or Path(agent).exists():
        return Spec("file", agent, tuple(pairs))
    policy(agent)  # raises for an unknown name
    return Spec("policy", agent, tuple(pairs))


def _report_result(result: Result, messages: Messages) -> None:
    """Report how the run ended."""
    if result.torn:
        messages.print(f"repaired: {counted(result.torn, 'partial line')} moved to torn.txt, and translated again")
    if result.before == result.done and result.finished:
        messages.print("nothing was left to do")
    elif result.before:
        messages.print(f"resumed after {counted(result.before, 'sentence')}")
    messages.print(
        f"{result.log.parent}: {result.done} of {counted(result.total, 'sentence')}, {len(result.failed)} failed"
    )
    kinds: dict[str, list[int]] = {}
    for index, kind in result.failed.items():
        kinds.setdefault(kind, []).append(index)
    for kind, indices in kinds.items():
        shown = ", ".join(map(str, sorted(indices)[:5])) + (" …" if len(indices) > 5 else "")
        first = f", sentence {min(indices)}" if len(indices) > 1 else ""
        messages.print(f"failed: {counted(len(indices), 'sentence')} ({shown}){first}: {result.reasons[kind]}")
        if kind in REMEDIES:
            messages.print(f"  fix: {REMEDIES[kind]}.")
    if not result.finished and not result.interrupted:
        messages.print("stopped at the first failure, because of --strict")
    if result.failed and messages.quiet:
        print_message(f"error: {len(result.failed)} of {counted(result.total, 'sentence')} failed")


def _can_be_scored(metrics: list[Metric] | None, convention: str, reference: str | None) -> Callable[[Traits], None]:
    """A function that checks, before the run, that the metrics can be computed from the agent's output."""

    def check(traits: Traits) -> None:
        speech_in, speech_out = traits.source == "speech", traits.target == "speech"
        columns: dict[str, Any] = (
            {"durations": [[1, 1]]} if speech_out else {"prediction": ["a b"], "erased": [0], "revisions": [0]}
        )
        columns |= {"elapsed": [[1, 2]]} if speech_in else {}
        run = Run.from_delays(
            [[1, 2]],
            source_length=[2],
            reference=None if reference is None else ["a b"],
            unit="ms" if speech_in else "token",
            level="token" if speech_out else "word",
            arrivals=[[1, 2]],
            compute=[[0, 0]],
            steps=[[0, 1]],
            **columns,
        )
        for requested in [[m] for m in metrics] if metrics else [None]:  # each alone: beside others it is undefined
            score(run, requested, convention=convention)

    return check


def _score(result: Result, metrics: list[Metric] | None, convention: str, form: str, messages: Messages) -> None:
    """Score the log, print the scores, and write them to `scores.json`."""
    plan = Plan.make(metrics, convention, keep="sums")
    (accumulator,) = Log(str(result.log), ReadOptions()).score(plan, on_first=messages.announce)
    scores = accumulator.scores(accumulator.system)
    messages.print_notes(scores.notes, scores.system)
    result.manifest.sign(str(score.signature) for score in scores)
    emit(render([scores], "json"), str(result.log.parent / "scores.json"))
    emit(render([scores], form, width=terminal_width(), colour=has_colour()))


@contextmanager
def _reporting(messages: Messages) -> Iterator[Callable[[Progress], None] | None]:
    """Report progress: a bar on a terminal, else a line per minute."""
    if messages.quiet or not messages.progress:
        yield None
        return
    if not sys.stderr.isatty():
        last, announced = time.monotonic(), False

        def line(progress: Progress) -> None:
            nonlocal last, announced
            if progress.stopping and not announced:
                announced = True
                messages.print("stopping after the sentences in progress; press Ctrl-C again to stop at once")
            if time.monotonic() - last >= PROGRESS_SECONDS:
                last = time.monotonic()
                messages.print(progress.describe())

        yield line
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar
    from rich.table import Column

    console = Console(stderr=True)
    description = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    columns: list[ProgressColumn] = [
        MofNCompleteColumn(table_column=Column(min_width=BAR_COLUMNS // 10, no_wrap=True)),
        description,
    ]
    if console.width >= BAR_COLUMNS:  # a narrow terminal shows only text
        columns = [BarColumn(), *columns, TimeRemainingColumn()]
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("making the agent", total=None)
        yield lambda progress: bar.update(
            task, completed=progress.done, total=progress.total, description=progress.describe(short=True)
        )
