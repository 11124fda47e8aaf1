# SPDX-License-Identifier: Apache-2.0
"""What running an agent costs, beside the agent: a table of ratios, measured in one run.

    python bench/agents.py                  # 1000 sentences of 25 words: two minutes
    python bench/agents.py --quick          # a few sentences: shows that it runs, the numbers mean nothing

The agent is wait-3, which copies. A step is a call of its policy; what the policy itself takes is measured apart, on
the same states. SimulEval (importable, or in another environment given by --simuleval-python) calls it once for every
word that is read, and so do we if it is `chunkwise`; else an agent is asked again after it has written, and there are
more steps for the same sentences. All of it is CPU time, best of several rounds in which everything takes its turn,
except where wall time is what is waited for: behind a network, and with several workers.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import wait_three
from lagging.agents.loading import Spec
from lagging.agents.loop import drive, drive_batch
from lagging.agents.protocol import Traits
from lagging.agents.runner.jobs import SentenceRunner, Settings
from lagging.agents.sentence import Sentence
from lagging.agents.sources import TextSource, TextTestSet
from scoring import Bench, Cost, Row, at_least, run, show

WORDS, BATCH = 25, 32

# ---- what is run ----------------------------------------------------------------------------------------------

THEIRS = {
    "WaitK": """
from simuleval.agents import TextToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class WaitK(TextToTextAgent):
    def policy(self):
        states = self.states
        written = len(states.target)
        if len(states.source) - written >= 3 or states.source_finished:
            last = states.source_finished and written + 1 == len(states.source)
            return WriteAction(states.source[written], finished=last)
        return ReadAction()
""",
    "Listener": """
from simuleval.agents import SpeechToTextAgent
from simuleval.agents.actions import ReadAction, WriteAction
from simuleval.utils import entrypoint


@entrypoint
class Listener(SpeechToTextAgent):
    def policy(self):
        states = self.states
        if states.source_finished or len(states.source) > (len(states.target) + 3) * states.source_sample_rate:
            return WriteAction("word", finished=states.source_finished)
        return ReadAction()
""",
}
"""The same for SimulEval, which takes one from a file."""

SIMULEVAL_LOOP = """
import json, sys, time
from argparse import Namespace
from types import SimpleNamespace
sys.path.insert(0, sys.argv[1])
from WaitK import WaitK
from simuleval.evaluator import SentenceLevelEvaluator


class Counted(WaitK):
    calls = 0
    def policy(self):
        Counted.calls += 1
        return super().policy()


def spent(agent, output):
    evaluator = SentenceLevelEvaluator.from_args(Namespace(
        score_only=False, no_scoring=True, no_progress_bar=True, continue_unfinished=False, output=output,
        source=sys.argv[2], target=sys.argv[2], source_type="text", target_type="text", source_segment_size=1,
        start_index=0, end_index=-1, quality_metrics=[], latency_metrics=[], computation_aware=False,
        no_use_ref_len=False, eval_latency_unit="word", eval_latency_spm_model=None, dataloader=None,
        dataloader_class=None, tgt_lang=None,
    ))
    begin = time.process_time()
    evaluator(agent)
    return time.process_time() - begin


spent(Counted(Namespace()), None)
agent = WaitK(Namespace())
loop, log = spent(agent, None), spent(agent, sys.argv[3])
words = open(sys.argv[2]).readline().split()
shown = [SimpleNamespace(source=words[:n], target=words[:max(n - 3, 0)], source_finished=n == len(words))
         for n in range(1, len(words) + 1)]
begin = time.process_time()
for _ in range(200):
    for agent.states in shown:
        agent.policy()
policy = (time.process_time() - begin) / 200 / len(shown)
print(json.dumps({"steps": Counted.calls, "loop": loop, "log": log, "policy": policy}))
"""

SIMULEVAL_CLI = "from simuleval.cli import main; main()"

TONES = """
import sys
import numpy, soundfile
count, seconds, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
for n in range(count):
    sound = 0.1 * numpy.random.default_rng(n).standard_normal(16_000 * seconds)
    soundfile.write(f"{folder}/{n}.wav", sound.clip(-1, 1), 16_000, subtype="PCM_16")
