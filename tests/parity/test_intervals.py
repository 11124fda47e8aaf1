# SPDX-License-Identifier: Apache-2.0
"""LongYAAL of the ACL 60/60 log, with the intervals that resampling segments, and talks, one by one gave."""

import numpy as np
import pytest

import lagging
from lagging.scoring.intervals import interval

pytestmark = pytest.mark.data
LOG = "omnisteval/examples/speech_resegmentation_example/segmentation_output/instances.resegmented.jsonl"


@pytest.fixture(scope="module")
def score(data):
    return lagging.score(lagging.read(data / LOG), ["LongYAAL"], convention="omnisteval")["LongYAAL"]


@pytest.mark.parametrize(
    ("by", "low", "high"), [("segment", 2802, 3082), ("document", 2449, 3667)], ids=["segment", "document"]
)
def test_percentile_intervals_are_those_known(score, by, low, high) -> None:
    """Of other random numbers: 10 000 resamples move an end by a few ms."""
    got = interval(score, resample=by, method="percentile")
    assert (got.low, got.high) == pytest.approx((low, high), abs=8)


def test_what_five_talks_tell(score) -> None:
    """One talk is at 4.3 s and four are near 2.5 s: the default interval reaches that one, and is not absurd."""
    means = [np.nanmean(score.segments[score.documents == talk]) for talk in set(score.documents)]
    got = interval(score, resample="document")
    assert (got.clusters, got.method) == (5, "wild")
    assert got.low < min(means) < score.value < max(means)
    assert (got.low, got.high) == pytest.approx((2368, 4245), abs=5)
