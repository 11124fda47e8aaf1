# SPDX-License-Identifier: Apache-2.0
"""What quality costs: BLEU, chrF, chrF++, TER and WER beside sacreBLEU's and jiwer's, in one process and one run.

    python bench/quality.py                    # 100 000 segments, TER on 1 000: several minutes, most of it sacreBLEU's
    python bench/quality.py --segments 20000
    python bench/quality.py --before FOLDER    # beside another version, a checkout
    python bench/quality.py --quick            # shows that it runs, the numbers mean nothing

First `lagging score LOG`, as processes of their own, on one core, start-up and reading included: with the default
metrics and with those of quality, on logs of 25 tokens a segment; CPU time and peak memory.

Then CPU time of this process for 100 000 segments: TER is measured on fewer, and scaled. Each is measured once, because
both sides keep texts that they have seen, and a second round would measure that. Segments have 25 words on average; a
hypothesis is its reference with words left out, replaced and moved, and with punctuation. The texts are in memory:
those of lagging in a Run, those of the others in lists. The values are compared.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import jiwer
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER

import lagging
from scoring import GENERATE, run

COUNT = 100_000
LETTERS = "abcdefghijklmnopqrstuvwxyz"
GOALS = {"BLEU": 5, "chrF": 4}
DEFAULTS_GOAL = 4
MEMORY = 300
LOGS = (10_000, COUNT, 3 * COUNT)
PROCESSES = {"the defaults": [], "BLEU, chrF, chrF++, WER, CER": ["-m", "BLEU,chrF,chrF++,WER,CER"]}
"""What `lagging score` is asked for → its options."""
Texts = Sequence[str]


def make_texts(count: int) -> tuple[list[str], list[str]]:
    """Hypotheses and references; the same for one count every time."""
    dice = random.Random(0)
    words = ["".join(dice.choices(LETTERS, k=dice.randint(2, 9))) for _ in range(20_000)]
    weights = [1 / rank for rank in range(1, len(words) + 1)]
    hypotheses, references = [], []
    for _ in range(count):
        text = dice.choices(words, weights, k=dice.randint(5, 45))
        text[-1] += "."
        if len(text) > 12:
            text[dice.randrange(len(text) - 1)] += ","
        references.append(" ".join(text))
        written = [word if dice.random() > 0.2 else dice.choice(words) for word in text if dice.random() > 0.1]
        start = dice.randrange(len(written) + 1)
        hypotheses.append(" ".join(written[start:] + written[:start] if dice.random() < 0.3 else written))
    return hypotheses, references


def jiwer_wer(hypotheses: Texts, references: Texts) -> float:
    """WER by jiwer, in percent."""
    return 100 * float(jiwer.wer(list(references), list(hypotheses)))


PEERS: dict[str, Callable[[Texts, Texts], float]] = {
    "BLEU": lambda h, r: BLEU().corpus_score(h, [r]).score,
    "chrF": lambda h, r: CHRF().corpus_score(h, [r]).score,
    "chrF++": lambda h, r: CHRF(word_order=2).corpus_score(h, [r]).score,
    "TER": lambda h, r: TER().corpus_score(h, [r]).score,
    "WER": jiwer_wer,
}


def measure(function: Callable[[], float]) -> tuple[float, float]:
    """The value, and the seconds of CPU."""
    start = time.process_time()
    value = function()
    return value, time.process_time() - start


def measure_processes(counts: Sequence[int], before: Path | None, judge: bool) -> None:
    """Print what `lagging score LOG` costs as logs grow, and what it cost before."""
    then = "   before    MB  ratio" if before else ""
    print(f"{'lagging score, s CPU':32}{'segments':>10}{'now':>8}{'MB':>6}{then}")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = {count: folder / f"{count}.jsonl" for count in counts}
        for count, log in logs.items():
            run([sys.executable, "-c", GENERATE, str(count), str(log)], folder / "bytecode")
        old_version = [] if before is None else ["env", f"PYTHONPATH={before / 'src'}"]
        for what, options in PROCESSES.items():
            for count, log in logs.items():
                command = [sys.executable, "-m", "lagging", "score", str(log), *options, "-q", "--jobs", "1"]
                if count == min(logs):  # modules are compiled once, which is not measured
                    for version in ([], [] if options else old_version):
                        run([*version, *command], folder / "bytecode")
                now = run(command, folder / "bytecode")
                line = f"{what:32}{count:>10,}{now.cpu:>8.2f}{now.memory:>6.0f}"
                if old_version and not options and count <= COUNT:
                    old = run([*old_version, *command], folder / "bytecode")
                    line += f"{old.cpu:>9.2f}{old.memory:>6.0f}{old.cpu / now.cpu:>6.1f}×"
                    if count == COUNT:
                        line += f"  ≥ {DEFAULTS_GOAL}×" + " MISSED" * (judge and old.cpu / now.cpu < DEFAULTS_GOAL)
                if count >= COUNT:
                    line += f"  < {MEMORY} MB" + " MISSED" * (judge and now.memory >= MEMORY)
                print(line, flush=True)


def measure_metrics(names: Sequence[str], most: int, ter_segments: int, judge: bool) -> None:
    """Print what each metric costs beside its peer."""
    hypotheses, references = make_texts(most)
    print(f"\nCPU seconds for {COUNT} segments, measured on {most}")
    print(f"{'':8}{'lagging':>10}{'peer':>10}{'ratio':>8}  {'peer':10}{'goal':>6}  values")
    for name in names:
        n = min(most, ter_segments) if name == "TER" else most
        ours, theirs = hypotheses[:n], references[:n]

        texts = lagging.Run.from_texts(ours, reference=theirs)

        def score(name: str = name, texts: lagging.Run = texts) -> float:
            return lagging.score(texts, [name])[name].value

        lagging.score(lagging.Run.from_texts(["a"], reference=["a"]), [name])  # what is imported once is not measured
        value, mine = measure(score)
        peer, other = measure(lambda name=name, h=ours, r=theirs: PEERS[name](h, r))  # type: ignore[misc]
        goal = f"≥ {GOALS[name]}×" if name in GOALS else ""
        missed = " MISSED" if name in GOALS and other / mine < GOALS[name] and judge else ""
        same = "equal" if abs(value - peer) < 1e-9 else f"DIFFERENT: {value} and {peer}"
        tool = "jiwer" if name == "WER" else "sacreBLEU"
        scale = COUNT / n
        costs = f"{mine * scale:10.2f}{other * scale:10.2f}{other / mine:7.1f}×"
        print(f"{name:8}{costs}  {tool:10}{goal:>6}  {same}{missed}", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--segments", type=int, default=COUNT, help="number of segments")
    parser.add_argument("--ter-segments", type=int, default=1000, help="number of segments for TER")
    parser.add_argument(
        "--metrics", default=",".join(PEERS), help="names with commas between; none: only lagging score"
    )
    parser.add_argument("--before", metavar="FOLDER", type=Path, help="a checkout of another version to compare with")
    parser.add_argument("--quick", action="store_true", help="a few segments")
    options = parser.parse_args()
    most = 200 if options.quick else options.segments
    if hasattr(os, "wait4"):  # before the texts are made: a process begins with the memory of the one that starts it
        counts = [200] if options.quick else [count for count in LOGS if count <= max(LOGS[0], 3 * most)]
        measure_processes(counts, options.before, not options.quick)
    else:
        print("lagging score: NOT RUN: the CPU time of another process cannot be measured here (no os.wait4)")
    if options.metrics:
        measure_metrics(options.metrics.split(","), most, options.ter_segments, not options.quick)


if __name__ == "__main__":
    main()
