# SPDX-License-Identifier: Apache-2.0
"""What holds for tests and doctests alike."""

from collections.abc import Iterator

import pytest

from lagging.metrics import registry

collect_ignore = ["src/lagging/agents/simuleval/scorers.py", "src/lagging/losses/torch/triton_kernels.py"]
"""Modules that need a package of a peer, or Triton, to be imported; tests/agents and tests/losses run them with it."""


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """A metric that a test registers is gone after it."""
    before = dict(registry._metrics), dict(registry._aliases)
    yield
    for kept, now in zip(before, (registry._metrics, registry._aliases), strict=True):
        now.clear()
        now.update(kept)
