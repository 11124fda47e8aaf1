# SPDX-License-Identifier: Apache-2.0
"""Alignments one cell at a time, in float64, straight from their definitions: slow, and taken from nowhere else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def preserved(p: Floats, length: int | None) -> Floats:
    """p of one sentence (T, S) as `expected_alignment` takes it: 1 at the last real source token, 0 after it."""
    p = np.array(p, np.float64)
    if length is not None:
        p[:, length:] = 0.0
        p[:, length - 1 : length] = 1.0
    return p


def alignment(p: Floats, lengths: Sequence[int] | None = None) -> Floats:
    """α (B, T, S): q[t,j] = (1 − p[t,j−1]) q[t,j−1] + α[t−1,j], α[t,j] = p[t,j] q[t,j], α[0] = 1 at the first token."""
    return np.stack([_rows(one, None if lengths is None else lengths[b])[0] for b, one in enumerate(p)])


def _rows(p: Floats, length: int | None) -> tuple[Floats, Floats, Floats]:
    p = preserved(p, length)
    q = []
    before = np.eye(1, p.shape[1])[0].tolist()
    for row in p.tolist():  # lists, as Python is quicker with its own numbers
        carried, here = 0.0, []
        for stop, come in zip(row, before, strict=True):
            here.append(carried + come)
            carried = (1.0 - stop) * here[-1]
        q.append(here)
        before = [stop * mass for stop, mass in zip(row, here, strict=True)]
    arrived = np.array(q)
    return p * arrived, arrived, p


def alignment_gradient(p: Floats, weights: Floats, lengths: Sequence[int] | None = None) -> Floats:
    """Of Σ weights·α with respect to p (B, T, S), by going backwards through the cells of `alignment`."""
    out = np.zeros_like(p, dtype=np.float64)
    for b, one in enumerate(p):
        length = None if lengths is None else int(lengths[b])
        _, q, kept = _rows(one, length)
        below = [0.0] * kept.shape[1]  # what α[t, j] is worth to the row below
        for t in reversed(range(len(kept))):
            right, back, worths = 0.0, [], []  # what q[t, j+1] is worth
            for stop, given, under in zip(
                *(v[::-1] for v in (kept[t].tolist(), weights[b, t].tolist(), below)), strict=True
            ):
                worth = given + under
                worths.append(worth - right)
                right = stop * worth + (1.0 - stop) * right
                back.append(right)
            below = back[::-1]
            out[b, t] = q[t] * np.array(worths[::-1])
        if length is not None:
            out[b, :, max(length - 1, 0) :] = 0.0
    return out


def lookback(alpha: Floats, energies: Floats) -> Floats:
    """β (B, T, S): β[t,j] = Σ_{k≥j} α[t,k] exp(u[t,j]) / Σ_{l≤k} exp(u[t,l])."""
    out = np.zeros_like(alpha, dtype=np.float64)
    for place in np.ndindex(*alpha.shape[:-1]):
        for k, mass in enumerate(alpha[place]):
            prefix = np.asarray(energies[place][: k + 1], np.float64)
            weights = np.exp(prefix - prefix.max())
            out[place][: k + 1] += mass * weights / weights.sum()
    return out


def hard(p: Floats, length: int, threshold: float = 0.5) -> list[int]:
    """Of one sentence (T, S), how much source was read before each token: go on while p is below the threshold."""
    out, j = [], 0
    for row in p:
        while j < length - 1 and row[j] < threshold:
            j += 1
        out.append(j + 1)
    return out


def paths(p: Floats, length: int) -> dict[tuple[int, ...], float]:
    """The probability of every sequence of delays of one sentence (T, S), for a policy that stops by chance."""
    out = {(): 1.0}
    for row in preserved(p, length):
        longer: dict[tuple[int, ...], float] = {}
        for before, mass in out.items():
            for j in range(max((*before, 1)) - 1, length):
                longer[*before, j + 1] = mass * float(row[j])
                mass *= 1.0 - float(row[j])
        out = longer
    return out


def expected_dal(p: Floats, length: int) -> float:
    """E[DAL] of one sentence (T, S), exactly, for whole d = |x|/|y|: the states are position and largest lag so far."""
    p, steps = preserved(p, length), len(p)
    d, rest = divmod(length, steps)
    assert not rest, "only for whole d"
    states, total = {(0, -length): 1.0}, 0.0
    for t, row in enumerate(p):
        after: dict[tuple[int, int], float] = {}
        for (start, top), mass in states.items():
            for j in range(start, length):
                key = (j, max(top, j + 1 - t * d))
                after[key] = after.get(key, 0.0) + mass * float(row[j])
                mass *= 1.0 - float(row[j])
        states = after
        total += sum(top * mass for (_, top), mass in states.items())
    return total / steps


def fires(weights: Sequence[float], tokens: int, step: float, threshold: float = 1.0) -> list[float]:
    """When the cumulated weights of one sentence reach 1, 2, … times the threshold; the end if they never do."""
    out: list[float] = []
    for t in range(1, tokens + 1):
        total, when = 0.0, len(weights) * step
        for frame, weight in enumerate(weights):
            if total + weight >= t * threshold:
                when = step * (frame + (t * threshold - total) / weight)
                break
            total += weight
        out.append(when)
    return out


KINDS = ("initial", "uniform", "sharp", "hard")


def probabilities(kind: str, shape: tuple[int, int, int], seed: int = 0) -> Floats:
    """p (B, T, S) as a policy has them: at the start of training, by chance, once trained, and exactly 0 or 1."""
    dice = np.random.default_rng(seed)
    _, steps, width = shape
    if kind == "initial":
        return 1 / (1 + np.exp(2 - dice.normal(size=shape)))
    if kind == "uniform":
        return dice.uniform(size=shape)
    diagonal = np.arange(width)[None, :] >= np.arange(steps)[:, None] * width / steps + 2
    if kind == "sharp":
        return 1 / (1 + np.exp(-(np.where(diagonal, 6.0, -6.0) + dice.normal(scale=3.0, size=shape))))
    assert kind == "hard"
    return np.broadcast_to(diagonal, shape).astype(np.float64)