"""


# ---- in this process ------------------------------------------------------------------------------------------


def cpu(work: Callable[..., object], *args: str) -> float:
    begin = time.process_time()
    work(*args)
    return time.process_time() - begin


@dataclass(frozen=True)
class Ours:
    """Our loop over some sentences, without processes."""

    lines: list[str]

    def loop(self, name: str) -> None:
        """READ and WRITE, and nothing else."""
        agent = getattr(wait_three, name)()
        traits = Traits.of(agent)
        for line in self.lines:
            drive(agent, Sentence(TextSource(line.split()), traits))

    def log(self, name: str) -> None:
        """And the lines of the log."""
        agent = getattr(wait_three, name)()
        runner = SentenceRunner(agent, Traits.of(agent), TextTestSet(self.lines), self.lines, Settings())
        for index in range(len(self.lines)):
            runner.translate(index)

    def batched(self) -> None:
        """Many sentences at once."""
        agent = wait_three.Batched()
        traits = Traits.of(agent)
        sentences = (Sentence(TextSource(line.split()), traits) for line in self.lines)
        for _ in drive_batch(agent, sentences, BATCH):
            pass

    def steps(self, name: str) -> int:
        """How often the agent is asked."""
        agent = getattr(wait_three, name)()
        sentence = Sentence(TextSource(self.lines[0].split()), Traits.of(agent))
        drive(agent, sentence)
        return len(sentence.compute) * len(self.lines)

    def policy(self, name: str) -> float:
        """CPU seconds of one call of the policy alone, on states as it sees them."""
        agent, words = getattr(wait_three, name)(), self.lines[0].split()
        states = [
            SimpleNamespace(source=words[:n], target=words[: max(n - 3, 0)], finished=n == len(words))
            for n in range(1, len(words) + 1)
        ]

        def calls() -> None:
            for _ in range(200):
                for state in states:
                    agent.policy(state)

        return cpu(calls) / 200 / len(states)


def said_by(command: list[str]) -> dict[str, float]:
    """What a process prints as JSON in its last line."""
    ran = subprocess.run(command, capture_output=True, encoding="utf-8")
    if ran.returncode:
        sys.exit(f"failed: {' '.join(command)[:200]}\n{ran.stderr[-2000:]}")
    timings: dict[str, float] = json.loads(ran.stdout.splitlines()[-1])
    return timings


def per_step(what: str, seconds: float, steps: int) -> Row:
    each = seconds / steps
    return Row(what, f"{each * 1e6:.2f} µs, {1 / each:,.0f}/s" if each > 0 else "too few to tell")


def beside(what: str, seconds: float, steps: int, policy: float) -> Row:
    """What a step costs without the policy."""
    each = (seconds / steps - policy) * 1e6
    return Row(what, f"{each:.2f} µs", "< 2 µs", each < 2)


def loops(ours: Ours, folder: Path, source: Path, python: str | None, rounds: int) -> Iterator[Row]:
    """The loop itself, against SimulEval's."""
    measurements: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(rounds):
        timed: dict[str, float] = {}
        for name in ("Plain", "Chunkwise"):
            timed |= {f"loop {name}": cpu(ours.loop, name), f"log {name}": cpu(ours.log, name)}
            timed[f"policy {name}"] = ours.policy(name)
        measurements.append({**timed, "batched": cpu(ours.batched)})
        if python is not None:
            loop = ["-c", SIMULEVAL_LOOP, str(folder), str(source), str(folder / f"simuleval-{number}")]
            theirs.append(said_by([python, *loop]))
    best = {name: min(timing[name] for timing in measurements) for name in measurements[0]}
    count = len(ours.lines)
    for name, words in (("Plain", "asked again after a write"), ("Chunkwise", "asked once a word, to read and write")):
        steps, policy = ours.steps(name), best[f"policy {name}"]
        yield Row(f"{words}: steps a sentence", f"{steps / count:g}")
        yield Row("  the policy alone", f"{policy * 1e6:.2f} µs")
        for what, words in (("loop", "the loop"), ("log", "the loop, and the line of the log")):
            yield per_step(f"  {words}", best[f"{what} {name}"], steps)
            if name == "Plain":
                yield beside("    beside the policy", best[f"{what} {name}"], steps, policy)
    yield per_step(f"{BATCH} sentences at once: the loop", best["batched"], ours.steps("Plain"))
    if not theirs:
        yield Row("SimulEval", "NOT RUN: not installed")
        return
    other = {name: min(timing[name] for timing in theirs) for name in theirs[0]}
    steps = int(other["steps"])
    yield Row("SimulEval: steps a sentence", f"{steps / count:g}")
    yield Row("  the policy alone", f"{other['policy'] * 1e6:.2f} µs")
    yield per_step("  its loop", other["loop"], steps)
    yield per_step("  its loop, and the line of the log", other["log"], steps)
    for what, words in (("loop", "the loop"), ("log", "with the log")):
        plain = (other[what] / steps) / (best[f"{what} Plain"] / ours.steps("Plain"))
        yield at_least(f"SimulEval ÷ ours, a step, {words}", plain, 8)
        yield Row("  a sentence, asked again after a write", f"{other[what] / best[f'{what} Plain']:.1f}×")
        yield Row("  a sentence, asked once a word", f"{other[what] / best[f'{what} Chunkwise']:.1f}×")


