# SPDX-License-Identifier: Apache-2.0
"""`--on-error quarantine`: rows with faults go to a table of their own, and all others are scored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any

import click

from lagging.cli.common import Command, Talk
from lagging.cli.segments import is_parquet
from lagging.data.files import write_whole
from lagging.errors import DataError, Fault, UsageError, counted
from lagging.formats.quarantine import reason_of
from lagging.render.documents import tsv_field

__all__ = ["Aside", "setting_aside"]

FIELDS = ("file", "row", "id", "kind", "reason")
NAME = "quarantine.tsv"


class _Abandoned(Exception):
    """Something else went wrong."""


@dataclass
class Aside:
    """Where rows with faults go, if they are not to stop everything.

    Attributes:
        file: the table; None if a fault makes a log unfit.
        rows: how many rows it has.
        files: from how many files.
        kinds: how many of each kind.
    """

    file: str | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    _told: Callable[[Fault], None] | None = None
    _open: ExitStack = field(default_factory=ExitStack)

    def reading(self) -> dict[str, Any]:
        """What a reader of a log is given."""
        if self.file is not None and self._told is None:
            self._told = self._open.enter_context(_table(self.file))
        return {} if self.file is None else {"quarantine": self._tell}

    def _tell(self, fault: Fault) -> None:
        assert self._told is not None
        self.kinds[fault.kind] += 1
        self.files.add(fault.path or "")
        self._told(fault)

    def close(self) -> None:
        """Write the table, be it that nothing was set aside."""
        self._open.close()

    def abandon(self) -> None:
        """Leave no trace of a table that was not finished."""
        with suppress(_Abandoned), self._open:
            raise _Abandoned

    @property
    def said(self) -> str:
        """What was set aside, in words; nothing if nothing was."""
        if not self.kinds:
            return ""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        number = counted(sum(self.kinds.values()), "fault")
        return f"set aside: {number} in {counted(len(self.files), 'file')} ({kinds}): {self.file}"

    @property
    def record(self) -> dict[str, Any] | None:
        """What was set aside, for programs; None if that was not asked for."""
        if self.file is None:
            return None
        return {"file": self.file, "faults": sum(self.kinds.values()), "kinds": dict(sorted(self.kinds.items()))}

    def say(self, talk: Talk) -> None:
        """Say what was set aside."""
        if self.said:
            talk.say(f"note: {self.said}")


def _row(fault: Fault) -> tuple[str | None, int | None, str | None, str, str]:
    return fault.path, fault.line, None if fault.segment is None else str(fault.segment), fault.kind, reason_of(fault)


@contextmanager
def _table(path: str) -> Iterator[Callable[[Fault], None]]:
    """A table of faults, written whole or not at all."""
    binary = is_parquet(path)
    with (
        write_whole(path, errors="backslashreplace", binary=binary) as file,
        _parquet(file) if binary else _tsv(file) as tell,
    ):
        yield tell


@contextmanager
def _tsv(file: Any) -> Iterator[Callable[[Fault], None]]:
    file.write("\t".join(FIELDS) + "\n")
    yield lambda fault: file.write("\t".join(map(tsv_field, _row(fault))) + "\n") and None


@contextmanager
def _parquet(file: Any) -> Iterator[Callable[[Fault], None]]:
    from lagging.errors import optional

    pa = optional("pyarrow", "arrow")
    from pyarrow.parquet import ParquetWriter

    schema = pa.schema([(name, pa.int64() if name == "row" else pa.string()) for name in FIELDS])
    held: list[dict[str, Any]] = []
    with ParquetWriter(file, schema) as table:

        def tell(fault: Fault) -> None:
            held.append(dict(zip(FIELDS, _row(fault), strict=True)))
            if len(held) == 1 << 14:
                table.write_batch(pa.RecordBatch.from_pylist(held, schema=schema))
                held.clear()

        yield tell
        if held:
            table.write_batch(pa.RecordBatch.from_pylist(held, schema=schema))


def setting_aside(command: Command) -> Command:
    """Options about what is done with faults; they arrive as `aside`."""

    @wraps(command)
    def call(*args: Any, on_error: str, quarantine: str | None, output: str | None, **rest: Any) -> Any:
        if quarantine is not None and on_error != "quarantine":
            raise UsageError("--quarantine names the table of --on-error quarantine; give that too")
        if quarantine == "-":
            raise UsageError("--quarantine needs a file: standard output holds the scores")
        beside = NAME if output in (None, "-") else str(Path(str(output)).with_suffix("")) + "." + NAME
        aside = Aside((quarantine or beside) if on_error == "quarantine" else None)
        try:
            return command(*args, aside=aside, output=output, **rest)
        except DataError as error:
            if "nothing-left" in error.counts:  # the table is all that there is to show
                aside.close()
                aside.say(Talk())
            raise
        finally:
            aside.abandon()

    for option in reversed(OPTIONS):
        call = option(call)
    return call


OPTIONS = (
    click.option(
        "--on-error",
        type=click.Choice(["fail", "quarantine"]),
        default="fail",
        show_default=True,
        help="Rows with faults: score nothing, or set them aside and score the rest.",
    ),
    click.option(
        "--quarantine", metavar="FILE", help=f"The table of what is set aside, TSV or Parquet; {NAME} if not given."
    ),
)
