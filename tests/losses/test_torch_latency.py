# SPDX-License-Identifier: Apache-2.0
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
import oracle
from lagging.errors import UsageError
from lagging.losses.torch import al, ap, dal, effective_delays, lags
from losses.vectors import COSTED, PAPER, PLAIN, TIES, VECTORS, batch, gradient

RULES = ("last", "first", "split")
SIDES = ("right", "left", "between")
DIRT = (math.nan, math.inf, -math.inf, 1e9)
GROUPS = {"|x|/|y|": VECTORS, "write cost": COSTED}


def given_as(b, dtype=torch.float64, by_mask=None):
    """Delays with gradient, the positional and the keyword arguments of a batch."""
    delays = torch.tensor(b.delays, dtype=dtype, requires_grad=True)
    by_mask = bool((np.diff(b.mask.astype(int)) > 0).any() or not b.mask[:, 0].all()) if by_mask is None else by_mask
    x = torch.tensor(b.source_lengths)
    if by_mask:
        return delays, (x,), {"mask": torch.tensor(b.mask)}
    return delays, (x, torch.tensor(b.target_lengths)), {}


def evaluated(function, vectors, **more):
    return [function(v.delays, source_length=v.source_length, **more) for v in vectors]


def costed(function, vectors, **more):
    return [function(v.delays, source_length=v.source_length, write_cost=v.write_cost, **more) for v in vectors]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("ties", RULES)
@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("group", GROUPS)
def test_dal_and_its_gradient_are_those_of_the_evaluator_and_of_exact_counts(group, side, ties, dtype):
    vectors = GROUPS[group]
    b = batch(vectors, side, DIRT)
    delays, where, more = given_as(b, dtype)
    value = dal(delays, *where, **more, write_cost=b.write_cost, ties=ties)
    value.sum().backward()
    near = 1e-6 if dtype == torch.float32 else 1e-12
    np.testing.assert_allclose(value.detach(), costed(lagging.dal, vectors), rtol=near)
    np.testing.assert_allclose(delays.grad, b.spread([gradient(v, ties) for v in vectors]), atol=near / 4)
    np.testing.assert_allclose(delays.grad.sum(-1), 1, rtol=near)
    assert not delays.grad[torch.tensor(~b.mask)].any()


def test_the_tables_of_the_paper():
    b = batch(PAPER, fill=math.nan)
    delays, where, more = given_as(b, torch.float32)
    assert dal(delays, *where, **more).tolist() == pytest.approx([v.dal for v in PAPER], rel=1e-6)
    assert al(delays, *where, **more).tolist() == pytest.approx([v.al for v in PAPER], rel=1e-6)
    effective = effective_delays(delays, *where, **more).detach()
    np.testing.assert_allclose(effective, b.spread([v.effective for v in PAPER]), rtol=1e-6)


@pytest.mark.parametrize("side", SIDES)
def test_al_ap_lags_and_effective_delays_are_those_of_the_evaluator(side):
    b = batch(VECTORS, side, DIRT)
    delays, where, more = given_as(b)
    np.testing.assert_allclose(ap(delays, *where, **more).detach(), evaluated(lagging.ap, VECTORS), rtol=1e-12)
    np.testing.assert_allclose(
        al(delays, *where, **more).detach(), evaluated(lagging.al, VECTORS), rtol=1e-12, atol=1e-12
    )
    milliseconds = al(delays, *where, **more, tolerance=1.0).detach()
    np.testing.assert_allclose(milliseconds, evaluated(lagging.al, VECTORS, unit="ms"), rtol=1e-12, atol=1e-12)
    for effective in (False, True):
        got = lags(delays, *where, **more, effective=effective).detach()
        want = b.spread(evaluated(lagging.lags, VECTORS, effective=effective))
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)
    got = effective_delays(delays, *where, **more).detach()
    np.testing.assert_allclose(got, b.spread(evaluated(lagging.effective_delays, VECTORS)), rtol=1e-12, atol=1e-12)


def test_tau_is_where_a_delay_reaches_the_source_less_the_tolerance():
    delays = torch.tensor([3.0, 9.5, 9.5, 10.0], dtype=torch.float64)
    for tolerance, tau in ((0.0, 4), (0.5, 2), (1.0, 2), (7.0, 1)):
        terms = [g - t * 10 / 4 for t, g in enumerate(delays.tolist())][:tau]
        assert al(delays, 10, tolerance=tolerance).item() == pytest.approx(sum(terms) / tau, rel=1e-12)


