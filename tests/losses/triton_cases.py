# SPDX-License-Identifier: Apache-2.0
"""The operators by their Triton kernels, on the CPU by Triton's interpreter; `test_triton` runs this file.

The interpreter has to be asked for, by TRITON_INTERPRET=1, before Triton is loaded: so this needs its own process.
"""

import math

import numpy as np
import pytest
import torch

from lagging.losses.torch import expected_alignment, expected_alignment_step, infinite_lookback, recurrences
from losses import reference

FUNCTIONS = {
    "wavefront": recurrences.wavefront_forward,
    "wavefront_backward": recurrences.wavefront_backward,
    "lookback": recurrences.lookback_forward,
    "lookback_backward": recurrences.lookback_backward,
}
CALLS: list[str] = []


@pytest.fixture(scope="module", autouse=True)
def kernels():
    """CPU tensors go where those on a GPU go."""
    library = torch.library.Library("lagging", "IMPL")

    def counted(name, function):
        return lambda *values: [CALLS.append(name), function(*values)][1]

    for name, function in FUNCTIONS.items():
        library.impl(name, counted(name, torch.no_grad()(recurrences._on_gpu(function))), "CPU")
    yield
    assert set(CALLS) == set(FUNCTIONS), "all operators were called"
    library._destroy()


@pytest.mark.parametrize(
    ("kind", "shape"),
    [*((kind, (2, 4, 6)) for kind in reference.KINDS), ("uniform", (1, 1, 1)), ("uniform", (1, 3, 17))],
)
def test_alignments_are_those_of_the_oracle(kind, shape):
    p = reference.probabilities(kind, shape)
    lengths = [shape[2] - b % shape[2] for b in range(shape[0])]
    weights = np.random.default_rng(1).normal(size=shape)
    leaf = torch.tensor(p, requires_grad=True)
    alpha = expected_alignment(leaf, torch.tensor(lengths))
    (slope,) = torch.autograd.grad(alpha, leaf, torch.tensor(weights))
    np.testing.assert_allclose(alpha.detach(), reference.alignment(p, lengths), rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(slope, reference.alignment_gradient(p, weights, lengths), rtol=1e-12, atol=1e-14)
    single = expected_alignment(leaf.detach().float(), torch.tensor(lengths))
    assert single.dtype == torch.float32
    np.testing.assert_allclose(single, alpha.detach(), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("shape", [(1, 2, 5), (1, 1, 1)])
def test_lookback_is_that_of_the_oracle(shape):
    dice = np.random.default_rng(2)
    alpha, u = reference.alignment(reference.probabilities("uniform", shape)), dice.normal(scale=30, size=shape)
    leaves = [torch.tensor(values, requires_grad=True) for values in (alpha, u)]
    beta = infinite_lookback(*leaves)
    np.testing.assert_allclose(beta.detach(), reference.lookback(alpha, u), rtol=1e-12, atol=1e-15)
    assert torch.autograd.gradcheck(infinite_lookback, leaves)


def test_steps_with_a_start_that_has_a_gradient():
    before = torch.rand(1, 5, dtype=torch.float64, requires_grad=True)
    p = torch.rand(1, 5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(expected_alignment_step, (before, p))


def test_what_the_loss_does_not_use_may_be_nan():
    p = torch.rand(2, 4, 6, dtype=torch.float64)
    p[0, 2, 1], p[1, 3] = math.nan, math.inf
    u = torch.randn(2, 4, 6, dtype=torch.float64)
    u[0, 2], u[1, 3, 0] = math.nan, math.nan
    leaves = [values.requires_grad_() for values in (p, u)]
    beta = infinite_lookback(expected_alignment(leaves[0]), leaves[1])
    loss = beta[0, :2].square().sum() + beta[1, :3].square().sum()
    assert all(torch.isfinite(slope).all() for slope in torch.autograd.grad(loss, leaves))


def test_operators_are_what_they_declare():
    p, gradient, alpha = (torch.rand(1, 2, 3, dtype=torch.float64) for _ in range(3))
    start = torch.eye(1, 3, dtype=torch.float64)
    operators = torch.ops.lagging
    q, (beta, w) = operators.wavefront(p, start)[1], operators.lookback(alpha, gradient)
    for name, arguments in {
        "wavefront": (p, start), "wavefront_backward": (gradient, p, q, True),
        "lookback": (alpha, gradient), "lookback_backward": (gradient, alpha, beta, w),
    }.items():  # fmt: skip
        torch.library.opcheck(getattr(operators, name).default, arguments)


def test_very_long_sources_and_the_environment_keep_to_pytorch(monkeypatch):
    p = torch.rand(1, 2, 5)
    whole = expected_alignment(p)
    from lagging.losses.torch import triton_kernels

    monkeypatch.setattr(triton_kernels, "wavefront_forward", lambda *_: pytest.fail("the kernel was called"))
    with monkeypatch.context() as patch:
        patch.setattr(recurrences, "LONGEST", 4)
        torch.testing.assert_close(expected_alignment(p), whole)
    monkeypatch.setenv("LAGGING_TRITON", "0")
    torch.testing.assert_close(expected_alignment(p), whole)
