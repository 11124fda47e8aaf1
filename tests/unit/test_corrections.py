# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from lagging.stats import CORRECTIONS, benjamini_hochberg, holm

ps = st.lists(st.floats(0, 1) | st.sampled_from([0.0, 0.01, 0.05, 1.0]), min_size=1, max_size=12)


@given(ps)
def test_benjamini_hochberg_is_that_of_scipy(p) -> None:
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), rtol=1e-12)


@given(ps, st.floats(0.001, 0.2))
def test_holm_rejects_what_its_steps_reject(p, level) -> None:
    """The procedure as it was published: go on while the smallest that is left is small enough."""
    rejected, left = set(), sorted(range(len(p)), key=p.__getitem__)
    while left and p[left[0]] * len(left) <= level:
        rejected.add(left.pop(0))
    assert {at for at, one in enumerate(holm(p)) if one <= level} == rejected


@given(ps)
def test_adjusting_keeps_the_order_and_makes_nothing_smaller(p) -> None:
    for name, correct in CORRECTIONS.items():
        found = correct(p)
        assert (found >= np.array(p) * (1 - 1e-15)).all()
        assert (found <= 1).all()
        order = np.argsort(p, kind="stable")
        assert (np.diff(found[order]) >= 0).all(), name
        np.testing.assert_array_equal(correct(p[::-1]), found[::-1])


def test_a_test_that_was_not_made_does_not_count() -> None:
    np.testing.assert_array_equal(holm([0.02, math.nan, 0.5]), [0.04, math.nan, 0.5])
    np.testing.assert_array_equal(benjamini_hochberg([math.nan]), [math.nan])
    assert holm([]).tolist() == []
    with pytest.raises(ValueError, match="between 0 and 1"):
        holm([1.5])
