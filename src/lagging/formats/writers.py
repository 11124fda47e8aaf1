# SPDX-License-Identifier: Apache-2.0
"""Runs as lines of JSON: SimulEval's `instances.log`, and our own format, which holds everything."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any, TextIO

from lagging.formats.facts import guess_unit
from lagging.run import Run

__all__ = ["write_jsonl", "write_simuleval"]


def _plain(values: Iterable[float]) -> list[int | float]:
    """Whole numbers without a decimal point."""
    return [int(v) if v == int(v) else v for v in values]


def write_simuleval(run: Run, file: TextIO) -> list[str]:
    """Write an `instances.log` with the keys of SimulEval 1.1, in its order. Returns what it could not hold."""
    as_numbers = _plain if run.unit == "token" else list
    elapsed = run.elapsed
    no_time = [0] if run.unit == "token" else []  # as SimulEval writes it; zeros beside milliseconds would be a lie
    for row in range(len(run)):
        delays = run.delays[row].tolist()
        name = run.id[row]
        text = None if run.prediction is None else run.prediction[row]
        record = {
            "index": name if isinstance(name, str) else int(name),
            "prediction": text,
            "delays": as_numbers(delays),
            "elapsed": no_time * len(delays) if elapsed is None else elapsed[row].tolist(),
            "prediction_length": len(delays),
            "reference": None if run.reference is None else run.reference[row],
            "source": None if run.source is None else run.source[row],
            "source_length": as_numbers([float(run.source_length[row])])[0],
        }
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    lost = [c for c in ("document", "durations", "reference_length") if getattr(run, c) is not None]
    lost += ["prediction (this Run has no text)"] if run.prediction is None else []
    first = next((text for text in run.source if text), None) if run.source is not None else None
    guessed = guess_unit(first, run.source_length.tolist())[0]
    return [*lost, *([f"unit (read it with --unit {run.unit})"] if guessed != run.unit else [])]


def write_jsonl(run: Run, file: TextIO) -> list[str]:
    """Write JSON lines with every column the Run has. Nothing is lost."""
    for row in range(len(run)):
        record: dict[str, Any] = {"id": run.id[row] if isinstance(run.id[row], str) else int(run.id[row])}
        record["delays"] = _plain(run.delays[row].tolist())
        record["source_length"] = _plain([float(run.source_length[row])])[0]
        for column in ("prediction", "reference", "source", "document"):
            values = getattr(run, column)
            if values is not None and values[row] is not None:
                record[column] = values[row]
        for column in ("elapsed", "durations"):
            ragged = getattr(run, column)
            if ragged is not None:
                record[column] = ragged[row].tolist()
        if run.reference_length is not None and not math.isnan(run.reference_length[row]):
            record["reference_length"] = _plain([float(run.reference_length[row])])[0]
        record["unit"] = run.unit
        record["level"] = run.level
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    return []
