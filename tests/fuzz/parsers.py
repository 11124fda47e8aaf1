# SPDX-License-Identifier: Apache-2.0
"""A second reading of every format: plain, slow, and written from what the documentation says of the format.

Only logs that were accepted are read again, so that nothing here looks for faults. A parser gives a row per segment:
what it is sure of, by column.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lagging.data.run import LISTS, NUMBERS, Run
from lagging.formats.moses import moses

Row = dict[str, Any]

OMNISTEVAL = {
    "emission_cu": "delays",
    "emission_ca": "elapsed",
    "docid": "document",
    "time_to_recording_end": "recording_end",
}
ALIASES = {
    **dict.fromkeys(("index", "idx", "segment", "segment_id", "sentence_id"), "id"),
    **dict.fromkeys(("source_len", "src_length", "src_len"), "source_length"),
    **dict.fromkeys(("hypothesis", "hyp", "pred"), "prediction"),
    "ref": "reference",
}
TEXTS = ("prediction", "reference")
DECODER = json.JSONDecoder()
BETWEEN = re.compile(r"[\s\[\],]*+")
"""What stands between the objects of an array."""


class RepeatedKey(Exception):
    """A key of an object that occurs twice."""


def lines_of(path: Path) -> list[str]:
    """The lines of a file of text, without their ends; the byte order mark is no part of it."""
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    lines = data.decode("utf-8").split("\n")
    return [line.removesuffix("\r") for line in (lines[:-1] if lines[-1] == "" else lines)]


def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; two values of one key cannot both be what was meant."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise RepeatedKey(next(key for key, _ in pairs if [k for k, _ in pairs].count(key) > 1))
    return found


def outermost(text: str) -> dict[str, Any]:
    """The object on a line; what it holds within may repeat keys."""
    inner: list[list[tuple[str, Any]]] = []

    def keep(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        inner.append(pairs)
        return dict(pairs)

    json.loads(text, object_pairs_hook=keep)
    return once(inner[-1])  # the outermost ends last


def objects(path: Path) -> list[str]:
    """The text of each JSON object of a file: of a line, of an array, or over several lines; else the lines."""
    lines = list(filter(str.strip, lines_of(path)))
    if not lines or (not lines[0].lstrip().startswith("[") and all(map(_is_json, lines))):
        return lines
    text, found, place = "\n".join(lines), [], 0
    while (begin := BETWEEN.match(text, place).end()) < len(text):  # type: ignore[union-attr]
        try:
            _, place = DECODER.raw_decode(text, begin)
        except ValueError:
            return lines
        found.append(text[begin:place])
    return found


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def floats(values: Any, nulls: bool = False) -> list[float] | None:
    """Numbers, and NaN for null where that may be; None for what is no list of numbers."""
    if not isinstance(values, list) or not all((v is None and nulls) or type(v) in (int, float) for v in values):
        return None
    return [math.nan if v is None else number(v) for v in values]


def number(value: Any) -> float:
    """A number as a float, be it too large for one."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


# ---- JSON lines -------------------------------------------------------------------------------------------------


def json_lines(path: Path, run: Run) -> list[Row]:
    """A row per object."""
    omnisteval = run.origin.format == "omnisteval"
    found = []
    for line in objects(path):
        record = outermost(line)
        if omnisteval:
            hidden = {*OMNISTEVAL.values()}
            record = {OMNISTEVAL.get(k, k): v for k, v in record.items() if k not in hidden}
            record.setdefault("source_length", 0.0)
        row: Row = {"id": record.get("index", record.get("id", len(found)))}
        row["delays"] = floats(record.get("delays") or [])
        row |= {column: number(record[column]) for column in ("source_length",) if record.get(column) is not None}
        row |= {column: record[column] for column in TEXTS if column in record}
        lists = {column: floats(record.get(column) or [], nulls=column == "shown") for column in LISTS}
        row |= {column: times for column, times in lists.items() if times is not None}
        if run.first_times is not None and record.get("first_times") is None:  # never revised
            row["first_times"] = row["delays"]
        row |= {column: math.nan if record.get(column) is None else number(record[column]) for column in NUMBERS}
        found.append(row)
    return found


def s2s(path: Path, run: Run) -> list[Row]:
    """A row per segment; one that nothing was aligned with is empty."""
    rows = json_lines(path, run)
    for row, line in zip(rows, objects(path), strict=True):
        record = outermost(line)
        row.pop("document", None)
        row.setdefault("source_length", 0.0)
        if run.level == "token" and math.isnan(row["reference_length"]):
            del row["reference_length"]  # counted in units like those of the hypothesis, where those are known
        if record.get("source_length") is None:
            row["prediction"] = ""
    return rows


