# SPDX-License-Identifier: Apache-2.0
"""How to read a log, and what was found while reading it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lagging.data.checks import check_repairs
from lagging.data.strip import check_kinds
from lagging.data.tokens import check_units, settle_level
from lagging.errors import Fault, Faults, Note
from lagging.formats.source import Source

__all__ = ["Options", "ReadOptions", "Trouble"]


@dataclass(frozen=True)
class ReadOptions:
    """What is requested of a reader: the one list of read options, passed whole. `ReadOptions.make` checks them.

    Attributes:
        format: name of the format; None to recognise it.
        level: what a target token is; None to detect it.
        unit: "token" or "ms"; None to detect it.
        unit_hint: the unit to take where the log leaves it to be guessed.
        repair: names of repairs.
        strip: kinds of target tokens to strip with their delays.
        columns: columns to read beyond those that every score needs; None for all.
        column_map: the name that the log has for a column of ours, such as {"delays": "emission_ms"}.
        group_by: the columns that segments are grouped by; their labels are in `Run.group`.
    """

    format: str | None = None
    level: str | None = None
    unit: str | None = None
    unit_hint: str | None = None
    repair: tuple[str, ...] = ()
    strip: tuple[str, ...] = ()
    columns: frozenset[str] | None = None
    column_map: Mapping[str, str] = field(default_factory=dict)
    group_by: tuple[str, ...] = ()

    @classmethod
    def make(
        cls,
        *,
        format: str | None = None,
        level: str | None = None,
        unit: str | None = None,
        unit_hint: str | None = None,
        spm_model: str | Path | None = None,
        repair: Iterable[str] = (),
        strip: Iterable[str] = (),
        columns: Iterable[str] | None = None,
        column_map: Mapping[str, str] | None = None,
        group_by: Iterable[str] = (),
    ) -> Self:
        """Check read options, and turn a SentencePiece model into its level.

        Raises:
            UsageError: an option has no such value.

        Example:
            >>> ReadOptions.make(level="word", repair=["clip"]).repair
            ('clip',)
        """
        from lagging.formats.tables import check_names

        repairs = tuple(repair)
        check_repairs(repairs)
        resolved = settle_level(level, spm_model)
        check_units(unit, resolved)
        return cls(
            format=format,
            level=resolved,
            unit=unit,
            unit_hint=unit_hint,
            repair=repairs,
            strip=check_kinds(strip),
            columns=None if columns is None else frozenset(columns),
            column_map=check_names(column_map or {}),
            group_by=tuple(group_by),
        )


Trouble = tuple[str, str, int | None]
"""Kind of fault, offending value, target token."""


@dataclass
class Options:
    """What the caller asked for, and what the readers found.

    Attributes:
        format: name of the format; None to recognise it.
        level: what a target token is; None to find out.
        unit: "token" or "ms"; None to find out.
        unit_hint: the unit to take where the log leaves it to be guessed.
        repair: names of repairs.
        strip: kinds of target tokens to strip.
        columns: columns wanted beyond those that every score needs; None for all.
        faults: what makes the log unfit to be scored.
        notes: what a reader of the scores must know.
        stop: whether parts stop coming after a fault.
        refused: name, line and file of the lines with a fault of their own, whose names count all the same.
        placed: how many segments the files before had, for files whose segments have no names.
        by: names of the columns that segments are grouped by.
        column_map: what tables, or the keys of JSON, call a column of ours, where it is no name that is known.
        quarantine: told of every fault, where rows with faults are left out; None if a fault makes a log unfit.
        torn: places of last lines that break off, and were left out because that was asked for.
    """

    format: str | None = None
    level: str | None = None
    unit: str | None = None
    repair: tuple[str, ...] = ()
    columns: frozenset[str] | None = None
    faults: Faults = field(default_factory=Faults)
    notes: list[Note] = field(default_factory=list)
    unit_hint: str | None = None
    stop: bool = True
    refused: list[tuple[int | str, int, str]] = field(default_factory=list)
    placed: int = 0
    strip: tuple[str, ...] = ()
    torn: list[str] = field(default_factory=list)
    by: tuple[str, ...] = ()
    column_map: Mapping[str, str] = field(default_factory=dict)
    quarantine: Callable[[Fault], None] | None = None

    def refuse(self, trouble: Iterable[Trouble], source: Source, line: int, name: int | str | None) -> None:
        """Record the faults of a line, which is left out."""
        self.faults.add(*(Fault(kind, what, source.path, line, name, token) for kind, what, token in trouble))
        if name is not None:
            self.refused.append((name, line, source.path))

    def tolerates(self, trouble: Sequence[Trouble], source: Source, line: int) -> bool:
        """Whether a line only breaks off, and may be left out for it; then it is."""
        if "torn" not in self.repair or not trouble or trouble[0][0] != "truncated":
            return False
        self.torn.append(f"{source.path}:{line}")
        return True

    def marked(self, source: Source) -> None:
        """Say that a file, read to its end, began with a byte order mark, if it did."""
        if source.bom:
            self.notes.append(Note("byte order mark", f"at the start of {source.path}: ignored"))

    def skipped(self, source: Source, blank: int) -> None:
        """Say that there were blank lines, if there were any."""
        if blank:
            self.notes.append(Note("blank line", f"skipped, in {source.path}", blank, noun="line"))
