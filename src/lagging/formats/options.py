# SPDX-License-Identifier: Apache-2.0
"""How a log is to be read: the one list of read options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path

from lagging.data.checks import check_repairs
from lagging.data.strip import check_kinds
from lagging.data.tokens import check_units, resolve_level
from lagging.formats.tables import check_names

__all__ = ["ReadOptions"]


@dataclass(frozen=True)
class ReadOptions:
    """What is requested of a reader: the one list of read options, passed whole, checked when it is made.

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
        spm_model: the SentencePiece model whose pieces the delays count; it becomes the level.

    Raises:
        UsageError: an option has no such value.

    Example:
        >>> ReadOptions(level="word", repair=("clip",)).repair
        ('clip',)
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
    spm_model: InitVar[str | Path | None] = None

    def __post_init__(self, spm_model: str | Path | None) -> None:
        """Check the options, and turn a SentencePiece model into its level."""
        check_repairs(tuple(self.repair))
        level = resolve_level(self.level, spm_model)
        check_units(self.unit, level)
        check_names(self.column_map or {})
        checked = {
            "level": level,
            "repair": tuple(self.repair),
            "strip": check_kinds(self.strip),
            "columns": None if self.columns is None else frozenset(self.columns),
            "column_map": dict(self.column_map or {}),
            "group_by": tuple(self.group_by),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
