# SPDX-License-Identifier: Apache-2.0
"""The commands that the ledger runs: which logs, which metrics, which options.

Every command has a name that stays the same when an option gets another spelling: results are matched by it. All paths
are relative to the folder a command runs in, where `examples` and `docs` are the folders of the repository, and
`test-data` is what LAGGING_TEST_DATA names. In `made` are the logs that `make_logs` makes from those of the repository.

Where an option is spelled differently in an older version, `SPELLINGS` says how, so that a ledger of that version can
still be made.
"""

from __future__ import annotations

import csv
import fnmatch
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PARTS = 400
"""How many times the large log repeats a small one, each time a little later."""

CONVENTIONS = ("paper", "simuleval", "omnisteval", "fbk")
CLOCKS = ("elapsed", "queue", "omnisteval", "fbk", "fbk1")
FORMATS = {
    "simuleval": "log",
    "omnisteval": "jsonl",
    "simulstream": "jsonl",
    "jsonl": "jsonl",
    "rw": "rw",
    "sltev": "slt",
    "fairseq": "out",
    "csv": "csv",
    "tsv": "tsv",
    "parquet": "parquet",
    "arrow": "arrow",
    "text": "txt",
}
NEEDS_ARROW = ("parquet", "arrow")

VARIANTS = (
    "DAL(write_cost=1)",
    "DAL(write_cost=corpus)",
    "DAL(length=reference)",
    "DAL(length=longest)",
    "DAL(empty=source)",
    "DAL(mean=token)",
    "AL(length=reference)",
    "AL(length=longest)",
    "AL(empty=source)",
    "AL(mean=token)",
    "AP(length=reference)",
    "AP(empty=source)",
    "LAAL(mean=token)",
    "YAAL(length=hypothesis)",
    "AL_y(mean=token)",
    "CW(empty=source)",
    "HiddenLag(where=tail)",
    "LagPercentile(p=50)",
    "LagPercentile(p=90)",
    "LongYAAL(end=segment)",
    "StreamLAAL(version=1)",
    "StreamLAAL(version=2)",
    "StreamLAAL_v1_CA",
    "StreamLAAL_v2_CA",
    "StreamDAL(scale=1)",
    "StreamDAL(scale=0)",
    "RTF(of=delays)",
    "BLEU(tok=zh)",
    "BLEU(tok=char)",
    "LBLEU(smooth=floor)",
    "LBLEU(final=weighted)",
    "SLTevDelay(partial=True)",
    "SLTevDelay(over=reference)",
    "LongAL",
    "LongLAAL",
    "LongDAL",
    "LongAP",
    "AL_CA",
    "DAL_CA",
    "ATD_CA",
    "LongYAAL_CA",
)
"""Metrics with parameters, and names of other tools; each is asked for on every small log."""

TIMED = (
    "AP",
    "CW",
    "AL",
    "AL_y",
    "DAL",
    "Segments",
    "SourcePerSegment",
    "TargetPerSegment",
    "ATD",
    "LAAL",
    "YAAL",
    "HiddenLag",
    "HiddenShare",
    "Offline",
    "SWF",
    "EFSW",
    "DSPTV",
    "LagPercentile",
    "MaxLag",
    "LagDrift",
    "StartOffset",
    "EndOffset",
    "NumChunks",
)
"""What every log with delays has: asked for in one command on the large logs."""
TIMED_BY_CLOCK = tuple(name for name in TIMED if name not in ("CW", "Segments", "SourcePerSegment", "TargetPerSegment"))
STREAM = ("LongYAAL", "LongYAAL(end=segment)", "StreamLAAL", "StreamLAAL(version=1)", "StreamDAL", "StreamDrift")

SPELLINGS: dict[str, dict[str, str]] = {}
"""By pattern of a command's name: words of its command line, and how an older version spells them.

A command that the code under test refuses as a usage error is run again with the old spelling.
"""


@dataclass(frozen=True)
class Command:
    """What is run under one name: one or more command lines of `lagging`, one after the other, in one new folder.

    A step that fails is the last. One that begins with `<FILE` reads that file from standard input.
    """

    name: str
    steps: tuple[tuple[str, ...], ...]
    quick: bool = False

    def in_old_spelling(self) -> Command | None:
        """The same command as an older version wants it, if that differs."""
        words: dict[str, str] = {}
        for pattern, spelling in SPELLINGS.items():
            if fnmatch.fnmatchcase(self.name, pattern):
                words |= spelling
        steps = tuple(tuple(words.get(word, word) for word in step) for step in self.steps)
        return Command(self.name, steps, self.quick) if steps != self.steps else None


