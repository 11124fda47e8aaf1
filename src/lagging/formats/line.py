# SPDX-License-Identifier: Apache-2.0
"""One line of JSON: what is read of it, and, where it cannot be read, what is wrong with it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from lagging.text import is_torn

__all__ = ["Line", "explain", "name_of", "shown"]


class Line(msgspec.Struct, gc=False):
    """What is read of a line; everything else in it is skipped."""

    index: int | str | UnsetType = UNSET
    id: int | str | UnsetType = UNSET
    delays: list[int | float] | UnsetType | None = UNSET
    source_length: float | UnsetType | None = UNSET
    prediction: str | UnsetType | None = UNSET
    prediction_spm: Any = UNSET
    reference: str | UnsetType | None = UNSET
    elapsed: Any = UNSET
    source: Any = UNSET
    reference_length: float | UnsetType | None = UNSET
    durations: Any = UNSET
    arrivals: Any = UNSET
    compute: Any = UNSET
    steps: Any = UNSET
    erased: float | UnsetType | None = UNSET
    gone: float | UnsetType | None = UNSET
    revisions: float | UnsetType | None = UNSET
    offset: float | UnsetType | None = UNSET
    recording_end: float | UnsetType | None = UNSET
    due: Any = UNSET
    due_partial: Any = UNSET
    shown: Any = UNSET
    document: Any = UNSET
    seg: str | UnsetType | None = UNSET
    unit: str | UnsetType | None = UNSET
    level: str | UnsetType | None = UNSET


def name_of(row: Line) -> int | str | None:
    """The index or id of a line, if it has one."""
    if row.index is not UNSET:
        return row.index
    return row.id if row.id is not UNSET else None


Trouble = tuple[str, str, int | None]
"""Kind of fault, offending value, target token."""


def shown(value: object) -> str:
    """A value as a message shows it."""
    text = (
        json.dumps(value, ensure_ascii=False) if value is None or isinstance(value, str | bool | dict) else str(value)
    )
    return text if len(text) <= 60 else text[:57] + "…"


def explain(line: bytes, fields: frozenset[str], keys: Mapping[str, str]) -> tuple[Line | None, list[Trouble]]:
    """One line, and what is wrong with the given fields of it; `keys` says which are called otherwise in the file."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if error.end == len(line) and error.reason == "unexpected end of data":  # no line break: cut within a letter
            return None, [("truncated", f"within a letter, at byte {error.start + 1}", None)]
        return None, [("not-utf8", f"byte {error.start + 1} is 0x{line[error.start]:02x}", None)]
    try:
        found = json.loads(text)
    except json.JSONDecodeError as error:
        cut = not line.endswith(b"\n")
        return None, [
            ("truncated" if cut else "not-json", f"{error.msg.removesuffix(' at')} at column {error.pos + 1}", None)
        ]
    except RecursionError:
        return None, [("not-json", "nested too deeply", None)]
    except ValueError as error:  # e.g. an integer of more than 4300 digits
        return None, [("not-json", str(error), None)]
    if not isinstance(found, dict):
        return None, [("not-an-object", shown(found), None)]
    row, trouble = Line(), []
    for name, reader in FIELDS.items():
        key = keys.get(name, name)
        if key in found and name in fields:
            value, wrong = reader(found[key])
            trouble += wrong
            setattr(row, name, value)
    return row, trouble


def _read_aside(value: Any) -> tuple[Any, list[Trouble]]:
    """What enters no score is never a fault; a text that no file can hold is made one that a file can."""
    first = value[:1] if isinstance(value, list) else [value]
    if any(isinstance(part, str) and is_torn(part) for part in first):
        return str(first[0]).encode("utf-8", "replace").decode("utf-8"), []
    return value, []


def _read_id(value: object) -> tuple[Any, list[Trouble]]:
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    if isinstance(value, str) and is_torn(value):
        return UNSET, [("not-utf8", f"half of a surrogate pair in {shown(value)}", None)]
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value, []
    return UNSET, [("bad-id", shown(value), None)]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_times(kind: str, one: str) -> Any:
    def read(value: object) -> tuple[Any, list[Trouble]]:
        if value is None:
            return None, []
        if not isinstance(value, list):
            return UNSET, [(kind, shown(value), None)]
        wrong: list[Trouble] = [(one, shown(v), t) for t, v in enumerate(value, 1) if not _is_number(v)]
        return (UNSET, wrong[:1]) if wrong else ([_float(v) for v in value], [])

    return read


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _read_number(kind: str) -> Any:
    def read(value: object) -> tuple[Any, list[Trouble]]:
        if value is None or _is_number(value):
            return None if value is None else _float(value), []
        return UNSET, [(kind, shown(value), None)]

    return read


def _read_text(kind: str, *also: type) -> Any:
    def read(value: object) -> tuple[Any, list[Trouble]]:
        if isinstance(value, str) and is_torn(value):
            return UNSET, [("not-utf8", f"half of a surrogate pair in {shown(value)}", None)]
        if value is None or isinstance(value, (str, *also)):
            return value, []
        return UNSET, [(kind, shown(value), None)]

    return read


FIELDS = {
    "index": _read_id,
    "id": _read_id,
    "delays": _read_times("delays-not-a-list", "bad-delay"),
    "source_length": _read_number("bad-source-length"),
    "prediction": _read_text("bad-prediction"),
    "prediction_spm": lambda value: (value, []),
    "reference": _read_text("bad-reference"),
    "elapsed": lambda value: (value, []),
    "source": _read_aside,
    "reference_length": _read_number("bad-value"),
    "durations": lambda value: (value, []),
    "arrivals": lambda value: (value, []),
    "compute": lambda value: (value, []),
    "steps": lambda value: (value, []),
    "erased": _read_number("bad-value"),
    "gone": _read_number("bad-value"),
    "revisions": _read_number("bad-value"),
    "offset": _read_number("bad-value"),
    "recording_end": _read_number("bad-value"),
    "due": lambda value: (value, []),
    "due_partial": lambda value: (value, []),
    "shown": lambda value: (value, []),
    "document": _read_aside,
    "seg": _read_text("bad-value"),
    "unit": _read_text("bad-value"),
    "level": _read_text("bad-value"),
}
