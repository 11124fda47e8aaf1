# SPDX-License-Identifier: Apache-2.0
"""Runs with any of the columns a Run may have; what it means that two of them are the same, or their scores."""

from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
from hypothesis import strategies as st

from lagging.data.checks import is_length
from lagging.data.ragged import Ragged
from lagging.data.run import COLUMNS, LISTS, NUMBERS, TEXTS, TIMES, Run
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.log import score
from lagging.scoring.plan import Plan
from lagging.scoring.scores import Scores
from lagging.scoring.signature import settings

SCALARS = tuple(f.name for f in fields(Run) if f.name not in (*COLUMNS, "origin", "notes"))

times = st.floats(0, 1e17, width=64) | st.floats(0, 1e6) | st.integers(0, 50).map(float) | st.just(-0.0)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "\\N", "\\\\N", "N", "a\nb", "\r", 'quo"ted', "a,b;c\td", "007", "nan", "null", " a ", "▁ab", "Ha@@ us </s>"]
)
words = st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=4).filter(
    lambda word: word.split() == [word]
)
names = st.one_of(
    st.none(),
    st.lists(st.integers(-(2**70), 2**70), min_size=5, max_size=5, unique=True),
    st.lists(st.integers(-(2**63), 2**63 - 1), min_size=5, max_size=5, unique=True),
    st.lists(texts, min_size=5, max_size=5, unique=True),
)


@st.composite
def runs(draw) -> Run:
    """Any Run that has no fault."""
    lengths = draw(st.lists(st.integers(0, 4), min_size=1, max_size=5))
    n = len(lengths)

    def rows(sizes: list[int], values=times, rising: bool = True) -> list[list[float]]:
        made = [draw(st.lists(values, min_size=k, max_size=k)) for k in sizes]
        return [sorted(row) for row in made] if rising else made

    more: dict[str, object] = {}
    level, speech_out = draw(st.sampled_from(["word", "token"])), draw(st.booleans())
    if speech_out:
        level = "token"
        more["durations"] = rows(lengths, rising=False)
        more["prediction"] = [f"{row}.wav" for row in range(n)]
    elif level == "word" or draw(st.booleans()):
        more["prediction"] = [" ".join(draw(st.lists(words, min_size=k, max_size=k))) for k in lengths]
    for column in ("reference", "source", "document"):
        if draw(st.booleans()):
            more[column] = draw(st.lists(st.none() | texts, min_size=n, max_size=n))
    if draw(st.booleans()):
        more["elapsed"] = rows(lengths)
    if draw(st.booleans()):
        steps = draw(st.lists(st.integers(1, 4), min_size=n, max_size=n))
        more |= {"arrivals": rows(steps), "compute": rows(steps, rising=False)}
        more["steps"] = [
            sorted(draw(st.lists(st.integers(0, s - 1), min_size=k, max_size=k)))
            for k, s in zip(lengths, steps, strict=True)
        ]
    for column in TIMES.values():
        if draw(st.booleans()):
            more[column] = rows(lengths, times | st.floats(-1e6, 0), rising=False)
    if draw(st.booleans()):
        due = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
        more |= {"due": rows(due), "shown": rows(due, times | st.just(np.nan), rising=False)}
    for column in NUMBERS:
        if draw(st.booleans()):
            known = times.filter(is_length) if column == "reference_length" else times
            more[column] = draw(st.lists(known | st.just(np.nan), min_size=n, max_size=n))
    ids = draw(names)
    run = Run.from_delays(
        rows(lengths),
        source_length=draw(st.lists(times.filter(is_length), min_size=n, max_size=n)),
        id=None if ids is None else ids[:n],
        unit=draw(st.sampled_from(["token", "ms"])),
        level=level,
        seg=draw(st.sampled_from(["none", "given"])),
        name=draw(texts),
        **more,
    )
    repaired = draw(st.sampled_from([(), (("clip", 1),), (("first", 2), ("monotone", 3))]))
    return replace(run, repaired=repaired, name=run.name or "base", notes=())


