# SPDX-License-Identifier: Apache-2.0
import math
from functools import partial

import numpy as np
import pytest

import lagging
from losses import reference

jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
jnp = pytest.importorskip("jax.numpy")

from lagging.losses.jax import (  # noqa: E402
    cif_delays,
    dal,
    expected_alignment,
    expected_alignment_step,
    expected_delays,
    hard_alignment,
    infinite_lookback,
)

SHAPE = (3, 5, 7)  # one for most tests, as every shape is compiled
LENGTHS = np.array([7, 4, 1])
FILLS = (math.nan, math.inf, -math.inf, 2.0)


def relative(actual, expected):
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    return np.abs(actual - expected).max() / np.abs(expected).max()


def close(actual, expected, rtol=2e-6):
    np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(expected, np.float64), rtol=rtol, atol=1e-6)


def padded(values, fills=FILLS, lengths=LENGTHS):
    """In float32, with what must not be looked at behind the last real source token."""
    values = np.array(values, np.float32)
    for b, length in enumerate(lengths):
        values[b, ..., length:] = np.resize(fills, values[b, ..., length:].shape)
    return values


@pytest.fixture(scope="module")
def p():
    return reference.probabilities("uniform", SHAPE)


@jax.jit
def run(p, weights, lengths):
    """α, and the gradient of Σ weights·α in p."""
    alpha, back = jax.vjp(lambda p: expected_alignment(p, lengths), p)
    return alpha, back(weights)[0]


def policies(size, kinds):
    """p of each kind as a batch, in the precision in which it is given."""
    constant = {"a tenth": 0.1, "a thousandth": 0.001}  # whose rounding is the same at every step
    rows = [
        np.full((1, size, size), constant[k]) if k in constant else reference.probabilities(k, (1, size, size))
        for k in kinds
    ]
    return np.concatenate(rows).astype(np.float32)


def accurate(alpha, expected, size):
    assert np.isfinite(alpha).all()
    some = expected > 1e-12
    assert (np.abs(np.asarray(alpha, np.float64) - expected)[some] / expected[some]).max() <= 5e-6
    np.testing.assert_allclose(np.asarray(alpha).sum(-1), 1, rtol=0, atol=1e-5)


@pytest.mark.parametrize("size", [32, 128, 512])
def test_no_mass_is_lost_and_the_gradient_is_right(size):
    p = policies(size, (*reference.KINDS, "a tenth", "a thousandth"))
    lengths = [size] * len(p)
    delays = np.broadcast_to(np.arange(1, size + 1), p.shape)  # Σ weights·α is then the sum of the expected delays
    noise = np.random.default_rng(0).normal(size=p.shape)
    some = slice(None) if size < 512 else slice(1, None, 2)  # the reference is slow
    for weights in (delays, noise) if size < 512 else (delays,):
        alpha, gradient = run(p, weights.astype(np.float32), jnp.array(lengths))
        slope = reference.alignment_gradient(p[some], weights[some].astype(np.float32), lengths[some])
        assert max(map(relative, gradient[some], slope)) <= 1e-5
    accurate(alpha, reference.alignment(p, lengths), size)


def test_a_thousand_tokens():
    p = policies(1024, reference.KINDS)
    weights = np.broadcast_to(np.arange(1024, dtype=np.float32), p.shape)
    alpha, gradient = run(p, weights, jnp.full(len(p), 1024))
    accurate(alpha, reference.alignment(p, [1024] * len(p)), 1024)
    assert relative(gradient[2], reference.alignment_gradient(p[2:3], weights[2:3], [1024])[0]) <= 1e-5
    assert np.isfinite(gradient).all()


def test_padding_is_harmless_and_every_row_sums_to_one(p):
    weights = np.random.default_rng(1).normal(size=SHAPE)
    alpha, gradient = run(padded(p), padded(weights), LENGTHS)
    close(alpha, reference.alignment(p, LENGTHS))
    close(alpha.sum(-1), np.ones(SHAPE[:2]))
    close(gradient, reference.alignment_gradient(p, weights, LENGTHS))
    assert not np.asarray(alpha)[np.isnan(padded(p, math.nan))].any()


