# SPDX-License-Identifier: Apache-2.0
"""What makes columns unfit to be scored (faults), what a reader must know of them (notes), and repairs by name."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import numpy.typing as npt

from lagging.data.ragged import Ragged
from lagging.data.scripts import SAMPLE, are_unspaced
from lagging.data.tokens import count_sentence_ends, noun
from lagging.data.units import fastest, is_too_fast
from lagging.errors import Fault, Note, UsageError, did_you_mean

if TYPE_CHECKING:
    from lagging.data.run import Run

__all__ = [
    "FAR",
    "LONGEST",
    "REPAIRS",
    "about",
    "add_counts",
    "check",
    "check_repairs",
    "is_length",
    "number",
    "remark",
    "repair",
]

FAR = 1e18
"""Beyond this, a delay is not a delay: 10¹⁸ ms are thirty million years. Below 1/FAR, a length is not a length."""

LONGEST = {"ms": 120_000.0, "token": 400.0}
"""What is longer is no sentence, but a recording or a document. Of 2 580 segments of MuST-C tst-COMMON the longest has
51 s and 8 sentences; of 32 whole talks the shortest has 210 s, and 71 sentences of those that have a reference."""

SENTENCES, WORDS = 20, 100
"""So is a reference of more sentences; it is looked at where at least so many tokens were written."""

REPAIRS = {
    "monotone": "a delay below its predecessor becomes equal to it (elapsed times too)",
    "clip": "a negative delay becomes 0",
    "first": "of several lines with one index, the first counts",
    "last": "of several lines with one index, the last counts",
    "torn": "a last line that breaks off is left out",
}


def number(value: float) -> str:
    """A number as JSON writes it: 3, 2.5, NaN."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(int(value)) if value == int(value) and abs(value) < FAR else repr(float(value))


def is_length(x: npt.NDArray[np.float64] | float) -> npt.NDArray[np.bool_]:
    """Whether a number can be a length: 0, or neither so small nor so large that a ratio with it would overflow.

    Example:
        >>> is_length(np.array([0, 3, 1e-320, -1, 1e300, np.nan])).tolist()
        [True, True, False, False, False, False]
    """
    lengths = np.asarray(x, dtype=np.float64)
    return np.asarray((lengths == 0) | ((lengths >= 1 / FAR) & (lengths < FAR)))


def check(run: Run, token_counts: npt.NDArray[np.int64] | None = None) -> Iterator[Fault]:
    """The faults of a Run's columns, in no particular order of the file.

    Args:
        run: the columns.
        token_counts: how many tokens each prediction has; None if there are no predictions.
    """
    if run.unit != "none":  # else there are no times to be wrong
        yield from _check_times(run, token_counts)
    if run.reference_length is not None:
        y = run.reference_length
        yield from _rows(run, "bad-reference-length", ~(np.isnan(y) | is_length(y)), lambda i: number(float(y[i])))
    yield from _check_few(run)
    yield from _duplicates(run)


def _check_times(run: Run, token_counts: npt.NDArray[np.int64] | None) -> Iterator[Fault]:
    """Source lengths, delays and elapsed times."""
    x, g = run.source_length, run.delays
    yield from _rows(run, "bad-source-length", ~is_length(x), lambda i: number(float(x[i])))
    if token_counts is not None and not np.array_equal(token_counts, g.lengths):
        wrong = token_counts != g.lengths
        unit = noun(run.level)
        yield from _rows(run, "token-count", wrong, lambda i: f"{g.lengths[i]} delays, {token_counts[i]} {unit}s")
    least, most = g.values.min(initial=0.0), g.values.max(initial=0.0)  # NaN if one of the delays is
    if not (least > -FAR and most < FAR):
        yield from _tokens(run, "not-finite", g, np.flatnonzero(~(np.abs(g.values) < FAR)))
    if run.seg == "none" and not least >= 0:
        yield from _tokens(run, "negative-delay", g, np.flatnonzero(g.values < 0))
    yield from _tokens(run, "decreasing-delays", g, g.falls(), step=True)
    if run.elapsed is not None and run.unit == "ms":  # beside source tokens, no metric can use them
        e = run.elapsed
        if not np.array_equal(e.lengths, g.lengths):
            wrong = e.lengths != g.lengths
            yield from _rows(run, "elapsed-count", wrong, lambda i: f"{e.lengths[i]} elapsed, {g.lengths[i]} delays")
        yield from _tokens(run, "elapsed-not-finite", e, np.flatnonzero(~(np.abs(e.values) < FAR)))
        if run.compute is None:  # where the computing time of a step is known, that may be all that is counted in
            yield from _tokens(run, "decreasing-elapsed", e, e.falls(), step=True)