@pytest.mark.parametrize("side", SIDES)
def test_lags_with_a_write_cost(side):
    b = batch(COSTED, side, DIRT)
    delays, where, more = given_as(b)
    for effective in (False, True):
        got = lags(delays, *where, **more, effective=effective, write_cost=b.write_cost).detach()
        np.testing.assert_allclose(got, b.spread(costed(lagging.lags, COSTED, effective=effective)), rtol=1e-12)
    got = effective_delays(delays, *where, **more, write_cost=b.write_cost).detach()
    np.testing.assert_allclose(got, b.spread(costed(lagging.effective_delays, COSTED)), rtol=1e-12)


@given(st.data())
@settings(max_examples=60)
def test_any_delays_agree_with_exact_fractions(data):
    """Delays that fall, too: expected ones may, and the evaluator takes none."""
    numbers = st.integers(0, 40).map(lambda n: n / 4)
    g = data.draw(st.lists(numbers, min_size=1, max_size=9))
    x = data.draw(st.integers(1, 12))
    cost = data.draw(st.none() | st.sampled_from([0.0, 0.5, 1.25, 3.0]))
    ties = data.draw(st.sampled_from(RULES))
    delays = torch.tensor(g, dtype=torch.float32)
    want = float(oracle.dal(g, x, d=cost))
    assert dal(delays, x, write_cost=cost, ties=ties).item() == pytest.approx(want, rel=2e-6)
    assert al(delays, x).item() == pytest.approx(float(oracle.al(g, x)), rel=2e-6, abs=2e-6)
    assert ap(delays, x).item() == pytest.approx(float(oracle.ap(g, x)), rel=2e-6)


@pytest.mark.parametrize("ties", RULES)
@pytest.mark.parametrize("side", SIDES)
def test_gradcheck(ties, side):
    dice = np.random.default_rng(3)
    lengths = [1, 2, 5, 7]
    mask = np.zeros((4, 9), bool)
    for row, length in zip(mask, lengths, strict=True):
        row[{"right": slice(length), "left": slice(9 - length, 9), "between": slice(1, 2 * length, 2)}[side]] = True
    mask[:, 0] |= side == "right"
    delays = torch.tensor(dice.uniform(0, 9, (4, 9)), requires_grad=True)
    x = torch.tensor([3.5, 8.0, 4.25, 9.0], dtype=torch.float64, requires_grad=True)
    d = torch.tensor([0.3, 0.7, 1.3, 0.9], dtype=torch.float64, requires_grad=True)
    where = {"mask": torch.tensor(mask)}
    assert torch.autograd.gradcheck(lambda g, x: dal(g, x, **where, ties=ties), (delays, x))
    assert torch.autograd.gradcheck(lambda g, d: dal(g, 5, **where, write_cost=d, ties=ties), (delays, d))
    if ties == "last":
        assert torch.autograd.gradcheck(lambda g, x: al(g, x, **where), (delays, x))
        assert torch.autograd.gradcheck(lambda g, x: ap(g, x, **where), (delays, x))
        assert torch.autograd.gradcheck(lambda g, x: lags(g, x, **where), (delays, x))
        assert torch.autograd.gradcheck(lambda g, x: lags(g, x, **where, effective=True), (delays, x))
        assert torch.autograd.gradcheck(lambda g, d: effective_delays(g, 5, **where, write_cost=d), (delays, d))


@pytest.mark.parametrize("vector", TIES + PLAIN, ids=str)
def test_the_gradient_in_the_write_cost_and_in_the_source_length_is_exact(vector):
    n = len(vector.delays)
    counts = [n * share for share in gradient(vector, "last")]
    slope = -sum((c * i for i, c in enumerate(counts)), Fraction(0)) / n
    delays = torch.tensor(vector.delays, dtype=torch.float64)
    d = torch.tensor(float(vector.d), dtype=torch.float64, requires_grad=True)
    if vector.d == Fraction(d.item()):  # otherwise ties are none
        dal(delays, vector.source_length, write_cost=d).backward()
        assert d.grad.item() == pytest.approx(float(slope), rel=1e-12)
    x = torch.tensor(float(vector.source_length), dtype=torch.float64, requires_grad=True)
    dal(delays, x).backward()
    assert x.grad.item() == pytest.approx(float(slope / n), rel=1e-12)


