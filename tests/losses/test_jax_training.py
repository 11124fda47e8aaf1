# SPDX-License-Identifier: Apache-2.0
"""The JAX package as a whole: it conforms, it trains, it says what is missing."""

import importlib
import sys

import numpy as np
import pytest

from lagging.errors import MissingExtraError
from lagging.losses.testing import findings

jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
jnp = pytest.importorskip("jax.numpy")

from lagging.losses.jax import (  # noqa: E402
    LatencyController,
    LatencyLoss,
    MonotonicAttention,
    dal,
    expected_alignment,
)


def test_ours_conforms():
    found = findings(
        dal=dal,
        dal_gradient=jax.jit(jax.grad(lambda g, x, y: dal(g, x, y).sum())),
        expected_alignment=expected_alignment,
        alignment_gradient=jax.jit(jax.grad(lambda p, x, weights: (weights * expected_alignment(p, x)).sum())),
    )
    assert not found


def test_the_helper_sees_what_is_wrong():
    assert {one.property for one in findings(dal=lambda g, x, y: dal(g, x))} >= {"recurrence", "padding"}


# A translator of a language whose words come two places later: it has to have read t+2 words to be sure of word t, and
# guesses if it is to be faster.
SIZE, LENGTH, WORDS = 16, 6, 12
ATTENTION = MonotonicAttention(SIZE, heads=2)
DICE = np.random.default_rng(0)
EMBEDDING, PLACES = DICE.normal(size=(WORDS, SIZE)) / 2, DICE.normal(size=(LENGTH, SIZE))


def loss(params, words, weight):
    keys, queries = jnp.asarray(EMBEDDING)[words] + PLACES, jnp.broadcast_to(PLACES, (*words.shape, SIZE))
    seen = ATTENTION.apply(params["attention"], queries, keys, words.shape[-1])
    logits = jax.nn.log_softmax(seen.context @ params["write"])
    target = words[:, jnp.minimum(jnp.arange(LENGTH) + 2, LENGTH - 1)]
    likelihood = -jnp.mean(jnp.take_along_axis(logits, target[..., None], axis=-1))
    terms = LatencyLoss(heads="mean", variance_weight=0.05)(likelihood, seen.delays, words.shape[-1], weight=weight)
    return terms.loss, terms


@jax.jit
def step(params, controller, words):
    gradient, terms = jax.grad(loss, has_aux=True)(params, words, controller.weight)
    params = jax.tree.map(lambda p, g: p - 0.1 * g, params, gradient)
    return params, controller.update(terms.latency), terms


def train(controller, steps=500):
    controller = jax.tree.map(jnp.asarray, controller)
    params = {"attention": ATTENTION.init(jax.random.key(0)), "write": jnp.asarray(EMBEDDING.T, jnp.float32)}
    for words in np.random.default_rng(1).integers(0, WORDS, size=(steps, 16, LENGTH)):
        params, controller, terms = step(params, controller, words)
    return terms, controller


def test_training_finds_the_latency_that_is_wanted():
    free, _ = train(LatencyController(target=0.0, rate=0.0))
    wanted, controller = train(LatencyController(target=2.0, rate=0.01))
    assert free.latency > 4
    assert abs(wanted.latency - 2.0) < 0.3
    assert controller.weight > 0
    assert wanted.likelihood < 0.1 * np.log(WORDS)


def test_a_missing_jax_gives_the_line_that_installs_it(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("lagging.losses.jax")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'lagging\[jax\]'"):
        importlib.import_module("lagging.losses.jax")
