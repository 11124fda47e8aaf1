# SPDX-License-Identifier: Apache-2.0
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from losses import vectors

jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
jnp = pytest.importorskip("jax.numpy")

from lagging.losses.jax import al, ap, dal, effective_delays, lags  # noqa: E402

TIES = ("last", "first", "split")
FILLS = (math.nan, math.inf, -math.inf, 1e30)


def close(actual, expected):
    np.testing.assert_allclose(np.asarray(actual, np.float64), np.asarray(expected, np.float64), rtol=2e-6, atol=1e-6)


SHAPE = (len(vectors.VECTORS), 2 * max(len(v.delays) for v in vectors.VECTORS) + 1)  # one, as every shape is compiled
COSTED = (vectors.COSTED * len(vectors.VECTORS))[: len(vectors.VECTORS)]


def batch(rows, padding="right", fill=FILLS):
    made = vectors.batch(rows, padding, fill, SHAPE[1])
    assert made.delays.shape == SHAPE
    return made


def lengths(made, padding):
    """Target lengths where they can say where the padding is, else the mask."""
    return {"target_lengths": made.target_lengths} if padding == "right" else {"mask": made.mask}


@pytest.fixture(scope="module", params=["right", "left", "between"])
def padding(request):
    return request.param


@pytest.fixture(scope="module", params=["as |x|/|y|", "given"])
def rows(request):
    return vectors.VECTORS if request.param == "as |x|/|y|" else COSTED


def evaluator(function, rows, **options):
    return [
        function(v.delays, source_length=v.source_length, write_cost=v.write_cost, **options)
        if function in (lagging.dal, lagging.lags, lagging.effective_delays)
        else function(v.delays, source_length=v.source_length, **options)
        for v in rows
    ]


@jax.jit
def values(delays, source_lengths, where, cost):
    """Of every function at once, as each call is compiled."""
    given_ = delays, source_lengths
    return {
        "al": al(*given_, **where),
        "al in milliseconds": al(*given_, **where, tolerance=1.0),
        "ap": ap(*given_, **where),
        "lags": lags(*given_, **where, **cost),
        "effective lags": lags(*given_, **where, **cost, effective=True),
        "effective delays": effective_delays(*given_, **where, **cost),
    }


@partial(jax.jit, static_argnames="ties")
def value_and_gradients(delays, source_lengths, where, cost, ties):
    """Of DAL, in all that it is differentiable in."""

    def total(delays, source_lengths, cost):
        value = dal(delays, source_lengths, **where, **cost, ties=ties)
        return value.sum(), value

    (_, value), slopes = jax.value_and_grad(total, argnums=(0, 1, 2), has_aux=True)(delays, source_lengths, cost)
    return value, *slopes


def arguments(made, padding):
    cost = {} if made.write_cost is None else {"write_cost": made.write_cost.astype(np.float32)}
    return made.delays.astype(np.float32), made.source_lengths.astype(np.float32), lengths(made, padding), cost


def test_the_papers_tables():
    made = batch(vectors.VECTORS)
    found = values(*arguments(made, "right"))
    paper = slice(len(vectors.PAPER))
    close(found["al"][paper], [v.al for v in vectors.PAPER])
    close(value_and_gradients(*arguments(made, "right"), "last")[0][paper], [v.dal for v in vectors.PAPER])
    for row, where, v in zip(found["effective delays"], made.mask, vectors.PAPER, strict=False):
        close(np.asarray(row)[where], v.effective)


def test_values_are_the_evaluators_wherever_the_padding_is(rows, padding):
    made = batch(rows, padding)
    found = values(*arguments(made, padding))
    close(found["al"], evaluator(lagging.al, rows))
    close(found["al in milliseconds"], evaluator(lagging.al, rows, unit="ms"))
    close(found["ap"], evaluator(lagging.ap, rows))
    close(found["lags"], made.spread(evaluator(lagging.lags, rows)))
    close(found["effective lags"], made.spread(evaluator(lagging.lags, rows, effective=True)))
    close(found["effective delays"], made.spread(evaluator(lagging.effective_delays, rows)))


@pytest.mark.parametrize("ties", TIES)
def test_the_gradient_of_dal_is_exact_and_sums_to_one(rows, padding, ties):
    made = batch(rows, padding)
    value, gradient, by_source, by_cost = value_and_gradients(*arguments(made, padding), ties)
    weights = [vectors.gradient(v, ties) for v in rows]
    close(value, evaluator(lagging.dal, rows))
    close(gradient, made.spread(weights))
    close(gradient.sum(-1), np.ones(len(rows)))
    assert not np.asarray(gradient)[~made.mask].any()
    slope = [-sum(i * w for i, w in enumerate(row)) for row in weights]  # dDAL/dd = −Σ_i (i−1) dDAL/dg(i)
    if rows is COSTED:
        close(by_cost["write_cost"], slope)
        assert not np.asarray(by_source).any()
    else:  # d = |x|/|y|
        close(by_source, [s / len(row) for s, row in zip(slope, weights, strict=True)])


