# SPDX-License-Identifier: Apache-2.0
"""How good segmenters are, where the truth is known, and what they cost.

    LAGGING_TEST_DATA=FOLDER python bench/resegmentation.py                      # two minutes
    LAGGING_TEST_DATA=FOLDER python bench/resegmentation.py --peers-python PATH  # ten: with mweralign and OmniSTEval
    LAGGING_TEST_DATA=FOLDER python bench/resegmentation.py --beside CHECKOUT    # CPU time beside another version
    python bench/resegmentation.py --quick                                       # shows that it runs, no more

Real segments of a system are put end to end (bench/streams.py), and cut again by each aligner, by way of
`lagging.longform.resegment`, in a process of its own. CPU time is that of cutting alone, memory the peak of the
process. A word is misplaced if it is not in the segment that it was written for, or lost. StreamLAAL is compared with
that of the true segments. Aligners that do not look at times are run once for all conditions. Peers are run in a Python
that has them, on recordings that are not too long: SoftSegmenter's cost is quadratic, 164 s for 10 000 words.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import lagging
from lagging.longform import ALIGNERS, Segmentation, Stream, read_segmentation, resegment
from lagging.longform.corridor import block_most
from lagging.longform.optimum import optimum
from scoring import Row, show
from scoring import run as run_process
from streams import CONDITIONS, Case, Floats, Ints, bare, characters, read_write, short_form, synthetic, timed

DEFAULT = "timed"
TIMELESS = ("soft", "omnisteval", "mweralign", "mwersegmenter")
"""Aligners that do not look at times; peers do not either."""

EXAMPLES = Path("omnisteval", "examples")
ACL = [
    EXAMPLES / "speech_resegmentation_example" / name
    for name in ("instances.log", "ref_segments.yaml", "references.txt")
]
MUSTC = [
    EXAMPLES / "simulstream_example" / name for name in ("simulstream_log.jsonl", "ref_segments.yaml", "references.txt")
]

PEERS = {"mweralign 1.4": 10, "SoftSegmenter": 1}
"""How long recordings may be for them, relative to --peers-limit."""


def peak() -> float:
    """Peak resident memory of this process in MB; NaN where the system does not tell.

    On Linux, getrusage also counts what the parent had when it started the process.
    """
    from pathlib import Path

    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1000
    try:
        import resource
    except ImportError:  # Windows
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000_000


PEER = """
import json, logging, sys, time
which, question, answer = sys.argv[1:]
logging.disable(logging.CRITICAL)

def mweralign(case, talk):
    from mweralign import align_texts
    aligned = align_texts("\\n".join(words(case, text) for text in talk["references"]), " ".join(talk["tokens"]))
    segments = [line.split() for line in aligned.split("\\n")][:len(talk["references"])]
    places, j = [-1] * len(talk["tokens"]), 0
    for k, segment in enumerate(segments):
        for word in segment:
            while talk["tokens"][j] != word:
                j += 1  # lost
            places[j] = k
            j += 1
    return places

def softsegmenter(case, talk):
    from omnisteval.alignment import Word, align_sequences, process_alignment
    from omnisteval.tokenization import tokenize_words
    chars = case["level"] == "char"
    language = None if chars else case["language"]
    ours = [Word(w, seq_id=k) for k, text in enumerate(talk["references"]) for w in words(case, text).split()]
    theirs = [Word(w, emission_cu=j) for j, w in enumerate(talk["tokens"])]
    aligned = align_sequences(tokenize_words([ours], language)[0], tokenize_words([theirs], language)[0], chars)
    places = [-1] * len(talk["tokens"])
    for word in process_alignment(*aligned, chars):
        if word.main:
            places[word.emission_cu] = word.seq_id
    return places

def words(case, text):
    return " ".join(text) if case["level"] == "char" else text

answers = []
for case in json.load(open(question, encoding="utf-8")):
    start = time.process_time()
    places = [(mweralign if which.startswith("mwer") else softsegmenter)(case, talk) for talk in case["talks"]]
    answers.append({"places": places, "cpu": time.process_time() - start})
