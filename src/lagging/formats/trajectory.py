# SPDX-License-Identifier: Apache-2.0
"""Trajectories: `{"src_trajectory": ["", "And these"], "target_trajectory": ["", "Und diese"]}`, chunks in pairs.

A chunk of the source is read, then a chunk of the target is written; either may be empty. The delay of a target token
is the number of source tokens read up to its chunk. Tokens are words, or characters in a script without spaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, TextIO

import numpy as np

from lagging.data.run import Run
from lagging.data.scripts import is_unspaced
from lagging.data.tokens import is_torn, spans, tokens
from lagging.errors import DataError, Fault
from lagging.formats.line import FIELDS, Line, explain, name_of, read_as_is, shown, surrogate_fault
from lagging.formats.omissions import lost
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.segment_rows import Rows, collect
from lagging.formats.source import Source

__all__ = ["scan", "write"]

CHUNKS = ("src_trajectory", "target_trajectory")
READERS = {**{name: FIELDS[name] for name in ("index", "id", "reference")}, **dict.fromkeys(CHUNKS, read_as_is)}


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The sentences of a file, in parts; faults and notes go to the report."""
    return collect(source, options, report, _Decoder(source, options, report))


class _Decoder:
    """Turns trajectories into rows; the first text in a script shows what its tokens are."""

    def __init__(self, source: Source, options: ReadOptions, report: ReadReport) -> None:
        self.source, self.options, self.report = source, options, report
        self.target = options.level or ""
        self.spoken = ""
        self._blank = 0

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """There is nothing to skip."""

    def chunks(self) -> Iterator[Rows]:
        """The rows of each batch."""
        for batch in self.source.batches():
            rows = Rows()
            for nth, (number, line) in enumerate(zip(batch.numbers, batch.lines, strict=True), batch.first):
                if not line.strip():
                    self._blank += 1
                    continue
                values, faults = explain(line, READERS)
                if self.report.leave_out_torn(faults, self.source, number, self.options.repair):
                    continue
                row = None if values is None else self._row(values, faults)
                if faults or row is None:
                    self.report.refuse(faults, self.source, number, None if row is None else name_of(row))
                    continue
                rows.rows.append(row)
                rows.lines.append(number)
                rows.places.append(nth - 1 - self._blank + self.report.placed)
            yield rows
        self.report.note_blank_lines(self.source, self._blank)

    def _row(self, values: dict[str, Any], faults: list[Fault]) -> Line:
        """The row of a trajectory; what is wrong with it is added to the faults."""
        read, written = (values.pop(name, None) for name in CHUNKS)
        faults += [
            Fault("bad-trajectory", f"{name}: {shown(chunks)}")
            for name, chunks in zip(CHUNKS, (read, written), strict=True)
            if not isinstance(chunks, list) or not all(isinstance(chunk, str) for chunk in chunks)
        ]
        if not faults:
            columns = zip(CHUNKS, (read, written), strict=True)
            faults += [surrogate_fault(name) for name, chunks in columns if any(map(is_torn, chunks))]
        if not faults and len(read) != len(written):
            faults.append(Fault("bad-trajectory", f"{len(read)} chunks of source, {len(written)} of target"))
        row = Line(**values)
        if faults:
            return row
        row.source, _ = _join(read)
        row.prediction, owners = _join(written)
        self.spoken = self.spoken or _level(row.source)
        self.target = self.target or _level(row.prediction)
        heard = np.cumsum([len(tokens(chunk, self.spoken or "word")) for chunk in read]).tolist()
        _, _, stops = spans(row.prediction, self.target or "word")
        row.delays = [float(heard[owners[stop - 1]]) for stop in stops]
        row.source_length = float(len(tokens(row.source, self.spoken or "word")))
        if row.delays and row.source_length < heard[-1]:  # chunks that divide a word
            row.delays = [min(delay, row.source_length) for delay in row.delays]
        row.unit, row.level = "token", self.target or "word"
        return row


def _level(text: str) -> str:
    """What the tokens of a text are, by its script; nothing if there is no text."""
    return "char" if is_unspaced(text) else "word" if text else ""


def _join(chunks: Sequence[str]) -> tuple[str, list[int]]:
    """The text of chunks, and the chunk of each of its characters.

    Chunks have a space between them, unless they bring their own, or the script has none.

    Example:
        >>> _join(["", "Und", "so"]), _join(["你", "好"]), _join(["Ha", "llo ", "du"])[0]
        (('Und so', [1, 1, 1, 2, 2, 2]), ('你好', [0, 1]), 'Hallo du')
    """
    own = any(chunk != chunk.strip() for chunk in chunks) or is_unspaced("".join(chunks))
    text, owners = "", list[int]()
    for place, chunk in enumerate(chunks):
        piece = " " + chunk if chunk and text and not own else chunk
        text += piece
        owners += [place] * len(piece)
    return text, owners


def write(run: Run, file: TextIO) -> list[str]:
    """Write a pair of chunks whenever tokens were written. Returns what it could not hold.

    Raises:
        DataError: the source text is not known, or has not as many tokens as the source is long.
    """
    spoken = target = ""
    losses = dict[str, None]()
    for row in range(len(run)):
        source, text = (None if texts is None else texts[row] for texts in (run.source, run.prediction))
        spoken, target = spoken or _level(source or ""), target or _level(text or "")
        _, starts, _ = spans(source or "", spoken or "word")
        g, x = run.delays[row], float(run.source_length[row])
        units, begins, _ = spans(text or "", run.level)
        whole = bool((g == np.floor(g)).all()) and (not len(g) or (g[0] >= 0 and g[-1] <= x))
        if run.unit != "token" or len(starts) != x or not whole:
            detail = "delays in milliseconds" if run.unit != "token" else f"{len(starts)} source tokens in its text"
            raise DataError(Fault("not-whole", detail, run.origin.path, segment=run.id.item(row)))
        if len(units) != len(g):
            detail = f"{len(g)} delays, {len(units)} tokens in its text"
            raise DataError(Fault("token-count", detail, run.origin.path, segment=run.id.item(row)))
        stops = sorted({*g.astype(int).tolist(), int(x)})
        ends = np.searchsorted(g, stops, side="right").tolist()
        read, written = _pieces(source or "", starts, stops), _pieces(text or "", begins, ends)
        for name, whole_text, chunks in (("source", source, read), ("prediction", text, written)):
            if whole_text is None and getattr(run, name) is not None:
                losses[f"{name} (null is read back as empty)"] = None
            elif (whole_text or "") != _join(chunks)[0]:
                losses[f"{name} (white space)"] = None
        record = {
            "index": run.id.item(row),
            "src_trajectory": read,
            "target_trajectory": written,
            **({} if run.reference is None else {"reference": run.reference[row]}),
        }
        file.write(json.dumps(record, ensure_ascii=False) + "\n")
    kept = {"id", "delays", "source_length", "prediction", "reference", "source"}
    return lost(run, kept, *losses, unit="token", level=target or "word", seg="none")


def _pieces(text: str, starts: Sequence[int], ends: Sequence[int]) -> list[str]:
    """The text in pieces that end before these tokens; with the spaces between them where a space is not enough."""
    cuts = [0, *(starts[end] if end < len(starts) else len(text) for end in ends)]
    exact = [text[a:b] for a, b in pairwise(cuts)]
    bare = [piece.strip() for piece in exact]
    return bare if _join(bare)[0] == text else exact
