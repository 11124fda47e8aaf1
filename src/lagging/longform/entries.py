# SPDX-License-Identifier: Apache-2.0
"""The files that segmentations are written in, as entries: of each segment the line, and what stands there.

- {duration: 9.05, offset: 2.433, speaker_id: s1, wav: talk1.wav}        YAML as in MuST-C, in seconds
{"duration": 9.05, "offset": 2.433, "wav": "talk1.wav"}                  the same as a JSON list, or as JSON lines
docid=0,segid=0                                                          text segmentation of OmniSTEval
talk1                                                                    docids of mweralign: a name per segment
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from lagging.errors import Fault, Note
from lagging.formats.line import shown
from lagging.formats.options import Options
from lagging.formats.source import Source

__all__ = ["Entry", "read_entries", "read_lines"]

DOCID = re.compile(r"\s*docid=(.+?)\s*,\s*segid=(.+?)\s*")
YAML_BEGINS = re.compile(r"-(\s|$)|---|#|%YAML")
BETWEEN = re.compile(r"[\s,]*")

Entry = tuple[int, Any]
"""Line, and what stands there."""


def read_lines(path: str | Path, options: Options) -> tuple[str, list[str]]:
    """The name of a file, and its lines; the end of the file ends the last one."""
    source = Source("<stdin>", None) if str(path) == "-" else Source(str(path), Path(path))
    raw = b"".join(batch.text for batch in source.batches())
    options.marked(source)
    lines = []
    for line, part in enumerate(raw.removesuffix(b"\n").split(b"\n") if raw else (), 1):
        try:
            lines.append(part.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError as error:
            lines.append(part.decode("utf-8", "replace"))
            detail = f"byte {error.start + 1} is 0x{part[error.start]:02x}"
            options.faults.add(Fault("not-utf8", detail, source.path, line))
    return source.path, lines


def read_entries(path: str, lines: list[str], options: Options) -> list[Entry]:
    """The entries of a file, whatever it is written in."""
    first = next((line for line in lines if line.strip()), "").lstrip()
    if not first:
        return []
    ending = Path(path.removesuffix(".gz")).suffix.lower()
    try:
        if ending in (".yaml", ".yml") or YAML_BEGINS.match(first):
            return _yaml(path, lines, options)
        if first.startswith("{"):
            return _json_lines(path, lines, options)
        if ending == ".json" or first.startswith("["):
            return _json_list(path, lines, options)
    except RecursionError:
        options.faults.add(Fault("not-a-segmentation", "nested too deeply", path))
        return []
    return _names(path, lines, options)


def _yaml(path: str, lines: list[str], options: Options) -> list[Entry]:
    """The entries of a YAML list: scalars stay as they are written, so that a recording may be called 007."""
    import yaml

    loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
    try:
        root = yaml.compose("\n".join(lines), loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        detail = f"not valid YAML: {getattr(error, 'problem', None) or getattr(error, 'reason', error)}"
        options.faults.add(Fault("not-a-segmentation", detail, path, None if mark is None else mark.line + 1))
        return []
    if not isinstance(root, yaml.SequenceNode):
        if root is not None:
            options.faults.add(Fault("not-a-segmentation", "not a list of entries", path, root.start_mark.line + 1))
        return []
    entries: list[Entry] = []
    for place, node in enumerate(root.value):
        line, entry = node.start_mark.line + 1, node.value
        if isinstance(node, yaml.MappingNode):
            entry = {key.value: _plain(value) for key, value in node.value if isinstance(key, yaml.ScalarNode)}
            if len(entry) < len(node.value):
                options.faults.add(Fault("segment-field", "a field occurs twice", path, line, place))
        entries.append((line, entry))
    return entries


def _json_list(path: str, lines: list[str], options: Options) -> list[Entry]:
    text = "\n".join(lines)
    try:
        size = len(found) if isinstance(found := json.loads(text), list) else None
    except ValueError as error:
        options.faults.add(
            Fault("not-a-segmentation", f"not valid JSON: {error}", path, getattr(error, "lineno", None))
        )
        return []
    if size is None:
        options.faults.add(Fault("not-a-segmentation", "not a list of entries", path, 1))
        return []
    # once more, entry by entry, to know their lines
    decoder, entries, at, line = json.JSONDecoder(), [], text.index("[") + 1, 1 + text.count("\n", 0, text.index("["))
    for _ in range(size):
        begin = BETWEEN.match(text, at).end()  # type: ignore[union-attr]  # it matches nothing as well
        line += text.count("\n", at, begin)
        entry, at = decoder.raw_decode(text, begin)
        entries.append((line, entry))
        line += text.count("\n", begin, at)
    return entries


def _plain(node: Any) -> Any:
    """What stands at a node: text, or what it is."""
    return node.value if isinstance(node.value, str) else f"a {node.id}"


def _json_lines(path: str, lines: list[str], options: Options) -> list[Entry]:
    entries: list[Entry] = []
    blank = 0
    for line, text in enumerate(lines, 1):
        blank += not text.strip()
        try:
            entries += [(line, json.loads(text))] if text.strip() else []
        except ValueError as error:
            options.faults.add(Fault("not-a-segmentation", f"not valid JSON: {error}", path, line))
    options.skipped(Source(path, None), blank)
    return entries


def _names(path: str, lines: list[str], options: Options) -> list[Entry]:
    """Lines `docid=…,segid=…`, or the names of recordings: what the first line is, the others are too."""
    numbered = bool(lines) and DOCID.fullmatch(lines[0]) is not None
    entries: list[Entry] = []
    seen: dict[tuple[str, ...], int] = {}
    latest: dict[str, int] = {}
    back = 0
    for line, text in enumerate(lines, 1):
        match = DOCID.fullmatch(text) if numbered else None
        if (match is None) if numbered else (len(text.split()) > 1):
            options.faults.add(Fault("not-a-segmentation", shown(text), path, line, line - 1))
        elif match is not None:
            if (first := seen.setdefault(match.groups(), line)) != line:
                options.faults.add(Fault("segment-twice", f"line {first}", path, line, line - 1))
            place = int(match[2]) if match[2].isdecimal() else latest.get(match[1], 0)
            back += place < latest.get(match[1], 0)
            latest[match[1]] = place
        entries.append((line, {"wav": text.strip() if match is None else match[1]}))
    if back:
        text = "a lower segid than the one above: the order of the lines counts"
        options.notes.append(Note("segid goes back", text, back, noun="line"))
    return entries
