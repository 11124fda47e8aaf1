# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
import torch

import lagging
from lagging.errors import UsageError
from lagging.losses.torch import MonotonicAttention, aggregate_heads, dal, multipath, wait_k_mask
from losses import reference

LENGTHS = [6, 4, 1]
DIRT = torch.tensor([math.nan, math.inf])


def sentences(size=8, source_size=5, seed=0):
    dice = torch.Generator().manual_seed(seed)
    queries = torch.randn(3, 4, size, generator=dice, dtype=torch.float64)
    keys = torch.randn(3, 6, source_size, generator=dice, dtype=torch.float64)
    for b, n in enumerate(LENGTHS):
        keys[b, n:] = DIRT[b % 2]
    return queries, keys


def attention(**more):
    torch.manual_seed(1)
    return MonotonicAttention(**{"size": 8, "source_size": 5, "heads": 2, **more}).double()


def by_hand(model, queries, keys, head, hard):
    """p, α, β of one head and what it adds to the context, with loops where there are loops to have."""
    keys = keys.clone()
    for b, n in enumerate(LENGTHS):
        keys[b, n:] = 0
    part = slice(4 * head, 4 * head + 4)
    weight = {name: layer.weight.detach() for name, layer in model.named_children()}

    def energies(kind):
        q, k = queries @ weight[f"{kind}_query"][part].T, keys @ weight[f"{kind}_key"][part].T
        return torch.einsum("btd,bsd->bts", q, k).numpy() / 2

    p = 1 / (1 + np.exp(-(energies("stop") + model.bias[head].item())))
    if hard:
        alpha = np.stack([np.eye(6)[np.array(reference.hard(p[b], n)) - 1] for b, n in enumerate(LENGTHS)])
    else:
        alpha = reference.alignment(p, LENGTHS)
    beta = reference.lookback(alpha, energies("attend"))
    context = torch.tensor(beta) @ (keys @ weight["value"][part].T) @ weight["output"][:, part].T
    return p, alpha, beta, context.numpy()


@pytest.mark.parametrize("hard", [False, True])
def test_attention_is_made_of_its_parts(hard):
    model = attention(noise=0.0).train(not hard)
    queries, keys = sentences()
    seen = model(queries, keys, LENGTHS)
    total = 0.0
    for head in range(2):
        p, alpha, beta, context = by_hand(model, queries, keys, head, hard)
        for b, n in enumerate(LENGTHS):
            np.testing.assert_allclose(seen.p[b, head, :, :n].detach(), p[b, :, :n], rtol=1e-10)
        np.testing.assert_allclose(seen.alignment[:, head].detach(), alpha, rtol=1e-10)
        np.testing.assert_allclose(seen.weights[:, head].detach(), beta, rtol=1e-10)
        np.testing.assert_allclose(seen.delays[:, head].detach(), alpha @ np.arange(1, 7), rtol=1e-10)
        total = total + context
    np.testing.assert_allclose(seen.context.detach(), total, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(seen.alignment.detach().sum(-1), 1, rtol=1e-12)
    np.testing.assert_allclose(seen.weights.detach().sum(-1), 1, rtol=1e-12)


def test_noise_is_there_in_training_alone():
    model = attention(noise=3.0)
    queries, keys = sentences()

    def seen(**more):
        return model(queries, keys, LENGTHS, **more)

    one, other = seen(generator=torch.Generator().manual_seed(0)), seen(generator=torch.Generator().manual_seed(0))
    assert torch.equal(one.p, other.p)
    assert not torch.equal(one.p, seen().p)
    moved = torch.logit(one.p[0]) - torch.logit(seen(hard=True).p[0])
    assert 2 < moved.std() < 4
    model.eval()
    assert torch.equal(seen().p, seen().p)
    assert torch.equal(seen().p, seen(hard=False).p)


def test_translating_is_hard_and_can_be_asked_for():
    model = attention(noise=0.0)
    queries, keys = sentences()
    soft, hard = model(queries, keys, LENGTHS), model(queries, keys, LENGTHS, hard=True)
    model.eval()
    assert torch.equal(model(queries, keys, LENGTHS).delays, hard.delays)
    torch.testing.assert_close(model(queries, keys, LENGTHS, hard=False).delays, soft.delays)
    assert ((hard.alignment == 0) | (hard.alignment == 1)).all()
    assert not torch.equal(soft.delays, hard.delays)
    for b, n in enumerate(LENGTHS):
        for head in range(2):
            delays = hard.delays[b, head].tolist()
            assert dal(hard.delays[b, head], n).item() == pytest.approx(lagging.dal(delays, source_length=n), rel=1e-6)


def test_padding_reaches_nothing_and_its_side_does_not_matter():
    model = attention(noise=0.0)
    queries, keys = sentences()
    mask, moved = torch.zeros(3, 6, dtype=torch.bool), torch.full_like(keys, math.nan)
    for b, n in enumerate(LENGTHS):
        mask[b, 6 - n :] = True
        moved[b, 6 - n :] = keys[b, :n]
    results = []
    for given, more in ((keys, {"source_lengths": LENGTHS}), (moved, {"mask": mask})):
        model.zero_grad()
        seen = model(queries, given.requires_grad_(), **more)
        (seen.context.sum() + dal(seen.delays, torch.tensor(LENGTHS)[:, None]).sum()).backward()
        assert torch.isfinite(given.grad).all()
        results.append([seen.context, seen.delays, *(p.grad for p in model.parameters())])
    assert all(torch.isfinite(one).all() for one in results[0])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-12)


