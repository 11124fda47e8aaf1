# SPDX-License-Identifier: Apache-2.0
"""Errors, faults and notes: what is wrong, where, and how to fix it.

    LaggingError
    ├── DataError           a log or a column that cannot be scored (also a ValueError)
    ├── MetricError         a metric that cannot be computed on this Run (also a ValueError)
    │   └── MetricNameError     a metric, parameter or value that does not exist (also a UsageError)
    ├── UsageError          an argument that makes no sense (also a ValueError)
    └── MissingExtraError   an optional package is not installed (also an ImportError)

A `Fault` makes a file unusable until it is mended. A `Note` is something a reader of the score must know,
with the number of segments it concerns. Their words are made here, and those of a fault in `lagging.errors.catalogue`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from lagging.errors.catalogue import KINDS
from lagging.errors.printable import printable
from lagging.errors.remedies import words_for_reader

__all__ = [
    "DataError",
    "Fault",
    "LaggingError",
    "MetricError",
    "MetricNameError",
    "MissingExtraError",
    "Note",
    "UsageError",
]

SHOWN = 5
"""How many segments, or kinds of fault, a message names before it says how many more there are."""

LONGEST_ID = 100
"""Characters of the name of a segment that a message shows."""

DOUBTFUL = ("elapsed below ideal", "failed", "index gap", "no test", "suspicious unit", "torn", "unfinished run")
"""Kinds of note that make a number doubtful, beside those in capitals."""

LISTED = ("conflict",)
"""Kinds of fault of which a message names every one: each has to be decided."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with one place of one file.

    Attributes:
        kind: what is wrong, as a short name (a key of `lagging.errors.catalogue.KINDS`).
        detail: the offending value.
        path, line: where in which file; None for data that came from Python.
        segment: the id of the segment; None where it could not be read.
        token: 1-based position of the target token; None where the fault is not one token's.
    """

    kind: str
    detail: str = ""
    path: str | None = None
    line: int | None = None
    segment: int | str | None = None
    token: int | None = None

    @property
    def what(self) -> str:
        """What is wrong, in words."""
        return KINDS[self.kind][0]

    @property
    def why(self) -> str:
        """Why it cannot be scored."""
        return KINDS[self.kind][1]

    @property
    def fix(self) -> str:
        """How to mend it."""
        return KINDS[self.kind][2]

    @property
    def place(self) -> str:
        """Where it is: `file:line`, as far as known."""
        if self.path is None:
            return ""
        return self.path if self.line is None else f"{self.path}:{self.line}"

    def __str__(self) -> str:
        """One line: place, segment, token, what, value."""
        within = [] if self.segment is None else [f"segment {shown_id(self.segment)}"]
        within += [] if self.token is None else [f"token {self.token}"]
        message = f"{self.what}: {self.detail}" if self.detail else self.what
        return printable(": ".join(part for part in (self.place, ", ".join(within), message) if part))


def shown_id(name: object) -> str:
    """The name of a segment as a message shows it."""
    text = printable(str(name))
    return text if len(text) <= LONGEST_ID else f"{text[: LONGEST_ID // 2]}…{text[-LONGEST_ID // 2 :]}"


def _listed(names: Sequence[object], total: int) -> str:
    more = total - len(names)
    return ", ".join(map(shown_id, names)) + (f" and {more} more" if more > 0 else "")


def counted(count: int, noun: str) -> str:
    """`1 segment`, `2 segments`."""
    return f"{count} {noun}" + "s" * (count != 1)


@dataclass(frozen=True)
class Note:
    """Something a reader of the score must know, with how many segments it concerns.

    Notes with the same kind and text add up, so that a log read in parts tells what a log read whole tells.

    Attributes:
        kind: what it is about; in capitals where it makes a number doubtful.
        text: what a reader must know.
        count: the number of segments, or of what `noun` says; 0 for a note about the whole log.
        segments: the first of them.
        noun: what is counted.
        normal: where this is to be expected, such as "in whole talks"; empty where it is not.
    """

    kind: str
    text: str
    count: int = 0
    segments: tuple[int | str, ...] = ()
    noun: str = "segment"
    normal: str = ""

    @property
    def doubtful(self) -> bool:
        """Whether it makes a number doubtful, so that it may change a conclusion."""
        return self.kind.isupper() or self.kind in DOUBTFUL

    def __str__(self) -> str:
        """`kind: 3 segments (7, 9, 12): text`."""
        if not self.count:
            return printable(f"{self.kind}: {self.text}")
        names = f" ({_listed(self.segments[:SHOWN], self.count)})" if self.segments else ""
        return printable(f"{self.kind}: {counted(self.count, self.noun)}{names}: {self.text}")

    def __add__(self, other: Note) -> Note:
        """The same note about the segments of both."""
        return replace(self, count=self.count + other.count, segments=(self.segments + other.segments)[:SHOWN])


def merge_notes(notes: Iterable[Note]) -> tuple[Note, ...]:
    """Add up the notes that say the same, in the order of their first appearance."""
    merged: dict[tuple[str, str], Note] = {}
    for note in notes:
        key = (note.kind, note.text)
        merged[key] = merged[key] + note if key in merged else note
    return tuple(merged.values())


class LaggingError(Exception):
    """Whatever `lagging` raises on purpose."""

    def __str__(self) -> str:
        """The message, with remedies for Python; on the command line, with its options."""
        return words_for_reader(super().__str__())


@dataclass
class Faults:
    """The faults of a file, collected so that all of them are reported at once; memory stays bounded.

    Attributes:
        limit: how many of a kind are kept; the rest is counted.
        mended: kinds that a repair is about to mend, and that are not faults therefore.
    """

    limit: int = 1000
    mended: tuple[str, ...] = ()
    kept: list[Fault] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def add(self, *faults: Fault) -> None:
        """Count each fault, and keep the first ones of its kind."""
        for fault in faults:
            if fault.kind in self.mended:
                continue
            seen = self.counts.get(fault.kind, 0)
            self.counts[fault.kind] = seen + 1
            if seen < self.limit:
                self.kept.append(fault)

    def sorted(self) -> tuple[Fault, ...]:
        """Those kept, in the order of the file."""
        return tuple(sorted(self.kept, key=lambda f: (f.path or "", f.line or 0, f.token or 0)))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.counts)

    def __len__(self) -> int:
        """How many there are, kept or not."""
        return sum(self.counts.values())


class DataError(LaggingError, ValueError):
    """A log, or a column, that cannot be scored: every fault, each with place, reason and remedy.

    Attributes:
        faults: the faults, in the order of the file (at most a thousand of each kind).
        counts: how many there are of each kind.
        path, line, segment: of the first fault.
    """

    def __init__(self, faults: Faults | Fault) -> None:
        if isinstance(faults, Fault):
            fault, faults = faults, Faults()
            faults.add(fault)
        self.faults = faults.sorted()
        self.counts = dict(faults.counts)
        first = self.faults[0]
        self.path, self.line, self.segment = first.path, first.line, first.segment
        super().__init__(self._text())

    def _text(self) -> str:
        kinds = list(dict.fromkeys(fault.kind for fault in self.faults))
        blocks = [self._block(kind) for kind in kinds[:SHOWN]]
        if len(kinds) > SHOWN:
            more = len(kinds) - SHOWN
            kind = "kind" if more == 1 else "kinds"
            blocks.append(f"and {more} more {kind} of fault: `lagging validate` lists them all.")
        return "\n".join(blocks)

    def _block(self, kind: str) -> str:
        alike = [fault for fault in self.faults if fault.kind == kind]
        first, others = alike[0], self.counts[kind] - 1
        where = f" in {first.place}" if first.place else ""
        where += "" if first.segment is None else f" (segment {shown_id(first.segment)})"
        where += "" if first.token is None else f", token {first.token}"
        lines = [first.what + where + (f": {first.detail}" if first.detail else ""), f"  {first.why}"]
        if kind in LISTED:
            lines += [f"  also in {f.place} (segment {shown_id(f.segment)}): {f.detail}" for f in alike[1:]]
            lines += [f"  and {others + 1 - len(alike)} more"] * (others >= len(alike))
        elif others:
            named = [_distinguish(fault, first) for fault in alike[1 : 1 + SHOWN]]
            lines[-1] += f" {others} more with the same fault: {_listed(named, others)}."
        return "\n".join(map(printable, [*lines, f"  fix: {first.fix}"]))


def _distinguish(fault: Fault, first: Fault) -> str:
    """How a fault is named beside another of its kind: by its segment, or its line, or its file if that is another."""
    if fault.path != first.path:
        return fault.place
    named = f"line {fault.line}" if fault.line else fault.detail
    return named if fault.segment is None else shown_id(fault.segment)


class MetricError(LaggingError, ValueError):
    """A metric that cannot be computed on this Run."""


class UnavailableError(MetricError):
    """A metric that needs something that is not installed: its score is undefined, even if no other is computed."""


class UsageError(LaggingError, ValueError):
    """An argument that makes no sense."""


class MetricNameError(MetricError, UsageError):
    """A metric that does not exist, or has no such parameter, or not with that value."""


class MissingExtraError(LaggingError, ImportError):
    """An optional package is not installed; the message has the line that installs it."""

    def __init__(self, package: str, extra: str | None = None) -> None:
        what = package if extra is None else f"'lagging[{extra}]'"
        super().__init__(f"{package} is not installed\n  fix: pip install {what}")
        self._made_from = (package, extra)

    def __reduce__(self) -> tuple[object, ...]:
        """By what it was made from, so that it can go from one process to another."""
        return (MissingExtraError, self._made_from)


def optional(package: str, extra: str | None = None) -> Any:
    """A package that need not be installed.

    Raises:
        MissingExtraError: it is not.
    """
    try:
        return import_module(package)
    except ImportError:
        raise MissingExtraError(package, extra) from None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """` Did you mean X?`, or the known words, for an error message."""
    words = sorted(known)
    lower = {w.lower(): w for w in words}
    near = difflib.get_close_matches(word.lower(), lower, n=1)
    if not words:
        return " There are none."
    return f" Did you mean {lower[near[0]]}?" if near else f" Known: {', '.join(words)}."
