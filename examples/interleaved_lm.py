# SPDX-License-Identifier: Apache-2.0
"""Teach a small causal language model when to read: source and target in one sequence, by a schedule of wait-k.

The language is that of `train_latency.py`. The first token of a sequence says which k is wanted, so that one model
translates at several latencies. It decides itself, after every token, whether to read or to write.

    pip install 'lagging[torch]'
    python examples/interleaved_lm.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.nn.utils.rnn import pad_sequence
from train_latency import BATCH, LENGTH, WORDS, sentences

from lagging.losses.torch import dal
from lagging.losses.torch.interleaving import delays_from_tokens, interleave
from lagging.policies import wait_k

READ, WRITE, PAD, END, FIRST_K = range(WORDS, WORDS + 5)
KS, SIZE, LONGEST = (1, 3), 64, 4 * LENGTH + 4


class LanguageModel(nn.Module):
    """A causal Transformer of two layers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.place = nn.Embedding(FIRST_K + len(KS), SIZE), nn.Embedding(LONGEST, SIZE)
        layer = nn.TransformerEncoderLayer(SIZE, 4, 2 * SIZE, 0.0, batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.write = nn.Linear(SIZE, FIRST_K)

    def forward(self, ids: Tensor) -> Tensor:
        """Logits of the token that follows each."""
        size = ids.shape[1]
        mask = nn.Transformer.generate_square_subsequent_mask(size)
        made: Tensor = self.write(self.layers(self.embed(ids) + self.place.weight[:size], mask, is_causal=True))
        return made


def examples(k: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences of wait-k, and the labels of what the model writes itself."""
    delays, ids, labels = wait_k(k).delays(LENGTH, LENGTH), [], []
    for source, target in zip(*(part.tolist() for part in sentences(generator)), strict=True):
        made = interleave(source, target, delays, read=READ, write=WRITE, every=True)
        ids.append(torch.cat([torch.tensor([FIRST_K + KS.index(k)]), made.ids, torch.tensor([END])]))
        own = torch.cat([torch.tensor([False]), made.loss_mask, torch.tensor([True])])
        labels.append(torch.where(own, ids[-1], -100))
    return pad_sequence(ids, True, PAD), pad_sequence(labels, True, -100)


def translate(model: LanguageModel, source: Tensor, k: int) -> Tensor:
    """Let the model read and write, and return the sequences."""
    ids = torch.full((len(source), 1), FIRST_K + KS.index(k))
    read = torch.zeros(len(source), dtype=torch.int64)
    for _ in range(LONGEST - 1):
        logits = model(ids)[:, -1]
        logits[read == LENGTH, READ] = -torch.inf
        told = ids[:, -1] == READ  # then the next source token comes, whatever the model would say
        following = source.gather(1, read.clamp(max=LENGTH - 1)[:, None]).squeeze(1)
        ended = (ids[:, -1] == END) | (ids[:, -1] == PAD)
        token = torch.where(told, following, torch.where(ended, PAD, logits.argmax(-1)))
        read = read + told
        ids = torch.cat([ids, token[:, None]], 1)
    return ids


def main(steps: int = 600) -> list[tuple[float, float]]:
    """Train, translate at each k, print what came of it, and return words and DAL."""
    torch.manual_seed(1)
    generator, model = torch.Generator().manual_seed(2), LanguageModel()
    optimizer = torch.optim.Adam(model.parameters(), 2e-3)
    for step in range(steps):
        ids, labels = examples(KS[step % len(KS)], generator)
        loss = cross_entropy(model(ids[:, :-1]).flatten(0, 1), labels[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    print("wanted   words    DAL")
    results = []
    model.eval()
    for k in KS:
        source, target = sentences(generator)
        with torch.no_grad():
            ids = translate(model, source, k)
        made = delays_from_tokens(ids[:, 1:], read=READ, write=WRITE, ignore=[END, PAD])
        latency = dal(made.delays, LENGTH, made.target_lengths).mean().item()
        pairs = zip(ids.tolist(), target.tolist(), strict=True)
        right = sum(sum(a == b for a, b in zip(_words(row), want, strict=False)) for row, want in pairs)
        words = right / (BATCH * LENGTH)
        print(f"wait-{k} {words:8.1%} {latency:6.2f}", flush=True)
        results.append((words, latency))
    return results


def _words(ids: list[int]) -> list[int]:
    """The target tokens of a sequence."""
    out, writing = [], False
    for token in ids:
        writing = token == WRITE or (writing and token != READ)
        if writing and token < WORDS:
            out.append(token)
    return out


if __name__ == "__main__":
    main()
