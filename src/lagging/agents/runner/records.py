# SPDX-License-Identifier: Apache-2.0
"""A sentence as a line of `instances.log`: SimulEval's keys in SimulEval's order, then ours.

What is ours: `unit` and `level`, so that nothing has to be guessed; of each step `arrivals` (how much source had been
read) and `compute` (how many ms the agent took), and for each token the step that wrote it (`steps`), which make the
queue clock exact; of speech, and of text in real time, `starts` and `finishes` of each step, in ms since the source
began; `erased` and `revisions`, where something was taken back; `failed`, where the agent did what it must not.

Of speech, `elapsed` is what SimulEval means by it: what was read, and all computing so far. In real time it is when the
token was there.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from lagging.agents.failures import FAILURES, Failure
from lagging.agents.sentence import Sentence
from lagging.data.files import write_whole
from lagging.data.run import Run
from lagging.errors import Note, merge_notes, optional
from lagging.formats.jsonl_writer import speech_record

__all__ = ["TIMES", "encode", "read_lines", "record", "write_wav"]

TIMES = ("elapsed", "compute", "starts", "finishes")
"""What is measured, and so differs from one run to the next."""


def record(
    sentence: Sentence,
    *,
    shown: Any,
    reference: str | None,
    failure: Failure | None = None,
    wav: Path | None = None,
    times: bool = True,
) -> dict[str, Any]:
    """The line of a sentence that is over.

    Args:
        sentence: what happened.
        shown: how the log names the source.
        reference: the reference translation.
        failure: why it failed, if it did; what was written by then does not count.
        wav: where its output speech was written.
        times: whether to tell what was measured.
    """
    source, speech_in, speech_out = sentence.source, sentence.source.sample_rate > 0, sentence.traits.target == "speech"
    text, steps = ("", []) if failure is not None else _written(sentence, speech_out)
    delays = [sentence.arrivals[step] for step in steps]
    compute = [(ns + 50) // 100 / 10_000 for ns in sentence.compute]  # ms, to a tenth of a µs
    starts: list[float] = []
    finishes: list[float] = []
    elapsed: list[float] = []
    if sentence.wall is not None:
        starts, finishes = ([round(ms, 4) for ms in some] for some in (sentence.starts, sentence.finishes))
        elapsed = finishes
    elif speech_in:
        starts, finishes = _queued(sentence.arrivals, compute)
        elapsed = [round(read + spent, 4) for read, spent in zip(sentence.arrivals, accumulate(compute), strict=True)]
    line: dict[str, Any] = {
        "index": sentence.place,
        "prediction": os.fsencode(wav).decode(errors="backslashreplace") if speech_out and wav is not None else text,
        "delays": delays,
        "elapsed": [elapsed[step] for step in steps] if speech_in and times else [0] * len(steps) * (not speech_in),
        "prediction_length": len(steps),
        "reference": reference,
        "source": shown,
        "source_length": source.length,
    }
    if speech_out:
        durations = [1000 * len(p) / sentence.rates[0] for p in sentence.state.target] if failure is None else []
        line = speech_record(line | {"source": shown[0]}, durations)
    line |= {"unit": "ms" if speech_in else "token", "level": "token" if speech_out else sentence.level}
    over = failure is None
    line |= {
        "arrivals": sentence.arrivals if over else [],
        "compute": compute if over and times else [],
        "steps": steps,
    }
    if (speech_in or sentence.wall is not None) and times and over:
        line |= {"starts": starts, "finishes": finishes}
    if not times:
        del line["compute"]
    if not speech_out:
        line |= {"erased": sentence.hypothesis.erased, "revisions": sentence.hypothesis.revisions} if over else {}
    if failure is not None:
        line |= {
            "failed": str(failure),
            "kind": failure.kind,
            **({"traceback": failure.trace} if failure.trace else {}),
        }
    return line


def _written(sentence: Sentence, speech_out: bool) -> tuple[str, list[int]]:
    return ("", sentence.hypothesis.owners) if speech_out else sentence.hypothesis.finish()


def _queued(arrivals: list[float], compute: list[float]) -> tuple[list[float], list[float]]:
    """When each step would begin and end: not before its source is there, nor before the step before has ended."""
    starts, finishes, end = [], [], 0.0
    for arrival, took in zip(arrivals, compute, strict=True):
        starts.append(start := round(max(arrival, end), 4))
        finishes.append(end := round(start + took, 4))
    return starts, finishes


def encode(line: dict[str, Any]) -> bytes:
    """A line of JSON, with its end."""
    return msgspec.json.encode(line) + b"\n"


def read_lines(lines: Sequence[bytes], name: str = "") -> Run:
    """A Run from the lines of a log."""
    rows = [msgspec.json.decode(line) for line in lines]
    lists = ["durations", "arrivals", "compute", "steps"] + (["elapsed"] if rows[0]["unit"] == "ms" else [])
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in lists if key in rows[0]}
    texts: dict[str, Any] = {key: [row[key] for row in rows] for key in ("prediction", "reference")}
    if "durations" in columns:
        del texts["prediction"], columns["elapsed"]
    counts: dict[str, Any] = {key: [row.get(key, math.nan) for row in rows] for key in ("erased", "revisions")}
    made = Run.from_delays(
        [row["delays"] for row in rows],
        source_length=[row["source_length"] for row in rows],
        source=[row["source"] if isinstance(row["source"], str) else row["source"][0] for row in rows],
        id=[row["index"] for row in rows],
        unit=rows[0]["unit"],
        level=rows[0]["level"],
        name=name,
        **columns,
        **texts,
        **({} if "durations" in columns else counts),
    )
    failed = [row for row in rows if "failed" in row]
    said = [failed_note(row["index"], row["kind"]) for row in failed]
    return replace(made, notes=merge_notes([*said, *made.notes]))


def failed_note(index: int, kind: str) -> Note:
    """That a sentence failed, for whoever reads a score of it."""
    return Note("failed", f"{FAILURES[kind]}; nothing of it counts", 1, (index,))


def write_wav(path: Path, sentence: Sentence | None, intervals: list[list[float]]) -> None:
    """What was spoken, as one sound file: it begins with the first piece, and has silence between pieces."""
    soundfile = optional("soundfile", "speech")
    pieces, rate = (
        ([], 16_000) if sentence is None or not sentence.rates else (sentence.state.target, sentence.rates[0])
    )
    starts = [round((start - intervals[0][0]) * rate / 1000) for start, _ in intervals]
    samples = np.zeros(max((at + len(piece) for at, piece in zip(starts, pieces, strict=True)), default=0), np.float32)
    for at, piece in zip(starts, pieces, strict=True):
        samples[at : at + len(piece)] = piece
    with write_whole(path, binary=True) as file:
        soundfile.write(file, samples, rate, format="WAV")  # on the disk before the line that says that it is there
