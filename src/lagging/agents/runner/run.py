# SPDX-License-Identifier: Apache-2.0
"""Run an agent over a test set: from the beginning, or from where an earlier run ended."""

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
from lagging.agents.runner.jobs import Job, SentenceRunner, Settings
from lagging.agents.runner.journal import LOG, TORN, Journal
from lagging.agents.runner.locks import Lock, not_regular_file
from lagging.agents.runner.manifest import MANIFEST, Manifest
from lagging.agents.runner.pool import WorkerPool
from lagging.agents.runner.progress import Progress
from lagging.agents.runner.records import read_lines
from lagging.agents.sources import SpeechTestSet, TextTestSet, chunk_size, read_text_lines
from lagging.data.files import UNFINISHED, unwritable, write_whole
from lagging.data.run import Run
from lagging.errors import UsageError

__all__ = ["Progress", "Result", "run", "run_job"]


@dataclass(frozen=True)
class Result:
    """How a run ended.

    Attributes:
        log: path of the log.
        total: number of sentences in the test set.
        done: number of sentences in the log, failed ones included.
        failed: index → kind of failure, of the sentences that failed.
        reasons: kind of failure → message of the first such failure.
        before: number of sentences in the log when this session began.
        torn: number of incomplete lines, whose sentences were translated again.
        finished: whether all requested sentences are in the log.
        interrupted: whether the run was asked to stop.
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
"""Files of a run, which must be regular files: opening a pipe would block."""


@contextlib.contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Create the folder if it does not exist, and lock it while the block lasts."""
    created = [path for path in (folder / LOCK, folder, *folder.parents) if not path.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(folder, error) from None
    lock = Lock(folder / LOCK)
    if not (lock.take(wait=False) and lock.is_current):
        owner = lock.read_owner()
        lock.close()
        raise UsageError(
            f"another run uses {folder}{f' ({owner})' if owner else ''}\n  fix: give another folder with -o."
        )
    try:
        lock.write_owner(f"process {os.getpid()}")
        for name in FILES:
            if (folder / name).exists() and not (folder / name).is_file():
                raise not_regular_file(folder / name)
        for leftover in (*folder.glob(f".*{UNFINISHED}"), *folder.glob(f"wavs/.*{UNFINISHED}")):
            leftover.unlink()  # of a process that was killed
        yield
    finally:
        lock.write_owner("")
        if created and [file.name for file in folder.iterdir()] == [LOCK]:  # the run was refused
            _remove(created)
        lock.free()
        lock.close()


def _remove(created: Sequence[Path]) -> None:
    """Remove the lock and the folders that this command has created, if they are empty."""
    with contextlib.suppress(OSError):
        for path in created:
            path.unlink() if path.name == LOCK else path.rmdir()


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
    pool: WorkerPool | None = None,
) -> Result:
    """Run an agent over a test set in worker processes; resume the run if the folder holds an unfinished one.

    Worker processes import the calling program: call this below `if __name__ == "__main__":`.

    Args:
        job: agent, inputs, settings and output folder.
        workers: number of processes.
        strict: whether the first failure ends the run.
        first: number of sentences to translate, from the beginning; all if None.
        retry_failed: whether to translate again the sentences that failed in an earlier session.
        arguments: the command line, for `run.json`.
        progress: called regularly with the progress.
        ready: called with the traits of the agent before the first sentence; an exception ends the run.
        pool: workers that have done another job, and wait for this one; the caller kills them.

    Raises:
        UsageError: another process uses the folder, or it holds another run.
        LaggingError: the agent cannot be made, or the log cannot be written.
    """
    if workers < 1:
        raise UsageError(f"a run needs 1 worker or more, but got {workers}")
    folder = Path(job.output)
    if job.settings.batch < 1:
        raise UsageError(f"--batch is 1 or more, but got {job.settings.batch}")
    count = len(read_text_lines(job.source))
    workers = min(workers, max(count, 1))  # more would have nothing to do
    job.references(count)  # before the agent is made, which may take minutes
    job.agent.fingerprint()
    with _exclusive(folder):
        before = Manifest.read(folder)
        if before is not None:
            result = _finished_before(before, job, first, retry_failed)
            if result is not None:
                return result
        elif (folder / LOG).exists() and (folder / LOG).stat().st_size:
            raise UsageError(
                f"{folder} has a log, but no run.json: it is not a run of lagging\n  fix: give another folder with -o."
            )
        with contextlib.ExitStack() as stack:
            if pool is None:
                pool = WorkerPool(job, workers, strict, min(job.settings.batch, max(count, 1)))
                stack.callback(pool.kill)
            else:
                pool.take(job)
            handshake = pool.start_first()
            job.settings.check(handshake.traits)
            if ready is not None:
                ready(handshake.traits)
            source = job.settings.open(job.source, handshake.traits.source)
            manifest = Manifest.of(job, source, handshake, arguments)
            if before is not None:
                before.check_same(manifest)
                manifest = before
            runner = SentenceRunner(None, handshake.traits, source, job.references(len(source)), job.settings, folder)
            journal = stack.enter_context(contextlib.closing(Journal(folder)))
            with journal.lock.held():
                contents = journal.read()
                torn = contents.torn
                journal.sort(contents, frozenset(contents.failed) if retry_failed else frozenset())
                contents = journal.read()
            manifest.begin(workers, len(contents.positions), job)
            _config(folder, handshake.traits)
            indices = _indices(source, first)
            state = Progress(journal.path, max(len(indices), len(contents.positions)), contents, torn)

            def report() -> None:
                if progress is not None:
                    state.update()
                    state.stopping = pool.interrupted
                    progress(state)

            todo = array("q", (index for index in indices if index not in contents.positions))
            if strict and contents.failed:  # --strict has stopped it there before
                todo = todo[:0]
            with contextlib.suppress(KeyboardInterrupt):  # stopped twice: what is in the log is kept
                pool.run(todo, runner, journal, report)
            return _end(manifest, journal, indices, len(source), state.before, torn, pool.interrupted)


