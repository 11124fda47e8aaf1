# SPDX-License-Identifier: Apache-2.0
"""How to read a log, and what was found while reading it."""

from __future__ import annotations

from dataclasses import dataclass, field

from lagging.errors import Faults, Note

__all__ = ["Options"]


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
    refused: list[tuple[int | str | None, int, str]] = field(default_factory=list)
    placed: int = 0
    strip: tuple[str, ...] = ()
    torn: list[str] = field(default_factory=list)
