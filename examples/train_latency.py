# SPDX-License-Identifier: Apache-2.0
"""Train a translator to be fast: likelihood + λ·DAL, on a small language whose verbs come last.

A clause is `subject object adverb verb` in the source, and `subject verb object adverb` in the target: a model
that wants to be sure of the verb must wait for it. The larger λ is, the sooner the model writes; at last it guesses.

    pip install 'lagging[torch]'
    python examples/train_latency.py
"""

from __future__ import annotations

import copy

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, one_hot, pad

import lagging
from lagging.losses.torch import dal, expected_alignment, expected_delays, hard_alignment, infinite_lookback

WORDS, SIZE, BATCH, CLAUSES, NOISE = 20, 64, 64, 3, 3.0
LENGTH = 4 * CLAUSES


def sentences(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A batch of sources, and their translations."""
    source = torch.randint(1, WORDS, (BATCH, CLAUSES, 4), generator=generator)
    return source.flatten(1), source[:, :, [0, 3, 1, 2]].flatten(1)


class Translator(nn.Module):
    """MILk in small: it stops reading with probability p, and attends to all that it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(WORDS, SIZE), nn.Embedding(LENGTH, SIZE)
        self.encoder, self.decoder = (nn.GRU(SIZE, SIZE, batch_first=True) for _ in range(2))
        self.attend, self.stop = nn.Linear(SIZE, SIZE), nn.Linear(SIZE, SIZE)
        self.write = nn.Linear(2 * SIZE, WORDS)

    def forward(self, source: Tensor, target: Tensor, how: str) -> tuple[Tensor, Tensor]:
        """Logits and alignment: `offline`, `soft` (expected, for training) or `hard` (as when it translates)."""
        keys, queries = self.states(source, target)
        p = self.stops(keys, queries)
        if how == "hard":
            alignment = one_hot(hard_alignment(p, LENGTH) - 1, LENGTH).float()
        else:
            alignment = expected_alignment(p * (how == "soft"), LENGTH)
        return self.logits(keys, queries, alignment), alignment

    def states(self, source: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """What is made of the source, and of the target before each token."""
        keys, _ = self.encoder(self.embed(source) + self.place.weight)
        queries, _ = self.decoder(self.embed(pad(target, (1, -1))) + self.place.weight)
        return keys, queries

    def stops(self, keys: Tensor, queries: Tensor) -> Tensor:
        """The probability p to stop reading."""
        stop = self.stop(queries) @ keys.mT / SIZE**0.5
        # noise makes half-hearted stops costly, so that p becomes 0 or 1 (Arivazhagan et al. 2019)
        return torch.sigmoid(stop - 1 + NOISE * torch.randn_like(stop) * self.training)

    def logits(self, keys: Tensor, queries: Tensor, alignment: Tensor) -> Tensor:
        """Of each target token, given what was read before it."""
        context = infinite_lookback(alignment, self.attend(queries) @ keys.mT / SIZE**0.5, LENGTH) @ keys
        written: Tensor = self.write(torch.cat([context, queries.expand_as(context)], -1))
        return written


def train(model: Translator, weight: float, steps: int, generator: torch.Generator, how: str = "soft") -> None:
    """Make likelihood + weight·DAL small."""
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    model.train()
    for _ in range(steps):
        source, target = sentences(generator)
        logits, alignment = model(source, target, how)
        latency = dal(expected_delays(alignment), LENGTH, LENGTH).mean()
        loss = cross_entropy(logits.transpose(1, 2), target) + weight * latency
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()


def evaluate(model: Translator, generator: torch.Generator) -> tuple[float, float, lagging.Score]:
    """Accuracy of all words and of verbs, and the DAL that an evaluation of its log would give."""
    model.eval()
    source, target = sentences(generator)
    with torch.no_grad():
        logits, alignment = model(source, target, "hard")
    right = (logits.argmax(-1) == target).double()
    run = lagging.Run.from_delays(expected_delays(alignment).tolist(), source_length=[LENGTH] * BATCH)
    return right.mean().item(), right[:, 1::4].mean().item(), lagging.score(run, ["DAL"])["DAL"]


def main(steps: int = 500, weights: tuple[float, ...] = (0, 0.1, 0.4, 0.8)) -> list[float]:
    """Train an offline model, then from there one for each λ; print what they do, and return their DAL."""
    torch.manual_seed(1)
    generator = torch.Generator().manual_seed(2)
    offline = Translator()
    train(offline, 0, steps, generator, "offline")
    print("λ     words   verbs    DAL")
    latencies = []
    for weight in weights:
        model = copy.deepcopy(offline)
        train(model, weight, steps * 3 // 5, generator)
        words, verbs, score = evaluate(model, generator)
        print(f"{weight:<4} {words:6.1%} {verbs:7.1%} {score.value:6.2f}")
        latencies.append(score.value)
    return latencies


if __name__ == "__main__":
    main()
