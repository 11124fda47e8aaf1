# SPDX-License-Identifier: Apache-2.0
"""Tables: what their columns are called, how a cell becomes numbers, and what holds for the whole of a table."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import msgspec

from lagging.data.checks import add_counts
from lagging.data.decimals import decimal, too_long
from lagging.data.run import COLUMNS, WRONG, Run
from lagging.errors import Fault, Note, UsageError, did_you_mean
from lagging.formats.line import brief, shown
from lagging.formats.report import ReadReport

__all__ = [
    "COUNTS",
    "KNOWN",
    "Matched",
    "check_names",
    "joined_labels",
    "label",
    "labels_of",
    "listed",
    "match",
    "number",
    "restored",
    "scalars",
    "strange",
    "usable",
]

ALIASES = {
    "id": ("index", "idx", "segment", "segment_id", "sentence_id"),
    "source_length": ("source_len", "src_length", "src_len"),
    "reference_length": ("reference_len", "ref_length", "ref_len"),
    "prediction": ("hypothesis", "hyp", "pred"),
    "reference": ("ref",),
    "source": ("src",),
    "document": ("doc", "doc_id", "docid", "document_id"),
    "name": ("system",),
}
"""Other names that tables give to a column. The column's own name wins if a table has both."""

NEEDED = ("delays", "source_length")
SCALARS = tuple(f.name for f in fields(Run) if f.name not in (*COLUMNS, "origin", "notes"))
"""What holds for the whole of a Run: unit, level, …, the repairs that it has seen."""
COUNTS = tuple(f.name for f in fields(Run) if f.name in SCALARS and f.default == ())
"""Those that count, by name, what was done to it."""

KNOWN = (*(c for c in COLUMNS if c not in ("line", "group")), *SCALARS)

WRONG_LIST = {"delays": ("delays-not-a-list", "bad-delay"), **{c: (w, w) for c, w in WRONG.items()}}
"""Kinds of fault of a column of lists: one that is no list, and one whose entries are no numbers."""

WRONG_NUMBER = {"source_length": "bad-source-length", **WRONG}


# ---- names ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Matched:
    """Which columns a table has.

    Attributes:
        places: position of each column that is known, by our name for it.
        unknown: names of the others.
        by: position of each column that segments are grouped by.
        absent: names that were asked for, by `--column-map` or `--by`, and are not there.
    """

    places: Mapping[str, int]
    unknown: tuple[str, ...]
    by: tuple[int, ...] = ()
    absent: tuple[str, ...] = ()


def plain_name(name: str) -> str:
    """A column's name without regard to case, spaces and hyphens.

    Example:
        >>> plain_name(" Source-Length")
        'source_length'
    """
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def match(names: Sequence[str], column_map: Mapping[str, str] | None = None, by: Sequence[str] = ()) -> Matched:
    """Find our columns among the names that a table has.

    Args:
        names: of the table's columns.
        column_map: what the table calls a column of ours.
        by: the columns, by the table's names or ours, that segments are grouped by.

    Example:
        >>> match(["index", "hyp", "delays", "src len", "BLEU"]).places
        {'id': 0, 'delays': 2, 'source_length': 3, 'prediction': 1}
        >>> match(["id", "emission_ms", "source_length", "lang"], {"delays": "emission_ms"}, by=["lang"])
        Matched(places={'id': 0, 'delays': 1, 'source_length': 2}, unknown=(), by=(3,), absent=())
    """
    found = [plain_name(name) for name in names]
    mapped = dict(column_map or {})
    places: dict[str, int] = {}
    absent = []
    given = {column: _place(name, names, found) for column, name in mapped.items()}
    for column in KNOWN:
        known = (n for n in (column, *ALIASES.get(column, ())) if n in found)
        place = given[column] if column in mapped else next((found.index(n) for n in known), None)
        if place is None:
            absent += [mapped[column]] if column in mapped else []
        elif column in mapped or place not in given.values():  # what a table calls by our name may be something else
            places[column] = place
    grouped = []
    for name in by:
        at = _place(name, names, found)
        at = places.get(plain_name(name)) if at is None else at
        if at is None:
            absent.append(name)
        else:
            grouped.append(at)
    if places.get("name") in grouped:
        del places["name"]  # systems that are told apart are not one system
    taken = {*places.values(), *grouped}
    unknown = tuple(names[place] for place in range(len(names)) if place not in taken)
    return Matched(places, unknown, tuple(grouped), tuple(absent))


