# SPDX-License-Identifier: Apache-2.0
"""The verdict on degeneracy: its thresholds, and where it is printed."""

import math

import pytest

import lagging
from lagging.comparison.degeneracy import THRESHOLDS, VERDICT_METRICS, judge


@pytest.mark.parametrize("threshold", THRESHOLDS, ids=lambda threshold: threshold.metric)
def test_a_threshold_divides_at_its_values(threshold) -> None:
    step = math.copysign(1e-9, threshold.degenerate - threshold.suspicious)
    assert threshold.verdict(threshold.suspicious - step) == "sound"
    assert threshold.verdict(threshold.suspicious) == "suspicious"
    assert threshold.verdict(threshold.degenerate - step) == "suspicious"
    assert threshold.verdict(threshold.degenerate) == "degenerate"
    assert threshold.verdict(math.nan) == "sound"


def verdict_on(policy: str) -> str:
    lengths = [8, 9, 12, 10, 12]
    run = lagging.policies.policy(policy).run(source_lengths=lengths, target_lengths=lengths)
    return judge(lagging.score(run, VERDICT_METRICS)).verdict


def test_policies_are_what_they_are() -> None:
    assert [verdict_on(name) for name in ("wait-3", "antagonist-5", "offline")] == ["sound", "suspicious", "degenerate"]


def test_a_whole_talk_is_judged_by_hidden_lag_alone() -> None:
    run = lagging.Run.from_delays([[6, 6, 6]], source_length=[5], name="talk", seg="timed")
    assert judge(lagging.score(run, VERDICT_METRICS)).verdict == "sound"


def test_the_numbers_are_there() -> None:
    run = lagging.Run.from_delays([[5, 5, 5, 5, 5]], source_length=[5], name="late")
    verdict = judge(lagging.score(run, VERDICT_METRICS))
    assert verdict.numbers == "HiddenShare 0, Offline 1, SWF 0"
    assert str(verdict).startswith("late: degenerate: 100 % of the segments are written after their source has ended; ")
