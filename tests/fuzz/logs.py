# SPDX-License-Identifier: Apache-2.0
"""Logs: every way to read one comes to the same, and to what a second reading gives; so does one that was written."""

from __future__ import annotations

import gzip
import re
from pathlib import Path
from random import Random
from typing import Any

import lagging
from fuzz import hostile
from fuzz.cases import Case
from fuzz.documents import Document, dump, encode, sentence
from fuzz.formats import LOGS
from fuzz.hostile import Pairs
from fuzz.mutators import mutate, mutate_tree
from fuzz.oracles import (
    Difference,
    Outcome,
    agree,
    faults,
    harmless,
    numbers,
    outcome,
    read_again,
    small_parts,
    sound,
    values,
)
from fuzz.parsers import OMNISTEVAL, PARSERS, RepeatedKey, objects, outermost
from fuzz.terminal import scores
from lagging.data.run import COLUMNS, Run
from lagging.data.tokens import are_sounds
from lagging.errors import Fault
from lagging.formats import FORMATS
from lagging.formats.line import FIELDS
from lagging.formats.simulstream import READERS
from lagging.metrics import registered
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan, default_metrics
from runs import bare

DAMAGES = (0, 0, 1, 1, 1, 2, 3)
"""How often a tree is damaged."""

FAULTS = 1000
"""Of more faults, not all are told."""

METRICS = sorted(m.name for m in registered())


def damaged(random: Random, document: Document, times: tuple[int, ...] = DAMAGES) -> bytes:
    """A file, more or less damaged; what it says, how its lines stand, or its bytes."""
    tree = document.make(random)
    for _ in range(random.choice(times)):
        mutate_tree(random, tree)
    return mutate(random, document.write(random, tree)) if any(times) else document.write(random, tree)


def make_log(random: Random, format: str) -> Case:
    """A log, with what may lie beside it."""
    document = LOGS[format]
    content = damaged(random, document)
    if random.random() < 0.02:
        content = gzip.compress(content, mtime=0)
        content = content if random.random() < 0.5 else mutate(random, content)
    files = {document.file: content, **beside(random, format)}
    how: dict[str, Any] = {"format": format} if format == "text" or random.random() < 0.1 else {}
    if random.random() < 0.1:
        how["unit"] = random.choice(("token", "ms"))
    if random.random() < 0.1:
        how["level"] = random.choice(("word", "char", "token"))
    if random.random() < 0.03:
        how["column_map"] = {random.choice(("delays", "id", "prediction")): random.choice(hostile.KEYS)}
    asked = random.sample(METRICS, 3)
    options = {"how": how, "metrics": asked, "to": random.choice(sorted(LOGS)), "repair": random.choice(REPAIRS)}
    return Case(f"log-{format}", files, options)


REPAIRS = (["monotone", "clip", "torn"], ["first"], ["last", "monotone"], ["torn"])


def beside(random: Random, format: str) -> dict[str, bytes]:
    """Files that are read along with a log, as whole as the log itself or not."""
    if format == "simuleval" and random.random() < 0.3:
        config = [Pairs([("source_type", random.choice(("text", "speech"))), ("target_type", "text"), ("x", [1, {}])])]
        run = [Pairs([("source", Pairs([("sentences", 9)])), ("sessions", [Pairs([("by", "finished")])])])]
        for tree in (config, run):
            for _ in range(random.choice((0, 1, 2))):
                mutate_tree(random, tree)
        name, tree = random.choice((("config.yaml", config), ("run.json", run)))
        return {name: mutate(random, encode(dump(tree[0], False) if tree else ""))}
    if format == "sltev" and random.random() < 0.3:
        count = random.randint(1, 3)
        transcript = "".join(
            f"P {n} {n + 1} a\nC {n} {n + 2} {sentence(random, 3)}\n" for n in range(0, 900 * count, 900)
        )
        reference = "".join(sentence(random) + " x\n" for _ in range(count))
        return {"base.en.OStt": mutate(random, encode(transcript)), "base.de.OSt": mutate(random, encode(reference))}
    return {}


# ---- checks -----------------------------------------------------------------------------------------------------


