# SPDX-License-Identifier: Apache-2.0
"""JSON that is not a line per segment: an array of objects, or objects printed over several lines.

Such a file is read whole, and given on as if each object had a line of its own; messages name the line on which the
object begins.
"""

from __future__ import annotations

import json
import re

import msgspec
import numpy as np

from lagging.data.trees import TreeError, read_json
from lagging.errors import DataError, Fault
from lagging.formats.source import Batch, Source, first_line

__all__ = ["has_json_values", "unfold"]

ARRAY = re.compile(rb"\s*\[\s*(?:[{\]]|\Z)")
"""The beginning of an array of objects."""
WRAPPED = re.compile(rb"\s*\{\s*(?:\n|\Z)")
"""The beginning of an object over several lines, as programs print it."""
CONTINUED = (b",", b"{", b"[", b":")
"""How a line ends that breaks off within an object."""
ELEMENTS = msgspec.json.Decoder(list[msgspec.Raw])
OBJECT = msgspec.json.Decoder(msgspec.Raw)
DECODER = json.JSONDecoder()
SPACE = re.compile(r"\s*+")


def has_json_values(head: bytes) -> bool:
    r"""Whether a file that begins like this has an array of objects, or objects over several lines.

    Example:
        >>> [has_json_values(head) for head in (b'[{"id": 1},\n', b'{\n "id": 1\n}', b'{"id": 1}\n', b"[music] yes\n")]
        [True, True, False, False]
    """
    if ARRAY.match(head) or WRAPPED.match(head):
        return True
    line = first_line(head).strip()
    return line.startswith(b"{") and line.endswith(CONTINUED) and not _is_value(line)


def _is_value(text: bytes) -> bool:
    try:
        OBJECT.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def unfold(source: Source) -> bool:
    """If a file has an array of objects, or objects over several lines, have it give a line per object.

    Returns:
        Whether it has.

    Raises:
        DataError: it begins like one, and is no JSON.
    """
    head = source.head()
    if not has_json_values(head):
        return False
    text = source.whole()
    try:
        source.give(_lines(text, source.path))
    except DataError:
        if ARRAY.match(head) or WRAPPED.match(head):
            raise
        starts = np.concatenate([[0], np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1])
        source.give(Batch(1, text, starts[starts < len(text)]))  # lines, of which the first breaks off
        return False
    return True


def _lines(text: bytes, path: str) -> Batch:
    """The objects of a text, each on a line of its own."""
    objects = [part for value in _values(text, path) for part in _elements(value)]
    lines, numbers, place, line = [], [], 0, 1
    for part in objects:
        begin = text.index(part, place)
        line += text.count(b"\n", place, begin)
        numbers.append(line)
        line += part.count(b"\n")
        place = begin + len(part)
        lines.append(part.replace(b"\r", b" ").replace(b"\n", b" ") + b"\n")  # no text has a bare line break
    ends = np.cumsum([0, *map(len, lines)])
    return Batch(1, b"".join(lines), ends[:-1], tuple(numbers))


def _elements(value: bytes) -> list[bytes]:
    """The elements of an array; an object itself."""
    if not value.startswith(b"["):
        return [value]
    try:
        return [bytes(raw) for raw in ELEMENTS.decode(value)]
    except msgspec.DecodeError:  # it has NaN or Infinity, which will be a fault of the element
        letters = value.decode()
    found, place = list[bytes](), _after_space(letters, 1)
    while letters[place] != "]":
        _, end = DECODER.raw_decode(letters, place)
        found.append(letters[place:end].encode())
        place = _after_space(letters, end)
        place = _after_space(letters, place + 1) if letters[place] == "," else place
    return found


def _after_space(letters: str, place: int) -> int:
    return SPACE.match(letters, place).end()  # type: ignore[union-attr]


def _values(text: bytes, path: str) -> list[bytes]:
    """The values of a text that has one or several, one after the other."""
    bare = text.strip()
    if _is_value(bare):
        return [bare]
    try:
        letters = text.decode("utf-8")
    except UnicodeDecodeError as error:
        line = text.count(b"\n", 0, error.start) + 1
        raise DataError(Fault("not-utf8", f"byte 0x{text[error.start]:02x}", path, line)) from None
    values, place = [], len(letters) - len(letters.lstrip())
    try:
        while place < len(letters):
            _, end = DECODER.raw_decode(letters, place)
            values.append(letters[place:end].encode())
            place = _after_space(letters, end)
        read_json("[" + ",".join(value.decode() for value in values) + "]", [])  # how deep it is
    except json.JSONDecodeError as error:
        ends = error.pos >= len(letters.rstrip()) or error.msg.startswith("Unterminated string")
        kind = "broken-off" if ends else "not-json"
        raise DataError(Fault(kind, f"{error.msg} at column {error.colno}", path, error.lineno)) from None
    except (RecursionError, TreeError, ValueError):
        raise DataError(Fault("not-json", "nested too deeply", path, 1)) from None
    return values
