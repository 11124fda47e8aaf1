# SPDX-License-Identifier: Apache-2.0
"""resegment(run, segmentation) → Run: a stream per recording in, a segment per reference out. No token is lost."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.checks import about
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.run import TIMES, Run, Texts, make_ids, make_texts
from lagging.data.scripts import is_unspaced
from lagging.data.strip import renoted
from lagging.data.tokens import count_tokens, is_spm, noun, spans, tokens
from lagging.errors import SHOWN, DataError, Fault, MetricError, Note, UsageError, did_you_mean
from lagging.formats.simulstream import DIGITS
from lagging.longform.aligners import ALIGNERS
from lagging.longform.recordings import Pair, check_units, match, streams
from lagging.longform.segmentation import Segmentation
from lagging.longform.stream import Stream
from lagging.metrics.clocks import clock, steps

__all__ = ["Cut", "cut", "resegment"]

DEFAULT = "timed"

RELATED = {"word": 0.15, "char": 0.4}
"""Of 32 talks from English to German, every hypothesis has at least 0.26 of its words in common with its own reference,
in order, and at most 0.08 with another; at least 0.48 of its characters, and at most 0.32. A character of a script
without spaces is like a word: excerpts of a Chinese and a Japanese talk have 0.29 and 0.42 of them in common with their
own reference, and at most 0.06 with another; two references at most 0.11."""


@dataclass(frozen=True, eq=False)
class Cut:
    """A stream that was cut, and how.

    Attributes:
        run: the segments.
        moves: of each token that is not where a path with the fewest edits would have put it: its recording, its place
            there (from 0), the token, when it was written, the segment by the fewest edits, and the segment.
    """

    run: Run
    moves: list[tuple[str, int, str, float, int, int]]


def resegment(
    run: Run,
    segmentation: Segmentation,
    *,
    aligner: str | None = None,
    clocks: Iterable[str] | None = None,
    subset: bool = False,
) -> Run:
    """Cut the stream of each recording into the segments of a reference.

    Args:
        run: a row per recording, with its text; or segments that were cut before, with their `offset`.
        segmentation: the reference segments (`lagging.longform.read_segmentation`).
        aligner: "timed" (default; "soft" where there are no times), "soft", "mwer" or "omnisteval".
        clocks: the clocks on which the segments keep the times of their tokens, beside their delays and elapsed times:
            "queue", "omnisteval", "fbk", "fbk1"; if not given, "queue" where the log allows it.
        subset: whether recordings that the segmentation does not have are left aside, with a note.

    Returns:
        A Run with a row per segment, in the order of the segmentation; delays count from the beginning of the segment,
        and are negative where a token was written before it. Nothing of the text is changed or lost.

    Raises:
        DataError: recordings that do not match, times in different units, nothing to compare.
        MetricError: a clock was asked for that the log does not allow.

    Example:
        >>> import lagging
        >>> from lagging.longform import Segmentation
        >>> log = lagging.Run.from_delays([[900, 1900, 3000, 3100]], source_length=[3000], unit="ms",
        ...                               prediction=["Guten Tag! Ich heiße"], document=["talk.wav"])
        >>> two = Segmentation.from_lists(["talk.wav"] * 2, [0, 1500], [1500, 1500], ["Guten Tag!", "Ich heiße Eva."])
        >>> segments = resegment(log, two)
        >>> segments.prediction.tolist(), segments.delays.tolist()
        (['Guten Tag!', 'Ich heiße'], [[900.0, 1900.0], [1500.0, 1600.0]])
    """
    return cut(run, segmentation, aligner=aligner, clocks=clocks, subset=subset).run


def cut(
    run: Run,
    segmentation: Segmentation,
    *,
    aligner: str | None = None,
    clocks: Iterable[str] | None = None,
    subset: bool = False,
) -> Cut:
    """`resegment`, with a record of the tokens that are elsewhere than the fewest edits would put them."""
    whole = streams(run)
    _check(whole, segmentation)
    notes: list[Note] = []
    pairs = match(whole, segmentation, subset=subset, notes=notes)
    whole = _with_lengths(whole, segmentation, pairs, notes)
    notes += check_units(whole, segmentation, pairs)
    timed = segmentation.unit != "none" and whole.unit != "none"
    name = _aligner(aligner, timed)
    first, count = np.zeros((2, len(segmentation)), dtype=np.int64)
    texts: list[str] = [""] * len(segmentation)
    moves: list[tuple[str, int, str, float, int, int]] = []
    unrelated = []
    for recording, row, segments in pairs:
        text, begin = whole.prediction[row] or "", int(whole.delays.offsets[row])  # type: ignore[index]
        units, starts, stops = spans(text, whole.level)
        stream = _stream(whole, segmentation, row, segments, units, starts, text, timed)
        boundaries = _at_words(ALIGNERS[name](stream), stream.glued)
        first[segments], count[segments] = begin + boundaries[:-1], np.diff(boundaries)
        for segment, a, b in zip(segments.tolist(), boundaries[:-1].tolist(), boundaries[1:].tolist(), strict=True):
            texts[segment] = text[starts[a] : stops[b - 1]] if b > a else ""
        times = whole.delays[row]
        moves += _moved(recording, segments, units, times, boundaries, stream.edits.boundaries)
        if len(units) and not _is_related(stream, text, segmentation.reference[segments], whole.level):  # type: ignore[index]
            unrelated.append(recording)
    shares = _shares(whole, segmentation, pairs)
    cut_run = replace(_segments(whole, segmentation, first, count, make_texts(texts), clocks, name), **shares)
    if is_spm(whole.level):
        cut_run = _counted_apart(cut_run, notes)
    segment_notes = [
        note for note in segmentation.notes if note.kind != "empty reference"
    ]  # the segments have a note of their own
    notes += [*segment_notes, *_text_notes(whole, moves, unrelated), *_early_note(cut_run)]
    return Cut(renoted(whole, cut_run, *notes), moves)


def _with_lengths(run: Run, segmentation: Segmentation, pairs: Sequence[Pair], notes: list[Note]) -> Run:
    """The streams, with the end of the last segment for the length of a recording that the log does not have."""
    ends, lengths = segmentation.offset + segmentation.duration, run.source_length.copy()
    named = [(name, row) for name, row, _ in pairs if lengths[row] == 0]
    if "none" in (run.unit, segmentation.unit) or not named:
        return run
    for _, row, segments in pairs:
        lengths[row] = lengths[row] or ends[segments].max()
    text = "no `source_length` in the log: the end of the last segment stands in"
    names = tuple(name for name, _ in named[:SHOWN])
    notes.append(Note("source length", text, len(named), names, "recording"))
    return renoted(run, replace(run, source_length=lengths))


def _check(run: Run, segmentation: Segmentation) -> None:
    """Refuse what cannot be compared."""
    where = run.origin.path
    if segmentation.reference is None:
        raise DataError(Fault("no-references", path=segmentation.path))
    if run.prediction is None or run.speech_out or (not any(run.prediction) and len(run.delays.values)):
        raise DataError(Fault("no-text", path=where))
    if run.level == "token" and len(run.delays.values):
        raise DataError(Fault("no-words", path=where))


def _aligner(requested: str | None, timed: bool) -> str:
    if requested is None:
        return DEFAULT if timed else "soft"
    if requested not in ALIGNERS:
        raise UsageError(f"no aligner is called {requested!r}.{did_you_mean(requested, ALIGNERS)}")
    if requested == "timed" and not timed:
        raise UsageError("the aligner timed needs times of the words and of the segments\n  fix: --aligner soft.")
    return requested


# ---- text -----------------------------------------------------------------------------------------------------------


JOINED = re.compile(r"[^\S \t\n\v\f\r]")
"""White space that is not ASCII."""


def _stream(
    run: Run,
    segmentation: Segmentation,
    row: int,
    segments: Ints,
    units: list[str],
    starts: list[int],
    text: str,
    timed: bool,
) -> Stream:
    assert segmentation.reference is not None
    references = [segmentation.reference[segment] or "" for segment in segments.tolist()]
    joined = run.level == "word" and any(map(JOINED.search, (text, *references)))
    return Stream(
        units,
        [tokens(reference, run.level) for reference in references],
        times=run.delays[row] if timed else None,
        offset=segmentation.offset[segments] if timed else None,
        unit=run.unit if timed else "ms",
        letters=run.level == "char",
        texts=(text, references) if joined else None,
        glued=_glued(text, starts) if is_spm(run.level) else None,
    )


def _glued(text: str, starts: list[int]) -> npt.NDArray[np.bool_]:
    """Which pieces continue a word: those after a letter, where words have spaces between, or where another begins."""
    spaced = not is_unspaced(text)
    pairs = zip([-1, *starts], starts, strict=False)
    return np.array([a == b or (spaced and b > 0 and not text[b - 1].isspace()) for a, b in pairs], dtype=bool)


def _at_words(boundaries: Ints, glued: npt.NDArray[np.bool_] | None) -> Ints:
    """Boundaries, none of them within a word: its first piece decides for all of it."""
    if glued is None:
        return boundaries
    begins = np.append(np.flatnonzero(~glued), len(glued))
    return begins[np.searchsorted(begins, boundaries)]


# ---- segments -------------------------------------------------------------------------------------------------------


def _segments(
    whole: Run,
    segmentation: Segmentation,
    first: Ints,
    count: Ints,
    texts: Texts | None,
    clocks: Iterable[str] | None,
    aligner: str,
) -> Run:
    """The columns of the segments; times count from the beginning of each."""
    flat = np.repeat(first - (np.cumsum(count) - count), count) + np.arange(count.sum())
    known = segmentation.unit != "none"
    begin = np.repeat(segmentation.offset, count)  # not a number where it is not known

    def moved(times: Ragged) -> Ragged:
        return Ragged.from_lengths(np.round(times.values[flat] - begin, DIGITS), count)

    begins = np.zeros(len(whole.delays.values))  # of the segment of each token, in the order of the streams
    begins[flat] = begin
    timed = _clocks(whole, clocks, Ragged(begins, whole.delays.offsets)) if known else ()
    clocked: dict[str, Any] = {column: moved(times) for column, times in timed}
    end = np.full(len(segmentation), np.nan)
    for segments in segmentation.recordings.values():
        end[segments] = (segmentation.offset + segmentation.duration)[segments].max()
    return Run(
        delays=moved(whole.delays),
        source_length=segmentation.duration,
        id=make_ids(segmentation.id.tolist()),
        **clocked,
        prediction=texts,
        reference=segmentation.reference,
        source=segmentation.source,
        document=segmentation.document,
        offset=segmentation.offset if known else None,
        recording_end=np.round(end - segmentation.offset, DIGITS) if known else None,
        unit=whole.unit if known else "none",
        level=whole.level,
        seg=aligner,
        name=whole.name,
        origin=replace(
            whole.origin, description=f"{whole.origin.description}, cut into segments by the aligner {aligner}"
        ),
        repaired=whole.repaired,
        stripped=whole.stripped,
        given=whole.given,
    )


def _counted_apart(run: Run, notes: list[Note]) -> Run:
    """Count the log's own tokens where the text of a segment, split on its own, gives other pieces than the stream."""
    apart = count_tokens([] if run.prediction is None else run.prediction, run.level, run.delays.lengths)
    if np.array_equal(apart, run.delays.lengths):
        return run
    text = (
        "split on its own, the text of a segment gives other pieces than inside the stream: "
        f"its delays count the log's own tokens ({run.level})"
    )
    notes += about(run, "tokens", text, apart != run.delays.lengths)
    assert run.reference is not None
    length = count_tokens(run.reference, run.level, run.delays.lengths).astype(np.float64)
    return replace(run, level="token", seg=f"{run.seg}-{run.level}", reference_length=length)


