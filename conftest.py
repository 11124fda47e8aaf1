# SPDX-License-Identifier: Apache-2.0
"""What holds for tests and doctests alike."""

from collections.abc import Iterator

import pytest

from lagging.metrics import registry

collect_ignore = ["src/lagging/agents/simuleval/scorers.py"]
"""Modules that cannot be imported without a peer's package; tests/agents runs them with it."""


@pytest.fixture(autouse=True)
def _registry_as_it_was() -> Iterator[None]:
    """A metric that a test registers is gone after it."""
    before = dict(registry._metrics), dict(registry._aliases)
    yield
    for kept, now in zip(before, (registry._metrics, registry._aliases), strict=True):
        now.clear()
        now.update(kept)