def check_names(column_map: Mapping[str, str]) -> Mapping[str, str]:
    """What a log calls columns of ours; names that are not ours are refused."""
    for column in column_map:
        if column not in KNOWN:
            raise UsageError(
                f"there is no column {column!r} that a log could call otherwise.{did_you_mean(column, KNOWN)}"
            )
    return column_map


def _place(name: str, names: Sequence[str], plain: Sequence[str]) -> int | None:
    """Where a column is, by its name, or one that differs in case, spaces and hyphens only."""
    if name in names:
        return list(names).index(name)
    return plain.index(plain_name(name)) if plain_name(name) in plain else None


def usable(
    matched: Matched,
    names: Sequence[str],
    column_map: Mapping[str, str],
    report: ReadReport,
    path: str,
    line: int | None = None,
) -> bool:
    """Whether a table has what a log must have: times, or predictions alone; faults and notes are recorded."""
    plain = [plain_name(name) for name in names]
    used = {plain[place] for place in matched.places.values()}
    faults = [Fault("repeated-column", name, path, line) for name in sorted(used) if plain.count(name) > 1]
    needed = [column for column in NEEDED if column not in matched.places and column not in column_map]
    near = {column: _near(column, matched.unknown) for column in needed}
    if "prediction" not in matched.places or near.get("delays") != "":
        for column, other in near.items():
            faults.append(Fault("missing-column", f"no `{column}`{other or f' among: {_listed(names)}'}", path, line))
    for name in matched.absent:
        hint = did_you_mean(name, names) if names else ""
        faults.append(Fault("missing-column", f"no `{name}`.{hint}", path, line))
    report.faults.add(*faults)
    if matched.unknown and not faults:
        text = f"{_listed(matched.unknown)}: ignored, in {path}"
        report.notes.append(Note("unknown column", text))
    return not faults


def _near(column: str, names: Sequence[str]) -> str:
    """Which of the names may be that of a column, misspelt, as a message says it; nothing if none is."""
    hints = {name: did_you_mean(plain_name(name), [column]) for name in names}
    return next((f", but `{name}`.{hint}" for name, hint in hints.items() if "Did you mean" in hint), "")


def _listed(names: Sequence[str]) -> str:
    """Names of columns as a message shows them."""
    text = ", ".join(name.strip() or "(a column without a name)" for name in names)
    return text if len(text) <= 200 else text[:199] + "…"


# ---- groups -----------------------------------------------------------------------------------------------------

BETWEEN, NOTHING, ESCAPE = "\x1f", "\x00", "\x1e"
"""What stands between the labels of a segment in `Run.group`; for a label that there is not; before a letter that
stands for one of the three within a label."""
ESCAPED = {ESCAPE: f"{ESCAPE}e", BETWEEN: f"{ESCAPE}b", NOTHING: f"{ESCAPE}n"}


def label(value: object) -> str | None:
    """What a segment is labelled by, as text; None if there is nothing.

    Example:
        >>> label("de-en"), label(3), label(3.0), label(True), label(None)
        ('de-en', '3', '3', 'true', None)
    """
    if value is None or value is msgspec.UNSET or value != value:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else str(value)


def joined_labels(labels: Sequence[str | None]) -> str:
    """Labels as one text, as `Run.group` has it."""
    return BETWEEN.join(NOTHING if text is None else text if text.isprintable() else _escaped(text) for text in labels)


def _escaped(text: str) -> str:
    for character, letters in ESCAPED.items():
        text = text.replace(character, letters)
    return text


def _unescaped(text: str) -> str:
    for character, letters in reversed(ESCAPED.items()):
        text = text.replace(letters, character)
    return text


def labels_of(text: str | None, columns: int) -> tuple[str | None, ...]:
    r"""The labels that were joined.

    Example:
        >>> labels_of(joined_labels(["de-en", None, "\x00"]), 3)
        ('de-en', None, '\x00')
    """
    if text is None:
        return (None,) * columns
    parts = text.split(BETWEEN)
    return tuple(None if part == NOTHING else _unescaped(part) if ESCAPE in part else part for part in parts)


# ---- cells ------------------------------------------------------------------------------------------------------

WORDS = ("nan", "inf", "infinity")
"""What a number may be that is none; it is a fault, but that of a number."""
DECIMAL_COMMA = re.compile(r"[-+]?\d++,\d++", re.ASCII)
LIST_OF_NUMBERS = msgspec.json.Decoder(list[float])


