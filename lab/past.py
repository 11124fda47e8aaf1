# SPDX-License-Identifier: Apache-2.0
"""Which places of sentences a network computes: all at once, as in training, or those that are new, in translating.

What was made at a place does not change when more is read or written. So a network that goes on with a sentence
computes the places that are new, and its attention joins their keys and values to those of the places before. The new
places of all sentences, however many each has, are a batch of sequences of one place.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn.functional import pad

__all__ = ["All", "New", "Past", "Store"]


@dataclass(frozen=True)
class All:
    """All places of sentences, computed at once.

    Attributes:
        count: how many, T.
    """

    count: int

    @property
    def places(self) -> Tensor:
        """Which these are, (T,)."""
        return torch.arange(self.count)

    @property
    def before(self) -> Tensor:
        """Which places may look where: at themselves and before, (1, T, T). What follows padding is never used."""
        return torch.ones(self.count, self.count, dtype=torch.bool).tril().unsqueeze(0)

    def of(self, x: Tensor) -> Tensor:
        """What x, (B, T, …), has at these places."""
        return x

    def join(self, maker: Hashable, made: Tensor) -> Tensor:
        """What the maker made at these places, with what it made before."""
        return made

    def whole(self, states: Tensor) -> Tensor:
        """States of all places, (B, T, width), from those of these places."""
        return states

    def done(self) -> None:
        """These places have been computed."""


@dataclass(frozen=True)
class New:
    """The M places of some sentences that are new to a stage of the network.

    Attributes:
        past, stage: what was made of the sentences, and which stage it is.
        which: the sentence of each new place, (M,).
        places: where in the sentence it is, (M, 1).
        lengths: how many places each sentence now has, (B,).
        wanted: the rows whose places are joined: of each new place that of its sentence, (M,).
        count: how many places are joined.
    """

    past: Past
    stage: str
    which: Tensor
    places: Tensor
    lengths: Tensor
    wanted: Tensor
    count: int

    @property
    def before(self) -> Tensor:
        """Which places may look where: at themselves and before, (M, 1, count)."""
        return (torch.arange(self.count) <= self.places).unsqueeze(1)

    def of(self, x: Tensor) -> Tensor:
        """What x, (B, T, …), has at these places: (M, 1, …)."""
        return x[self.which, self.places.squeeze(1)].unsqueeze(1)

    def join(self, maker: Hashable, made: Tensor) -> Tensor:
        """What the maker made at these places, (M, 1, width), with what it made before: (wanted, count, width)."""
        self.past.store.put(maker, self.past.rows[self.which], self.places.squeeze(1), made.squeeze(1))
        return self.past.store.get(maker, self.wanted, self.count)

    def whole(self, states: Tensor) -> Tensor:
        """States of all places, (B, T, width), from those of these places, which are then computed."""
        every = replace(self, wanted=self.past.rows).join(self.stage, states)
        self.done()
        return every

    def done(self) -> None:
        """These places have been computed, and are not new the next time."""
        self.past.store.counts(self.stage)[self.past.rows] = self.lengths


@dataclass(frozen=True)
class Past:
    """What a network has made of some sentences.

    Attributes:
        store: where that is.
        rows: the row of each sentence there, (B,).
    """

    store: Store
    rows: Tensor

    def of(self, some: Sequence[int]) -> Past:
        """Of some of these sentences."""
        return Past(self.store, self.rows[some])

    def new(self, stage: str, lengths: Tensor, again: int = 0) -> New:
        """The places that a stage has not computed, of sentences that have so many; and so many last ones again."""
        count = int(lengths.max())
        places, first = torch.arange(count), torch.minimum(self.store.counts(stage)[self.rows], lengths - again)
        new = (places >= first.unsqueeze(1)) & (places < lengths.unsqueeze(1))
        which, at = new.nonzero(as_tuple=True)
        return New(self, stage, which, at.unsqueeze(1), lengths, self.rows[which], count)


class Store:
    """Keys, values and states of the sentences under way, a row for each.

    A row is kept as long as its sentence is asked for. What was lost is computed again: then all its places are new.
    """

    def __init__(self) -> None:
        self._rows: dict[Hashable, int] = {}
        self._counts: dict[str, Tensor] = {}
        self._made: dict[Hashable, Tensor] = {}

    def past(self, sentences: Sequence[Hashable]) -> Past:
        """What was made of these sentences. A new one takes the row of one that is not among them."""
        here = set(sentences)
        gone = [one for one in self._rows if one not in here]
        for one in sentences:
            if one not in self._rows:
                row = self._rows[one] = self._rows.pop(gone.pop()) if gone else len(self._rows)
                for stage in self._counts:
                    self.counts(stage)[row] = 0
        return Past(self, torch.tensor([self._rows[one] for one in sentences]))

    def counts(self, stage: str) -> Tensor:
        """How many places of each row a stage has computed."""
        counts = self._counts.get(stage, torch.zeros(0, dtype=torch.long))
        self._counts[stage] = counts = pad(counts, (0, len(self._rows) - len(counts)))
        return counts

    def put(self, maker: Hashable, rows: Tensor, places: Tensor, made: Tensor) -> None:
        """Keep what was made, (M, width), at these places of these rows."""
        if not len(made):
            return
        kept = self._made.get(maker, made.new_zeros(0, 0, made.shape[-1]))
        higher, wider = len(self._rows) - kept.shape[0], int(places.max()) + 1 - kept.shape[1]
        if higher > 0 or wider > 0:  # to twice the width, so that it is seldom
            kept = pad(kept, (0, 0, 0, max(wider, kept.shape[1]) if wider > 0 else 0, 0, max(higher, 0)))
            self._made[maker] = kept
        kept[rows, places] = made

    def get(self, maker: Hashable, rows: Tensor, count: int) -> Tensor:
        """What was made at the first places of these rows: (rows, count, width). After the end of one is anything."""
        return self._made[maker][:, :count].index_select(0, rows)
