# SPDX-License-Identifier: Apache-2.0
import importlib
import math

import numpy as np
import pytest
import torch

import lagging
from lagging.errors import UsageError
from lagging.losses.torch import (
    cif_delays,
    dal,
    expected_alignment,
    expected_alignment_step,
    expected_delays,
    hard_alignment,
    infinite_lookback,
    recurrences,
    sample_alignment,
)
from losses import reference

LENGTHS = [6, 3, 1]


def policy(kind="uniform", shape=(3, 4, 6), dtype=torch.float64, seed=0):
    return torch.tensor(reference.probabilities(kind, shape, seed), dtype=dtype)


def relative(got, want):
    """The largest relative error of what is more than next to nothing."""
    got, want = np.asarray(got, np.float64), np.asarray(want, np.float64)
    seen = np.abs(want) > 1e-12
    return float((np.abs(got - want)[seen] / np.abs(want)[seen]).max())


def norm(got, want):
    return float(np.linalg.norm(np.asarray(got, np.float64) - want) / np.linalg.norm(want))


# ---- the expected alignment -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", reference.KINDS)
@pytest.mark.parametrize("size", [32, 128, 512, 1024])
def test_alignment_and_gradient_are_those_of_the_sequential_reference(kind, size):
    rows = 2 if size <= 128 else 1
    p = policy(kind, (rows, size, size), torch.float32).requires_grad_()
    lengths = [size, size - size // 4][:rows]
    weights = np.random.default_rng(1).normal(size=p.shape)
    exact = p.detach().double().numpy()
    want = reference.alignment(exact, lengths)
    alpha = expected_alignment(p, torch.tensor(lengths))
    assert torch.isfinite(alpha).all()
    assert relative(alpha.detach(), want) <= 5e-6
    np.testing.assert_allclose(alpha.detach().double().sum(-1), 1, atol=1e-5)
    (alpha * torch.tensor(weights, dtype=torch.float32)).sum().backward()
    assert torch.isfinite(p.grad).all()
    assert norm(p.grad, reference.alignment_gradient(exact, weights, lengths)) <= 1e-5


@pytest.mark.parametrize("chance", [0.003, 0.1, 0.4, 0.7, 0.99])
def test_no_mass_is_lost_where_p_is_the_same_everywhere(chance):
    """As it is before training: then every step rounds in the same direction."""
    alpha = expected_alignment(torch.full((1, 1024, 1024), chance), 1024)
    np.testing.assert_allclose(alpha.double().sum(-1), 1, atol=1e-6)


def test_the_closed_form_of_others_is_no_oracle():
    """At 48 tokens and p about a half, clamped products say 14.5 where the expected DAL is 2.4."""
    p = 1 / (1 + np.exp(-np.random.default_rng(0).normal(size=(1, 48, 48))))
    p[:, :, -1] = 1
    before = np.cumprod(np.concatenate([np.ones((1, 48, 1)), 1 - p[:, :, :-1]], -1), -1)
    row, rows = np.eye(1, 48), []
    for t in range(48):
        row = p[:, t] * before[:, t] * np.cumsum(row / np.clip(before[:, t], 1e-6, 1), -1)
        rows.append(row.copy())
    clamped = np.stack(rows, 1)
    clamped[:, :, -1] += 1 - clamped.sum(-1)
    ours = expected_alignment(p)
    np.testing.assert_allclose(ours, reference.alignment(p), rtol=1e-12, atol=1e-300)
    exact, biased = (dal(expected_delays(a), 48).item() for a in (ours, clamped))
    assert 2 < exact < 3
    assert biased > 10


def test_without_lengths_mass_may_be_lost():
    p = policy()
    np.testing.assert_allclose(expected_alignment(p), reference.alignment(p.numpy()), rtol=1e-12)
    assert (expected_alignment(p).sum(-1) < 1).all()


def test_probabilities_of_exactly_0_and_1():
    p = torch.tensor([[[0.0, 1, 0, 1], [0, 0, 0, 1], [1, 1, 1, 1]], [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]]])
    want = torch.tensor([[[0.0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]], [[0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 1]]])
    assert torch.equal(expected_alignment(p, 4), want)
    assert torch.equal(expected_alignment(torch.zeros(2, 3)), torch.zeros(2, 3))