@dataclass(frozen=True)
class Log:
    """A log, by its name in the ledger, what of the command line describes it, and the clocks it has."""

    name: str
    words: tuple[str, ...]
    clocks: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """Where it is."""
        return self.words[0]


def _log(folder: str, path: str, *options: str, name: str = "", clocks: Iterable[str] = ()) -> Log:
    return Log(name or path, (f"{folder}/{path}", *options), tuple(clocks))


def _cut(folder: str, segmentation: str, reference: str) -> tuple[str, ...]:
    return ("--segmentation", f"{folder}/{segmentation}", "--reference", f"{folder}/{reference}")


EXAMPLES, DOCS, DATA = "examples/data", "docs/data", "test-data"
TEXT_SYSTEMS = ("wait-1", "wait-3", "wait-5", "adaptive", "antagonist-5", "offline")
BEES = _cut(DOCS, "talks.yaml", "talks.de")
HARBOUR = _cut(DOCS, "harbour.yaml", "harbour.en")
LAKE = ("--column-map", "delays=emission_ms,source_length=source_ms", "--unit", "ms")
LAKE_LOG = ("docs/data/lake/2026-03-0[12].csv", *LAKE)
LAKE_TABLE = "made/lake.parquet"
MANY = "made/many.jsonl"
REPAIRS = ("--repair", "monotone", "--repair", "clip", "--repair", "first")

SMALL = (
    *(_log(EXAMPLES, name) for name in TEXT_SYSTEMS),
    _log(EXAMPLES, "speech", clocks=CLOCKS),
    _log(EXAMPLES, "schedules.rw"),
    _log(DOCS, "system-a", clocks=CLOCKS),
    _log(DOCS, "system-b", clocks=CLOCKS),
    _log(DOCS, "clocks.jsonl", clocks=CLOCKS),
    _log(DOCS, "rounding.jsonl"),
    _log(DOCS, "lengths.jsonl"),
    _log(DOCS, "spaces.jsonl"),
    _log(DOCS, "zh.jsonl"),
    _log(DOCS, "tables.rw"),
    _log(DOCS, "sheet.csv"),
    _log(DOCS, "generate.out"),
    _log(DOCS, "falling.jsonl", "--repair", "monotone"),
    _log(DOCS, "retranslation"),
    _log(DOCS, "talk-cut", clocks=CLOCKS),
    _log(DOCS, "talk-fast", clocks=CLOCKS),
    _log(DOCS, "talk-fast", *HARBOUR, name="talk-fast-segmented", clocks=CLOCKS),
    _log(DOCS, "talk-slow", *HARBOUR, name="talk-slow-segmented", clocks=CLOCKS),
    _log(DOCS, "talks.log", clocks=CLOCKS),
    _log(DOCS, "talks.log", *BEES, name="talks-segmented", clocks=CLOCKS),
    Log("lake", LAKE_LOG),
)
"""Logs that take milliseconds: each is scored by every metric for itself, so that one that is refused hides none."""

OMNISTEVAL = f"{DATA}/omnisteval/examples"
SHORT = f"{OMNISTEVAL}/short_form_degenerate_policy_example"
SPEECH = f"{OMNISTEVAL}/speech_resegmentation_example"
SIMULSTREAM = f"{OMNISTEVAL}/simulstream_example"
PLAIN = f"{OMNISTEVAL}/text_resegmentation_example"
ACL = _cut(SPEECH, "ref_segments.yaml", "references.txt")
MUSTC = _cut(SIMULSTREAM, "ref_segments.yaml", "references.txt")
RW = f"{DATA}/rw_streams"


def _rw(k: int) -> tuple[str, ...]:
    """A wait-k stream as a recording to be cut."""
    sides = ("--source", f"{RW}/norm.iwslt17.dev2010.de", "--reference", f"{RW}/iwslt17.dev2010.prepro.en")
    return (f"{RW}/REAL/{k}.RW", "--hypothesis", f"{RW}/REAL/{k}.orig_h", *sides)


