# SPDX-License-Identifier: Apache-2.0
"""What must hold of an outcome, whatever the input; and how two outcomes differ."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch

import numpy as np

from fuzz.parsers import Row, letters
from lagging.data.columns import first_shown
from lagging.data.ragged import Ragged
from lagging.data.run import Run
from lagging.errors import DataError, Fault, LaggingError


class Difference(AssertionError):
    """Two ways to the same result came to different ones, and nobody said so."""


def agree(what: str, one: Any, other: Any) -> None:
    """Two results are the same.

    Raises:
        Difference: they are not.
    """
    if one == other:
        return
    if isinstance(one, dict) and isinstance(other, dict):  # what is the same tells nothing
        differ = [key for key in {**one, **other} if one.get(key) != other.get(key) or (key in one) != (key in other)]
        one, other = ({key: some[key] for key in differ if key in some} for some in (one, other))
    raise Difference(f"{what}: {short(one)} and {short(other)}")


def short(value: Any) -> str:
    """A value as a message shows it."""
    text = repr(value)
    return text if len(text) <= 600 else text[:600] + "…"


@dataclass(frozen=True)
class Outcome:
    """A result, or the error that was raised on purpose instead; any other error is a crash, and is not caught here."""

    value: Any = None
    error: LaggingError | None = None

    @property
    def faults(self) -> list[Fault]:
        """What is wrong with the input, if that is what was said."""
        return list(self.error.faults) if isinstance(self.error, DataError) else []

    @property
    def refusal(self) -> str | None:
        """Why nothing was done, if it was no fault of the data."""
        return None if self.error is None or self.faults else f"{type(self.error).__name__}: {self.error}"


def outcome(call: Callable[[], Any]) -> Outcome:
    """What came of a call."""
    try:
        return Outcome(call())
    except LaggingError as error:
        return Outcome(error=error)


def faults(found: Iterable[Fault]) -> list[tuple[Any, ...]]:
    """Faults so that they can be compared."""
    return sorted((f.kind, f.path or "", f.line or 0, str(f.segment), f.token or 0, f.detail) for f in found)


@contextmanager
def small_parts(segments: int = 2) -> Iterator[None]:
    """Logs are read in parts of a few segments, so that a small one has several."""
    from lagging.formats import delimited, segment_rows, sltev, source

    with (
        patch.object(source, "BATCH_BYTES", 64),
        patch.object(segment_rows, "SEGMENTS_PER_PART", segments),
        patch.object(delimited, "ROWS_PER_CHUNK", segments),
        patch.object(sltev, "PART", segments),
    ):
        yield


# ---- values -----------------------------------------------------------------------------------------------------


def values(run: Run, columns: Iterable[str], digits: int | None = None) -> dict[str, Any]:
    """Columns as text, so that NaN is equal to itself: to the last bit, or to so many digits."""

    def shown(value: Any) -> str:
        to_the_bit = digits is None or not isinstance(value, float)
        if to_the_bit:
            return repr(value + 0.0 if isinstance(value, float) else value)  # -0 is 0
        return f"{round(value, digits) + 0.0:.{digits}f}"

    found: dict[str, Any] = {}
    for column in columns:
        value = first_shown(run) if column == "first_times" else getattr(run, column)
        if isinstance(value, Ragged):
            found[column] = [list(map(shown, row.tolist())) for row in (value[r] for r in range(len(run)))]
        elif isinstance(value, np.ndarray):
            found[column] = list(map(shown, value.tolist()))
        else:
            found[column] = value
    return found


def read_again(run: Run, rows: list[Row]) -> None:
    """A Run has what a second reading of its file gives.

    Raises:
        Difference: a value is another.
    """
    agree("number of segments, and by a second reading", len(run), len(rows))
    for place, row in enumerate(rows):
        for column, expected in row.items():
            if run.unit == "none" and column in ("delays", "source_length", "elapsed"):
                continue
            found = _letters(run, place) if column == "letters" else _entry(getattr(run, column), place)
            if found is None and column not in ("prediction", "reference"):
                continue
            if column == "prediction" and run.prediction is None:
                continue
            if column == "reference" and run.reference is None:
                continue
            agree(
                f"{column} of segment {place}, and by a second reading", _plain(column, found), _plain(column, expected)
            )


def _letters(run: Run, place: int) -> str | None:
    return None if run.prediction is None or run.prediction[place] is None else letters(run.prediction[place])


def _entry(column: Any, place: int) -> Any:
    if column is None:
        return None
    return column[place].tolist() if isinstance(column, Ragged) else column.item(place)


def _plain(column: str, value: Any) -> Any:
    """A value as the two readings have it in common: numbers by their digits, ids as text."""
    if column == "id":
        return str(int(value)) if isinstance(value, float) else str(value)
    if isinstance(value, list):
        return [repr(float(number) + 0.0) for number in value]
    return repr(float(value) + 0.0) if isinstance(value, int | float) else value


# ---- scores -----------------------------------------------------------------------------------------------------


def sound(scores: Iterable[Any]) -> None:
    """A score is finite; or it is undefined, and a reason is given."""
    for score in scores:
        if math.isinf(score.value):
            raise Difference(f"{score.metric!r} is {score.value}: neither a number nor undefined")
        if math.isnan(score.value) and score.n and not int(score.undefined):
            raise Difference(f"{score.metric!r} is undefined, and no segment is said to be")


def numbers(scores: Iterable[Any]) -> dict[str, str]:
    """Scores by their signatures, to the last bit."""
    return {str(score.signature): repr(float(score.value)) for score in scores}


# ---- output -----------------------------------------------------------------------------------------------------


def strict_json(text: str) -> Any:
    """What a JSON text holds.

    Raises:
        Difference: it is no JSON, or has numbers that JSON does not have.
    """

    def constant(name: str) -> None:
        raise Difference(f"{name} in JSON")

    try:
        return json.loads(text, parse_constant=constant)
    except ValueError as error:
        raise Difference(f"not JSON: {error}: {short(text)}") from None


CONTROLS = {*map(chr, (*range(32), 127, *range(128, 160)))} - {"\n", "\t"}


def harmless(what: str, text: str) -> None:
    """What is printed for people has no control characters but the ends of lines."""
    found = sorted(CONTROLS & set(text))
    if found:
        at = text.index(found[0])
        raise Difference(f"{what} has the control character {found[0]!r}: {text[max(at - 60, 0) : at + 30]!r}")
