# SPDX-License-Identifier: Apache-2.0
"""AP, AL and DAL of wait-k streams, cut as their authors cut them (Iranzo-Sánchez et al. 2021), by their own script."""

import csv
from fractions import Fraction

import numpy as np
import pytest

import lagging
import oracle

pytestmark = pytest.mark.data

SEGMENTS = 888


def lines(path):
    return path.read_text("utf-8").split("\n")[:SEGMENTS]


@pytest.fixture(scope="module")
def folder(data):
    return data / "rw_streams"


def cut(folder, setup, k):
    """The stream of READs and WRITEs, cut where the hypothesis is, with the source of each segment beside."""
    (g,) = lagging.read(folder / setup / f"{k}.RW").delays
    source, hypothesis = lines(folder / "norm.iwslt17.dev2010.de"), lines(folder / setup / f"{k}.reseg_h")
    x = np.array([len(line.split()) for line in source])
    ends = np.cumsum([len(line.split()) for line in hypothesis])
    assert ends[-1] == len(g)
    offset = np.cumsum(x) - x
    return lagging.Run.from_delays(
        [part - begin for part, begin in zip(np.split(g, ends[:-1]), offset, strict=True)],
        source_length=x,
        prediction=hypothesis,
        reference=lines(folder / "iwslt17.dev2010.prepro.en"),
        offset=offset,
        seg="given",
    )


def said(folder):
    with (folder / "oracle_stream_level.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("k", range(1, 11))
def test_stream_level_latency(folder, k):
    rows = [row for row in said(folder) if int(row["k"]) == k]
    assert sorted(row["penalty_scale"] for row in rows) == ["0.95", "1.0"]
    for row in rows:
        scale = float(row["penalty_scale"])
        scores = lagging.score(cut(folder, row["setup"], k), ["AP", "AL", f"StreamDAL(scale={scale})"])
        for name, score in zip(("AP", "AL", "DAL"), scores, strict=True):
            assert score.value == pytest.approx(float(row[name]), rel=1e-8), (name, scale)
            assert score.undefined == 0
            assert score.n == SEGMENTS


def test_stream_level_dal_of_the_slow_oracle(folder):
    run = cut(folder, "REAL", 5)
    segments = [
        (int(begin), g.tolist(), int(x), len(g))
        for begin, g, x in zip(run.offset, run.delays, run.source_length, strict=True)
    ]
    for row in said(folder):
        if row["k"] == "5":
            scale = float(row["penalty_scale"])
            exact = oracle.stream_dal(segments, Fraction(row["penalty_scale"]))
            assert float(sum(exact) / SEGMENTS) == pytest.approx(float(row["DAL"]), rel=1e-8)
            ours = lagging.score(run, [f"StreamDAL(scale={scale})"])[f"StreamDAL(scale={scale})"].segments
            assert ours == pytest.approx(np.array([float(value) for value in exact]), abs=1e-8)


def test_dal_that_never_recovers(folder):
    """Why the scale is below 1: what the default sees of a stream, the full cost drowns."""
    run = cut(folder, "REAL", 1)
    by_default, full, sentence = (
        score.value for score in lagging.score(run, ["StreamDAL", "StreamDAL(scale=1)", "DAL"])
    )
    assert sentence < by_default < full / 2