def _clocks(whole: Run, names: Iterable[str] | None, begins: Ragged) -> Iterator[tuple[str, Ragged]]:
    """The times of the stream on the clocks that are named; without names queue and first, if the log has them."""
    if whole.unit == "ms" and whole.elapsed is not None:
        yield "elapsed", whole.elapsed
    kept = ("queue",) if whole.first_times is None else ("queue", "first")
    for name in kept if names is None else names:
        if name not in TIMES:
            raise UsageError(f"segments cannot keep the clock {name!r}.{did_you_mean(name, TIMES)}")
        try:
            yield TIMES[name], clock(whole, name, begins)
        except MetricError as error:
            if names is not None:
                raise MetricError(f"clock={name}: {error}") from None


def _shares(whole: Run, segmentation: Segmentation, pairs: Sequence[Pair]) -> dict[str, Any]:
    """The part of each segment in the computing time and the length of its recording; nothing if these are not known.

    By the lengths of the segments, so that the parts of all of them add up to what the recording took.
    """
    if whole.compute_share is not None and whole.recording_share is not None:  # cut before
        totals = {"compute_share": whole.compute_share, "recording_share": whole.recording_share}
    elif "none" in (whole.unit, segmentation.unit):
        return {}
    else:
        try:
            computed = steps(whole)[1].by_row(lambda spent: spent.sum(axis=1))
        except MetricError:
            return {}  # RTF will say what it needs
        totals = {"compute_share": computed, "recording_share": whole.source_length}
    out = {name: np.full(len(segmentation), np.nan) for name in totals}
    for _, row, segments in pairs:
        lengths = segmentation.duration[segments]
        parts = lengths / lengths.sum() if lengths.sum() > 0 else np.full(len(segments), 1 / len(segments))
        for name, total in totals.items():
            out[name][segments] = total[row] * parts
    return out


