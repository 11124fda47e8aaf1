# SPDX-License-Identifier: Apache-2.0
"""Runs as lines of JSON: SimulEval's `instances.log`, and our own format, which holds everything."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, TextIO

from lagging.formats.facts import guess_unit
from lagging.run import LISTS, NUMBERS, TEXTS, Run

__all__ = ["write_jsonl", "write_omnisteval", "write_simuleval"]


def _plain(values: Iterable[float]) -> list[int | float | None]:
    """Whole numbers without a decimal point, and null for NaN."""
    return [None if math.isnan(v) else int(v) if v == int(v) and str(v) != "-0.0" else v for v in values]


def write_simuleval(run: Run, file: TextIO) -> list[str]:
    """Write an `instances.log` with the keys of SimulEval 1.1, in its order. Returns what it could not hold."""
    as_numbers = _plain if run.unit == "token" else list
    elapsed = run.elapsed
    no_time = [0] if run.unit == "token" else []  # as SimulEval writes it; zeros beside milliseconds would be a lie
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
            record = _speech(record, run.durations[row].tolist())
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = {"id", "delays", "source_length", "elapsed", "prediction", "reference", "source", "durations"}
    lost = [c for c in run.to_dict() if c not in kept]
    lost += [f"seg ({run.seg})"] if run.seg != "none" else []
    lost += ["prediction (this Run has no text)"] if run.prediction is None else []
    first = next((text for text in run.source if text), None) if run.source is not None else None
    guessed = guess_unit(first, run.source_length.tolist())[0]
    return [*lost, *([f"unit (read it with --unit {run.unit})"] if guessed != run.unit else [])]


def _speech(record: dict[str, Any], durations: list[float]) -> dict[str, Any]:
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
    for row in range(len(run)):
        record: dict[str, Any] = {"id": run.id.item(row)}
        record["delays"] = _plain(run.delays[row].tolist())
        record["source_length"] = _plain([float(run.source_length[row])])[0]
        for column in TEXTS:
            values = getattr(run, column)
            if values is not None and values[row] is not None:
                record[column] = values[row]
        for column in LISTS:
            ragged = getattr(run, column)
            if ragged is not None:
                record[column] = _plain(ragged[row].tolist())
        for column in NUMBERS:
            numbers = getattr(run, column)
            if numbers is not None and not math.isnan(numbers[row]):
                record[column] = _plain([float(numbers[row])])[0]
        record["unit"] = run.unit
        record["level"] = run.level
        if run.seg != "none":
            record["seg"] = run.seg
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return []


def write_omnisteval(run: Run, file: TextIO) -> list[str]:
    """Write segments of a stream as OmniSTEval writes them, `docid` counted from 0. Returns what it could not hold."""
    names = [None] * len(run) if run.document is None else run.document.tolist()
    documents = {name: number for number, name in enumerate(dict.fromkeys(names))}
    within: dict[int, int] = {}
    for row, name in enumerate(names):
        document = documents[name]
        within[document] = within.get(document, -1) + 1
        record: dict[str, Any] = {
            "index": run.id.item(row),
            "docid": document,
            "segid": within[document],
            "prediction": None if run.prediction is None else run.prediction[row],
            "reference": None if run.reference is None else run.reference[row],
            "source_length": float(run.source_length[row]),
            "emission_cu": run.delays[row].tolist(),
        }
        if run.elapsed is not None:
            record["emission_ca"] = run.elapsed[row].tolist()
        if run.recording_end is not None and not math.isnan(run.recording_end[row]):
            record["time_to_recording_end"] = float(run.recording_end[row])
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = {"id", "delays", "source_length", "elapsed", "prediction", "reference", "recording_end", "document"}
    lost = [column for column in run.to_dict() if column not in kept]
    lost += ["document (numbered instead)"] if [str(n) for n in documents.values()] != list(documents) else []
    lost += ["prediction (this Run has no text)"] if run.prediction is None else []
    lost += [] if run.unit == "ms" else ["unit (read it with --unit token)"]
    return lost + ([] if run.seg == "given" else [f"seg ({run.seg}, read back as given)"])