def everything(unit: str) -> Run:
    """A Run that has every column but durations, with times that go with its steps."""
    one = 1000.0 if unit == "ms" else 1.0
    return Run.from_delays(
        [[1 * one, 2 * one, 2 * one], [2 * one]],
        source_length=[3 * one, 2 * one],
        id=["a", "b"],
        prediction=["yes we can", "bye"],
        reference=["yes we do", "good bye"],
        source=["a.wav", "b.wav"],
        document=["one.wav", "two.wav"],
        elapsed=[[1100.0, 2200.0, 2200.0], [2099.0]],
        arrivals=[[1 * one, 2 * one, 3 * one], [1 * one, 2 * one]],
        compute=[[100.0, 200.0, 50.0], [1.0, 99.0]],
        steps=[[0, 1, 1], [1]],
        queue_times=[[1100.0, 2200.0, 2200.0], [2100.0]],
        omnisteval_times=[[1100.0, 2100.0, 2100.0], [2099.0]],
        fbk_times=[[1100.0, 2100.0, 2100.0], [-99.0]],
        fbk1_times=[[1100.0, 2101.0, 2101.0], [-98.0]],
        first_times=[[1 * one, 1 * one, 2 * one], [1 * one]],
        compute_share=[150.5, 30.0],
        recording_share=[3500.0, 2500.0],
        reference_length=[3, 2],
        erased=[1, 0],
        gone=[1, 0],
        revisions=[1, 0],
        offset=[0, 5000],
        recording_end=[9000, 4000],
        due=[[1.0, 2.0, 3.0], [1.0]],
        due_partial=[[1.0, 2.0, 3.0], [1.0]],
        shown=[[2.0, 3.0, np.nan], [3.0]],
        unit=unit,
        seg="given",
    )


def bare(run: Run) -> Run:
    """Without the columns that hold nothing: in a file, they are as if they were not there."""
    empty = [c for c in LISTS if getattr(run, c) is not None and not len(getattr(run, c).values)]
    empty += [c for c in NUMBERS if getattr(run, c) is not None and np.isnan(getattr(run, c)).all()]
    empty += ["first_times"] if run.first_times == run.delays else []
    empty += [c for c in TEXTS if getattr(run, c) is not None and all(text is None for text in getattr(run, c))]
    return replace(run, **dict.fromkeys(empty))


def same(one: Run, other: Run, lost: tuple[str, ...] = ()) -> None:
    """The same to the last bit, but for the columns that are lost."""
    one, other = bare(one), bare(other)
    for column in COLUMNS:
        if column == "line" or column in lost:
            continue
        a, b = getattr(one, column), getattr(other, column)
        assert (a is None) == (b is None), column
        if isinstance(a, Ragged):
            assert a.offsets.tolist() == b.offsets.tolist(), column
            a, b = a.values, b.values
        if a is not None:
            assert a.dtype == b.dtype, column
            assert a.tolist() == b.tolist() if a.dtype == object else a.tobytes() == b.tobytes(), (column, a, b)
    for scalar in SCALARS:
        if scalar not in lost:
            assert getattr(one, scalar) == getattr(other, scalar), scalar


def scored_alike(run: Run, names: list[str], convention: str = "paper") -> Scores:
    """The scores of a Run, which are the same to the last bit part by part, and made again by their signatures."""
    whole, accumulator = score(run, names, convention=convention), Accumulator(Plan.make(names, convention))
    for part in run.segments():
        accumulator.add(part)
    for one, in_parts in zip(whole, accumulator.scores(), strict=True):
        said = settings(str(one.signature))
        (again,) = score(run, [said.metric], convention=said.convention)
        for other in (in_parts, again):
            assert one.value == other.value, one.metric
            assert one.segments.tobytes() == other.segments.tobytes(), one.metric
            assert str(one.signature) == str(other.signature)
            assert one.undefined.reasons == other.undefined.reasons
    return whole
