# SPDX-License-Identifier: Apache-2.0
"""SLTev's logs of re-translation: `P display start end text` for a text that will be replaced, `C …` for the last one.

One segment per line C, made of the lines P before it. The delay of a token is the time since which it and all before it
are final, counted from the beginning of the segment. An update cannot be shown before the one that it replaces: where
display times go back, they are raised to it, and a note counts them.

SLTev (Ansari et al. 2021, version 1.2.3) says nowhere what its times are measured in, and converts none. They are taken
as they are, for milliseconds; those of its own test set (elitr-testset) are hundredths of a second.

Beside `NAME.SOURCE.TARGET.slt` SLTev expects `NAME.SOURCE.OStt`, the timed transcript (`P start end text`, `C …`), and
`NAME.TARGET.OSt`, the reference, a line for each C of the transcript; in the ELITR test set the reference is called
`NAME.SOURCE.TTTARGET`, such as `talk.en.TTcs`, or, the first of several, `talk.en.TTcs1`. Where both are there, they
give the times that `SLTevDelay` compares (see `lagging.formats.sltev_pairs`). Each reference sentence belongs to the
segment that it shares most of its time with, or is nearest to.

Tokens are SLTev's (see `lagging.formats.moses`), unless another level is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from glob import escape
from itertools import islice, pairwise
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from lagging.data.checks import check, number, remark
from lagging.data.decimals import decimal
from lagging.data.ragged import Floats, Ragged
from lagging.data.run import Origin, Run, make_texts
from lagging.data.tokens import is_spm, noun, tokens
from lagging.errors import DataError, Fault, Note, counted
from lagging.formats.moses import moses
from lagging.formats.omissions import lost
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.sltev_pairs import SeenWords, Update, due, due_by_partials, first_seen
from lagging.formats.source import Source, first_line

__all__ = ["recognise", "scan", "write"]

PART = 1024
"""Segments per part."""

ROUNDING = 1e-7
"""In ms: what may be lost when a time is added to the offset of its segment."""

UNKNOWN = Note("time unit", "SLTev's files do not name theirs: taken for ms (those of elitr-testset are 10 ms each)")

Tokenize = Callable[[str], list[str]]


def recognise(head: bytes) -> bool:
    """Whether the first line that is not blank is P or C with three times."""
    return _parsed(first_line(head).decode("utf-8", "replace").strip(), 3) is not None


def _parsed(text: str, times: int) -> tuple[bool, list[float], str] | None:
    """Whether a line is final, its times, two in a transcript and three in a log, and its text; None if it is none."""
    kind, *parts = text.split(maxsplit=times + 1) or [""]
    numbers = [value for part in parts[:times] if (value := decimal(part)) is not None]
    if kind not in ("P", "C") or len(numbers) < times:
        return None
    return kind == "C", numbers, "".join(parts[times:])


def _tokenizer(level: str) -> Tokenize:
    """A function that splits a text into tokens; SLTev splits whole lines, so a text never stands at the beginning."""
    return (lambda text: moses(f"C 0 {text}")[2:]) if level == "token" else (lambda text: tokens(text, level))


# ---- lines to segments --------------------------------------------------------------------------------------------


def _texts(source: Source, report: ReadReport) -> Iterator[tuple[int, str]]:
    """The lines that are not blank, with their numbers."""
    blank = 0
    for batch in source.batches():
        for line, raw in enumerate(batch.lines, batch.first):
            try:
                text = raw.decode("utf-8").strip()
            except UnicodeDecodeError as error:
                detail = f"byte {error.start + 1} is 0x{raw[error.start]:02x}"
                report.faults.add(Fault("not-utf8", detail, source.path, line))
                continue
            blank += not text
            if text:
                yield line, text
    report.note_blank_lines(source, blank)


def _segments(source: Source, report: ReadReport, times: int, tokenize: Tokenize) -> Iterator[list[Update]]:
    """The updates of each segment, the final one last; faults and notes go to the report."""
    updates: list[Update] = []
    completed = 0
    for line, text in _texts(source, report):
        parsed = _parsed(text, times)
        if parsed is None or math.inf in map(abs, parsed[1]) or (times == 2 and not parsed[2]):
            shown = text if len(text) <= 40 else text[:39] + "…"
            report.faults.add(Fault("not-an-update", repr(shown), source.path, line))
            continue
        final, numbers, content = parsed
        display, start, end = [math.nan, *numbers][-3:]
        updates.append(Update(display, start, end, tokenize(content), content, line, final))
        if updates[-1].final:
            completed += 1
            yield updates
            updates = []
    if updates and (times == 2 or not completed):
        report.faults.add(Fault("never-completed", f"{len(updates)} updates", source.path, updates[0].line))
    elif updates:
        text = f"lines P at the end that no line C completes: left out, in {source.path} from line {updates[0].line} on"
        report.notes.append(Note("NEVER COMPLETED", text, len(updates), noun="update"))


@dataclass(frozen=True)
class _Segment:
    """A segment: its final update, its delays, and counts of what was revised."""

    final: Update
    delays: Floats
    first: Floats
    erased: int
    gone: int
    revisions: int
    back: int
    foreign: int
    words: Sequence[Any]


def common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many tokens two texts have in common before the first difference."""
    return next((k for k, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def _finalise(updates: list[Update]) -> _Segment:
    final = updates[-1]
    shown = np.array([update.shown for update in updates])
    since = np.maximum.accumulate(shown)
    agreed = np.array([common(update.words, final.words) for update in updates])
    agreed_to_the_end = np.minimum.accumulate(agreed[::-1])[::-1]  # tokens that no later update changes
    first = np.searchsorted(agreed_to_the_end, np.arange(len(final.words)), side="right")
    shown_first = np.zeros(len(final.words), dtype=np.int64)
    for place in reversed(range(len(updates))):
        for t, (one, other) in enumerate(zip(updates[place].words, final.words, strict=False)):
            if one == other:
                shown_first[t] = place
    erased = [old.words[common(old.words, new.words) :] for old, new in pairwise(updates)]
    gone = [set(old).difference(new.words) for old, new in zip(erased, updates[1:], strict=True)]
    return _Segment(
        final=final,
        delays=since[first] - final.start,
        first=since[shown_first] - final.start,
        erased=sum(map(len, erased)),
        gone=sum(word in words for old, words in zip(erased, gone, strict=True) for word in old),
        revisions=sum(map(bool, erased)),
        back=int((shown < since).sum()),
        foreign=sum(update.end < final.start or update.start > final.end for update in updates),
        words=first_seen(updates),
    )


# ---- what stands beside the log -----------------------------------------------------------------------------------


def _beside(source: Source) -> tuple[list[Path], str]:
    """The files of transcript and reference, or none; and a description of them."""
    if source.file is None:
        return [], "no transcript and no reference beside standard input"
    parts = source.file.name.removesuffix(".gz").split(".")
    if len(parts) < 4:
        return [], "not called NAME.SOURCE.TARGET.slt, so no NAME.SOURCE.OStt and no NAME.TARGET.OSt is looked for"
    stem, (spoken, written, _) = parts[:-3], parts[-3:]
    ends = ((written, "OSt"), (spoken, f"TT{written}"), (spoken, f"TT{written}1"))
    transcript, *references = (source.file.with_name(".".join([*stem, *end])) for end in ((spoken, "OStt"), *ends))
    files = [transcript, next((file for file in references if file.is_file()), references[0])]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        return [], f"{' and '.join(missing)} not found beside it"
    return files, f"source times from {files[0].name}, reference from {files[1].name}"


def _times(segments: Sequence[_Segment], files: Sequence[Path], level: str, report: ReadReport) -> dict[str, Any]:
    """The columns that compare the log with transcript and reference."""
    transcript, reference = (Source(str(file), file) for file in files)
    sentences = list(_segments(transcript, report, 2, _tokenizer(level)))
    cut = moses if level == "token" else _tokenizer(level)
    translations = [cut(text) for _, text in _texts(reference, report)]
    report.note_byte_order_mark(transcript)
    report.note_byte_order_mark(reference)
    if len(sentences) != len(translations):
        detail = f"{len(translations)} lines, but {len(sentences)} lines C in {transcript.path}"
        report.faults.add(Fault("reference-count", detail, reference.path))
        return {}
    name = files[1].name
    numbered = name.removesuffix("1") if ".TT" in name else name
    other_references = sorted(file.name for file in files[1].parent.glob(f"{escape(numbered)}[0-9]*"))
    other_references = [other for other in other_references if other != name]
    if other_references:
        names = ", ".join(other_references)
        text = f"{names} not read: SLTev takes, sentence by sentence, the reference with the least delay"
        report.notes.append(Note("several references", text))
    for sentence in sentences:
        if sentence[-1].end < sentence[0].start:
            detail = f"{number(sentence[0].start)} → {number(sentence[-1].end)}"
            report.faults.add(Fault("bad-source-length", detail, transcript.path, sentence[-1].line))
    seen = SeenWords(segment.words for segment in segments)
    starts = np.array([segment.final.start for segment in segments])
    ends = np.array([segment.final.end for segment in segments])
    rows: dict[str, list[list[float]]] = {c: [[] for _ in segments] for c in ("due", "due_partial", "shown")}
    lengths = np.full(len(segments), np.nan)
    for sentence, words in zip(sentences, translations, strict=True):
        start, end = sentence[-1].start, sentence[-1].end
        owner = int(np.argmax(np.minimum(ends, end) - np.maximum(starts, start)))
        shown = seen.between(start, end)
        rows["due"][owner] += due(sentence, words).tolist()
        rows["due_partial"][owner] += due_by_partials(sentence, words).tolist()
        rows["shown"][owner] += [shown.get(word, math.nan) for word in dict.fromkeys(words)]
        lengths[owner] = np.nansum([lengths[owner], len(words)])
    return {"reference_length": lengths, **{column: Ragged.from_rows(row) for column, row in rows.items()}}


# ---- segments to Runs ---------------------------------------------------------------------------------------------


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The segments of a log, in parts; in one part if it is compared with a transcript and a reference."""
    level = options.level or "token"
    files, surroundings = _beside(source)
    counted = "SLTev's tokens" if level == "token" else f"{noun(level)}s"
    times = "times as they are (SLTev names no unit)"
    described = f"SLTev log, re-translation, {times}, target counted in {counted}; {surroundings}"
    origin = Origin(source.path, "sltev", described, named=False)
    finished = map(_finalise, _segments(source, report, 3, _tokenizer(level)))
    place = report.placed
    while segments := list(finished if files else islice(finished, PART)):
        more = _times(segments, files, level, report) if files else {}
        run = _run(segments, place, source, origin, options, more)
        report.faults.add(*check(run))
        report.notes.extend([*([] if options.unit else [UNKNOWN]), *remark(run), *_remark(segments)])
        place += len(run)
        yield run


def _run(
    segments: Sequence[_Segment], place: int, source: Source, origin: Origin, options: ReadOptions, more: dict[str, Any]
) -> Run:
    finals = [segment.final for segment in segments]
    columns: dict[str, Any] = {
        "erased": np.array([float(segment.erased) for segment in segments]),
        "gone": np.array([float(segment.gone) for segment in segments]),
        "revisions": np.array([float(segment.revisions) for segment in segments]),
        "offset": np.array([final.start for final in finals]),
        "first_times": Ragged.from_rows([segment.first for segment in segments]),
        **more,
    }
    name = None if source.file is None else Path(source.file.name.removesuffix(".gz")).stem
    return Run(
        delays=Ragged.from_rows([segment.delays for segment in segments]),
        source_length=np.array([final.end - final.start for final in finals]),
        id=np.arange(place, place + len(segments)),
        prediction=make_texts([final.text for final in finals]),
        document=None if name is None else make_texts([name] * len(segments)),
        line=np.array([final.line for final in finals]),
        unit=options.unit or "ms",
        level=options.level or "token",
        seg="given",
        origin=origin,
        **columns,
    )


def _remark(segments: Sequence[_Segment]) -> Iterator[Note]:
    """Notes about these segments that only SLTev's logs need."""
    kinds = {
        "back": ("display time goes back", "shown, it says, before the update it replaces: taken to be shown with it"),
        "foreign": ("foreign update", "its source does not touch that of the line C it is counted with, as SLTev does"),
    }
    for what, (kind, text) in kinds.items():
        count = sum(getattr(segment, what) for segment in segments)
        if count:
            yield Note(kind, text, count, noun="update")


# ---- Runs to lines ------------------------------------------------------------------------------------------------


def write(run: Run, file: TextIO) -> list[str]:
    """Write a line P whenever tokens were added, and a line C with the last of them. Returns what it could not hold.

    Raises:
        DataError: a prediction whose tokens are not known, or none.
    """
    tokenize, late = _tokenizer(run.level), 0
    rounded = set[str]()
    for row in range(len(run)):
        text = None if run.prediction is None else run.prediction[row]
        g, words = run.delays[row], tokenize(text or "")
        if (text is None and len(g)) or len(words) != len(g):
            kind, detail = ("missing-prediction", "") if text is None else ("token-count", _counts(g, words, run.level))
            raise DataError(Fault(kind, detail, run.origin.path, segment=run.id.item(row)))
        start = 0.0 if run.offset is None or math.isnan(run.offset[row]) else float(run.offset[row])
        end = start + float(run.source_length[row])
        for column, times in (("delays", g), ("source_length", run.source_length[row])):
            rounded |= {column} if np.any(np.abs(start + times - start - times) > ROUNDING) else set()
        for k in np.flatnonzero(np.diff(g)) + 1:
            shown = start + float(g[k - 1])
            part = _joined(words[:k], run.level)
            late += tokenize(part) != words[:k]
            file.write(f"P {number(shown)} {number(start)} {number(max(start, min(shown, end)))} {part}\n")
        last = start + float(g[-1]) if len(g) else end
        file.write(f"C {number(last)} {number(start)} {number(end)} {' '.join((text or '').split())}".rstrip() + "\n")
    kept = {"delays", "source_length", "prediction"}
    kept |= {"id"} if (run.id == np.arange(len(run))).all() else set()
    kept |= {"offset"} if run.offset is None or not np.isnan(run.offset).any() else set()
    empty = {c for c in ("erased", "gone", "revisions") if not np.any(getattr(run, c))}
    kept |= {"first_times"} if run.first_times == run.delays else set()
    losses = [f"{late} delays (of tokens that are others at the end of a text)"] if late else []
    losses += [f"{column} (rounded, since offsets are large)" for column in sorted(rounded)]
    texts = [] if run.prediction is None else run.prediction.tolist()
    losses += ["prediction (none, read back as empty)"] if None in texts else []
    changed = sum(text != " ".join(text.split()) for text in texts if text)
    losses += [f"prediction (the white space of {counted(changed, 'text')})"] if changed else []
    return lost(run, kept | empty, *losses, unit="ms", level="token", seg="given")


def _joined(words: list[str], level: str) -> str:
    """A text that has these tokens."""
    if is_spm(level):
        return "".join(words).replace("▁", " ").strip()
    return ("" if level == "char" else " ").join(words)


def _counts(g: Floats, words: list[str], level: str) -> str:
    return f"{len(g)} delays, {len(words)} {'SLTev tokens' if level == 'token' else noun(level) + 's'}"