def test_target_tokens_that_no_loss_looks_at_may_be_anything(p):
    weights = np.random.default_rng(1).normal(size=SHAPE).astype(np.float32)
    weights[:, 3:] = 0
    plain = run(p.astype(np.float32), weights, LENGTHS)
    odd = p.astype(np.float32)
    odd[:, 3], odd[:, 4] = math.nan, math.inf
    alpha, gradient = run(odd, weights, LENGTHS)
    assert (alpha[:, :3] == plain[0][:, :3]).all()
    assert (gradient == plain[1]).all()
    assert not np.asarray(gradient)[:, 3:].any()


def test_padding_on_the_left(p):
    """The same tokens at the end of the row."""
    mask = np.arange(SHAPE[2]) >= SHAPE[2] - LENGTHS[:, None]
    shifted = np.stack(
        [np.roll(row, SHAPE[2] - length, axis=-1) for row, length in zip(padded(p), LENGTHS, strict=True)]
    )
    energies = np.random.default_rng(2).normal(size=SHAPE)
    alpha, times = expected_alignment(padded(p), LENGTHS), np.cumsum(mask, -1)
    moved = expected_alignment(shifted, mask=mask)
    soft = infinite_lookback(alpha, energies, LENGTHS)
    rolled = np.stack(
        [np.roll(row, SHAPE[2] - length, -1) for row, length in zip(padded(energies), LENGTHS, strict=True)]
    )
    for right, left in ((alpha, moved), (soft, infinite_lookback(moved, rolled, mask=mask))):
        for a, b, length in zip(right, left, LENGTHS, strict=True):
            close(b[..., SHAPE[2] - length :], a[..., :length])
            assert not b[..., : SHAPE[2] - length].any()
    close(expected_delays(moved, times), expected_delays(alpha))
    assert (hard_alignment(shifted, mask=mask) == hard_alignment(padded(p), LENGTHS)).all()


def test_without_lengths_mass_may_be_lost(p):
    alpha = expected_alignment(p.astype(np.float32))
    close(alpha, reference.alignment(p))
    assert (alpha.sum(-1) < 0.999).any()


def test_step_by_step_is_the_same(p):
    def stepwise(p):
        def step(previous, now):
            alpha = expected_alignment_step(previous, now, LENGTHS)
            return alpha, alpha

        start = jnp.broadcast_to(jnp.eye(1, SHAPE[2])[0], (SHAPE[0], SHAPE[2]))
        return jnp.moveaxis(jax.lax.scan(step, start, jnp.moveaxis(p, 1, 0))[1], 0, 1)

    weights = padded(np.random.default_rng(3).normal(size=SHAPE))
    alpha, back = jax.jit(partial(jax.vjp, stepwise))(padded(p))
    whole, gradient = run(padded(p), weights, LENGTHS)
    close(alpha, whole)
    close(back(weights)[0], gradient)  # through the previous row as well


def test_expected_delays_in_tokens_and_in_time(p):
    alpha = np.asarray(expected_alignment(p, LENGTHS))
    close(expected_delays(alpha), (alpha * np.arange(1, 8)).sum(-1))
    times = padded(np.broadcast_to(np.arange(1, 8) * 40.0, (SHAPE[0], SHAPE[2])))
    close(expected_delays(alpha, times), 40 * np.asarray(expected_delays(alpha)))
    assert np.isfinite(jax.grad(lambda a: expected_delays(a, times).sum())(alpha)).all()
    assert math.isnan(expected_delays(jnp.array([[0.5, 0.5]]), jnp.array([1.0, math.nan]))[0])


