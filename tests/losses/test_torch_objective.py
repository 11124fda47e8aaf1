# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
import torch

import lagging
from lagging.errors import UsageError
from lagging.losses.torch import (
    LatencyController,
    LatencyLoss,
    aggregate_heads,
    dal,
    expected_alignment,
    expected_delays,
    warm_up,
)
from losses.vectors import PAPER, batch


def test_the_loss_is_the_sum_of_its_parts():
    b = batch(PAPER, fill=math.nan)
    delays = torch.tensor(b.delays, requires_grad=True)
    terms = LatencyLoss(weight=0.25)(torch.tensor(3.0), delays, b.source_lengths, b.target_lengths)
    mean = np.mean([v.dal for v in PAPER])
    assert terms.latency.item() == pytest.approx(mean)
    assert terms.loss.item() == pytest.approx(3 + 0.25 * mean)
    assert (terms.likelihood.item(), terms.variance.item(), terms.weight.item()) == (3, 0, 0.25)
    terms.loss.backward()
    assert delays.grad.sum().item() == pytest.approx(0.25)
    masked = LatencyLoss(weight=0.25)(3.0, delays, b.source_lengths, mask=b.mask)
    assert masked.loss.item() == pytest.approx(terms.loss.item())


def test_sentences_without_tokens_do_not_dilute_the_mean():
    delays = torch.tensor([[4.0, 4, 4, 4, 5], [math.nan] * 5])
    terms = LatencyLoss()(0.0, delays, [5, 0], [5, 0])
    assert terms.latency == 4
    assert LatencyLoss()(0.0, delays, [5, 0], [0, 0]).loss == 0


def test_a_write_cost_and_a_rule_for_ties():
    delays = torch.tensor([[3.0, 4, 5, 6, 6, 6]], requires_grad=True)
    terms = LatencyLoss(ties="first")(0.0, delays, [6])
    (slope,) = torch.autograd.grad(terms.loss, delays)
    assert slope.tolist() == [[1, 0, 0, 0, 0, 0]]
    terms = LatencyLoss()(0.0, delays, [6], write_cost=0.5)
    assert terms.latency.item() == pytest.approx(lagging.dal(delays[0].tolist(), source_length=6, write_cost=0.5))


def test_heads_have_a_dal_each_and_a_variance_over_real_tokens():
    dice = torch.Generator().manual_seed(0)
    delays = (torch.rand(3, 4, 5, generator=dice, dtype=torch.float64) * 6).sort(-1).values
    x, y = torch.tensor([6.0, 5.0, 7.0]), torch.tensor([5, 3, 1])
    dirty = torch.where((torch.arange(5) < y[:, None])[:, None], delays, math.nan).requires_grad_()
    each = [[lagging.dal(h[:n].numpy(), source_length=s) for h in row] for row, s, n in zip(delays, x, y, strict=True)]
    spread = [delays[b, :, t].numpy().var() for b in range(3) for t in range(y[b])]
    for how in ("mean", "softmax", "max"):
        terms = LatencyLoss(weight=2.0, heads=how, variance_weight=0.5)(1.0, dirty, x, y)
        want = aggregate_heads(np.array(each), how).mean().item()
        assert terms.latency.item() == pytest.approx(want, rel=1e-12)
        assert terms.variance.item() == pytest.approx(np.mean(spread), rel=1e-12)
        assert terms.loss.item() == pytest.approx(1 + 2 * want + 0.5 * np.mean(spread), rel=1e-12)
        (slope,) = torch.autograd.grad(terms.loss, dirty)
        assert torch.isfinite(slope).all()
        assert not slope[dirty.isnan()].any()
    only = LatencyLoss(weight=0.0, heads="mean", variance_weight=1.0)(0.0, dirty, x, y)
    assert only.loss.item() == pytest.approx(np.mean(spread), rel=1e-12), "the variance has a weight of its own"
    costed = LatencyLoss(heads="mean")(0.0, dirty, x, y, write_cost=torch.tensor([1.0, 2.0, 3.0]))
    free = dal(delays, x[:, None], y[:, None], write_cost=torch.tensor([[1.0], [2.0], [3.0]])).mean()
    assert costed.latency.item() == pytest.approx(free.item(), rel=1e-12)