json.dump({"cases": answers, "memory": peak()}, open(answer, "w"))
"""


# ---- cutting, in a process of its own ---------------------------------------------------------------------------


def work(aligner: str, question: Path, answer: Path) -> None:
    """Cut each case, and say where each token went; no token knows where it came from."""
    answers = []
    for case in json.loads(question.read_text(encoding="utf-8")):
        talks, glue = case["talks"], "" if case["level"] == "char" else " "
        run = lagging.Run.from_delays(
            [talk["times"] for talk in talks],
            source_length=[talk["offset"][-1] + talk["duration"][-1] for talk in talks],
            prediction=[glue.join(talk["tokens"]) for talk in talks],
            document=[talk["name"] for talk in talks],
            unit=case["unit"],
            level=case["level"],
        )
        segmentation = Segmentation.from_lists(
            [talk["name"] for talk in talks for _ in talk["offset"]],
            [begin for talk in talks for begin in talk["offset"]],
            [long for talk in talks for long in talk["duration"]],
            [text for talk in talks for text in talk["references"]],
            unit=case["unit"],
        )
        start = time.process_time()
        cut = resegment(run, segmentation, aligner=aligner)
        cpu = time.process_time() - start
        assert cut.prediction is not None
        texts = [list(text) if glue == "" else text.split() for text in cut.prediction.tolist()]
        assert cut.delays.lengths.tolist() == list(map(len, texts))
        places, k = [], 0
        for talk in talks:
            mine = texts[k : k + len(talk["offset"])]
            k += len(mine)
            assert [token for text in mine for token in text] == talk["tokens"], "a token was lost"
            places.append([place for place, text in enumerate(mine) for _ in text])
        answers.append({"places": places, "cpu": cpu})
    answer.write_text(json.dumps({"cases": answers, "memory": peak()}), encoding="utf-8")


@dataclass(frozen=True)
class Answer:
    """Where the tokens of each talk went (−1: lost), CPU seconds, and the peak of memory in MB."""

    places: list[Ints]
    cpu: float
    memory: float


def ask(name: str, cases: Sequence[Case], peers: str | None, checkout: Path | None = None) -> list[Answer]:
    """Let an aligner, of this checkout or another one, or a peer cut each case, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder, "question.json"), Path(folder, "answer.json")
        question.write_text(json.dumps([case.question() for case in cases]), encoding="utf-8")
        command = (
            [str(peers), "-c", inspect.getsource(peak) + PEER]
            if name in PEERS
            else [sys.executable, str(checkout / "bench" / "resegmentation.py") if checkout else __file__, "--work"]
        )
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")} if checkout else None
        ran = subprocess.run(
            [*command, name, question, answer], capture_output=True, encoding="utf-8", errors="replace", env=environment
        )
        if ran.returncode:
            sys.exit(f"{name} failed:\n{ran.stderr[-2000:]}")
        result = json.loads(answer.read_text(encoding="utf-8"))
    return [
        Answer([np.array(p, dtype=np.int64) for p in case["places"]], case["cpu"], result["memory"])
        for case in result["cases"]
    ]


# ---- how good it is ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quality:
    """What is wrong with segments, against the truth.

    Attributes:
        boundaries: share of the boundaries within recordings that are where they should be.
        misplaced, lost: numbers of tokens.
        tokens: how many there are.
        laal: error of StreamLAAL of the whole.
        spread: mean of the absolute errors of StreamLAAL of segments.
    """

    boundaries: float
    misplaced: int
    lost: int
    tokens: int
    laal: float
    spread: float


def quality(case: Case, places: Sequence[Ints]) -> Quality:
    """Compare segments with the truth."""
    right = total = misplaced = lost = 0
    for talk, place in zip(case.talks, places, strict=True):
        cuts = np.searchsorted(np.maximum.accumulate(place), np.arange(1, len(talk.offset)))
        right += int((cuts == talk.truth[1:-1]).sum())
        total += len(cuts)
        misplaced += int((place != talk.segment).sum())
        lost += int((place < 0).sum())
    (value, ours), (truth, theirs) = laal(case, places), laal(case, [talk.segment for talk in case.talks])
    spread = float(np.nanmean(np.abs(ours - theirs)))
    tokens = sum(len(talk.tokens) for talk in case.talks)
    return Quality(right / max(total, 1), misplaced, lost, tokens, value - truth, spread)