def check_log(case: Case) -> None:
    """All that must hold of a log."""
    path, how = case.write(Path()), case.options.get("how", {})
    read = outcome(lambda: lagging.read(path, **how))
    validated = outcome(lambda: lagging.validate(path, **how))
    same_faults("read", read, validated)
    scanned = by_parts(path, how, read, validated)
    narrow = outcome(lambda: Run.concat(list(lagging.scan(path, columns=(), **how))))
    outcome(lambda: list(lagging.scan(path, repair=case.options.get("repair", ()), **how)))
    aside: list[Any] = []
    kept = outcome(lambda: list(lagging.scan(path, quarantine=aside.append, **how)))
    if read.error is None:
        accepted(case, path, read.value, scanned, narrow, kept, aside)
    elif read.faults:
        lines = {fault.line for fault in read.faults}  # a line that is refused for one fault may have others
        # where damage of a binary file shows depends on the columns that are read
        beyond = [fault for fault in narrow.faults if fault.line not in lines and fault.kind != "not-arrow"]
        damaged = any(fault.kind == "not-arrow" for fault in read.faults)  # nothing after it was looked at
        if beyond and None not in lines and not damaged:
            raise Difference(f"faults where fewer columns are read, and not in all of them: {faults(beyond)}")
        if kept.error is None and not aside:
            raise Difference(f"faults, of which nothing is set aside: {faults(read.faults)}")


def by_parts(path: Path, how: dict[str, Any], read: Outcome, validated: Outcome) -> Outcome:
    """A log read in small parts: the same faults; in the format that the whole was recognised to have."""
    known = [] if validated.error is not None else validated.value.origins
    if not known:
        return read
    with small_parts():
        how = {**how, "format": known[0].format}
        scanned = outcome(lambda: Run.concat(list(lagging.scan(path, **how))))
        same_faults("scan in small parts", scanned, outcome(lambda: lagging.validate(path, **how)))
    if len(read.faults) < FAULTS:
        agree("faults, and those in small parts", *(sorted(map(where, one.faults)) for one in (read, scanned)))
    agree("numbers of faults, and in small parts", *(getattr(one.error, "counts", {}) for one in (read, scanned)))
    return scanned


def where(fault: Fault) -> tuple[str, int, str]:
    """What is wrong where; from which row on a damaged table cannot be read depends on how much is read at once."""
    return (fault.kind, 0, "") if fault.kind == "not-arrow" else (fault.kind, fault.line or 0, str(fault.segment))


def same_faults(what: str, read: Outcome, validated: Outcome) -> None:
    """`validate` lists what reading raises."""
    agree(f"why `validate` and {what} refuse", validated.refusal, read.refusal)
    if validated.error is None:
        agree(f"the faults of `validate` and {what}", faults(validated.value.faults), faults(read.faults))


def accepted(
    case: Case, path: Path, run: Run, scanned: Outcome, narrow: Outcome, kept: Outcome, aside: list[Any]
) -> None:
    """All that must hold of a log without faults."""
    agree("what reads a good log in small parts", scanned.refusal, None)
    agree("columns, and those read in small parts", values(run, COLUMNS), values(scanned.value, COLUMNS))
    if narrow.error is None:
        needed = ("id", "delays", "source_length")
        agree("columns, and where fewer are read", values(run, needed), values(narrow.value, needed))
    else:
        raise Difference(f"a good log is refused where fewer columns are read: {narrow.error}")
    agree("what is set aside of a good log", (kept.refusal, faults(aside)), (None, []))
    agree("columns, and with --on-error quarantine", values(run, COLUMNS), values(Run.concat(kept.value), COLUMNS))
    if not case.options.get("how", {}).get("column_map") and not path.read_bytes().startswith(b"\x1f\x8b"):
        by_second_reading(path, run)
    by_command(path, run, case.options.get("how", {}))
    by_writing(run, case.options.get("to", "jsonl"))
    by_scoring(run, case.options.get("metrics", ["AL"]))
    by_audit(run)


def by_audit(run: Run) -> None:
    """What is suspicious is counted, and of the segments that there are."""
    for finding in lagging.audit(run):
        harmless("a finding of an audit", str(finding))
        agree(f"whether {finding.name} counts what there is", 0 <= finding.count <= finding.total, True)
        agree(f"the segments that {finding.name} names", [i for i in finding.segments if i not in run.id.tolist()], [])