def _indices(source: TextTestSet | SpeechTestSet, first: int | None) -> range:
    return range(len(source) if first is None else min(first, len(source)))


def _finished_before(before: Manifest, job: Job, first: int | None, retry_failed: bool) -> Result | None:
    """Check that the run in the folder is this one; return its result if nothing is left to do."""
    source = job.settings.open(job.source, before.data["agent"]["traits"]["source"])
    before.check_same(Manifest.of(job, source, before=before))
    with contextlib.closing(Journal(Path(job.output))) as journal, journal.lock.held():
        contents = journal.read()
        complete = all(index in contents.positions for index in _indices(source, first)) and not (
            retry_failed and contents.failed
        )
        if complete:
            journal.sort(contents)
    if not complete:
        return None
    if before.data.get("summary") is None:  # it ended between the last sentence and the summary
        before.end("finished", len(contents.positions), len(source), contents.failed)
    done = len(contents.positions)
    return Result(
        journal.path, len(source), done, contents.failed, contents.reasons, done, contents.torn, True, False, before
    )


def _config(folder: Path, traits: Traits) -> None:
    """Write the config.yaml that SimulEval's `--score-only` reads."""
    with write_whole(folder / "config.yaml") as file:
        yaml.safe_dump({"source_type": traits.source, "target_type": traits.target}, file)


def _end(
    manifest: Manifest, journal: Journal, indices: range, total: int, before: int, torn: int, interrupted: bool
) -> Result:
    """Sort the log, write the summary, and return the result."""
    with journal.lock.held():
        contents = journal.read()
        journal.sort(contents)
    finished = all(index in contents.positions for index in indices)
    outcome = "finished" if finished else "interrupted" if interrupted else "stopped"
    manifest.end(outcome, len(contents.positions), total, contents.failed)
    stopped_early = interrupted and not finished
    return Result(
        journal.path,
        total,
        len(contents.positions),
        contents.failed,
        contents.reasons,
        before,
        torn,
        finished,
        stopped_early,
        manifest,
    )


def run(
    agent: Any,
    source: str | Path | Sequence[str],
    reference: str | Path | Sequence[str] | None = None,
    *,
    settings: Settings | None = None,
    name: str = "",
) -> Run:
    """Run an agent over sentences in this process, and return its output.

    No files are written. For a run that survives a crash, see `lagging run` and `run_job`.

    Args:
        agent: an agent, or a function of the state.
        source: sentences, or the path of a file of them; for an agent with speech input, a list of sound files.
        reference: reference translations, or the path of a file of them.
        settings: chunk size, levels, limits, real time; see `Settings`.
        name: name of the system.

    Returns:
        A Run, with a note on the sentences that failed.

    Example:
        >>> import lagging
        >>> def wait_2(state):
        ...     if state.finished or len(state.source) - len(state.target) >= 2:
        ...         return state.source[len(state.target)].upper() if len(state.target) < len(state.source) else None
        >>> output = run(wait_2, ["see you soon", "no"], ["see you soon", "no"])
        >>> output.prediction.tolist(), output.delays.tolist()
        (['SEE YOU SOON', 'NO'], [[2.0, 3.0, 3.0], [1.0]])
        >>> lagging.dal(output.delays[0], source_length=3)
        2.0
    """
    agent, settings = as_agent(agent), settings or Settings()
    traits = Traits.of(agent)
    settings.check(traits)
    test_set = _test_set(source, traits, settings)
    runner = SentenceRunner(agent, traits, test_set, _references(reference), settings)
    if runner.references is not None and len(runner.references) != len(runner.source):
        raise UsageError(f"{len(runner.source)} sentences, but {len(runner.references)} references")
    lines: list[bytes] = [b""] * len(runner.source)
    for index, line, _ in runner.translate_all(range(len(runner.source))):
        lines[index] = line
    return read_lines(lines, name)


def _test_set(source: str | Path | Sequence[str], traits: Traits, settings: Settings) -> TextTestSet | SpeechTestSet:
    if isinstance(source, (str, Path)):
        return settings.open(str(source), traits.source)
    if not source:
        raise UsageError("there is nothing to translate")
    size = chunk_size(traits.source, settings.chunk)
    if traits.source == "speech":
        return SpeechTestSet(list(map(str, source)), size)
    return TextTestSet(list(source), settings.text_level, int(size))


def _references(reference: str | Path | Sequence[str] | None) -> Sequence[str] | None:
    return read_text_lines(reference) if isinstance(reference, (str, Path)) else reference
