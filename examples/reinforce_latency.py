# SPDX-License-Identifier: Apache-2.0
"""Train when to read by REINFORCE, on hard delays: the language and the model of `train_latency.py`.

A wait is dearest at the beginning of a sentence, as DAL charges it to all tokens that follow. The expected loss guesses
verbs anywhere; a reward of hard delays finds that only the first is worth guessing.

    pip install 'lagging[torch]'
    python examples/reinforce_latency.py
"""

from __future__ import annotations

import copy

import torch
from torch.nn.functional import log_softmax, one_hot
from train_latency import LENGTH, Translator, evaluate, sentences, train

from lagging.losses.torch import sample_alignment
from lagging.losses.torch.rewards import step_rewards

DRAWS = 4


def reinforce(model: Translator, weight: float, steps: int, generator: torch.Generator) -> None:
    """Make the likelihood minus weight·DAL large, in the mean of draws of the delays."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    model.train()
    for _ in range(steps):
        source, target = (part.repeat(DRAWS, 1) for part in sentences(generator))
        keys, queries = model.states(source, target)
        drawn = sample_alignment(model.stops(keys, queries), LENGTH)
        logits = model.logits(keys, queries, one_hot(drawn.delays - 1, LENGTH).float())
        words = log_softmax(logits, -1).gather(-1, target.unsqueeze(-1)).squeeze(-1) / LENGTH
        rewards = words.detach() + weight * step_rewards(drawn.delays, LENGTH)
        future = rewards.flip(-1).cumsum(-1).flip(-1).view(DRAWS, -1, LENGTH)  # an action changes what follows it
        advantage = (future - future.mean(0)).flatten(0, 1)  # compared with the other draws of the sentence
        loss = -(words + advantage * drawn.log_probability).sum(-1).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def main(steps: int = 500, more: int = 120) -> list[tuple[float, float]]:
    """Train by the expected loss, then from there by rewards; print both, and return words and DAL of each."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    model = Translator()
    train(model, 0, steps, generator, "offline")
    results = []
    print("training           words   verbs    DAL")
    for weight in (0.1, 0.4, 0.5):
        expected = copy.deepcopy(model)
        train(expected, weight, steps * 3 // 5, generator)
        results.append(_report(f"expected, λ={weight}", expected, generator))
    reinforce(expected, 0.6, more, generator)
    results.append(_report("REINFORCE, λ=0.6", expected, generator))
    return results


def _report(name: str, model: Translator, generator: torch.Generator) -> tuple[float, float]:
    words, verbs, score = evaluate(model, generator)
    print(f"{name:<17} {words:6.1%} {verbs:7.1%} {score.value:6.2f}", flush=True)
    return words, score.value


if __name__ == "__main__":
    main()