# ---- notes ---------------------------------------------------------------------------------------------------------


def _moved(
    recording: str, segments: Ints, units: Sequence[str], times: Floats, ours: Ints, plain: Ints
) -> Iterator[tuple[str, int, str, float, int, int]]:
    """Tokens that are in another segment than by the fewest edits."""
    places = np.arange(len(units))
    by_edits = np.searchsorted(plain[1:-1], places, side="right")
    by_ours = np.searchsorted(ours[1:-1], places, side="right")
    for place in np.flatnonzero(by_ours != by_edits).tolist():
        a, b = int(segments[by_edits[place]]), int(segments[by_ours[place]])
        yield recording, place, units[place], float(times[place]), a, b


UNTIMELY = 0.1
"""In real logs, less than 1 % of the words come before their segment."""


def _early_note(run: Run) -> Iterator[Note]:
    """The note that many tokens were written before their segments began."""
    early = int(np.count_nonzero(run.delays.values < 0))
    if early > UNTIMELY * max(len(run.delays.values), 1):
        text = "written before their segments begin: are the times of the segmentation those of this recording?"
        yield Note("TIMES DO NOT FIT", text, early, noun=noun(run.level))


def _is_related(stream: Stream, text: str, references: Texts, level: str) -> bool:
    """Whether a text may be the translation that the references are; by characters in scripts without spaces."""
    if not is_unspaced("".join(filter(None, references))):
        return stream.shared >= RELATED.get(level, RELATED["word"])
    if level != "char":
        stream = Stream(tokens(text, "char"), [tokens(reference or "", "char") for reference in references])
    return stream.shared >= RELATED["word"]


def _text_notes(run: Run, moves: Sequence[Any], unrelated: Sequence[str]) -> Iterator[Note]:
    """Notes about tokens that were moved, and about recordings with another text than their references."""
    if moves:
        text = "in another segment than the fewest edits alone would have put them"
        yield Note("moved", text, len(moves), noun=noun(run.level))
    if unrelated:
        text = "hardly a word of the hypothesis is in the reference: is it that of another recording, or language?"
        yield Note("UNRELATED TEXT", text, len(unrelated), tuple(unrelated[:5]), noun="recording")