def _metrics(names: Iterable[str], clock: str = "") -> tuple[str, str]:
    """`-m` and the metrics, on a clock."""
    return ("-m", ",".join(_on(name, clock) for name in names))


def _on(name: str, clock: str) -> str:
    """A metric on a clock."""
    if not clock:
        return name
    return f"{name[:-1]}, clock={clock})" if name.endswith(")") else f"{name}(clock={clock})"


JSON = ("-f", "json", "-q")


def commands(metrics: Iterable[str], has_clock: Callable[[str], bool], *, data: bool, arrow: bool) -> Iterator[Command]:
    """All commands.

    Args:
        metrics: names of the metrics there are.
        has_clock: whether a metric has the parameter `clock`.
        data: whether the logs of other tools are there.
        arrow: whether pyarrow is there, without which no Parquet can be written.
    """
    names = list(metrics)
    if data:  # first, because they take longest
        yield from _large(arrow)
    yield from _singles(names, has_clock)
    for log in SMALL:
        yield from _views(log)
        yield from _conversions(log, arrow)
    yield from _comparisons()
    yield from _curves()
    yield from _reports()
    yield from _special(arrow)


def make_logs(folder: Path, arrow: bool) -> None:
    """Make the logs that are not kept: a large one, which is scored by several processes, and a table with groups.

    Args:
        folder: where they go.
        arrow: whether pyarrow is there, without which there is no table.
    """
    lines = Path(ROOT, EXAMPLES, "speech", "instances.log").read_text("utf-8").splitlines()
    with (folder / "many.jsonl").open("w", encoding="utf-8") as out:
        for part in range(PARTS):
            for number, line in enumerate(lines):
                row = {
                    **json.loads(line),
                    "index": part * len(lines) + number,
                    "part": f"part-{part % 3}",
                    "unit": "ms",
                }
                row["delays"] = [delay + part for delay in row["delays"]]
                row["elapsed"] = [elapsed + part for elapsed in row["elapsed"]]
                row["source_length"] += part
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    if arrow:
        import pyarrow as pa
        import pyarrow.parquet as pq

        rows = []
        for file in sorted(Path(ROOT, DOCS, "lake").glob("*-0[12].csv")):
            with file.open(encoding="utf-8", newline="") as table:
                rows += list(csv.DictReader(table))
        columns = {name: [row[name] for row in rows] for name in ("id", "lang", "model")}
        delays = [[float(delay) for delay in row["emission_ms"].split()] for row in rows]
        lengths = [float(row["source_ms"]) for row in rows]
        pq.write_table(pa.table({**columns, "emission_ms": delays, "source_ms": lengths}), folder / "lake.parquet")


def _singles(metrics: list[str], has_clock: Callable[[str], bool]) -> Iterator[Command]:
    """Every metric on every small log, in every convention, on every clock."""
    for log in SMALL:
        for convention in CONVENTIONS:
            for name in metrics:
                for clock in ("", *(log.clocks if has_clock(name) else ())):
                    spec = _on(name, clock)
                    quick = log.name in ("wait-3", "system-a") and convention == "paper" and clock in ("", "queue")
                    yield Command(
                        f"score/{log.name}/{convention}/{spec}",
                        (("score", *log.words, "-m", spec, "--convention", convention, *JSON),),
                        quick,
                    )
            for spec in VARIANTS if convention in ("paper", "simuleval") else ():
                step = ("score", *log.words, "-m", spec, "--convention", convention, *JSON)
                yield Command(f"score/{log.name}/{convention}/{spec}", (step,))


def _views(log: Log) -> Iterator[Command]:
    """What else is asked of a small log: defaults, segments, intervals, formats, timelines, faults."""
    quick = log.name in ("wait-3", "talks-segmented")
    for convention in CONVENTIONS:
        step = ("score", *log.words, "--convention", convention, "--ci", "--segment-scores", "segments.tsv", *JSON)
        yield Command(f"score-segments/{log.name}/{convention}", (step,), quick)
    for format in ("table", "tsv", "markdown", "latex"):
        yield Command(f"score-{format}/{log.name}", (("score", *log.words, "-f", format),), quick)
    yield Command(
        f"score-jobs/{log.name}", (("score", *log.words, "--jobs", "2", *JSON),), quick and log.name == "wait-3"
    )
    for kind in ("eos", "tags", "punctuation"):
        yield Command(f"score-strip-{kind}/{log.name}", (("score", *log.words, "--strip", kind, *JSON),))
    for level in ("word", "char", "token"):
        yield Command(f"score-level-{level}/{log.name}", (("score", *log.words, "--level", level, *JSON),))
    segmented = "--segmentation" in log.words
    if not segmented:
        yield Command(f"inspect/{log.name}", (("inspect", *log.words, "--width", "100", "-q"),), quick)
        step = ("inspect", *log.words, "--worst", "DAL", "--top", "3", "--width", "100", "-q")
        yield Command(f"inspect-worst/{log.name}", (step,))
        plain = [word for word in log.words if word not in ("--repair", "monotone")]
        for format in ("text", "json"):
            yield Command(f"validate-{format}/{log.name}", (("validate", *plain, "-f", format),), quick)