@pytest.mark.parametrize("kind", ["uniform", "hard"])
@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_gradcheck_of_the_alignment(kind, lengths):
    p = policy(kind).requires_grad_()
    assert torch.autograd.gradcheck(lambda p: expected_alignment(p, lengths), p)


def test_source_padding_is_harmless_on_any_side():
    p = policy(shape=(3, 4, 6))
    weights = torch.tensor(np.random.default_rng(1).normal(size=(3, 4, 6)))
    want = expected_alignment(p, LENGTHS)
    slope = reference.alignment_gradient(p.numpy(), weights.numpy(), LENGTHS)
    for dirt in (math.nan, math.inf, -math.inf, 7.0):
        right, left = p.clone(), torch.full_like(p, dirt)
        mask, moved = torch.zeros(3, 6, dtype=torch.bool), torch.zeros_like(p)
        for b, n in enumerate(LENGTHS):
            right[b, :, n:] = dirt
            left[b, :, 6 - n :] = p[b, :, :n]
            moved[b, :, 6 - n :] = weights[b, :, :n]
            mask[b, 6 - n :] = True
        right.requires_grad_()
        left.requires_grad_()
        got = expected_alignment(right, torch.tensor(LENGTHS))
        assert torch.equal(got, want)
        (got * weights).sum().backward()
        np.testing.assert_allclose(right.grad, slope, rtol=1e-12, atol=1e-15)
        shifted = expected_alignment(left, mask=mask)
        (shifted * moved).sum().backward()
        for b, n in enumerate(LENGTHS):
            torch.testing.assert_close(shifted[b, :, 6 - n :], want[b, :, :n])
            assert not shifted[b, :, : 6 - n].any()
            np.testing.assert_allclose(left.grad[b, :, 6 - n :], slope[b, :, :n], rtol=1e-12, atol=1e-15)
            assert not left.grad[b, :, : 6 - n].any()
        torch.testing.assert_close(
            expected_delays(shifted, mask.cumsum(-1)), expected_delays(want), rtol=1e-12, atol=1e-12
        )


def test_target_padding_is_harmless():
    p = policy(shape=(2, 5, 6)).requires_grad_()
    dirty = p.detach().clone()
    dirty[0, 3:], dirty[1, 4:] = math.nan, math.inf
    dirty.requires_grad_()
    grads = []
    for one in (p, dirty):
        value = dal(expected_delays(expected_alignment(one, [6, 4])), [6, 4], [3, 4])
        grads.append(torch.autograd.grad(value.sum(), one)[0])
        assert torch.isfinite(value).all()
    torch.testing.assert_close(grads[0], grads[1], rtol=1e-12, atol=1e-15)
    assert not grads[1][0, 3:].any()


def test_nothing_real_is_hidden():
    p = policy()
    p[0, 1, 2] = math.nan
    assert expected_alignment(p, LENGTHS)[0, 1:].isnan().any()


