# SPDX-License-Identifier: Apache-2.0
"""How a log is to be read: the one list of read options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lagging.data.checks import check_repairs
from lagging.data.strip import check_kinds
from lagging.data.tokens import check_units, settle_level

__all__ = ["ReadOptions"]


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
