# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
import torch

import lagging
from lagging.losses.torch import dal, expected_alignment, expected_delays, hard_alignment
from lagging.losses.torch.metric import LatencyMetric

X, Y = torch.tensor([6, 4, 3, 5]), torch.tensor([5, 3, 0, 1])


def probabilities(*shape):
    return torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_means_are_those_of_the_sentences():
    p = probabilities(4, 5, 6)
    metric = LatencyMetric(generator=torch.Generator().manual_seed(1))
    for part in (slice(0, 1), slice(1, 4)):
        metric.update(p[part], X[part], Y[part])
    values = metric.compute()
    hard = hard_alignment(p, X)
    for name, function in (("DAL", lagging.dal), ("AL", lagging.al), ("AP", lagging.ap)):
        want = [function(hard[b, : Y[b]].tolist(), source_length=int(X[b])) for b in (0, 1, 3)]
        assert values[f"hard {name}"].item() == pytest.approx(np.mean(want), rel=1e-6)
        assert values[f"gap {name}"] == values[f"hard {name}"] - values[f"soft {name}"]
    soft = dal(expected_delays(expected_alignment(p, X)), X, Y).sum() / 3
    assert values["soft DAL"].item() == pytest.approx(soft.item(), rel=1e-12)
    metric.reset()
    metric.update(p.expand(2000, 4, 5, 6), X, Y)
    many = metric.compute()
    assert many["soft DAL"].item() == pytest.approx(soft.item(), rel=1e-9)
    assert many["sampled DAL"] > many["soft DAL"]


def test_heads_wait_for_the_slowest():
    p = probabilities(4, 2, 5, 6)
    metric = LatencyMetric(heads=True)
    metric.update(p, X, Y)
    delays = hard_alignment(p, X[:, None]).amax(1)
    assert metric.compute()["hard DAL"].item() == pytest.approx((dal(delays, X, Y).sum() / 3).item(), rel=1e-6)


def test_processes_add_up():
    """Sums and a count: what torchmetrics reduces over ranks by a sum."""
    p = probabilities(4, 5, 6)
    whole, first, second = LatencyMetric(), LatencyMetric(), LatencyMetric()
    whole.update(p, X, Y)
    first.update(p[:2], X[:2], Y[:2])
    second.update(p[2:], X[2:], Y[2:])
    assert all("sum" in str(function) for function in whole._reductions.values())
    first.sums += second.sums
    first.count += second.count
    assert first.compute()["hard DAL"].item() == pytest.approx(whole.compute()["hard DAL"].item(), rel=1e-12)
