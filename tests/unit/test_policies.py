# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import lagging
from lagging import policies


@pytest.mark.parametrize(
    ("name", "x", "y", "delays"),
    [
        ("wait-1", 4, 4, [1, 2, 3, 4]),
        ("wait-3", 4, 4, [3, 4, 4, 4]),
        ("wait-0", 2, 3, [0, 1, 2]),
        ("wait-9", 2, 2, [2, 2]),
        ("wait-1-catchup", 3, 6, [1, 1, 2, 2, 3, 3]),
        ("wait-1-catchup", 6, 3, [1, 3, 5]),
        ("wait-2-catchup=0.25", 9, 9, [2, 3, 4, 4, 5, 6, 7, 7, 8]),
        ("wait-1-catchup=0.2", 9, 5, [1, 2, 3, 4, 4]),
        ("wait-3-catchup=0", 4, 4, [3, 4, 4, 4]),
        ("antagonist-4", 5, 5, [4, 4, 4, 4, 5]),
        ("antagonist-1", 3, 6, [1, 2, 2, 2, 2, 3]),
        ("segment-2", 5, 5, [2, 2, 4, 4, 5]),
        ("segment-3", 6, 3, [3, 6, 6]),
        ("offline", 3, 2, [3, 3]),
        ("prescient", 3, 2, [0, 0]),
        ("wait-3", 4, 0, []),
    ],
)
def test_schedules(name: str, x: int, y: int, delays: list[int]) -> None:
    policy = policies.policy(name)
    assert policy.name == name
    np.testing.assert_array_equal(policy.delays(x, y), delays)


def test_punctuation() -> None:
    source = "Yes , I see ; a cat"
    np.testing.assert_array_equal(policies.punctuation().delays(7, 7, source), [2, 2, 5, 5, 5, 7, 7])
    np.testing.assert_array_equal(policies.punctuation().delays(2, 2, "没有。 猫"), [1, 2])
    with pytest.raises(lagging.UsageError, match="needs the source texts"):
        policies.punctuation().delays(7, 7)


def test_runs_over_many_sentences() -> None:
    run = policies.wait_k(3).run(source_lengths=[4, 0, 9], target_lengths=[4, 2, 0])
    assert run.delays.tolist() == [[3, 4, 4, 4], [0, 0], []]
    texts = policies.punctuation().run(source=["a , b", "c"], target=["x y z", "w"], name="p")
    assert texts.delays.tolist() == [[2, 2, 3], [1]]
    assert texts.name == "p"
    assert texts.prediction.tolist() == ["x y z", "w"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("wait3", "Did you mean wait-3"),
        ("wait-3-catchup=1.5", "below 1"),
        ("wait-3-catchup=1.2.3", "cannot read the policy"),
        ("segment-0", "at least 1"),
        ("nonsense!", "Policies: wait-K"),
    ],
)
def test_wrong_names(name: str, message: str) -> None:
    with pytest.raises(lagging.UsageError, match=message):
        policies.policy(name)


def test_wrong_arguments() -> None:
    with pytest.raises(lagging.UsageError, match="at least 0"):
        policies.wait_k(-1)
    with pytest.raises(lagging.UsageError, match="'paper', or a number"):
        policies.wait_k(1, catchup="fast")
    with pytest.raises(lagging.UsageError, match="2 source lengths, but 1"):
        policies.offline().run(source_lengths=[1, 2], target_lengths=[1])
    with pytest.raises(lagging.UsageError, match="negative"):
        policies.offline().run(source_lengths=[-1], target_lengths=[1])
    with pytest.raises(lagging.UsageError, match="lengths or texts"):
        policies.offline().run(source_lengths=[1])