def test_any_leading_dimensions_and_an_empty_source():
    p = policy(shape=(6, 4, 5)).view(3, 2, 4, 5)
    lengths = torch.tensor([[5, 4], [1, 2], [0, 3]])
    got = expected_alignment(p, lengths)
    for place in np.ndindex(3, 2):
        n = int(lengths[place])
        if n:
            np.testing.assert_allclose(got[place], reference.alignment(p[place][None].numpy(), [n])[0], rtol=1e-12)
    assert not got[2, 0].any()
    assert torch.equal(expected_alignment(p[0, 0], 5), got[0, 0])
    assert expected_alignment(torch.zeros(2, 0, 3)).shape == (2, 0, 3)
    assert expected_alignment(torch.zeros(2, 3, 0)).shape == (2, 3, 0)
    one = expected_alignment(torch.tensor([[0.25]]))
    assert one.tolist() == [[0.25]]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_in_float32_out(dtype):
    p = policy(shape=(2, 64, 64)).to(dtype).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        alpha = expected_alignment(p, 64)
        delays = expected_delays(alpha)
        beta = infinite_lookback(alpha, torch.randn(2, 64, 64).to(dtype))
    assert alpha.dtype == delays.dtype == beta.dtype == torch.float32
    assert relative(alpha.detach(), reference.alignment(p.detach().double().numpy(), [64, 64])) <= 5e-6
    np.testing.assert_allclose(beta.detach().double().sum(-1), 1, atol=1e-6)
    delays.sum().backward()
    assert p.grad.dtype == dtype
    assert torch.isfinite(p.grad).all()


def test_step_by_step_is_the_same():
    p = policy().requires_grad_()
    weights = torch.tensor(np.random.default_rng(1).normal(size=(3, 4, 6)))
    for lengths in (None, torch.tensor(LENGTHS)):
        row = torch.eye(1, 6, dtype=torch.float64).expand(3, 6)
        rows = []
        for t in range(4):
            row = expected_alignment_step(row, p[:, t], lengths)
            rows.append(row)
        whole = expected_alignment(p, lengths)
        torch.testing.assert_close(torch.stack(rows, 1), whole, rtol=1e-12, atol=1e-15)
        got = torch.autograd.grad((torch.stack(rows, 1) * weights).sum(), p)[0]
        want = torch.autograd.grad((whole * weights).sum(), p)[0]
        torch.testing.assert_close(got, want, rtol=1e-12, atol=1e-14)


def test_gradcheck_of_a_step():
    previous, p = policy(seed=1)[:, 0].requires_grad_(), policy(seed=2)[:, 0].requires_grad_()
    assert torch.autograd.gradcheck(expected_alignment_step, (previous, p))
    assert torch.autograd.gradcheck(lambda a, p: expected_alignment_step(a, p, LENGTHS), (previous, p))
    dirty = previous.detach().clone()
    dirty[1, 3:] = math.nan
    got = expected_alignment_step(dirty, p, LENGTHS)
    torch.testing.assert_close(got, expected_alignment_step(previous, p, LENGTHS))


# ---- delays -----------------------------------------------------------------------------------------------------


def test_expected_delays():
    alpha = expected_alignment(policy(), LENGTHS)
    np.testing.assert_allclose(expected_delays(alpha), alpha.numpy() @ np.arange(1.0, 7.0), rtol=1e-12)
    times = torch.tensor(
        [[40.0, 80, 90, 200, 210, 300], [10, 20, 30, math.nan, math.nan, math.inf], [5] + [math.nan] * 5]
    )
    got = expected_delays(alpha, times)
    for b, n in enumerate(LENGTHS):
        np.testing.assert_allclose(got[b], alpha[b, :, :n].numpy() @ times[b, :n].double().numpy(), rtol=1e-12)
    every = expected_delays(alpha, times[0])
    np.testing.assert_allclose(every, alpha.numpy() @ times[0].double().numpy(), rtol=1e-12)
    assert torch.autograd.gradcheck(expected_delays, alpha.requires_grad_())


def test_a_hard_policy_has_the_latency_of_the_evaluator():
    dice = np.random.default_rng(5)
    sizes, targets = dice.integers(1, 12, 40), dice.integers(1, 14, 40)
    p = torch.tensor(dice.uniform(size=(40, 14, 12)), dtype=torch.float32)
    hard = hard_alignment(p, torch.tensor(sizes))
    assert hard.dtype == torch.int64
    soft = expected_delays(expected_alignment((p >= 0.5).float(), torch.tensor(sizes)))
    assert torch.equal(soft, hard.float())
    got = dal(hard, torch.tensor(sizes), torch.tensor(targets))
    for b in range(40):
        want = reference.hard(p[b].numpy(), int(sizes[b]))
        assert hard[b].tolist() == want
        evaluated = lagging.dal(want[: targets[b]], source_length=int(sizes[b]))
        assert got[b].item() == pytest.approx(evaluated, rel=1e-6)