BELONG = (
    ("steps", "delays"),
    ("durations", "delays"),
    ("queue_times", "delays"),
    ("omnisteval_times", "delays"),
    ("fbk_times", "delays"),
    ("fbk1_times", "delays"),
    ("first_times", "delays"),
    ("compute", "arrivals"),
    ("shown", "due"),
    ("due_partial", "due"),
)
"""Columns that have an entry for each entry of another."""


AMOUNTS = ("erased", "gone", "revisions", "compute_share", "recording_share")
PLACES = ("offset", "recording_end")


def _check_few(run: Run) -> Iterator[Fault]:
    """Columns that few logs have: what the system did and when, and where a segment lies."""
    known = {c: getattr(run, c) for pair in BELONG for c in pair if getattr(run, c) is not None}
    for column_a, column_b in BELONG:
        if column_a in known and column_b in known:
            a, b = known[column_a].lengths, known[column_b].lengths
            for row in np.flatnonzero(a != b).tolist():
                yield Fault("column-count", f"{a[row]} {column_a}, {b[row]} {column_b}", **_where(run, row))
    for column, ragged in known.items():
        if column == "delays":
            continue
        values = ragged.values
        wrong = ~(np.abs(values) < FAR)
        if column == "shown":
            wrong &= ~np.isnan(values)  # never shown
        if column in ("compute", "steps", "durations") or (column == "arrivals" and run.seg == "none"):
            wrong |= values < 0
        if column == "steps":
            wrong |= values != np.floor(values)
        of_steps = column in ("steps", "durations", "compute", "arrivals")
        kind = "impossible-step" if of_steps else "bad-column"
        yield from _tokens(run, kind, ragged, np.flatnonzero(wrong), column)
        if column in ("arrivals", "steps"):
            yield from _tokens(run, "impossible-step", ragged, ragged.falls(), column, step=True)
    if "steps" in known and "arrivals" in known:
        last, there = known["steps"].last(), known["arrivals"].lengths
        yield from _rows(run, "impossible-step", last >= there, lambda i: f"step {last[i]:g} of {there[i]}")
    for column in (c for c in (*AMOUNTS, *PLACES) if getattr(run, c) is not None):
        yield from _numbers(run, column, least=0.0 if column in AMOUNTS else -FAR)


class _Where(TypedDict):
    path: str | None
    line: int | None
    segment: int | str


def _where(run: Run, row: int) -> _Where:
    line = None if run.line is None else int(run.line[row])
    return {"path": run.origin.path, "line": line, "segment": run.id.item(row)}


def _rows(run: Run, kind: str, wrong: npt.NDArray[np.bool_], detail: Callable[[int], str]) -> Iterator[Fault]:
    for row in np.flatnonzero(wrong).tolist():
        yield Fault(kind, detail(row), **_where(run, row))


def _numbers(run: Run, column: str, least: float) -> Iterator[Fault]:
    """Numbers that are too low, or not finite; what is not known is NaN."""
    values = getattr(run, column)
    wrong = ~(np.isnan(values) | ((values >= least) & (values < FAR)))
    yield from _rows(run, "bad-column", wrong, lambda i: f"{column}: {number(float(values[i]))}")