def laal(case: Case, places: Sequence[Ints]) -> tuple[float, Floats]:
    """StreamLAAL of segments, and of each of them."""
    delays, glue = [], "" if case.level == "char" else " "
    texts = []
    for talk, place in zip(case.talks, places, strict=True):
        for k, begin in enumerate(talk.offset.tolist()):
            mine = np.flatnonzero(place == k)
            delays.append((talk.times[mine] - begin).tolist())
            texts.append(glue.join(talk.tokens[i] for i in mine))
    run = lagging.Run.from_delays(
        delays,
        source_length=np.concatenate([talk.duration for talk in case.talks]),
        prediction=texts,
        reference=[text for talk in case.talks for text in talk.references],
        unit=case.unit,
        level=case.level,
        seg="known",
    )
    (score,) = lagging.score(run, "StreamLAAL")
    return score.value, score.segments


# ---- tables -----------------------------------------------------------------------------------------------------

Found = dict[str, dict[str, tuple[Answer, Quality]]]
"""By aligner and case; an aligner does not have a case that is too long for it."""


def measure(cases: Sequence[Case], names: Sequence[str], peers: str | None, limit: int) -> Found:
    """Cut all cases with all aligners; those that have the same text are one for aligners that know no time."""
    results: Found = {}
    texts = {id(case): tuple(map(id, (talk.tokens for talk in case.talks))) for case in cases}
    for name in names:
        able = [c for c in cases if max(len(t.tokens) for t in c.talks) <= limit * PEERS.get(name, 1 << 30)]
        once = {texts[id(c)] if name in TIMELESS or name in PEERS else id(c): c for c in reversed(able)}
        given = dict(zip(once, ask(name, list(once.values()), peers) if once else [], strict=True))
        answers = {c.name: given[texts[id(c)] if name in TIMELESS or name in PEERS else id(c)] for c in able}
        results[name] = {c.name: (answers[c.name], quality(c, answers[c.name].places)) for c in able}
    return results


def matrix(title: str, cases: Sequence[Case], results: Found, form: Callable[[Quality], str]) -> None:
    """A row per case, a column per aligner."""
    print(f"\n{title}\n  {'':<36}" + "".join(f"{name:>14}" for name in results))
    for case in cases:
        cells = [form(results[name][case.name][1]) if case.name in results[name] else "–" for name in results]
        print(f"  {case.name:<36}" + "".join(f"{cell:>14}" for cell in cells), flush=True)


def at_most(what: str, value: float, limit: float, unit: str) -> Row:
    return Row(what, f"{value:.3g} {unit}", f"≤ {limit:g} {unit}", value <= limit)


def report(results: Found, cases: Sequence[Case]) -> None:
    """How good each aligner is on each condition."""
    matrix("words misplaced", cases, results, lambda q: f"{q.misplaced} {q.misplaced / q.tokens:5.1%}")
    matrix("boundaries exactly right", cases, results, lambda q: f"{q.boundaries:.1%}")
    matrix("StreamLAAL of all − that of the truth, ms", cases, results, lambda q: f"{q.laal:+.1f}")
    matrix("StreamLAAL of a segment, mean absolute error, ms", cases, results, lambda q: f"{q.spread:.1f}")


def goals(results: Found) -> Iterator[Row]:
    """What it took, and what it is to be."""
    for name, answers in results.items():
        timed = [answer for answer, _ in answers.values()]
        yield Row(
            f"{name}: CPU, a condition; peak memory", f"{min(a.cpu for a in timed):.2f} s, {timed[0].memory:.0f} MB"
        )
    lost = {name: max(q.lost for _, q in answers.values()) for name, answers in results.items()}
    worst = {name: max(q.misplaced for _, q in answers.values()) for name, answers in results.items()}
    for name in ("mweralign", "omnisteval", *(peer for peer in PEERS if peer in results)):
        ours, theirs = worst[DEFAULT], worst[name]
        yield Row(f"{DEFAULT}, worst condition, against {name}", f"{ours} misplaced", f"< {theirs}", ours < theirs)
    for name in (DEFAULT, *(peer for peer in PEERS if peer in results)):
        goal = ("0", lost[name] == 0) if name == DEFAULT else ("", None)
        yield Row(f"{name}: words lost", str(lost[name]), *goal)