def trajectory(path: Path, run: Run) -> list[Row]:
    """A row per object: how many source words were read before the chunk of each target word."""
    records = [outermost(text) for text in objects(path)]
    texts = [chunk for record in records for name in ("src_trajectory", "target_trajectory") for chunk in record[name]]
    plain = run.level == "word" and all(text.isascii() and text == text.strip() for text in texts)
    rows: list[Row] = []
    for record in records:
        row: Row = {"id": record.get("index", record.get("id", len(rows)))}
        read, written = record["src_trajectory"], record["target_trajectory"]
        if plain:  # the first script decides what the tokens of all are
            heard = [sum(len(chunk.split()) for chunk in read[: k + 1]) for k in range(len(read))]
            row["delays"] = [float(n) for n, chunk in zip(heard, written, strict=True) for _ in chunk.split()]
        rows.append(row)
    return rows


def simulstream(path: Path, run: Run) -> list[Row]:
    """A row per stream: how much audio, and which letters stand at the end."""
    streams: dict[Any, list[dict[str, Any]]] = {}
    order: list[list[dict[str, Any]]] = []
    names: dict[Any, Any] = {}
    for line in objects(path):
        record = outermost(line)
        if "id" not in record:
            continue
        key = record["id"]
        metadata = record.get("metadata")
        name = metadata.get("wav_name") if isinstance(metadata, dict) else None
        if key not in streams or (name is not None and names.get(key) not in (None, name)):
            streams[key] = []
            order.append(streams[key])
            names.pop(key, None)
        if name is not None:
            names[key] = name
        if "metadata" not in record or any(
            record.get(k) is not None for k in ("total_audio_processed", "generated_tokens")
        ):
            streams[key].append(record)
    found = []
    for steps in order:
        stands: list[str] = []
        for step in steps:
            gone = [token for token in step.get("deleted_tokens") or () if token]
            stands = stands[: len(stands) - len(gone)] + [t for t in step.get("generated_tokens") or () if t]
        audio = [step["total_audio_processed"] for step in steps]
        found.append(
            {"source_length": round(1000 * audio[-1], 6) if audio else 0.0, "letters": letters("".join(stands))}
        )
    return found


def stream(path: Path, run: Run) -> list[Row]:
    """A row per recording: the last time, and which letters are shown at the end; of the generic form alone."""
    recordings: dict[Any, list[dict[str, Any]]] = {}
    for line in objects(path):
        record = outermost(line) if line.lstrip().startswith("{") else {}
        if "mode" not in record:
            return [{} for _ in range(len(run))]
        recordings.setdefault(record.get("recording"), []).append(record)
    found = []
    for records in recordings.values():
        settled, shown = "", ""
        for record in records:
            shown = shown + record["text"] if record["mode"] == "append" else record["text"]
            if record.get("final"):
                settled, shown = settled + shown, ""
        heard = [record["audio"] for record in records if record.get("audio") is not None]
        last = heard[-1] if heard else records[-1]["time"]
        found.append({"source_length": round(float(last), 6), "letters": letters(settled + shown)})
    return found


def letters(text: str) -> str:
    """A text without what may stand between or within its sub-words."""
    return re.sub(r"[\s▁@]|</w>|##", "", text)


# ---- lines of other kinds ---------------------------------------------------------------------------------------


def rw(path: Path, run: Run) -> list[Row]:
    """READ and WRITE, one at a time."""
    found = []
    for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        reads, delays = 0, []
        for action in line.decode().upper():
            reads += action == "R"
            delays += [float(reads)] * (action == "W")
        found.append({"delays": delays, "source_length": float(reads)})
    return found if len(found) == len(run) else found[:-1]


def text(path: Path, run: Run) -> list[Row]:
    """A prediction per line."""
    return [{"prediction": line} for line in lines_of(path)]


