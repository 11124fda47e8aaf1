# SPDX-License-Identifier: Apache-2.0
"""A Run as simulstream's `metrics.jsonl`: of each stream a line that names its recording, and a line per step."""

from __future__ import annotations

import json
import re
from typing import Any, TextIO

import numpy as np

from lagging.data.endings import LONE
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import Run
from lagging.data.tokens import EOS, noun
from lagging.errors import DataError, Fault, counted
from lagging.formats.omissions import lost, require_timed_text
from lagging.formats.simulstream import DIGITS, file_name, to_ms
from lagging.formats.subwords import MARK, usual_level

__all__ = ["write"]

HELD = {"id", "delays", "source_length", "prediction"}
TIMES = {"delays", "source_length", "elapsed", "arrivals", "compute"}
WORD = re.compile(r"(?<!\s)\s*+\S++")
CHARACTER = re.compile(rf"(?<!\s)(\s*+)({EOS}\Z|\S)")


def write(run: Run, file: TextIO) -> list[str]:
    """Write the lines of each segment as those of a stream. Returns what the format could not hold.

    The steps are those of the log that the Run was read from; where there are none, a step per delay, whose computing
    time is what the first of its tokens has elapsed − delay.

    Raises:
        UsageError: the delays are no times, or the Run has no text whose tokens they are.
        DataError: a delay is negative.
    """
    _check(run)
    logged, wavs, compared = _has_steps(run), _recordings(run), _Lost(run)
    vocabulary: set[str] = set()
    unknown = np.zeros(len(run), dtype=bool) if run.erased is None else np.isnan(run.erased)
    for row in range(len(run)):
        name = run.id.item(row)
        pieces = _pieces(_text(run, row), run.level)
        if len(pieces) != len(run.delays[row]):
            detail = f"{counted(len(run.delays[row]), 'delay')}, {counted(len(pieces), noun(run.level))}"
            detail += LONE * bool(run.lone[row])
            raise DataError(Fault("token-count", detail, run.origin.path, segment=name))
        vocabulary.update(token for piece in pieces for token in piece)
        arrivals, compute, steps = _logged(run, row) if logged else _derived(run, row)
        compared.look(row, arrivals, compute, steps)
        new: list[list[str]] = [[] for _ in arrivals]
        for step, piece in zip(steps.tolist(), pieces, strict=True):
            new[step] += piece
        file.write(_line({"id": name, "metadata": {"wav_name": wavs[row]}}))
        for step, arrival in enumerate(arrivals.tolist()):
            computed = {} if compute is None else {"computation_time": _seconds(compute[step])}
            line = {"id": name, "total_audio_processed": _seconds(arrival), **computed, "generated_tokens": new[step]}
            file.write(_line(line if unknown[row] else {**line, "deleted_tokens": []}))
    return compared.list_losses(wavs, logged, vocabulary)


def _seconds(ms: float) -> float:
    return round(float(ms) / 1000, DIGITS + 3)


def _line(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False) + "\n"


def _check(run: Run) -> None:
    log = "a simulstream log has"
    require_timed_text(run, times=f"{log} times of audio", text=f"{log} the tokens themselves")
    early = np.flatnonzero(run.delays.values < 0)
    if len(early):
        (row, *_), (token, *_) = run.delays.owner(early)
        name = run.id.item(row)
        detail = f"{run.delays.values[early[0]]:g} ms"
        raise DataError(Fault("negative-delay", detail, run.origin.path, segment=name, token=int(token) + 1))


def _text(run: Run, row: int) -> str:
    return "" if run.prediction is None else (run.prediction[row] or "").strip()


def _pieces(text: str, level: str) -> list[list[str]]:
    """The tokens to write for each target token, with the white space before it."""
    text = text.replace(MARK, "_")
    if level == "char":
        return [[*space, character] for space, character in CHARACTER.findall(text)]
    return [[word.replace(" ", MARK)] for word in WORD.findall(f" {text}")]