# ---- whole processes ------------------------------------------------------------------------------------------

OUT = "{out}"
"""Stands for a folder that is not there yet."""


def ours_on(source: Path, reference: Path, agent: str, *more: str) -> list[str]:
    which = f"{Path(wait_three.__file__)}:{agent}"
    data = ["--source", str(source), "--reference", str(reference), "-o", OUT, "-q"]
    return [sys.executable, "-m", "lagging", "run", which, *data, *more]


def theirs_on(python: str, source: Path, reference: Path, agent: str, *more: str) -> list[str]:
    which = ["--agent", str(source.parent / f"{agent}.py"), "--no-progress-bar"]
    data = ["--source", str(source), "--target", str(reference), "--output", OUT]
    return [python, "-c", SIMULEVAL_CLI, *which, *data, *more]


def costs(bench: Bench, commands: dict[str, list[str]]) -> dict[str, Cost]:
    """The least CPU time and the most memory of some commands."""
    seen: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(bench.rounds):
        for name, command in commands.items():
            with tempfile.TemporaryDirectory() as out:
                seen[name].append(
                    run([str(Path(out, "o")) if word == OUT else word for word in command], bench.bytecode)
                )
    return {n: Cost(min(c.cpu for c in costs), max(c.memory for c in costs)) for n, costs in seen.items()}


def write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def processes(ours: Ours, folder: Path, python: str | None, bench: Bench) -> Iterator[Row]:
    """From the command line to the scores, and what each further sentence costs."""
    count, many = len(ours.lines), 20 * len(ours.lines)
    words, more = write(folder / "words", ours.lines), write(folder / "many", ours.lines * 20)
    commands = {"run": ours_on(words, words, "Plain", "-m", "AL,DAL,AP,LAAL,BLEU")}
    for workers in ("1", "2"):
        for name, source in ((workers, words), (f"{workers} more", more)):
            commands[name] = ours_on(source, source, "Plain", "--no-scores", "--workers", workers)
    if python is not None:
        metrics = ["--latency-metrics", "AL", "DAL", "AP", "LAAL", "--quality-metrics", "BLEU"]
        commands["simuleval"] = theirs_on(python, words, words, "WaitK", *metrics)
    cost = costs(bench, commands)
    yield Row(f"lagging run, {count:,} sentences; AL, DAL, AP, LAAL, BLEU", str(cost["run"]))
    if python is not None:
        yield Row("simuleval, the same", str(cost["simuleval"]))
        yield Row("simuleval ÷ lagging run", f"{cost['simuleval'].cpu / cost['run'].cpu:.1f}×")
    for workers, label in (("1", "1 worker"), ("2", "2 workers")):
        further = cost[f"{workers} more"].cpu - cost[workers].cpu
        yield per_step(f"{label}: each further step up to {many:,} sentences", further, ours.steps("Plain") * 19)
    yield from _alike(folder, words)


def _alike(folder: Path, words: Path) -> Iterator[Row]:
    """Two workers: the same bytes, in half the time of an agent that waits for something."""
    spent, logs = {}, {}
    for workers in ("1", "2"):
        out = folder / f"workers-{workers}"
        command = ours_on(words, words, "Slow", "--no-scores", "--no-times", "--workers", workers)
        begin = time.perf_counter()
        subprocess.run([word.replace(OUT, str(out)) for word in command], check=True, capture_output=True)
        spent[workers], logs[workers] = time.perf_counter() - begin, (out / "instances.log").read_bytes()
    same = logs["1"] == logs["2"]
    yield Row("log of 2 workers = log of 1, to the byte", "yes" if same else "NO", "yes", same)
    yield Row("an agent that waits 10 ms a sentence: wall, 1 ÷ 2", f"{spent['1'] / spent['2']:.2f}×")


