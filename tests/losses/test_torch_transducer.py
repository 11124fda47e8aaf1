# SPDX-License-Identifier: Apache-2.0
"""Expected emission times against the enumeration of all paths of small lattices."""

import itertools
import math

import numpy as np
import pytest
import torch

from lagging.errors import UsageError
from lagging.losses.torch import dal
from lagging.losses.torch.transducer import ctc_delays, transducer_delays


def by_paths_of_a_transducer(blank, emit, frames, tokens):
    """In which frame each token is emitted, the mean over all paths; a path ends with the blank of the last frame."""
    total, delays = 0.0, np.zeros(tokens)
    for when in itertools.combinations_with_replacement(range(frames), tokens):
        log, u = 0.0, 0
        for t in range(frames):
            while u < tokens and when[u] == t:
                log += emit[t, u]
                u += 1
            log += blank[t, u]
        total += math.exp(log)
        delays += math.exp(log) * (np.array(when, float) + 1)
    return delays / total


def by_paths_of_ctc(log_p, target, frames):
    total, delays = 0.0, np.zeros(len(target))
    for path in itertools.product(range(log_p.shape[1]), repeat=frames):
        firsts = [t for t, label in enumerate(path) if label and (t == 0 or path[t - 1] != label)]
        if [path[t] for t in firsts] == list(target):
            chance = math.exp(sum(log_p[t, label] for t, label in enumerate(path)))
            total += chance
            delays += chance * (np.array(firsts, float) + 1)
    return delays / total


def lattice(rows=3, frames=4, tokens=3, seed=0):
    dice = np.random.default_rng(seed)
    logits = torch.tensor(dice.normal(size=(rows, frames, tokens + 1, 4)) * 2).log_softmax(-1)
    return logits[..., 0], logits[:, :, :-1, 1]


def test_a_transducer_has_the_delays_of_its_paths():
    blank, emit = lattice()
    sizes = [(4, 3), (2, 3), (3, 1)]
    got = transducer_delays(blank, emit, torch.tensor([4, 2, 3]), torch.tensor([3, 3, 1]))
    for b, (frames, tokens) in enumerate(sizes):
        want = by_paths_of_a_transducer(blank[b].numpy(), emit[b].numpy(), frames, tokens)
        np.testing.assert_allclose(got[b, :tokens], want, rtol=1e-10)
        assert not got[b, tokens:].any()
    np.testing.assert_allclose(transducer_delays(blank, emit, step_ms=40)[0], 40 * got[0], rtol=1e-12)
    one = transducer_delays(blank[0], emit[0])
    np.testing.assert_allclose(one, got[0], rtol=1e-12)
    assert transducer_delays(blank[:, :1, :1], emit[:, :1, :0]).shape == (3, 0)


def test_padding_of_a_transducer_reaches_nothing():
    blank, emit = (part.clone() for part in lattice())
    want = transducer_delays(blank[1, :2], emit[1, :2])
    blank[1, 2:], emit[1, 2:] = math.nan, math.inf
    blank.requires_grad_()
    got = transducer_delays(blank, emit, [4, 2, 3], 3)
    torch.testing.assert_close(got[1], want)
    (slope,) = torch.autograd.grad(got.sum(), blank)
    assert slope.isfinite().all()
    assert not slope[1, 2:].any()


def test_ctc_has_the_delays_of_its_paths():
    log_p = torch.tensor(np.random.default_rng(1).normal(size=(3, 5, 3)) * 2).log_softmax(-1)
    targets = torch.tensor([[1, 1, 2], [2, 1, 0], [1, 0, 0]])
    sizes = [(5, 3), (4, 2), (2, 1)]
    got = ctc_delays(log_p, targets, [5, 4, 2], [3, 2, 1])
    for b, (frames, tokens) in enumerate(sizes):
        want = by_paths_of_ctc(log_p[b, :frames].numpy(), targets[b, :tokens].tolist(), frames)
        np.testing.assert_allclose(got[b, :tokens], want, rtol=1e-10)
        assert not got[b, tokens:].any()
    np.testing.assert_allclose(ctc_delays(log_p, targets, [5, 4, 2], [3, 2, 1], step_ms=20), 20 * got, rtol=1e-12)
    assert ctc_delays(log_p, torch.zeros(3, 0)).shape == (3, 0)


def test_gradients():
    blank, emit = (part[:2].clone().requires_grad_() for part in lattice(frames=3, tokens=2))
    assert torch.autograd.gradcheck(lambda b, e: transducer_delays(b, e, [3, 2], [2, 1]), (blank, emit))
    log_p = torch.tensor(np.random.default_rng(1).normal(size=(2, 4, 3))).log_softmax(-1).requires_grad_()
    targets = torch.tensor([[1, 1], [2, 1]])
    assert torch.autograd.gradcheck(lambda p: ctc_delays(p, targets, [4, 3], [2, 1]), log_p)


def test_dal_of_a_transducer_can_be_trained():
    """A lattice that may emit at any time learns to emit at once."""
    logits = torch.zeros(1, 6, 4, 2, requires_grad=True)
    optimizer = torch.optim.Adam([logits], 0.3)
    seen = []
    for _ in range(30):
        log_p = logits.log_softmax(-1)
        latency = dal(transducer_delays(log_p[..., 0], log_p[..., :-1, 1]), 6).mean()
        optimizer.zero_grad()
        latency.backward()
        optimizer.step()
        seen.append(latency.item())
    assert seen[-1] < 1.2 < seen[0]


def test_shapes_that_do_not_fit():
    blank, emit = lattice()
    with pytest.raises(UsageError, match="log_emit must have the shape"):
        transducer_delays(blank, blank)
    with pytest.raises(UsageError, match=r"frames of shape \(2,\)"):
        transducer_delays(blank, emit, [1, 2])
    with pytest.raises(UsageError, match="targets must have the shape"):
        ctc_delays(blank, [1, 2])
