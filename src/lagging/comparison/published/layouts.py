# SPDX-License-Identifier: Apache-2.0
"""The layouts of score files: a parser per layout, from a file to labels and values, each with its line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from lagging.comparison.published.labels import S2S, is_number, is_score_label
from lagging.data.decimals import decimal
from lagging.data.trees import TreeError, read_json
from lagging.errors import DataError, Fault, Faults
from lagging.errors.printable import text_of_field
from lagging.formats.source import Source

__all__ = ["Entry", "Sheet", "parse", "read_text"]

LARGEST = 1 << 24
"""Bytes; a larger file is no score file, but perhaps a log that was given by mistake."""

GAP = re.compile(r"\t|\s{2,}")
STRING = re.compile(r'(?P<string>"(?:[^"\\]|\\.)*+"?+)(?P<key>\s*+:)?')
VERSION = re.compile(r"(?P<tool>\w++) v?(?P<version>\d[\w+-]*+(?:\.[\w+-]++)*+)")


LATENCIES = re.compile(r"LatencyScores\((?P<pairs>[^()]*+)\)")
QUALITY = re.compile(r"\b(?P<name>\w++) score: *+(?P<value>\S++)")
PRINTED = re.compile(rf"{LATENCIES.pattern}|\b(?:comet|sacrebleu|bleu) score: ".replace("?P<pairs>", ""), re.IGNORECASE)
"""Lines that simulstream prints."""


@dataclass(frozen=True)
class Entry:
    """A score as it is written in a file; only our own files have system, unit and signature."""

    label: str
    value: object
    line: int
    system: str | None = None
    unit: str | None = None
    signature: str | None = None


@dataclass
class Sheet:
    """The contents of a score file, and its faults."""

    path: str
    tool: str | None = None
    version: str | None = None
    settings: dict[str, str] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    faults: Faults = field(default_factory=Faults)

    def fault(self, kind: str, detail: str = "", line: int | None = None) -> None:
        """Record a fault; the file is refused at the end, with all its faults."""
        self.faults.add(Fault(kind, detail, self.path, line))

    def refusal(self, detail: str, line: int | None = None) -> DataError:
        """The error for a file that is no score file."""
        return DataError(Fault("not-scores", detail, self.path, line))


Lines = list[tuple[int, str]]


def parse(source: Source) -> Sheet:
    """Recognise the layout of a score file, and collect its entries."""
    sheet = Sheet(source.path)
    text = read_text(source, sheet)
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    head = [name.lower() for name in _pair(lines[0][1])] if lines else []
    if text.lstrip().startswith(("{", "[")):
        _json(sheet, text)
    elif any(line.lstrip().startswith("OmniSTEval v") for _, line in lines):
        _report(sheet, lines)
    elif head == ["metric", "value"]:
        sheet.tool = "OmniSTEval"
        last = max((at for at, (_, line) in enumerate(lines) if _is_row(line)), default=0)
        for at, ((before, _), (number, line)) in enumerate(pairwise(lines), 1):
            apart = number > before + 1 and len(_pair(line)) != 2
            if at > last > 0 and (apart or ("\t" in lines[0][1] and _is_prose(line))):
                break  # text after the table
            _add_pair(sheet, number, line)
    elif {"system", "metric", "score"} <= set(head):
        _own_table(sheet, lines)
    elif any(PRINTED.search(line) for _, line in lines):
        _printed(sheet, lines)
    elif lines:
        _table(sheet, lines)
    return sheet


def read_text(source: Source, sheet: Sheet) -> str:
    """The text of a file that is no larger than `LARGEST`."""
    raw = b""
    for batch in source.batches():
        raw += batch.text
        if len(raw) > LARGEST:
            raise sheet.refusal(f"more than {LARGEST >> 20} MiB")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(Fault("not-utf8", path=source.path, line=line)) from None


# ---- a name and a value per line: OmniSTEval -------------------------------------------------------------------


def _pair(line: str) -> list[str]:
    """Cells that are a tab, or at least two blanks, apart."""
    cells = [cell.strip() for cell in (line.split("\t") if "\t" in line else GAP.split(line.strip()))]
    while len(cells) > 2 and not cells[-1]:
        cells.pop()
    return cells


def _is_row(line: str) -> bool:
    """Whether a line has a name and a number."""
    cells = _pair(line)
    return len(cells) == 2 and is_number(cells[1])


def _is_prose(line: str) -> bool:
    """Whether a line below a table with tabs is a sentence or a rule, and no row that lost its value."""
    words = line.split()
    sentence = len(words) > 2 and not is_score_label(words[0])
    return "\t" not in line and (sentence or not any(map(str.isalnum, line)))


def _add_pair(sheet: Sheet, number: int, line: str) -> None:
    cells = _pair(line)
    if len(cells) == 2 and cells[0]:
        sheet.entries.append(Entry(cells[0], cells[1], number))
    else:
        sheet.fault("score-cells", f"not a name and a value: {line.strip()[:40]}", number)


def _report(sheet: Sheet, lines: Lines) -> None:
    """OmniSTEval's evaluation_report.txt: sections, each with its heading above a line of dashes."""
    sheet.tool = "OmniSTEval"
    section = ""
    for (number, line), (_, below) in pairwise([*lines, (0, "")]):
        text = line.strip()
        if text.startswith("OmniSTEval v"):
            sheet.version = text.split()[1].removeprefix("v")
        elif set(below.strip()) == {"-"}:
            section = text
        elif set(text) == {"="}:
            section = ""
        elif set(text) == {"-"} or text.startswith("***"):  # the verdict again, as a banner
            continue
        elif section == "Settings":
            name, *value = GAP.split(text, maxsplit=1)
            sheet.settings[name] = "".join(value)
        elif section == "Scores":
            _add_pair(sheet, number, line)


