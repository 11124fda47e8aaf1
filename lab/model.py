# SPDX-License-Identifier: Apache-2.0
"""The translator: a small Transformer that hears its source from left to right.

One network for all policies. Its encoder is causal, so that what it has made of a word does not change when more is
read. The first layer of the decoder sees only what has been written; from its state and the encoder's comes p(t, j),
the probability to stop reading at source position j and write target token t (MILk; Arivazhagan et al., 2019). The
layers above attend to the source. What they see of it is given from outside:

    seen        a mask, True where j ≤ g(t): offline, wait-k, or a hard policy; or
    alignment   α(t, j): in expectation over where a monotonic policy stops, with infinite lookback.

Training computes all places of a sentence at once. In translating, only the places that are new are computed: nothing
that comes later changes a state, so the keys, values and states of the places before are kept (`lab.past`).

Another network can take its place, `model = "module:Class"` in a plan. It is a `torch.nn.Module`, is made from a
`Size`, keeps it as `size`, and has the methods `encode`, `listen`, `stops`, `decode` and `say` of `Translator`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import import_module
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import scaled_dot_product_attention

from lab.data import PAD
from lab.past import All, New, Past
from lagging.losses.torch import infinite_lookback

__all__ = ["Size", "Translator", "find", "kept", "load"]


@dataclass(frozen=True)
class Size:
    """How large the network is.

    Attributes:
        vocabulary: subwords, of both languages.
        width: of the states.
        layers: of the encoder, and as many of the decoder.
        heads: of attention.
        inner: width of the network in each layer.
        dropout: the share of the states that is left out in training.
    """

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    dropout: float


class Attention(nn.Module):
    """Attention of several heads, to what is seen, or expected to be."""

    def __init__(self, size: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, nn.Dropout(dropout)
        self.query, self.key, self.value, self.out = (nn.Linear(size, size) for _ in range(4))

    def forward(
        self, queries: Tensor, states: Tensor, at: All | New, seen: Tensor | None, alignment: Tensor | None = None
    ) -> Tensor:
        """`at`: the places of the states.

        `seen`: True where attention may look, (B, T, S); or `alignment`: α, (B, T, S).
        """
        keys, values = at.join((self, "keys"), self.key(states)), at.join((self, "values"), self.value(states))
        q, k, v = self._split(self.query(queries)), self._split(keys), self._split(values)
        if alignment is None:
            mask = None if seen is None else seen.unsqueeze(1)
            context = scaled_dot_product_attention(q, k, v, attn_mask=mask)
        else:
            energies = q @ k.mT / q.shape[-1] ** 0.5
            weights = infinite_lookback(alignment.unsqueeze(1).expand_as(energies), energies)
            context = weights @ v
        made: Tensor = self.dropout(self.out(context.transpose(1, 2).flatten(2)))
        return made

    def _split(self, x: Tensor) -> Tensor:
        return x.view(*x.shape[:-1], self.heads, x.shape[-1] // self.heads).transpose(1, 2)


class Layer(nn.Module):
    """Attention to what came before, perhaps to the source, and a network for each place; normalised first."""

    def __init__(self, size: int, heads: int, inner: int, dropout: float, source: bool) -> None:
        super().__init__()
        self.own, self.norm_own = Attention(size, heads, dropout), nn.LayerNorm(size)
        if source:
            self.other, self.norm_other = Attention(size, heads, dropout), nn.LayerNorm(size)
        self.norm = nn.LayerNorm(size)
        self.network = nn.Sequential(
            nn.Linear(size, inner), nn.ReLU(), nn.Dropout(dropout), nn.Linear(inner, size), nn.Dropout(dropout)
        )

    def forward(
        self, x: Tensor, at: All | New, states: Tensor | None = None, read: All | New | None = None,
        seen: Tensor | None = None, alignment: Tensor | None = None,
    ) -> Tensor:  # fmt: skip
        """`at`: the places of x; `read`: those of the states of the source."""
        y = self.norm_own(x)
        x = x + self.own(y, y, at, at.before)
        if states is not None:
            x = x + self.other(self.norm_other(x), states, read, seen, alignment)
        made: Tensor = x + self.network(self.norm(x))
        return made


class Translator(nn.Module):
    """The network; see the head of this module."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        self.size = size
        parts = size.width, size.heads, size.inner, size.dropout
        self.embedding = nn.Embedding(size.vocabulary, size.width)
        nn.init.normal_(self.embedding.weight, 0, size.width**-0.5)
        self.last = nn.Parameter(torch.zeros(size.width))
        self.dropout = nn.Dropout(size.dropout)
        self.encoder = nn.ModuleList(Layer(*parts, source=False) for _ in range(size.layers))
        self.prefix = Layer(*parts, source=False)
        self.decoder = nn.ModuleList(Layer(*parts, source=True) for _ in range(size.layers))
        self.norm_source, self.norm_prefix, self.norm = (nn.LayerNorm(size.width) for _ in range(3))
        self.stop_query, self.stop_key = nn.Linear(size.width, size.width), nn.Linear(size.width, size.width)
        self.stop_bias = nn.Parameter(torch.tensor(0.0))

    def _embed(self, tokens: Tensor, places: Tensor) -> Tensor:
        words: Tensor = self.embedding(tokens) * self.size.width**0.5
        return words + _waves(places, self.size.width)

    def encode(self, source: Tensor, finished: Tensor | None = None, past: Past | None = None) -> Tensor:
        """What is made of each source token when it is read: (B, S, width).

        `finished`: whether the last one is the last of the sentence, (B,); all are, if not given. That comes with the
        token itself, as in `lagging run`: so |x| counts nothing but words. `past`: what was made before; the states are
        the same with it, but only those of new tokens are computed. So in all of these methods.
        """
        lengths = (source != PAD).sum(-1)
        ends = torch.arange(source.shape[1]) == lengths.unsqueeze(-1) - 1
        if finished is not None:
            ends = ends & finished.unsqueeze(-1)
        at = All(source.shape[1]) if past is None else past.new("encode", lengths)
        x = self.dropout(self._embed(at.of(source), at.places) + at.of(ends).unsqueeze(-1) * self.last)
        for layer in self.encoder:
            x = layer(x, at)
        return at.whole(self.norm_source(x))

    def listen(self, target: Tensor, past: Past | None = None) -> Tensor:
        """What is made of each target token by itself and those before: (B, T, width)."""
        at = All(target.shape[1]) if past is None else past.new("listen", (target != PAD).sum(-1))
        return at.whole(self.prefix(self.dropout(self._embed(at.of(target), at.places)), at))

    def stops(self, heard: Tensor, states: Tensor) -> Tensor:
        """Energies of p(t, j): (B, T, S)."""
        query, key = self.stop_query(self.norm_prefix(heard)), self.stop_key(states)
        energies: Tensor = query @ key.mT / self.size.width**0.5 + self.stop_bias
        return energies

    def decode(
        self, heard: Tensor, states: Tensor, target: Tensor, seen: Tensor | None = None,
        alignment: Tensor | None = None, past: Past | None = None,
    ) -> Tensor:  # fmt: skip
        """States from which the token that follows each target token is said: (B, T, width).

        A `past` needs `seen`. What the last token sees may have grown since; what those before see has not.
        """
        at: All | New = All(target.shape[1])
        read: All | New = All(states.shape[1])
        if past is not None and seen is not None:
            at = past.new("decode", (target != PAD).sum(-1), again=1)
            read = replace(past.new("read", seen.any(1).sum(-1)), wanted=at.wanted)
            seen = at.of(seen)[..., : read.count]
        x, states = at.of(heard), read.of(states)
        for layer in self.decoder:
            x = layer(x, at, states, read, seen, alignment)
        read.done()
        return at.whole(self.norm(x))

    def say(self, states: Tensor) -> Tensor:
        """Logits: (..., vocabulary)."""
        return states @ self.embedding.weight.mT


def _waves(places: Tensor, width: int) -> Tensor:
    """Sines and cosines of places in the sentence (Vaswani et al., 2017)."""
    angles = places.unsqueeze(-1) * 10000 ** -(torch.arange(0, width, 2) / width)
    return torch.cat([angles.sin(), angles.cos()], -1)


def find(name: str) -> Callable[[Size], Translator]:
    """The class of a network, by "module:Class".

    Raises:
        SystemExit: there is none.
    """
    module, _, attribute = name.partition(":")
    try:
        found: Callable[[Size], Translator] = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise SystemExit(
            f'model = {name!r}: {error}\n  fix: name a class as "module:Class", in a module that Python finds.'
        ) from error
    return found


def kept(model: Translator) -> dict[str, object]:
    """The network, as a checkpoint holds it."""
    of = type(model)
    return {"class": f"{of.__module__}:{of.__qualname__}", "size": asdict(model.size), "weights": model.state_dict()}


def load(path: Path) -> Translator:
    """The network of a checkpoint."""
    saved = torch.load(path, weights_only=True)["model"]
    model = find(saved["class"])(Size(**saved["size"]))
    model.load_state_dict(saved["weights"])
    return model