def _conversions(log: Log, arrow: bool) -> Iterator[Command]:
    """There and back, in every format; and what is scored of it."""
    if "--segmentation" in log.words:
        for format in ("jsonl", "omnisteval"):
            file = f"segments.{FORMATS[format]}"
            steps = [("resegment", *log.words, "-o", file, "--to", format, "--moves", "moves.tsv")]
            steps += [("score", file, "-m", "DAL,LongYAAL,BLEU", *JSON)]
            yield Command(f"resegment-{format}/{log.name}", tuple(steps), log.name == "talks-segmented")
        for aligner in ("timed", "soft", "mwer", "omnisteval", "mweralign"):
            step = ("score", *log.words, "--aligner", aligner, "--segment-scores", "segments.tsv", *JSON)
            yield Command(f"aligner-{aligner}/{log.name}", (step,))
        return
    for format, ending in FORMATS.items():
        if format in NEEDS_ARROW and not arrow:
            continue
        file = f"there.{ending}"
        steps = [("convert", *log.words, "-o", file, "--to", format)]
        steps += [("convert", file, "--format-in", format, "-o", "back.jsonl", "--to", "jsonl")]
        steps += [("score", file, "--format-in", format, *JSON)]
        yield Command(f"convert-{format}/{log.name}", tuple(steps), log.name == "wait-3" and format == "jsonl")


def _comparisons() -> Iterator[Command]:
    """Pairs of systems of one test set, every test and correction."""
    pairs: list[tuple[str, tuple[str, ...]]]
    pairs = [(f"{a}-{b}", (f"{EXAMPLES}/{a}", f"{EXAMPLES}/{b}")) for a, b in combinations(TEXT_SYSTEMS, 2)]
    pairs += [("system-a-system-b", (f"{DOCS}/system-a", f"{DOCS}/system-b"))]
    pairs += [("talk-fast-talk-slow", (f"{DOCS}/talk-fast", f"{DOCS}/talk-slow", *HARBOUR))]
    for name, words in pairs:
        for convention in CONVENTIONS:
            step = ("compare", *words, "--convention", convention, *JSON)
            yield Command(f"compare/{name}/{convention}", (step,), name == "wait-3-wait-5" and convention == "paper")
    everyone = tuple(f"{EXAMPLES}/{name}" for name in TEXT_SYSTEMS)
    chosen = ("-m", "AL,DAL,BLEU")
    options: dict[str, tuple[str, ...]] = {
        "bootstrap": ("--test", "bootstrap"),
        "randomisation": ("--test", "randomisation"),
        "bh": ("--correction", "bh"),
        "none": ("--correction", "none"),
        "base": ("--base", "wait-3"),
        "seed": ("--seed", "7", "--resamples", "1000", "--confidence", "90"),
        "margin": ("--margin", "BLEU=0.5"),
        "gate": ("--fail-if", "wait-5:DAL>5", "--fail-if-worse", "wait-3"),
        "published": ("--published", "docs/data/published"),
    }
    for name, words in options.items():
        yield Command(f"compare-{name}/examples", (("compare", *everyone, *chosen, *words, *JSON),))
    for format in ("table", "tsv", "markdown", "latex"):
        yield Command(f"compare-{format}/examples", (("compare", *everyone, *chosen, "-v", "-f", format),))
    published = ("compare", f"{DOCS}/system-a", f"{DOCS}/system-b", *chosen, "--published", f"{DOCS}/published", *JSON)
    yield Command("compare-published/docs", (published,))
    talks = ("compare", f"{DOCS}/talk-fast", f"{DOCS}/talk-slow", *HARBOUR)
    for unit in ("segment", "document"):
        yield Command(f"compare-by-{unit}/talks", ((*talks, "--resample", unit, *JSON),))