# ---- a row of names above a row of values: SimulEval, StreamLAAL -----------------------------------------------


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("\t")] if "\t" in line else line.split()


def _is_header(line: str, share: float = 0.0) -> bool:
    """Whether a line has names only, of which at least one, or that share, are known metrics."""
    if VERSION.match(line):  # StreamLAAL is the name of a tool as well
        return False
    names = set(_cells(line)) - {""}
    return not any(map(is_number, names)) and sum(map(is_score_label, names)) >= max(1, share * len(names))


def _table(sheet: Sheet, lines: Lines) -> None:
    """TSV, or what pandas prints; the lines that a tool printed before it are skipped."""
    end, wrapped = 0, False  # the index after the rows read so far, and whether pandas continues below
    for index, (above, head) in enumerate(lines):
        number, row = lines[index + 1] if index + 1 < len(lines) else (above, "")
        if index < end:  # the values below the last header
            continue
        if (wrapped and row) or _is_table(head, row, first=index == 0):
            _add_columns(sheet, above, head, number, _cells(row))
            end, wrapped = index + 2, head.rstrip().endswith("\\")
        elif index == end > 0 and all(map(is_number, _cells(head))):
            sheet.fault("several-rows", line=above)
            end += 1
    if wrapped:
        sheet.fault("score-cells", "the table breaks off", lines[-1][0])
    if not end and not _is_header(lines[-1][1]):
        raise sheet.refusal(lines[0][1].strip()[:40], lines[0][0])
    labels = [entry.label for entry in sheet.entries]
    sheet.tool = "StreamLAAL" if any("StreamLAAL" in label for label in labels) else "SimulEval"
    if any(label in S2S for label in labels):
        sheet.tool = "Speech-to-Speech-Latency"
    matches = (VERSION.match(line) for _, line in lines)
    sheet.version = next((match["version"] for match in matches if match and match["tool"] == sheet.tool), None)


def _is_table(head: str, row: str, first: bool) -> bool:
    """Whether a line has the names of the values below it; in the first line, values may be no numbers."""
    values = _cells(row)
    if row and 2 * sum(map(is_number, values)) >= len(values):
        return _is_header(head)
    return first and bool(row) and _is_header(head, share=0.5)


def _add_columns(sheet: Sheet, above: int, head: str, number: int, values: list[str]) -> None:
    names = _cells(head.rstrip("\\ \t\r"))
    while len(values) > len(names) and not values[-1]:
        values = values[:-1]
    if "..." in names:
        sheet.fault("elided-scores", line=above)
        return
    spaced = GAP.split(head.strip("\\ \t\r"))
    if "\t" not in head and len(names) > len(values) >= len(spaced):  # names with blanks in them
        names = spaced
    if "\t" in head and names[:1] == [""]:  # pandas numbers the rows
        names, values = names[1:], values[1:]
    elif "\t" not in head and len(values) == len(names) + 1 and values[0] == "0":
        values = values[1:]
    if len(values) == len(names) and all(names):
        sheet.entries += [Entry(name, value, number) for name, value in zip(names, values, strict=True)]
    else:
        sheet.fault("score-cells", f"{len(values)} values below {len(names)} names", number)


# ---- what simulstream prints -----------------------------------------------------------------------------------


