# SPDX-License-Identifier: Apache-2.0
"""Ids that parts of a log share: what hashes and sorted runs find is what a dictionary of all names finds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lagging import Run
from lagging.data.run import Origin
from lagging.formats.ids import SeenIds

WHOLE = st.lists(st.integers(0, 40), min_size=1, max_size=8)
GROWING = st.lists(st.integers(0, 40), min_size=1, max_size=8, unique=True).map(sorted)
TEXT = st.lists(st.sampled_from(["a", "b", "7", "8", "x y", "ü"]), min_size=1, max_size=6)
PARTS = st.lists(st.tuples(st.one_of(WHOLE, GROWING, TEXT), st.sampled_from(["p", "q"])), min_size=1, max_size=8)


def part(names: list[int] | list[str], path: str, line: int) -> Run:
    """A part of a file, from some line on; ids may occur twice in it."""
    n = len(names)
    run = Run.from_delays([[1]] * n, source_length=[1] * n)
    ids = np.array(names) if isinstance(names[0], int) else np.array(names, dtype=object)
    return replace(run, id=ids, line=np.arange(line, line + n), origin=Origin(path))


@settings(max_examples=300, deadline=None)
@given(PARTS)
def test_what_is_found_is_what_a_dictionary_finds(parts: list[tuple[list[int] | list[str], str]]) -> None:
    seen, first, wanted = SeenIds(), dict[str, tuple[int, str]](), []
    for number, (names, path) in enumerate(parts):
        run = part(names, path, 10 * number + 1)
        told = set[str]()
        rows = []
        for row, name in enumerate(names):
            place = f"{path}:{10 * number + 1 + row}"
            before = first.setdefault(str(name), (number, place))
            if before[0] != number and str(name) not in told:
                kind = "duplicate-id" if before[1].rpartition(":")[0] == path else "id-in-two-files"
                wanted.append((kind, f"first at {before[1]}", place, name))
                rows.append(row)
            told.add(str(name))
        assert sorted(seen.repeated(run)) == rows
        seen.add(run)
    assert len(seen) == sum(len(names) for names, _ in parts)
    assert [(f.kind, f.detail, f.place, f.segment) for f in seen.faults([])] == wanted


@settings(max_examples=100, deadline=None)
@given(st.lists(GROWING, min_size=1, max_size=6))
def test_gaps_are_counted_over_all_parts(parts: list[list[int]]) -> None:
    seen = SeenIds()
    for number, names in enumerate(parts):
        seen.add(part(names, "p", 10 * number + 1))
    every = {name for names in parts for name in names}
    missing = max(every) - min(every) + 1 - len(every)
    assert [note.text.split(" ")[0] for note in seen.gaps()] == ([str(missing)] if missing else [])


def test_a_refused_line_whose_id_is_in_the_log() -> None:
    seen = SeenIds()
    seen.add(part([1, 2, 3], "p", 1))
    found = list(seen.faults([(2, 9, "p"), ("x", 10, "p"), ("x", 11, "p")]))
    assert [(f.detail, f.line, f.segment) for f in found] == [("also at p:2", 9, 2), ("also at p:10", 11, "x")]