def test_every_parameter_is_trained_and_the_latency_trains_the_policy():
    model = attention(heads=4)
    queries, keys = sentences()
    seen = model(queries, keys, LENGTHS)
    seen.context.square().sum().backward()
    assert all(p.grad is not None and p.grad.any() for p in model.parameters())
    model.zero_grad()
    seen = model(queries, keys, LENGTHS)
    dal(seen.delays, torch.tensor(LENGTHS)[:, None]).sum().backward()
    trained = {name for name, p in model.named_parameters() if p.grad is not None and p.grad.any()}
    assert trained == {"bias", "stop_query.weight", "stop_key.weight"}
    assert (model.bias.grad < 0).all(), "a higher bias stops earlier"


def test_without_lookback_the_context_is_where_it_stopped():
    model = attention(lookback=False, noise=0.0)
    assert {name for name, _ in model.named_children()} == {"stop_query", "stop_key", "value", "output"}
    queries, keys = sentences()
    seen = model(queries, keys, LENGTHS)
    assert torch.equal(seen.weights, seen.alignment)
    model.eval()
    seen = model(queries, keys, LENGTHS)
    clean = torch.where(keys.isfinite(), keys, 0.0)
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        values = clean @ model.value.weight[part].T
        at = (seen.delays[:, head].long() - 1)[..., None].expand(3, 4, 4)
        torch.testing.assert_close((seen.weights @ values[:, None])[:, head], values.gather(1, at))


def test_without_lengths_all_is_real():
    model = attention(noise=0.0)
    queries, keys = sentences()
    keys = torch.where(keys.isfinite(), keys, 1.0)
    torch.testing.assert_close(model(queries, keys).context, model(queries, keys, 6).context)
    assert model(queries[0], keys[0]).context.shape == (4, 8)
    torch.testing.assert_close(model(queries[0], keys[0], 6).context, model(queries, keys, 6).context[0])


def test_half_precision():
    model = attention(noise=0.0)
    queries, keys = sentences()
    exact = model(queries, keys, LENGTHS)
    model.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen = model(queries.float(), keys.float(), LENGTHS)
    assert seen.delays.dtype == seen.alignment.dtype == torch.float32
    torch.testing.assert_close(seen.delays.double(), exact.delays, rtol=0.02, atol=0.02)
    np.testing.assert_allclose(seen.alignment.detach().double().sum(-1), 1, atol=1e-6)
    whole = model.bfloat16()(queries.bfloat16(), keys.bfloat16(), LENGTHS)
    assert whole.context.dtype == torch.bfloat16
    assert whole.delays.dtype == torch.float32


def test_a_size_that_the_heads_cannot_share():
    with pytest.raises(UsageError, match="multiple of the number of heads"):
        MonotonicAttention(8, heads=3)


@pytest.mark.parametrize("lookback", [True, False])
def test_step_by_step_equals_whole(lookback):
    """Sentences of a batch read one token at a time, each as its own heads want."""
    model = attention(lookback=lookback, bias=0.5).eval()
    queries, keys = sentences()
    whole = model(queries, keys, LENGTHS)
    state = model.start(3)
    read, token = [0, 0, 0], [0, 0, 0]
    delays: list[list[int]] = [[], [], []]
    for _ in range(40):
        new = torch.stack([keys[b, min(n, 5)] for b, n in enumerate(read)])[:, None]
        fresh = torch.tensor([[(not delays[b] and n == 0) or n < LENGTHS[b]] for b, n in enumerate(read)])
        wants = fresh & torch.tensor([[n == 0 or not bool(state.written[b])] for b, n in enumerate(read)])
        read = [n + int(w) for n, w in zip(read, wants[:, 0], strict=True)]
        query = torch.stack([queries[b, min(t, 3)] for b, t in enumerate(token)])
        finished = torch.tensor([n == LENGTHS[b] for b, n in enumerate(read)])
        context, state = model.step(query, new, state, mask=wants, finished=finished)
        for b in range(3):
            if state.written[b] and token[b] < 4:
                torch.testing.assert_close(context[b], whole.context[b, token[b]], rtol=1e-9, atol=1e-12)
                delays[b].append(int(state.delays[b]))
                token[b] += 1
            elif not state.written[b]:
                assert not context[b].any()
    assert token == [4, 4, 4]
    assert delays == whole.delays.amax(-2).int().tolist()


