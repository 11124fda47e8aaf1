# SPDX-License-Identifier: Apache-2.0
"""The work: train what is not trained, run what has not been run, and keep what came of it.

Each training and each run is a process of its own, with one thread; as many go on at a time as there are cores. All of
them go on from where they were when they were broken off. Nothing that another configuration made is taken for what the
plan asks for: a model is refused, a run is done again.
"""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from lab import results
from lab.agents import READING, Simultaneous
from lab.data import Corpus, Pieces, read_corpus
from lab.experiments import Plan, Setting
from lab.model import load
from lab.training import Epoch, Training, expected
from lagging.agents import run
from lagging.agents.runner.locks import Lock
from lagging.data.files import write_whole

__all__ = ["Work"]

HERE = Path(__file__).parent
STOPS = (signal.SIGINT, signal.SIGTERM)
Tests = Mapping[str, list[tuple[str, str]]]
Task = tuple[str, str]
"""`("train", experiment)` or `("run", setting)`."""


@dataclass(frozen=True)
class Work:
    """What is to be done, and where.

    Attributes:
        plan: the experiments.
        folder: checkpoints, logs, and the test sets as text.
        kept: where results are kept, without text.
        data: the folder with the files of the corpus.
        say: takes a line of progress.
    """

    plan: Plan
    folder: Path
    kept: Path
    data: Path | None
    say: Callable[[str], None]

    @cached_property
    def corpus(self) -> Corpus:
        """What is trained on and translated; read once."""
        return read_corpus(self.plan.scale.corpus, self.data, self.plan.scale.reverse)

    def prepare(self) -> None:
        """Subwords; and the test sets, the first and all together, as a file for each side.

        Raises:
            SystemExit: the folder was made from other data, or has other subwords.
        """
        corpus = self.corpus
        self.folder.mkdir(parents=True, exist_ok=True)
        made, digest = self.folder / "corpus.sha256", hashlib.sha256(repr(corpus).encode()).hexdigest()
        if not made.exists():
            with write_whole(made) as file:
                file.write(digest)
        pieces = Pieces.train(corpus, self._pieces, self.plan.scale.pieces)
        if made.read_text("utf-8") != digest or len(pieces) != self.plan.scale.pieces:
            raise SystemExit(f"{self.folder} was made from other data or other subwords: give another --work")
        for everywhere in (False, True):
            pairs = [pair for part in _tests(corpus, everywhere).values() for pair in part]
            for path, lines in zip(self._texts(everywhere), zip(*pairs, strict=True), strict=True):
                with write_whole(path) as file:
                    file.writelines(f"{line}\n" for line in lines)

    @property
    def _pieces(self) -> Path:
        return self.folder / "pieces.model"

    def _texts(self, everywhere: bool) -> tuple[Path, Path]:
        name = "tests" if everywhere else "test"
        return self.folder / f"{name}.source", self.folder / f"{name}.reference"

    def history(self, name: str) -> list[Epoch] | None:
        """What the training of an experiment said; None if it has not come to its end.

        Raises:
            SystemExit: it was configured otherwise.
        """
        path = self.folder / f"{name}.json"
        if not path.exists():
            return None
        record = json.loads(path.read_text("utf-8"))
        if record["recipe"] != self.plan.recipe(name):
            model = path.with_suffix(".pt").name
            raise SystemExit(f"{path} is of another configuration: remove it and {model}, or give another --work")
        history: list[Epoch] = record["history"]
        return history

    def train(self, name: str) -> None:
        """Train a model, or go on training it, in this process."""
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        training = Training(self.plan, name, self.corpus, Pieces(self._pieces), self.folder)
        epochs = self.plan.experiments[name].epochs

        def tell(epoch: Epoch) -> None:
            shown = ", ".join(f"{what} {value:.3f}" for what, value in epoch.items() if what != "epoch")
            self.say(f"{name}: epoch {epoch['epoch']} of {epochs}: {shown}")

        history = training.run(tell)
        with write_whole(self.folder / f"{name}.json") as file:
            json.dump({"recipe": self.plan.recipe(name), "history": history}, file)

    def run(self, name: str) -> None:
        """Translate a test set, or all of them, and keep what came of it.

        Raises:
            SystemExit: the model has not been trained.
        """
        setting, ticket = self.plan.settings[name], self._ticket(name)
        history = self.history(setting.model)
        if history is None:
            raise SystemExit(f"{name} is run on {setting.model}, which has not been trained")
        tests, pieces = _tests(self.corpus, setting.everywhere), Pieces(self._pieces)
        texts = [pair for part in tests.values() for pair in part]
        torch.set_num_threads(1)
        options: dict[str, Any] = dict(setting.options)
        agent = Simultaneous(load(self._model(setting)).eval(), pieces, setting.policy, **options)
        settings = replace(READING, spm_model=str(self._pieces), joined_by="word", level="word", batch=100)
        sources, references = zip(*texts, strict=True)
        made = run(agent, sources, references, settings=settings)
        results.keep_pieces(setting, made, self.kept, pieces, texts, self._trained(setting, history, tests, pieces))
        self._done(name).parent.mkdir(exist_ok=True)
        with write_whole(self._done(name)) as file:
            file.write(ticket)

    def _trained(self, setting: Setting, history: list[Epoch], tests: Tests, pieces: Pieces) -> results.Trained:
        """What training says of a setting, and what latency it expects of it on the first test set."""
        experiment = self.plan.experiments[setting.model]
        sizes = {part: len(pairs) for part, pairs in tests.items()}
        recipe = {key: value for key, value in asdict(experiment).items() if key != "settings"}
        latencies: dict[str, float] = {}
        if experiment.path == "milk":
            torch.set_num_threads(1)
            pairs = pieces.pairs(next(iter(tests.values())))
            latencies = expected(load(self._model(setting)), pairs, self.plan.scale.tokens)
        return results.Trained(sizes, recipe, history, latencies)

    def _model(self, setting: Setting) -> Path:
        return self.folder / f"{setting.model}.pt"

    def _done(self, name: str) -> Path:
        return self.folder / "runs" / f"{name}.kept"

    def _ticket(self, name: str) -> str:
        """All that decides what comes out of a setting."""
        setting = self.plan.settings[name]
        return json.dumps([*self.plan.recipe(setting.model), asdict(setting)])

    def _kept(self, name: str) -> bool:
        done = self._done(name)
        finished = (self.kept / f"{name}.npz").exists() and done.exists()
        return finished and done.read_text("utf-8") == self._ticket(name)

    def _left(self) -> Iterator[Task]:
        """What can be done now: stage by stage and seed by seed; trainings first, since others wait for them."""
        trained = {name for name in self.plan.experiments if self.history(name) is not None}
        for _, group in groupby(self.plan.experiments.items(), lambda item: self.plan.stages.get(item[0])):
            members, waits = dict(group), False
            for name, one in members.items():
                if name not in trained:
                    waits = True
                    if one.start is None or one.start in trained:
                        yield "train", name
            for setting in (setting for one in members.values() for setting in one.settings):
                if setting.model in trained and not self._kept(setting.name):
                    waits = True
                    yield "run", setting.name
            if waits:
                return

    def here(self) -> None:
        """Do all that is left in this process, one task after another.

        Raises:
            SystemExit: another lab works in this folder.
        """
        with self._locked():
            while task := next(self._left(), None):
                what, name = task
                self.say(" ".join(task))
                begin = time.process_time()
                (self.train if what == "train" else self.run)(name)
                self.say(f"{what} {name}: {time.process_time() - begin:.0f} CPU seconds")

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = Lock(self.folder / ".lab.lock")
        if not lock.take(wait=False):
            lock.close()
            raise SystemExit(f"another lab works in {self.folder}: give another --work")
        try:
            yield
        finally:
            lock.close()

    def everything(self, jobs: int, command: list[str]) -> None:
        """Do all that is left, `jobs` at a time, each by `command` with the task at its end.

        Raises:
            SystemExit: one of them failed, and the others were stopped; or another lab works in this folder.
            KeyboardInterrupt: somebody asked to stop, and all were stopped.
        """
        with self._locked():
            self._spread(jobs, command)

    def _spread(self, jobs: int, command: list[str]) -> None:
        going: dict[Task, subprocess.Popen[bytes]] = {}
        signals: list[int] = []  # to stop; not at once, or who is just being started would be left behind
        before = {one: signal.signal(one, lambda number, _: signals.append(number)) for one in STOPS}
        try:
            while not signals:
                left = [task for task in self._left() if task not in going]
                for task in left[: jobs - len(going)]:
                    self.say(" ".join(task))
                    going[task] = subprocess.Popen([*command, f"--{task[0]}", task[1]], cwd=HERE.parent)
                if not going:
                    return
                while not (ended := [task for task in going if going[task].poll() is not None]) and not signals:
                    time.sleep(0.2)
                for task in ended:
                    if code := going.pop(task).returncode:
                        raise SystemExit(f"{' '.join(task)} ended with exit code {code}; see above")
            raise KeyboardInterrupt
        finally:
            for process in going.values():
                process.terminate()
            for process in going.values():
                process.wait()
            for one, handler in before.items():
                signal.signal(one, handler)


def _tests(corpus: Corpus, everywhere: bool) -> Tests:
    """All test sets, or the first."""
    return dict(list(corpus.tests.items())[: None if everywhere else 1])