def test_hard_alignments_of_other_thresholds_masks_and_shapes():
    p = policy(shape=(4, 5, 7))
    for threshold in (0.0, 0.3, 0.9, 1.1):
        for b in range(4):
            assert hard_alignment(p[b], threshold=threshold).tolist() == reference.hard(p[b].numpy(), 7, threshold)
    mask = torch.zeros(4, 7, dtype=torch.bool)
    mask[:, 2:6] = True
    for dirt in (math.nan, math.inf, 0.0):
        got = hard_alignment(torch.where(mask[:, None], p, dirt), mask=mask)
        for b in range(4):
            assert got[b].tolist() == reference.hard(p[b, :, 2:6].numpy(), 4)
    assert hard_alignment([[0.4, 0.5, 0.6]]).tolist() == [2], "it reads on while p is below the threshold"
    assert hard_alignment(p.view(2, 2, 5, 7), torch.tensor([[7, 3], [1, 5]])).shape == (2, 2, 5)
    assert hard_alignment(torch.zeros(0, 3)).tolist() == []


def test_lengths_and_a_mask_are_too_much():
    for function in (expected_alignment, hard_alignment):
        with pytest.raises(UsageError, match="source_lengths or mask, not both"):
            function(torch.ones(2, 3), 3, mask=torch.ones(3))
    for function in (expected_alignment_step, infinite_lookback):
        with pytest.raises(UsageError, match="source_lengths or mask, not both"):
            function(torch.ones(2, 3), torch.ones(2, 3), 3, mask=torch.ones(3))


def test_cif_fires_when_the_weights_add_up():
    dice = np.random.default_rng(2)
    w = dice.uniform(size=(3, 20))
    w[1, 9:] = 0
    for lengths in (np.array([7, 3, 12]), np.array([1, 0, 2])):
        got = cif_delays(torch.tensor(w), lengths, step_ms=40, threshold=0.9)
        assert got.shape == (3, lengths.max())
        for b, n in enumerate(lengths):
            np.testing.assert_allclose(got[b, :n], reference.fires(w[b], n, 40, 0.9), rtol=1e-12)
            assert not got[b, n:].any()
    free = cif_delays(torch.tensor(w), step_ms=40)
    assert free.shape == (3, int(w.sum(-1).max()))
    assert (free > 0).sum(-1).tolist() == [int(total) for total in w.sum(-1)]
    assert cif_delays(torch.tensor(w), 2, step_ms=40, size=4)[:, 2:].tolist() == [[0, 0]] * 3
    late = cif_delays(torch.tensor(w[1]), 30, step_ms=40)
    assert late[-1] == 20 * 40
    assert cif_delays(torch.zeros(2, 0), 2, step_ms=40).tolist() == [[0, 0]] * 2
    with pytest.raises(UsageError, match="more than the rows"):
        cif_delays(torch.zeros(3), [1, 2], step_ms=40)


def test_gradcheck_of_cif():
    w = torch.tensor(np.random.default_rng(2).uniform(0.2, 0.9, size=(2, 3, 8)), requires_grad=True)
    assert torch.autograd.gradcheck(lambda w: cif_delays(w, torch.tensor([[1, 2, 4], [3, 0, 9]]), step_ms=3), w)
    cif_delays(w, 9, step_ms=3)[0, 0, -1].backward()  # which never fires
    assert not w.grad.any()


