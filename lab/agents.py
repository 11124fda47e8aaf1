# SPDX-License-Identifier: Apache-2.0
"""The trained models as agents of `lagging run`: many sentences at once, each with what it has read and written.

    lagging run lab/agents.py:Simultaneous -a model=work/milk.pt -a pieces=work/pieces.model -a policy=milk …

Offline, wait-k and MILk compute only what is new: what the network made of tokens that were read or written before is
kept (`lab.past`). Wait-if-worse and wait-if-diff compute everything anew, since all that was written sees more of the
source at every step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor

from lab.data import BEGIN, END, PAD, UNKNOWN, Pieces, padded
from lab.model import Translator, load
from lab.past import Past, Store
from lagging import policies
from lagging.agents import DONE, Answer, Settings, State, Write
from lagging.agents.criteria import CRITERIA
from lagging.data.ragged import Floats

__all__ = ["READING", "Simultaneous"]

READING = Settings(source_level="spm", joined_by="spm", level="token")
"""How sources are read and translations written: in pieces, whose delays are kept."""


@dataclass(eq=False)
class _Memory:
    """Of a sentence under way: what each written token had seen, and, for wait-if-…, |C|."""

    context: int
    seen: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class _Heard:
    """Of sentences under way: what the network makes of source and target, and |read| and |written| + 1 of each."""

    source_states: Tensor
    target_states: Tensor
    target: Tensor
    lengths: Tensor
    past: Past | None


class Simultaneous:
    """A model, run by a policy. It finishes only when all was read; to want to finish before is to read on.

    Args:
        model, pieces: files, or what is in them.
        policy: "offline", "wait-k", "milk", "wait-if-worse" or "wait-if-diff".
        k, catchup: of wait-k: read k pieces first, then write and read by turns; of `catchup` = 0.1, every tenth write
            is without a read.
        threshold: of milk: stop reading where p is at least that.
        s0, delta: of wait-if-…, see `lagging.agents.criteria`.
        longest: how many pieces it may write more than it has read.
    """

    def __init__(
        self, model: str | Translator, pieces: str | Pieces, policy: str, *, k: int = 5, catchup: float = 0.0,
        threshold: float = 0.5, s0: int = 2, delta: int = 1, longest: int = 20,
    ) -> None:  # fmt: skip
        torch.set_num_threads(1)
        self._model = model if isinstance(model, Translator) else load(Path(model)).eval()
        self._pieces = pieces if isinstance(pieces, Pieces) else Pieces(Path(pieces))
        self._policy, self._threshold, self._store = policy, threshold, Store()
        fixed = {"wait-k": policies.wait_k(k, catchup=catchup or None), "offline": policies.offline()}
        self._schedule = fixed.get(policy)
        self._s0, self._delta, self._longest = s0, delta, longest

    @torch.inference_mode()
    def policies(self, states: Sequence[State]) -> list[Answer]:
        """What to write now in each of these sentences."""
        answers: list[Answer] = [None] * len(states)
        for state in states:
            if state.memory is None:
                state.memory = _Memory(context=self._s0)
        ready = [i for i, state in enumerate(states) if state.finished or not self._must_read(state)]
        if ready:
            chosen, past = [states[i] for i in ready], self._store.past([state.memory for state in states])
            made = self._compare(chosen) if self._policy in CRITERIA else self._ask(chosen, past.of(ready))
            for i, answer in zip(ready, made, strict=True):
                answers[i] = answer
        return answers

    def _must_read(self, state: State) -> bool:
        """Whether the policy reads on, whatever the model says."""
        read = len(state.source)
        if self._schedule is not None:
            return read < self._schedule.due(len(state.target) + 1)
        if self._policy == "milk":
            return read == 0
        context: int = state.memory.context
        return read < context + self._delta

    def _ask(self, states: Sequence[State], past: Past) -> list[Answer]:
        """Offline, wait-k, MILk: write, but MILk only where p says so."""
        heard = self._hear(states, past)
        writes = [True] * len(states)
        if self._policy == "milk":
            stops = self._stops(heard).tolist()
            writes = [state.finished or p >= self._threshold for state, p in zip(states, stops, strict=True)]
        rows = [i for i, write in enumerate(writes) if write]
        answers: list[Answer] = [None] * len(states)
        if rows:
            logits = self._logits(heard, rows, [[*states[i].memory.seen, len(states[i].source)] for i in rows])
            for i, token in zip(rows, logits.argmax(-1).tolist(), strict=True):
                answers[i] = self._write(states[i], token, len(states[i].source))
        return answers

    def _hear(self, states: Sequence[State], past: Past | None = None) -> _Heard:
        """What the network makes of what was read, and of what was written; `past`: what it made of it before."""
        source = padded([self._pieces.numbers(state.source) or [UNKNOWN] for state in states])
        target = padded([[BEGIN, *self._pieces.numbers(state.target)] for state in states])
        finished = torch.tensor([state.finished for state in states])
        lengths = torch.tensor([[max(len(state.source), 1), len(state.target) + 1] for state in states])
        source_states, target_states = self._model.encode(source, finished, past), self._model.listen(target, past)
        return _Heard(source_states, target_states, target, lengths, past)

    def _stops(self, heard: _Heard) -> Tensor:
        """The probability p of stopping where the source is now, and writing the next token."""
        every, here, now = torch.arange(len(heard.target)), heard.lengths[:, 0] - 1, heard.lengths[:, 1] - 1
        states = heard.target_states[every, now], heard.source_states[every, here]
        return torch.sigmoid(self._model.stops(*(one.unsqueeze(1) for one in states)).flatten())

    def _logits(self, heard: _Heard, rows: Sequence[int], sees: Sequence[Sequence[int]]) -> Tensor:
        """Logits of the next token of some sentences; `sees`: how much source each place of the decoder sees."""
        source, prefix, target = heard.source_states[rows], heard.target_states[rows], heard.target[rows]
        ends = padded([[*row, *[1] * (target.shape[1] - len(row))] for row in sees]).clamp(min=1)
        seen = torch.arange(source.shape[1]) < ends.unsqueeze(-1)
        past = None if heard.past is None else heard.past.of(rows)
        states = self._model.decode(prefix, source, target, seen, past=past)
        logits = self._model.say(states[torch.arange(len(rows)), heard.lengths[rows, 1] - 1])
        logits[:, [PAD, BEGIN, UNKNOWN]] = -torch.inf
        logits[heard.lengths[rows, 1] == 1, END] = -torch.inf  # something has to be written
        return logits

    def _write(self, state: State, token: int, seen: int) -> Answer:
        if token == END or len(state.target) >= len(state.source) + self._longest:
            return DONE if state.finished and seen == len(state.source) else None
        state.memory.seen.append(seen)
        return Write([self._pieces.piece(token)])

    def _compare(self, states: Sequence[State]) -> list[Answer]:
        """Wait-if-worse and wait-if-diff: what C says, and what C ∪ C′ says, of all sentences at once."""
        criterion = CRITERIA[self._policy]
        answers: list[Answer] = [None] * len(states)
        left = list(range(len(states)))
        while left:
            chosen = [states[i] for i in left]
            contexts = [min(s.memory.context, len(s.source)) for s in chosen]
            ahead = [min(c + self._delta, len(s.source)) for c, s in zip(contexts, chosen, strict=True)]
            heard = self._hear(chosen)
            now, more = (self._given(heard, chosen, sizes) for sizes in (contexts, ahead))
            again = []
            for at, i in enumerate(left):
                state = states[i]
                if contexts[at] == len(state.source) or not criterion(now[at], more[at]):
                    answers[i] = self._write(state, int(now[at].argmax()), contexts[at])
                    if answers[i] is not None or contexts[at] == len(state.source):
                        continue
                state.memory.context = ahead[at]
                if state.finished or ahead[at] + self._delta <= len(state.source):
                    again.append(i)
            left = again
        return answers

    def _given(self, heard: _Heard, states: Sequence[State], sizes: Sequence[int]) -> list[Floats]:
        """Log-probabilities of the next token, given so much of the source, for all that was written."""
        sees = [[size] * (len(state.target) + 1) for state, size in zip(states, sizes, strict=True)]
        return list(self._logits(heard, range(len(states)), sees).double().log_softmax(-1).numpy())
