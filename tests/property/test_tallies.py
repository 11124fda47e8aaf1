# SPDX-License-Identifier: Apache-2.0
"""Neither the order of segments, nor how they are parted, nor the order of adding up, changes a bit of a result."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from lagging.scoring.tallies import Tallies

import lagging
from lagging import Run
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


def results(tallies: Tallies) -> list[object]:
    out: list[object] = []
    for labels, scores in tallies.scores(resamples=100):
        for s in scores:
            out += [labels, repr(s.metric), s.value.hex(), s.low, s.high, s.n, s.undefined.counts, s.undefined.reasons]
            out += [s.percentiles, s.least, s.most, str(s.signature)]
    return out


def no_nan(found: list[object]) -> str:
    return repr(found)  # NaN is NaN, whatever it equals


@settings(max_examples=60, deadline=None)
@given(runs(), st.data())
def test_any_parting_gives_the_same_result(run: Run, data: st.DataObject) -> None:
    whole = Tallies(METRICS, by=["lang"])
    whole.add(run)
    order = data.draw(st.permutations(range(len(run))))
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(run) - 1)), max_size=6)))
    parts = []
    for rows in np.split(np.array(order), cuts):
        one = Tallies(METRICS, by=["lang"])
        if len(rows):
            one.add(run[rows])
        # each travels as bytes
        for group, of in one.groups.items():
            one.groups[group] = {m: Tally.from_bytes(t.to_bytes()) for m, t in of.items()}
        parts.append(one)
    while len(parts) > 1:
        at = data.draw(st.integers(0, len(parts) - 2))
        flipped = data.draw(st.booleans())
        pair = parts[at : at + 2][:: -1 if flipped else 1]
        parts[at : at + 2] = [pair[0] + pair[1]]
    assert no_nan(results(parts[0])) == no_nan(results(whole))


@settings(max_examples=60, deadline=None)
@given(runs())
def test_a_value_is_the_exact_mean_rounded_once(run: Run) -> None:
    tallies = Tallies(["DAL", "AP"], seed=None)
    for row in range(len(run)):
        tallies.add(run[[row]])
    ((_, scores),) = tallies.scores()
    for score in scores:
        values = [v for v in lagging.score(run, [score.metric])[score.metric].segments.tolist() if v == v]
        if values:
            assert score.value == float(sum(map(Fraction, values))) / len(values)
        else:
            assert score.value != score.value
