# SPDX-License-Identifier: Apache-2.0
"""The example of the documentation, shortened: the dearer latency is, the sooner the model writes."""

import importlib.util
from pathlib import Path

import torch

EXAMPLE = Path(__file__).parents[2] / "examples" / "train_latency.py"


def test_latency_follows_its_price(capsys):
    spec = importlib.util.spec_from_file_location("train_latency", EXAMPLE)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        free, dear = example.main(300, (0, 0.8))
    finally:
        torch.set_num_threads(threads)
    assert free > 6 > 3 > dear >= 1
    assert capsys.readouterr().out.startswith("λ     words")
