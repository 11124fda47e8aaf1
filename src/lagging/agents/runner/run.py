# SPDX-License-Identifier: Apache-2.0
"""A run, from its beginning or from where it was broken off, to its end."""

from __future__ import annotations

import contextlib
import os
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lagging.agents.protocol import Traits, as_agent
from lagging.agents.runner.jobs import Desk, Job, Settings
from lagging.agents.runner.journal import LOG, TORN, Journal
from lagging.agents.runner.locks import Lock, irregular
from lagging.agents.runner.manifest import MANIFEST, Manifest
from lagging.agents.runner.pool import Crew
from lagging.agents.runner.progress import Progress
from lagging.agents.runner.records import read_lines
from lagging.agents.sources import Speech, Text, chunk_size, lines_of
from lagging.data.files import UNFINISHED, unwritable, write_whole
from lagging.data.run import Run
from lagging.errors import UsageError

__all__ = ["Progress", "Result", "run", "run_job"]


@dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
        log: where the log is.
        total: sentences of the test set.
        done: those that are in the log, whether they failed or not.
        failed: the failed ones, and their kind of failure.
        reasons: of each kind, the first that there was, in words.
        before: those that were in the log when this session began.
        torn: lines that had broken off, and were translated again.
        finished: whether all was done.
        interrupted: whether somebody asked to stop.
        manifest: `run.json`.
    """

    log: Path
    total: int
    done: int
    failed: dict[int, str]
    reasons: dict[str, str]
    before: int
    torn: int
    finished: bool
    interrupted: bool
    manifest: Manifest


LOCK = ".run.lock"
FILES = (MANIFEST, LOG, TORN, "config.yaml", "scores.json")
"""What is read and written in a folder: nothing but files, so that nobody waits for the other end of a pipe."""


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """The folder, made if it is not there, and nobody else's while the block lasts."""
    new = [place for place in (folder / LOCK, folder, *folder.parents) if not place.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    lock = Lock(folder / LOCK)
    if not (lock.take(wait=False) and lock.lasts):
        who = lock.said()
        lock.close()
        raise UsageError(
            f"another run works in {folder}{f' ({who})' if who else ''}\n  fix: give another folder with -o."
        )
    try:
        lock.say(f"process {os.getpid()}")
        for name in FILES:
            if (folder / name).exists() and not (folder / name).is_file():
                raise irregular(folder / name)
        for left in (*folder.glob(f".*{UNFINISHED}"), *folder.glob(f"wavs/.*{UNFINISHED}")):
            left.unlink()  # somebody was killed
        yield
    finally:
        lock.say("")
        if new and [file.name for file in folder.iterdir()] == [LOCK]:  # it was refused
            _remove(new)
        lock.free()
        lock.close()


def _remove(new: Sequence[Path]) -> None:
    """Take back what a command has made, as far as nobody else has put anything there."""
    with contextlib.suppress(OSError):
        for place in new:
            place.unlink() if place.name == LOCK else place.rmdir()


def run_job(
    job: Job,
    *,
    workers: int = 1,
    strict: bool = False,
    first: int | None = None,
    retry_failed: bool = False,
    arguments: Sequence[str] = (),
    progress: Callable[[Progress], None] | None = None,
    ready: Callable[[Traits], None] | None = None,
) -> Result:
    """Take an agent over a test set, in processes that can be watched and ended; go on, if it was begun before.

    These processes import the program that calls this: let it do so below `if __name__ == "__main__":`.

    Args:
        job: what to do.
        workers: how many processes.
        strict: whether the first failure ends the run.
        first: only so many sentences, from the beginning.
        retry_failed: whether sentences that failed before are tried again.
        arguments: the command line, for `run.json`.
        progress: called now and then.
        ready: called with what the agent is, before the first sentence; what it raises ends the run.

    Raises:
        UsageError: the folder is somebody else's, or holds another run.
        LaggingError: the agent cannot be made, or the log cannot be written.
    """
    if workers < 1:
        raise UsageError(f"a run needs 1 worker or more, but got {workers}")
    folder = Path(job.output)
    if job.settings.batch < 1:
        raise UsageError(f"--batch is 1 or more, but got {job.settings.batch}")
    count = len(lines_of(job.source))
    workers = min(workers, max(count, 1))  # more would find nothing to do
    job.references(count)  # before the agent, whose model may take minutes, is made
    job.agent.fingerprint()
    with _alone(folder):
        before = Manifest.read(folder)
        if before is not None:
            over = _look_back(before, job, first, retry_failed)
            if over is not None:
                return over
        elif (folder / LOG).exists() and (folder / LOG).stat().st_size:
            other = f"{folder} has a log, but no run.json: it is not a run of lagging"
            raise UsageError(f"{other}\n  fix: give another folder with -o.")
        with contextlib.ExitStack() as kept:
            crew = Crew(job, workers, strict, min(job.settings.batch, max(count, 1)))
            kept.callback(crew.dismiss)
            hello = crew.meet()
            job.settings.check(hello.traits)
            if ready is not None:
                ready(hello.traits)
            source = job.settings.open(job.source, hello.traits.source)
            manifest = Manifest.of(job, source, hello, arguments)
            if before is not None:
                before.agree(manifest)
                manifest = before
            desk = Desk(None, hello.traits, source, job.references(len(source)), job.settings, folder)
            journal = kept.enter_context(contextlib.closing(Journal(folder)))
            with journal.lock.held():
                held = journal.look()
                torn = held.torn
                journal.tidy(held, frozenset(held.failed) if retry_failed else frozenset())
                held = journal.look()
            manifest.begin(workers, len(held.at), job)
            _config(folder, hello.traits)
            wanted = _wanted(source, first)
            far = Progress(journal.path, max(len(wanted), len(held.at)), held, torn)

            def tell() -> None:
                if progress is not None:
                    far.look()
                    far.stopping = crew.interrupted
                    progress(far)

            todo = array("q", (place for place in wanted if place not in held.at))
            if strict and held.failed:  # it has been stopped there before
                todo = todo[:0]
            with contextlib.suppress(KeyboardInterrupt):  # asked for twice: what is in the log is safe
                crew.run(todo, desk, journal, tell)
            return _ended(manifest, journal, wanted, len(source), far.before, torn, crew.interrupted)


def _wanted(source: Text | Speech, first: int | None) -> range:
    return range(len(source) if first is None else min(first, len(source)))


def _look_back(before: Manifest, job: Job, first: int | None, retry_failed: bool) -> Result | None:
    """Whether the run that began here is this one, and how it ended, if there is nothing left to do."""
    source = job.settings.open(job.source, before.data["agent"]["traits"]["source"])
    before.agree(Manifest.of(job, source, before=before))
    with contextlib.closing(Journal(Path(job.output))) as journal, journal.lock.held():
        held = journal.look()
        over = all(place in held.at for place in _wanted(source, first)) and not (retry_failed and held.failed)
        if over:
            journal.tidy(held)
    if not over:
        return None
    if before.data.get("summary") is None:  # it was broken off after its last sentence
        before.end("finished", len(held.at), len(source), held.failed)
    done = len(held.at)
    return Result(journal.path, len(source), done, held.failed, held.reasons, done, held.torn, True, False, before)


def _config(folder: Path, traits: Traits) -> None:
    """What SimulEval's own scoring looks for."""
    with write_whole(folder / "config.yaml") as file:
        yaml.safe_dump({"source_type": traits.source, "target_type": traits.target}, file)


def _ended(
    manifest: Manifest, journal: Journal, wanted: range, total: int, before: int, torn: int, interrupted: bool
) -> Result:
    """Put the log in order, and say how it ended."""
    with journal.lock.held():
        held = journal.look()
        journal.tidy(held)
    finished = all(place in held.at for place in wanted)
    how = "finished" if finished else "interrupted" if interrupted else "stopped"
    manifest.end(how, len(held.at), total, held.failed)
    asked = interrupted and not finished
    return Result(journal.path, total, len(held.at), held.failed, held.reasons, before, torn, finished, asked, manifest)


def run(
    agent: Any,
    source: str | Path | Sequence[str],
    reference: str | Path | Sequence[str] | None = None,
    *,
    settings: Settings | None = None,
    name: str = "",
) -> Run:
    """Take an agent over some sentences, here and now, and give back what it did.

    Nothing is written: for a run that survives a crash, see `lagging run` and `run_job`.

    Args:
        agent: an agent, or a function of the state.
        source: sentences, or a file of them; for an agent that listens to speech, a list of sound files.
        reference: reference translations, or a file of them.
        settings: chunks, levels, limits, real time; see `Settings`.
        name: name of the system.

    Returns:
        A Run, with a note of the sentences that failed.

    Example:
        >>> import lagging
        >>> def wait_2(state):
        ...     if state.finished or len(state.source) - len(state.target) >= 2:
        ...         return state.source[len(state.target)].upper() if len(state.target) < len(state.source) else None
        >>> made = run(wait_2, ["see you soon", "no"], ["see you soon", "no"])
        >>> made.prediction.tolist(), made.delays.tolist()
        (['SEE YOU SOON', 'NO'], [[2.0, 3.0, 3.0], [1.0]])
        >>> lagging.dal(made.delays[0], source_length=3)
        2.0
    """
    made = as_agent(agent)
    traits, how = Traits.of(made), settings or Settings()
    how.check(traits)
    desk = Desk(made, traits, _test_set(source, traits, how), _references(reference), how)
    if desk.references is not None and len(desk.references) != len(desk.source):
        raise UsageError(f"{len(desk.source)} sentences, but {len(desk.references)} references")
    lines: list[bytes] = [b""] * len(desk.source)
    for place, line, _ in desk.translate_all(range(len(desk.source))):
        lines[place] = line
    return read_lines(lines, name)


def _test_set(source: str | Path | Sequence[str], traits: Traits, how: Settings) -> Text | Speech:
    if isinstance(source, (str, Path)):
        return how.open(str(source), traits.source)
    if not source:
        raise UsageError("there is nothing to translate")
    size = chunk_size(traits.source, how.chunk)
    if traits.source == "speech":
        return Speech(list(map(str, source)), size)
    return Text(list(source), how.text_level, int(size))


def _references(reference: str | Path | Sequence[str] | None) -> Sequence[str] | None:
    return lines_of(reference) if isinstance(reference, (str, Path)) else reference
