# SPDX-License-Identifier: Apache-2.0
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the lab is no part of the wheel

from lab.data import Corpus, Pieces, verb_final  # noqa: E402
from lab.experiments import Experiment, Plan, Scale, read_plan  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    return verb_final(400)


@pytest.fixture(scope="session")
def pieces(corpus, tmp_path_factory) -> Pieces:
    return Pieces.train(corpus, tmp_path_factory.mktemp("pieces") / "pieces.model", 130)


@pytest.fixture(scope="session")
def scale() -> Scale:
    return replace(read_plan(ROOT / "lab" / "smoke").scale, width=32, inner=32, warm_up=10, dropout=0.1, watched=10)


@pytest.fixture
def plan(scale) -> Plan:
    """Two experiments that take a second, the second from the first."""
    base = Experiment("base", epochs=2, rate=3e-3, path="wait-k")
    milk = Experiment("milk", start="base", epochs=2, rate=3e-3, path="milk", weight=0.1, target=4.0, control=1e-3)
    return Plan(scale, {"base": base, "milk": milk})
