# SPDX-License-Identifier: Apache-2.0
"""What is known of the segments of several parts of a log: end to end, or added up."""

from __future__ import annotations

import hashlib
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lagging.errors import MetricError
from lagging.metrics import Metric
from lagging.metrics.record import Statistics, addends
from lagging.ragged import Floats, Ints, Ragged
from lagging.run import Ids, Run, Texts, join_ids

__all__ = ["Found", "Keep", "Rows", "Segments", "Sums", "join_documents", "keys", "missing", "reference_hashes"]

Keep = Literal["all", "values", "keys", "sums"]
"""What is kept of segments that were scored: all that comparing takes; values and names; keys, by which systems are
known to have the same segments; or nothing but sums."""

Codes = npt.NDArray[np.int8]
"""Why each segment has no value; 0 if it has one."""


@dataclass(frozen=True)
class Found:
    """What one metric gives.

    Attributes:
        value: of the corpus.
        n: number of segments.
        counts: how many have each code.
        statistics, codes: of each segment; none, if they were added up.
    """

    value: float
    n: int
    counts: Counter[int]
    statistics: Statistics
    codes: Codes


@dataclass
class Rows:
    """The statistics of one metric, segment by segment."""

    rows: list[Statistics] = field(default_factory=list)
    codes: list[Codes] = field(default_factory=list)

    def add(self, rows: Statistics, codes: Codes) -> None:
        """Some more segments."""
        self.rows.append(rows)
        self.codes.append(codes)

    def join(self, other: Rows) -> None:
        """The segments of another, which come next."""
        self.rows += other.rows
        self.codes += other.codes

    def found(self, settled: Metric) -> Found:
        """What the metric gives."""
        widths = sorted({part.shape[1] for part in self.rows if not isinstance(part, Ragged)})
        if len(widths) > 1:
            raise MetricError(
                f"{settled!r}: its function gave {widths[0]} columns for some segments, {widths[-1]} for others"
            )
        rows, codes = stack(self.rows), np.concatenate(self.codes)
        return Found(settled.corpus(rows), len(codes), _counted(codes), rows, codes)


@dataclass
class Sums:
    """The statistics of one metric, added up without rounding, so that the value is that of `Rows` to the last bit.

    Attributes:
        n, some: number of segments, and of those that have a value.
        counts: how many have each code.
        columns: of each column of the statistics, numbers that have exactly the sum of all segments.

    Example:
        >>> import lagging
        >>> sums = Sums()
        >>> for rows in ([[1e16], [0.1]], [[0.2], [-1e16]]):
        ...     sums.add(np.array(rows), np.zeros(2, dtype=np.int8))
        >>> sums.columns, sums.found(lagging.metric("AL")).value
        ([[0.30000000000000004, -2.7755575615628914e-17]], 0.07500000000000001)
    """

    n: int = 0
    some: int = 0
    counts: Counter[int] = field(default_factory=Counter)
    columns: list[list[float]] = field(default_factory=list)

    def add(self, rows: Statistics, codes: Codes) -> None:
        """Some more segments."""
        assert not isinstance(rows, Ragged)  # a metric that pools tokens does not add up
        there = rows[~missing(rows)]
        self.join(Sums(len(rows), len(there), _counted(codes), [[*addends(column)] for column in there.T]))

    def join(self, other: Sums) -> None:
        """The segments of another, which come next."""
        self.n += other.n
        self.some += other.some
        self.counts += other.counts
        if other.some:
            both = zip_longest(self.columns, other.columns, fillvalue=())
            self.columns = [_folded(chain(mine, theirs)) for mine, theirs in both]

    def found(self, settled: Metric) -> Found:
        """What the metric gives."""
        value = settled.of_sums([math.fsum(column) for column in self.columns], self.some)
        none = np.empty((0, len(self.columns)))
        return Found(value, self.n, self.counts, none, np.empty(0, dtype=np.int8))


def _counted(codes: Codes) -> Counter[int]:
    return Counter({code: count for code, count in enumerate(np.bincount(codes).tolist()) if count})


