# SPDX-License-Identifier: Apache-2.0
"""A sentence as a line of `instances.log`: SimulEval's keys in SimulEval's order, then others.

The others are: `unit` and `level` of the delays; for each step `arrivals` (how much source had been read) and `compute`
(how many ms the agent took), and for each token the step that wrote it (`steps`), which make the queue clock exact; for
speech, and for text in real time, `starts` and `finishes` of each step, in ms since the source began; `erased` and
`revisions` of text, and `first_times` where it was revised; `failed`, `kind` and `traceback` of a failure.

For speech, `elapsed` is what SimulEval means by it: what was read, plus all computing so far. In real time it is when
the token was written.
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
from lagging.metrics.kernels import finish_times

__all__ = ["TIMES", "encode", "read_lines", "record", "write_wav"]

TIMES = ("elapsed", "compute", "starts", "finishes")
"""Keys of measured times, which differ from run to run."""


def record(
    sentence: Sentence,
    *,
    source_entry: Any,
    reference: str | None,
    failure: Failure | None = None,
    wav: Path | None = None,
    times: bool = True,
) -> dict[str, Any]:
    """The log line of a finished sentence.

    Args:
        sentence: the sentence.
        source_entry: the source as the log has it.
        reference: the reference translation.
        failure: why it failed, if it did; what was written before does not count.
        wav: path of its output speech.
        times: whether to include measured times.
    """
    source, speech_in, speech_out = sentence.source, sentence.source.sample_rate > 0, sentence.traits.target == "speech"
    text, steps = ("", []) if failure is not None else _written(sentence, speech_out)
    delays = [sentence.arrivals[step] for step in steps]
    compute = [(ns + 50) // 100 / 10_000 for ns in sentence.compute]  # ms, to a tenth of a µs
    starts: list[float] = []
    finishes: list[float] = []
    elapsed: list[float] = []
    if sentence.real_time is not None:
        starts, finishes = ([round(ms, 4) for ms in times_ms] for times_ms in (sentence.starts, sentence.finishes))
        elapsed = finishes
    elif speech_in:
        # a step begins when its source has arrived and the previous step has ended
        finishes = [round(ms, 4) for ms in finish_times(sentence.arrivals, compute)]
        starts = [round(max(pair), 4) for pair in zip(sentence.arrivals, [0.0, *finishes], strict=False)]
        elapsed = [round(read + spent, 4) for read, spent in zip(sentence.arrivals, accumulate(compute), strict=True)]
    line: dict[str, Any] = {
        "index": sentence.index,
        "prediction": os.fsencode(wav).decode(errors="backslashreplace") if speech_out and wav is not None else text,
        "delays": delays,
        "elapsed": [elapsed[step] for step in steps] if speech_in and times else [0] * len(steps) * (not speech_in),
        "prediction_length": len(steps),
        "reference": reference,
        "source": source_entry,
        "source_length": source.length,
    }
    if speech_out:
        durations = [1000 * len(p) / sentence.rates[0] for p in sentence.state.target] if failure is None else []
        line = speech_record(line | {"source": source_entry[0]}, durations)
    line |= {"unit": "ms" if speech_in else "token", "level": "token" if speech_out else sentence.level}
    succeeded = failure is None
    line |= {
        "arrivals": sentence.arrivals if succeeded else [],
        "compute": compute if succeeded and times else [],
        "steps": steps,
    }
    if (speech_in or sentence.real_time is not None) and times and succeeded:
        line |= {"starts": starts, "finishes": finishes}
    if not times:
        del line["compute"]
    if not speech_out:
        line |= {"erased": sentence.hypothesis.erased, "revisions": sentence.hypothesis.revisions} if succeeded else {}
    if not speech_out and succeeded and sentence.hypothesis.revisions:
        line |= {"first_times": [sentence.arrivals[step] for step in sentence.hypothesis.first_steps()]}
    if failure is not None:
        line |= {
            "failed": str(failure),
            "kind": failure.kind,
            **({"traceback": failure.trace} if failure.trace else {}),
        }
    return line


def _written(sentence: Sentence, speech_out: bool) -> tuple[str, list[int]]:
    return ("", sentence.hypothesis.owners) if speech_out else sentence.hypothesis.finish()


def encode(line: dict[str, Any]) -> bytes:
    """A log line as JSON, with its line end."""
    return msgspec.json.encode(line) + b"\n"


def read_lines(lines: Sequence[bytes], name: str = "") -> Run:
    """A Run from the lines of a log."""
    rows = [msgspec.json.decode(line) for line in lines]
    lists = ["durations", "arrivals", "compute", "steps"] + (["elapsed"] if rows[0]["unit"] == "ms" else [])
    columns: dict[str, Any] = {key: [row[key] for row in rows] for key in lists if key in rows[0]}
    texts: dict[str, Any] = {key: [row[key] for row in rows] for key in ("prediction", "reference")}
    if "durations" in columns:
        del texts["prediction"], columns["elapsed"]
    if any("first_times" in row for row in rows):
        columns["first_times"] = [row.get("first_times", row["delays"]) for row in rows]
    counts: dict[str, Any] = {key: [row.get(key, math.nan) for row in rows] for key in ("erased", "revisions")}
    run = Run.from_delays(
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
    notes = [failed_note(row["index"], row["kind"]) for row in failed]
    return replace(run, notes=merge_notes([*notes, *run.notes]))


def failed_note(index: int, kind: str) -> Note:
    """The note on a failed sentence."""
    return Note("failed", f"{FAILURES[kind]}; nothing of it counts", 1, (index,))


def write_wav(path: Path, sentence: Sentence | None, intervals: list[list[float]]) -> None:
    """Write the output speech to a sound file: it begins with the first piece, with silence between pieces."""
    soundfile = optional("soundfile", "speech")
    pieces, rate = (
        ([], 16_000) if sentence is None or not sentence.rates else (sentence.state.target, sentence.rates[0])
    )
    starts = [round((start - intervals[0][0]) * rate / 1000) for start, _ in intervals]
    samples = np.zeros(max((at + len(piece) for at, piece in zip(starts, pieces, strict=True)), default=0), np.float32)
    for at, piece in zip(starts, pieces, strict=True):
        samples[at : at + len(piece)] = piece
    with write_whole(path, binary=True) as file:
        soundfile.write(file, samples, rate, format="WAV")  # written before the log line that names it