def _tokens(
    run: Run, kind: str, column: Ragged, flat: npt.NDArray[np.int64], name: str = "", step: bool = False
) -> Iterator[Fault]:
    """One fault per segment, at its first wrong token; with the name of the column, if the kind does not tell it."""
    if not len(flat):
        return
    rows, positions = column.owner(flat)
    rows, first = np.unique(rows, return_index=True)
    for row, place, position in zip(rows.tolist(), flat[first].tolist(), positions[first].tolist(), strict=True):
        value = number(column.values[place])
        detail = f"{number(column.values[place - 1])} → {value}" if step else value
        detail += " ms" if run.unit == "ms" and name != "steps" else ""
        detail = f"{name}: {detail}" if name else detail
        yield Fault(kind, detail, token=position + 1, **_where(run, row))


def _duplicates(run: Run) -> Iterator[Fault]:
    ids = run.id
    if ids.dtype != object and (np.diff(ids) > 0).all():
        return
    seen: dict[object, int] = {}
    for row, name in enumerate(ids.tolist()):
        if name in seen:
            first = seen[name]
            at = "" if run.line is None else f"line {run.line[first]}"
            yield Fault("duplicate-id", at or f"entry {first}", **_where(run, row))
        else:
            seen[name] = row


def about(run: Run, kind: str, text: str, where: npt.ArrayLike, normal: str = "") -> Iterator[Note]:
    """A note about some segments of a Run, if there are any; `normal` says where they are to be expected."""
    rows = np.flatnonzero(where)
    if len(rows):
        yield Note(kind, text, len(rows), tuple(run.id[rows[:5]].tolist()), normal=normal)


def remark(run: Run) -> Iterator[Note]:
    """What a reader of the scores must know of these columns."""
    if run.unit == "none":
        yield Note("no delays", "only the text can be judged")
        yield from about(run, "empty hypothesis", "nothing was written", run.delays.lengths == 0)
    else:
        yield from _remark_times(run)
    if run.reference is not None:
        texts = run.reference.tolist()
        none = np.array([text is None for text in texts] if None in texts else np.zeros(len(run)), dtype=bool)
        blank = np.array(
            [text is not None and not text.strip() for text in texts] if _any_blank(texts) else none & ~none
        )
        text = "left out where a reference is needed"
        yield from about(run, "no reference", text, none)
        yield from about(run, "empty reference", text, blank)
    timed = run.level == "word" and run.unit != "none"
    if timed and run.prediction is not None and are_unspaced(run.prediction, SAMPLE):
        yield Note(
            "SCRIPT WITHOUT SPACES",
            "scored by words; latency and BLEU of this text mean little: log a delay per character "
            "(`lagging run --level char` does)",
        )


def _remark_times(run: Run) -> Iterator[Note]:
    x, last = run.source_length, run.delays.last()
    if run.seg == "none":
        text = (
            f"longer than {LONGEST['ms'] / 60_000:g} minutes, {LONGEST['token']:g} source tokens or {SENTENCES} "
            "sentences, and taken for one sentence each: AP, AL, LAAL, DAL and the like mean little; "
            "cut them first: lagging score LOG --segmentation FILE --reference FILE"
        )
        yield from about(run, "WHOLE RECORDINGS", text, _are_recordings(run))
    yield from about(run, "empty hypothesis", "nothing was written, so there is no latency", run.delays.lengths == 0)
    yield from about(run, "empty source", "source_length is 0, so there is no latency", x == 0)
    beyond = last > (x + 1 if run.unit == "ms" else x)
    talks = "in whole talks" if run.seg != "none" else ""
    yield from about(run, "beyond the source", "delays larger than source_length", beyond & (x > 0), talks)
    if run.seg != "none":
        early = run.delays.rows_with(np.flatnonzero(run.delays.values < 0))
        yield from about(run, "before the segment", "negative delays: written before the segment began", early, talks)
    if run.unit == "ms":
        # even an eager system is not done before 1 % of the source
        text = "delays below 1 % of source_length: are they seconds, and the source in milliseconds?"
        yield from about(run, "suspicious unit", text, (last > 0) & (last < 0.01 * x))
        if run.seg == "none":  # a cut may put many words into a moment
            text = f"more than {fastest(run.level)} {noun(run.level)}s per second of source: "
            text += "are source_length and delays seconds, and taken for milliseconds?"
            fast = is_too_fast(run.delays.lengths, x, run.level) & (x > 0)
            yield from about(run, "IMPOSSIBLE RATE", text, fast)
        if run.elapsed is not None and np.array_equal(run.elapsed.lengths, run.delays.lengths):
            early = run.delays.rows_with(np.flatnonzero(run.elapsed.values < run.delays.values - 1))
            yield from about(run, "elapsed below ideal", "written before its source was there, says the log", early)