@pytest.mark.parametrize("function", [dal, al, ap, lags, effective_delays])
def test_what_stands_in_the_padding_changes_nothing_and_neither_does_its_side(function):
    seen = []
    for side in SIDES:
        for fill in (0.0, *DIRT):
            b = batch(VECTORS, side, fill)
            delays, where, more = given_as(b, by_mask=side != "right")
            x = where[0].requires_grad_()
            value = function(delays, *where, **more)
            weights = torch.linspace(1, 2, b.target_lengths.max(), dtype=torch.float64)
            if value.dim() == 2:
                assert not value[~torch.tensor(b.mask)].any()
                value = torch.stack([(row[m] * weights[: m.sum()]).sum() for row, m in zip(value, b.mask, strict=True)])
            grads = torch.autograd.grad((value * torch.linspace(1, 2, len(VECTORS))).sum(), (delays, x))
            assert not grads[0][~torch.tensor(b.mask)].any()
            packed = torch.cat([row[m] for row, m in zip(grads[0], b.mask, strict=True)])
            seen.append(torch.cat([value, packed, grads[1]]).detach())
    assert torch.isfinite(seen[0]).all()
    for one in seen[1:]:
        torch.testing.assert_close(one, seen[0], rtol=1e-13, atol=1e-13)


def test_lengths_and_a_mask_of_right_padding_are_the_same():
    b = batch(VECTORS, fill=math.nan)
    for ties in RULES:
        got = []
        for by_mask in (False, True):
            delays, where, more = given_as(b, torch.float32, by_mask)
            value = dal(delays, *where, **more, ties=ties)
            got += [value.detach(), *torch.autograd.grad(value.sum(), delays)]
        torch.testing.assert_close(got[0], got[2], rtol=0, atol=0)
        torch.testing.assert_close(got[1], got[3], rtol=0, atol=0)


@pytest.mark.parametrize("function", [dal, al, ap, lags, effective_delays])
def test_a_sentence_without_tokens_has_no_latency_and_no_gradient(function):
    for where in ({"target_lengths": torch.tensor([2, 0])}, {"mask": torch.tensor([[True, True], [False, False]])}):
        delays = torch.tensor([[1.0, 2.0], [math.nan, math.inf]], requires_grad=True)
        for lost in (0.0, math.nan):
            x = torch.tensor([2.0, lost], requires_grad=True)
            value = function(delays, x, **where)
            assert not value[1].any()
            grads = torch.autograd.grad(value.sum(), (delays, x))
            assert all(torch.isfinite(g).all() for g in grads)
            assert not grads[0][1].any()
            assert grads[1][1] == 0
    assert function(torch.zeros(3, 0), 4).tolist() == (
        [[], [], []] if function in (lags, effective_delays) else [0] * 3
    )


def test_any_leading_dimensions():
    dice = torch.Generator().manual_seed(0)
    delays = torch.rand(3, 4, 2, 6, generator=dice, dtype=torch.float64) * 7
    x, y = torch.tensor([7.0, 5.0, 6.0]), torch.tensor([6, 3, 5])
    got = dal(delays, x[:, None, None], y[:, None, None])
    assert got.shape == (3, 4, 2)
    for b in range(3):
        for h in range(4):
            for k in range(2):
                assert got[b, h, k] == dal(delays[b, h, k, : y[b]], x[b])
    mask = (torch.arange(6) < y[:, None])[:, None, None, :]
    torch.testing.assert_close(dal(delays, x[:, None, None], mask=mask), got, rtol=0, atol=0)
    assert dal(delays[0, 0, 0], 7).shape == ()