def speech(folder: Path, python: str | None, bench: Bench, few: int, many: int) -> Iterator[Row]:
    """Memory that another second of speech takes: in more recordings, and in a longer one."""
    if importlib.util.find_spec("soundfile") is None:
        yield Row("memory of each further second", "NOT RUN: soundfile is not installed")
        return
    commands: dict[str, list[str]] = {}
    for name, count, seconds in (("few", few, 10), ("many", many, 10), ("short", 1, 10 * few), ("long", 1, 10 * many)):
        place = folder / f"wavs-{name}"
        place.mkdir()
        run([sys.executable, "-c", TONES, str(count), str(seconds), str(place)], bench.bytecode)
        wavs = write(folder / name, (str(place / f"{n}.wav") for n in range(count)))
        texts = write(folder / f"{name}.txt", ["word"] * count)
        commands[f"ours {name}"] = ours_on(wavs, texts, "Listener", "--no-scores")
        if python is not None:
            types = ["--source-type", "speech", "--target-type", "text"]
            settings = ["--source-segment-size", "500", "--no-scoring", *types]
            commands[f"simuleval {name}"] = theirs_on(python, wavs, texts, "Listener", *settings)
    cost, audio = costs(bench, commands), 10 * (many - few)
    everybody = ["ours", *(["simuleval"] if python is not None else [])]
    for large, small, words in (("many", "few", "in more recordings"), ("long", "short", "in one recording")):
        for who in everybody:
            kb = (cost[f"{who} {large}"].memory - cost[f"{who} {small}"].memory) * 1000 / audio
            yield Row(f"memory of each further second {words}: {who}", f"{kb:.1f} KB")
    for who in everybody:
        each = (cost[f"{who} many"].cpu - cost[f"{who} few"].cpu) / audio / 2
        yield Row(f"each further step of 500 ms: {who}", f"{each * 1e6:.0f} µs CPU")


def remote(ours: Ours, rounds: int) -> Iterator[Row]:
    """An agent behind a socket of this machine. Here wall time counts: it is waiting that takes long."""
    if importlib.util.find_spec("websockets") is None:
        yield Row("steps behind a socket", "NOT RUN: websockets is not installed")
        return
    serve = [sys.executable, "-m", "lagging", "serve", f"{wait_three.__file__}:Plain", "--port", "0"]
    with subprocess.Popen(serve, stderr=subprocess.PIPE, encoding="utf-8") as server:
        try:
            assert server.stderr is not None
            address = server.stderr.readline().split()[-1]
            agent = Spec("remote", address).make()
            traits, few = Traits.of(agent), ours.lines[: max(len(ours.lines) // 5, 1)]
            steps = ours.steps("Plain") // len(ours.lines) * len(few)

            def translate() -> None:
                for line in few:
                    drive(agent, Sentence(TextSource(line.split()), traits))

            walls, busy = [], []
            for _ in range(rounds):
                begin = time.perf_counter()
                busy.append(cpu(translate))
                walls.append(time.perf_counter() - begin)
        finally:
            server.terminate()
    speed = steps / min(walls)
    yield Row(
        "steps a second, by the clock on the wall", f"{speed:,.0f}", "> 104", speed > 104
    )  # SimulEval's main: 104
    yield Row("CPU of a step, where it is asked", f"{min(busy) / steps * 1e6:.0f} µs")


# ---- the table ------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(description="What running an agent costs, beside the agent.")
    parser.add_argument("--quick", action="store_true", help="small and once: the numbers mean nothing")
    parser.add_argument("--simuleval-python", metavar="PATH", help="a Python that has SimulEval, if not this one")
    args = parser.parse_args()
    if not hasattr(os, "wait4"):
        sys.exit("the CPU time of another process cannot be measured on this system (no os.wait4)")
    rounds, count = (1, 20) if args.quick else (5, 1000)
    python = args.simuleval_python or (sys.executable if importlib.util.find_spec("simuleval") else None)
    dice = random.Random(0)
    lines = [" ".join("".join(dice.choices("abcdefgh", k=5)) for _ in range(WORDS)) for _ in range(count)]

    print(f"CPU time, best of {rounds}; {count:,} sentences of {WORDS} words; Python {sys.version.split()[0]}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for agent, text in THEIRS.items():
            (folder / f"{agent}.py").write_text(text, encoding="utf-8")
        source, bench = write(folder / "words", lines), Bench(1 if args.quick else 3, folder / "bytecode")
        ours = Ours(lines)
        show("steps of text", loops(ours, folder, source, python, rounds), not args.quick)
        show("whole processes", processes(ours, folder, python, bench), not args.quick)
        show("behind a socket", remote(ours, rounds), not args.quick)
        few, many = (1, 2) if args.quick else (6, 60)
        show("speech", speech(folder, python, bench, few, many), not args.quick)


if __name__ == "__main__":
    main()