def _are_recordings(run: Run) -> npt.NDArray[np.bool_]:
    """Which segments are no sentences, but whole recordings or documents."""
    whole: npt.NDArray[np.bool_] = run.source_length > LONGEST[run.unit]
    if run.reference is not None:
        for row in np.flatnonzero(~whole & (run.delays.lengths >= WORDS)).tolist():
            whole[row] = count_sentence_ends(run.reference[row] or "") > SENTENCES
    return whole


def unmatched_tokens(texts: Iterable[str | None], lengths: Iterable[int]) -> Note:
    """A note about delays that are neither one per word nor one per character."""
    spare = {int(n) - len(text.split()) for text, n in zip(texts, lengths, strict=True) if text}
    hint = ": one more than words, is </s> still among them?" if spare == {1} else ""
    return Note("tokens", f"delays match neither words nor characters{hint}; they are taken to be the log's own tokens")


def _any_blank(texts: list[str | None]) -> bool:
    """Whether any text is empty or only white space."""
    return "" in texts or any(map(str.isspace, filter(None, texts)))


def check_repairs(names: Sequence[str]) -> None:
    """Refuse repairs that do not exist, or exclude each other."""
    for name in names:
        if name not in REPAIRS:
            raise UsageError(f"no repair is called {name!r}.{did_you_mean(name, REPAIRS)}")
    if "first" in names and "last" in names:
        raise UsageError("--repair first and --repair last exclude each other")


def add_counts(*counts: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """How often each thing was done, in all.

    Example:
        >>> add_counts([("monotone", 2)], [("clip", 1), ("monotone", 3), ("torn", 0)])
        (('clip', 1), ('monotone', 5))
    """
    total: Counter[str] = Counter()
    for part in counts:
        total.update(dict(part))
    return tuple(sorted((+total).items()))


def repair(run: Run, names: Sequence[str]) -> Run:
    """The Run with the named repairs done, and counted in `run.repaired`.

    Args:
        run: columns that may have faults.
        names: repairs, from `REPAIRS`.
    """
    check_repairs(names)
    done: dict[str, int] = {}
    if "monotone" in names:
        mended = np.zeros(len(run), dtype=bool)
        for column in ("delays", "elapsed") if run.unit == "ms" else ("delays",):
            values = getattr(run, column)
            falling = values.falls() if values is not None else np.empty(0, np.int64)
            if len(falling):
                mended |= values.rows_with(falling)
                run = replace(run, **{column: values.by_token(lambda g: np.maximum.accumulate(g, axis=1))})
        done["monotone"] = int(mended.sum())
    if "clip" in names and (run.delays.values < 0).any():
        below = run.delays.rows_with(np.flatnonzero(run.delays.values < 0))
        done["clip"] = int(below.sum())
        run = replace(run, delays=Ragged(np.maximum(run.delays.values, 0), run.delays.offsets))
    for keep in {"first", "last"} & set(names):
        order = list(enumerate(run.id.tolist()))
        kept = sorted({name: row for row, name in (order if keep == "last" else reversed(order))}.values())
        if len(kept) < len(run):
            done[keep] = len(run) - len(kept)
            run = run[kept]
    return replace(run, repaired=add_counts(run.repaired, done.items()))
