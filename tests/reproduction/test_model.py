# SPDX-License-Identifier: Apache-2.0
"""What is trained is what is run: the same network, the same masks, the same numbers."""

from dataclasses import replace
from fractions import Fraction

import pytest
import torch

import lagging
from lab.agents import READING, Simultaneous
from lab.data import BEGIN, END, padded, verb_final
from lab.experiments import Experiment, Plan
from lab.model import Size, Translator
from lab.training import Training, expected
from lagging.agents import run
from lagging.agents.criteria import CRITERIA, Greedy
from lagging.losses.torch import expected_alignment, infinite_lookback, wait_k_mask

SIZE = Size(vocabulary=40, width=32, layers=2, heads=4, inner=32, dropout=0.0)
YES = torch.ones(1, dtype=torch.bool)


@pytest.fixture
def model() -> Translator:
    torch.manual_seed(3)
    return Translator(SIZE).eval()


@torch.no_grad()
def test_what_was_made_of_a_word_does_not_change_when_more_is_read(model):
    words = torch.tensor([[5, 6, 7, 8, 9, 10]])
    whole = model.encode(words, YES)
    for read in range(1, 6):
        part = model.encode(words[:, :read], ~YES)
        assert torch.allclose(part, whole[:, :read], atol=1e-6)


@torch.no_grad()
def test_the_end_of_the_source_is_heard_with_its_last_word_alone(model):
    model.last += torch.arange(32) / 8
    words = torch.tensor([[5, 6, 7, 8]])
    open_, closed = model.encode(words, ~YES), model.encode(words, YES)
    assert torch.allclose(open_[:, :3], closed[:, :3])
    assert not torch.allclose(open_[:, 3], closed[:, 3])


@torch.no_grad()
def test_padding_changes_nothing(model):
    source, target = padded([[5, 6, 7], [8, 9, 10, 11, 12, 13]]), padded([[BEGIN, 5], [BEGIN, 6, 7, 8, 9]])
    finished = torch.ones(2, dtype=torch.bool)
    seen = (source != 0).unsqueeze(1)
    both = model.decode(model.listen(target), model.encode(source, finished), target, seen)
    short = model.encode(source[:1, :3], YES)
    alone = model.decode(model.listen(target[:1, :2]), short, target[:1, :2], seen[:1, :, :3])
    assert torch.allclose(both[:1, :2], alone, atol=1e-5)


@torch.no_grad()
def test_a_certain_alignment_sees_what_a_mask_lets_it_see(model):
    """Where p is 0 or 1, expectation over stops is no expectation: MILk's attention is that of a hard policy."""
    source, target = torch.tensor([[5, 6, 7, 8, 9]]), torch.tensor([[BEGIN, 5, 6, 7]])
    stops = torch.tensor([1, 3, 3, 4])  # g(t) − 1
    p = (torch.arange(5) >= stops.unsqueeze(1)).double().unsqueeze(0)
    alignment = expected_alignment(p, torch.tensor([5])).float()
    assert alignment.argmax(-1).tolist() == [stops.tolist()]
    states, heard = model.encode(source, YES), model.listen(target)
    seen = (torch.arange(5) <= stops.unsqueeze(1)).unsqueeze(0)
    soft, hard = (model.decode(heard, states, target, **how) for how in ({"alignment": alignment}, {"seen": seen}))
    assert torch.allclose(soft, hard, atol=1e-5)
    assert infinite_lookback(alignment, torch.zeros_like(alignment))[0, 0].tolist() == [0.5, 0.5, 0, 0, 0]


@pytest.fixture(scope="module")
def trained(plan_of_module, pieces, tmp_path_factory):
    folder, corpus = tmp_path_factory.mktemp("trained"), verb_final(1500)
    Training(plan_of_module, "base", corpus, pieces, folder).run()
    milk = Training(plan_of_module, "milk", corpus, pieces, folder)
    milk.run()
    return milk