def _common(one: list[str], other: list[str]) -> int:
    """How many tokens two texts have in common from the start."""
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def sltev(path: Path, run: Run) -> list[Row]:
    """A row per line C: since when each token, and all before it, were as they are at the end."""
    found: list[Row] = []
    updates: list[tuple[float, list[str]]] = []
    for line in filter(str.strip, path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8").split("\n")):
        kind, shown, start, end, *rest = line.strip().split(None, 4)
        content = rest[0].rstrip() if rest else ""
        since = max([float(shown), *(time for time, _ in updates)])
        updates.append((since, moses(f"C 0 {content}")[2:]))
        if kind == "C":
            final = updates[-1][1]
            delays = []
            same = [_common(tokens, final) for _, tokens in updates]
            for count in range(1, len(final) + 1):
                first = len(updates)
                while first and same[first - 1] >= count:
                    first -= 1
                delays.append(updates[first][0] - float(start))
            length = float(end) - float(start)
            found.append({"delays": delays, "source_length": length, "letters": letters(content)})
            updates = []
    return found


def fairseq(path: Path, run: Run) -> list[Row]:
    """A row per sentence that is named: the numbers of its Delay- line."""
    found: dict[int, Row] = {}
    for line in path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n"):
        told = re.match(rb"(Delay|RW|BS|BT|[STHDL])-(\d{1,19})\t", bare := line.rstrip(b"\r").rpartition(b"\r")[2])
        if told is None:
            continue
        row = found.setdefault(int(told[2]), {"id": int(told[2])})
        if told[1] == b"Delay":
            content = bare.decode().rpartition("\t")[2].strip()
            inner = content[1:-1] if content.startswith("[[") else content
            row["delays"] = [float(t) for t in re.split(r"[\s,;]+", inner.strip("[] ")) if t]
    return list(found.values())


# ---- tables -----------------------------------------------------------------------------------------------------


def listed(cell: str) -> list[float]:
    """The numbers in a cell."""
    try:
        return [math.nan if v is None else number(v) for v in json.loads(cell)]
    except (ValueError, TypeError):
        inner = re.split(r"[\s,;]+", cell.strip().removeprefix("[").removesuffix("]").strip())
        return [math.nan if text == "null" else float(text) for text in inner if text]


def table(path: Path, run: Run) -> list[Row]:
    """A row per row, by the names of the columns."""
    csv.field_size_limit(sys.maxsize)
    content = path.read_bytes().removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape")
    first = next(line for line in content.split("\n") if line.strip())
    header = first.replace("\r", " ")  # which csv refuses where another separator leaves it unquoted
    separator = max(",;\t", key=lambda one: len(set(known(next(csv.reader([header], delimiter=one), []))) - {None}))
    rows = [
        row
        for row in csv.reader(io.StringIO(content, newline="\n"), delimiter=separator)
        if row and any(map(str.strip, row))
    ]
    names = known(rows[0])
    found = []
    for cells in rows[1:]:
        row: Row = {"id": len(found)}
        for name, cell in sorted(zip(names, cells, strict=True), key=lambda pair: pair[0] or ""):
            if name == "delays":
                row[name] = listed("" if cell == r"\N" else cell)
            elif name == "source_length" and cell.strip() not in ("", r"\N"):
                row[name] = float(cell)
            elif name in ("id", *TEXTS):
                row[name] = unescaped(cell)
        row["id"] = len(found) if row["id"] is None else row["id"]
        found.append(row)
    return found


def known(names: list[str]) -> list[str | None]:
    """Our names of columns: the column's own name, or the first of its aliases in their order, at its first use."""
    plain = [re.sub(r"[\s-]+", "_", name.strip().lower()) for name in names]
    taken: list[str | None] = [None] * len(names)
    for ours in ("id", "delays", "source_length", *TEXTS):
        calls = (ours, *(alias for alias, column in ALIASES.items() if column == ours))
        name = next((name for name in calls if name in plain), None)
        if name is not None:
            taken[plain.index(name)] = ours
    return taken


def unescaped(cell: str) -> str | None:
    """The text in a cell; None for no text."""
    if cell == r"\N":
        return None
    return cell[1:] if re.fullmatch(r"\\\\+N", cell) else cell


def arrow(path: Path, run: Run) -> list[Row]:
    """A row per row of a table of Arrow."""
    import pyarrow as pa
    from pyarrow import parquet

    file = pa.BufferReader(path.read_bytes().removeprefix(b"\xef\xbb\xbf"))
    if run.origin.format == "parquet":
        table = parquet.ParquetFile(file)
        every = table.schema_arrow.names
        # a column that is not read may be damaged
        found = table.read(columns=[name for name, ours in zip(every, known(every), strict=True) if ours])
    else:
        found = pa.ipc.open_file(file).read_all()
    names = known(found.schema.names)
    rows: list[Row] = [{"id": place} for place in range(found.num_rows)]
    for name, column in zip(names, found.columns, strict=True):
        for row, value in zip(rows, column.to_pylist() if name else (), strict=bool(name)):
            if name in TEXTS or (name == "id" and value is not None):
                row[name] = value
            elif name == "delays":
                row[name] = [float(time) for time in value or ()]
            elif name == "source_length" and value is not None:
                row[name] = float(value)
    return rows


PARSERS: dict[str, Callable[[Path, Run], list[Row]]] = {
    "simuleval": json_lines,
    "omnisteval": json_lines,
    "s2s": s2s,
    "trajectory": trajectory,
    "jsonl": json_lines,
    "simulstream": simulstream,
    "stream": stream,
    "rw": rw,
    "sltev": sltev,
    "fairseq": fairseq,
    "text": text,
    "csv": table,
    "tsv": table,
    "parquet": arrow,
    "arrow": arrow,
}
"""By the name of the format."""