@pytest.mark.parametrize(
    ("more", "said"), [({"heads": "median"}, "heads must be"), ({"variance_weight": 1.0}, "needs heads")]
)
def test_losses_that_make_no_sense(more, said):
    with pytest.raises(UsageError, match=said):
        LatencyLoss(**more)


def test_warm_up():
    loss = LatencyLoss(weight=0.5, start=10, steps=4)
    delays = torch.tensor([[2.0, 2.0]])
    weights = [loss(0.0, delays, 2, step=step).weight.item() for step in (0, 9, 10, 11, 12, 14, 1000)]
    assert weights == [0, 0, 0, 0.125, 0.25, 0.5, 0.5]
    assert loss(0.0, delays, 2).weight.item() == 0.5
    assert warm_up(torch.tensor([4, 5, 6]), start=5).tolist() == [0, 1, 1]
    assert loss(0.0, delays, 2, step=12, weight=torch.tensor(4.0)).weight.item() == 2


def test_the_controller_climbs_while_it_is_too_slow():
    controller = LatencyController(target=4.0, rate=0.5, weight=1.0, highest=3.0)
    assert controller.update(torch.tensor(5.0, requires_grad=True)).item() == 1.5
    assert not controller.weight.requires_grad
    assert controller.update(4.0).item() == 1.5
    assert controller.update(100.0).item() == 3
    assert controller.update(-100.0).item() == 0


def test_the_state_of_the_controller_is_saved():
    model = torch.nn.ModuleDict({"controller": LatencyController(target=4.0, rate=0.5)})
    model["controller"].update(6.0)
    other = torch.nn.ModuleDict({"controller": LatencyController(target=4.0, rate=0.5)})
    other.load_state_dict(model.state_dict())
    assert other["controller"].weight == model["controller"].weight == 1


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_a_cast_of_the_module_leaves_the_weight_in_float32(dtype):
    model = torch.nn.ModuleDict({"layer": torch.nn.Linear(1, 1), "controller": LatencyController(4.0, rate=1e-4)})
    model["controller"].update(5.0)
    model.to(dtype)
    assert model["layer"].weight.dtype == dtype
    for _ in range(100):
        weight = model["controller"].update(torch.tensor(5.0, dtype=dtype))
    assert weight.dtype == torch.float32
    assert weight.item() == pytest.approx(0.0101, rel=1e-4)


def test_the_loss_owns_its_controller():
    controller = LatencyController(target=4.0, rate=0.5, weight=1.0)
    loss = LatencyLoss(weight=controller, start=10, steps=10)
    terms = loss(0.0, torch.tensor([[6.0, 6.0]]), 6, step=15)
    assert terms.weight.item() == 0.5
    assert loss.update(terms).item() == controller.weight.item() == 1.5, "half in force: half the step"
    assert loss.state_dict().keys() == {"weight.weight"}
    assert loss(0.0, torch.tensor([[6.0, 6.0]]), 6, weight=2.0).weight.item() == 2
    assert LatencyLoss()(0.0, torch.tensor([[6.0, 6.0]]), 6, weight=controller).weight.item() == 1.5
    with pytest.raises(UsageError, match="fixed weight"):
        LatencyLoss().update(terms)