@pytest.fixture(scope="module")
def plan_of_module(scale):
    base = Experiment("base", epochs=5, rate=5e-3, path="wait-k")
    milk = Experiment("milk", start="base", epochs=1, rate=3e-3, path="milk", weight=0.05)
    return Plan(replace(scale, width=48, dropout=0.0, tokens=300), {"base": base, "milk": milk})


def translated(trained, corpus, policy, batch=7, **options):
    sources, references = zip(*corpus.parts["test"][:20], strict=True)
    agent = Simultaneous(trained.model.eval(), trained.pieces, policy, **options)
    return run(agent, sources, references, settings=replace(READING, spm_model=str(trained.pieces.path), batch=batch))


def rows(made, trained, corpus):
    """Of each sentence: the numbers of its source, those of what was written, and its delays."""
    for i, (source, _) in enumerate(corpus.parts["test"][:20]):
        (read, wrote) = trained.pieces.pairs([(source, made.prediction[i])])[0]
        assert len(wrote) - 1 == len(made.delays[i])
        yield read, wrote, made.delays[i].astype(int)


@torch.no_grad()
@pytest.mark.parametrize("k", [1, 3, 50])
def test_an_agent_that_waits_writes_what_training_would(trained, corpus, k):
    """One pass with the mask of training gives, at every place, the token that the agent wrote there by itself."""
    made = translated(trained, corpus, "wait-k", k=k)
    for read, wrote, delays in rows(made, trained, corpus):
        assert delays.tolist() == [min(k + t, len(read)) for t in range(len(delays))]
        source, said = torch.tensor([read]), torch.tensor([[BEGIN, *wrote[:-1]]])
        states = trained.model.encode(source, YES)
        mask = wait_k_mask(k, said.shape[1], len(read)).unsqueeze(0)
        logits = trained.model.say(trained.model.decode(trained.model.listen(said), states, said, mask))
        logits[..., [0, 1, 3]] = -torch.inf
        assert logits[0, : len(delays)].argmax(-1).tolist() == wrote[:-1]


@torch.no_grad()
def test_milk_stops_where_p_says_so_and_nowhere_else(trained, corpus):
    made = translated(trained, corpus, "milk")
    for read, wrote, delays in rows(made, trained, corpus):
        states = trained.model.encode(torch.tensor([read]), YES)
        p = torch.sigmoid(trained.model.stops(trained.model.listen(torch.tensor([[BEGIN, *wrote[:-1]]])), states))[0]
        at = 1
        for t, g in enumerate(delays.tolist()):
            assert all(p[t, j - 1] < 0.5 for j in range(at, g)), "it read on where p was below a half"
            assert g == len(read) or p[t, g - 1] >= 0.5, "it wrote where p was not, or all was read"
            at = g


def test_the_offline_policy_reads_all_and_a_batch_changes_nothing(trained, corpus):
    made = translated(trained, corpus, "offline")
    assert all((row == x).all() for row, x in zip(made.delays, made.source_length, strict=True))
    one, other = (translated(trained, corpus, "milk", batch) for batch in (1, 20))
    assert one.prediction.tolist() == other.prediction.tolist()
    assert one.delays.values.tolist() == other.delays.values.tolist()


@pytest.mark.parametrize("policy", ["wait-if-worse", "wait-if-diff"])
def test_greedy_decoding_looks_ahead_before_it_writes(trained, corpus, policy):
    made = translated(trained, corpus, policy, s0=2, delta=1)
    for row, x in zip(made.delays, made.source_length, strict=True):
        assert min(row) >= min(3, x)
        assert max(row) <= x
    longer = translated(trained, corpus, policy, s0=6, delta=2)
    assert lagging.score(longer, ["DAL"])["DAL"].value > lagging.score(made, ["DAL"])["DAL"].value