def by_second_reading(path: Path, run: Run) -> None:
    """What the file says, by another parser."""
    if run.origin.format == "sltev" and run.level != "token":
        return
    try:
        rows = PARSERS[run.origin.format](path, run)
    except RepeatedKey as error:
        if str(error) not in {*FIELDS, *READERS, *OMNISTEVAL}:
            return
        raise Difference(f"a line has the key {str(error)!r} twice, and is accepted") from None
    read_again(run, rows)
    if run.origin.format in ("simuleval", "jsonl"):
        speech_by_keys(path, run)


def speech_by_keys(path: Path, run: Run) -> None:
    """What was written is sound if the lines have `durations`, and not if a text speaks of them."""
    having = ["durations" in outermost(text) for text in objects(path)]
    named = are_sounds(text for text in run.prediction.tolist()) if run.prediction is not None else False
    if "→ speech" in run.origin.description and not any(having) and not named:
        raise Difference(f"no line has durations, and it is a {run.origin.description}")
    if "→ text" in run.origin.description and all(having):
        raise Difference(f"every line has durations, and it is a {run.origin.description}")


def by_writing(run: Run, format: str) -> None:
    """What was written can be read, and is the same, but for what was said to be lost."""
    file = Path(f"again{''.join(FORMATS[format].suffixes[:1])}")
    written = outcome(lambda: lagging.write(run, file, format=format))
    if written.error is not None:
        return
    lost = [re.match(r"\d* *(\w+)", entry)[1] for entry in written.value]
    how = {setting: getattr(run, setting) for setting in ("unit", "level") if setting in lost}
    again = outcome(lambda: lagging.read(file, format=format, **how))
    if "config.yaml is not readable" in str(again.error):
        return  # one that was beside the log is beside the new file, too
    if again.error is not None and "negative" not in lost:
        raise Difference(f"what was written as {format} (lost: {lost}) is refused: {again.error}")
    if again.error is not None:
        return
    before, after = bare(run), again.value
    if run.unit == "none" and "prediction" in lost:
        lost.append("delays")  # there are as many as words
    if run.unit == "token":
        lost.append("elapsed")  # beside source tokens no metric can use them, and they are not checked
    held = [c for c in COLUMNS if getattr(before, c) is not None and c not in ("line", "group", *lost)]
    digits = 6 if format in ("sltev", "simulstream", "stream") else None  # their times are sums
    agree(f"columns, and written as {format} and read again", *(values(one, held, digits) for one in (before, after)))
    settings = [
        s for s in ("unit", "level", "seg") if s not in lost and "delays" not in lost and len(run.delays.values)
    ]
    said = [tuple(getattr(one, setting) for setting in settings) for one in (run, after)]
    agree(f"{settings}, and written as {format} and read again", *said)
    if not written.value and len(run.delays.values):
        # segments of Speech-to-Speech-Latency have other metrics by default than what they are converted into
        metrics = outcome(lambda: default_metrics(run)).value
        agree(
            f"scores, and written as {format} and read again", *(default_scores(one, metrics) for one in (run, after))
        )
    by_command(file, after, {"format": format, **how})


def default_scores(run: Run, metrics: tuple[str, ...] | None = None) -> dict[str, str] | None:
    """The scores by these metrics, or by those that a log is scored by if nobody says by what."""
    return outcome(lambda: numbers(lagging.score(run, metrics or default_metrics(run)))).value


def by_command(path: Path, run: Run, how: dict[str, Any]) -> None:
    """`lagging score`, which reads some columns only, prints the scores of the whole log."""
    if not how.get("column_map"):
        agree("scores, and those of `lagging score`", default_scores(run), scores(path, how))


def by_scoring(run: Run, asked: list[str]) -> None:
    """Scores are numbers, or undefined for a reason; part by part they are the same."""
    outcome(lambda: sound(lagging.score(run)))
    for name in asked:
        whole = outcome(lambda name=name: lagging.score(run, [name]))
        parts = outcome(lambda name=name: in_parts(run, name))
        if whole.error is None:
            sound(whole.value)
            agree(f"{name}, and part by part", numbers(whole.value), numbers(parts.value or ()))


def in_parts(run: Run, name: str) -> Any:
    """The scores of segments one after the other."""
    accumulator = Accumulator(Plan.make([name]))
    for part in run.segments():
        accumulator.add(part)
    return accumulator.scores()
