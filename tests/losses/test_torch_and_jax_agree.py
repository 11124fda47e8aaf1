# SPDX-License-Identifier: Apache-2.0
"""Values and gradients of the two packages, in float64, on the same numbers."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import pytest

from losses import reference, vectors

jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
torch = pytest.importorskip("torch", reason="NOT RUN: torch is not installed")

import lagging.losses.jax as in_jax  # noqa: E402
import lagging.losses.torch as in_torch  # noqa: E402
from lagging.errors import UsageError  # noqa: E402

TOLERANCE = 1e-9  # asked for: 1e-6
FILLS = (math.nan, math.inf, -math.inf, 1e30)
DICE = np.random.default_rng(0)
SHAPE = (3, 5, 7)
SOURCE = np.array([7, 4, 1])
P = reference.probabilities("uniform", SHAPE)
P[1, :, 4:], P[2, :, 1:] = math.nan, math.inf
ALPHA = reference.alignment(P, SOURCE)


@dataclass
class Case:
    """A call: the floats, in which gradients are taken, and what else it is given."""

    function: str
    floats: list[np.ndarray]
    options: dict[str, Any] = field(default_factory=dict)


def latency(name: str, padding: str, costed: bool = False, **options: Any) -> Case:
    made = vectors.batch(vectors.COSTED if costed else vectors.VECTORS, padding, FILLS)
    where = {"target_lengths": made.target_lengths} if padding == "right" else {"mask": made.mask}
    return Case(name, [made.delays, made.source_lengths], {**where, **options})


def with_cost(name: str, **options: Any) -> Case:
    made = vectors.batch(vectors.COSTED, "left", FILLS)
    return Case(name, [made.delays, made.source_lengths, made.write_cost], {"mask": made.mask, **options})


ROLLED = np.stack([np.roll(row, 7 - n, -1) for row, n in zip(P, SOURCE, strict=True)])
LEFT = np.arange(7) >= 7 - SOURCE[:, None]
ENERGIES = DICE.normal(size=SHAPE) * 5
HEADS = DICE.uniform(0, 9, size=(3, 4, 5))

CASES = {
    **{
        f"{name}, {padding}": latency(name, padding)
        for name in ("al", "ap", "lags", "effective_delays")
        for padding in ("right", "between")
    },
    **{f"dal, {t}, {p}": latency("dal", p, ties=t) for t in ("last", "first", "split") for p in ("right", "between")},
    **{f"dal, {t}, write_cost": with_cost("dal", ties=t) for t in ("last", "first", "split")},
    "al, milliseconds": latency("al", "right", tolerance=1.0),
    "lags, effective": latency("lags", "left", effective=True),
    "lags, effective, write_cost": with_cost("lags", effective=True),
    "effective_delays, write_cost": with_cost("effective_delays"),
    "expected_alignment": Case("expected_alignment", [P], {"source_lengths": SOURCE}),
    "expected_alignment, left": Case("expected_alignment", [ROLLED], {"mask": LEFT}),
    "expected_alignment, mass may be lost": Case("expected_alignment", [P[:1]]),
    "expected_alignment_step": Case("expected_alignment_step", [ALPHA[:, 1], P[:, 2]], {"source_lengths": SOURCE}),
    "expected_alignment, targets on the left": Case(
        "expected_alignment", [P], {"source_lengths": SOURCE, "target_mask": np.arange(5) >= np.array([[2], [0], [4]])}
    ),
    "expected_delays": Case("expected_delays", [ALPHA]),
    "expected_delays, in time": Case("expected_delays", [ALPHA], {"times": np.arange(1, 8) * 40.0}),
    "infinite_lookback": Case("infinite_lookback", [ALPHA, ENERGIES], {"source_lengths": SOURCE}),
    "infinite_lookback, left": Case(
        "infinite_lookback", [reference.alignment(P[:1]).repeat(3, 0), ENERGIES], {"mask": LEFT}
    ),
    "cif_delays": Case(
        "cif_delays",
        [DICE.uniform(0, 1, size=(3, 9))],
        {"target_lengths": np.array([3, 2, 9]), "step_ms": 40.0, "threshold": 0.9},
    ),
    "cif_delays, those that fire": Case("cif_delays", [DICE.uniform(0, 1, size=(3, 9))], {"step_ms": 40.0}),
    **{f"aggregate_heads, {how}": Case("aggregate_heads", [HEADS], {"how": how}) for how in ("mean", "softmax", "max")},
}


def by_torch(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    tensors = [torch.tensor(values, requires_grad=True) for values in case.floats]
    value = called(getattr(in_torch, case.function), case, tensors, torch.as_tensor)
    value.backward(torch.as_tensor(weights(value.shape)))
    none = torch.zeros(())  # a source length that plays no part, as the cost of writing is given
    return value.detach().numpy(), [(none.expand_as(t) if t.grad is None else t.grad).numpy() for t in tensors]


def by_jax(case: Case) -> tuple[np.ndarray, list[np.ndarray]]:
    def call(*floats: Any) -> Any:
        return called(getattr(in_jax, case.function), case, floats, jax.numpy.asarray)

    def both(floats: list[Any]) -> Any:
        value, back = jax.vjp(call, *floats)
        return value, back(weights(value.shape))

    value, slopes = (jax.jit(both) if case.function != "cif_delays" else both)(case.floats)
    return np.asarray(value), [np.asarray(slope) for slope in slopes]


def called(function: Callable[..., Any], case: Case, floats: Any, array: Callable[..., Any]) -> Any:
    options = {name: array(v) if isinstance(v, np.ndarray) else v for name, v in case.options.items()}
    if case.function in ("dal", "lags", "effective_delays") and len(floats) == 3:
        *floats, options["write_cost"] = floats
    return function(*floats, **options)


def weights(shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(9).normal(size=tuple(shape))


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients_agree(name: str, wide: None) -> None:
    value, slopes = by_torch(CASES[name])
    other, others = by_jax(CASES[name])
    assert value.dtype == other.dtype == np.float64
    assert np.isfinite(value).all()
    np.testing.assert_allclose(other, value, rtol=TOLERANCE, atol=TOLERANCE)
    for slope, also in zip(slopes, others, strict=True):
        assert np.isfinite(slope).all()
        np.testing.assert_allclose(also, slope, rtol=TOLERANCE, atol=TOLERANCE)
    assert any(slope.any() for slope in slopes)


def expected_latency(package: Any, p: Any, source: Any, target: Any) -> Any:
    return package.dal(package.expected_delays(package.expected_alignment(p, source)), source, target).sum()


@pytest.mark.parametrize("kind", reference.KINDS)
def test_the_whole_way_from_probabilities_to_the_loss_agrees(kind: str, wide: None) -> None:
    p = reference.probabilities(kind, SHAPE, seed=3)
    target = np.array([5, 3, 1])
    tensor = torch.tensor(p, requires_grad=True)

    total = expected_latency(in_torch, tensor, torch.as_tensor(SOURCE), torch.as_tensor(target))
    total.backward()
    value, slope = jax.jit(jax.value_and_grad(partial(expected_latency, in_jax)))(p, SOURCE, target)
    assert abs(float(value) - float(total.detach())) < TOLERANCE
    np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_hard_alignments_and_masks_agree() -> None:
    hard = in_torch.hard_alignment(torch.as_tensor(P), torch.as_tensor(SOURCE))
    assert in_jax.hard_alignment(P, SOURCE).tolist() == hard.tolist()
    hard = in_torch.hard_alignment(torch.as_tensor(ROLLED), mask=torch.as_tensor(LEFT), threshold=0.7)
    assert in_jax.hard_alignment(ROLLED, mask=LEFT, threshold=0.7).tolist() == hard.tolist()
    for k in (1, 3, [1, 2, 9]):
        mask = in_torch.wait_k_mask(torch.as_tensor(k), 5, 4)
        assert in_jax.wait_k_mask(jax.numpy.asarray(k), 5, 4).tolist() == mask.tolist()


@pytest.mark.parametrize(("hard", "lookback"), [(False, True), (True, False)])
def test_attention_agrees(hard: bool, lookback: bool, wide: None) -> None:
    module = in_torch.MonotonicAttention(8, 5, heads=2, noise=0.0, lookback=lookback).double()
    params = {name: p.detach().numpy() for name, p in module.named_parameters()}
    params = {name.removesuffix(".weight"): p.T if p.ndim == 2 else p for name, p in params.items()}
    attention = in_jax.MonotonicAttention(8, 5, heads=2, lookback=lookback)
    assert {n: p.shape for n, p in attention.init(jax.random.key(0)).items()} == {n: p.shape for n, p in params.items()}
    queries, keys = DICE.normal(size=(3, 4, 8)), DICE.normal(size=(3, 7, 5))
    keys[1, 4:] = math.nan
    seen = module(torch.as_tensor(queries), torch.as_tensor(keys), torch.as_tensor(SOURCE), hard=hard)
    other = attention.apply(params, queries, keys, SOURCE, hard=hard)
    for name in seen._fields:
        mine, theirs = np.asarray(getattr(other, name)), getattr(seen, name).detach().numpy()
        np.testing.assert_allclose(mine, theirs, rtol=1e-6, atol=1e-6)
        assert mine.dtype == theirs.dtype


@pytest.mark.parametrize("heads", [None, "slowest", "mean", "softmax", "max"])
def test_the_loss_agrees(heads: str | None, wide: None) -> None:
    options: dict[str, Any] = {"weight": 0.3, "heads": heads, "start": 4, "steps": 10, "ties": "split"}
    options["variance_weight"] = 0.7 if heads else 0.0
    delays = HEADS if heads else HEADS[:, 0]
    target = np.array([5, 3, 0])
    tensor = torch.tensor(delays, requires_grad=True)
    loss = in_torch.LatencyLoss(**options)
    terms = loss(2.5, tensor, torch.as_tensor(SOURCE), torch.as_tensor(target), step=9)
    terms.loss.backward()
    objective = in_jax.LatencyLoss(**options)

    def total(delays: Any) -> Any:
        terms = objective(2.5, delays, SOURCE, target, step=9)
        return terms.loss, terms

    (_, other), slope = jax.jit(jax.value_and_grad(total, has_aux=True))(delays)
    for name in terms._fields:
        assert abs(float(getattr(other, name)) - getattr(terms, name).item()) < 1e-7, name
    np.testing.assert_allclose(slope, tensor.grad.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_controllers_agree() -> None:
    options = {"target": 4.0, "weight": 0.2, "rate": 0.5, "highest": 1.5}
    module, state = in_torch.LatencyController(**options), in_jax.LatencyController(**options)
    for latency in (6.0, 9.0, 3.0, 1.0, 1.0, 4.5):
        state = state.update(latency)
        assert float(module.update(latency)) == pytest.approx(float(state.weight), abs=1e-6)


def test_samples_have_their_probability_in_jax(wide: None) -> None:
    p = reference.probabilities("uniform", (1, 3, 4), seed=3)
    chances = reference.paths(p[0], 4)
    drawn = in_jax.sample_alignment(np.broadcast_to(p, (500, 3, 4)), 4, jax.random.key(0))
    for delays, log in zip(drawn.delays.tolist(), drawn.log_probability.sum(-1).tolist(), strict=True):
        assert math.exp(log) == pytest.approx(chances[tuple(delays)], rel=1e-9)
    assert len({tuple(delays) for delays in drawn.delays.tolist()}) > 10


def test_unused_rows_of_nan_give_no_nan_gradient_in_jax() -> None:
    energies = np.zeros((2, 3), np.float32)
    energies[1] = math.nan
    alpha = np.full((2, 3), 0.3, np.float32)
    slope = jax.grad(lambda a, u: in_jax.infinite_lookback(a, u)[0, 0], argnums=(0, 1))(alpha, energies)
    assert all(np.isfinite(one).all() for one in slope)
    assert np.isnan(in_jax.infinite_lookback(alpha, energies)[1]).all()


def test_shapes_and_masks_are_refused_alike() -> None:
    p = np.full((3, 2, 4, 5), 0.5)
    for package in (in_jax, in_torch):
        with pytest.raises(UsageError, match=r"lengths\[:, None\]"):
            package.expected_alignment(p, np.array([5, 4, 1]))
        with pytest.raises(UsageError, match="of booleans"):
            package.expected_alignment(p, mask=np.zeros(5))


SAME = [
    *("al", "ap", "cif_delays", "dal", "effective_delays", "expected_alignment", "expected_alignment_step"),
    *("expected_delays", "hard_alignment", "infinite_lookback", "lags", "wait_k_mask", "warm_up"),
    *("LatencyController", "LatencyLoss", "LossTerms", "Attended", "MonotonicAttention"),
]


def test_the_same_names() -> None:
    assert set(SAME) <= set(in_jax.__all__)
    assert in_jax.__all__ == in_torch.__all__ == sorted(in_jax.__all__)


@pytest.mark.parametrize("name", SAME)
def test_the_same_arguments(name: str) -> None:
    ours, theirs = (inspect.signature(getattr(package, name)).parameters for package in (in_jax, in_torch))
    assert [(p.name, p.kind, p.default) for p in ours.values()] == [
        (p.name, p.kind, p.default) for p in theirs.values()
    ]


def test_float64_does_not_leak() -> None:
    assert not jax.config.jax_enable_x64
    assert jax.numpy.asarray(np.zeros(1)).dtype == jax.numpy.float32


def test_energies_of_minus_infinity_are_the_least_there_are():
    energies = DICE.normal(size=SHAPE).astype(np.float32)
    energies[0, :, 0] = energies[1, :, 2] = -math.inf
    alpha = ALPHA.astype(np.float32)
    u = torch.tensor(energies, requires_grad=True)
    in_torch.infinite_lookback(torch.tensor(alpha), u, torch.tensor(SOURCE)).square().sum().backward()
    ours = in_torch.infinite_lookback(torch.tensor(alpha), u, torch.tensor(SOURCE)).detach().numpy()
    theirs = np.asarray(in_jax.infinite_lookback(alpha, energies, SOURCE))
    assert ours == pytest.approx(theirs, abs=1e-6)
    assert ours.sum(-1) == pytest.approx(alpha.sum(-1), abs=1e-6)
    assert u.grad.isfinite().all()
