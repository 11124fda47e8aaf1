# SPDX-License-Identifier: Apache-2.0
"""Models: source so far and tokens written so far in, hypotheses out; many sentences at once.

What is computed again: the encoders of these models are bidirectional, so every read changes all of their states, and
with them all that the decoder has computed from them. A causal language model has the source before the translation, so
a read changes everything after it. Therefore each read encodes the source, and decodes the tokens written so far, from
the beginning. Within a read, the source is encoded once, and keys and values of all tokens are kept.

The kinds of models are in one file because they share the decoding of `Model`, and say only what they take and give.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationMixin

from lagging.agents.hf.policies import Hypothesis
from lagging.errors import LaggingError, UsageError

__all__ = ["Causal", "EncoderDecoder", "Model", "Request", "Source", "Speech"]

PLACE = "{source}"

MAX_TOKENS = 128
"""The largest number of tokens of a translation, if nothing else is said."""


@dataclass(frozen=True)
class Request:
    """What is asked of a model for a sentence.

    Attributes:
        source: words of text, or samples of speech.
        written: tokens that the hypothesis has to begin with.
        enough: whether these tokens suffice, so that no more are needed; they include those written.
        sample_rate: of speech.
    """

    source: Any
    written: tuple[int, ...]
    enough: Callable[[Sequence[int]], bool]
    sample_rate: int = 0


@dataclass(frozen=True)
class Source:
    """Sources as a model takes them.

    Attributes:
        inputs: tensors for the model.
        units: for each sentence, which unit each position belongs to; −1 for none.
        sizes: for each sentence, how many units it has.
        prompts: for a causal model, prompt and tokens written, with padding on the left.
    """

    inputs: dict[str, Any]
    units: list[list[int]]
    sizes: list[int]
    prompts: list[list[int]] = field(default_factory=list)


class Model:
    """What all models share.

    Args:
        model, tokenizer: of `transformers`.
        template: text with `{source}` in it.
        source_spaces: whether source tokens are joined by spaces.
        layer: the layer whose attention counts, from 0; None for the mean of all.
        max_tokens: the largest number of tokens of a translation; None for 128, or for what the model has places for.
        start: tokens that every translation begins with.

    Raises:
        UsageError: the template does not hold the source, or the model has no places for so many tokens.
    """

    kind: ClassVar[str] = "text"

    def __init__(
        self, model: Any, tokenizer: Any, *, template: str = PLACE, source_spaces: bool = True,
        layer: int | None = None, max_tokens: int | None = None, start: Sequence[int] = (),
    ) -> None:  # fmt: skip
        if template.count(PLACE) != 1:
            raise UsageError(f"a template has {PLACE} in it once, but got {template!r}")
        self.model, self.tokenizer, self.start = model, tokenizer, tuple(start)
        self._head, self._tail = template.split(PLACE)
        self._joint, self._layer = " " if source_spaces else "", layer
        self._places: int | None = getattr(model.config, "max_position_embeddings", None)
        places = getattr(model.config, "max_target_positions", None) or self._places
        room = None if places is None else places - max(len(start), 1)
        if max_tokens is not None and room is not None and max_tokens > room:
            raise UsageError(f"max_tokens is at most {room} for this model, but got {max_tokens}")
        self._max_tokens = min(MAX_TOKENS, room or MAX_TOKENS) if max_tokens is None else max_tokens
        config = model.generation_config
        ends = config.eos_token_id
        self._ends = frozenset([ends] if isinstance(ends, int) else ends or [])
        single = [words[0] for words in config.bad_words_ids or [] if len(words) == 1]
        banned = {*single, *(config.suppress_tokens or []), config.pad_token_id} - {None} - self._ends
        self._banned, self._first = sorted(banned), sorted(set(config.begin_suppress_tokens or []) - banned)

    @property
    def settings(self) -> dict[str, Any]:
        """What decides how hypotheses are generated."""
        return {
            "template": f"{self._head}{PLACE}{self._tail}", "start": self.start, "ends": sorted(self._ends),
            "banned": self._banned, "banned_first": self._first, "max_tokens": self._max_tokens, "layer": self._layer,
        }  # fmt: skip

    @torch.inference_mode()
    def greedy(self, requests: Sequence[Request], attends: bool = False) -> list[Hypothesis]:
        """The hypothesis of each sentence: at each place the most likely token.

        Sentences with fewer tokens written go on while those of the others are still being read, so that all are at
        the same place, and nothing between the tokens of a sentence has to be masked.
        """
        source = self._sources(requests, attends)
        sequences = self._begin(source, requests)
        tokens = [list(request.written) for request in requests]
        attention: list[list[tuple[float, ...]]] = [[] for _ in requests]
        ended, done = [False] * len(requests), [self._is_full(one) for one in tokens]
        cache, fed = None, 0
        while not all(done):
            width = min(map(len, sequences))
            columns = torch.tensor([sequence[fed:width] for sequence in sequences], device=self.model.device)
            out = self._step(source, columns, cache, fed, attends)
            cache = getattr(out, "past_key_values", None)
            fed = 0 if cache is None else width  # a model that keeps none, such as Mamba, reads all again
            weights = self._weights(out) if attends else None
            for i, sequence in enumerate(sequences):
                if len(sequence) > width:
                    continue  # a token that was written before comes next
                if not done[i]:
                    token = int(self._allowed(out.logits[i, -1], first=not tokens[i]).argmax())
                    ended[i] = self._is_end(token)
                    if not ended[i]:
                        tokens[i].append(token)
                        if weights is not None:
                            attention[i].append(_by_unit(weights[i].tolist(), source.units[i], source.sizes[i]))
                    done[i] = ended[i] or self._is_full(tokens[i]) or requests[i].enough(tokens[i])
                    sequence.append(token)
                else:
                    sequence.append(sequence[-1])  # what comes of it is not used
        return [Hypothesis(tuple(a), b, tuple(c)) for a, b, c in zip(tokens, ended, attention, strict=True)]

    @torch.inference_mode()
    def beam(self, requests: Sequence[Request], beams: int) -> list[list[Hypothesis]]:
        """The candidates of a beam search for each sentence, the best first.

        Sentences with as many tokens written are searched together.
        """
        found: dict[int, list[Hypothesis]] = {}
        by_length: dict[int, list[int]] = {}
        for i, request in enumerate(requests):
            by_length.setdefault(len(request.written), []).append(i)
        for length, rows in by_length.items():
            some = [requests[i] for i in rows]
            if length >= self._max_tokens:
                found |= {i: [Hypothesis(requests[i].written, False)] * beams for i in rows}
                continue
            source = self._sources(some, False)
            begin = self._begin(source, some)
            made = GenerationMixin.generate(  # Whisper's own `generate` is for whole recordings
                self.model,
                **self._beam_inputs(source, begin),
                num_beams=beams,
                num_return_sequences=beams,
                do_sample=False,
                early_stopping=True,
                max_new_tokens=self._max_tokens - length,
                suppress_tokens=self._banned or None,
                begin_suppress_tokens=(self._first or None) if not length else None,
                bad_words_ids=None,
                forced_bos_token_id=None,
                forced_eos_token_id=None,
            )
            new = made[:, len(begin[0]) :].tolist()
            for place, i in enumerate(rows):
                candidates = new[place * beams : (place + 1) * beams]
                found[i] = [self._candidate(requests[i], tokens) for tokens in candidates]
        return [found[i] for i in range(len(requests))]

    def _candidate(self, request: Request, tokens: Sequence[int]) -> Hypothesis:
        """A candidate of a beam, up to its end."""
        end = next((place for place, token in enumerate(tokens) if self._is_end(token)), None)
        pad = self.model.generation_config.pad_token_id
        return Hypothesis((*request.written, *(token for token in tokens[:end] if token != pad)), end is not None)

    def check_attention(self) -> None:
        """Check that the model gives the attention that a policy needs.

        Raises:
            UsageError: it gives none.
        """
        request = Request(self._trial(), (), lambda tokens: True, self._rate)
        source = self._sources([request], True)
        columns = torch.tensor(self._begin(source, [request]), device=self.model.device)
        with torch.inference_mode():
            try:
                weights = self._weights(self._step(source, columns, None, 0, True))
            except UsageError:
                raise
            except (AttributeError, IndexError, TypeError, ValueError):
                weights = None
        if weights is None:
            name = type(self.model).__name__
            raise UsageError(
                f"{name} gives no attention to the source, which this policy needs\n"
                "  fix: use another policy (wait-k, local-agreement, hold, ralcp), or another model."
            )

    _rate = 0

    def _trial(self) -> Any:
        """A source to try the model with."""
        return ["a"]

    def _sources(self, requests: Sequence[Request], units: bool) -> Source:
        """Sources as the model takes them; with units, if the attention is needed."""
        raise NotImplementedError

    def _begin(self, source: Source, requests: Sequence[Request]) -> list[list[int]]:
        """What the decoder reads before the first new token, as sequences."""
        raise NotImplementedError

    def _step(self, source: Source, columns: Tensor, cache: Any, fed: int, attends: bool) -> Any:
        """The next places of the decoder."""
        raise NotImplementedError

    def _beam_inputs(self, source: Source, begin: list[list[int]]) -> dict[str, Any]:
        raise NotImplementedError

    def _weights(self, out: Any) -> Tensor:
        """Attention of the last place to each position of the source: (sentences, positions)."""
        raise NotImplementedError

    def _mean(self, layers: Sequence[Tensor]) -> Tensor:
        """The mean over heads, of one layer or all, for the last place."""
        if self._layer is not None and not 0 <= self._layer < len(layers):
            raise UsageError(f"layer is from 0 to {len(layers) - 1}, but got {self._layer}")
        chosen = layers if self._layer is None else [layers[self._layer]]
        return torch.stack([layer[:, :, -1].mean(1) for layer in chosen]).mean(0)

    def _allowed(self, logits: Tensor, first: bool) -> Tensor:
        logits = logits.float().clone()
        logits[self._banned] = -torch.inf
        if first:
            logits[self._first] = -torch.inf
        return logits

    def _check_places(self, count: int, what: str, fix: str) -> None:
        """Check that the model has places for so many tokens.

        Raises:
            LaggingError: it has fewer.
        """
        if self._places is not None and count > self._places:
            raise LaggingError(f"{what} {count} tokens, and the model has places for {self._places}\n  fix: {fix}.")

    def _is_end(self, token: int) -> bool:
        return token in self._ends

    def _is_full(self, tokens: Sequence[int]) -> bool:
        return len(tokens) >= self._max_tokens

    def _plain(self, text: str) -> list[int]:
        """Tokens of a text, without special ones; a space at its end would be a token of its own."""
        ids: list[int] = self.tokenizer(text.rstrip(), add_special_tokens=False)["input_ids"]
        return ids

    def _encode(self, words: Sequence[str], units: bool) -> tuple[list[int], list[int]]:
        """Tokens of template and source, and the source word of each; −1 for what is not of the source."""
        ids: list[int] = self.tokenizer(self._head + self._joint.join(words) + self._tail)["input_ids"]
        if not units:
            return ids, []
        plain = [len(self._plain(self._head + self._joint.join(words[:count]))) for count in range(len(words) + 1)]
        everything = self._plain(self._head + self._joint.join(words) + self._tail)
        shift = next((s for s in range(len(ids)) if ids[s : s + len(everything)] == everything), 0)
        owners = [-1] * len(ids)
        for word, (begin, end) in enumerate(pairwise(plain)):
            for place in range(shift + begin, min(shift + end, len(ids))):
                owners[place] = word
        return ids, owners


def _lengths(requests: Sequence[Request]) -> list[int]:
    return [len(request.source) for request in requests]


def _by_unit(weights: Sequence[float], units: Sequence[int], count: int) -> tuple[float, ...]:
    """The attention to each unit: the sum over its positions."""
    sums = [0.0] * count
    for weight, unit in zip(weights, units, strict=False):
        if unit >= 0:
            sums[unit] += weight
    return tuple(sums)


class EncoderDecoder(Model):
    """Text to text with encoder and decoder: Marian, NLLB, M2M, mBART, T5."""

    def _sources(self, requests: Sequence[Request], units: bool) -> Source:
        coded = [self._encode(request.source, units) for request in requests]
        pad = self.model.generation_config.pad_token_id or 0
        width, device = max(len(ids) for ids, _ in coded), self.model.device
        self._check_places(width, "the source has", "divide it into sentences, or use another model")
        ids = torch.tensor([[*one, *[pad] * (width - len(one))] for one, _ in coded], device=device)
        mask = torch.tensor([[*[1] * len(one), *[0] * (width - len(one))] for one, _ in coded], device=device)
        encoded = self.model.get_encoder()(input_ids=ids, attention_mask=mask)
        return Source(
            {"encoder_outputs": encoded, "attention_mask": mask}, [owners for _, owners in coded], _lengths(requests)
        )

    def _begin(self, source: Source, requests: Sequence[Request]) -> list[list[int]]:
        return [[*self.start, *request.written] for request in requests]

    def _step(self, source: Source, columns: Tensor, cache: Any, fed: int, attends: bool) -> Any:
        return self.model(
            **source.inputs, decoder_input_ids=columns, past_key_values=cache, use_cache=True, output_attentions=attends
        )

    def _beam_inputs(self, source: Source, begin: list[list[int]]) -> dict[str, Any]:
        return {
            **source.inputs,
            "decoder_input_ids": torch.tensor(begin, device=self.model.device),
            "decoder_start_token_id": begin[0][0],  # or `generate` puts that of the model before them
        }

    def _weights(self, out: Any) -> Tensor:
        return self._mean(out.cross_attentions)


class Speech(EncoderDecoder):
    """Speech to text with a model like Whisper, whose window has a fixed length.

    Args:
        extractor: makes features of samples.
        model, tokenizer, more: see `Model`.
    """

    kind = "speech"

    def __init__(self, model: Any, tokenizer: Any, extractor: Any, **more: Any) -> None:
        super().__init__(model, tokenizer, **more)
        self._extractor, self._rate = extractor, int(extractor.sampling_rate)

    def _trial(self) -> Any:
        return np.zeros(self._rate // 10, dtype=np.float32)

    def _sources(self, requests: Sequence[Request], units: bool) -> Source:
        longest, frames = int(self._extractor.n_samples), int(self.model.config.max_source_positions)
        for request in requests:
            if request.sample_rate != self._rate:
                raise LaggingError(
                    f"the model hears {self._rate} samples per second, but the source has {request.sample_rate}\n"
                    f"  fix: convert the sound files to {self._rate} samples per second."
                )
            if len(request.source) > longest:
                raise LaggingError(
                    f"the source is longer than the {longest / self._rate:g} s that the model hears at once\n"
                    "  fix: cut the recordings into segments."
                )
        samples = [np.asarray(request.source, dtype=np.float32) for request in requests]
        features = self._extractor(samples, sampling_rate=self._rate, return_tensors="pt")["input_features"]
        encoded = self.model.get_encoder()(features.to(self.model.device, self.model.dtype))
        heard = [max(-(-len(one) * frames // longest), 1) for one in samples]
        places = [[place if place < count else -1 for place in range(frames)] for count in heard]
        return Source({"encoder_outputs": encoded}, places, heard)


class Causal(Model):
    """Text to text with a causal language model: the prompt has the source, and the translation follows it.

    A token with a line break ends the translation.
    """

    def _sources(self, requests: Sequence[Request], units: bool) -> Source:
        coded = [self._encode(request.source, units) for request in requests]
        longest = max(len(ids) for ids, _ in coded) + self._max_tokens
        fix = "divide the source into sentences, or give a smaller max_tokens"
        self._check_places(longest, "prompt and translation may have", fix)
        full = [[*ids, *request.written] for (ids, _), request in zip(coded, requests, strict=True)]
        width = max(map(len, full))
        missing = [width - len(one) for one in full]
        mask = torch.tensor([[0] * n + [1] * (width - n) for n in missing], device=self.model.device)
        places = [[-1] * n + owners for n, (_, owners) in zip(missing, coded, strict=True)]
        prompts = [[self.model.generation_config.pad_token_id or 0] * n + o for n, o in zip(missing, full, strict=True)]
        return Source({"attention_mask": mask}, places, _lengths(requests), prompts)

    def _begin(self, source: Source, requests: Sequence[Request]) -> list[list[int]]:
        return [list(prompt) for prompt in source.prompts]

    def _step(self, source: Source, columns: Tensor, cache: Any, fed: int, attends: bool) -> Any:
        mask, end = source.inputs["attention_mask"], fed + columns.shape[1]
        mask = torch.cat([mask, mask.new_ones(len(mask), end - mask.shape[1])], 1) if end > mask.shape[1] else mask
        places = (mask.cumsum(-1) - 1).clamp(min=0)[:, fed:end]
        return self.model(
            input_ids=columns, attention_mask=mask, position_ids=places, past_key_values=cache, use_cache=True,
            output_attentions=attends,
        )  # fmt: skip

    def _beam_inputs(self, source: Source, begin: list[list[int]]) -> dict[str, Any]:
        return {"input_ids": torch.tensor(begin, device=self.model.device), **source.inputs}

    def _weights(self, out: Any) -> Tensor:
        return self._mean(out.attentions)

    def _is_end(self, token: int) -> bool:
        return token in self._ends or "\n" in self.tokenizer.decode([token])
