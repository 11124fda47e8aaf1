# SPDX-License-Identifier: Apache-2.0
"""Tables: the names of columns, the labels of groups, numbers in cells, and what holds for a whole table."""

from __future__ import annotations

import csv
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
    "MAPS",
    "Matched",
    "check_columns",
    "check_names",
    "check_setting",
    "joined_labels",
    "label",
    "labels_of",
    "match",
    "parse_list",
    "parse_number",
    "restore_settings",
    "scalars",
    "split_cells",
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
SCALARS = tuple(f.name for f in fields(Run) if f.name not in (*COLUMNS, "speech_out", "transcribed", "origin", "notes"))
"""Fields of a Run that hold for all its segments: unit, level, …, the repairs done to it."""
COUNTS = ("repaired", "stripped")
"""Those of them that count what was done, by name."""
MAPS = (*COUNTS, "given")
"""Those of them that hold a value by name."""

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
    plain_names = [plain_name(name) for name in names]
    mapped = dict(column_map or {})
    places: dict[str, int] = {}
    absent = []
    mapped_places = {column: _place(name, names, plain_names) for column, name in mapped.items()}
    for column in KNOWN:
        known = (n for n in (column, *ALIASES.get(column, ())) if n in plain_names)
        place = mapped_places[column] if column in mapped else next((plain_names.index(n) for n in known), None)
        if place is None:
            absent += [mapped[column]] if column in mapped else []
        elif column in mapped or place not in mapped_places.values():  # a column with our name may be something else
            places[column] = place
    grouped = []
    for name in by:
        at = _place(name, names, plain_names)
        at = places.get(plain_name(name)) if at is None else at
        if at is None:
            absent.append(name)
        else:
            grouped.append(at)
    if places.get("name") in grouped:
        del places["name"]  # several systems, grouped by name, are not one system
    taken = {*places.values(), *grouped}
    unknown = tuple(names[place] for place in range(len(names)) if place not in taken)
    return Matched(places, unknown, tuple(grouped), tuple(absent))


def check_names(column_map: Mapping[str, str]) -> Mapping[str, str]:
    """Return the map; refuse names of columns that are not ours."""
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


def check_columns(
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
    """A hint, for a message, at a name that may be a misspelt column; "" if there is none."""
    hints = {name: did_you_mean(plain_name(name), [column]) for name in names}
    return next((f", but `{name}`.{hint}" for name, hint in hints.items() if "Did you mean" in hint), "")


def _listed(names: Sequence[str]) -> str:
    """Names of columns as a message shows them."""
    text = ", ".join(name.strip() or "(a column without a name)" for name in names)
    return text if len(text) <= 200 else text[:199] + "…"


# ---- groups -----------------------------------------------------------------------------------------------------

BETWEEN, NOTHING, ESCAPE = "\x1f", "\x00", "\x1e"
"""In `Run.group`: the separator of labels; the mark of a missing label; the escape of these three within a label."""
ESCAPED = {ESCAPE: f"{ESCAPE}e", BETWEEN: f"{ESCAPE}b", NOTHING: f"{ESCAPE}n"}


def label(value: object) -> str | None:
    """A value as the text of a label; None if there is no value.

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
"""Words that are read as numbers; a later check refuses them where they are faults."""
DECIMAL_COMMA = re.compile(r"[-+]?\d++,\d++", re.ASCII)
LIST_OF_NUMBERS = msgspec.json.Decoder(list[float])


def split_cells(line: str, separator: str) -> list[str]:
    """The cells of one line of a table; none if the csv module cannot read it.

    Example:
        >>> split_cells('7;"a; b"', ";")
        ['7', 'a; b']
    """
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def parse_number(cell: str, column: str) -> tuple[float | None, list[Fault]]:
    """The number in a cell, None if it is empty, and what is wrong with it.

    Example:
        >>> parse_number("3.5", "source_length")
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


def parse_list(cell: str, column: str) -> tuple[list[float] | None, list[Fault]]:
    r"""The numbers in a cell, None if it is empty, and what is wrong with them.

    Example:
        >>> [parse_list(cell, "delays")[0] for cell in ("[1, 2.5]", "1 2.5", "1;2.5", "[1. 2.5]", "[]", "")]
        [[1.0, 2.5], [1.0, 2.5], [1.0, 2.5], [1.0, 2.5], [], None]
        >>> print(*parse_list("[1, x]", "delays")[1], *parse_list("1,5 2,5", "delays")[1], sep="\n")
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
    """Numbers that are not a JSON list: as NumPy prints them, or separated by spaces or semicolons."""
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


# ---- settings of a whole table -----------------------------------------------------------------------------------


def scalars(run: Run) -> dict[str, Any]:
    """The fields of a Run that hold for all its segments, without those that have their default.

    Example:
        >>> scalars(Run.from_delays([[1, 2]], source_length=[2], name="base"))
        {'unit': 'token', 'level': 'token', 'name': 'base'}
    """
    values = {f.name: getattr(run, f.name) for f in fields(Run) if f.name in SCALARS}
    usual = {f.name: f.default for f in fields(Run) if f.name not in ("unit", "level")}
    kept = {name: value for name, value in values.items() if value != usual.get(name)}
    return {name: dict(value) if name in MAPS else value for name, value in kept.items()}


def check_setting(name: str, value: object) -> list[Fault]:
    """A fault if a field that holds for the whole Run has a wrong value.

    Example:
        >>> check_setting("repaired", {"monotone": 3})
        []
        >>> [fault.detail for fault in (*check_setting("repaired", {"monotone": "x"}), *check_setting("name", 3))]
        ['repaired: {"monotone": "x"}', 'name: 3']
    """
    if name in MAPS:
        kind = int if name in COUNTS else str
        fits = isinstance(value, dict) and all(type(entry) is kind for entry in value.values())
    else:
        fits = isinstance(value, str)
    return [] if fits else [Fault("bad-value", f"{name}: {shown(value)}")]


def restore_settings(runs: Iterator[Run], declared: Mapping[str, Any]) -> Iterator[Run]:
    """The parts of a Run with the name, repairs, stripped tokens and given files that it was written with."""
    for part, run in enumerate(runs):
        before = declared if part == 0 else {}  # counts are of the whole Run: add them once
        counts: dict[str, Any] = {c: add_counts(getattr(run, c), before.get(c, {}).items()) for c in COUNTS}
        given = tuple(declared.get("given", {}).items())
        yield replace(run, name=str(declared.get("name", "")), given=given, **counts)
