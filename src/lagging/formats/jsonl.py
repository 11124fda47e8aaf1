# SPDX-License-Identifier: Apache-2.0
"""One JSON object per line: SimulEval's `instances.log` (1.0, 1.1.0, 1.1.4; text, speech, speech out) and our own.

A batch of lines is decoded at once by msgspec. Only where that fails is each line looked at by itself, to say what is
wrong with it, and where.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, get_type_hints

import msgspec
import numpy as np
from msgspec import UNSET

from lagging.errors import Fault, Note, UsageError
from lagging.formats.line import Line, explain, name_of
from lagging.formats.options import Options
from lagging.formats.source import Batch, Source
from lagging.ragged import Floats, Ragged
from lagging.run import Origin, Run, make_ids, make_texts
from lagging.text import count_tokens, detect_level
from lagging.validation import check, remark, repair

__all__ = ["recognise", "scan"]

SEGMENTS_PER_PART = 1 << 14
AUDIO = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".webm", ".mp4")


MORE = ("elapsed", "source", "durations", "document")
ALWAYS = ("index", "id", "delays", "source_length", "prediction", "reference", "reference_length")


def _decoder(columns: frozenset[str] | None) -> msgspec.json.Decoder[Any]:
    """A decoder that skips the columns nobody asked for."""
    if columns is None:
        return msgspec.json.Decoder(Line)
    wanted = [(name, kind, UNSET) for name, kind in get_type_hints(Line).items() if name in ALWAYS or name in columns]
    return msgspec.json.Decoder(msgspec.defstruct("Line", wanted, gc=False))


def recognise(head: bytes) -> str | None:
    """`simuleval` or `jsonl` if the first line that is not blank looks like it, else None."""
    first = next((line for line in head.splitlines() if line.strip()), b"")
    if not first.lstrip().startswith((b"{", b"[")):
        return None
    if b'"prediction_length"' in first or (b'"index"' in first and b'"prediction"' in first):
        return "simuleval"
    return "jsonl"


# ---- reading --------------------------------------------------------------------------------------------------


@dataclass
class _Columns:
    """What was decoded since the last part, as lists."""

    line: list[int] = field(default_factory=list)
    rows: dict[str, list[Any]] = field(default_factory=dict)
    delays: list[Floats] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    elapsed: list[list[float]] = field(default_factory=list)


def scan(source: Source, options: Options) -> Iterator[Run]:
    """The segments of a log, in parts; faults go into `options.faults`."""
    decoder = _decoder(options.columns)
    held = _Columns()
    reader: _Reader | None = None
    for batch in source.batches():
        rows, lines = _decode(decoder, batch, source, options)
        if reader is None and rows:
            reader = _Reader.settle(source, options, rows, batch)
        if reader is None:
            continue
        reader.hold(held, rows, lines)
        if len(held.line) >= SEGMENTS_PER_PART:
            yield reader.part(held)
            held = _Columns()
    if source.bom:
        options.notes.append(Note("byte order mark", f"at the start of {source.path}: ignored"))
    if reader is not None and held.line:
        yield reader.part(held)


def _decode(
    decoder: msgspec.json.Decoder[Any], batch: Batch, source: Source, options: Options
) -> tuple[list[Any], list[int]]:
    """Rows, and the line of each; a batch that cannot be decoded at once is looked at line by line."""
    try:
        rows = decoder.decode_lines(batch.text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        rows = []
    if len(rows) == batch.count:
        return rows, list(range(batch.first, batch.first + len(rows)))
    rows, lines, blank = [], [], 0
    for number, line in enumerate(batch.lines, batch.first):
        if not line.strip():
            blank += 1
            continue
        row, faults = explain(line)
        where = {"path": source.path, "line": number}
        name = None if row is None else name_of(row)
        options.faults.add(*(Fault(k, d, token=t, segment=name, **where) for k, d, t in faults))  # type: ignore[arg-type]
        if row is not None and not faults:
            rows.append(row)
            lines.append(number)
    if blank:
        options.notes.append(Note("blank line", f"{blank} in {source.path}: skipped"))
    return rows, lines


@dataclass
class _Reader:
    """What was settled on the first batch, and how rows become a Run under it."""

    source: Source
    options: Options
    origin: Origin
    unit: str
    level: str
    has_id: bool
    has_text: bool
    more: tuple[str, ...]
    seen: int = 0

    @classmethod
    def settle(cls, source: Source, options: Options, rows: list[Any], batch: Batch) -> _Reader:
        """Find out, from the first rows, what the log counts."""
        flavour = options.format or recognise(batch.text) or "jsonl"
        head = batch.lines[0]
        speech_out = b'"durations"' in head or b'"intervals"' in head
        texts = [row.prediction if row.prediction is not UNSET else None for row in rows]
        lengths = [len(row.delays) if row.delays else 0 for row in rows]
        unit, how = _unit(source, options, flavour, rows, batch)
        level = options.level or ("token" if speech_out else detect_level(texts, lengths))
        title = {"simuleval": "SimulEval log", "jsonl": "JSON lines"}[flavour]
        kinds = f"{'speech' if unit == 'ms' else 'text'} → {'speech' if speech_out else 'text'}"
        described = f"{title}, {kinds}, delays in {'ms' if unit == 'ms' else 'source tokens'} ({how})"
        described += f", target counted in {level}s"
        has_text = not speech_out and any(text for text in texts)
        if has_text and level == "token" and options.level is None:
            spare = [n - len(text.split()) for text, n in zip(texts, lengths, strict=True) if text]
            hint = ": one more than words, is </s> still among them?" if set(spare) == {1} else ""
            text = f"delays match neither words nor characters{hint}; the log's own tokens are counted"
            options.notes.append(Note("tokens", text))
        has_id = any(name_of(row) is not None for row in rows)
        more = [c for c in MORE if options.columns is None or c in options.columns]
        more += ["reference_length"] if level == "token" or options.columns is None else []
        origin = Origin(source.path, flavour, described)
        return cls(source, options, origin, unit, level, has_id, has_text, tuple(more))

    def hold(self, held: _Columns, rows: list[Any], lines: list[int]) -> None:
        """Take rows over into columns; what is wrong with a row by itself is found in `_refuse`."""
        names = [row.index if row.index is not UNSET else row.id for row in rows]
        delays = [row.delays for row in rows]
        lengths_of_source = [row.source_length for row in rows]
        texts = [row.prediction for row in rows] if self.has_text else []
        mixed = UNSET in names if self.has_id else any(name is not UNSET for name in names)
        lacking = any(UNSET in column or None in column for column in (delays, lengths_of_source, texts))
        if mixed or lacking:
            kept = [r for r in range(len(rows)) if not self._refuse(rows[r], lines[r])]
            if len(kept) < len(rows):
                rows, lines, names = ([column[r] for r in kept] for column in (rows, lines, names))
                lengths_of_source = [row.source_length for row in rows]
            delays = [row.delays or [] for row in rows]
        if not self.has_id:
            names = list(range(self.seen, self.seen + len(rows)))
        self.seen += len(rows)
        lengths = list(map(len, delays))
        held.delays.append(np.fromiter(chain.from_iterable(delays), np.float64, sum(lengths)))
        held.lengths += lengths
        held.line += lines
        columns = held.rows
        for key, values in (("id", names), ("source_length", lengths_of_source)):
            columns.setdefault(key, []).extend(values)
        columns.setdefault("prediction", []).extend([row.prediction for row in rows])
        columns.setdefault("reference", []).extend([row.reference for row in rows])
        for key in self.more:
            columns.setdefault(key, []).extend([getattr(row, key) for row in rows])

    def _refuse(self, row: Any, line: int) -> bool:
        """Whether a row lacks what a segment must have; the faults are recorded."""
        empty = row.prediction is None or (isinstance(row.prediction, str) and not row.prediction.strip())
        wrong = []
        if self.has_id != (name_of(row) is not None):
            wrong.append("missing-id")
        if (row.delays is UNSET or row.delays is None) and not empty:
            wrong.append("missing-delays")
        if self.has_text and row.prediction in (UNSET, None) and row.delays:
            wrong.append("missing-prediction")
        if row.source_length is UNSET or row.source_length is None:
            wrong.append("missing-source-length")
        name = name_of(row)
        self.options.faults.add(*(Fault(k, "", self.source.path, line, name) for k in wrong))
        return bool(wrong)

    def part(self, held: _Columns) -> Run:
        """A Run of what is held, repaired as asked, checked, and with notes."""
        columns, options = held.rows, self.options
        g = Ragged.from_lengths(np.concatenate(held.delays), held.lengths)
        predictions = columns["prediction"]
        if UNSET in predictions:
            predictions = [None if text is UNSET else text for text in predictions]
        run = Run(
            delays=g,
            source_length=np.array(columns["source_length"], dtype=np.float64),
            id=make_ids(columns["id"]),
            elapsed=_ragged(columns.get("elapsed")),
            reference_length=_numbers(columns.get("reference_length", ())),
            prediction=make_texts(predictions) if any(p is not None for p in predictions) else None,
            reference=self._references(columns["reference"], columns["id"]),
            source=_texts(columns.get("source")),
            document=_texts(columns.get("document")),
            durations=_ragged(columns.get("durations")),
            line=np.array(held.line, dtype=np.int64),
            unit=self.unit,
            level=self.level,
            origin=self.origin,
        )
        run = repair(run, options.repair)
        texts = run.prediction if self.has_text else None
        counts = None if texts is None else count_tokens(texts.tolist(), self.level, run.delays.lengths)
        options.faults.add(*check(run, token_counts=counts))
        options.notes.extend(remark(run))
        return run

    def _references(self, texts: list[Any], names: list[Any]) -> Any:
        """References; where only some lines lack the key, SimulEval reads an empty one, and so do we, with a note."""
        if UNSET not in texts:
            return make_texts(texts) if any(text is not None for text in texts) else None
        missing = [name for name, text in zip(names, texts, strict=True) if text is UNSET]
        if len(missing) == len(texts):
            return None
        text = "no `reference` key, where other lines have one: read as an empty reference"
        self.options.notes.append(Note("missing reference", text, len(missing), tuple(missing[:5])))
        return make_texts(["" if text is UNSET else text for text in texts])


def _ragged(rows: list[Any] | None) -> Ragged | None:
    """A column of lists; None if no row has anything in it."""
    if rows is None or not any(row for row in rows if row is not UNSET):
        return None
    return Ragged.from_rows([row if row and row is not UNSET else [] for row in rows])


def _numbers(values: Iterable[Any]) -> Floats | None:
    numbers = np.array([math.nan if v is UNSET or v is None else v for v in values], dtype=np.float64)
    return None if np.isnan(numbers).all() else numbers


def _texts(values: list[Any] | None) -> Any:
    if values is None or all(value is UNSET or value is None for value in values):
        return None
    # SimulEval describes a sound file by a list whose first entry is its path
    flat = [v[0] if isinstance(v, list) and v else v for v in values]
    return make_texts([None if v is UNSET or v is None or v == [] else str(v) for v in flat])


def _unit(source: Source, options: Options, flavour: str, rows: list[Any], batch: Batch) -> tuple[str, str]:
    """The unit of the delays, and how it was found out."""
    if options.unit is not None:
        return options.unit, "as given"
    first = explain(batch.lines[0])[0] or rows[0]
    if isinstance(first.unit, str):
        if first.unit not in ("token", "ms"):
            raise UsageError(f"{source.path}: unit must be 'token' or 'ms', but is {first.unit!r}")
        return first.unit, "says the log"
    configured = _configured_type(source) if flavour == "simuleval" else None
    if configured is not None:
        return ("token" if configured == "text" else "ms"), "says config.yaml"
    if isinstance(first.source, list) or (isinstance(first.source, str) and first.source.lower().endswith(AUDIO)):
        return "ms", "the source is sound"
    sizes = [r.source_length for r in rows if isinstance(r.source_length, float) and math.isfinite(r.source_length)]
    if (
        isinstance(first.source, str)
        and sizes
        and first.source_length
        in (
            len(first.source.split()),
            len("".join(first.source.split())),
            len(first.source.strip()),
        )
    ):
        return "token", "source_length is the number of source tokens"
    whole = all(size == int(size) and size <= 400 for size in sizes)
    guess = "token" if whole else "ms"
    return guess, f"guessed from the numbers; --unit {'ms' if whole else 'token'} if not"


def _configured_type(source: Source) -> str | None:
    """`source_type` of the config.yaml that SimulEval writes beside its log (its `target_type` cannot be trusted)."""
    if source.file is None:
        return None
    config = source.file.with_name("config.yaml")
    if not config.is_file():
        return None
    import yaml

    try:
        found = yaml.load(config.read_text("utf-8"), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, UnicodeDecodeError):
        raise UsageError(f"{config} is not readable YAML; mend or remove it, or give --unit") from None
    kind = found.get("source_type") if isinstance(found, dict) else None
    return kind if kind in ("text", "speech") else None