def test_one_sentence_by_chunks_equals_whole():
    model = attention().eval()
    queries, keys = (part[0] for part in sentences())
    whole, state = model(queries, keys), model.start()
    context, state = model.step(queries[0], keys[:0], state)
    assert not state.written
    assert not context.any()
    for t in range(4):
        context, state = model.step(queries[t], keys[state.size : state.size + 2], state, finished=state.size + 2 >= 6)
        while not state.written:
            context, state = model.step(queries[t], keys[state.size : state.size + 2], state, finished=state.size >= 4)
        torch.testing.assert_close(context, whole.context[t], rtol=1e-9, atol=1e-12)


def test_targets_padded_on_the_left():
    queries, keys = sentences()
    rows = torch.tensor([[False, False, True, True], [True] * 4, [False, True, True, True]])
    for hard in (False, True):
        model = attention(noise=0.0)
        seen = model(queries, keys, LENGTHS, target_mask=rows, hard=hard)
        alone = model(queries[0, 2:], keys[0], 6, hard=hard)
        torch.testing.assert_close(seen.context[0, 2:], alone.context)
        torch.testing.assert_close(seen.delays[0, :, 2:], alone.delays)
        assert not seen.delays[0, :, :2].any()


# ---- heads ------------------------------------------------------------------------------------------------------


def test_heads_become_one_number():
    values = torch.tensor([[1.0, 5.0, 3.0], [2.0, 2.0, 2.0]], dtype=torch.float64)
    assert aggregate_heads(values).tolist() == [3, 2]
    assert aggregate_heads(values, "max").tolist() == [5, 2]
    np.testing.assert_allclose(aggregate_heads(values, "variance"), [8 / 3, 0])
    weights = np.exp(values.numpy())
    want = (values.numpy() * weights).sum(1) / weights.sum(1)
    np.testing.assert_allclose(aggregate_heads(values, "softmax"), want)
    assert aggregate_heads(values, "max", dim=0).tolist() == [2, 5, 3]
    assert aggregate_heads(torch.tensor([4.0]), "variance").item() == 0
    for how in ("mean", "softmax", "max", "variance"):
        torch.autograd.gradcheck(lambda v, how=how: aggregate_heads(v[:1], how), values.clone().requires_grad_())
    with pytest.raises(UsageError, match="how must be one of mean, softmax, max, variance, but got 'median'"):
        aggregate_heads(values, "median")


def test_latency_of_the_heads_first_and_their_mean_then():
    """The mean of the delays has a smaller DAL than the mean of the DALs: each head reads late somewhere else."""
    delays = torch.tensor([[[1.0, 6, 6, 6], [3.0, 3, 3, 6]]])
    each = dal(delays, torch.tensor([[6.0]]))
    assert aggregate_heads(each).item() == pytest.approx(np.mean([lagging.dal(g, source_length=6) for g in delays[0]]))
    assert dal(delays.mean(1), 6.0).item() < aggregate_heads(each).item()


# ---- wait-k -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 3, 9])
def test_wait_k_masks_are_the_policy(k):
    mask = wait_k_mask(k, 5, 6)
    assert mask.sum(-1).tolist() == lagging.policies.wait_k(k).delays(6, 5).tolist()
    assert (mask.int().diff(dim=-1) <= 0).all(), "what is read is a prefix"
    several = wait_k_mask(torch.tensor([k, 2]), 5, 6)
    assert torch.equal(several[0], mask)
    assert torch.equal(several[1], wait_k_mask(2, 5, 6))
    queries, keys = torch.randn(5, 4), torch.randn(6, 4)
    context = torch.nn.functional.scaled_dot_product_attention(queries, keys, keys, attn_mask=mask)
    assert torch.isfinite(context).all()


def test_multipath_draws_every_k():
    k = multipath(torch.Generator().manual_seed(0), 400, 2, 5)
    assert k.unique().tolist() == [2, 3, 4, 5]
    assert k.bincount()[2:].min() > 60
    assert torch.equal(k, multipath(torch.Generator().manual_seed(0), 400, 2, 5))
    assert multipath(None, 3, 1, 1).tolist() == [1, 1, 1]
