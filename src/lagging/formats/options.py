# SPDX-License-Identifier: Apache-2.0
"""How a log is to be read: the one list of read options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import InitVar, dataclass, field
from pathlib import Path
from typing import Any, Self, TypedDict, Unpack

from lagging.data.checks import FAR, check_repairs
from lagging.data.spoken import ALIGNED
from lagging.data.strip import check_kinds
from lagging.data.tokens import check_units, resolve_level
from lagging.errors import UsageError, did_you_mean
from lagging.formats.tables import check_names

__all__ = ["ReadKeywords", "ReadOptions"]


class ReadKeywords(TypedDict, total=False):
    """The read options as keywords of the functions that read; `ReadOptions` says what each of them is."""

    format: str | None
    level: str | None
    unit: str | None
    unit_hint: str | None
    repair: Iterable[str]
    strip: Iterable[str]
    column_map: Mapping[str, str] | None
    group_by: str | Iterable[str]
    word_times: str | Path | None
    word_alignment: str | Path | None
    aligned_with: str
    source_length: float | None
    time_unit: str | None
    spm_model: str | Path | None


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
        word_times: a file, or a folder of files, with the times of the source words.
        word_alignment: a file with a word alignment, a line for each row.
        aligned_with: what it aligns with the source: "hypothesis" or "reference".
        source_length: length of the source of each recording of an event stream, in ms; None for its last time.
        time_unit: unit of the times of an event stream, "s" or "ms", where its dialect has both; None to detect it.
        needs_length: whether every row must have a source length; not where a segmentation gives it.
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
    word_times: str | Path | None = None
    word_alignment: str | Path | None = None
    aligned_with: str = "hypothesis"
    source_length: float | None = None
    time_unit: str | None = None
    needs_length: bool = True
    spm_model: InitVar[str | Path | None] = None

    @classmethod
    def make(cls, **keywords: Unpack[ReadKeywords]) -> Self:
        """Make options of the keywords of a function that reads; one name stands for a list of one.

        Raises:
            TypeError: there is no such option.

        Example:
            >>> ReadOptions.make(repair="clip", group_by=["lang"]).repair
            ('clip',)
            >>> ReadOptions.make(levle="word")
            Traceback (most recent call last):
            TypeError: there is no read option 'levle'. Did you mean level?
        """
        values: dict[str, Any] = dict(keywords)
        for name in values:
            if name not in ReadKeywords.__annotations__:
                raise TypeError(f"there is no read option {name!r}.{did_you_mean(name, ReadKeywords.__annotations__)}")
        for name in ("repair", "strip", "group_by"):
            if isinstance(values.get(name), str):
                values[name] = (values[name],)
        return cls(**values)

    def __post_init__(self, spm_model: str | Path | None) -> None:
        """Check the options, and turn a SentencePiece model into its level."""
        check_repairs(tuple(self.repair))
        level = resolve_level(self.level, spm_model)
        self._check_words()
        check_units(self.unit, level)
        check_names(self.column_map or {})
        if self.source_length is not None and not 0 < self.source_length < FAR:
            raise UsageError(f"a source length is a number of ms above 0, but is {self.source_length:g}")
        if self.time_unit not in (None, "s", "ms"):
            raise UsageError(f"the times of a stream are in s or ms, not {self.time_unit!r}")
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

    @property
    def word_files(self) -> tuple[str | Path | None, ...]:
        """The files that are read beside the logs."""
        return self.word_times, self.word_alignment

    def _check_words(self) -> None:
        """Refuse what would change nothing, or count other words than the alignment does."""
        if self.word_alignment is not None and self.word_times is None:
            raise UsageError("--word-alignment says which word belongs to which; give the times: --word-times FILE")
        if self.word_alignment is None and self.aligned_with != ALIGNED[0]:
            raise UsageError(
                "--aligned-with says which text --word-alignment aligns with the source; give --word-alignment too"
            )
        if self.word_alignment is not None and self.strip:
            raise UsageError("--strip leaves out target tokens that --word-alignment counts; leave one of them out")