# ---- infinite lookback ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [0.0, 1.0, 10.0, 1e3, 1e6])
def test_lookback_is_right_for_energies_of_any_size(scale):
    alpha = expected_alignment(policy("uniform", (2, 5, 64), torch.float32), [64, 40])
    u = torch.tensor(np.random.default_rng(4).normal(size=(2, 5, 64)) * scale, dtype=torch.float32).requires_grad_()
    beta = infinite_lookback(alpha, u, [64, 40])
    np.testing.assert_allclose(
        beta.detach(), reference.lookback(alpha.numpy(), u.detach().numpy()), rtol=2e-6, atol=1e-9
    )
    np.testing.assert_allclose(beta.detach().double().sum(-1), 1, atol=3e-6)
    beta[..., ::3].sum().backward()
    assert torch.isfinite(u.grad).all()


@pytest.mark.parametrize("lengths", [None, LENGTHS])
def test_gradcheck_of_lookback(lengths):
    alpha = policy(seed=1)
    alpha[0, 0, 2:4] = 0  # where a logarithm would have no slope
    u = torch.tensor(np.random.default_rng(4).normal(size=alpha.shape) * 3, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, u: infinite_lookback(a, u, lengths), (alpha.requires_grad_(), u))


def test_lookback_over_a_hard_alignment_is_a_softmax_over_the_prefix():
    u = torch.randn(1, 3, 5, dtype=torch.float64)
    alpha = torch.nn.functional.one_hot(torch.tensor([[1, 1, 4]]), 5).double()
    beta = infinite_lookback(alpha, u)
    for t, n in enumerate((2, 2, 5)):
        torch.testing.assert_close(beta[0, t, :n], torch.softmax(u[0, t, :n], -1))
        assert not beta[0, t, n:].any()


def test_padding_reaches_neither_lookback_nor_its_gradient():
    alpha, u = expected_alignment(policy(), LENGTHS), torch.randn(3, 4, 6, dtype=torch.float64)
    want = infinite_lookback(alpha, u, LENGTHS)
    outside = (torch.arange(6) >= torch.tensor(LENGTHS)[:, None])[:, None].expand(3, 4, 6)
    for dirt in (math.nan, math.inf, -math.inf, 1e9):
        a, e = (torch.where(outside, dirt, one).requires_grad_() for one in (alpha, u))
        got = infinite_lookback(a, e, LENGTHS)
        torch.testing.assert_close(got, want, rtol=1e-14, atol=0)
        for slope in torch.autograd.grad(got[..., ::2].sum(), (a, e)):
            assert torch.isfinite(slope).all()
            assert not slope[outside].any()
    np.testing.assert_allclose(
        want[:, :, :1].numpy(), reference.lookback(alpha.numpy(), u.numpy())[:, :, :1], rtol=1e-12
    )


# ---- transforms -------------------------------------------------------------------------------------------------


def test_vmap_func_grad_and_jacrev():
    p, u = policy(), torch.randn(3, 4, 6, dtype=torch.float64)
    lengths = torch.tensor(LENGTHS)

    def value(p, u, n):
        alpha = expected_alignment(p, n)
        return (infinite_lookback(alpha, u, n) ** 2).sum() + dal(expected_delays(alpha), n)

    got = torch.func.vmap(torch.func.grad(value, argnums=(0, 1)), in_dims=(0, 1, 0))(p, u.movedim(0, 1), lengths)
    p.requires_grad_()
    u.requires_grad_()
    want = torch.autograd.grad(sum(value(p[b], u[b], lengths[b]) for b in range(3)), (p, u))
    for one, other in zip(got, want, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-14)
    jacobian = torch.func.jacrev(lambda p: expected_alignment(p, 4))(p[0].detach())
    direct = torch.autograd.functional.jacobian(lambda p: expected_alignment(p, 4), p[0].detach())
    torch.testing.assert_close(jacobian, direct, rtol=1e-12, atol=1e-14)
    whole = expected_alignment(p.detach())
    turned = torch.func.vmap(expected_alignment, in_dims=2, out_dims=1)(p.detach().movedim(0, 2))
    torch.testing.assert_close(turned.movedim(1, 0), whole, rtol=0, atol=0)
    torch.testing.assert_close(torch.func.vmap(hard_alignment)(p.detach(), lengths), hard_alignment(p, lengths))