def test_a_decoder_waits_for_its_slowest_head():
    """Two heads of DAL 4 each: which of them is slower changes, so that the decoder has 4.75."""
    delays = torch.tensor([[[4.0, 4, 8, 8], [1.0, 7, 7, 7]]], dtype=torch.float64).requires_grad_()
    want = lagging.dal(delays[0].amax(0).tolist(), source_length=8)
    each = [lagging.dal(head.tolist(), source_length=8) for head in delays[0]]
    assert (each, want) == ([4, 4], 4.75)
    terms = LatencyLoss(heads="slowest", variance_weight=0.5)(0.0, delays, 8)
    assert terms.latency.item() == terms.system.item() == pytest.approx(want, rel=1e-12)
    (slope,) = torch.autograd.grad(terms.latency, delays)
    assert slope.sum().item() == pytest.approx(1)
    assert not terms.system.requires_grad
    for how in ("mean", "softmax", "max"):
        terms = LatencyLoss(heads=how)(0.0, delays, 8)
        assert terms.latency.item() < want
        assert terms.system.item() == pytest.approx(want, rel=1e-12)
        controller = LatencyController(target=0.0, rate=1e-3)
        assert controller.update(terms).item() == pytest.approx(1e-3 * want, rel=1e-5), "it aims at the system"
    dirty = torch.cat([delays, torch.full_like(delays[..., :1], math.nan)], -1)
    assert LatencyLoss(heads="slowest")(0.0, dirty, 8, 4).latency.item() == pytest.approx(want, rel=1e-12)


def test_the_weight_waits_while_the_warm_up_keeps_it_out_of_force():
    """Otherwise it grows without any effect, and then ruins the model at once."""
    loss, controller = LatencyLoss(start=100, steps=100), LatencyController(target=4.0, rate=0.01)
    delays = torch.full((1, 12), 12.0)
    weights = [controller.update(loss(1.0, delays, 12, step=s, weight=controller.weight)).item() for s in range(201)]
    assert weights[100] == 0
    assert weights[200] == pytest.approx(0.01 * 8 * sum(n / 100 for n in range(101)), rel=1e-5)


@pytest.mark.parametrize("latency", [math.nan, math.inf, -math.inf])
def test_a_latency_that_is_not_finite_changes_nothing(latency):
    controller = LatencyController(target=4.0, rate=0.5)
    controller.update(5.0)
    assert controller.update(latency).item() == 0.5
    assert controller.update(5.0).item() == 1


def test_a_weight_without_a_finite_bound_is_refused():
    assert LatencyController(target=4.0, rate=1e9).update(9.0).item() == 10
    with pytest.raises(UsageError, match="finite"):
        LatencyController(target=4.0, highest=math.inf)
    with pytest.raises(UsageError, match="weight=11"):
        LatencyController(target=4.0, weight=11.0)


def _update_on_rank(rank, address, results):
    torch.distributed.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    controller = LatencyController(target=4.0, rate=0.5)
    controller.update(5.0 + 2 * rank)
    results.put((rank, controller.weight.item(), controller.update(math.nan if rank else 5.0).item()))
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()


@pytest.mark.slow
def test_processes_that_train_together_share_one_weight(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    results = context.SimpleQueue()
    processes = [
        context.Process(target=_update_on_rank, args=(rank, f"file://{tmp_path}/meet", results)) for rank in range(2)
    ]
    for process in processes:
        process.start()
    collected = sorted(results.get() for _ in processes)
    for process in processes:
        process.join()
    assert collected == [(0, 1.0, 1.5), (1, 1.0, 1.5)], "late by 1 and by 3; then by 1 and by what is not known"


@pytest.mark.parametrize("target", [2.5, 5.0])
def test_train_me_at_a_latency(target):
    """A policy that would rather read all, as its likelihood grows with what it has read, ends at the wanted DAL."""
    logits = torch.zeros(1, 10, 10, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.05)
    loss, controller = LatencyLoss(), LatencyController(target=target, rate=0.005)
    seen = []
    for _ in range(500):
        delays = expected_delays(expected_alignment(torch.sigmoid(logits), 10))
        likelihood = ((10 - delays) ** 2).mean() / 10
        terms = loss(likelihood, delays, 10, weight=controller.weight)
        optimizer.zero_grad()
        terms.loss.backward()
        optimizer.step()
        controller.update(terms.latency)
        seen.append(terms.latency.item())
    assert np.mean(seen[-50:]) == pytest.approx(target, abs=0.05)
    assert max(seen) > target + 1, "without λ it would be slow"
    assert controller.weight > 0.05
