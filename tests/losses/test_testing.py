# SPDX-License-Identifier: Apache-2.0
"""The conformance helper passes what is right and finds, by name, each bug that others have had."""

import numpy as np
import pytest
import torch

from lagging.losses import torch as ours
from lagging.losses.testing import assert_conforms, findings


def torch_dal(g, x, y):
    return ours.dal(torch.tensor(g, dtype=torch.float32), x, y).numpy()


def torch_dal_gradient(g, x, y):
    delays = torch.tensor(g, dtype=torch.float32, requires_grad=True)
    return torch.autograd.grad(ours.dal(delays, x, y).sum(), delays)[0].numpy()


def torch_alignment(p, x):
    return ours.expected_alignment(torch.tensor(p, dtype=torch.float32), x).numpy()


def torch_alignment_gradient(p, x, weights):
    p = torch.tensor(p, dtype=torch.float32, requires_grad=True)
    alpha = ours.expected_alignment(p, x)
    return torch.autograd.grad((alpha * torch.tensor(weights, dtype=torch.float32)).sum(), p)[0].numpy()


def test_ours_conforms():
    assert_conforms(
        dal=torch_dal,
        dal_gradient=torch_dal_gradient,
        expected_alignment=torch_alignment,
        alignment_gradient=torch_alignment_gradient,
    )


def names(**functions):
    return [one.property for one in findings(**functions)]


def loop(g, x, y, own=False, padded=False):
    """DAL by recurrence; with g(t) in the place of g'(t−1), or a |y| that counts padding, if asked for."""
    out = []
    for row, source, n in zip(g, x, y, strict=True):
        length = len(row) if padded else max(n, 1)
        d = source / length
        effective = []
        for t in range(n):
            before = (row[t] if own else effective[-1]) if t else -np.inf
            effective.append(max(row[t], before + d))
        late = [e - t * d for t, e in enumerate(effective)]
        out.append(sum(late) / length)
    return np.array(out)


def test_dal_of_others():
    assert names(dal=loop) == []
    assert "recurrence" in names(dal=lambda g, x, y: loop(g, x, y, own=True)), "g'(t) = g(t) + d"
    assert "recurrence" in names(dal=lambda g, x, y: loop(g, x, y, padded=True)), "|y| counts padding"

    def multiplied(g, x, y):
        real = np.arange(g.shape[1]) < y[:, None]
        with np.errstate(invalid="ignore"):
            over = g * real - np.arange(g.shape[1]) * (x / np.maximum(y, 1))[:, None]
            return (np.maximum.accumulate(over, 1) * real).sum(1) / np.maximum(y, 1)

    assert names(dal=multiplied) == ["padding"]

    def divided(g, x, y):
        with np.errstate(invalid="ignore", divide="ignore"):
            return loop(g, x, y) * (y / y)

    assert names(dal=divided) == ["finite"]
    assert "evaluator" in names(dal=lambda g, x, y: loop(g, x, y) + (y == 6))


def test_gradients_of_others():
    nothing = names(dal_gradient=lambda g, x, y: np.zeros_like(g))
    assert nothing[:2] == ["gradient", "gradient sum"]
    assert "there is none" in str(findings(dal_gradient=lambda g, x, y: np.zeros_like(g))[0])
    half = names(dal_gradient=lambda g, x, y: torch_dal_gradient(g, x, y) / 2)
    assert half == ["gradient", "gradient sum"]
    mean = names(dal_gradient=lambda g, x, y: (np.arange(g.shape[1]) < y[:, None]) / y[:, None])
    assert mean == ["gradient"], "that of the mean delay"

    def poisoned(g, x, y):
        return torch_dal_gradient(g, x, y) + 0 * np.where(np.isnan(g), np.nan, 0)

    assert names(dal_gradient=poisoned) == ["gradient in padding"]


def clamped(p, x, eps=1e-6, inclusive=False):
    """Closed form: α(t) = p c cumsum(α(t−1) / c), c the product of 1−p up to j, the denominator clamped."""
    places = np.arange(p.shape[2])
    p = np.where(places < x[:, None, None] - 1, p, places == x[:, None, None] - 1)
    c = np.cumprod(1 - p, -1)
    if not inclusive:
        c = np.concatenate([np.ones_like(c[..., :1]), c[..., :-1]], -1)
    row = np.zeros_like(p[:, 0])
    row[:, 0] = 1
    rows = []
    for t in range(p.shape[1]):
        with np.errstate(invalid="ignore", divide="ignore"):
            row = p[:, t] * c[:, t] * np.cumsum(row / np.maximum(c[:, t], eps), -1)
        rows.append(row)
    return np.stack(rows, 1)


def test_alignments_of_others():
    assert names(expected_alignment=clamped) == ["mass", "alignment"]
    assert "hard" in names(expected_alignment=lambda p, x: clamped(p, x, eps=0.0))
    wrong = findings(expected_alignment=lambda p, x: clamped(p, x, inclusive=True))
    assert any("has to end before j" in str(one) for one in wrong)
    assert "mass" in names(expected_alignment=lambda p, x: torch_alignment(p, None)), "no stop at the last token"


def test_alignment_gradients_of_others():
    assert "there is none" in str(findings(alignment_gradient=lambda p, x, w: np.zeros_like(p))[0])

    def biased(p, x, weights):
        """The gradient of the clamped closed form, by differences."""
        step = 1e-6
        out = np.zeros_like(p)
        for place in np.ndindex(1, 2, 3):
            moved = p.copy()
            moved[place] += step
            out[place] = ((clamped(moved, x) - clamped(p, x)) * weights).sum() / step
        return out

    assert names(alignment_gradient=biased) == ["alignment gradient"]


def test_every_finding_is_in_the_error():
    with pytest.raises(AssertionError) as error:
        assert_conforms(dal=lambda g, x, y: g.sum(1), dal_gradient=lambda g, x, y: np.zeros_like(g))
    for name in ("recurrence", "padding", "evaluator", "gradient", "gradient sum"):
        assert f"{name}: " in str(error.value)
