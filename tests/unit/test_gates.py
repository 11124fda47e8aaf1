# SPDX-License-Identifier: Apache-2.0
"""Gates: what is read, what fails, and that nothing undefined passes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import lagging
from lagging.comparison.gates import Gate, check_names, failed, gate, worse
from lagging.comparison.pairs import paired
from lagging.errors import UsageError
from lagging.scoring.scores import Scores
from statistic import made


def scores(value: float, name: str = "new", of: str = "DAL", **more: object) -> Scores:
    one = replace(made(of, [value, value]), **more)
    return Scores([one], name)


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("DAL>5", Gate("DAL", "value", ">", 5.0)),
        (" DAL  >=  5.5 ", Gate("DAL", "value", ">=", 5.5)),
        ("AL.high>2000", Gate("AL", "high", ">", 2000.0)),
        ("AL.low<-1e3", Gate("AL", "low", "<", -1000.0)),
        ("BLEU<=20", Gate("BLEU", "value", "<=", 20.0)),
        ("new:DAL.undefined>0", Gate("DAL", "undefined", ">", 0.0, "new")),
        ("a:b:DAL>5", Gate("DAL", "value", ">", 5.0, "a:b")),
        ("LagPercentile(p=99.5)>5", Gate("LagPercentile(p=99.5)", "value", ">", 5.0)),
        ("AL(length=reference, clock=elapsed).high>5", Gate("AL(length=reference, clock=elapsed)", "high", ">", 5.0)),
    ],
)
def test_what_is_written(text, want) -> None:
    assert gate(text) == want
    assert gate(str(want)) == want


@pytest.mark.parametrize(
    "text", ["", "DAL", "DAL>", ">5", "DAL=5", "DAL>five", "DAL>nan", "DAL>inf", "DAL>5h", "1<DAL<5"]
)
def test_what_is_no_gate(text) -> None:
    with pytest.raises(UsageError, match="cannot read the gate"):
        gate(text)


@pytest.mark.parametrize(
    ("sign", "fails"),
    [
        (">", [False, False, True]),
        (">=", [False, True, True]),
        ("<", [True, False, False]),
        ("<=", [True, True, False]),
    ],
)
def test_a_gate_fails_where_it_holds(sign, fails) -> None:
    assert [bool(failed([gate(f"DAL{sign}5")], [scores(value)])) for value in (4.999, 5.0, 5.001)] == fails


def test_what_is_said() -> None:
    two = [scores(6.25, "base"), scores(4.0), scores(7.0, "third")]
    assert failed([gate("DAL>5")], two) == ["DAL>5: DAL of base is 6.25 tokens", "DAL>5: DAL of third is 7 tokens"]
    assert failed([gate("third:DAL>5")], two) == ["third:DAL>5: DAL of third is 7 tokens"]
    assert failed([gate("new:DAL>5")], two) == []
    ends = [scores(5.0, low=4.0, high=2000.5, unit="ms")]
    assert failed([gate("DAL.high>2000ms"), gate("DAL.low>2000ms")], ends) == [
        "DAL.high>2000ms: DAL.high of new is 2.0005 s"
    ]
    assert failed([gate("DAL.high>2"), gate("DAL.low>2")], ends) == [
        "DAL.high>2 (read as 2 s): DAL.high of new is 2.0005 s"
    ]
    assert failed([gate("DAL.high>2s"), gate("DAL.high>2.001s"), gate("DAL.high>1min")], ends) == [
        "DAL.high>2s: DAL.high of new is 2.0005 s"
    ]


def test_a_time_is_no_limit_of_tokens() -> None:
    with pytest.raises(UsageError, match="the gate DAL>5s: this is counted in tokens, and not in time"):
        failed([gate("DAL>5s")], [scores(6.0)])


def test_a_number_that_was_hardly_meant_in_seconds_is_noted() -> None:
    speech = [scores(5.0, unit="ms")]
    note = gate("DAL>2000").doubt(speech)
    assert note is not None
    assert note.doubtful
    assert note.text == "DAL>2000 was read as 2000 s; write 2000ms if that is what it means"
    assert [gate(text).doubt(speech) for text in ("DAL>2000ms", "DAL>20", "DAL.undefined>2000")] == [None] * 3
    assert gate("DAL>2000").doubt([scores(5.0)]) is None


def test_what_is_undefined_passes_no_gate() -> None:
    for sign in ("<", ">", "<=", ">="):
        (said,) = failed([gate(f"DAL{sign}5")], [scores(math.nan)])
        assert said == f"DAL{sign}5: DAL of new is undefined, and an undefined score fails every gate"
        for end in ("low", "high"):
            (said,) = failed([gate(f"DAL.{end}{sign}5")], [scores(4.0)])  # no interval
            assert "is undefined" in said
            (said,) = failed([gate(f"DAL.{end}{sign}5")], [scores(4.0, low=math.nan, high=math.nan)])
            assert "is undefined" in said


def test_undefined_segments_can_be_counted() -> None:
    run = lagging.Run.from_delays([[1, 2], []], source_length=[2, 2], name="new")
    assert failed([gate("DAL.undefined>0")], [lagging.score(run)]) == ["DAL.undefined>0: DAL.undefined of new is 1"]
    assert failed([gate("DAL.undefined>1")], [lagging.score(run)]) == []


def test_gates_about_what_there_is_not() -> None:
    with pytest.raises(UsageError, match="about AL, which was not scored; these were: DAL"):
        failed([gate("AL>5")], [scores(1.0)])
    with pytest.raises(UsageError, match="Did you mean new"):
        failed([gate("nwe:DAL>5")], [scores(1.0)])
    with pytest.raises(UsageError, match=r"the gate DALL>5: no metric is called 'DALL'\. Did you mean DAL"):
        check_names([gate("DALL>5")])
    with pytest.raises(UsageError, match="about AL, which was not scored"):
        check_names([gate("AL>5")], ["DAL"])
    check_names([gate("AL>5"), gate("COMET<0.8"), gate("AL_CA>5")], ["AL", "AL(clock=elapsed)"], ["COMET"])
    assert failed([gate("dal>5")], [scores(6.0)]) == ["dal>5: dal of new is 6 tokens"]


# ---- significantly worse --------------------------------------------------------------------------------------------


def pairs(a, b, name: str = "DAL"):
    return paired({"base": Scores([made(name, a)]), "new": Scores([made(name, b)])}, resamples=500).pairs


def test_only_what_is_significantly_worse_fails() -> None:
    dice = np.random.default_rng(1)
    one = dice.normal(5, 1, 60)
    little, more = one + dice.normal(0.02, 1, 60), one + dice.normal(1, 0.5, 60)
    assert worse(pairs(one, little), 0.05) == []
    assert worse(pairs(more, one), 0.05) == []
    (said,) = worse(pairs(one, more), 0.05)
    assert said.startswith("new is significantly worse than base in DAL: ")
    assert "corrected p = 0.001996" in said  # 1/501, to four digits


def test_what_could_not_be_tested_fails() -> None:
    assert worse(pairs([1.0], [1.0]), 0.05) == [
        "new could not be tested against base in DAL: 1 segment with a value: too few"
    ]
    (said,) = worse(pairs([math.nan] * 9, [1.0] * 9), 0.05)
    assert "could not be tested" in said
    assert worse(pairs([1.0] * 9, [1.0] * 9), 0.05) == []


def test_where_no_direction_is_better_nothing_is_worse() -> None:
    assert worse(pairs([1.0, 2.0] * 9, [7.0, 9.0] * 9, "NumChunks"), 0.05) == []