def _recordings(run: Run) -> list[str]:
    """The name of the recording of each segment; the id of the segment is added if several share a document."""
    names = [None] * len(run) if run.document is None else run.document.tolist()
    known = [name for name in names if name is not None]
    ids = [str(name) for name in run.id.tolist()]
    mixed = [name_of_segment if name is None else str(name) for name, name_of_segment in zip(names, ids, strict=True)]
    return mixed if known and len(set(mixed)) == len(mixed) else ids


# ---- steps ----------------------------------------------------------------------------------------------------------

Steps = tuple[Floats, Floats | None, Ints]
"""Arrivals and computing times of the steps in ms, and the step of each target token."""


def _has_steps(run: Run) -> bool:
    """Whether the Run has steps that agree with its delays and source lengths."""
    if run.arrivals is None or run.steps is None:
        return False
    timed = run.arrivals.pick(run.steps) == run.delays
    return timed and np.array_equal(np.nan_to_num(run.arrivals.last()), run.source_length)


def _logged(run: Run, row: int) -> Steps:
    assert run.arrivals is not None
    assert run.steps is not None
    compute = None if run.compute is None else run.compute[row]
    return run.arrivals[row], compute, run.steps[row].astype(np.int64)


def _derived(run: Run, row: int) -> Steps:
    g, x = run.delays[row], run.source_length[row]
    begins = np.diff(g, prepend=-1.0) > 0
    arrivals, steps = g[begins], np.cumsum(begins) - 1
    compute = None if run.elapsed is None else np.maximum(run.elapsed[row][begins] - arrivals, 0.0)
    if not len(arrivals) or x > arrivals[-1]:  # the rest of the source
        arrivals = np.append(arrivals, x)
        compute = None if compute is None else np.append(compute, 0.0)
    return arrivals, compute, steps


class _Lost:
    """What the format cannot hold of a Run."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.cut_short = self.other_elapsed = False

    def look(self, row: int, arrivals: Floats, compute: Floats | None, steps: Ints) -> None:
        """Compare what is written of a segment with its values."""
        run = self.run
        self.cut_short |= bool(len(arrivals)) and bool(arrivals[-1] > run.source_length[row])
        if run.elapsed is not None:
            again = np.nan if compute is None else (arrivals + compute)[steps]
            self.other_elapsed |= not np.allclose(again, run.elapsed[row], rtol=0, atol=1e-6)

    def list_losses(self, wavs: list[str], logged: bool, vocabulary: set[str]) -> list[str]:
        """All losses, in words."""
        run, held = self.run, set(HELD)
        texts = [] if run.prediction is None else [text or "" for text in run.prediction]
        held |= {"document"} if run.document is not None and wavs == run.document.tolist() else set()
        held |= set() if self.other_elapsed else {"elapsed"}
        held |= {"arrivals", "compute", "steps"} if logged else set()
        held |= {"first_times"} if run.first_times == run.delays else set()
        held |= {c for c in ("erased", "revisions") if (n := getattr(run, c)) is not None and not np.nansum(n)}
        more = []
        if "document" in held and any(file_name(name) != name for name in wavs):
            more.append("document (read back without its directory)")
        if self.cut_short:
            more.append("source_length (read back as the last delay, where that is beyond it)")
        for column in (c for c in run.columns if c in held & TIMES):
            values = getattr(run, column)
            flat = values.values if isinstance(values, Ragged) else values
            if not np.array_equal(to_ms([_seconds(ms) for ms in flat]), flat):
                more.append(f"{column} (kept to the nanosecond)")
        if any(MARK in text for text in texts):
            more.append(f"prediction ({MARK} written as _)")
        if any(text != text.strip() for text in texts):
            more.append("prediction (white space at its ends)")
        if run.prediction is not None and any(text is None for text in run.prediction):
            more.append("prediction (null is read back as empty)")
        level = usual_level(texts, vocabulary) if vocabulary else None
        return lost(run, held, *more, level=level, seg="none")