def costs(sizes: Sequence[int], names: Sequence[str], peers: str | None, limit: int, rounds: int) -> Iterator[Row]:
    """Cutting one long recording."""
    for size in sizes:
        case = synthetic(size)
        for name in names:
            if size > limit * PEERS.get(name, 1 << 30):
                yield Row(f"{name}, {size:,} words", "not run")
                continue
            answers = [ask(name, [case], peers)[0] for _ in range(1 if name in PEERS else rounds)]
            cpu, memory = min(a.cpu for a in answers), max(a.memory for a in answers)
            what = f"{name}, {size:,} words"
            goal = {DEFAULT: 3.0, "mwer": 1.0}.get(name) if size == 50_000 else None
            if goal is None:
                yield Row(what, f"{cpu:.2f} s CPU, {memory:.0f} MB")
            else:
                yield Row(what, f"{cpu:.2f} s CPU, {memory:.0f} MB", f"≤ {goal:g} s", cpu <= goal)
                if name == DEFAULT:
                    yield at_most(f"{what}: memory", memory, 300, "MB")


def beside(checkout: Path, data: Path | None, rounds: int) -> Iterator[Row]:
    """CPU time and memory of cutting, beside another checkout, in turns."""
    cases = [synthetic(size) for size in (1000, 10_000, 50_000)]
    if data is not None:
        talks = short_form(data)
        cases = [timed(name, talks, name) for name in list(CONDITIONS)[:1]] + cases
    for case in cases:
        words = sum(len(talk.tokens) for talk in case.talks)
        for name in ALIGNERS:
            turns = [(ask(name, [case], None, checkout)[0], ask(name, [case], None)[0]) for _ in range(rounds)]
            before, after = (min(answer.cpu for answer in answers) for answers in zip(*turns, strict=True))
            memory = [max(answer.memory for answer in answers) for answers in zip(*turns, strict=True)]
            what = f"{name}, {len(case.talks)} × {words // len(case.talks):,} words"
            times = f"{before:.2f} → {after:.2f} s, {after / before:.2f} ×; {memory[0]:.0f} → {memory[1]:.0f} MB"
            yield Row(what, times)


# ---- real streams -----------------------------------------------------------------------------------------------


def end_to_end(data: Path, rounds: int) -> Iterator[Row]:
    """The command line on a whole test set."""
    log, segments, references = (str(data / part) for part in MUSTC)
    command = [sys.executable, "-m", "lagging", "score", log, "--segmentation", segments, "--reference", references]
    with tempfile.TemporaryDirectory() as folder:
        used = [run_process(command, Path(folder)) for _ in range(rounds)]
    yield at_most("score --segmentation, MuST-C: 27 talks, 2641 segments", min(c.cpu for c in used), 5, "s CPU")


class Slope:
    """A potential that is worth ever more (less) to the right; in all, less than an edit."""

    def __init__(self, stream: Stream, sign: int) -> None:
        columns = len(stream.tokens) + 1
        self.values: Floats = sign / (8.0 * len(stream.references) * columns) * np.arange(columns, dtype=np.float64)

    def at(self, k: int, columns: slice) -> Floats:
        """What a boundary earns at each column of a slice."""
        return self.values[columns]

    def most(self, k: int, width: int) -> Floats:
        """The largest of that in each block of columns."""
        return block_most(self.values, width)


def extreme(sign: int) -> Callable[[Stream], Ints]:
    """Of all cuts with the fewest edits, the one with every boundary as far to the right (left) as can be."""
    return lambda stream: optimum(stream.pairs, stream.edits, stream.ends, Slope(stream, sign)).path.boundaries