@jax.jit
def soft(alpha, energies, lengths):
    beta, back = jax.vjp(lambda alpha, energies: infinite_lookback(alpha, energies, lengths), alpha, energies)
    return beta, back(jnp.where(jnp.arange(SHAPE[2]) < lengths[:, None, None], beta, jnp.nan))


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 1e4, 1e30, 3e38])
def test_lookback_holds_for_energies_of_any_size(p, scale):
    alpha = reference.alignment(p, LENGTHS)
    energies = np.clip(np.random.default_rng(4).normal(size=SHAPE), -1, 1).astype(np.float32) * np.float32(scale)
    beta, gradients = soft(alpha.astype(np.float32), padded(energies), LENGTHS)
    close(beta, reference.lookback(alpha, energies))
    close(beta.sum(-1), np.ones(SHAPE[:2]))
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    assert not np.asarray(gradients[1])[np.isnan(padded(energies, math.nan))].any()


def test_lookback_over_many_tokens_keeps_the_mass():
    alpha = np.eye(512, dtype=np.float32)[None, ::64]
    for energies in (
        np.zeros(512),
        np.arange(512) * 0.001,
        -np.arange(512.0),
        np.random.default_rng(0).normal(size=512) * 6,
    ):
        energies = np.broadcast_to(energies.astype(np.float32), alpha.shape)
        beta = infinite_lookback(alpha, energies)
        assert np.abs(beta.sum(-1) - 1).max() <= 3e-6
        close(beta, reference.lookback(alpha, energies), rtol=1e-5)


def test_the_gradient_of_lookback_is_that_of_finite_differences(wide, p):
    alpha, energies = reference.alignment(p, LENGTHS), np.random.default_rng(5).normal(size=SHAPE)
    weights = np.random.default_rng(6).normal(size=SHAPE)

    @jax.jit
    def total(alpha, energies):
        return (weights * infinite_lookback(alpha, energies)).sum()

    for argument in (0, 1):
        slope = np.asarray(jax.grad(total, argument)(alpha, energies))
        for place in [(0, 0, 0), (0, 4, 6), (1, 2, 3), (2, 1, 0), (1, 4, 5)]:  # also where α is 0
            moved = [np.zeros(SHAPE), np.zeros(SHAPE)]
            moved[argument][place] = 1e-6
            up, down = (total(alpha + sign * moved[0], energies + sign * moved[1]) for sign in (1, -1))
            assert abs((up - down) / 2e-6 - slope[place]) < 1e-8


def test_minus_infinity_masks_an_energy():
    beta = infinite_lookback(jnp.array([[0.0, 0, 1]]), jnp.array([[-math.inf, 0.0, 0.0]]))
    close(beta, [[0, 0.5, 0.5]])
    beta = infinite_lookback(
        jnp.array([[0.0, 1, 0]]), jnp.array([[math.nan, -math.inf, 0]]), mask=jnp.array([False, True, True])
    )
    close(beta, [[0, 1, 0]])  # padding takes nothing of it


@pytest.mark.parametrize("kind", reference.KINDS)
def test_hard_alignments_give_the_evaluators_latency(kind):
    p = reference.probabilities(kind, SHAPE, seed=7)
    expected = [reference.hard(row, length) for row, length in zip(p, LENGTHS, strict=True)]
    delays = hard_alignment(padded(p), LENGTHS)
    assert jnp.issubdtype(delays.dtype, jnp.integer)
    assert delays.tolist() == expected
    for value, row, length in zip(dal(delays, LENGTHS), expected, LENGTHS, strict=True):
        assert abs(float(value) - lagging.dal(row, source_length=length)) < 1e-6


def test_a_hard_policy_is_its_own_expectation():
    p = (np.random.default_rng(8).uniform(size=SHAPE) > 0.6).astype(np.float32)
    assert (expected_delays(expected_alignment(p, LENGTHS)) == hard_alignment(p, LENGTHS)).all()


def test_the_threshold_itself_stops():
    p = jnp.array([[0.2, 0.3, 0.9], [0.29, 0.3, 0.9]])
    assert hard_alignment(p, threshold=0.3).tolist() == [2, 2]
    assert hard_alignment(p, threshold=0.95).tolist() == [3, 3]
    assert hard_alignment(p, 2, threshold=1.5).tolist() == [2, 2]
    assert hard_alignment(p, 0).tolist() == [0, 0]


