# SPDX-License-Identifier: Apache-2.0
"""The files that say when each word of a recording was spoken.

talk1 1 0.75 0.36 hello                         CTM: file, channel, start, duration, word; seconds
0.753<TAB>1.113<TAB>Hello,                      start, end, word, with tabs or blanks between; seconds
File type = "ooTextFile" …                      TextGrid of Praat, in its long or short form; seconds
{"segments": [{"words": [{"start": 0.75, …      JSON as Whisper and its relatives write it; seconds
P 215 218 Like                                  SLTev's OStt, in ms: a word has the time of the update that completed it

A CTM names its recordings; any other file is about one recording, and has its name. A folder holds a file for each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lagging.data.decimals import DECIMAL, decimal
from lagging.data.trees import read_json
from lagging.errors import Fault, Note, UsageError
from lagging.formats.line import shown
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = ["Word", "WordTimes", "digest", "read_word_times", "stem"]

SILENCES = ("", "<eps>", "<sil>", "sil", "sp", "#")
"""Labels of intervals in which no word was spoken."""
ENDINGS = (".wav", ".flac", ".mp3", ".ogg", ".m4a", ".opus", ".aac", ".mp4", ".sph", ".txt", ".tsv", ".ts", ".ctm")
"""What is left out of the name of a recording or of its file."""


@dataclass(frozen=True)
class Word:
    """A word of a recording: when it began and ended, in ms, and where it stands in its file."""

    start: float
    end: float
    text: str
    path: str
    line: int | None = None


@dataclass
class WordTimes:
    """The words of some recordings.

    Attributes:
        recordings: the words of each, by its name.
        digest: hash of the files.
        named: whether the files name the recordings; if not, the name is that of the file.
        path: the file or folder.
    """

    recordings: dict[str, list[Word]] = field(default_factory=dict)
    digest: str = ""
    named: bool = False
    path: str = ""


def digest(*contents: bytes) -> str:
    """Eight hexadecimal digits that stand for the content of files."""
    return hashlib.sha256(b"\0".join(contents)).hexdigest()[:8]


def stem(name: str) -> str:
    """The name of a recording without folders and the ending of its file.

    Example:
        >>> stem("audio/talk.1.wav"), stem("talk.1.TextGrid"), stem("talk.1")
        ('talk.1', 'talk.1', 'talk.1')
    """
    name = name.replace("\\", "/").rsplit("/", 1)[-1]
    while ending := next((e for e in (*ENDINGS, ".textgrid", ".json", ".ostt") if name.lower().endswith(e)), None):
        name = name[: -len(ending)]
    return name


def read_word_times(path: str | Path, report: ReadReport) -> WordTimes:
    r"""Read a file with word times, or a folder of them; the format is recognised.

    Args:
        path: the file or folder.
        report: faults and notes go there.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp()) / "talk.ctm"
        >>> _ = file.write_text("talk 1 0.5 0.25 hello\ntalk 1 0.75 0.5 there\n")
        >>> [(w.start, w.end, w.text) for w in read_word_times(file, ReadReport()).recordings["talk"]]
        [(500.0, 750.0, 'hello'), (750.0, 1250.0, 'there')]
    """
    where = Path(path)
    if not where.exists():
        raise UsageError(f"no such file or directory: {path}")
    files = sorted(f for f in where.iterdir() if f.is_file()) if where.is_dir() else [where]
    times, contents = WordTimes(path=str(path)), []
    for file in files:
        raw = Source(str(file), file).whole()
        contents.append(raw)
        text = _decode(raw, str(file), report)
        if text is None:
            continue
        read = _recognise(text, file)
        if read is None:
            report.faults.add(Fault("not-word-times", shown(text.split("\n", 1)[0]), str(file), 1))
            continue
        for name, word in read(text, str(file), report):
            times.named |= name is not None
            times.recordings.setdefault(stem(file.name) if name is None else name, []).append(word)
    times.digest = digest(*contents)
    return times


def _decode(raw: bytes, path: str, report: ReadReport) -> str | None:
    """The text of a file: UTF-8, or UTF-16 with its mark, as Praat may write it."""
    encoding = "utf-16" if raw[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return raw.decode(encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        report.faults.add(Fault("not-utf8", f"byte {error.start + 1} is 0x{raw[error.start]:02x}", path, line))
        return None


Read = Iterator[tuple[str | None, Word]]
"""The name of the recording, if the file has it, and a word."""
Reader = Callable[[str, str, ReadReport], Read]


def _recognise(text: str, file: Path) -> Reader | None:
    """The reader of a file, by its first line that is neither blank nor a comment."""
    lines = (line for line in text.split("\n") if line.strip() and not line.startswith(";;"))
    first = next(lines, "")
    cells = first.split()
    if "ooTextFile" in first or file.suffix.lower() == ".textgrid":
        return _read_textgrid
    if first.lstrip()[:1] in ("{", "["):
        return _read_json
    if len(cells) > 2 and cells[0] in ("P", "C") and _are_numbers(cells[1:3]):
        return _read_ostt
    if len(cells) >= 5 and "\t" not in first and _are_numbers(cells[2:4]):
        return _read_ctm
    if len(cells) > 2 and (_are_numbers(cells[:2]) or _is_header(cells)):
        return _read_table
    return _read_ctm if len(cells) >= 5 and _are_numbers(cells[2:4]) else None


def _is_header(cells: Sequence[str]) -> bool:
    """Whether these are the names of columns: start, end and word."""
    names = [cell.casefold() for cell in cells[:3]]
    return names[:2] in (["start", "end"], ["begin", "end"]) and names[2:] in (["word"], ["text"], ["label"])


def _are_numbers(cells: Sequence[str]) -> bool:
    return all(decimal(cell) is not None for cell in cells)


def _ms(seconds: float) -> float:
    """Seconds in ms, without the rounding of binary fractions: 2.7430000000000003 s are 2743 ms."""
    return round(seconds * 1000, 6)


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for line, content in enumerate(text.split("\n"), 1):
        if content.strip() and not content.startswith(";;"):
            yield line, content


def _read_ctm(text: str, path: str, report: ReadReport) -> Read:
    for line, content in _lines(text):
        cells = content.split()
        if len(cells) < 5 or not _are_numbers(cells[2:4]):
            report.faults.add(Fault("not-word-times", shown(content), path, line))
        elif cells[4] not in SILENCES:
            start, duration = float(cells[2]), float(cells[3])
            yield cells[0], Word(_ms(start), _ms(start + duration), cells[4], path, line)


def _read_table(text: str, path: str, report: ReadReport) -> Read:
    tabs = "\t" in next(_lines(text), (0, ""))[1]
    for line, content in _lines(text):
        # a word may begin with a quote: this is no CSV
        cells = [cell.strip() for cell in (content.split("\t") if tabs else content.split(maxsplit=2))]
        if line == 1 and _is_header(cells):
            continue
        if len(cells) < 3 or not _are_numbers(cells[:2]):
            report.faults.add(Fault("not-word-times", shown(content), path, line))
        elif cells[2] not in SILENCES:
            yield None, Word(_ms(float(cells[0])), _ms(float(cells[1])), " ".join(cells[2].split()), path, line)


# ---- SLTev ----------------------------------------------------------------------------------------------------------


def _read_ostt(text: str, path: str, report: ReadReport) -> Read:
    """Each word of a final text ends with the first update that has as many words; several share its time evenly."""
    updates: list[tuple[int, float, float, list[str]]] = []
    for line, content in _lines(text):
        kind, *cells = content.split(maxsplit=3)
        if kind not in ("P", "C") or len(cells) < 2 or not _are_numbers(cells[:2]):
            report.faults.add(Fault("not-word-times", shown(content), path, line))
            continue
        updates.append((line, float(cells[0]), float(cells[1]), "".join(cells[2:]).split()))
        if kind == "C":
            yield from ((None, word) for word in _completed(updates, path))
            updates = []
    if updates:
        report.faults.add(Fault("never-completed", f"{len(updates)} updates", path, updates[0][0]))


def _completed(updates: Sequence[tuple[int, float, float, list[str]]], path: str) -> Iterator[Word]:
    done, before, final = 0, updates[0][1], updates[-1][3]
    for line, _, end, words in updates:
        new = len(final) - done if line == updates[-1][0] else min(len(words), len(final)) - done
        end = max(end, before)
        for k in range(new):
            first, last = (before + (end - before) * share / new for share in (k, k + 1))
            yield Word(first, last, final[done + k], path, line)
        if new > 0:
            done, before = done + new, end


# ---- TextGrid -------------------------------------------------------------------------------------------------------

VALUE = re.compile(rf'"((?:[^"]|"")*+)"|<(\w+)>|(?<![\w\[.]){DECIMAL}(?![\w\]])')
"""What a TextGrid says: texts, flags and numbers; the long form has names beside them, the short form has not."""


def _read_textgrid(text: str, path: str, report: ReadReport) -> Read:
    values: list[tuple[int, str | float]] = []
    line, at = 1, 0
    for match in VALUE.finditer(text):
        line, at = line + text.count("\n", at, match.start()), match.start()
        if match[1] is not None:
            values.append((line, match[1].replace('""', '"')))
        elif match[2] is None:
            values.append((line, float(match[0])))
    tiers: dict[str, list[Word]] = {}
    try:
        place = next(k for k, (_, value) in enumerate(values) if value == "TextGrid") + 4  # its two times, and a count
        while place < len(values):
            place, name, words = _tier(values, place, path)
            if words is not None:
                tiers[name] = words
    except (StopIteration, IndexError, OverflowError, TypeError, ValueError):
        report.faults.add(Fault("not-word-times", "the TextGrid breaks off, or is not one", path, line))
        return
    names = [name for name in tiers if re.search(r"\bwords?$", name.strip(), re.IGNORECASE)]
    chosen = list(tiers) if len(tiers) == 1 else names
    if len(chosen) != 1:
        detail = f"{len(names)} tiers of words among {', '.join(map(shown, tiers)) or 'no tiers'}"
        report.faults.add(Fault("not-word-times", detail, path))
        return
    yield from ((None, word) for word in tiers[chosen[0]] if word.text.strip() not in SILENCES)


def _tier(values: Sequence[tuple[int, Any]], place: int, path: str) -> tuple[int, str, list[Word] | None]:
    """The place after a tier, its name, and its intervals; None for a tier of points."""
    kind, name, count = values[place][1], str(values[place + 1][1]), int(values[place + 4][1])
    width = {"IntervalTier": 3, "TextTier": 2}.get(kind)
    if width is None or count < 0:
        raise ValueError(f"no such tier: {kind} of {count}")
    start, stop = place + 5, place + 5 + width * count
    if stop > len(values):
        raise IndexError
    rows = [values[k : k + width] for k in range(start, stop, width)]
    if width == 2:
        return stop, name, None
    words = [
        Word(_ms(float(begin)), _ms(float(end)), " ".join(str(text).split()), path, line)
        for (line, begin), (_, end), (_, text) in rows
    ]
    return stop, name, words


TOO_LATE = 1e300
"""A whole number of JSON may be larger than any float; no time is."""

# ---- JSON -----------------------------------------------------------------------------------------------------------


def _read_json(text: str, path: str, report: ReadReport) -> Read:
    """The words of all segments. Where some begin with a space, one that does not goes on with the word before."""
    try:
        tree = read_json(text)
    except ValueError as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else None
        report.faults.add(Fault("not-word-times", f"not valid JSON: {error}", path, line))
        return
    entries = list(_entries(tree))
    if not entries:
        report.faults.add(Fault("not-word-times", "no `words` in it, and no `segments` that have `words`", path))
    spaced = any(str(_text(entry)).startswith(" ") for _, entry in entries if isinstance(entry, dict))
    word: Word | None = None
    untimed = 0
    for place, entry in entries:
        label = _text(entry) if isinstance(entry, dict) else None
        times = [entry.get(key) for key in ("start", "end")] if isinstance(entry, dict) else []
        if not isinstance(label, str) or any(
            isinstance(t, bool) or not isinstance(t, int | float | None) for t in times
        ):
            report.faults.add(Fault("not-word-times", f"{place}: {shown(entry)}", path))
            continue
        if None in times:
            untimed += 1
            continue
        start, end = (_ms(min(t, TOO_LATE)) for t in times if t is not None)
        if spaced and word is not None and not label.startswith(" "):
            word = Word(word.start, end, word.text + label.strip(), path)
            continue
        if word is not None:
            yield None, word
        word = Word(start, end, " ".join(label.split()), path)
    if word is not None:
        yield None, word
    if untimed:
        report.notes.append(Note("words without times", f"left out, in {path}", untimed, noun="word"))


def _text(entry: dict[str, Any]) -> Any:
    return entry.get("word", entry.get("text"))


def _entries(tree: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The words of a tree, each with its place in it."""
    if isinstance(tree, list):
        for k, part in enumerate(tree):
            if isinstance(part, dict) and {"start", "end", "word"} <= part.keys() and "words" not in part:
                yield f"{place}[{k}]", part
            else:
                yield from _entries(part, f"{place}[{k}]")
    elif isinstance(tree, dict) and isinstance(tree.get("words"), list):
        yield from ((f"{place}.words[{k}]".lstrip("."), word) for k, word in enumerate(tree["words"]))
    elif isinstance(tree, dict) and isinstance(tree.get("segments"), list):
        yield from _entries(tree["segments"], f"{place}.segments".lstrip("."))
