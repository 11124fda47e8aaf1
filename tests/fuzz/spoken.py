# SPDX-License-Identifier: Apache-2.0
"""Words of the source: files with their times, and word alignments."""

from __future__ import annotations

import re
from pathlib import Path
from random import Random
from typing import Any

import lagging
from fuzz.cases import Case
from fuzz.documents import Document, encode, json_lines, word, words
from fuzz.hostile import Pairs
from fuzz.logs import damaged
from fuzz.mutators import mutate
from fuzz.oracles import agree, outcome, sound
from fuzz.terminal import ended, run
from lagging.formats.report import ReadReport
from lagging.formats.spoken_words import with_word_times
from lagging.formats.word_times import read_word_times

LOG = b"""{"id": "talk0", "delays": [900, 1500.5], "source_length": 9000, "prediction": "good day", "reference": "good \
day to you", "unit": "ms", "level": "word"}
{"id": "talk1", "delays": [1100], "source_length": 9000, "prediction": "Tag", "unit": "ms", "level": "word"}
"""


def timed(random: Random) -> list[tuple[float, float, str]]:
    """Words, one after the other: start, end, text."""
    made, time = [], 0.0
    for _ in range(random.randint(1, 6)):
        length = round(random.uniform(0, 0.9), 3)
        made.append((round(time, 3), round(time + length, 3), word(random)))
        time += length + random.choice((0, 0.25))
    return made


def ctm(random: Random) -> list[Any]:
    """Lines of CTM, of one recording or two."""
    recordings = random.sample(("talk0", "talk1"), random.randint(1, 2))
    return [[name, 1, a, round(b - a, 3), text] for name in recordings for a, b, text in timed(random)]


def rows(random: Random) -> list[Any]:
    """Start, end and word."""
    return [list(row) for row in timed(random)]


def ostt(random: Random) -> list[Any]:
    """SLTev's transcripts: updates, and the last one of each sentence."""
    lines: list[Any] = []
    for a, b, _ in timed(random):
        tokens = [word(random) for _ in range(random.randrange(1, 4))]
        lines += [["P", int(1000 * a), int(1000 * b), *tokens[:k]] for k in range(1, len(tokens))]
        lines.append(["C", int(1000 * a), int(1000 * b), *tokens])
    return lines


def textgrid(random: Random) -> list[Any]:
    """A TextGrid in its short form, or its long one."""
    head: list[Any] = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    if random.random() < 0.5:
        head += [0, 9, "<exists>", 1, '"IntervalTier"', '"words"', 0, 9]
        intervals = [(a, b, f'"{text}"') for a, b, text in timed(random)]
        return [*head, len(intervals), *(cell for row in intervals for cell in row)]
    head += ["xmin = 0", "xmax = 9", "tiers? <exists>", "size = 1", "item []:", "    item [1]:"]
    head += ['        class = "IntervalTier"', '        name = "words"', "        xmin = 0", "        xmax = 9"]
    intervals = timed(random)
    lines: list[Any] = [*head, f"        intervals: size = {len(intervals)}"]
    for k, (a, b, text) in enumerate(intervals, 1):
        lines += [f"        intervals [{k}]:", f"            xmin = {a}", f"            xmax = {b}"]
        lines.append(f'            text = "{text}"')
    return lines


def whisper(random: Random) -> list[Any]:
    """JSON as Whisper writes it."""
    space, key = random.choice(("", " ")), random.choice(("word", "text"))
    entries = [Pairs([(key, space + text), ("start", a), ("end", b)]) for a, b, text in timed(random)]
    segments = [Pairs([("id", 0), ("words", entries[:2])]), Pairs([("words", entries[2:])])]
    return [random.choice((Pairs([("segments", segments)]), Pairs([("words", entries)]), segments))]


WORD_TIMES = (
    Document("talk0.ctm", ctm, words(" ")),
    Document("talk0.tsv", rows, words("\t")),
    Document("talk0.OStt", ostt, words(" ")),
    Document("talk0.TextGrid", textgrid, words("")),
    Document("talk0.json", whisper, json_lines),
)


def make_spoken(random: Random) -> Case:
    """Word times, and perhaps an alignment."""
    document = random.choice(WORD_TIMES)
    files = {document.file: damaged(random, document), "base.jsonl": LOG}
    if random.random() < 0.4:
        pairs = [[f"{random.randrange(4)}-{random.randrange(2)}" for _ in range(random.randrange(4))] for _ in "12"]
        files["base.align"] = mutate(random, encode("".join(" ".join(line) + "\n" for line in pairs)))
    return Case("word-times", files, {"aligned_with": random.choice(("hypothesis", "reference"))})


def check_spoken(case: Case) -> None:
    """Times are those of a second reading; the metrics that need them are numbers, or undefined for a reason."""
    path = case.write(Path())
    alignment = Path("base.align") if "base.align" in case.files else None
    report = ReadReport()
    read = outcome(lambda: read_word_times(path, report))
    if read.error is None and not report.faults and path.suffix in (".ctm", ".tsv"):
        by_second_reading(path, read.value.recordings)
    log, target = lagging.read("base.jsonl"), case.options.get("aligned_with", "hypothesis")
    spoken = outcome(lambda: with_word_times(log, path, alignment=alignment, aligned_with=target))
    if spoken.error is None:
        for name in ("WordLag", "MAAL", "EVS"):
            scores = outcome(lambda name=name: lagging.score(spoken.value, [name]))
            if scores.error is None:
                sound(scores.value)
    arguments = ["score", "base.jsonl", "--word-times", str(path), "-f", "json", "-q"]
    arguments += [] if alignment is None else ["--word-alignment", str(alignment), "--aligned-with", target]
    code, out, err = run(*arguments)
    ended(arguments, code, out, err)
    if spoken.error is not None:
        agree("whether `lagging score` refuses the word times too", code in (1, 2), True)


def by_second_reading(path: Path, recordings: dict[str, Any]) -> None:
    """Starts and words of a plain CTM or table, cell by cell."""
    lines = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").replace("\r\n", "\n").split("\n")
    number = r"\d+(\.\d+)?"
    pattern = rf"talk\d 1 {number} {number} [a-z]+" if path.suffix == ".ctm" else rf"{number}\t{number}\t[a-z]+"
    if not all(re.fullmatch(pattern, line, re.ASCII) for line in lines if line):
        return
    first = 2 if path.suffix == ".ctm" else 0
    cells = [re.split(r"[ \t]", line) for line in lines if line]
    told = sorted((round(1000 * float(row[first]), 3), row[-1]) for row in cells if row[-1] not in ("sil", "sp"))
    agree(
        "word times, and by a second reading",
        sorted((round(entry.start, 3), entry.text) for entries in recordings.values() for entry in entries),
        told,
    )