@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_compiled_in_one_graph():
    p, u = policy(dtype=torch.float32).requires_grad_(), torch.randn(3, 4, 6)
    lengths = torch.tensor(LENGTHS)

    def value(p, u, n):
        alpha = expected_alignment(p, n)
        return infinite_lookback(alpha, u, n)[..., 0].sum() + dal(expected_delays(alpha), n, ties="split").sum()

    compiled = torch.compile(value, fullgraph=True, backend="aot_eager")
    got = torch.autograd.grad(compiled(p, u, lengths), p)[0]
    torch.testing.assert_close(got, torch.autograd.grad(value(p, u, lengths), p)[0])


def test_a_second_derivative_is_refused_and_not_0():
    p = policy().requires_grad_()
    (first,) = torch.autograd.grad((expected_alignment(p) ** 2).sum(), p, create_graph=True)
    np.testing.assert_allclose(
        first.detach(), torch.func.grad(lambda p: (expected_alignment(p) ** 2).sum())(p.detach())
    )
    with pytest.raises(NotImplementedError, match="first derivative only"):
        torch.autograd.grad(first.sum(), p)
    beta = infinite_lookback(p, torch.zeros(6))
    (first,) = torch.autograd.grad((beta**2).sum(), p, create_graph=True)
    with pytest.raises(NotImplementedError, match="first derivative only"):
        torch.autograd.grad(first.sum(), p)


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (2, 3, 4), (2, 2, 5, 3)])
def test_operators_are_what_they_declare(shape):
    """`torch.library.opcheck`: schema, autograd, and shapes and strides without data, as `torch.compile` uses them."""
    dice = torch.Generator().manual_seed(0)
    p, gradient, alpha = (torch.rand(shape, generator=dice, dtype=torch.float64) for _ in range(3))
    start = torch.nn.functional.one_hot(torch.zeros(shape[:-2], dtype=torch.long), shape[-1]).double()
    operators = torch.ops.lagging
    q = operators.wavefront(p, start)[1]
    beta, w = operators.lookback(alpha, gradient)
    calls = {
        operators.wavefront: (p, start),
        operators.wavefront_backward: (gradient, p, q, True),
        operators.lookback: (alpha, gradient),
        operators.lookback_backward: (gradient, alpha, beta, w),
    }
    named = {name for name in vars(operators) if isinstance(getattr(operators, name), torch._ops.OpOverloadPacket)}
    assert {operator._qualified_op_name.split("::")[1] for operator in calls} == named, "all there are"
    for operator, arguments in calls.items():
        torch.library.opcheck(operator.default, arguments)
    torch.library.opcheck(operators.wavefront_backward.default, (gradient, p, q, False))


def test_sentences_heads_and_target_tokens_go_through_in_blocks(monkeypatch):
    p, u = policy(shape=(10, 4, 6)).view(5, 2, 4, 6), torch.randn(5, 2, 4, 6, dtype=torch.float64)
    previous = policy(seed=5, shape=(10, 4, 6))[:, 0]

    def everything():
        leaf, energies, before = (part.clone().requires_grad_() for part in (p, u, previous))
        alpha = expected_alignment(leaf, 6)
        beta = infinite_lookback(alpha, energies)
        step = expected_alignment_step(before, before)
        total = (beta * u).sum() + step.square().sum()
        return [alpha, beta, *torch.autograd.grad(total, (leaf, energies, before))]

    whole = everything()
    for cells, rows, diagonal in ((1, 1, 1), (100, 4, 12), (100, 3, 6)):
        monkeypatch.setitem(recurrences.CHUNK, "cpu", cells)
        monkeypatch.setattr(recurrences, "ROWS", rows)
        monkeypatch.setattr(recurrences, "DIAGONAL", diagonal)
        for one, other in zip(everything(), whole, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-15)  # blocks add in another order