def number(cell: str, column: str) -> tuple[float | None, list[Fault]]:
    """The number in a cell, None if it is empty, and what is wrong with it.

    Example:
        >>> number("3.5", "source_length")
        (3.5, [])
    """
    text = cell.strip()
    value = decimal(text, WORDS)
    if not text or value is not None:
        return value, []
    if DECIMAL_COMMA.fullmatch(text):
        return None, [Fault("decimal-comma", f"{column} {brief(text)}")]
    kind = WRONG_NUMBER.get(column, "bad-column")
    return None, [Fault(kind, f"{column} {shown(cell)}{too_long(text)}")]


def listed(cell: str, column: str) -> tuple[list[float] | None, list[Fault]]:
    r"""The numbers in a cell, None if it is empty, and what is wrong with them.

    Example:
        >>> [listed(cell, "delays")[0] for cell in ("[1, 2.5]", "1 2.5", "1;2.5", "[1. 2.5]", "[]", "")]
        [[1.0, 2.5], [1.0, 2.5], [1.0, 2.5], [1.0, 2.5], [], None]
        >>> print(*listed("[1, x]", "delays")[1], *listed("1,5 2,5", "delays")[1], sep="\n")
        token 2: a delay is not a number: "x"
        token 1: a decimal comma: delays 1,5
    """
    text = cell.strip()
    if not text:
        return None, []
    try:
        return LIST_OF_NUMBERS.decode(text), []
    except (msgspec.DecodeError, UnicodeEncodeError):
        return _explained(text, column)


def _explained(text: str, column: str) -> tuple[list[float] | None, list[Fault]]:
    """Numbers that are not a list in JSON: as NumPy shows them, or with nothing but spaces or semicolons between."""
    no_list, no_number = WRONG_LIST.get(column, ("bad-column", "bad-column"))
    name = "" if column == "delays" else f"{column} "
    bracketed = text.startswith("[")
    if bracketed != text.endswith("]") or (bracketed and len(text) == 1):
        return None, [Fault(no_list, name + shown(text))]
    inner = text[1:-1] if bracketed else text
    pieces = re.split(r"\s*[,;]\s*|\s+" if bracketed else r"\s*;\s*|\s+", inner.strip()) if inner.strip() else []
    values = []
    for token, piece in enumerate(pieces, 1):
        if piece == "null" and column == "shown":
            values.append(math.nan)
        elif (value := decimal(piece, WORDS)) is not None:
            values.append(value)
        elif DECIMAL_COMMA.fullmatch(piece):
            return None, [Fault("decimal-comma", f"{column} {brief(piece)}", token=token)]
        elif len(pieces) == 1 and not bracketed:
            return None, [Fault(no_list, name + shown(text))]
        else:
            what = piece if piece == "null" else shown(piece) + too_long(piece)
            return None, [Fault(no_number, name + what, token=token)]
    return values, []


# ---- what holds for all of it -----------------------------------------------------------------------------------


def scalars(run: Run) -> dict[str, Any]:
    """What holds for the whole of a Run, without what is as everywhere.

    Example:
        >>> scalars(Run.from_delays([[1, 2]], source_length=[2], name="base"))
        {'unit': 'token', 'level': 'token', 'name': 'base'}
    """
    said = {f.name: getattr(run, f.name) for f in fields(Run) if f.name in SCALARS}
    usual = {f.name: f.default for f in fields(Run) if f.name not in ("unit", "level")}
    kept = {name: value for name, value in said.items() if value != usual.get(name)}
    return {name: dict(value) if name in COUNTS else value for name, value in kept.items()}


def strange(name: str, value: object) -> list[Fault]:
    """What is wrong with what a file says of the whole of its Run.

    Example:
        >>> strange("repaired", {"monotone": 3})
        []
        >>> [fault.detail for fault in (*strange("repaired", {"monotone": "x"}), *strange("name", 3))]
        ['repaired: {"monotone": "x"}', 'name: 3']
    """
    if name in COUNTS:
        fits = isinstance(value, dict) and all(type(count) is int for count in value.values())
    else:
        fits = isinstance(value, str)
    return [] if fits else [Fault("bad-value", f"{name}: {shown(value)}")]


def restored(runs: Iterator[Run], said: Mapping[str, Any]) -> Iterator[Run]:
    """The parts of a Run with the name that it had when it was written, and what had been done to it before."""
    for part, run in enumerate(runs):
        before = said if part == 0 else {}  # of the whole, so counted once
        counts: dict[str, Any] = {c: add_counts(getattr(run, c), before.get(c, {}).items()) for c in COUNTS}
        yield replace(run, name=str(said.get("name", "")), **counts)