def equals(data: Path) -> Iterator[Row]:
    """How far the metric moves among cuts that are equally good by the number of edits."""
    log, segments, references = (data / part for part in ACL)
    run, segmentation = lagging.read(log), read_segmentation(segments, reference=references)
    ALIGNERS.update(leftmost=extreme(-1), rightmost=extreme(1))
    for name in ("leftmost", "rightmost", "mwer", "mweralign", "omnisteval", "soft", DEFAULT):
        values = [
            f"{s.value:.1f}"
            for s in lagging.score(resegment(run, segmentation, aligner=name), ["StreamLAAL_v1", "StreamLAAL_v2"])
        ]
        yield Row(f"StreamLAAL, version 1 and 2, {name}", f"{' '.join(values)} ms")


def other_texts(data: Path, quick: bool) -> list[Case]:
    """Texts of another kind than that which constants were chosen on."""
    talks = short_form(data)[: 2 if quick else None]
    plain, letters = [bare(t) for t in talks], [characters(t) for t in talks]
    both = [characters(t) for t in plain]
    cases = []
    for condition in ("lag 2 s", "even words, lag 2 ± 1 s", "random times"):
        cases.append(timed(f"bare, {condition}", plain, condition))
        cases.append(timed(f"characters, {condition}", letters, condition, level="char"))
        cases.append(timed(f"both, {condition}", both, condition, level="char"))
    for k in (1, 5, 9):
        cases.append(Case(f"English, wait-{k}", read_write(data, k), unit="token", language="en"))
    return sorted(cases, key=lambda case: case.name.split(",")[0])


# ---- all of it --------------------------------------------------------------------------------------------------


def main() -> None:
    parser = argparse.ArgumentParser(
        description="How good segmenters are where the truth is known, and what they cost."
    )
    parser.add_argument("--quick", action="store_true", help="little of everything, once: the numbers mean nothing")
    parser.add_argument(
        "--data", metavar="FOLDER", default=os.environ.get("LAGGING_TEST_DATA"), help="logs of other tools"
    )
    parser.add_argument("--peers-python", metavar="PATH", help="a Python that has mweralign and OmniSTEval")
    parser.add_argument(
        "--peers-limit",
        metavar="WORDS",
        type=int,
        default=5000,
        help="the longest recording for SoftSegmenter; mweralign gets ten times that [5000]",
    )
    parser.add_argument(
        "--beside", metavar="CHECKOUT", help="another checkout of this project: compare CPU time with it, no more"
    )
    parser.add_argument("--work", nargs=3, metavar=("ALIGNER", "IN", "OUT"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.work:
        name, question, answer = args.work
        work(name, Path(question), Path(answer))
        return
    peers, limit, rounds = args.peers_python, args.peers_limit, 1 if args.quick else 3
    names = [*ALIGNERS, *(PEERS if peers else ())]
    if args.beside:
        rows = beside(Path(args.beside), Path(args.data) if args.data else None, rounds)
        show(f"CPU time and memory, {args.beside} → this checkout", rows, False)
        return
    print(f"CPU time; Python {sys.version.split()[0]}, {os.cpu_count()} CPUs")
    if peers is None:
        print("NOT RUN: mweralign and SoftSegmenter (see --peers-python)")
    judge = not args.quick
    if args.data is None:
        print("NOT RUN: what needs real logs (see --data)")
    else:
        data = Path(args.data)
        talks = short_form(data)[: 2 if args.quick else None]
        cases = [timed(name, talks, name) for name in (list(CONDITIONS)[:2] if args.quick else CONDITIONS)]
        counts = (sum(len(getattr(talk, column)) for talk in talks) for column in ("offset", "tokens"))
        print("\nReal segments, end to end: {} talks, {:,} segments, {:,} words".format(len(talks), *counts))
        results = measure(cases, names, peers, limit)
        report(results, cases)
        show("what it took, and what it is to be", goals(results), judge)
        cases = other_texts(data, args.quick)
        results = measure(cases, names, peers, limit)
        matrix("words misplaced, other texts", cases, results, lambda q: f"{q.misplaced} {q.misplaced / q.tokens:5.1%}")
    sizes = [1000] if args.quick else [1000, 10_000, 50_000]
    show("one recording: words made up, segments of 20", costs(sizes, names, peers, limit, rounds), judge)
    if args.data is not None:
        show("end to end", end_to_end(data, rounds), judge)
        show("real streams: cuts with as few edits are not alike (ACL 60/60, 468 segments)", equals(data), judge)


if __name__ == "__main__":
    main()
