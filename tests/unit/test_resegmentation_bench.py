# SPDX-License-Identifier: Apache-2.0
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).parents[2] / "bench"


@pytest.fixture
def bench(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCH))
    import resegmentation
    import streams

    return resegmentation, streams


@pytest.fixture
def talk(bench):
    times = np.array([500.0, 1000, 1500, 2500, 3000])
    words, references = ["Ja,", "gut", ".", "Und", "nun"], ["Ja, gut.", "und jetzt?"]
    return bench[1].Talk(
        "t", words, times, np.array([0, 3, 5]), np.array([0.0, 2000]), np.array([2000.0, 1500]), references
    )


def test_what_is_wrong_is_counted(bench, talk):
    resegmentation, streams = bench
    case = streams.Case("c", [talk])
    right = resegmentation.quality(case, [np.array([0, 0, 0, 1, 1])])
    assert right == resegmentation.Quality(1.0, 0, 0, 5, 0.0, 0.0)
    wrong = resegmentation.quality(case, [np.array([0, 0, 1, 1, -1])])
    assert (wrong.boundaries, wrong.misplaced, wrong.lost, wrong.tokens) == (0.0, 2, 1, 5)
    # first segment: (500 + 333 + 167) / 3 against (500 + 0) / 2; second: (500 + 250) / 2 against (0 − 250) / 2, from 0
    assert wrong.spread == pytest.approx(((1000 / 3 - 250) + (375 + 125)) / 2)
    assert wrong.laal == pytest.approx(-wrong.spread)


def test_other_texts_keep_the_truth(bench, talk):
    _, streams = bench
    plain, letters = streams.bare(talk), streams.characters(talk)
    assert (plain.tokens, plain.references) == (["ja", "gut", "und", "nun"], ["ja gut", "und jetzt"])
    assert plain.truth.tolist() == [0, 2, 4]
    assert plain.times.tolist() == [500, 1000, 2500, 3000]
    assert "".join(letters.tokens[letters.truth[1] :]) == "Undnun"
    assert letters.times[letters.truth[1]] == 2500


def test_made_up_streams_are_as_noisy_as_they_say(bench):
    (made,) = bench[1].synthetic(10_000).talks
    assert made.truth[-1] == len(made.tokens) == len(made.times)
    assert len(made.references) == 500
    assert len(made.tokens) == pytest.approx(10_000, rel=0.01)
    text = [set(reference.split()) for reference in made.references]
    there = np.mean([word in text[k] for word, k in zip(made.tokens, made.segment, strict=True)])
    assert there == pytest.approx(0.75, abs=0.06)  # 75 of 100 words are kept; others may be there by chance


def test_no_condition_writes_backwards(bench, talk):
    _, streams = bench
    for name in streams.CONDITIONS:
        (moved,) = streams.timed(name, [talk], name).talks
        assert (np.diff(moved.times) >= 0).all(), name
        assert (moved.times >= 0).all(), name


def test_an_aligner_is_not_told_the_truth(bench, talk):
    (told,) = bench[1].Case("c", [talk]).question()["talks"]
    assert set(told) == {"name", "tokens", "times", "offset", "duration", "references"}


@pytest.mark.slow
def test_the_benchmark_prints_its_table(tmp_path):
    """That it runs; what it measures depends on the machine."""
    env = {k: v for k, v in os.environ.items() if k != "LAGGING_TEST_DATA"}
    ran = subprocess.run(
        [sys.executable, str(BENCH / "resegmentation.py"), "--quick"],
        cwd=tmp_path,
        env={**env, "PYTHONUTF8": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    for row in ("timed, 1,000 words", "mwer, 1,000 words", "NOT RUN: what needs real logs"):
        assert row in ran.stdout
