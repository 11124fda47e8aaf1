# SPDX-License-Identifier: Apache-2.0
import importlib
import importlib.util
import sys

import numpy as np
import pytest
import torch

from lagging.losses.torch import compat
from lagging.losses.torch.compat import AverageLagging, AverageProportion, DifferentiableAverageLagging

SRC, TGT = [5, 6, 9, 3], [5, 3, 7, 1]


def sentences(ties=False):
    """Right-padded delays, (B, T), as a criterion has them, and a mask that is True at padding."""
    dice = np.random.default_rng(0)
    delays = np.zeros((4, 7))
    for row, x, y in zip(delays, SRC, TGT, strict=True):
        row[:y] = np.minimum(np.arange(y) + 2, x) if ties else np.sort(dice.uniform(0, x, y))
    padding = torch.arange(7) >= torch.tensor(TGT)[:, None]
    return torch.tensor(delays, requires_grad=True), torch.tensor(SRC), padding


def slow_dal(delays, src, padding):
    """The recurrence, one token after the other, of each sentence by itself."""
    out = []
    for row, x, pad in zip(delays, src.tolist(), padding, strict=True):
        g = row[~pad]
        d = x / len(g)
        effective = [g[0]]
        for t in range(1, len(g)):
            late = effective[-1] + d
            effective.append(late if late >= g[t] else g[t])  # of equals the earlier one
        out.append(sum(e - t * d for t, e in enumerate(effective)) / len(g))
    return torch.stack(out)


@pytest.mark.parametrize("ties", [False, True])
def test_dal_and_its_gradient_are_those_of_the_recurrence(ties):
    delays, src, padding = sentences(ties)
    got = DifferentiableAverageLagging(delays, src, None, target_padding_mask=padding)
    want = slow_dal(delays, src, padding)
    assert got.shape == (4,)
    torch.testing.assert_close(got, want)
    torch.testing.assert_close(
        torch.autograd.grad(got.sum(), delays)[0], torch.autograd.grad(want.sum(), delays)[0], rtol=1e-12, atol=1e-12
    )


def test_a_criterion_that_flattens_its_heads():
    """What fairseq's criterion does: (B, heads, T) as (B·heads, T), lengths repeated, softmax over heads."""
    delays, src, padding = sentences()
    heads = torch.stack([delays, delays * 0.5], 1).reshape(-1, 7)
    latency = DifferentiableAverageLagging(
        heads,
        src.unsqueeze(1).expand(4, 2).contiguous().view(-1),
        None,
        target_padding_mask=padding.unsqueeze(1).expand(4, 2, 7).contiguous().view(-1, 7),
    ).view(4, -1)
    assert latency.shape == (4, 2)
    loss = (latency * torch.softmax(latency, 1)).sum()
    loss.backward()
    torch.testing.assert_close(latency[:, 0], slow_dal(delays, src, padding))
    assert torch.isfinite(delays.grad).all()
    assert delays.grad.any()


def test_lengths_in_every_form():
    want = torch.tensor([4.0])
    for delays in ([4, 4, 4, 4, 5], torch.tensor([4.0, 4, 4, 4, 5]), torch.tensor([[4, 4, 4, 4, 5]])):
        for src in (5, 5.0, [5], torch.tensor([5]), torch.tensor([[5]])):
            assert torch.equal(DifferentiableAverageLagging(delays, src), want)
            assert DifferentiableAverageLagging(delays, src, 9).item() == 4, "the reference plays no part"
    delays, src, padding = sentences()
    column = DifferentiableAverageLagging(delays, src.unsqueeze(1), None, padding)
    assert torch.equal(column, DifferentiableAverageLagging(delays, src, None, padding))


@pytest.mark.parametrize("ref", [None, [5, 4, 6, 2], [9, 9, 9, 9]])
def test_average_lagging_with_and_without_reference(ref):
    delays, src, padding = sentences(ties=True)
    got = AverageLagging(delays, src, ref, target_padding_mask=padding)
    assert got.shape == (4,)
    for b in range(4):
        g = delays[b, ~padding[b]].tolist()
        length, still = (len(g), len(g)) if ref is None else (ref[b], max(ref))
        tau = next((t for t, late in enumerate(g, 1) if late >= SRC[b]), len(g))
        terms = [g[t] - min(t, still - 1) * SRC[b] / length for t in range(tau)]
        assert got[b].item() == pytest.approx(sum(terms) / tau, rel=1e-12)
    got.sum().backward()
    assert torch.isfinite(delays.grad).all()
    assert not delays.grad[padding].any()


def test_average_proportion():
    delays, src, padding = sentences()
    got = AverageProportion(delays, src, None, padding)
    for b in range(4):
        assert got[b].item() == pytest.approx(delays[b, ~padding[b]].sum().item() / (SRC[b] * TGT[b]), rel=1e-12)


def forget_simuleval():
    """Remove its modules from those that were imported, and return them."""
    importlib.invalidate_caches()
    return {name: sys.modules.pop(name) for name in list(sys.modules) if name.partition(".")[0] == "simuleval"}


@pytest.fixture
def no_simuleval():
    """As if nothing of SimulEval had been imported; afterwards it is as it was before."""
    before = forget_simuleval()
    yield
    forget_simuleval()
    sys.modules.update(before)


def test_the_old_import_works_again(no_simuleval):
    compat.install()
    compat.install()
    latency = importlib.import_module("simuleval.metrics.latency")
    assert latency is compat
    assert {latency.AverageLagging, latency.AverageProportion} == {AverageLagging, AverageProportion}
    assert latency.DifferentiableAverageLagging([4, 4, 4, 4, 5], 5).tolist() == [4.0]
    assert importlib.util.find_spec("simuleval.metrics") is not None


def test_a_simuleval_that_is_there_is_left_alone(tmp_path, monkeypatch, no_simuleval):
    """A newer one has a package of this name, without the submodule; an older one has it all."""
    monkeypatch.syspath_prepend(tmp_path)
    package = tmp_path / "simuleval"
    package.mkdir()
    (package / "__init__.py").write_text("HERE = 1\n")

    def installed():
        forget_simuleval()
        compat.install()
        assert importlib.import_module("simuleval").HERE == 1
        return importlib.import_module("simuleval.metrics.latency").DifferentiableAverageLagging

    assert installed() is compat.DifferentiableAverageLagging
    (package / "metrics").mkdir()
    (package / "metrics" / "__init__.py").write_text("")
    (package / "metrics" / "latency.py").write_text("def DifferentiableAverageLagging(): ...\n")
    assert installed() is not compat.DifferentiableAverageLagging