def _curves() -> Iterator[Command]:
    """Quality against latency, lines and ranks."""
    systems = (f"wait-k={EXAMPLES}/wait-*", f"adaptive={EXAMPLES}/adaptive", f"jumpy={EXAMPLES}/a*")
    options: dict[str, tuple[str, ...]] = {
        "default": (),
        "dal": ("--latency", "DAL", "--at-latency", "4", "--at-quality", "40"),
        "chrf": ("--latency", "AP", "--quality", "chrF", "--seed", "7", "--resamples", "1000"),
        "base": ("--base", "wait-k", "--correction", "bh"),
        "against": ("--against", "AL,DAL"),
        "ranks": ("--ranks", "AP,AL,DAL"),
    }
    for name, words in options.items():
        for convention in CONVENTIONS:
            step = ("curve", *systems[:2], *words, "--convention", convention, *JSON)
            yield Command(f"curve-{name}/examples/{convention}", (step,), name == "dal" and convention == "paper")
    for format in ("table", "tsv", "markdown", "latex"):
        step = ("curve", systems[0], systems[2], "--latency", "DAL", "--at-latency", "4", "-f", format)
        yield Command(f"curve-{format}/examples", (step,))


def _reports() -> Iterator[Command]:
    """The data in the page."""
    several = tuple(f"{EXAMPLES}/{name}" for name in ("wait-3", "wait-5", "adaptive"))
    logs: dict[str, tuple[str, ...]] = {
        "examples": several,
        "speech": (f"{EXAMPLES}/speech",),
        "docs": (f"{DOCS}/system-a", f"{DOCS}/system-b"),
        "harbour": (f"{DOCS}/talk-fast", f"{DOCS}/talk-slow", *HARBOUR),
        "talks": (f"{DOCS}/talks.log", *BEES),
        "cut": (f"{DOCS}/talk-cut",),
        "retranslation": (f"{DOCS}/retranslation",),
    }
    for name, words in logs.items():
        for convention in CONVENTIONS:
            step = ("report", *words, "--convention", convention, "-o", "page.html")
            yield Command(f"report/{name}/{convention}", (step,), name == "examples" and convention == "paper")