@torch.no_grad()
def test_the_expected_latency_is_the_mean_of_what_each_sentence_gives_by_itself(trained, corpus):
    """By the recurrences, in fractions, of what is written: the end of a sentence has no latency."""
    pairs = trained.pieces.pairs(corpus.parts["test"][:9])
    both = expected(trained.model, pairs, 300)
    assert both["AL"] < both["DAL"]
    soft, hard = [], []
    for source, target in pairs:
        states = trained.model.encode(torch.tensor([source]), YES)
        heard = trained.model.listen(torch.tensor([[BEGIN, *target[:-1]]]))
        p = torch.sigmoid(trained.model.stops(heard, states))[0].double().tolist()
        x, y = len(source), len(target) - 1
        soft.append(_dal(_delays(p, x, y), x, y))
        hard.append(_dal(_delays([[float(stop >= 0.5) for stop in row] for row in p], x, y), x, y))
    assert both["DAL"] == pytest.approx(sum(soft) / len(soft), rel=1e-4)
    assert both["hard DAL"] == pytest.approx(sum(hard) / len(hard), rel=1e-6)


def _delays(p: list[list[float]], x: int, y: int) -> list[Fraction]:
    """Expected delays, by the recurrence of monotonic attention."""
    before, delays = [Fraction(1), *[Fraction(0)] * (x - 1)], []
    for t in range(y):
        stop = [Fraction(p[t][j]) if j < x - 1 else Fraction(1) for j in range(x)]
        carry, now = Fraction(0), []
        for j in range(x):
            carry += before[j]
            now.append(carry * stop[j])
            carry -= now[j]
        before = now
        delays.append(sum((j + 1) * a for j, a in enumerate(now)))
    return delays


def _dal(delays: list[Fraction], x: int, y: int) -> float:
    """DAL, by the paper's recurrence."""
    d, late, total = Fraction(x, y), None, Fraction(0)
    for t, g in enumerate(delays):
        late = g if late is None else max(g, late + d)
        total += late - t * d
    return float(total / y)


class Distribution:
    """The network as `lagging.agents.criteria.Greedy` asks for it: one sentence at a time, and no batch."""

    def __init__(self, trained: Training) -> None:
        self.model, self.pieces = trained.model.eval(), trained.pieces
        self.vocabulary = [trained.pieces.piece(number) for number in range(len(trained.pieces))]

    @torch.no_grad()
    def __call__(self, source, target, finished):
        read, wrote = (torch.tensor([self.pieces.numbers(some)]) for some in (source, ["<s>", *target]))
        states = self.model.encode(read, torch.tensor([finished]))
        seen = torch.ones(1, wrote.shape[1], read.shape[1], dtype=torch.bool)
        logits = self.model.say(self.model.decode(self.model.listen(wrote), states, wrote, seen))[0, -1]
        logits[[0, 1, 3]] = -torch.inf
        if not target:
            logits[END] = -torch.inf
        return logits.double().log_softmax(-1).numpy()


@pytest.mark.parametrize(("policy", "s0", "delta"), [("wait-if-worse", 1, 1), ("wait-if-diff", 2, 2)])
def test_the_agent_decodes_as_the_library_does(trained, corpus, monkeypatch, policy, s0, delta):
    criterion = CRITERIA[policy]  # rounded: where more source changes nothing, the last bit would decide
    monkeypatch.setitem(CRITERIA, policy, lambda now, more: criterion(now.round(3), more.round(3)))
    many = translated(trained, corpus, policy, s0=s0, delta=delta)
    sources, references = zip(*corpus.parts["test"][:20], strict=True)
    settings = replace(READING, spm_model=str(trained.pieces.path))
    one = run(Greedy(Distribution(trained), policy, s0=s0, delta=delta), sources, references, settings=settings)
    for i, g in enumerate(one.delays):  # the library may end before the source does; the agent then reads on
        assert many.delays[i][: len(g)].tolist() == g.tolist()
        assert many.prediction[i].startswith(one.prediction[i])
    assert sum(map(len, one.delays)) > 100
