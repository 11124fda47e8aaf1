# SPDX-License-Identifier: Apache-2.0
"""The table of faulty rows that `--on-error quarantine` writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from lagging.cli.messages import Messages
from lagging.cli.segments import is_parquet
from lagging.data.files import write_whole
from lagging.errors import Fault, counted, optional
from lagging.formats.quarantine import reason_of
from lagging.render.records import tsv_field

__all__ = ["TABLE_NAME", "Quarantine"]

FIELDS = ("file", "row", "id", "kind", "reason")
TABLE_NAME = "quarantine.tsv"


class _Discarded(Exception):
    """Another error ended the command."""


@dataclass
class Quarantine:
    """A table of faulty rows, written while the log is read.

    Attributes:
        file: the table; None if a fault makes a log unfit.
        kinds: how many faults there are of each kind.
        files: the files that they are in.
    """

    file: str | None = None
    kinds: Counter[str] = field(default_factory=Counter)
    files: set[str] = field(default_factory=set)
    _write: Callable[[Fault], None] | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def add(self) -> Callable[[Fault], None] | None:
        """The function that takes a fault into the table; None if a fault makes a log unfit."""
        if self.file is not None and self._write is None:
            self._write = self._stack.enter_context(_table(self.file))
        return None if self.file is None else self._add

    def _add(self, fault: Fault) -> None:
        assert self._write is not None
        self.kinds[fault.kind] += 1
        self.files.add(fault.path or "")
        self._write(fault)

    def close(self) -> None:
        """Write the table, even if it has no rows."""
        self._stack.close()

    def discard(self) -> None:
        """Remove a table that is not complete."""
        with suppress(_Discarded), self._stack:
            raise _Discarded

    @property
    def summary(self) -> str:
        """How many faults there are, in words; empty if there are none."""
        if not self.kinds:
            return ""
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(self.kinds.items()))
        number = counted(sum(self.kinds.values()), "fault")
        return f"set aside: {number} in {counted(len(self.files), 'file')} ({kinds}): {self.file}"

    @property
    def record(self) -> dict[str, Any] | None:
        """How many faults there are, for JSON; None if a fault makes a log unfit."""
        if self.file is None:
            return None
        return {"file": self.file, "faults": sum(self.kinds.values()), "kinds": dict(sorted(self.kinds.items()))}

    def print_summary(self, messages: Messages) -> None:
        """Print how many faults there are."""
        if self.summary:
            messages.print(f"note: {self.summary}")


def _row(fault: Fault) -> tuple[str | None, int | None, str | None, str, str]:
    return fault.path, fault.line, None if fault.segment is None else str(fault.segment), fault.kind, reason_of(fault)


@contextmanager
def _table(path: str) -> Iterator[Callable[[Fault], None]]:
    """A table of faults, written whole or not at all."""
    binary = is_parquet(path)
    with (
        write_whole(path, errors="backslashreplace", binary=binary) as file,
        _parquet(file) if binary else _tsv(file) as add,
    ):
        yield add


@contextmanager
def _tsv(file: Any) -> Iterator[Callable[[Fault], None]]:
    file.write("\t".join(FIELDS) + "\n")
    yield lambda fault: file.write("\t".join(map(tsv_field, _row(fault))) + "\n") and None


@contextmanager
def _parquet(file: Any) -> Iterator[Callable[[Fault], None]]:
    pa = optional("pyarrow", "arrow")
    from pyarrow.parquet import ParquetWriter

    schema = pa.schema([(name, pa.int64() if name == "row" else pa.string()) for name in FIELDS])
    rows: list[dict[str, Any]] = []
    with ParquetWriter(file, schema) as table:

        def add(fault: Fault) -> None:
            rows.append(dict(zip(FIELDS, _row(fault), strict=True)))
            if len(rows) == 1 << 14:
                table.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
                rows.clear()

        yield add
        if rows:
            table.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