def _folded(numbers: Iterable[float]) -> list[float]:
    """As few numbers as can have exactly the sum of these: each is what all before it leave, rounded."""
    left, out = list(numbers), list[float]()
    while total := math.fsum(left):
        out.append(total)
        if not math.isfinite(total):
            break
        left.append(-total)
    return out


@dataclass
class Segments:
    """What is kept of segments beside their statistics: lists of columns, one for each part."""

    keep: Keep
    n: int = 0
    ids: list[Ids] = field(default_factory=list)
    documents: list[Texts | None] = field(default_factory=list)
    sources: list[Floats] = field(default_factory=list)
    references: list[Ints] = field(default_factory=list)

    @property
    def valued(self) -> bool:
        """Whether the values of segments are kept."""
        return self.keep in ("all", "values")

    def add(self, run: Run) -> None:
        """Some more segments."""
        self.n += len(run)
        if self.valued:
            self.documents.append(run.document)
        if self.keep != "sums":
            self.ids.append(run.id if self.valued else keys(run.id))
        if self.keep == "all":
            self.sources.append(run.source_length)
            self.references.append(reference_hashes(run))

    def join(self, other: Segments) -> None:
        """The segments of another, which come next."""
        self.n += other.n
        self.ids += other.ids
        self.documents += other.documents
        self.sources += other.sources
        self.references += other.references

    def columns(self) -> dict[str, Any]:
        """All parts end to end; the number of segments, if that is all that is known of them."""
        if not self.valued:
            return {"ids": np.empty(0, dtype=np.int64), "count": self.n}
        out = {"ids": join_ids(self.ids), "documents": join_documents(self.documents, self.ids)}
        if self.keep == "all":
            out |= {"sources": np.concatenate(self.sources), "references": np.concatenate(self.references)}
        return out


def keys(ids: Ids) -> Ints:
    """A number for each name, other for other names but by a chance of 2⁻⁶⁴; 7 and "7" are one name.

    Example:
        >>> keys(np.array([7, 8])).tolist(), keys(np.array(["7", "talk-8"], dtype=object)).tolist()
        ([7, 8], [7, -7045287484367045979])
    """
    if ids.dtype != object:
        return ids.astype(np.int64, copy=False)
    return np.array([_key(str(name)) for name in ids.tolist()], dtype=np.int64)


def _key(name: str) -> int:
    if len(name) <= 20 and name.removeprefix("-").isdecimal():
        number = int(name)
        if str(number) == name and -(2**63) <= number < 2**63:
            return number
    coded = name.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(coded, digest_size=8).digest(), "little", signed=True)


def join_documents(parts: Sequence[Texts | None], ids: Sequence[Ids]) -> Texts | None:
    """The documents of all parts; None if no part has them."""
    if all(part is None for part in parts):
        return None
    nothing = (np.full(len(some), None) for some in ids)
    return np.concatenate([n if p is None else p for p, n in zip(parts, nothing, strict=True)])


def missing(rows: Statistics) -> npt.NDArray[np.bool_]:
    """Which segments have no value."""
    return np.asarray(rows.lengths == 0 if isinstance(rows, Ragged) else np.isnan(rows).any(axis=1), dtype=bool)


def stack(parts: Sequence[Statistics]) -> Statistics:
    """Rows of all parts."""
    ragged = [part for part in parts if isinstance(part, Ragged)]
    if ragged:
        return Ragged.concat(ragged)
    rows = [part for part in parts if not isinstance(part, Ragged)]
    return rows[0] if len(rows) == 1 else np.concatenate(rows)


def reference_hashes(run: Run) -> Ints:
    """A number for each reference, other for other texts; 0 without any."""
    if run.reference is None:
        return np.zeros(len(run), dtype=np.int64)
    texts = run.reference.tolist()
    return np.array([zlib.crc32(text.strip().encode("utf-8", "replace")) if text else 0 for text in texts], np.int64)
