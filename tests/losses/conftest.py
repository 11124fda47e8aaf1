# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator

import pytest


@pytest.fixture
def wide() -> Iterator[None]:
    """JAX knows float64 in this test, and in no other."""
    jax = pytest.importorskip("jax", reason="NOT RUN: jax is not installed")
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)