def test_loading_the_module_again_registers_no_operator_twice():
    module = importlib.reload(recurrences)
    p = policy()
    start = torch.eye(1, 6, dtype=torch.float64).expand(3, 6)
    torch.testing.assert_close(module.wavefront(p, start), expected_alignment(p))


def test_no_cumulative_sum_of_floats_in_backward_where_the_start_has_no_gradient():
    """CUDA has none in deterministic mode, and raises an error."""
    p = policy().requires_grad_()
    alpha = expected_alignment(p, LENGTHS)
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        alpha.sum().backward()
    called = {event.key for event in profile.key_averages()}
    assert "lagging::wavefront_backward" in called
    assert "aten::cumsum" not in called


def test_rows_that_are_nan_and_unused_give_no_nan_gradient():
    alpha, u = policy(seed=1), torch.randn(3, 4, 6, dtype=torch.float64)
    alpha[0, 1, 2], u[1, 3, 0], u[2, 0] = math.nan, math.nan, math.nan
    alpha.requires_grad_()
    u.requires_grad_()
    beta = infinite_lookback(alpha, u)
    known = ~beta.isnan().any(-1)
    assert known.sum() == 9
    slopes = torch.autograd.grad(beta[known].square().sum(), (alpha, u))
    for slope in slopes:
        assert slope.isfinite().all()
        assert not slope[~known].any()
        assert slope[known].any()


# ---- shapes and masks -------------------------------------------------------------------------------------------


def test_lengths_of_sentences_need_a_dimension_for_heads():
    p = policy(shape=(6, 4, 5)).view(3, 2, 4, 5)
    lengths = torch.tensor([5, 4, 1])
    for function in (expected_alignment, hard_alignment, sample_alignment):
        with pytest.raises(UsageError, match=r"source_lengths of shape \(3,\) .*lengths\[:, None\]"):
            function(p, lengths)
        with pytest.raises(UsageError, match="mask"):
            function(p, mask=torch.ones(3, 5, dtype=torch.bool))
    for function in (infinite_lookback, expected_alignment_step):
        with pytest.raises(UsageError, match="does not broadcast"):
            function(p, p, torch.tensor([5, 4, 1, 2, 2]))
    assert torch.equal(expected_alignment(p, lengths[:, None])[1, 1], expected_alignment(p[1, 1], 4))


def test_masks_that_are_added_to_energies_are_refused():
    added = torch.tensor([0.0, 0.0, -math.inf])
    p = torch.full((2, 3), 0.5)
    for call in (
        lambda: expected_alignment(p, mask=added),
        lambda: hard_alignment(p, mask=added),
        lambda: infinite_lookback(p, p, mask=added),
        lambda: dal([1.0, 2.0, 3.0], 3, mask=added),
        lambda: expected_alignment(p, target_mask=[0.0, 0.0]),
    ):
        with pytest.raises(UsageError, match="of booleans, True where real, but is of floats"):
            call()
    assert torch.equal(expected_alignment(p, mask=[1, 1, 0]), expected_alignment(p, 2))


def test_targets_padded_on_the_left():
    p = policy(shape=(2, 5, 6)).requires_grad_()
    rows = torch.tensor([[False, False, True, True, True], [False, True, True, True, True]])
    dirty = torch.where(rows[..., None], p, math.nan)
    alpha = expected_alignment(dirty, [6, 4], target_mask=rows)
    hard = hard_alignment(dirty, [6, 4], target_mask=rows)
    for b, n, skip in ((0, 6, 2), (1, 4, 1)):
        want = expected_alignment(p[b, skip:], n)
        torch.testing.assert_close(alpha[b, skip:], want, rtol=1e-14, atol=0)
        assert not alpha[b, :skip].any()
        assert hard[b].tolist() == [0] * skip + hard_alignment(p[b, skip:], n).tolist()
        slope, also = (torch.autograd.grad(a.square().sum(), p, retain_graph=True)[0][b] for a in (alpha[b], want))
        torch.testing.assert_close(slope, also, rtol=1e-12, atol=1e-15)
    drawn = sample_alignment(dirty.detach(), [6, 4], target_mask=rows)
    assert not drawn.delays[~rows].any()
    assert not drawn.log_probability[~rows].any()
    assert (drawn.delays[rows] > 0).all()
    for wrong in (torch.ones(4, dtype=torch.bool), torch.ones(3, 5, dtype=torch.bool)):
        with pytest.raises(UsageError, match="target_mask"):
            expected_alignment(p, target_mask=wrong)


