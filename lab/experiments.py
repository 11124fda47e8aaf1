# SPDX-License-Identifier: Apache-2.0
"""What is trained, and at which settings it is run: a folder with one TOML file for each experiment."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lagging.agents.criteria import CRITERIA

__all__ = ["Experiment", "Plan", "Scale", "Setting", "read_plan"]

SCALE = "scale.toml"
PATHS = ("offline", "wait-k", "milk")
POLICIES = (*PATHS, *CRITERIA)


@dataclass(frozen=True)
class Scale:
    """What all experiments of a plan share.

    Attributes:
        corpus: "multi30k", from a folder, or "verb-final", which is made.
        pieces: subwords, of both languages together.
        width, layers, heads, inner, dropout: of the network, see `lab.model.Size`.
        tokens: of a batch.
        warm_up: steps in which the learning rate rises; an eighth of the steps, if that is less.
        smoothing: of the labels.
        noise: standard deviation of what is added to the energies of p, so that it learns to be near 0 or 1
            (Arivazhagan et al., 2019).
        largest_k: of the k by chance.
        watched: of the validation set, how many sentences are translated after every epoch.
    """

    corpus: str
    pieces: int
    width: int
    layers: int
    heads: int
    inner: int
    dropout: float
    tokens: int
    warm_up: int
    smoothing: float
    noise: float
    largest_k: int
    watched: int


@dataclass(frozen=True)
class Setting:
    """One point of a curve: a model, and the policy that it is run by.

    Attributes:
        name: of the setting, unique in the plan.
        family: the line that it belongs to in the figures.
        model: the experiment that trains it.
        policy: see `lab.agents.Simultaneous`.
        options: of the policy.
        label: what it is called beside its point.
        everywhere: whether it is run on all test sets, and not on the first one only.
    """

    name: str
    family: str
    model: str
    policy: str
    options: Mapping[str, float]
    label: str
    everywhere: bool = False


@dataclass(frozen=True)
class Experiment:
    """A training run.

    Attributes:
        name: of the run.
        start: the experiment whose model it begins with; None for none.
        epochs: how often the training set is gone through.
        rate: the highest learning rate.
        path: what is seen of the source: "offline", "wait-k" (a k by chance for every batch), or "milk".
        latency: "dal" or "al": what λ weighs.
        weight: λ; where it begins, if there is a target.
        target: the expected latency that is wanted, for which λ is found by the controller.
        control: how fast the controller moves λ.
        seed: of chance.
        settings: at which it is run.
    """

    name: str
    start: str | None = None
    epochs: int = 1
    rate: float = 1e-3
    path: str = "offline"
    latency: str = "dal"
    weight: float = 0.0
    target: float | None = None
    control: float = 0.0
    seed: int = 1
    settings: tuple[Setting, ...] = field(default=())


@dataclass(frozen=True)
class Plan:
    """All experiments, in an order in which they can be trained, and what they share."""

    scale: Scale
    experiments: Mapping[str, Experiment]

    @property
    def settings(self) -> dict[str, Setting]:
        """All settings, by name."""
        return {setting.name: setting for one in self.experiments.values() for setting in one.settings}

    def recipe(self, name: str) -> list[dict[str, Any]]:
        """All that decides what a model becomes: the scale, its experiment, and those that it starts from."""
        one = self.experiments[name]
        before = [asdict(self.scale)] if one.start is None else self.recipe(one.start)
        return [*before, {key: value for key, value in asdict(one).items() if key != "settings"}]


def read_plan(folder: Path) -> Plan:
    """The plan in a folder: `scale.toml`, and the experiments, in the order of their files."""
    plan = Plan(Scale(**tomllib.loads((folder / SCALE).read_text("utf-8"))), {})
    for file in sorted(folder.glob("*.toml")):
        table = {"train": []} if file.name == SCALE else tomllib.loads(file.read_text("utf-8"))
        for one in table["train"]:
            made = _experiment(table["family"], {**table.get("all", {}), **one})
            if faults := list(_faults(made, plan)):
                raise SystemExit("\n".join(f"{file}: {made.name}: {fault}" for fault in faults))
            plan = Plan(plan.scale, {**plan.experiments, made.name: made})
    return plan


def _faults(one: Experiment, plan: Plan) -> Iterator[str]:
    """What cannot be meant; `plan` has the experiments before it."""
    choices = [("path", one.path, PATHS), ("latency", one.latency, ("dal", "al"))]
    choices += [("policy", setting.policy, POLICIES) for setting in one.settings]
    for what, value, known in choices:
        if value not in known:
            yield f"there is no {what} {value!r}; there are {', '.join(known)}"
    if one.start is not None and one.start not in plan.experiments:
        yield f"it starts from {one.start}, which no experiment before it trains"
    if one.name in plan.experiments:
        yield "there is another experiment of that name"
    names = [*plan.settings, *(setting.name for setting in one.settings)]
    yield from (f"there are two settings {name}" for name in dict.fromkeys(names) if names.count(name) > 1)
    if one.target is not None and one.control <= 0:
        yield "a target needs `control` above 0, or λ never moves"


def _experiment(family: str, fields: dict[str, Any]) -> Experiment:
    runs = fields.pop("run", [])
    settings = tuple(
        Setting(
            name=run.pop("name", fields["name"]),
            family=run.pop("family", family),
            model=fields["name"],
            policy=run.pop("policy"),
            label=run.pop("label"),
            everywhere=run.pop("everywhere", False),
            options=run,
        )
        for run in runs
    )
    return Experiment(**fields, settings=settings)