def test_numbers_lists_and_arrays_will_do():
    want = torch.tensor([4.0, 1.0])
    rows = [[4, 4, 4, 4, 5], [1, 2, 3, 0, 0]]
    for x in ([5, 6], np.array([5, 6]), torch.tensor([5, 6]), torch.tensor([5.0, 6.0], dtype=torch.float64)):
        got = dal(rows, x, np.array([5, 3]))
        assert got.dtype == torch.float32
        assert torch.equal(got, want)
    assert dal(np.array(rows, np.float64), [5, 6], [5, 3]).dtype == torch.float64


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"target_lengths": [2, 2], "mask": torch.ones(2, 3)}, "not both"),
        ({"mask": torch.ones(2, 4) > 0}, r"mask must have the shape \(..., 3\), but has \(2, 4\)"),
        ({"ties": "middle"}, "ties must be one of last, first, split, but got 'middle'"),
        ({"source_lengths": [1.0, 2.0, 3.0]}, r"source_lengths of shape \(3,\) does not broadcast to \(2,\)"),
        ({"source_lengths": [[1.0], [2.0]]}, r"source_lengths of shape \(2, 1\) does not broadcast"),
        ({"target_lengths": [1, 2, 3]}, r"target_lengths of shape \(3,\) does not broadcast to \(2,\)"),
        ({"write_cost": [1.0, 2.0, 3.0]}, r"write_cost of shape \(3,\) does not broadcast to \(2,\)"),
        ({"delays": 3.0}, "one number"),
    ],
)
def test_arguments_that_make_no_sense(more, said):
    with pytest.raises(UsageError, match=said):
        dal(**{"delays": torch.ones(2, 3), "source_lengths": 3, **more})


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_computed_in_float32(dtype):
    torch.manual_seed(0)
    y = torch.randint(256, 513, (8,))
    delays = (torch.rand(8, 512).cumsum(-1) * 2).to(dtype).requires_grad_()
    want = dal(delays.detach().double(), y, y)
    got = dal(delays, y, y)
    assert got.dtype == torch.float32
    torch.testing.assert_close(got.double(), want, rtol=2e-6, atol=0)
    got.sum().backward()
    assert delays.grad.dtype == dtype
    torch.testing.assert_close(delays.grad.float().sum(-1), torch.ones(8), rtol=0.02, atol=0)


def test_autocast_does_not_reach_inside():
    delays = torch.rand(4, 200).cumsum(-1).requires_grad_()
    want = dal(delays, 100.0)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        got = dal(delays, 100.0)
        others = al(delays, 100.0), ap(delays, 100.0), lags(delays, 100.0, effective=True)
    assert torch.equal(got, want)
    assert all(one.dtype == torch.float32 for one in others)
    assert torch.equal(others[0], al(delays, 100.0))


def test_long_sentences_in_float32_are_as_exact_as_float32_can_be():
    torch.manual_seed(0)
    delays = (torch.rand(16, 1024) * 2).cumsum(-1)
    got, want = dal(delays, 1000.0), dal(delays.double(), 1000.0)
    torch.testing.assert_close(got.double(), want, rtol=5e-6, atol=0)


def test_nothing_real_is_hidden():
    assert dal([1.0, math.nan, 3.0], 3).isnan()
    assert dal([1.0, math.inf, 3.0], 3).isinf()
    assert al([1.0, math.nan, 3.0], 3).isnan()


def test_vmap_and_func_grad():
    b = batch(VECTORS, "left", math.nan)
    delays, _, _ = given_as(b)
    x, mask = torch.tensor(b.source_lengths), torch.tensor(b.mask)
    for ties in RULES:
        one = torch.func.grad(lambda g, x, m, ties=ties: dal(g, x, mask=m, ties=ties))
        got = torch.func.vmap(one)(delays.detach(), x, mask)
        want = torch.autograd.grad(dal(delays, x, mask=mask, ties=ties).sum(), delays)[0]
        torch.testing.assert_close(got, want, rtol=0, atol=0)
    lengths = torch.tensor(batch(VECTORS).target_lengths)
    right = torch.tensor(batch(VECTORS).delays)
    got = torch.func.vmap(dal)(right, x, lengths)
    torch.testing.assert_close(got, dal(right, x, lengths), rtol=0, atol=0)


@pytest.mark.filterwarnings("ignore")  # of torch's own compiler
def test_compiled():
    b = batch(VECTORS, fill=math.nan)
    delays, where, _ = given_as(b, torch.float32)
    compiled = torch.compile(lambda g, x, y: dal(g, x, y).sum(), fullgraph=True)
    got = torch.autograd.grad(compiled(delays, *where), delays)[0]
    torch.testing.assert_close(got, torch.autograd.grad(dal(delays, *where).sum(), delays)[0], rtol=1e-6, atol=1e-7)
