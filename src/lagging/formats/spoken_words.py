# SPDX-License-Identifier: Apache-2.0
"""A Run with the words of its source: word times of each recording, and a word alignment with what was written.

A recording belongs to the row whose id, document or sound file has its name. A single recording in a file that names
none belongs to the only row of a log. A line of a word alignment, `0-0 1-2`, belongs to the row that `pair_lines`
finds for it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Run
from lagging.data.spoken import ALIGNED, Spoken
from lagging.data.tokens import is_sound, tokens
from lagging.errors import DataError, Fault, Faults, Note, UsageError, counted, merge_notes
from lagging.formats.line import shown
from lagging.formats.line_pairs import pair_lines
from lagging.formats.report import ReadReport
from lagging.formats.source import Source
from lagging.formats.word_times import Word, WordTimes, digest, read_word_times, stem

__all__ = ["check_alignment", "with_word_times"]

Segments = Sequence[Sequence[tuple[float, float, str]] | None]
NAMED = 10
"""How many recordings a message names."""


def with_word_times(
    run: Run,
    times: str | Path | Segments,
    *,
    alignment: str | Path | Sequence[str] | None = None,
    aligned_with: str = "hypothesis",
) -> Run:
    """A Run with the words of its source and the times at which they were spoken, for WordLag and its relatives.

    Args:
        run: a Run with times in ms, a row per recording.
        times: a file with word times (CTM, TextGrid, `start<TAB>end<TAB>word`, Whisper's JSON, SLTev's OStt), a folder
            of them, or, for each segment, a list of (start, end, word); all but SLTev's in seconds.
        alignment: pairs of a source word and a target token, counted from 0, as in `0-0 1-2`: a file with a line for
            each row, or these lines. Without it, words are matched by their text, as in speech recognition.
        aligned_with: what the alignment is of, beside the source: "hypothesis", or "reference", whose words are then
            matched with the hypothesis by their text.

    Raises:
        DataError: the times decrease or lie outside the recording, no recording has the name of a row, or an index of
            the alignment is out of range: all faults at once.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1000, 1500]], source_length=[2000], prediction=["good day"], unit="ms")
        >>> run = with_word_times(run, [[(0.1, 0.5, "good"), (0.5, 0.9, "day")]])
        >>> lagging.score(run, ["WordLag"])["WordLag"].value
        550.0
    """
    report = ReadReport()
    if isinstance(times, str | Path):
        file = read_word_times(times, report)
        rows, notes = _pair(run, file, report) if not report.faults else ([], [])
    else:
        if len(times) != len(run):
            raise UsageError(f"word times of {counted(len(times), 'segment')} for a Run of {len(run)}")
        file = WordTimes(digest=digest(json.dumps(times, default=list).encode()))
        ms = [None if s is None else [Word(_ms(a), _ms(b), w, "") for a, b, w in s] for s in times]
        rows, notes = ms, []
    if report.faults:
        raise DataError(report.faults)
    spoken = Spoken.make([None if r is None else [(w.start, w.end, w.text) for w in r] for r in rows], file.digest)
    for row, place, kind, detail in spoken.wrong_times(_lengths(run)):
        word = (rows[row] or ())[place]
        report.faults.add(Fault(kind, detail, word.path or None, word.line, run.id.item(row)))
    notes += _doubts(run, spoken)
    run = replace(run, spoken=spoken)
    if alignment is not None:
        run, more = _align(run, alignment, aligned_with, report.faults)
        notes += more
    if report.faults:
        raise DataError(report.faults)
    return replace(run, notes=merge_notes([*run.notes, *report.notes, *notes]))


def _lengths(run: Run) -> Floats:
    """How long the recordings are; NaN for a stream that does not say it, since its last time may be earlier."""
    known = run.origin.format != "stream" or "x" in dict(run.given)
    return run.source_length if known else np.full(len(run), np.nan)


def _doubts(run: Run, spoken: Spoken) -> list[Note]:
    """A note on rows of which most source words begin after all was written."""
    late = []
    for row in range(len(run)):
        start, delays = spoken.start[row], run.delays[row]
        if len(delays) and np.count_nonzero(start > delays[-1]) * 2 > len(start):
            late.append(run.id.item(row))
    if not late:
        return []
    text = "most words begin after everything was written: are their times in ms, or those of another recording?"
    return [Note("WORD TIMES DO NOT FIT", text, len(late), tuple(late[:5]))]


def _ms(seconds: float) -> float:
    return round(float(seconds) * 1000, 6)


# ---- which recording belongs to which row ----------------------------------------------------------------------------


def _pair(run: Run, times: WordTimes, report: ReadReport) -> tuple[list[list[Word] | None], list[Note]]:
    """The words of each row, and what a reader of the scores must know of that."""
    if len(run) == 1 == len(times.recordings):
        (recording, words), *_ = times.recordings.items()
        if not times.named:
            return [words], []
        if not run.origin.named and (run.origin.format == "stream" or not _labels(run, 0)):
            known = stem(recording) in map(stem, _labels(run, 0))
            text = f"the only recording of {times.path} is taken for that of the log, which names none"
            return [words], [] if known else [Note("word times", f"{shown(recording)}: {text}")]
    by_name = times.recordings
    by_stem = {stem(name): name for name in times.recordings}
    used: dict[str, int] = {}
    rows: list[list[Word] | None] = []
    for row in range(len(run)):
        labels = [str(run.id.item(row)), *_labels(run, row)]
        name = next((n for label in labels for n in (label, by_stem.get(stem(label), "")) if n in by_name), None)
        if name is not None and name in used:
            first = run.id.item(used[name])
            report.faults.add(Fault("recording-twice", f"{shown(name)}, as segment {first}", segment=run.id.item(row)))
        used.setdefault(name or "", row)
        rows.append(None if name is None else by_name[name])
    used.pop("", None)
    if not used:
        names, rows_named = (
            list(times.recordings),
            [_labels(run, k)[:1] or [str(run.id.item(k))] for k in range(len(run))],
        )
        ours = _list([name for names in rows_named for name in names])
        report.faults.add(Fault("no-recording", f"{_list(names)} in it, but {ours} in the log", times.path))
    notes = []
    if missing := [run.id.item(row) for row, words in enumerate(rows) if words is None]:
        notes.append(Note("no word times", f"in {times.path}", len(missing), tuple(missing[:5])))
    if left := [name for name in times.recordings if name not in used]:
        notes.append(
            Note(
                "word times left aside", f"no row of the log is called so, in {times.path}", len(left), tuple(left[:5])
            )
        )
        notes[-1] = replace(notes[-1], noun="recording")
    return rows, notes


def _labels(run: Run, row: int) -> list[str]:
    """What a row says of its recording: its document, and its sound file."""
    document = None if run.document is None else run.document[row]
    source = None if run.source is None else run.source[row]
    return [str(label) for label in (document, source if is_sound(source) else None) if label]


def _list(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(map(shown, dict.fromkeys(names[:NAMED]))) + more if names else "no recording"


# ---- word alignments -------------------------------------------------------------------------------------------------


def _align(run: Run, alignment: str | Path | Sequence[str], target: str, faults: Faults) -> tuple[Run, list[Note]]:
    """The Run with the pairs of an alignment; indices that are out of range are faults."""
    assert run.spoken is not None
    if target not in ALIGNED:
        raise UsageError(f"a word alignment is of the {' or the '.join(ALIGNED)}, and not of {target!r}")
    if isinstance(alignment, str | Path):
        where: str | None = str(alignment)
        if not Path(alignment).is_file():
            raise UsageError(f"no such file: {alignment}")
        raw = Source(str(alignment), Path(alignment)).whole()
        lines = raw.decode("utf-8", "replace").removesuffix("\n").split("\n") if raw else []
    else:
        where, lines = None, list(alignment)
        raw = "\n".join(lines).encode()
    places, notes = np.zeros(1, dtype=np.int64), list[Note]()
    try:
        if not len(run) == 1 == len(lines):  # else there is nothing to choose
            places, notes = pair_lines(run, len(lines), where or "the alignment")
    except DataError as error:
        faults.add(*error.faults)
        return run, []
    sources, targets = [], []
    for row, place in enumerate(places.tolist()):
        pairs = []
        for text in lines[place].split():
            numbers = text.split("-")
            if len(numbers) == 2 and all(n.isascii() and n.isdecimal() and len(n) < 10 for n in numbers):
                pairs.append((int(numbers[0]), int(numbers[1])))
            else:
                faults.add(Fault("not-an-alignment", shown(text), where, place + 1, run.id.item(row)))
        sources.append([a for a, _ in pairs])
        targets.append([b for _, b in pairs])
    spoken = replace(
        run.spoken,
        source=Ragged.from_rows(sources),
        target=Ragged.from_rows(targets),
        alignment=f"{target}-{digest(raw)}",
    )
    run = replace(run, spoken=spoken)
    faults.add(*check_alignment(run, where, places.tolist()))
    return run, notes


def check_alignment(run: Run, path: str | None = None, places: Sequence[int] | None = None) -> list[Fault]:
    """The pairs of an alignment whose index is out of range; those with the words of references that are not there yet
    are not checked.
    """
    spoken = run.spoken
    if spoken is None or spoken.source is None or spoken.target is None:
        return []
    counts: list[int | None] = run.delays.lengths.tolist()
    if spoken.alignment.startswith("reference"):
        texts: list[Any] = [None] * len(run) if run.reference is None else run.reference.tolist()
        counts = [None if text is None else len(tokens(text, run.level)) for text in texts]
    faults = []
    for row in range(len(run)):
        if not spoken.known[row]:
            continue
        words = len(spoken.words[row])
        for a, b in zip(spoken.source[row].astype(int).tolist(), spoken.target[row].astype(int).tolist(), strict=True):
            count = counts[row]
            wrong = []
            if a >= words:
                wrong.append(f"source word {a} of {words}")
            if count is not None and b >= count:
                wrong.append(f"target token {b} of {count}")
            line = None if places is None else places[row] + 1
            faults += [Fault("alignment-range", f"{a}-{b}: {text}", path, line, run.id.item(row)) for text in wrong]
    return faults