def _special(arrow: bool) -> Iterator[Command]:
    """Groups, faults, gates, policies, agents: what only some logs have."""
    for columns in ("lang", "model", "lang,model"):
        for more in ((), ("--ci",), ("--jobs", "2")):
            step = ("score", *LAKE_LOG, "--by", columns, "-m", "AP,AL,LAAL,DAL,YAAL,SWF", *more, *JSON)
            yield Command(f"by/{columns}/{'-'.join(more) or 'plain'}", (step,), columns == "lang" and more == ("--ci",))
    faulty = ("docs/data/lake/*.csv", *LAKE)
    aside = ("--on-error", "quarantine", "--quarantine", "aside.tsv")
    yield Command("by/quarantine", (("score", *faulty, "--by", "lang", *aside, "--ci", *JSON),), True)
    yield Command("quarantine/lake", (("score", *faulty, *aside, *JSON),))
    for folder, name in ((EXAMPLES, "broken"), (DOCS, "faulty.jsonl"), (DOCS, "falling.jsonl")):
        path = f"{folder}/{name}"
        yield Command(f"faults/{name}", (("validate", path, "-f", "json"),), True)
        yield Command(f"faults-text/{name}", (("validate", path),))
        yield Command(f"faults-score/{name}", (("score", path, *JSON),))
        yield Command(f"faults-repair/{name}", (("score", path, *REPAIRS, *JSON),))
        yield Command(f"faults-quarantine/{name}", (("score", path, *aside, *JSON),), True)
        yield Command(f"faults-convert/{name}", (("convert", path, *REPAIRS, "-o", "repaired.jsonl"),))
    yield Command("gate/above", (("score", f"{EXAMPLES}/wait-3", "--fail-if", "DAL>1", *JSON),), True)
    yield Command("gate/below", (("score", f"{EXAMPLES}/wait-3", "--fail-if", "DAL>100", *JSON),), True)
    for regime in ("iwslt26", "iwslt25", "iwslt25-en-zh", "iwslt25-en-ja"):
        yield Command(f"regime/{regime}", (("score", f"{DOCS}/talks.log", *BEES, "--regime", regime, *JSON),))
    like = (
        "AL|unit:ms|length:reference|clock:ideal|level:word|empty:nan|seg:none|mean:segment|tol:0|count:simuleval|n:6"
    )
    yield Command("like/system-a", (("score", f"{DOCS}/system-a", "--like", like, *JSON),), True)
    yield Command("usage/metric", (("score", f"{DOCS}/system-a", "-m", "DALL"),), True)
    yield Command("usage/path", (("score", "nowhere"),), True)
    yield Command("usage/units", (("score", f"{DOCS}/system-a", f"{DOCS}/tables.rw", "-m", "DAL", *JSON),))
    for more in (("--jobs", "1"), ("--jobs", "2")):
        options = ("-m", "AP,AL,LAAL,DAL,DAL_CA,ATD,RTF,BLEU", "--segment-scores", "segments.tsv", *more, *JSON)
        yield Command(f"many/{'-'.join(more)}", (("score", MANY, *options),))
        yield Command(
            f"many-by/{'-'.join(more)}", (("score", MANY, "-m", "AL,DAL", "--by", "part", "--ci", *more, *JSON),)
        )
    several = tuple(f"{EXAMPLES}/{name}" for name in TEXT_SYSTEMS)
    yield Command("score-several/examples", (("score", *several, "--ci", *JSON),))
    yield Command("score-several/docs", (("score", f"{DOCS}/system-a", f"{DOCS}/system-b", "--ci", *JSON),))
    policies = ("wait-1", "wait-3", "wait-3-catchup", "wait-3-catchup=0.5", "antagonist-4", "segment-3", "punctuation")
    sides = ("--source", f"{DOCS}/test.de", "--target", f"{DOCS}/test.en")
    for policy in (*policies, "offline", "prescient"):
        steps = [("simulate", policy, *sides, "-o", "policy.log"), ("<policy.log", "score", "-", *JSON)]
        yield Command(f"simulate/{policy}", tuple(steps), policy == "wait-3")
    source = ("--source", f"{EXAMPLES}/source.txt", "--reference", f"{EXAMPLES}/reference.txt")
    out = ("-o", "out", "--no-times", "-f", "json", "-q")
    for agent in ("wait-3", "antagonist-4", "examples/wait_k.py", "examples/retranslate.py"):
        yield Command(f"run/{agent}", (("run", agent, *source, *out),))
    merged = [
        ("convert", f"{DOCS}/system-a", "-o", "a.jsonl"),
        ("convert", f"{DOCS}/system-a", "a.jsonl", "-o", "m.jsonl"),
    ]
    yield Command("merge/system-a", tuple(merged))
    yield Command("merge/conflict", (("convert", f"{DOCS}/system-a", f"{DOCS}/system-b", "-o", "both.jsonl"),))
    if arrow:
        for more in ((), ("--ci",), ("--jobs", "2")):
            step = ("score", LAKE_TABLE, *LAKE, "--by", "lang,model", "-m", "AP,AL,LAAL,DAL,YAAL,SWF", *more, *JSON)
            yield Command(f"parquet-by/{'-'.join(more) or 'plain'}", (step,))
        step = ("score", f"{DOCS}/system-a", "--segment-scores", "segments.parquet", *JSON)
        yield Command("parquet-segments/system-a", (step,))


