# SPDX-License-Identifier: Apache-2.0
"""What is kept of a sentence changes nothing: the same logits, the same words, the same delays as computed anew."""

from dataclasses import replace

import pytest
import torch

from lab.agents import READING, Simultaneous
from lab.data import BEGIN, padded, verb_final
from lab.model import Size, Translator
from lab.past import Store
from lagging.agents import run

SIZE = Size(vocabulary=130, width=32, layers=2, heads=4, inner=32, dropout=0.0)
POLICIES = [("wait-k", {"k": 3}), ("wait-k", {"k": 2, "catchup": 0.2}), ("milk", {}), ("offline", {})]


class Anew(Translator):
    """The same network, which keeps nothing."""

    def encode(self, source, finished=None, past=None):
        return super().encode(source, finished)

    def listen(self, target, past=None):
        return super().listen(target)

    def decode(self, heard, states, target, seen=None, alignment=None, past=None):
        return super().decode(heard, states, target, seen, alignment)


class Counting(Translator):
    """The same network, which counts the tokens that it embeds."""

    embedded = 0

    def _embed(self, tokens, places):
        self.embedded += tokens.numel()
        return super()._embed(tokens, places)


def network(kind: type[Translator]) -> Translator:
    """With random weights, which stop now and then and tell the last word from others."""
    torch.manual_seed(5)
    model = kind(SIZE).eval()
    with torch.no_grad():
        model.last += torch.randn(SIZE.width)
        model.norm.weight *= -1  # or it says the last token again and again
        for layer in model.decoder:
            layer.other.out.weight *= 4
        model.stop_query.weight *= 8
        model.stop_bias -= 0.5
    return model


def translated(kind, pieces, policy, options, batch):
    model = network(kind)
    agent = Simultaneous(model, pieces, policy, longest=8, **options)
    sources, references = zip(*verb_final(100, seed=2).parts["test"][:20], strict=True)
    assert len({len(source.split()) for source in sources}) == 3
    made = run(agent, sources, references, settings=replace(READING, spm_model=str(pieces.path), batch=batch))
    return made, model


@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize(("policy", "options"), POLICIES)
def test_an_agent_writes_the_same_words_at_the_same_delays(pieces, policy, options, batch):
    kept, whole = (translated(kind, pieces, policy, options, batch)[0] for kind in (Translator, Anew))
    assert kept.prediction.tolist() == whole.prediction.tolist()
    assert kept.delays.values.tolist() == whole.delays.values.tolist()
    assert kept.delays.lengths.tolist() == whole.delays.lengths.tolist()
    assert kept.delays.lengths.min() > 0
    assert len(set(kept.prediction.tolist())) > 15
    if policy == "milk":
        assert len(set(kept.delays.values.tolist())) > 5, "it reads now and then"


@torch.no_grad()
def test_logits_are_the_same_step_by_step():
    """Sentences of uneven length that come, go and come back; tokens that are decided again when more is seen."""
    model, store, chance = network(Translator), Store(), torch.Generator().manual_seed(1)
    x, y = ([torch.randint(4, 130, (n,), generator=chance).tolist() for n in row] for row in ((9, 3, 14), (7, 5, 9)))
    delays = [[1, 1, 4, 4, 5, 9, 9], [2, 3, 3, 3, 3], [1, 2, 3, 5, 8, 13, 14, 14, 14]]
    batches = ([0, 1], [0, 1, 2], [2, 0], [2], [1, 2], [2, 1, 0], [0, 1, 2])
    wrote, most = [0, 0, 0], 0.0
    for step in range(40):
        batch = batches[step % len(batches)]
        looked = [max(delays[i][wrote[i]] - (step % 3 == 1), delays[i][wrote[i] - 1] if wrote[i] else 1) for i in batch]
        sees = [[*delays[i][: wrote[i]], now] for i, now in zip(batch, looked, strict=True)]
        source = padded([x[i][: row[-1]] for i, row in zip(batch, sees, strict=True)])
        target = padded([[BEGIN, *y[i][: wrote[i]]] for i in batch])
        finished = torch.tensor([row[-1] == len(x[i]) for i, row in zip(batch, sees, strict=True)])
        ends = padded([[*row, *[1] * (target.shape[1] - len(row))] for row in sees]).unsqueeze(-1)
        seen, logits = torch.arange(source.shape[1]) < ends, []
        for past in (None, store.past([f"sentence {i}" for i in batch])):
            states, heard = model.encode(source, finished, past), model.listen(target, past)
            stops = model.stops(heard, states)
            made = model.say(model.decode(heard, states, target, seen, past=past))
            logits.append([torch.cat([made[n, len(r) - 1], stops[n, len(r) - 1, : r[-1]]]) for n, r in enumerate(sees)])
        most = max(most, *(float((a - b).abs().max()) for a, b in zip(*logits, strict=True)))
        if step % 3 != 1:
            wrote = [min(t + (i in batch), len(delays[i]) - 1) for i, t in enumerate(wrote)]
    assert wrote == [6, 4, 8]
    assert most < 1e-5


@pytest.mark.parametrize(("policy", "options"), POLICIES)
def test_no_token_is_computed_twice(pieces, policy, options):
    made, model = translated(Counting, pieces, policy, options, 7)
    read, wrote = made.source_length.sum(), made.delays.lengths.sum()
    assert model.embedded <= read + wrote + len(made.prediction)


def test_what_a_failed_sentence_had_is_given_to_another():
    store = Store()
    first = store.past(["a", "b"])
    store.counts("encode")[first.rows] = 5
    second = store.past(["b", "c"])
    assert second.rows.tolist() == [first.rows[1], first.rows[0]]
    assert store.counts("encode")[second.rows].tolist() == [5, 0]
    assert store.past(["a", "b", "c"]).rows.tolist() == [2, 1, 0]
