# SPDX-License-Identifier: Apache-2.0
"""The files that segmentations are written in, as entries: of each segment the line, and what stands there.

- {duration: 9.05, offset: 2.433, speaker_id: s1, wav: talk1.wav}        YAML as in MuST-C, in seconds
{"duration": 9.05, "offset": 2.433, "wav": "talk1.wav"}                  the same as a JSON list, or as JSON lines
docid=0,segid=0                                                          text segmentation of OmniSTEval
talk1                                                                    docids of mweralign: a name per segment
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from lagging.data.decimals import LONGEST
from lagging.data.trees import TreeError, json_decoder, read_json, read_yaml
from lagging.errors import Fault, Note
from lagging.formats.line import shown
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = ["Entry", "read_entries", "read_lines"]

DOCID = re.compile(r"docid=(.+?),\s*+segid=(.+)")
YAML_BEGINS = re.compile(r"-(\s|$)|---|#|%YAML")
BETWEEN = re.compile(r"[\s,]*")

Entry = tuple[int, Any]
"""Line, and what stands there."""


def read_lines(path: str | Path, report: ReadReport) -> tuple[str, list[str]]:
    """The name of a file, and its lines; the end of the file ends the last one."""
    source = Source("<stdin>", None) if str(path) == "-" else Source(str(path), Path(path))
    raw = source.whole()
    report.note_byte_order_mark(source)
    lines = []
    for line, part in enumerate(raw.removesuffix(b"\n").split(b"\n") if raw else (), 1):
        try:
            lines.append(part.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError as error:
            lines.append(part.decode("utf-8", "replace"))
            detail = f"byte {error.start + 1} is 0x{part[error.start]:02x}"
            report.faults.add(Fault("not-utf8", detail, source.path, line))
    return source.path, lines


def read_entries(path: str, lines: list[str], report: ReadReport) -> list[Entry]:
    """The entries of a file, whatever it is written in."""
    first = next((line for line in lines if line.strip()), "").lstrip()
    if not first:
        return []
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    try:
        if ending in (".yaml", ".yml") or YAML_BEGINS.match(first):
            return _yaml(path, lines, report)
        if first.startswith("{"):
            return _json_lines(path, lines, report)
        if ending == ".json" or first.startswith("["):
            return _json_list(path, lines, report)
    except ValueError as error:
        # of JSON, JSONDecodeError has the line; of YAML, TreeError
        line = getattr(error, "line", None) or getattr(error, "lineno", None)
        what = "" if isinstance(error, TreeError) else "not valid JSON: "
        report.faults.add(Fault("not-a-segmentation", f"{what}{error}", path, line))
        return []
    return _names(path, lines, report)


def _yaml(path: str, lines: list[str], report: ReadReport) -> list[Entry]:
    """The entries of a YAML list: scalars stay as they are written, so that a recording may be called 007."""
    document = read_yaml("\n".join(lines))
    if not isinstance(document.value, list):
        if document.value is not None:
            report.faults.add(Fault("not-a-segmentation", "not a list of entries", path, document.line))
        return []
    report.faults.add(*(Fault("repeated-key", shown(key), path, line, place) for line, place, key in document.repeated))
    return list(zip(document.lines, document.value, strict=True))


def _json_list(path: str, lines: list[str], report: ReadReport) -> list[Entry]:
    text = "\n".join(lines)
    if not isinstance(whole := read_json(text, []), list):
        report.faults.add(Fault("not-a-segmentation", "not a list of entries", path, 1))
        return []
    # once more, entry by entry, to know their lines
    repeated: list[str] = []
    decoder, at, line = json_decoder(repeated), text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    entries: list[Entry] = []
    for place in range(len(whole)):
        begin = BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing as well
        line += text.count("\n", at, begin)
        entry, at = decoder.raw_decode(text, begin)
        entries.append((line, entry))
        report.faults.add(*(Fault("repeated-key", shown(key), path, line, place) for key in repeated))
        repeated.clear()
        line += text.count("\n", begin, at)
    return entries


def _json_lines(path: str, lines: list[str], report: ReadReport) -> list[Entry]:
    entries: list[Entry] = []
    blank = 0
    for line, text in enumerate(lines, 1):
        blank += not text.strip()
        repeated: list[str] = []
        try:
            entries += [(line, read_json(text, repeated))] if text.strip() else []
        except ValueError as error:
            report.faults.add(Fault("not-a-segmentation", f"not valid JSON: {error}", path, line))
        report.faults.add(*(Fault("repeated-key", shown(k), path, line, len(entries) - 1) for k in repeated))
    report.note_blank_lines(Source(path, None), blank)
    return entries


def _names(path: str, lines: list[str], report: ReadReport) -> list[Entry]:
    """Lines `docid=…,segid=…`, or the names of recordings: what one line is, the others are too."""
    numbered = any(DOCID.fullmatch(text.strip()) for text in lines)
    entries: list[Entry] = []
    seen: dict[tuple[str, ...], int] = {}
    latest: dict[str, int] = {}
    back = 0
    for line, text in enumerate(lines, 1):
        match = DOCID.fullmatch(text.strip()) if numbered else None
        if (match is None) if numbered else (len(text.split()) > 1):
            report.faults.add(Fault("not-a-segmentation", shown(text), path, line, line - 1))
        elif match is not None:
            document, name = match[1].rstrip(), match[2]
            if (first := seen.setdefault((document, name), line)) != line:
                report.faults.add(Fault("segment-twice", f"line {first}", path, line, line - 1))
            place = int(name) if name.isdecimal() and len(name) <= LONGEST else latest.get(document, 0)
            back += place < latest.get(document, 0)
            latest[document] = place
        entries.append((line, {"wav": text.strip() if match is None else match[1].rstrip()}))
    if back:
        text = "a lower segid than the one above: the order of the lines counts"
        report.notes.append(Note("segid goes back", text, back, noun="line"))
    return entries