FUNCTIONS = {
    "dal": dal,
    "dal, first": partial(dal, ties="first"),
    "dal, split": partial(dal, ties="split"),
    "al": al,
    "ap": ap,
    "lags": lags,
    "effective lags": partial(lags, effective=True),
    "effective_delays": effective_delays,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jit_vmap_and_more_dimensions_change_nothing(name):
    def both(delays, x, y):
        def total(delays):
            value = FUNCTIONS[name](delays, x, y)
            return (value**2).sum(), value

        (_, value), slope = jax.value_and_grad(total, has_aux=True)(delays)
        return value, slope

    @jax.jit
    def ways(delays, x, y):
        heads = jnp.stack([delays, delays, delays])[:, None]
        return both(delays, x, y), jax.vmap(both)(delays, x, y), both(heads, x, y)

    made = batch(vectors.VECTORS)
    for plain, mapped, more in zip(*ways(made.delays, made.source_lengths, made.target_lengths), strict=True):
        assert np.isfinite(plain).all()
        close(mapped, plain)
        close(more, np.broadcast_to(plain, more.shape))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_sentence_without_tokens_is_worth_nothing(name):
    @jax.jit
    def run(delays, x, real):
        def total(delays, x):
            value = FUNCTIONS[name](delays, x, mask=real)
            return value[0].sum(), value

        return jax.value_and_grad(total, argnums=(0, 1), has_aux=True)(delays, x)

    for x in (0.0, math.nan):
        (total, value), slopes = run(
            jnp.array([[math.nan] * 3, [1.0, 2.0, 3.0]]), jnp.array([x, 3.0]), jnp.array([[False] * 3, [True] * 3])
        )
        assert total == 0
        assert all((np.asarray(slope) == 0).all() for slope in slopes)
        assert np.isfinite(value[1]).all()


@pytest.mark.parametrize("name", ["dal", "al", "ap", "effective_delays"])
def test_half_precision_and_whole_numbers_are_computed_in_float32(name):
    delays = [3, 4, 5, 6, 6, 6, 6]
    expected = FUNCTIONS[name](jnp.array(delays, jnp.float32), 6.0, 7)
    for dtype in (jnp.float16, jnp.bfloat16, jnp.int32):
        value = FUNCTIONS[name](jnp.array(delays, dtype), jnp.asarray(6, dtype), 7)
        assert value.dtype == jnp.float32
        assert (np.asarray(value) == np.asarray(expected)).all()


def test_float64_stays_float64_and_whole_numbers_do_not_become_it(wide):
    thirds = np.arange(1, 8) / 3
    for function in FUNCTIONS.values():
        value = function(jnp.asarray(thirds), 2.0)
        assert value.dtype == jnp.float64
    assert abs(float(dal(thirds, 2.0)) - lagging.dal(thirds, source_length=2.0)) < 1e-14
    assert dal(np.arange(3), 3).dtype == jnp.float32


def test_half_a_thousand_tokens_are_accurate():
    dice = np.random.default_rng(0)
    delays = np.sort(dice.uniform(0, 400, size=(4, 512)), axis=-1).astype(np.float32)
    expected = [lagging.dal(row, source_length=400) for row in delays]
    for ties in ("last", "split"):
        value, gradient, *_ = value_and_gradients(delays, np.full(4, 400, np.float32), {}, {}, ties)
        np.testing.assert_allclose(value, expected, rtol=5e-6)
        np.testing.assert_allclose(gradient.sum(-1), np.ones(4), rtol=2e-6)


def test_what_is_not_a_number_among_the_real_tokens_is_not_hidden():
    assert math.isnan(dal(jnp.array([1.0, math.nan, 3.0]), 3))
    assert dal(jnp.array([1.0, math.inf, 3.0]), 3, ties="split") == math.inf


def test_misuse_is_said():
    with pytest.raises(lagging.UsageError, match="give target_lengths or mask, not both"):
        dal(np.ones((1, 2)), 2, 2, mask=np.ones((1, 2)))
    with pytest.raises(ValueError, match="ties must be one of last, first, split, but got 'middle'"):
        dal(np.ones(2), 2, ties="middle")
    with pytest.raises(lagging.UsageError, match=r"mask must have the shape \(\.\.\., 2\), but has \(3,\)"):
        ap(np.ones(2), 2, mask=np.ones(3, bool))
    with pytest.raises(lagging.UsageError, match=r"source_lengths of shape \(2,\) does not broadcast to \(3,\)"):
        al(np.ones((3, 2)), np.ones(2))
    with pytest.raises(lagging.UsageError, match=r"write_cost of shape \(3,\) does not broadcast to \(\)"):
        dal(np.ones(2), 2, write_cost=np.ones(3))
    with pytest.raises(lagging.UsageError, match="but are one number"):
        dal(3.0, 2)


WIDTH = 8


@settings(max_examples=60)
@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=WIDTH).map(sorted),
    st.integers(1, 12),
    st.sampled_from(TIES),
    st.sampled_from(FILLS),
)
def test_any_whole_delays(delays, x, ties, fill):
    vector = vectors.Vector("any", tuple(delays), x)
    padded = jnp.array([*delays, *[fill] * (WIDTH - len(delays))], jnp.float32)
    value, gradient, *_ = value_and_gradients(padded, float(x), {"target_lengths": len(delays)}, {}, ties)
    close(value, lagging.dal(delays, source_length=x))
    close(gradient, [*vectors.gradient(vector, ties), *[0.0] * (WIDTH - len(delays))])
