# SPDX-License-Identifier: Apache-2.0
"""Neither the order of segments, nor how they are parted, nor the order of adding up, changes a bit of a result."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging import Run
from lagging.scoring.accumulator import Accumulator
from lagging.scoring.plan import Plan
from lagging.scoring.poisson import SEED
from lagging.scoring.tally import Tally

METRICS = ["AP", "AL", "DAL", "DAL(mean=token)", "LAAL"]
NUMBER = st.floats(0, 1e6, allow_nan=False)
SEGMENT = st.tuples(st.lists(NUMBER, max_size=6).map(sorted), st.floats(0.5, 1e6), st.sampled_from(["de", "cs", "zh"]))


@st.composite
def runs(draw: st.DrawFn) -> Run:
    rows = draw(st.lists(SEGMENT, min_size=1, max_size=30))
    delays, lengths, labels = zip(*rows, strict=True)
    run = Run.from_delays(list(delays), source_length=list(lengths), unit="ms", id=[f"s{i}" for i in range(len(rows))])
    return replace(run, group=np.array(labels, dtype=object))


def describe(accumulator: Accumulator) -> str:
    """All numbers of all groups, as text: in text, NaN is equal to NaN."""
    out: list[object] = []
    for scores in accumulator.group_scores(resamples=100):
        for s in scores:
            assert s.summary is not None
            out += [scores.group, repr(s.metric), s.value.hex(), s.low, s.high, s.n]
            out += [s.undefined.counts, s.undefined.reasons]
            out += [s.summary.percentiles, s.summary.least, s.summary.most, str(s.signature)]
    return repr(out)


@settings(max_examples=60, deadline=None)
@given(runs(), st.data())
def test_any_parting_gives_the_same_result(run: Run, data: st.DataObject) -> None:
    plan = Plan.make(METRICS, group_by=["lang"], seed=SEED)
    whole = Accumulator(plan)
    whole.add(run)
    order = data.draw(st.permutations(range(len(run))))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(run) - 1)), max_size=6)))
    parts = []
    for rows in np.split(np.array(order), cuts):
        part = Accumulator(plan)
        if len(rows):
            part.add(run[rows])
        # each travels as bytes
        for group, tallies in part.groups.items():
            part.groups[group] = {m: Tally.from_bytes(t.to_bytes()) for m, t in tallies.items()}
        parts.append(part)
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        flipped = data.draw(st.booleans())
        first, second = parts[at : at + 2][:: -1 if flipped else 1]
        first.join(second)
        parts[at : at + 2] = [first]
    assert describe(parts[0]) == describe(whole)


@settings(max_examples=60, deadline=None)
@given(runs())
def test_a_value_is_the_exact_mean_rounded_once(run: Run) -> None:
    accumulator = Accumulator(Plan.make(["DAL", "AP"], summary=True))
    for row in range(len(run)):
        accumulator.add(run[[row]])
    (scores,) = accumulator.group_scores()
    for score in scores:
        values = [v for v in lagging.score(run, [score.metric])[score.metric].segments.tolist() if v == v]
        if values:
            assert score.value == float(sum(map(Fraction, values))) / len(values)
        else:
            assert score.value != score.value
