# SPDX-License-Identifier: Apache-2.0
from collections.abc import Iterator
from pathlib import Path

import pytest

import simuleval_peer as peer


@pytest.fixture(scope="session")
def simuleval_folder() -> Path:
    """The folder in which SimulEval is installed."""
    folder = peer.peers()
    if folder is None:
        pytest.skip("NOT RUN: SimulEval is not installed; `make test` installs it, see CONTRIBUTING.md")
    return folder


@pytest.fixture
def simuleval(simuleval_folder: Path) -> Iterator[Path]:
    """SimulEval can be imported in this process."""
    with peer.importable(simuleval_folder):
        yield simuleval_folder
