# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
import torch

import lagging
from lagging.errors import UsageError
from lagging.losses.torch.interleaving import delays_from_actions, delays_from_tokens, interleave
from lagging.losses.torch.rewards import advantages, gu_reward, latency_bleu, latency_reward, step_rewards
from lagging.policies import offline, segmentwise, wait_k

DICE = np.random.default_rng(0)
X, Y = DICE.integers(1, 10, 30), DICE.integers(1, 9, 30)
ROWS = [np.sort(DICE.integers(1, x + 1, y)) for x, y in zip(X, Y, strict=True)]
PADDED = torch.tensor([[*row, *[math.nan] * (9 - len(row))] for row in ROWS])


@pytest.mark.parametrize("metric", ["dal", "laal", "ap", "cw"])
def test_rewards_are_what_the_evaluation_prints(metric):
    got = latency_reward(PADDED, torch.tensor(X), torch.tensor(Y), metric=metric)
    for b, row in enumerate(ROWS):
        more = {"reference_length": int(Y[b])} if metric == "laal" else {}
        want = getattr(lagging, metric)(row, source_length=int(X[b]), **more)
        assert -got[b].item() == pytest.approx(want, rel=1e-5)
    if metric == "laal":
        longer = latency_reward(PADDED, torch.tensor(X), torch.tensor(Y), metric="laal", reference_lengths=12)
        want = lagging.laal(ROWS[0], source_length=int(X[0]), reference_length=12)
        assert -longer[0].item() == pytest.approx(want, rel=1e-5)


def test_rewards_of_steps_add_up_to_dal_and_come_when_it_is_caused():
    each = step_rewards(PADDED, torch.tensor(X), torch.tensor(Y))
    whole = latency_reward(PADDED, torch.tensor(X), torch.tensor(Y))
    torch.testing.assert_close(each.sum(-1), whole)
    assert (each <= 0).all()
    sooner, later = step_rewards([[1.0, 4, 4, 4], [1.0, 1, 4, 4]], 4)
    assert sooner[1] < 0 == sooner[2]
    assert later[1] == 0 > later[2]


def test_the_reward_of_gu_counts_every_read():
    got = gu_reward(PADDED, torch.tensor(X), torch.tensor(Y), wait=2, proportion=0.4)
    for b, row in enumerate(ROWS):
        want = []
        for t, n in enumerate(np.diff(row, prepend=0)):
            reads = sum(np.sign(c - 2) + 1 for c in range(1, n + 1))
            late = max(lagging.ap(row, source_length=int(X[b])) - 0.4, 0) if t == len(row) - 1 else 0
            want.append(-0.025 * reads - late)
        np.testing.assert_allclose(got[b, : len(row)], want, rtol=1e-5, atol=1e-7)
        assert not got[b, len(row) :].any()


def test_latency_bleu_is_the_area_under_the_quality_of_prefixes():
    quality = np.sort(DICE.uniform(size=(30, 10)), -1)
    got = latency_bleu(quality, PADDED, torch.tensor(X), torch.tensor(Y))
    for b, row in enumerate(ROWS):
        x = int(X[b])
        area = np.mean([quality[b, (row <= s).sum()] for s in range(1, x + 1)])
        assert got[b].item() == pytest.approx((area + x * quality[b, len(row)]) / (1 + x), rel=1e-5)
    assert latency_bleu(np.ones(10), PADDED[0], 5, 3).item() == 1


def test_advantages_have_no_mean():
    made = advantages(torch.tensor(DICE.normal(size=(8, 5))))
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-12)
    np.testing.assert_allclose(made.std(0, correction=0), 1, rtol=1e-4)


def test_rewards_that_make_no_sense():
    with pytest.raises(UsageError, match="metric must be one of"):
        latency_reward([1.0], 1, metric="bleu")
    with pytest.raises(UsageError, match="at least 1"):
        gu_reward([1.0], 1, wait=0)
    with pytest.raises(UsageError, match="quality must have 2 values"):
        latency_bleu([0.0], [1.0], 1)


# ---- one sequence of reads and writes -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy", [wait_k(1), wait_k(3, catchup="paper"), offline(), segmentwise(3)], ids=lambda policy: policy.name
)
@pytest.mark.parametrize("every", [False, True])
def test_what_is_interleaved_has_the_delays_of_its_policy(policy, every):
    for x, y in ((5, 5), (3, 7), (6, 2), (1, 1)):
        delays = policy.delays(x, y)
        source, target = list(range(100, 100 + x)), list(range(200, 200 + y))
        made = interleave(source, target, delays, read=0, write=1, every=every)
        got = delays_from_tokens(made.ids, read=0, write=1)
        assert got.delays.tolist() == delays.tolist()
        assert int(got.target_lengths) == y
        words = made.ids[~made.loss_mask].tolist()
        assert words == source[: len(words)], "the model does not learn to write the source"
        assert made.ids[made.ids >= 200].tolist() == target
        assert ((made.ids == 0).sum() == len(words)) or not every


def test_delays_of_a_batch_of_actions_and_tokens():
    actions = torch.tensor([[0, 0, 1, 0, 1, 1], [0, 1, 1, 0, 0, 0]])
    got = delays_from_actions(actions, mask=torch.tensor([[True] * 6, [True] * 3 + [False] * 3]))
    assert got.delays.tolist() == [[2, 3, 3], [1, 1, 0]]
    assert got.source_lengths.tolist() == [3, 1]
    assert got.target_lengths.tolist() == [3, 2]
    ids = torch.tensor([[0, 7, 7, 1, 8, 2, 0, 7, 1, 9, 2], [7, 1, 8, 2, 3, 3, 3, 3, 3, 3, 3]])
    got = delays_from_tokens(ids, read=0, write=1, ignore=(2, 3))
    assert got.delays.tolist() == [[2, 3], [1, 0]]
    assert lagging.dal([2, 3], source_length=3) == latency_reward(*got).neg()[0].item()
    assert delays_from_actions(torch.zeros(2, 3)).delays.shape == (2, 0)


def test_sequences_that_make_no_sense():
    with pytest.raises(UsageError, match=r"0 \(read\) or 1 \(write\)"):
        delays_from_actions([0, 2])
    with pytest.raises(UsageError, match="different markers"):
        delays_from_tokens([1], read=1, write=1)
    with pytest.raises(UsageError, match="2 delays for 3 target tokens; delay 2 is 1, after 2"):
        interleave([1, 2], [3, 4, 5], [2, 1], read=0, write=9)
