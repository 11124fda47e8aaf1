# SPDX-License-Identifier: Apache-2.0
"""Training: likelihood, and for MILk λ times an expected latency of `lagging.losses.torch`.

After every epoch all that is needed to go on is put into a checkpoint, whole or not at all: the same command goes on
where it was broken off, and ends with the same model. One thread, and a seed for all chance.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

import lagging
from lab.agents import READING, Simultaneous
from lab.data import BEGIN, PAD, Corpus, Pair, Pieces, batches
from lab.experiments import Experiment, Plan, Scale
from lab.model import Size, Translator, find, kept
from lagging.agents import run
from lagging.data.files import write_whole
from lagging.losses.torch import (
    LatencyController,
    al,
    dal,
    expected_alignment,
    expected_delays,
    hard_alignment,
    sample_alignment,
    wait_k_mask,
)

__all__ = ["Epoch", "Terms", "Training", "expected", "terms"]

LATENCIES: dict[str, Callable[..., Tensor]] = {"dal": dal, "al": partial(al, tolerance=0.5)}
"""AL stops where the source has been read; an expected delay comes near |x|, and hardly ever reaches it."""
DRAWS = 10
"""How often the stops of each sentence are drawn by chance."""
Epoch = dict[str, float]
"""What an epoch gave: losses and latencies in training and validation, λ, and DAL and BLEU of real translations."""


@dataclass(frozen=True)
class Terms:
    """What a batch gives.

    Attributes:
        likelihood: cross entropy per token, with smoothed labels.
        latency: the expected latency of each sentence, (B,); None where nothing is learned of when to write.
    """

    likelihood: Tensor
    latency: Tensor | None = None


def terms(
    model: Translator, source: Tensor, target: Tensor, experiment: Experiment, scale: Scale, chance: random.Random
) -> Terms:
    """What a batch gives, by what is seen of the source.

    The last token of `target` is the end, which is written but has no latency, as in the evaluation.
    """
    shifted = pad(target, (1, -1), value=BEGIN)
    real = source != PAD
    states, heard = model.encode(source), model.listen(shifted)

    def likelihood(seen: Tensor | None = None, alignment: Tensor | None = None) -> Tensor:
        logits = model.say(model.decode(heard, states, shifted, seen, alignment))
        return cross_entropy(logits.flatten(0, 1), target.flatten(), ignore_index=PAD, label_smoothing=scale.smoothing)

    if experiment.path == "offline":
        return Terms(likelihood(real.unsqueeze(1)))
    if experiment.path == "wait-k":
        k = chance.randint(1, scale.largest_k)
        return Terms(likelihood(real.unsqueeze(1) & wait_k_mask(k, target.shape[1], source.shape[1])))
    energies = model.stops(heard, states)
    p = torch.sigmoid(energies + scale.noise * torch.randn_like(energies) * model.training)
    alignment = expected_alignment(p, real.sum(-1))
    latency = _latency(experiment.latency, expected_delays(alignment), source, target)
    return Terms(likelihood(alignment=alignment), latency)


def _latency(which: str, delays: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """Of each sentence; the end of the target is not counted."""
    return LATENCIES[which](delays, (source != PAD).sum(-1), (target != PAD).sum(-1) - 1)


@torch.no_grad()
def expected(model: Translator, pairs: Sequence[Pair], tokens: int) -> dict[str, float]:
    """The latency of writing the references, without noise: the mean of the sentences.

    Returns:
        "DAL" and "AL": of the expected delays; "sampled DAL" and "sampled AL": the mean of `DRAWS` draws of where MILk
        stops; "hard DAL" and "hard AL": where it stops at p ≥ ½.
    """
    latencies: dict[str, list[Tensor]] = {}
    generator = torch.Generator().manual_seed(0)
    for source, target in batches(pairs, tokens):
        lengths, heard = (source != PAD).sum(-1), model.eval().listen(pad(target, (1, -1), value=BEGIN))
        p = torch.sigmoid(model.stops(heard, model.encode(source)))
        soft, hard = expected_delays(expected_alignment(p, lengths)), hard_alignment(p, lengths).to(p.dtype)
        drawn = sample_alignment(p.expand(DRAWS, *p.shape), lengths, generator).delays.to(p.dtype)
        for which in LATENCIES:
            latencies.setdefault(which.upper(), []).append(_latency(which, soft, source, target))
            sampled = torch.stack([_latency(which, delays, source, target) for delays in drawn]).mean(0)
            latencies.setdefault(f"sampled {which.upper()}", []).append(sampled)
            latencies.setdefault(f"hard {which.upper()}", []).append(_latency(which, hard, source, target))
    return {name: float(torch.cat(parts).mean()) for name, parts in latencies.items()}


class Training:
    """A training run: what it is now, and how it goes on.

    Args:
        plan, name: which experiment.
        corpus, pieces: what is trained on.
        folder: where checkpoints are. If there is one of this experiment, the run goes on from it.

    Raises:
        SystemExit: the checkpoint is of an experiment that was configured otherwise.
    """

    def __init__(self, plan: Plan, name: str, corpus: Corpus, pieces: Pieces, folder: Path) -> None:
        self.experiment, self.scale, self.pieces = plan.experiments[name], plan.scale, pieces
        self.path, self.recipe = folder / f"{name}.pt", json.dumps(plan.recipe(name))
        self.watched = corpus.parts["val"][: self.scale.watched]
        self.pairs = {part: pieces.pairs(corpus.parts[part]) for part in ("train", "val")}
        torch.manual_seed(self.experiment.seed)
        self.chance = random.Random(self.experiment.seed)
        scale = self.scale
        size = Size(len(pieces), scale.width, scale.layers, scale.heads, scale.inner, scale.dropout)
        self.model = find(scale.model)(size)
        if self.experiment.start is not None:
            self.model.load_state_dict(self._trained(plan, self.experiment.start, folder)["weights"])
        self.optimizer = torch.optim.Adam(self.model.parameters(), self.experiment.rate, betas=(0.9, 0.98))
        self.controller = LatencyController(
            self.experiment.target or 0.0, self.experiment.weight, rate=self.experiment.control
        )
        self.history: list[Epoch] = []
        self.step = 0
        if self.path.exists():
            self._restore()

    @staticmethod
    def _trained(plan: Plan, name: str, folder: Path) -> dict[str, Any]:
        """The network of another experiment, trained to its end as the plan has it."""
        saved = torch.load(folder / f"{name}.pt", weights_only=True)
        done = len(json.loads(saved["history"])) == plan.experiments[name].epochs
        if saved["recipe"] != json.dumps(plan.recipe(name)) or not done:
            raise SystemExit(f"{folder / name}.pt is not yet what the plan calls {name}: train it first")
        model: dict[str, Any] = saved["model"]
        return model

    def _restore(self) -> None:
        saved = torch.load(self.path, weights_only=True)
        if saved["recipe"] != self.recipe:
            raise SystemExit(f"{self.path} was trained by another configuration: remove it, or give another --work")
        self.model.load_state_dict(saved["model"]["weights"])
        self.optimizer.load_state_dict(saved["optimizer"])
        self.controller.load_state_dict(saved["controller"])
        torch.set_rng_state(saved["torch"])
        version, state, gauss = json.loads(saved["chance"])
        self.chance.setstate((version, tuple(state), gauss))
        self.history, self.step = json.loads(saved["history"]), saved["step"]

    def _keep(self) -> None:
        checkpoint = {
            "model": kept(self.model), "optimizer": self.optimizer.state_dict(),
            "controller": self.controller.state_dict(), "torch": torch.get_rng_state(),
            "chance": json.dumps(self.chance.getstate()), "history": json.dumps(self.history), "step": self.step,
            "recipe": self.recipe,
        }  # fmt: skip
        with write_whole(self.path, binary=True) as file:
            torch.save(checkpoint, file)

    def _rate(self, steps: int) -> float:
        """Of learning: up in a straight line, then down by a cosine."""
        rise, done = min(self.step / min(self.scale.warm_up, steps / 8), 1.0), min(self.step / steps, 1.0)
        return self.experiment.rate * rise * (0.02 + 0.49 * (1 + math.cos(math.pi * done)))

    def epoch(self) -> Epoch:
        """Go through the training set once; what it gave."""
        self.model.train()
        groups = list(batches(self.pairs["train"], self.scale.tokens, self.chance))
        steps = len(groups) * self.experiment.epochs
        parts = []
        for source, target in groups:
            self.step += 1
            for group in self.optimizer.param_groups:
                group["lr"] = self._rate(steps)
            parts.append(self._learn(source, target))
        return {"epoch": len(self.history) + 1, **_means("", parts), **self.validate()}

    def _learn(self, source: Tensor, target: Tensor) -> Terms:
        got = terms(self.model, source, target, self.experiment, self.scale, self.chance)
        loss = got.likelihood
        if got.latency is not None:
            loss = loss + self.controller.weight * got.latency.mean()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        if got.latency is None:
            return Terms(got.likelihood.detach())
        if self.experiment.target is not None:
            self.controller.update(got.latency.mean())
        return Terms(got.likelihood.detach(), got.latency.detach())

    @torch.no_grad()
    def validate(self) -> Epoch:
        """Without noise: what is expected of the validation set, and what comes out where some of it is translated."""
        self.model.eval()
        chance = random.Random(0)
        parts = [
            terms(self.model, source, target, self.experiment, self.scale, chance)
            for source, target in batches(self.pairs["val"], 4 * self.scale.tokens)
        ]
        agent = Simultaneous(self.model, self.pieces, self.experiment.path)
        sources, references = zip(*self.watched, strict=True)
        settings = replace(READING, spm_model=str(self.pieces.path), batch=len(sources))
        scores = lagging.score(run(agent, sources, references, settings=settings), ["DAL", "BLEU"])
        hard = {"DAL": scores["DAL"].value, "BLEU": scores["BLEU"].value}
        return {**_means("val_", parts), "weight": float(self.controller.weight), **hard}

    def run(self, tell: Callable[[Epoch], None] = lambda epoch: None) -> list[Epoch]:
        """To the end; what each epoch gave."""
        while len(self.history) < self.experiment.epochs:
            self.history.append(self.epoch())
            self._keep()
            tell(self.history[-1])
        return self.history


def _means(prefix: str, parts: Sequence[Terms]) -> Epoch:
    """Likelihood, the mean of the batches; and latency, if there is one, the mean of the sentences."""
    means = {f"{prefix}loss": float(torch.stack([one.likelihood for one in parts]).mean())}
    latencies = [one.latency for one in parts if one.latency is not None]
    return means | ({f"{prefix}latency": float(torch.cat(latencies).mean())} if latencies else {})
