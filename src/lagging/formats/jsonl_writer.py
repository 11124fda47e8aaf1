# SPDX-License-Identifier: Apache-2.0
"""Runs as lines of JSON: SimulEval's `instances.log`, and our own format, which holds everything."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from lagging.data.ragged import Ragged
from lagging.data.run import Run
from lagging.data.tokens import text_level
from lagging.data.units import is_too_fast
from lagging.errors import UsageError
from lagging.formats.omissions import elapsed_without_steps, lost
from lagging.formats.schema import SAMPLE, configured_type, find_level, guess_unit, spoken_length
from lagging.formats.source import Source

__all__ = ["contradict_config", "speech_record", "write_jsonl", "write_omnisteval", "write_s2s", "write_simuleval"]


def _plain(values: Iterable[float]) -> list[int | float | None]:
    """Whole numbers without a decimal point, and null for NaN."""
    return [None if math.isnan(v) else int(v) if v.is_integer() and str(v) != "-0.0" else v for v in values]


def write_simuleval(run: Run, file: TextIO) -> list[str]:
    """Write an `instances.log` with the keys of SimulEval 1.1, in its order. Returns what it could not hold."""
    as_numbers = _plain if run.unit == "token" else list
    elapsed, gone = elapsed_without_steps(run)
    no_time = [0] if run.unit == "token" else []  # as SimulEval writes it; zeros beside milliseconds would be wrong
    for row in range(len(run)):
        delays = run.delays[row].tolist()
        record = {
            "index": run.id.item(row),
            "prediction": None if run.prediction is None else run.prediction[row],
            "delays": as_numbers(delays),
            "elapsed": no_time * len(delays) if elapsed is None else elapsed[row].tolist(),
            "prediction_length": len(delays),
            "reference": None if run.reference is None else run.reference[row],
            "source": None if run.source is None else run.source[row],
            "source_length": as_numbers([float(run.source_length[row])])[0],
        }
        if run.durations is not None:
            record = speech_record(record, run.durations[row].tolist())
        if run.unit == "none":
            record = {key: value for key, value in record.items() if key not in ("delays", "elapsed", "source_length")}
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = {"id", "delays", "source_length", "elapsed", "prediction", "reference", "source", "durations"}
    first = next((text for text in run.source if text), None) if run.source is not None else None
    level = _guessed_level(run) if run.durations is None else "token"
    unit = "none" if run.unit == "none" else guess_unit(first, run.source_length.tolist())[0]
    spoken = spoken_length(run.delays.lengths[:SAMPLE].tolist(), run.source_length[:SAMPLE].tolist())
    if unit == "ms" and is_too_fast(*spoken, level or run.level):
        unit = ""  # a reader would take the times for seconds
    return lost(run, kept, *gone, *_no_text(run), unit=unit, level=level, seg="none")


def contradict_config(run: Run, path: Path) -> list[str]:
    """A loss if the unit of a SimulEval log will be taken from a config.yaml beside it that says otherwise."""
    if run.unit == "none":
        return []
    try:
        configured = configured_type(Source(str(path), path))
    except UsageError:
        return [f"unit (config.yaml beside it is not readable; read it with --unit {run.unit})"]
    if configured is None or configured == ("speech" if run.unit == "ms" else "text"):
        return []
    return [f"unit (config.yaml beside it says {configured}; read it with --unit {run.unit})"]


def _no_text(run: Run) -> list[str]:
    return ["prediction (this Run has no text)"] if run.prediction is None else []


def _guessed_level(run: Run) -> str:
    """The level that a reader will detect, if none is declared."""
    written = np.flatnonzero(run.delays.lengths)[:SAMPLE]
    if run.prediction is None:
        return "token"
    if run.unit == "none":
        return text_level(run.prediction[:SAMPLE])
    return find_level(run.prediction[written].tolist(), run.delays.lengths[written].tolist())


def speech_record(record: dict[str, Any], durations: list[float]) -> dict[str, Any]:
    """What SimulEval writes for output speech. A piece is played when it is there and the piece before has ended."""
    delays = record["delays"]
    intervals: list[list[float]] = []
    for delay, duration in zip(delays, durations, strict=True):
        intervals.append([max(delay, sum(intervals[-1])) if intervals else delay, duration])
    more = {
        "durations": durations,
        "prediction_offset": delays[0] if delays else record["source_length"],
        "intervals": intervals,
        "prediction_length": (sum(intervals[-1]) - delays[0]) / 1000 if delays else 0.0,
    }
    order = ("index", "prediction", "delays", "durations", "prediction_offset", "elapsed", "intervals")
    return {key: (record | more)[key] for key in (*order, "prediction_length", "source_length", "reference", "source")}


def write_jsonl(run: Run, file: TextIO) -> list[str]:
    """Write JSON lines with every column the Run has. Nothing is lost."""
    settings = {"unit": run.unit, "level": run.level, **({} if run.seg == "none" else {"seg": run.seg})}
    names = {} if run.seg == "none" else {"id": "index"}  # indices of segments, as in OmniSTEval
    for row in range(len(run)):
        entries = {names.get(column, column): _entry(getattr(run, column), row) for column in run.columns}
        kept = ("prediction",) if run.unit == "none" else ()  # without delays, only null shows that nothing was written
        record = {column: entry for column, entry in entries.items() if entry is not None or column in kept} | settings
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return []


def _entry(values: Any, row: int) -> Any:
    """One entry of a column; None if there is none."""
    if isinstance(values, Ragged):
        return _plain(values[row].tolist())
    value = values.item(row)
    return _plain([value])[0] if isinstance(value, float) else value


def write_omnisteval(run: Run, file: TextIO) -> list[str]:
    """Write segments of a stream as OmniSTEval writes them, `docid` counted from 0. Returns what it could not hold."""
    names = [None] * len(run) if run.document is None else run.document.tolist()
    documents = {name: number for number, name in enumerate(dict.fromkeys(names))}
    within: dict[int, int] = {}
    elapsed, gone = elapsed_without_steps(run)
    for row, name in enumerate(names):
        document = documents[name]
        within[document] = within.get(document, -1) + 1
        record: dict[str, Any] = {
            "index": run.id.item(row),
            "docid": document,
            "segid": within[document],
            "prediction": None if run.prediction is None else run.prediction[row],
            "reference": None if run.reference is None else run.reference[row],
        }
        if run.unit != "none":
            record |= {"source_length": float(run.source_length[row]), "emission_cu": run.delays[row].tolist()}
        if elapsed is not None:
            record["emission_ca"] = elapsed[row].tolist()
        if run.recording_end is not None and not math.isnan(run.recording_end[row]):
            record["time_to_recording_end"] = float(run.recording_end[row])
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = {"id", "delays", "source_length", "elapsed", "prediction", "reference", "recording_end", "document"}
    instead = "numbered instead" if run.document is not None else "none, read back as 0"
    numbered = [f"document ({instead})"] if [str(n) for n in documents.values()] != list(documents) else []
    unit = "none" if run.unit == "none" else "ms"
    return lost(run, kept, *numbered, *gone, *_no_text(run), unit=unit, level=_guessed_level(run), seg="given")


def write_s2s(run: Run, file: TextIO) -> list[str]:
    """Write segments of output speech as Speech-to-Speech-Latency does, as an array. Returns what it could not hold."""
    elapsed, gone = elapsed_without_steps(run)
    records: list[dict[str, Any]] = []
    for row in range(len(run)):
        end = math.nan if run.recording_end is None else float(run.recording_end[row])
        text = None if run.prediction is None else run.prediction[row]
        # what the reader makes of a segment that nothing was aligned with
        unaligned = text == "" and not run.source_length[row] and not len(run.delays[row])
        record: dict[str, Any] = {
            "index": run.id.item(row),
            "doc_id": None if run.document is None else run.document[row],
            "seg_id": row + 1,
            "source": "" if run.source is None else run.source[row],
            "reference": None if run.reference is None else run.reference[row],
            "source_length": None if unaligned else float(run.source_length[row]),
            "delays": run.delays[row].tolist(),
            **({} if elapsed is None else {"elapsed": elapsed[row].tolist()}),
            **({} if math.isnan(end) else {"recording_end": end}),
            "prediction": text,
        }
        records.append(record)
    file.write(json.dumps(records, ensure_ascii=False, indent=2) + "\n")
    kept = {"id", "delays", "source_length", "elapsed", "prediction", "reference", "recording_end", "document"}
    kept |= {"source"} if run.source is not None and all(run.source) else set()
    return lost(run, kept, *gone, *_no_text(run), unit="ms", level=_guessed_level(run), seg="given")