def test_firing_times():
    weights = np.array([[0.5, 0.25, 0.5, 0.75, 0.1], [0.9, 0.9, 0.9, 0.9, 0.9], [0.1, 0.0, 0.0, 0.1, 0.0]])
    delays = cif_delays(weights, jnp.array([2, 4, 1]), step_ms=40)
    expected = [reference.fires(row, tokens, 40.0) for row, tokens in zip(weights, (2, 4, 1), strict=True)]
    close(delays, [row + [0.0] * (4 - len(row)) for row in expected])
    assert expected[2] == [200.0]
    fired = cif_delays(weights, step_ms=40)
    assert fired.shape == (3, 4)
    assert fired[2].tolist() == [0, 0, 0, 0]
    close(cif_delays(2 * weights, 4, step_ms=40, threshold=2.0), cif_delays(weights, 4, step_ms=40))
    with pytest.raises(lagging.UsageError, match="give size"):
        jax.jit(partial(cif_delays, step_ms=40))(weights, jnp.array([2, 4, 1]))


def test_the_gradient_of_firing_times(wide):
    weights, tokens = np.array([[0.5, 0.25, 0.5, 0.7, 0.1], [0.9, 0.8, 0.7, 0.65, 0.5]]), np.array([3, 3])
    slope = jax.jacobian(jax.jit(partial(cif_delays, step_ms=40.0, size=3)))(weights, tokens)
    for b, j in np.ndindex(weights.shape):
        moved = np.zeros(weights.shape)
        moved[b, j] = 1e-6
        up, down = ([reference.fires(row, 3, 40.0) for row in weights + sign * moved] for sign in (1, -1))
        np.testing.assert_allclose(slope[:, :, b, j], (np.array(up) - down) / 2e-6, atol=1e-5)


FUNCTIONS = {
    "expected_alignment": expected_alignment,
    "infinite_lookback": lambda p, n: infinite_lookback(p, jnp.sin(7 * p), n),
    "expected_alignment_step": lambda p, n: expected_alignment_step(p[..., 0, :], p[..., 1, :], n),
    "expected_delays": lambda p, n: expected_delays(p),
    "hard_alignment": hard_alignment,
    "cif_delays": lambda p, n: cif_delays(p[..., 0, :], n, step_ms=40, size=SHAPE[2]),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_vmap_and_more_dimensions_change_nothing(p, name):
    def both(p, n):
        def total(p):
            value = FUNCTIONS[name](p, n)
            return (value.astype(p.dtype) ** 2).sum(), value

        (_, value), slope = jax.value_and_grad(total, has_aux=True)(p)
        return value, slope

    @jax.jit
    def ways(p, n):
        return both(p, n), jax.vmap(both)(p, n), both(jnp.stack([p, p]), n)

    for plain, mapped, more in zip(*ways(p.astype(np.float32), LENGTHS), strict=True):
        assert np.isfinite(plain).all()
        close(mapped, plain)
        close(more, np.broadcast_to(plain, more.shape))


def test_half_precision_is_computed_in_float32(p):
    for dtype in (jnp.float16, jnp.bfloat16):
        half = jnp.asarray(p, dtype)
        alpha = expected_alignment(half, LENGTHS)
        assert alpha.dtype == jnp.float32
        close(alpha, reference.alignment(np.asarray(half, np.float64), LENGTHS))
        assert expected_delays(alpha.astype(dtype)).dtype == jnp.float32
        assert infinite_lookback(alpha.astype(dtype), half, LENGTHS).dtype == jnp.float32


def test_misuse_is_said(p):
    mask = np.ones((SHAPE[0], SHAPE[2]))
    for function in (expected_alignment, hard_alignment):
        with pytest.raises(lagging.UsageError, match="give source_lengths or mask, not both"):
            function(p, LENGTHS, mask=mask)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (1, 4), (4, 1)])
def test_small_shapes(shape):
    alpha = expected_alignment(jnp.full(shape, 0.5), shape[1])
    assert alpha.shape == shape
    close(alpha.sum(-1), np.full(shape[0], float(shape[1] > 0)))
