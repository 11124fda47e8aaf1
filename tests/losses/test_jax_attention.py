# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest

import lagging
from losses import reference

jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
jnp = pytest.importorskip("jax.numpy")

from lagging.losses.jax import (  # noqa: E402
    LatencyController,
    LatencyLoss,
    MonotonicAttention,
    aggregate_heads,
    dal,
    multipath,
    wait_k_mask,
    warm_up,
)

LENGTHS = np.array([6, 4, 1])
ATTENTION = MonotonicAttention(size=8, source_size=5, heads=2, noise=1.5)
PARAMS = ATTENTION.init(jax.random.key(0))
QUERIES = np.random.default_rng(0).normal(size=(3, 4, 8)).astype(np.float32)
KEYS = np.random.default_rng(1).normal(size=(3, 6, 5)).astype(np.float32)
KEYS[1, 4:], KEYS[2, 1:] = math.nan, math.inf


def close(actual, expected, rtol=1e-5):
    np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(expected, np.float64), rtol=rtol, atol=1e-5)


def by_hand(head, hard=False):
    """p, α and β of one head, and the part of the context that it makes, with the parameters of `PARAMS`."""
    params = {name: np.asarray(value, np.float64) for name, value in PARAMS.items()}
    part = slice(4 * head, 4 * head + 4)
    keys = np.where(np.isfinite(KEYS), KEYS, 0).astype(np.float64)

    def energies(name):
        q, k = QUERIES @ params[f"{name}_query"][:, part], keys @ params[f"{name}_key"][:, part]
        return np.einsum("btd,bsd->bts", q, k) / 2

    p = 1 / (1 + np.exp(-energies("stop") - params["bias"][head]))
    alpha = reference.alignment(p, LENGTHS)
    if hard:
        delays = [reference.hard(row, length) for row, length in zip(p, LENGTHS, strict=True)]
        alpha = np.eye(6)[np.array(delays) - 1]
    beta = reference.lookback(alpha, energies("attend"))
    return p, alpha, beta, beta @ (keys @ params["value"][:, part]) @ params["output"][part]


@pytest.mark.parametrize("hard", [False, True])
def test_attention_is_what_its_parts_say(hard):
    seen = ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS, hard=hard)
    assert seen.context.shape == (3, 4, 8)
    expected = 0
    for head in (0, 1):
        p, alpha, beta, context = by_hand(head, hard)
        real = np.arange(6) < LENGTHS[:, None, None]
        close(np.where(real, seen.p[:, head], 0), np.where(real, p, 0))
        close(seen.alignment[:, head], alpha)
        close(seen.weights[:, head], beta)
        close(seen.delays[:, head], (alpha * np.arange(1, 7)).sum(-1))
        expected = expected + context
    close(seen.context, expected)


def test_without_lookback_the_context_is_where_it_stopped():
    only = MonotonicAttention(size=8, source_size=5, heads=2, lookback=False)
    assert set(PARAMS) - set(only.init(jax.random.key(0))) == {"attend_query", "attend_key"}
    seen = only.apply(PARAMS, QUERIES, KEYS, LENGTHS)
    assert (seen.weights == seen.alignment).all()
    assert not jnp.allclose(seen.context, ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS).context)


def test_padding_on_the_left_changes_nothing():
    mask = np.arange(6) >= 6 - LENGTHS[:, None]
    rolled = np.stack([np.roll(row, 6 - length, axis=0) for row, length in zip(KEYS, LENGTHS, strict=True)])
    for hard in (False, True):
        right = ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS, hard=hard)
        left = ATTENTION.apply(PARAMS, QUERIES, rolled, mask=mask, hard=hard)
        close(left.context, right.context)
        close(left.delays, right.delays)


def loss(params, queries, keys, lengths):
    seen = ATTENTION.apply(params, queries, keys, lengths)
    return jnp.sum(dal(seen.delays, lengths[:, None])) + jnp.sum(seen.context**2)


def test_every_parameter_has_a_gradient_and_padding_has_none():
    slopes, of_keys = jax.jit(jax.grad(loss, argnums=(0, 2)))(PARAMS, QUERIES, KEYS, LENGTHS)
    assert set(slopes) == set(PARAMS)
    for name, slope in slopes.items():
        assert np.isfinite(slope).all(), name
        assert np.any(slope), name
    assert not np.asarray(of_keys)[~np.isfinite(KEYS)].any()
    assert np.isfinite(of_keys).all()


def test_noise_is_there_only_with_a_key():
    still = ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS).p
    noisy = [ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS, key=jax.random.key(k)).p for k in (1, 1, 2)]
    assert (noisy[0] == noisy[1]).all()
    assert (noisy[0] != noisy[2]).any()
    logit = [np.log(p[0] / (1 - p[0])) for p in (noisy[0], still)]
    assert 1.2 < np.std(logit[0] - logit[1]) < 1.8
    close(logit[1].mean(), np.log(still[0] / (1 - still[0])).mean())


def test_vmap_over_sentences():
    whole = ATTENTION.apply(PARAMS, QUERIES, KEYS, LENGTHS)
    mapped = jax.jit(jax.vmap(lambda q, k, n: ATTENTION.apply(PARAMS, q, k, n)))(QUERIES, KEYS, LENGTHS)
    jax.tree.map(close, mapped, whole)


def test_heads_share_the_width():
    with pytest.raises(lagging.UsageError, match="8 is none of 3"):
        MonotonicAttention(size=8, heads=3)


