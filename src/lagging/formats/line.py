# SPDX-License-Identifier: Apache-2.0
"""Lines of JSON: many decoded at once, or one by itself, to find its faults; and the fields of ours."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from lagging.data.run import LISTS, NUMBERS, WRONG
from lagging.data.tokens import is_torn
from lagging.data.trees import json_decoder
from lagging.errors import Fault
from lagging.formats.keys import has_repeated_keys
from lagging.formats.source import Batch

__all__ = [
    "FIELDS",
    "UNREAD",
    "Line",
    "brief",
    "decode",
    "explain",
    "name_of",
    "read_as_is",
    "read_id",
    "read_number",
    "shown",
    "surrogate_fault",
]


UNREAD: Any = ...
"""The value of a column that a row has, but that is not read."""


class Line(msgspec.Struct, gc=False):
    """The fields that are read of a line; all others are skipped."""

    index: int | str | UnsetType = UNSET
    id: int | str | UnsetType = UNSET
    delays: list[int | float] | UnsetType | None = UNSET
    source_length: float | UnsetType | None = UNSET
    prediction: str | UnsetType | None = UNSET
    prediction_spm: Any = UNSET
    raw_units: Any = UNSET
    reference: str | UnsetType | None = UNSET
    elapsed: Any = UNSET
    source: Any = UNSET
    reference_length: float | UnsetType | None = UNSET
    durations: Any = UNSET
    arrivals: Any = UNSET
    compute: Any = UNSET
    steps: Any = UNSET
    queue_times: Any = UNSET
    omnisteval_times: Any = UNSET
    fbk_times: Any = UNSET
    fbk1_times: Any = UNSET
    first_times: Any = UNSET
    compute_share: float | UnsetType | None = UNSET
    recording_share: float | UnsetType | None = UNSET
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
    failed: str | UnsetType | None = UNSET


def name_of(row: Line) -> int | str | None:
    """The index or id of a line, if it has one."""
    if row.index is not UNSET:
        return row.index
    return row.id if row.id is not UNSET else None


JSON = json.JSONEncoder(ensure_ascii=False, default=str, check_circular=False)
LONGEST = 60
"""Characters of a value that a message shows."""

Read = Callable[[str, Any], tuple[Any, list[Fault]]]
"""From a key and its value to the value that is read, and its faults."""

Row = TypeVar("Row")


def shown(value: object) -> str:
    """A value as a message shows it."""
    if isinstance(value, str):
        return brief(json.dumps(value[:LONGEST], ensure_ascii=False))
    if not isinstance(value, list | dict | bool | None):
        return brief(str(value))
    text = ""
    for part in JSON.iterencode(value):  # stop early: the value may be large
        text += part
        if len(text) > LONGEST:
            break
    return brief(text)


def brief(text: str) -> str:
    """A text, or its beginning if it is long."""
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "…"


def decode(batch: Batch, decoder: msgspec.json.Decoder[Row]) -> list[Row] | None:
    """The objects of a batch, one per line; None if the lines must be decoded one by one."""
    try:
        if not batch.text.isascii():
            batch.text.decode("utf-8")  # msgspec does not check the fields that it skips
        # exactly one object on each line
        one_each = (np.frombuffer(batch.text, np.uint8)[batch.starts] == ord("{")).all()
        rows = decoder.decode_lines(batch.text) if one_each and not has_repeated_keys(batch) else []
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return rows if len(rows) == len(batch.starts) else None


def explain(line: bytes, readers: Mapping[str, Read]) -> tuple[dict[str, Any] | None, list[Fault]]:
    """The values of a line under the given keys, and its faults; None if it is not an object."""
    try:
        text = line.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        if error.end == len(line) and error.reason == "unexpected end of data":  # no line break: cut within a character
            return None, [Fault("truncated", f"within a letter, at byte {error.start + 1}")]
        return None, [Fault("not-utf8", f"byte {error.start + 1} is 0x{line[error.start]:02x}")]
    repeated: list[str] = []
    try:
        record = json_decoder(repeated).decode(text)
    except json.JSONDecodeError as error:
        kind = "not-json" if line.endswith(b"\n") else "truncated"
        return None, [Fault(kind, f"{error.msg.removesuffix(' at')} at column {error.pos + 1}")]
    except RecursionError:
        return None, [Fault("not-json", "nested too deeply")]
    except ValueError as error:  # an integer of more than 4300 digits
        return None, [Fault("not-json", str(error).partition(";")[0])]
    if not isinstance(record, dict):
        return None, [Fault("not-an-object", shown(record))]
    values: dict[str, Any] = {}
    faults = [Fault("repeated-key", shown(key)) for key in dict.fromkeys(repeated)]
    for key, read in readers.items():
        if key in record:
            values[key], wrong = read(key, record[key])
            faults += wrong
    return values, faults


# ---- values ---------------------------------------------------------------------------------------------------------


def surrogate_fault(key: str) -> Fault:
    """The fault of a text with half of a surrogate pair, which UTF-8 cannot encode."""
    return Fault("not-utf8", f"half of a surrogate pair in {key}")


def read_as_is(key: str, value: Any) -> tuple[Any, list[Fault]]:
    """The value as it is; it is checked later."""
    return value, []


def _read_label(key: str, value: Any) -> tuple[Any, list[Fault]]:
    """A value that enters no score, so never a fault; a text that UTF-8 cannot encode is replaced."""
    first = value[:1] if isinstance(value, list) else [value]
    if any(isinstance(part, str) and is_torn(part) for part in first):
        return str(first[0]).encode("utf-8", "replace").decode("utf-8"), []
    return value, []


def read_id(key: str, value: object) -> tuple[Any, list[Fault]]:
    """A whole number, or a text."""
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    if isinstance(value, str) and is_torn(value):
        return UNSET, [surrogate_fault(key)]
    if isinstance(value, str | int) and not isinstance(value, bool):
        return value, []
    return UNSET, [Fault("bad-id", shown(value))]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _read_delays(key: str, value: object) -> tuple[Any, list[Fault]]:
    if value is None:
        return None, []
    if not isinstance(value, list):
        return UNSET, [Fault("delays-not-a-list", shown(value))]
    wrong = [Fault("bad-delay", shown(v), token=t) for t, v in enumerate(value, 1) if not _is_number(v)]
    return (UNSET, wrong[:1]) if wrong else ([_float(v) for v in value], [])


def _float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def read_number(kind: str) -> Read:
    """A reader of numbers; anything else is a fault of this kind."""

    def read(key: str, value: object) -> tuple[Any, list[Fault]]:
        if value is None or _is_number(value):
            return None if value is None else _float(value), []
        return UNSET, [Fault(kind, _show_with_key(kind, key, value))]

    return read


def _read_text(kind: str) -> Read:
    def read(key: str, value: object) -> tuple[Any, list[Fault]]:
        if isinstance(value, str) and is_torn(value):
            return UNSET, [surrogate_fault(key)]
        if value is None or isinstance(value, str):
            return value, []
        return UNSET, [Fault(kind, _show_with_key(kind, key, value))]

    return read


def _show_with_key(kind: str, key: str, value: object) -> str:
    """A value as a message shows it; with its key, if the kind of fault does not name it."""
    return f"{key}: {shown(value)}" if kind in ("bad-value", "bad-column") else shown(value)


FIELDS: dict[str, Read] = {
    "index": read_id,
    "id": read_id,
    "delays": _read_delays,
    "source_length": read_number("bad-source-length"),
    "prediction": _read_text("bad-prediction"),
    "prediction_spm": read_as_is,
    "raw_units": read_as_is,
    "reference": _read_text("bad-reference"),
    "source": _read_label,
    "document": _read_label,
    **dict.fromkeys(LISTS, read_as_is),
    **{column: read_number(WRONG.get(column, "bad-column")) for column in NUMBERS},
    **dict.fromkeys(("seg", "unit", "level", "failed"), _read_text("bad-value")),
}
"""How each field of a line is read, when the line is decoded by itself."""
