# SPDX-License-Identifier: Apache-2.0
"""A Run: one system's output on one test set, as columns. Frozen, and validated once, when it is made.

One class; most lines describe its columns and the ways to make one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lagging.data import notebooks
from lagging.data.checks import add_counts, check, remark, unmatched_tokens
from lagging.data.columns import (
    Ids,
    Texts,
    as_ids,
    as_lengths,
    as_rows,
    first_shown,
    freeze,
    join_ids,
    make_ids,
    make_texts,
    misfits,
    no_times,
)
from lagging.data.endings import find_ends, find_lone, find_marked
from lagging.data.ragged import Floats, Ints, Ragged
from lagging.data.spoken import Spoken
from lagging.data.tokens import (
    are_sounds,
    check_units,
    check_untimed_level,
    count_tokens,
    detect_level,
    noun,
    resolve_level,
    text_level,
)
from lagging.errors import DataError, Fault, Faults, Note, UsageError, counted, did_you_mean, merge_notes, optional

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

__all__ = ["Ids", "Origin", "Run", "Texts", "join_ids", "make_ids", "make_texts"]


@dataclass(frozen=True)
class Origin:
    """Where a Run was read from: path, format, and what was found there.

    Attributes:
        path: the file; None for a Run made in Python.
        format: name of the format, e.g. `simuleval`.
        description: the format in words, with what was recognised.
        named: whether segments have ids of their own; else they are numbered in the order of the log.
    """

    path: str | None = None
    format: str = "python"
    description: str = "Python lists"
    named: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class Run:
    """One system's output on one test set, one entry per segment in every column.

    Make one with `Run.from_delays`, `Run.from_texts` or `lagging.read`; the constructor does not check its columns.

    Attributes:
        delays: g(t), the source consumed before each target token, in `unit`s.
        source_length: |x|, in the same unit.
        id: what the segment is called; matches segments between systems.
        elapsed: wall-clock time of each target token in ms, where the log has it.
        reference_length: |reference| in target tokens, NaN where unknown; only for logs that count their own tokens.
        prediction, reference, source: texts, None where a segment has none; document: the talk that it belongs to.
        durations: length of each piece of output speech in ms.
        arrivals, compute: of each step that the system took, the source that had arrived, and the ms it computed.
        steps: the step that wrote each target token, from 0.
        queue_times, omnisteval_times, fbk_times, fbk1_times: of segments cut from a stream, the time of each target
            token on the clock of that name, worked out on the whole recording before it was cut.
        first_times: when each target token was first shown, maybe to be erased: see `lagging.formats.revisions`.
        compute_share, recording_share: of segments cut from a stream, their parts of the computing time and of the
            length of their recording, in ms, by their own lengths.
        erased, gone, revisions: target tokens deleted again, over all revisions; those of them that the revised text
            had nowhere; how many updates changed what had been written before.
        offset, recording_end: when the segment begins in its recording, and how long after that the recording ends.
        due, due_partial, shown: of each reference token, when its source was spoken, by the whole and by the partial
            transcripts, and when its translation was shown; NaN if it never was.
        spoken: the source words with their times; see `lagging.with_word_times`.
        line: line of the segment in the file it came from.
        group: the labels of the segment's group, as `lagging.formats.tables` joins them.
        unit: "token" or "ms": of delays and source_length; "none" if there are no times, and all of these are NaN.
        level: what a target token is: "word", "char", "token" (the log's own), or a SentencePiece model ("spm-…").
        seg: how a stream was cut into these segments; "none" if it was not, "given" if the log does not say how.
        name, origin: the system's name; where it was read from.
        repaired, stripped: how many segments each repair has changed; how many tokens of each kind were stripped.
        speech_out: whether the output is speech, and the predictions, where there are any, are names of sound files.
        transcribed: whether the predictions are transcripts of output speech: quality is scored on them, latency not.
        given: what was given beside the log and enters its times, by its name in a signature.
        notes: what a reader of its scores must know.
    """

    delays: Ragged
    source_length: Floats
    id: Ids
    elapsed: Ragged | None = None
    reference_length: Floats | None = None
    prediction: Texts | None = None
    reference: Texts | None = None
    source: Texts | None = None
    document: Texts | None = None
    durations: Ragged | None = None
    arrivals: Ragged | None = None
    compute: Ragged | None = None
    steps: Ragged | None = None
    queue_times: Ragged | None = None
    omnisteval_times: Ragged | None = None
    fbk_times: Ragged | None = None
    fbk1_times: Ragged | None = None
    first_times: Ragged | None = None
    compute_share: Floats | None = None
    recording_share: Floats | None = None
    erased: Floats | None = None
    gone: Floats | None = None
    revisions: Floats | None = None
    offset: Floats | None = None
    recording_end: Floats | None = None
    due: Ragged | None = None
    due_partial: Ragged | None = None
    shown: Ragged | None = None
    spoken: Spoken | None = None
    line: Ints | None = None
    group: Texts | None = None
    unit: str = "token"
    level: str = "token"
    seg: str = "none"
    name: str = ""
    origin: Origin = Origin()
    repaired: tuple[tuple[str, int], ...] = ()
    stripped: tuple[tuple[str, int], ...] = ()
    speech_out: bool = False
    transcribed: bool = False
    given: tuple[tuple[str, str], ...] = ()
    notes: tuple[Note, ...] = field(default=())

    def __post_init__(self) -> None:
        """Make every column read-only."""
        freeze(self, COLUMNS)

    @classmethod
    def from_delays(
        cls,
        delays: Sequence[Sequence[float]] | Ragged,
        *,
        source_length: npt.ArrayLike,
        elapsed: Sequence[Sequence[float]] | Ragged | None = None,
        reference_length: npt.ArrayLike | None = None,
        prediction: Sequence[str | None] | None = None,
        reference: Sequence[str | None] | None = None,
        source: Sequence[str | None] | None = None,
        id: Sequence[int | str] | None = None,
        document: Sequence[str | None] | None = None,
        unit: str = "token",
        level: str | None = None,
        spm_model: str | Path | None = None,
        seg: str = "none",
        name: str = "",
        **more: Any,
    ) -> Run:
        """A Run from Python lists, checked: every fault is reported at once.

        Args:
            delays: one list of non-decreasing numbers per segment.
            source_length: one length per segment, in the unit of the delays.
            elapsed: wall-clock times in ms, shaped like `delays`.
            reference_length: reference lengths in target tokens, where there is no reference text to count.
            prediction: what was written; its tokens must be as many as the delays.
            reference: reference translations.
            source: source sentences.
            id: names of the segments; 0, 1, 2, … if not given.
            document: the document of each segment.
            unit: "token" or "ms".
            level: "word", "char", "token", or "spm" with a model; found from the predictions if not given.
            spm_model: the SentencePiece model whose pieces the delays count.
            seg: how a stream was cut into these segments; delays may then be negative.
            name: name of the system.
            more: the columns that few logs have: `durations`, `arrivals`, `compute`, `steps`, `queue_times`,
                `omnisteval_times`, `fbk_times`, `fbk1_times`, `first_times`, `compute_share`, `recording_share`,
                `erased`, `gone`, `revisions`, `offset`, `recording_end`, `due`, `due_partial`, `shown`.

        Raises:
            DataError: for anything that cannot be scored, with segment and token.

        Example:
            >>> run = Run.from_delays([[4, 5, 5, 5, 5], [4, 4, 4, 4, 5]], source_length=[5, 5])
            >>> len(run), run.unit
            (2, 'token')
            >>> Run.from_delays([[4, 3]], source_length=[5])
            Traceback (most recent call last):
            lagging.errors.DataError: delays decrease (segment 0), token 2: 4 → 3
              AL, LAAL and DAL need non-decreasing delays.
              fix: `repair=['monotone']` clamps them (the signature then says repair:monotone), or re-export the log.
        """
        level = resolve_level(level, spm_model)
        check_units(unit, level)
        g = as_rows(delays, "delays-not-a-list")
        strange = [name for name in more if name not in (*LISTS, *NUMBERS)]
        if strange:
            raise UsageError(f"a Run has no column {strange[0]!r}.{did_you_mean(strange[0], COLUMNS)}")
        lists = {"elapsed": elapsed, **{c: more[c] for c in LISTS if c in more}}
        numbers = {"reference_length": reference_length, **{c: more[c] for c in NUMBERS if c in more}}
        columns: dict[str, Any] = {
            "source_length": as_lengths(source_length, "bad-source-length"),
            "id": as_ids(id, len(g)),
            **{c: None if v is None else as_lengths(v, WRONG.get(c, "bad-column")) for c, v in numbers.items()},
            **{c: None if v is None else as_rows(v, WRONG.get(c, "bad-column")) for c, v in lists.items()},
            "prediction": make_texts(prediction),
            "reference": make_texts(reference),
            "source": make_texts(source),
            "document": make_texts(document),
        }
        faults = Faults()
        faults.add(*misfits(columns, TEXTS, len(g), "delays"))
        if faults:
            raise DataError(faults)
        texts = columns["prediction"]
        for row in range(len(g)) if texts is not None and any(texts) else ():
            if texts[row] is None and g.lengths[row]:
                faults.add(Fault("missing-prediction", segment=columns["id"][row]))
        speech_out = columns.get("durations") is not None or are_sounds(texts if texts is not None else ())
        if speech_out:
            texts = None  # names of sound files have no tokens
        unmatched: list[Note] = []
        if level is None:
            level = "token" if texts is None else detect_level(texts, g.lengths)
            if level == "token" and texts is not None and any(texts):
                unmatched.append(unmatched_tokens(texts, g.lengths))
        origin = Origin(named=id is not None)
        settings: dict[str, Any] = {"unit": unit, "level": level, "seg": seg, "name": name, "speech_out": speech_out}
        run = cls(delays=g, origin=origin, **settings, **columns)
        counts = None if texts is None else count_tokens(texts, level, g.lengths)
        faults.add(*check(run, token_counts=counts))
        if faults:
            raise DataError(faults)
        return replace(run, notes=merge_notes([*unmatched, *remark(run)]))

    @classmethod
    def from_texts(
        cls,
        prediction: Sequence[str | None],
        *,
        reference: Sequence[str | None] | None = None,
        source: Sequence[str | None] | None = None,
        id: Sequence[int | str] | None = None,
        document: Sequence[str | None] | None = None,
        level: str | None = None,
        name: str = "",
    ) -> Run:
        """A Run without times, whose text alone can be judged. Checked: every fault is reported at once.

        Args:
            prediction: what was written, one text per segment; None counts as nothing.
            reference, source, id, document, name: as in `from_delays`.
            level: "word" or "char"; characters, if not given, where most texts are in a script without spaces.

        Raises:
            DataError: for anything that cannot be scored.

        Example:
            >>> run = Run.from_texts(["see you soon", "no"], reference=["see you soon", "not yet"])
            >>> run
            Run(2 segments, 4 words, no times)
            >>> import lagging
            >>> f"{lagging.score(run, ['chrF'])['chrF'].value:.1f}"
            '77.7'
        """
        if isinstance(prediction, str):
            raise UsageError("from_texts takes a list of texts, one per segment, and not a text")
        columns: dict[str, Any] = {"id": as_ids(id, len(prediction))}
        for column, texts in (("reference", reference), ("source", source), ("document", document)):
            columns[column] = make_texts(texts)
        columns["prediction"] = make_texts(prediction)
        faults = Faults()
        faults.add(*misfits(columns, TEXTS, len(prediction), "prediction"))
        if faults:
            raise DataError(faults)
        level = level or text_level(prediction)
        check_untimed_level(level)
        run = cls(
            delays=no_times(prediction, level),
            source_length=np.full(len(prediction), np.nan),
            unit="none",
            level=level,
            name=name,
            speech_out=are_sounds(prediction),
            origin=Origin(named=id is not None),
            **columns,
        )
        faults.add(*check(run))
        if faults:
            raise DataError(faults)
        return replace(run, notes=merge_notes(remark(run)))

    @property
    def has_text(self) -> bool:
        """Whether there are predictions whose text can be judged: not the names of sound files."""
        return self.prediction is not None and (self.transcribed or not self.speech_out)

    marked = cached_property(find_marked)
    lone = cached_property(find_lone)
    eos = cached_property(find_ends)

    def __len__(self) -> int:
        """Number of segments."""
        return len(self.delays)

    def __repr__(self) -> str:
        """`Run('base', 2580 segments, 39783 words, ms)`."""
        name = f"{self.name!r}, " if self.name else ""
        tokens = counted(len(self.delays.values), noun(self.level))
        unit = "no times" if self.unit == "none" else self.unit
        return f"Run({name}{counted(len(self), 'segment')}, {tokens}, {unit})"

    _repr_html_ = notebooks.html

    def __getitem__(self, index: int | slice | npt.NDArray[np.generic] | list[int]) -> Run:
        """Some of the segments: a segment number, a slice, several numbers, or a mask.

        Example:
            >>> run = Run.from_delays([[1, 2], [2, 2], [1, 1]], source_length=[2, 2, 2])
            >>> run[[2, 0]].id.tolist(), run[-1].id.tolist()
            ([2, 0], [2])
        """
        if isinstance(index, int | np.integer):
            index = [range(len(self))[int(index)]]
        rows = index if isinstance(index, slice) else np.asarray(index, dtype=None if len(index) else np.int64)
        columns = {name: values for name in COLUMNS if (values := getattr(self, name)) is not None}
        changed: dict[str, Any] = {n: v.take(rows) if isinstance(v, Ragged) else v[rows] for n, v in columns.items()}
        selected = replace(self, notes=(), **changed)
        if not self.notes:
            return selected
        of_the_log = [note for note in self.notes if not note.count or note.noun != "segment"]
        return replace(selected, notes=merge_notes([*of_the_log, *remark(selected)]))

    def segments(self) -> Iterator[Run]:
        """Each segment as a Run of its own."""
        return (self[i : i + 1] for i in range(len(self)))

    @staticmethod
    def concat(runs: Sequence[Run]) -> Run:
        """The segments of all runs, in order. A column that only some of them have is filled with None, or dropped.

        Example:
            >>> a = Run.from_delays([[1, 2]], source_length=[2], id=["a"])
            >>> b = Run.from_delays([[2]], source_length=[2], id=["b"])
            >>> Run.concat([a, b]).delays.tolist()
            [[1.0, 2.0], [2.0]]
        """
        if not runs:
            raise UsageError("concat needs at least one Run")
        if len(runs) == 1:
            return runs[0]
        telling = [run for run in runs if len(run.delays.values)] or list(runs)
        for what in ("unit", "level", "seg"):
            values = sorted({str(getattr(run, what)) for run in telling})
            if len(values) > 1:
                raise UsageError(f"these runs differ in {what}: {', '.join(values)}")
        changed: dict[str, Any] = {}
        for column in COLUMNS:
            parts = [getattr(run, column) for run in runs]
            if any(part is not None for part in parts):
                parts = [_nothing(r, column) if p is None else p for r, p in zip(runs, parts, strict=True)]
            if any(part is None for part in parts):
                changed[column] = None
            elif isinstance(parts[0], Ragged | Spoken):
                changed[column] = type(parts[0]).concat(parts)
            elif column == "id":
                changed[column] = join_ids(parts)
            else:
                changed[column] = np.concatenate(parts)
        for what in ("repaired", "stripped"):
            changed[what] = add_counts(*(getattr(run, what) for run in runs))
        changed["speech_out"] = all(run.speech_out for run in telling)
        notes = merge_notes(note for run in runs for note in run.notes)
        origin = replace(telling[0].origin, named=all(run.origin.named for run in runs))
        return replace(telling[0], notes=notes, origin=origin, **changed)

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns that it has, without those that say nothing of a Run without times.

        The line belongs to a file, the group to a question, spoken words to other files: they are none of them.

        Example:
            >>> Run.from_delays([[1, 2]], source_length=[2], elapsed=[[3, 4]]).columns
            ('id', 'delays', 'source_length', 'elapsed')
        """
        aside = ("spoken", "line", "group", *(("delays", "source_length") if self.unit == "none" else ()))
        return tuple(column for column in COLUMNS if column not in aside and getattr(self, column) is not None)

    def to_dict(self) -> dict[str, list[Any]]:
        """Columns as Python lists, without those that the Run does not have.

        Example:
            >>> Run.from_delays([[1, 2]], source_length=[2]).to_dict()
            {'id': [0], 'delays': [[1.0, 2.0]], 'source_length': [2.0]}
        """
        lists = {column: getattr(self, column).tolist() for column in self.columns}
        for column in (c for c in NUMBERS if c in lists):
            lists[column] = [None if math.isnan(n) else n for n in lists[column]]
        if "shown" in lists:
            lists["shown"] = [[None if math.isnan(n) else n for n in row] for row in lists["shown"]]
        return lists

    def to_pandas(self) -> pandas.DataFrame:
        """Columns as a pandas DataFrame (needs pandas)."""
        return optional("pandas").DataFrame(self.to_dict())

    def to_polars(self) -> polars.DataFrame:
        """Columns as a polars DataFrame (needs polars)."""
        return optional("polars").DataFrame(self.to_dict())

    def to_arrow(self) -> pyarrow.Table:
        """Columns as an Arrow table (needs pyarrow)."""
        return optional("pyarrow", "arrow").table(self.to_dict())


TEXTS = ("prediction", "reference", "source", "document")
SHARES = ("compute_share", "recording_share")
NUMBERS = ("reference_length", *SHARES, "erased", "gone", "revisions", "offset", "recording_end")
"""Columns of one number per segment that not every segment has."""
TIMES = {name: f"{name}_times" for name in ("queue", "omnisteval", "fbk", "fbk1", "first")}
"""Clock → the column with its times: of the first four, in segments cut from a stream."""
LISTS = ("elapsed", "durations", "arrivals", "compute", "steps", *TIMES.values(), "due", "due_partial", "shown")
"""Columns of a list per segment, beside the delays."""
PER_TOKEN = ("elapsed", "durations", "steps", *TIMES.values())
"""Those that have an entry per target token."""
COLUMNS = ("id", "delays", "source_length", *TEXTS, *LISTS, *NUMBERS, "spoken", "line", "group")
"""All of them, in the order in which tables have them."""
WRONG = {"elapsed": "bad-elapsed", "reference_length": "bad-reference-length"}


def _nothing(run: Run, column: str) -> Ragged | npt.NDArray[Any] | None:
    """The replacement for a column that a Run does not have; None if there is none."""
    if column in (*TEXTS, *NUMBERS, "group"):
        return np.full(len(run), np.nan if column in NUMBERS else None)
    if column == "first_times":
        return first_shown(run)
    # where nothing was written, the list per token that is not there is empty
    return run.delays if column in PER_TOKEN and not len(run.delays.values) else None
