# SPDX-License-Identifier: Apache-2.0
"""Columns: scores of segments that another tool computed (COMET, human ratings), read from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from lagging.data.decimals import decimal
from lagging.data.hashes import short_hash
from lagging.data.ragged import Floats
from lagging.data.trees import read_json
from lagging.errors import DataError, Fault, Faults, MetricNameError, UsageError, counted
from lagging.formats.report import ReadReport
from lagging.formats.tables import split_cells
from lagging.longform.entries import read_lines
from lagging.metrics import Metric, metric
from lagging.metrics.registry import CALL
from lagging.scoring.scores import Score, Scores, Undefined
from lagging.scoring.signature import Signature
from lagging.version import __version__

__all__ = ["Column", "read_column"]

IDS = ("id", "index", "segment", "seg_id")
SCORES = ("score", "value")
SEPARATORS = "\t,;"
NAN = ("nan",)
NO_SCORE = "no score in the column"
Row = tuple[int, str | None, object]


@dataclass(frozen=True, eq=False)
class Column:
    """A score per segment of one system.

    Attributes:
        name: the name of the metric, such as COMET; not one of those that lagging computes.
        system: the system whose output was scored.
        values: the scores; NaN where there is none.
        ids: the ids of the segments; None if the scores are in the order of the log.
        higher_is_better: whether a higher score is better.
        path, lines: the file, and the line of each score; None for values that come from Python.

    Example:
        >>> import lagging
        >>> run = lagging.Run.from_delays([[1], [2]], source_length=[2, 2], id=["a", "b"])
        >>> score = Column("COMET", "base", [0.75, 0.5], ids=["b", "a"]).score(lagging.score(run, ["AL"]))
        >>> score.value, score.segments
        (0.625, array([0.5 , 0.75]))
        >>> print(score.signature)
        COMET|seg:none|mean:segment|column:ec1a86ea|n:2|v:0.2.0.dev0
    """

    name: str
    system: str
    values: Sequence[float] | Floats = field(repr=False)
    ids: Sequence[str] | None = field(default=None, repr=False)
    higher_is_better: bool = True
    path: str | None = None
    lines: Sequence[int] | None = field(default=None, repr=False)

    @property
    def metric(self) -> Metric:
        """A Metric whose values are read, not computed."""
        call = CALL.fullmatch(self.name)
        if call is None or call["params"] is not None:
            raise UsageError(f"a column cannot be called {self.name!r}: no spaces, brackets, or any of = , | :")
        try:
            known = metric(self.name)
        except MetricNameError:
            return Metric(
                name=self.name,
                compute=_refuse,
                unit="score",
                higher_is_better=self.higher_is_better,
                summary="A score per segment, from a file.",
                undefined=NO_SCORE,
            )
        raise UsageError(f"a column cannot be called {self.name}: that is {known!r}, which is computed from the log")

    def score(self, scores: Scores) -> Score:
        """The mean of the column over the segments of a system's scores; the signature has a hash of its values.

        Raises:
            DataError: not as many values as segments, or other ids.
        """
        metric, first = self.metric, next(iter(scores))
        rows = self._in_order([str(name) for name in first.ids.tolist()])[:, None]
        without = tuple(first.ids[np.isnan(rows[:, 0])].tolist())
        known: dict[str, str | None] = {"seg": first.signature.get("seg"), "mean": "segment"}
        fields = (("column", short_hash(repr(value) for value in rows[:, 0].tolist())),)
        return Score(
            metric=metric,
            value=metric.corpus(rows),
            statistics=rows,
            ids=first.ids,
            undefined=Undefined({NO_SCORE: without} if without else {}),
            unit="score",
            signature=Signature.make(metric.name_with_params, known, fields, len(rows) - len(without), __version__),
            resolved=metric,
            documents=first.documents,
        )

    def _in_order(self, names: list[str]) -> Floats:
        """The values in the order of the segments."""
        values = np.array(self.values, dtype=np.float64)
        counts = f"{counted(len(values), 'score')}, but {counted(len(names), 'segment')} in {self.system}"
        if self.ids is None:
            if len(values) != len(names):
                raise DataError(Fault("scores-count", f"{self.name}: {counts}", self.path))
            return values
        faults = Faults()
        row_of: dict[str, int] = {}
        known = set(names)
        for row, name in enumerate(map(str, self.ids)):
            line = None if self.lines is None else self.lines[row]
            if name in row_of or name not in known:
                what = "scored twice" if name in row_of else f"not a segment of {self.system}"
                faults.add(Fault("scores-ids", f"{self.name}: {what} ({counts})", self.path, line, name))
            row_of.setdefault(name, row)
        for name in names:
            if name not in row_of:
                faults.add(Fault("scores-ids", f"{self.name}: without a score ({counts})", self.path, segment=name))
        if faults:
            raise DataError(faults)
        return np.asarray(values[[row_of[name] for name in names]])


def _refuse(*_: object) -> Floats:
    raise MetricNameError("it is read from a file, not computed")


# ---- files ------------------------------------------------------------------------------------------------------


def read_column(path: str | Path, name: str, system: str, *, higher_is_better: bool = True) -> Column:
    r"""Read the scores of a system's segments.

    One number per line, in the order of the log; or a table (tabs, commas or semicolons) whose first line names an
    `id` and a `score`, or one of two cells, id and score, without names; or JSON lines with `id` and `score`. The
    score may also be called by the name of the metric. Without ids, the order is that of the log.

    Raises:
        DataError: the file is none of these, or a score is no number: every fault at once.

    Example:
        >>> import tempfile, pathlib
        >>> file = pathlib.Path(tempfile.mkdtemp(), "base.comet")
        >>> _ = file.write_text("id\tCOMET\n7\t0.8125\n9\tnan\n")
        >>> column = read_column(file, "COMET", "base")
        >>> column.values, column.ids
        (array([0.8125,    nan]), ('7', '9'))
    """
    report = ReadReport()
    file, texts = read_lines(path, report)
    faults = report.faults
    values, ids, lines = [], [], []
    for line, row_id, value in _rows(file, texts, name, faults):
        if isinstance(value, str) and not value.strip():
            faults.add(Fault("not-a-column", "an empty line; `nan` is a segment without a score", file, line, row_id))
            continue
        number = _number(value)
        if number is None:
            faults.add(Fault("bad-score", f"{name}: {str(value)[:40]}", file, line, row_id))
            continue
        values.append(number)
        ids.append(row_id)
        lines.append(line)
    known = [row_id for row_id in ids if row_id is not None]
    if known and len(known) < len(ids):
        faults.add(Fault("not-a-column", "an `id` on some lines, and none on others", file, lines[ids.index(None)]))
    if not values and not faults:
        faults.add(Fault("not-a-column", "there is nothing in it", file))
    if faults:
        raise DataError(faults)
    return Column(name, system, np.array(values), tuple(known) if known else None, higher_is_better, file, tuple(lines))


def _rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    """Line, id and score of each row, as they are written."""
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    first = next((text.strip() for text in lines if text.strip()), "")
    if first.startswith("{"):
        yield from _json_rows(path, lines, name, faults)
    elif decimal(first, NAN) is not None:
        yield from ((line, None, text) for line, text in enumerate(lines, 1))
    elif lines:
        yield from _table_rows(path, lines, name, faults)


def _json_rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    for line, text in enumerate(lines, 1):
        repeated: list[str] = []
        try:
            record = read_json(text, repeated)
        except ValueError:
            faults.add(Fault("not-json", text.strip()[:40], path, line))
            continue
        faults.add(*(Fault("repeated-key", key, path, line) for key in repeated))
        if not isinstance(record, dict):
            faults.add(Fault("not-an-object", text.strip()[:40], path, line))
            continue
        keys = {key.lower(): key for key in record}
        score = _first(keys, (name.lower(), *SCORES))
        if score is None:
            faults.add(Fault("not-a-column", f"no `score` among {', '.join(record) or 'nothing'}", path, line))
            continue
        named = _first(keys, IDS)
        yield line, None if named is None else str(record[keys[named]]), record[keys[score]]


def _table_rows(path: str, lines: list[str], name: str, faults: Faults) -> Iterator[Row]:
    separator = max(SEPARATORS, key=lines[0].count)
    head = split_cells(lines[0], separator)
    keys = {text.strip().lower(): column for column, text in enumerate(head)}
    score, named = _first(keys, (name.lower(), *SCORES)), _first(keys, IDS)
    start = 1
    if score is None and len(head) == 2 and decimal(head[1].strip(), NAN) is not None:
        keys, named, score, start = {"id": 0, "score": 1}, "id", "score", 0
    if score is None:
        faults.add(Fault("not-a-column", f"no column `score` or `{name}`: {lines[0].strip()[:40]}", path, 1))
        return
    for line, text in enumerate(lines[start:], start + 1):
        cells = split_cells(text, separator)
        if len(cells) != len(head):
            faults.add(Fault("not-csv", f"{counted(len(cells), 'cell')}, not {len(head)}", path, line))
            continue
        yield line, None if named is None else cells[keys[named]].strip(), cells[keys[score]].strip() or "nan"


def _first(keys: dict[str, Any], names: Sequence[str]) -> str | None:
    return next((name for name in names if name in keys), None)


def _number(value: object) -> float | None:
    """A finite number, or NaN where there is none; None if it is neither."""
    if value is None:
        return np.nan
    if isinstance(value, str):
        number = decimal(value.strip(), NAN)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:  # an integer of hundreds of digits
            return None
    else:
        return None
    return None if number is None or np.isinf(number) else number