def _printed(sheet: Sheet, lines: Lines) -> None:
    """`LatencyScores(ideal_latency=2.53, …)`, in seconds, and lines like `comet score: 0.83`, among other lines."""
    sheet.tool = "simulstream"
    for number, line in lines:
        if latencies := LATENCIES.search(line):
            for pair in latencies["pairs"].split(","):
                name, _, value = (part.strip() for part in pair.partition("="))
                seconds = decimal(value)
                if not name or (seconds is None and value != "None"):
                    sheet.fault("bad-score", f"{name}: {value[:40]}", number)
                elif seconds is not None:
                    sheet.entries.append(Entry(name, round(1000 * seconds, 6), number))
        elif quality := QUALITY.search(line):
            name = quality["name"].lower()
            sheet.entries.append(Entry("COMET" if name == "comet" else name, quality["value"], number))


# ---- JSON: SimulEval 1.0, and objects of numbers ---------------------------------------------------------------


def _json(sheet: Sheet, text: str) -> None:
    """Our own JSON; or names and numbers, perhaps in groups (SimulEval 1.0), perhaps under `scores`."""
    repeated: list[str] = []
    try:
        content = read_json(text, repeated, parse_int=float)
    except json.JSONDecodeError as error:
        raise sheet.refusal(f"not one JSON object ({error.msg})", error.lineno) from None
    except TreeError as error:
        raise sheet.refusal(f"JSON that is {error}") from None
    scores = content.get("scores", content) if isinstance(content, dict) else content
    lines = _lines_of_keys(text)
    for key in repeated:
        sheet.fault("repeated-metric", key, lines[key][-1])
    if scores is not content and isinstance(scores, list):
        if content.get("schema") != 1:
            raise sheet.refusal(f"schema {content.get('schema')}, and this version reads 1", 1)
        _add_own(sheet, scores, lines.get("metric", []))
        return
    groups = scores.items() if isinstance(scores, dict) else ()
    flat = [pair for key, value in groups for pair in (value.items() if isinstance(value, dict) else [(key, value)])]
    if not any(is_score_label(label, exactly=False) for label, _ in flat):
        raise sheet.refusal("JSON without a metric that is known", 1)
    sheet.entries += [Entry(label, value, lines[label][-1]) for label, value in flat]
    if "Quality" in scores or "Latency" in scores:
        sheet.tool = "SimulEval"
    elif scores is not content and isinstance(tool := content.get("tool"), str):
        match = VERSION.fullmatch(tool)
        sheet.tool, sheet.version = (match["tool"], match["version"]) if match else (tool, None)


def _lines_of_keys(text: str) -> dict[str, list[int]]:
    """The lines of each key of a JSON text."""
    lines: dict[str, list[int]] = {}
    line, end = 1, 0
    for match in STRING.finditer(text):
        line, end = line + text.count("\n", end, match.start()), match.start()
        if match["key"]:
            lines.setdefault(json.loads(match["string"]), []).append(line)
    return lines


# ---- what `lagging score` prints -------------------------------------------------------------------------------


def _own_table(sheet: Sheet, lines: Lines) -> None:
    """The output of `-f tsv`."""
    names = [name.lower() for name in _cells(lines[0][1])]
    records, numbers = [], []
    for number, line in lines[1:]:
        cells = [text_of_field(cell.strip()) for cell in line.split("\t")]
        if len(cells) == len(names):
            records.append(dict(zip(names, cells, strict=True)))
            numbers.append(number)
        else:
            sheet.fault("score-cells", f"{len(cells)} values below {len(names)} names", number)
    _add_own(sheet, records, numbers)


def _add_own(sheet: Sheet, records: list[Any], lines: list[int]) -> None:
    """Add records with the fields of our output; `lines` has the lines of their metrics."""
    sheet.tool = "lagging"
    numbers = iter(lines)
    for record in records:
        fields: dict[str, Any] = record if isinstance(record, dict) else {}
        line = next(numbers, 1) if "metric" in fields else 1
        missing = [key for key in ("system", "metric", "score") if key not in fields]
        label, system, unit, signature = (fields.get(key) or None for key in ("metric", "system", "unit", "signature"))
        if missing:
            sheet.fault("score-cells", f"no `{missing[0]}`", line)
        elif not isinstance(label, str) or not all(isinstance(t, str | None) for t in (system, unit, signature)):
            sheet.fault("score-cells", "a name that is not text", line)
        else:
            sheet.entries.append(Entry(label, fields["score"], line, system, unit, signature))
