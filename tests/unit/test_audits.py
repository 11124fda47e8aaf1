# SPDX-License-Identifier: Apache-2.0
"""Each audit finds what it is for, counts it, and is silent where there is nothing, or says why it cannot look."""

from dataclasses import replace

import numpy as np
import pytest

import lagging
from lagging.scoring.audit import AUDITS


def speech(delays, *, lag=100.0, **more):
    elapsed = [[time + lag for time in row] for row in delays]
    lengths = [(max(row, default=0)) + 1000 for row in delays]
    return lagging.Run.from_delays(delays, elapsed=elapsed, source_length=lengths, unit="ms", **more)


def findings(run):
    found = {finding.name: finding for finding in lagging.audit(run)}
    assert list(found) == list(AUDITS)
    return found


GOOD = [[320 * k for k in range(1, 12)] for _ in range(3)]


def test_a_plain_log_has_no_findings():
    texts = [" ".join(f"w{k}{row}" for k in range(11)) for row in range(3)]
    found = findings(speech(GOOD, prediction=texts, reference=["w00 w10 other", "nothing like it", "w02 w12 w22"]))
    assert [finding.count for finding in found.values()] == [0] * 6
    skipped = {name for name, finding in found.items() if finding.skipped}
    assert skipped == {"outside-the-segmentation"}


def test_words_before_their_audio():
    run = speech(GOOD)
    elapsed = run.elapsed.values.copy()
    elapsed[[1, 2, 30]] -= 101.5
    elapsed[5] -= 100.5  # rounding
    found = findings(replace(run, elapsed=lagging.Ragged(elapsed, run.delays.offsets)))["before-its-audio"]
    assert (found.count, found.total, found.noun, found.segments) == (3, 33, "token", (0, 2))
    assert str(found) == "emitted before its audio: 3 of 33 tokens, in segments 0, 2"


def test_lower_with_computing_than_without():
    """All words are there 200 ms before their audio, so every metric is lower."""
    found = findings(speech(GOOD, lag=-200))["ca-below-cu"]
    assert (found.count, found.segments) == (3, (0, 1, 2))


@pytest.mark.parametrize(("off", "count"), [(1, 0), (4, 4)])
def test_delays_on_no_grid(off, count):
    """More than 5 % of 33 delays, the last of each row too: the source goes on after it."""
    rows = [[time + 3.7 * (k < off and row == 1) for k, time in enumerate(times)] for row, times in enumerate(GOOD)]
    found = findings(speech(rows))["no-chunk-grid"]
    assert (found.count, found.segments) == (count, (1,) if count else ())
    assert "fewer than 5" in findings(speech([[1.5, 2.5]]))["no-chunk-grid"].skipped


def test_chunks_may_have_any_length():
    """Of 512 samples, of a third of a second, and of a length that is rounded to whole milliseconds."""
    for chunk in (32.0, 1000 / 3, 92.88):
        rows = [[round(k * chunk, 3) for k in range(2, 9)], [round(k * chunk) for k in (1, 4, 4, 30, 31)]]
        assert findings(speech(rows))["no-chunk-grid"].count == 0
    few = findings(speech([[1003, 1517, 2011], [1419, 1801, 2304]]))["no-chunk-grid"]
    assert (few.count, few.total, few.segments) == (6, 6, (0, 1))


def test_the_grid_is_that_of_the_recording():
    """A segment that begins off the grid has delays off the grid."""
    rows = [[time - 123.4 for time in times] for times in GOOD]
    cut = speech(rows, offset=[123.4] * 3, seg="timed")
    assert findings(cut)["no-chunk-grid"].count == 0
    assert findings(replace(cut, offset=np.zeros(3)))["no-chunk-grid"].count == 33
    assert findings(replace(cut, offset=None))["no-chunk-grid"].skipped


def test_one_time_for_a_whole_sentence():
    found = findings(speech([[500] * 5, [500] * 4, [500] * 4 + [600], []]))["identical-times"]
    assert (found.count, found.total, found.segments) == (1, 2, (0,))


@pytest.mark.parametrize(
    ("texts", "count"),
    [
        (["Good morning to all", "well it is late", "a b"], 2),
        (["good morning to all", "it was late", "a b"], 0),
        (["good morning to allow", "it is late", "a b"], 0),
    ],
)
def test_the_reference_in_every_hypothesis(texts, count):
    """A reference of two words counts neither way."""
    delays = [[320 * k for k in range(1, len(text.split()) + 1)] for text in texts]
    run = speech(delays, prediction=texts, reference=["good morning to all", "it is late", "c d"])
    assert findings(run)["reference-in-hypothesis"].count == count


def test_times_that_do_not_fit_the_segmentation():
    rows = [[time - 1000 for time in times] for times in GOOD]
    found = findings(speech(rows, offset=[1000.0] * 3, seg="timed"))["outside-the-segmentation"]
    assert (found.count, found.total, found.segments) == (9, 33, (0, 1, 2))
    few = [[-10.0, *times] for times in GOOD]
    assert findings(speech(few, seg="timed"))["outside-the-segmentation"].count == 0


def test_ids_are_printed_without_control_characters():
    run = speech([[500] * 5], id=["a\x1b[31m"])
    assert "\x1b" not in str(findings(run)["identical-times"])