# ---- sampling ---------------------------------------------------------------------------------------------------


def test_log_probabilities_are_those_of_the_paths():
    p = policy(shape=(1, 3, 4), seed=3)
    chances = reference.paths(p[0].numpy(), 4)
    assert sum(chances.values()) == pytest.approx(1, rel=1e-12)
    drawn = sample_alignment(p.expand(2000, 3, 4), 4, torch.Generator().manual_seed(0))
    seen = {}
    for delays, log in zip(drawn.delays.tolist(), drawn.log_probability.sum(-1).tolist(), strict=True):
        assert math.exp(log) == pytest.approx(chances[tuple(delays)], rel=1e-12)
        seen[tuple(delays)] = seen.get(tuple(delays), 0) + 1
    for path, chance in chances.items():
        assert abs(seen.get(path, 0) / 2000 - chance) < 5 * math.sqrt(chance / 2000)
    mean = sum(chance * np.array(path) for path, chance in chances.items())
    np.testing.assert_allclose(expected_delays(expected_alignment(p, 4))[0], mean, rtol=1e-12)


def test_the_score_of_a_sample_is_the_gradient_of_its_probability():
    p = policy(shape=(2, 3, 4), seed=3).requires_grad_()
    assert torch.autograd.gradcheck(
        lambda p: sample_alignment(p, [4, 2], torch.Generator().manual_seed(0)).log_probability, p
    )
    sharp = torch.tensor([[0.0, 1.0, 0.5], [0.5, 1.0, 0.0]], requires_grad=True)
    drawn = sample_alignment(sharp, 3)
    assert drawn.delays.tolist() == [2, 2]
    (slope,) = torch.autograd.grad(drawn.log_probability.sum(), sharp)
    assert drawn.log_probability.tolist() == [0, 0]
    assert slope.isfinite().all()


@pytest.mark.parametrize(("steps", "width"), [(6, 6), (3, 6)])
def test_dal_of_the_expected_delays_is_below_the_expected_dal(steps, width):
    p = policy(shape=(1, steps, width), seed=4)
    exact = reference.expected_dal(p[0].numpy(), width)
    by_paths = sum(
        chance * lagging.dal(path, source_length=width) for path, chance in reference.paths(p[0].numpy(), width).items()
    )
    assert exact == pytest.approx(by_paths, rel=1e-12)
    assert dal(expected_delays(expected_alignment(p, width)), width).item() < exact
    drawn = dal(sample_alignment(p.expand(4000, -1, -1), width, torch.Generator().manual_seed(0)).delays, width)
    assert abs(drawn.mean().item() - exact) < 4 * drawn.std().item() / math.sqrt(4000)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_a_step_can_be_compiled_and_differentiated():
    dice = torch.Generator().manual_seed(0)
    p = torch.rand(3, 5, generator=dice, dtype=torch.float64)
    before = torch.softmax(torch.rand(3, 5, generator=dice, dtype=torch.float64), -1).requires_grad_()
    worth = torch.rand(3, 5, generator=dice, dtype=torch.float64)
    gradients = []
    for step in (expected_alignment_step, torch.compile(expected_alignment_step, backend="aot_eager")):
        (slope,) = torch.autograd.grad((step(before, p) * worth).sum(), before)
        gradients.append(slope)
    torch.testing.assert_close(*gradients)
