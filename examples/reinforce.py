# SPDX-License-Identifier: Apache-2.0
"""Train when to read by rewards of hard delays (REINFORCE), and compare with training on expected delays.

The language is that of `train_latency.py`. All models begin as the same offline model. Some are trained on DAL of their
expected delays, with a fixed λ. Another one draws where it stops, eight times for each sentence, and is rewarded for
words and for a low DAL, with a λ that is adjusted to a wanted latency. Then all translate with p ≥ ½. As the lag of DAL
is a running maximum, whoever waits early pays for it to the end: rewards teach to guess the first verbs and to wait for
the last one.

    pip install 'lagging[torch]'
    python examples/reinforce.py
"""

from __future__ import annotations

import copy

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot
from train_latency import LENGTH, Translator, evaluate, sentences, train

from lagging.losses.torch import LatencyController, sample_alignment
from lagging.losses.torch.rewards import latency_reward, step_rewards

DRAWS, WEIGHTS, TARGET = 8, (0.4, 0.5), 1.9


def reinforce(model: Translator, target: float, steps: int, generator: torch.Generator) -> None:
    """Make words probable where the model stopped, and stops probable that were worth it."""
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    controller = LatencyController(target, weight=0.1, rate=0.01)
    model.eval()  # decisions are drawn: there is no need of noise
    for _ in range(steps):
        source, wanted = sentences(generator)
        keys, queries = model.states(source, wanted)
        p = model.stops(keys, queries)
        drawn = sample_alignment(p.expand(DRAWS, *p.shape), LENGTH, generator)
        alignment = one_hot(drawn.delays - 1, LENGTH).float()
        logits = model.logits(keys, queries, alignment)
        likelihood = -cross_entropy(logits.movedim(-1, 1), wanted.expand(DRAWS, *wanted.shape), reduction="none")
        reward = likelihood.detach() + controller.weight * LENGTH * step_rewards(drawn.delays, LENGTH)
        credit = advantage(reward)
        loss = -likelihood.mean() - (credit * drawn.log_probability).mean()
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        controller.update(-latency_reward(drawn.delays, LENGTH).mean())


def advantage(reward: Tensor) -> Tensor:
    """What is earned from each token on, compared with the other draws of the sentence."""
    earned = reward.flip(-1).cumsum(-1).flip(-1)
    return earned - earned.mean(0)


def main(steps: int = 500) -> list[tuple[float, float]]:
    """Train all, translate, print what came of it, and return words and DAL of each, rewards last."""
    torch.manual_seed(1)
    offline = Translator()
    train(offline, 0, steps, torch.Generator().manual_seed(2), "offline")
    print("trained on                words   verbs    DAL")
    results = []
    for weight in (*WEIGHTS, None):
        model = copy.deepcopy(offline)
        torch.manual_seed(0)
        if weight is None:
            reinforce(model, TARGET, steps, torch.Generator().manual_seed(5))
        else:
            train(model, weight, steps * 3 // 5, torch.Generator().manual_seed(5))
        words, verbs, score = evaluate(model, torch.Generator().manual_seed(3))
        name = "rewards" if weight is None else f"expected delays, λ={weight}"
        print(f"{name:<23} {words:7.1%} {verbs:7.1%} {score.value:6.2f}", flush=True)
        results.append((words, score.value))
    print(f"expected delays at the same DAL, interpolated: {at_the_same(results):.1%}")
    return results


def at_the_same(results: list[tuple[float, float]]) -> float:
    """The words that training on expected delays gives at the DAL of rewards, on the line between its points."""
    words, latencies = zip(*sorted(results[:-1], key=lambda point: point[1]), strict=True)
    return float(np.interp(results[-1][1], latencies, words))


if __name__ == "__main__":
    main()
