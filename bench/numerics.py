# SPDX-License-Identifier: Apache-2.0
"""How exact latency losses are: ours, and the closed form and the recurrence that are in use.

python bench/numerics.py
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from lagging.losses.torch import dal, expected_alignment, expected_delays

Array = npt.NDArray[np.float64]


def closed_form(p: Tensor, eps: float = 1e-6) -> Tensor:
    """The expected alignment as Raffel et al. (2017) parallelize it: a division by a product, kept above `eps`.

    What is lost is given to the last source token, as mass preservation has it.
    """
    ones = torch.ones_like(p[..., :1])
    kept = torch.cumprod(torch.cat([ones, 1 - p[..., :-1]], -1), -1)
    before = torch.nn.functional.one_hot(torch.zeros(p.shape[0], dtype=torch.long), p.shape[-1]).to(p.dtype)
    rows = []
    for t in range(p.shape[-2]):
        row = p[:, t] * kept[:, t] * torch.cumsum(before / kept[:, t].clamp(min=eps), -1)
        before = row.clamp(0, 1)
        before = torch.cat([before[:, :-1], (1 - before[:, :-1].sum(-1, keepdim=True)).clamp(0, 1)], -1)
        rows.append(before)
    return torch.stack(rows, -2)


def one_by_one(p: Array) -> Array:
    """The expected alignment cell by cell in float64, p = 1 at the last source token."""
    p = p.copy()
    p[..., -1] = 1
    before, rows = np.zeros_like(p[:, 0]), []
    before[:, 0] = 1
    for t in range(p.shape[1]):
        q = np.zeros_like(before)
        for j in range(p.shape[2]):
            q[:, j] = before[:, j] + ((1 - p[:, t, j - 1]) * q[:, j - 1] if j else 0)
        before = p[:, t] * q
        rows.append(before)
    return np.stack(rows, 1)


def probabilities(kind: str, n: int, rng: np.random.Generator) -> Array:
    """As at the start of training, of any size, as after it, or hard."""
    shape = (4, n, n)
    if kind == "initial":
        return 1 / (1 + np.exp(2 - rng.normal(size=shape)))
    if kind == "uniform":
        return rng.uniform(size=shape)
    if kind == "sharp":
        return 1 / (1 + np.exp(-(6 * rng.choice([-1, 1], size=shape) + 3 * rng.normal(size=shape))))
    return (np.arange(n) >= np.minimum(np.arange(n)[:, None] + 2, n - 1)).astype(float) * np.ones(shape)


def expected_dal(p: Array) -> Array:
    """E[DAL] for |x| = |y|, exactly: the mass of every position and largest lag so far, one target token at a time."""
    batch, steps, width = p.shape
    p = p.copy()
    p[..., -1] = 1
    mass, total = np.zeros((batch, width, width + 1)), np.zeros(batch)
    mass[:, 0, 0] = 1  # a lag of 0, which is below that of the first token
    for t in range(steps):
        carried = np.zeros((batch, width + 1))
        for j in range(width):
            carried = carried + mass[:, j]
            stopped, carried = p[:, t, j, None] * carried, (1 - p[:, t, j, None]) * carried
            lag = max(j + 1 - t, 0)
            mass[:, j, :lag], mass[:, j, lag] = 0, stopped[:, : lag + 1].sum(-1)
            mass[:, j, lag + 1 :] = stopped[:, lag + 1 :]
        total += mass.sum(1) @ np.arange(width + 1)
    mean: Array = total / steps
    return mean


def lost_mass() -> None:
    """What DAL a model is told that it has, and what it is expected to have."""
    print("DAL of the expected delays, p around a half, |x| = |y|; and the expected DAL")
    print(f"{'|x|':>6} {'exact':>8} {'ours':>8} {'closed form':>12} {'E[DAL]':>8}")
    rng = np.random.default_rng(1)
    for n in (16, 24, 32, 48, 64, 128):
        p = 1 / (1 + np.exp(-rng.normal(size=(4, n, n))))
        single = torch.tensor(p, dtype=torch.float32)
        estimates = [torch.tensor(one_by_one(p)), expected_alignment(single, n), closed_form(single)]
        values = [dal(expected_delays(alignment), n).mean().item() for alignment in estimates]
        drawn = expected_dal(p).mean()
        print(f"{n:>6} {values[0]:>8.2f} {values[1]:>8.2f} {values[2]:>12.2f} {drawn:>8.2f}")


def alignments() -> None:
    """The largest relative error of a cell above 1e-12, and of a delay in tokens, in float32."""
    print(
        "\nexpected alignment, float32: relative error of a cell, of a row sum, error of a delay in tokens; the largest"
    )
    print(f"{'p':>10} {'|x|':>6} {'cell, ours':>11} {'row, ours':>10} {'delay, ours':>12} {'delay, closed form':>19}")
    rng = np.random.default_rng(2)
    for kind in ("initial", "uniform", "sharp", "hard"):
        for n in (32, 128, 512):
            p = torch.tensor(probabilities(kind, n, rng), dtype=torch.float32)
            exact = one_by_one(p.double().numpy())
            positive = exact > 1e-12
            ours, theirs = expected_alignment(p, n).double().numpy(), closed_form(p).double().numpy()
            cell = float(np.max(np.abs(ours - exact)[positive] / exact[positive]))
            row = float(np.abs(ours.sum(-1) - 1).max())
            late = [float(np.abs((a - exact) @ np.arange(1, n + 1)).max()) for a in (ours, theirs)]
            print(f"{kind:>10} {n:>6} {cell:>11.1e} {row:>10.1e} {late[0]:>12.1e} {late[1]:>19.1e}")


def recurrence(g: Tensor, d: float) -> Tensor:
    """DAL by the recurrence g'(t) = max(g(t), g'(t−1) + d), in the type of the delays."""
    now, total = g[..., 0], g[..., 0]
    for t in range(1, g.shape[-1]):
        now = torch.maximum(g[..., t], now + d)
        total = total + (now - t * d)
    return total / g.shape[-1]


def latencies() -> None:
    """The largest error of DAL itself, in tokens."""
    print("\nlargest error of DAL, source tokens; its recurrence in the type of the delays")
    print(f"{'|y|':>6} {'float32':>9} {'recurrence':>11} {'bfloat16':>9} {'recurrence':>11}")
    rng = np.random.default_rng(3)
    for n in (32, 128, 512):
        g = torch.tensor(np.sort(rng.uniform(0, 0.7 * n, size=(64, n)), axis=1))
        d = 0.7
        errors = []
        for kind in (torch.float32, torch.bfloat16):
            rounded = g.to(kind)
            truth = dal(rounded.double(), 0.7 * n)
            errors += [(f.double() - truth).abs().max().item() for f in (dal(rounded, 0.7 * n), recurrence(rounded, d))]
        print(f"{n:>6} {errors[0]:>9.1e} {errors[1]:>11.1e} {errors[2]:>9.1e} {errors[3]:>11.1e}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    lost_mass()
    alignments()
    latencies()