def test_heads_become_one():
    latency = np.array([[1.0, 2.0, 6.0], [4.0, 4.0, 4.0]])
    weights = np.exp(latency) / np.exp(latency).sum(-1, keepdims=True)
    close(aggregate_heads(latency), latency.mean(-1))
    close(aggregate_heads(latency, "softmax"), (weights * latency).sum(-1))
    close(aggregate_heads(latency, "max"), [6, 4])
    close(aggregate_heads(latency.T, "variance", axis=-2), latency.var(-1))
    with pytest.raises(lagging.UsageError, match="how must be one of mean, softmax, max, variance, but got 'median'"):
        aggregate_heads(latency, "median")


@pytest.mark.parametrize("k", [1, 3, 9])
def test_wait_k_masks_are_the_policy(k):
    mask = np.asarray(wait_k_mask(k, 7, 5))
    run = lagging.policies.wait_k(k).run(source_lengths=[5], target_lengths=[7])
    assert mask.sum(-1).tolist() == run.delays.values.tolist()
    assert (np.sort(mask, axis=-1)[:, ::-1] == mask).all()
    assert (wait_k_mask(jnp.array([k, 2]), 7, 5)[0] == mask).all()


def test_multipath_draws_every_k():
    k = multipath(jax.random.key(0), 400, 2, 5)
    assert sorted(set(k.tolist())) == [2, 3, 4, 5]
    assert np.bincount(k)[2:].min() > 60
    assert wait_k_mask(k[:3], 7, 5).shape == (3, 7, 5)


DELAYS = jnp.array([[[1.0, 2.0, 3.0], [2.0, 3.0, 3.0]], [[1.0, 1.0, math.nan], [3.0, 3.0, math.nan]]])  # heads differ
SOURCE, TARGET = np.array([3, 3]), np.array([3, 2])


@pytest.mark.parametrize("heads", ["mean", "softmax", "max"])
def test_the_loss_is_the_sum_of_its_parts(heads):
    objective = LatencyLoss(weight=0.5, heads=heads, variance_weight=0.25)
    terms = objective(7.0, DELAYS, SOURCE, TARGET)
    each = np.array([[lagging.dal(h[:n], source_length=3) for h in s] for s, n in zip(DELAYS, TARGET, strict=True)])
    close(terms.latency, aggregate_heads(each, heads).mean())
    close(terms.variance, np.mean([0.25, 0.25, 0, 1, 1]))
    close(terms.loss, 7 + 0.5 * terms.latency + 0.25 * terms.variance)


def test_a_loss_that_makes_no_sense_is_refused():
    names = "slowest, mean, softmax, max"
    with pytest.raises(lagging.UsageError, match=f"heads must be one of {names}, or None, but got 'variance'"):
        LatencyLoss(heads="variance")
    with pytest.raises(lagging.UsageError, match="variance_weight needs heads"):
        LatencyLoss(variance_weight=0.1)


def test_padding_and_empty_sentences_do_not_count():
    objective = LatencyLoss(weight=0.5, heads="mean", variance_weight=1.0)
    plain = objective(0.0, DELAYS, SOURCE, TARGET)
    more = jnp.concatenate([DELAYS, jnp.full((1, 2, 3), math.nan)])
    value, slope = jax.value_and_grad(
        lambda delays: objective(0.0, delays, np.array([3, 3, 0]), np.array([3, 2, 0])).loss
    )(more)
    close(value, plain.loss)
    assert np.isfinite(slope).all()
    mask = np.arange(3) < TARGET[:, None]
    close(objective(0.0, DELAYS, SOURCE, mask=mask).loss, plain.loss)


def test_without_heads():
    terms = LatencyLoss(weight=2.0)(1.0, DELAYS[:, 0], SOURCE, TARGET, write_cost=jnp.array([1.0, 0.5]))
    first = lagging.dal([1, 2, 3], source_length=3, write_cost=1), lagging.dal([1, 1], source_length=3, write_cost=0.5)
    close(terms.latency, np.mean(first))
    close(terms.loss, 1 + 2 * np.mean(first))
    assert terms.variance == 0


def test_warm_up_and_a_weight_from_outside():
    objective = LatencyLoss(weight=4.0, start=10, steps=20)
    run = jax.jit(lambda step, weight: objective(0.0, DELAYS[:, 0], SOURCE, TARGET, step=step, weight=weight).weight)
    assert [float(run(step, 2.0)) for step in (0, 10, 20, 30, 40)] == [0, 0, 1, 2, 2]
    assert objective(0.0, DELAYS[:, 0], SOURCE, TARGET).weight == 4
    assert [float(warm_up(step, 3)) for step in (2, 3)] == [0, 1]


def test_the_controller_finds_the_weight_of_a_wanted_latency():
    """Of a model whose latency is what minimizes (g − 9)²/2 + λ·g, that is 9 − λ: for 4 it takes λ = 5."""

    @jax.jit
    def step(state):
        delay, controller = state
        slope = delay - 9 + controller.weight
        delay = delay - 0.3 * slope
        return delay, controller.update(delay)

    state = jnp.array(9.0), LatencyController(target=4.0, weight=0.0, rate=0.05)
    state = state[0], jax.tree.map(jnp.asarray, state[1])
    for _ in range(400):
        state = step(state)
    delay, controller = state
    close(delay, 4.0, rtol=1e-3)
    close(controller.weight, 5.0, rtol=1e-3)


def test_the_weight_is_never_negative_nor_beyond_its_highest():
    controller = LatencyController(target=4.0, weight=0.1, rate=1.0, highest=2.0)
    assert controller.update(1.0).weight == 0
    assert controller.update(9.0).weight == 2
    assert jax.grad(lambda latency: controller.update(latency).weight)(4.5) == 0
