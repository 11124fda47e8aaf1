# SPDX-License-Identifier: Apache-2.0
"""What latency costs in training: a table of ratios, measured in one run.

    python bench/losses.py                  # a few minutes
    python bench/losses.py --quick          # small sizes, few rounds: shows that it runs, the ratios mean nothing
    python bench/losses.py --base FILE      # beside `recurrences.py` of another version: git show TAG:… > FILE

Each number is the CPU time of this process (one thread, user and system), forward and backward, best of many rounds;
what is compared takes turns, so that a busy machine slows all alike. Never wall time. Others' code is written here from
its description: DAL as fairseq and SimulEval 1.0.2 computed it, a loop over target tokens that writes the rows of a
tensor in place; expected alignments as fairseq computed them, a loop over target tokens with cumulative products and a
denominator that is clamped. What the closed form gets wrong is printed, too.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

from lagging.losses.torch import dal, expected_alignment, expected_delays, infinite_lookback, recurrences

# ---- what others do -------------------------------------------------------------------------------------------


def looped_dal(delays: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """g'(t) = max(g(t), g'(t−1) + d), time first: two rows joined, their maximum, written into the row of a tensor."""
    g, d = delays.t(), x / y
    effective = torch.zeros_like(g)
    effective[0] = g[0]
    for t in range(1, len(g)):
        effective[t] = torch.cat([effective[t - 1].unsqueeze(0) + d, g[t].unsqueeze(0)], dim=0).max(dim=0).values
    steps = torch.arange(len(g), dtype=g.dtype).unsqueeze(1)
    return (effective - steps * d).masked_fill(steps >= y, 0).sum(0) / y


def closed_alignment(p: Tensor, eps: float = 1e-6) -> Tensor:
    """α(t) = p(t) c(t) cumsum(α(t−1) / c(t)), c the product of 1−p before j, clamped where it divides."""
    products = torch.cumprod(1 - p, -1)
    before = torch.cat([torch.ones_like(products[..., :1]), products[..., :-1]], -1)
    divisor = before.clamp(eps, 1)
    row = torch.zeros_like(p[:, 0])
    row[:, 0] = 1
    rows = []
    for t in range(p.shape[1]):
        row = (p[:, t] * before[:, t] * torch.cumsum(row / divisor[:, t], -1)).clamp(0, 1)
        rows.append(row.unsqueeze(1))
    return torch.cat(rows, 1)


# ---- how it is measured ---------------------------------------------------------------------------------------


def best(functions: dict[str, Callable[[], object]], seconds: float) -> dict[str, float]:
    """The least CPU time of each, in ms. They take turns; each gets about `seconds`, and at least three rounds."""
    often: dict[str, int] = {}
    for name, function in functions.items():
        function()
        start = time.process_time()
        function()
        often[name] = max(1, round(seconds / 30 / max(time.process_time() - start, 1e-6)))
    least = dict.fromkeys(functions, float("inf"))
    rounds = 0
    begin = time.process_time()
    while rounds < 3 or time.process_time() - begin < seconds * len(functions):
        for name, function in functions.items():
            start = time.process_time()
            for _ in range(often[name]):
                function()
            least[name] = min(least[name], (time.process_time() - start) / often[name] * 1e3)
        rounds += 1
    return least


def trained(loss: Callable[[Tensor], Tensor], leaf: Tensor, gradient: Tensor | None = None) -> Callable[[], None]:
    """Forward and backward; the gradient of the sum if none is given."""

    def run() -> None:
        out = loss(leaf)
        torch.autograd.grad(out.sum() if gradient is None else out, leaf, gradient)

    return run


def operators_and_memory(function: Callable[[], object]) -> tuple[int, float]:
    """How many operators of torch run, each of them a launch on a GPU; and the most memory they hold, in MiB."""
    function()
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        function()
    events = seen.events() or []
    count = sum(
        e.name.startswith("aten::") and not any(c.name.startswith("aten::") for c in e.cpu_children) for e in events
    )
    # `events()` leaves out what was allocated inside of an operator
    recorded = seen.profiler.kineto_results.events() if seen.profiler else []
    held = most = 0
    for event in sorted((e for e in recorded if e.name() == "[memory]"), key=lambda e: e.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return count, most / 2**20


@cache  # operators are registered once
def other_recurrences(path: Path) -> Callable[[Tensor, Tensor], Tensor]:
    """`wavefront` of another version, with its operators under another name."""
    module = ModuleType("base")
    code = path.read_text("utf-8").replace("lagging::", "base::").replace("torch.ops.lagging", "torch.ops.base")
    exec(compile(code, str(path), "exec"), module.__dict__)
    wavefront: Callable[[Tensor, Tensor], Tensor] = module.wavefront
    return wavefront


# ---- what is compared -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    what: str
    measured: str
    target: str = ""
    met: bool | None = None


def at_most(what: str, ratio: float, limit: float) -> Row:
    return Row(what, f"{ratio:.2f}×", f"≤ {limit:g}×", ratio <= limit)


def at_least(what: str, ratio: float, limit: float) -> Row:
    return Row(what, f"{ratio:.1f}×", f"≥ {limit:g}×", ratio >= limit)


def latencies(rows: int, tokens: int, least: float, seconds: float, bare: float | None) -> Iterator[Row]:
    """DAL against a loop, of sentences of T/2 to T tokens; and against torch.cummax, of sentences of T tokens."""
    torch.manual_seed(0)
    y = torch.randint(tokens // 2, tokens + 1, (rows,))
    x = (y * (0.7 + 0.7 * torch.rand(rows))).round()
    delays = (2 * torch.rand(rows, tokens) * (x / y).unsqueeze(1)).cumsum(1).requires_grad_()
    full = torch.full((rows,), float(tokens))
    whole = (2 * torch.rand(rows, tokens)).cumsum(1).requires_grad_()
    over = (whole - torch.arange(tokens)).detach().requires_grad_()
    cost = best(
        {
            "loop": trained(lambda g: looped_dal(g, x, y), delays),
            "dal": trained(lambda g: dal(g, x, y), delays),
            "whole": trained(lambda g: dal(g, full), whole),
            "cummax": trained(lambda g: torch.cummax(g, -1).values, over),
        },
        seconds,
    )
    size = f"{rows}×{tokens}"
    yield Row(f"loop over tokens, {size}", f"{cost['loop']:.3f} ms")
    yield Row(f"dal, {size}", f"{cost['dal']:.3f} ms")
    yield Row(f"dal without padding, {size}", f"{cost['whole']:.3f} ms")
    yield Row(f"torch.cummax of given lags, and nothing else, {size}", f"{cost['cummax']:.3f} ms")
    yield at_least(f"loop ÷ dal, {size}", cost["loop"] / cost["dal"], least)
    if bare is not None:
        yield at_most(f"dal without padding ÷ torch.cummax, {size}", cost["whole"] / cost["cummax"], bare)
        yield Row(f"dal of padded sentences ÷ torch.cummax, {size}", f"{cost['dal'] / cost['cummax']:.2f}×")


def alignments(shape: tuple[int, int, int], least: float, seconds: float) -> Iterator[Row]:
    """Expected alignments against the closed form; and how far its expected DAL is off."""
    torch.manual_seed(0)
    p = torch.sigmoid(torch.randn(shape)).requires_grad_()
    gradient, energies = torch.randn(shape), torch.randn(shape)
    lengths = torch.full(shape[:1], shape[2])
    cost = best(
        {
            "closed": trained(closed_alignment, p, gradient),
            "ours": trained(lambda p: expected_alignment(p, lengths), p, gradient),
            "lookback": trained(lambda p: infinite_lookback(p, energies), p, gradient),
        },
        seconds,
    )
    size = "×".join(map(str, shape))
    yield Row(f"closed form, loop over tokens, {size}", f"{cost['closed']:.2f} ms")
    yield Row(f"expected_alignment, {size}", f"{cost['ours']:.2f} ms")
    yield Row(f"infinite_lookback, {size}", f"{cost['lookback']:.2f} ms")
    count, memory = operators_and_memory(trained(lambda p: expected_alignment(p, lengths), p, gradient))
    yield Row(f"operators of expected_alignment, and their memory, {size}", f"{count}, {memory:.1f} MiB")
    yield at_least(f"closed form ÷ expected_alignment, {size}", cost["closed"] / cost["ours"], least)
    with torch.no_grad():
        biased = closed_alignment(p)
        biased[..., -1] += 1 - biased.sum(-1)
        true, closed = (
            dal(expected_delays(alpha), shape[2]).mean().item() for alpha in (expected_alignment(p, lengths), biased)
        )
    yield Row(f"expected DAL, p ≈ 0.5, {shape[2]} tokens: ours, closed form", f"{true:.2f}, {closed:.2f}")


def versions(shape: tuple[int, int, int], base: Path, seconds: float) -> Iterator[Row]:
    """The recurrence of `expected_alignment`, this version and another: time, operators and memory of a step."""
    torch.manual_seed(0)
    p, gradient = torch.sigmoid(torch.randn(shape)).requires_grad_(), torch.randn(shape)
    start = torch.eye(1, shape[2]).expand(shape[0], shape[2])
    either = {"base": other_recurrences(base), "now": recurrences.wavefront}
    steps = {name: trained(partial(_aligned, wavefront, start), p, gradient) for name, wavefront in either.items()}
    cost, size = best({**steps}, seconds), "×".join(map(str, shape))
    for name, step in steps.items():
        count, memory = operators_and_memory(step)
        times = memory * 2**20 / (p.numel() * p.element_size())
        yield Row(f"{name}, {size}", f"{cost[name]:.2f} ms", f"{count} operators, {memory:.1f} MiB, {times:.1f} p")
    yield Row(f"now ÷ base, {size}", f"{cost['now'] / cost['base']:.2f}×")


def _aligned(wavefront: Callable[[Tensor, Tensor], Tensor], start: Tensor, p: Tensor) -> Tensor:
    return wavefront(p, start)


def in_jax(rows: int, tokens: int, shape: tuple[int, int, int], seconds: float) -> Iterator[Row]:
    """The same in JAX, compiled."""
    import jax
    import jax.numpy as jnp

    from lagging.losses import jax as theirs

    y = jnp.full(rows, tokens)
    delays = jnp.cumsum(2 * jax.random.uniform(jax.random.key(0), (rows, tokens)), 1)
    p = jax.random.uniform(jax.random.key(1), shape)
    latency = jax.jit(jax.grad(lambda g: theirs.dal(g, y, y).sum()))
    alignment = jax.jit(jax.grad(lambda p: (theirs.expected_alignment(p, shape[2]) * p).sum()))
    cost = best(
        {
            "dal": lambda: latency(delays).block_until_ready(),
            "alignment": lambda: alignment(p).block_until_ready(),
        },
        seconds,
    )
    yield Row(f"dal in JAX, {rows}×{tokens}", f"{cost['dal']:.3f} ms")
    yield Row(f"expected_alignment in JAX, {'×'.join(map(str, shape))}", f"{cost['alignment']:.2f} ms")


# ---- the table ------------------------------------------------------------------------------------------------


def show(title: str, rows: Iterator[Row], judge: bool) -> None:
    """Print a part of the table as soon as it has been measured."""
    print(f"\n{title}")
    for row in rows:
        verdict = "" if row.met is None or not judge else "met" if row.met else "MISSED"
        print(f"  {row.what:<60} {row.measured:>14}  {row.target:>8}  {verdict}".rstrip(), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="What latency costs in training: a table of ratios of CPU time.")
    parser.add_argument("--quick", action="store_true", help="small sizes, few rounds: the ratios mean nothing")
    parser.add_argument("--base", type=Path, help="recurrences.py of another version, to compare this one with")
    arguments = parser.parse_args()
    quick, base = arguments.quick, arguments.base
    torch.set_num_threads(1)
    seconds, judge = (0.02, False) if quick else (4.0, True)
    print(f"CPU time of forward and backward, one thread; torch {torch.__version__}, Python {sys.version.split()[0]}")
    show("DAL, short sentences", latencies(64, 32, 10, seconds, None), judge)
    show("DAL, long sentences", latencies(64, 64 if quick else 512, 80, seconds, 1.3), judge)
    sizes = [((32, 32, 32), 1.0), ((32, 128, 128), 2.0), ((8, 512, 512), 8.0)]
    for shape, least in [((4, 16, 16), 1.0)] if quick else sizes:
        show("expected alignment", alignments(shape, least, seconds), judge)
        if base is not None:
            show("expected alignment, two versions", versions(shape, base, seconds), judge)
    if importlib.util.find_spec("jax") is None:
        print("\nJAX\n  NOT RUN: jax is not installed")
    else:
        show("JAX", in_jax(64, 64 if quick else 512, (4, 16, 16) if quick else (32, 128, 128), seconds), judge)


if __name__ == "__main__":
    main()