def _large(arrow: bool) -> Iterator[Command]:
    """The logs of other tools: fewer commands, more in each."""
    quality = ("BLEU", "chrF")
    cuts: dict[str, tuple[str, ...]] = {
        "simulstream-segmented": (f"{SIMULSTREAM}/simulstream_log.jsonl", *MUSTC),
        "acl-segmented": (f"{SPEECH}/instances.log", *ACL),
        "acl-cut": (f"{SPEECH}/segmentation_output/instances.resegmented.jsonl",),
        "simulstream-cut": (f"{SIMULSTREAM}/segmentation_output/instances.resegmented.jsonl",),
    }
    no_end = {
        "LagDrift",
        "LongYAAL",
        "StreamDAL",
        "StreamDrift",
    }  # refused: this log does not have the ends of its recordings
    for name, words in cuts.items():
        left_out = no_end if name == "simulstream-cut" else set()
        timed, by_clock, stream = ([m for m in group if m not in left_out] for group in (TIMED, TIMED_BY_CLOCK, STREAM))
        for convention in CONVENTIONS:
            for clock in ("", *(("elapsed",) if name.endswith("-cut") else CLOCKS)):
                chosen = _metrics((*by_clock, *stream), clock) if clock else _metrics((*timed, *stream, *quality))
                out = () if clock else ("--segment-scores", "segments.tsv")
                step = ("score", *words, *chosen, "--convention", convention, *out, *JSON)
                yield Command(f"score/{name}/{convention}/{clock or 'ideal'}", (step,))
        yield Command(f"score-ci/{name}", (("score", *words, "--ci", *JSON),))
        yield Command(f"report/{name}", (("report", *words, "--resamples", "1000", "-o", "page.html"),))
    for name in ("acl-segmented", "simulstream-segmented"):
        words = cuts[name]
        for aligner in ("soft", "mwer", "omnisteval", "mweralign"):
            step = ("score", *words, "--aligner", aligner, "-m", "LongYAAL,StreamLAAL,DAL,BLEU", *JSON)
            yield Command(f"aligner-{aligner}/{name}", (step,))
        steps = [("resegment", *words, "-o", "segments.jsonl", "--moves", "moves.tsv")]
        steps += [("score", "segments.jsonl", "--ci", *JSON)]
        yield Command(f"resegment/{name}", tuple(steps))
    short = f"{SHORT}/instances.log"
    for convention in CONVENTIONS:
        for clock in ("", *CLOCKS):
            chosen = _metrics(TIMED_BY_CLOCK, clock) if clock else _metrics((*TIMED, *quality))
            out = () if clock in CLOCKS[1:] else ("--segment-scores", "segments.tsv")
            step = ("score", short, *chosen, "--convention", convention, *out, *JSON)
            yield Command(f"score/short/{convention}/{clock or 'ideal'}", (step,))
        for variant in VARIANTS:
            step = ("score", short, "-m", variant, "--convention", convention, *JSON)
            yield Command(f"score/short/{convention}/{variant}", (step,))
    yield Command("score/short/paper/TER", (("score", short, "-m", "TER", *JSON),))
    yield Command("score-ci/short", (("score", short, "--ci", *JSON),))
    yield Command("score-jobs/short", (("score", short, "--jobs", "2", "-m", ",".join(TIMED), *JSON),))
    for kind in ("eos", "punctuation"):
        step = ("score", short, "--strip", kind, "-m", "AP,AL,LAAL,DAL,DAL_CA,BLEU", *JSON)
        yield Command(f"score-strip-{kind}/short", (step,))
    yield Command("report/short", (("report", short, "--resamples", "1000", "-o", "page.html"),))
    published = (f"{SHORT}/evaluation_output", f"{DATA}/simuleval_scores_of_short_form_example.json")
    for name, path in zip(("omnisteval", "simuleval"), published, strict=True):
        step = ("compare", f"system={short}", "-m", "AL,DAL", "--published", path, "--resamples", "1000", *JSON)
        yield Command(f"compare-published/short-{name}", (step,))
    steps = [("convert", short, "--strip", "eos", "-o", "stripped.jsonl")]
    steps += [
        ("compare", f"kept={short}", "stripped=stripped.jsonl", "-m", "AL,DAL,BLEU", "--resamples", "1000", *JSON)
    ]
    yield Command("compare/short-stripped", tuple(steps))
    for format in ("jsonl", "simuleval", "csv", *(("parquet",) if arrow else ())):
        file = f"there.{FORMATS[format]}"
        steps = [("convert", short, "-o", file, "--to", format), ("score", file, "-m", "AP,AL,DAL,DAL_CA", *JSON)]
        yield Command(f"convert-{format}/short", tuple(steps))
    text = ("--format-in", "text", *_cut(PLAIN, "text_segmentation.txt", "references.txt"))
    for aligner in ("soft", "mwer", "omnisteval"):
        step = ("score", f"{PLAIN}/hypotheses.txt", *text, "--aligner", aligner, *JSON)
        yield Command(f"score/text/{aligner}", (step,))
    for k in range(1, 11):
        for convention in ("paper", "simuleval"):
            step = ("score", f"{RW}/REAL/{k}.RW", "-m", "AP,CW,AL,AL_y,DAL,LAAL", "--convention", convention, *JSON)
            yield Command(f"score/rw-{k}/{convention}", (step,))
        chosen = _metrics(("AP", "AL", "DAL", "StreamDAL", "StreamDAL(scale=1)", "BLEU"))
        for aligner in ("mweralign", "soft"):
            step = ("score", *_rw(k), *chosen, "--aligner", aligner, *JSON)
            yield Command(f"score/rw-{k}-segmented/{aligner}", (step,))
    steps = [("resegment", *_rw(k), "-o", f"k{k}.jsonl") for k in (1, 3, 5)]
    steps += [("compare", "k1.jsonl", "k3.jsonl", "k5.jsonl", "-m", "AP,AL,DAL,BLEU", "--resamples", "1000", *JSON)]
    steps += [("curve", "wait-k=k*.jsonl", "--resamples", "1000", *JSON)]
    yield Command("compare/rw", tuple(steps))
    for name in ("test_metrics", "test_all_text_deleted"):
        path = f"{DATA}/simulstream/uts/assets/{name}.jsonl"
        for spec in ("DAL", "DAL_CA", "DAL(clock=queue)", "NormalizedErasure", "Erased", "Flicker", "RTF", "LagDrift"):
            yield Command(f"score/{name}/{spec}", (("score", path, "-m", spec, *JSON),))
        yield Command(f"validate/{name}", (("validate", path, "-f", "json"),))
        yield Command(f"convert/{name}", (("convert", path, "-o", "there.jsonl"),))
    sltev = f"{DATA}/sltev/sample-data"
    for path in (sltev, f"{sltev}/sample.en.cs.slt"):
        name = "sltev" + path.removeprefix(sltev)
        for spec in ("SLTevDelay", "SLTevDelay(partial=True)", "SLTevDelay(over=reference)", "Missed", "Erased"):
            yield Command(f"score/{name}/{spec}", (("score", path, "-m", spec, *JSON),))
        for spec in ("NormalizedErasure", "Flicker", "DAL", "AL", "BLEU"):
            yield Command(f"score/{name}/{spec}", (("score", path, "-m", spec, *JSON),))
        yield Command(f"validate/{name}", (("validate", path, "-f", "json"),))
    for path in ("streams/alignatt/stream_updates.jsonl", "streams/whisper_streaming/candidate.txt"):
        yield Command(f"score/{path}", (("score", f"{DATA}/{path}", *JSON),))
        yield Command(f"validate/{path}", (("validate", f"{DATA}/{path}", "-f", "json"),))
    table = f"{DATA}/simulstream/published_scores.csv"
    families = ("--family", "pair,processor,method,model", "--latency", "StreamLAAL", "--unit", "ms")
    yield Command("curve-published/simulstream", (("curve", "--published", table, *families, *JSON),))
    tables = ("curve", "--published", f"{DATA}/published_tables.csv", "--family", "system,dataset", "--unit", "token")
    german = ("--where", "dataset=WMT15 German*")
    views: dict[str, tuple[str, ...]]
    views = {"against": ("--against", "AL,DAL"), "ranks": ("--ranks", "AP,AL,DAL"), "plain": ()}
    for name, words in views.items():
        yield Command(f"curve-published/tables-{name}", ((*tables, *german, *words, *JSON),))
    sides = ("--source", f"{RW}/norm.iwslt17.dev2010.de", "--target", f"{RW}/iwslt17.dev2010.prepro.en")
    for policy in ("wait-3", "wait-3-catchup", "antagonist-4", "segment-3", "punctuation"):
        steps = [("simulate", policy, *sides, "-o", "policy.log")]
        steps += [("score", "policy.log", "-m", ",".join(("AP", "CW", "AL", "DAL", "LAAL", "YAAL")), *JSON)]
        yield Command(f"simulate/iwslt/{policy}", tuple(steps))


def spark() -> Iterator[Command]:
    """On Spark, which takes seconds to start."""
    engine = ("--engine", "spark", "--master", "local[2]", "-m", "AP,AL,LAAL,DAL")
    for by in ((), ("--by", "lang"), ("--by", "lang,model", "--ci")):
        step = ("score", LAKE_TABLE, *LAKE, *engine, *by, *JSON)
        yield Command(f"spark/{'-'.join(by) or 'plain'}", (step,))
