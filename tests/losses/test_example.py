# SPDX-License-Identifier: Apache-2.0
"""The example of the documentation, shortened: the dearer latency is, the sooner the model writes."""

import importlib
import importlib.util
from pathlib import Path

import pytest
import torch

from lagging.losses.torch.interleaving import delays_from_tokens
from lagging.policies import wait_k

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


@pytest.mark.slow
def test_rewards_give_more_words_than_expected_delays_at_the_same_latency(monkeypatch, capsys):
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    example = importlib.import_module("reinforce")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        results = example.main()
    finally:
        torch.set_num_threads(threads)
    words, latency = results[-1]
    assert latency < 3
    assert words > example.at_the_same(results)
    assert "interpolated" in capsys.readouterr().out


def test_a_language_model_sees_the_delays_of_its_schedule(monkeypatch):
    monkeypatch.syspath_prepend(str(EXAMPLE.parent))
    example = importlib.import_module("interleaved_lm")
    generator = torch.Generator().manual_seed(0)
    for k in example.KS:
        ids, labels = example.examples(k, generator)
        made = delays_from_tokens(ids[:, 1:], read=example.READ, write=example.WRITE, ignore=[example.END])
        assert made.delays[0].tolist() == wait_k(k).delays(example.LENGTH, example.LENGTH).tolist()
        assert (labels >= 0).sum(-1).tolist() == [2 * example.LENGTH + (ids[0] == example.WRITE).sum() + 1] * len(ids)
        with torch.no_grad():
            read = example.translate(example.LanguageModel().eval(), ids[:2, 2 : 2 + example.LENGTH] % 20, k)
        assert read.shape == (2, example.LONGEST), "an untrained model ends, too"
