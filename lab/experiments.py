# SPDX-License-Identifier: Apache-2.0
"""What is trained, and at which settings it is run: a folder with one TOML file for each experiment."""

from __future__ import annotations

import copy
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any

from lagging.agents.criteria import CRITERIA

__all__ = ["Experiment", "Plan", "Scale", "Setting", "read_plan", "seeded"]

SCALE = "scale.toml"
TRANSLATOR = "lab.model:Translator"
PATHS = ("offline", "wait-k", "milk")
POLICIES = (*PATHS, *CRITERIA)


@dataclass(frozen=True)
class Scale:
    """What all experiments of a plan share.

    Attributes:
        corpus: "multi30k", from a folder; "verb-final" or "clauses", which are made; or files: `train`, `val`, and
            `tests` by name, each with the source file and the target file; and whether to `lower` them.
        pieces: subwords, of both languages together.
        width, layers, heads, inner, dropout: of the network, see `lab.model.Size`.
        tokens: of a batch.
        warm_up: steps in which the learning rate rises; an eighth of the steps, if that is less.
        smoothing: of the labels.
        noise: standard deviation of what is added to the energies of p, so that it learns to be near 0 or 1
            (Arivazhagan et al., 2019).
        largest_k: of the k by chance.
        watched: of the validation set, how many sentences are translated after every epoch.
        reverse: whether the second language of the corpus is translated into the first.
        model: the class of the network, as "module:Class"; see `lab.model` for what it must have.
        seeds: all experiments are done once with each; none for the seed that each of them names.
    """

    corpus: str | Mapping[str, Any]
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
    reverse: bool = False
    model: str = TRANSLATOR
    seeds: tuple[int, ...] = ()


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
    """All experiments, in an order in which they can be trained, and what they share.

    Attributes:
        scale: what they share.
        experiments: by name.
        stages: of each experiment, the stage and the seed: a stage is begun when the one before is complete, and in it
            a seed when the seed before is complete.
    """

    scale: Scale
    experiments: Mapping[str, Experiment]
    stages: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Setting]:
        """All settings, by name."""
        return {setting.name: setting for one in self.experiments.values() for setting in one.settings}

    def recipe(self, name: str) -> list[dict[str, Any]]:
        """All that decides what a model becomes: the scale, its experiment, and those that it starts from."""
        one = self.experiments[name]
        before = [_unless_default(self.scale)] if one.start is None else self.recipe(one.start)
        return [*before, {key: value for key, value in asdict(one).items() if key != "settings"}]

    def until(self, stage: int) -> Plan:
        """The part of the plan up to a stage."""
        return replace(self, experiments={k: v for k, v in self.experiments.items() if self.stages[k][0] <= stage})


def read_plan(folder: Path) -> Plan:
    """The plan in a folder: `scale.toml`, and the experiments, in the order of their files.

    With `seeds`, there is one of each experiment for each seed; its name and those of its settings end in the seed.

    Raises:
        SystemExit: something in it cannot be meant, or the folder has no plan.
    """
    if not (folder / SCALE).is_file():
        raise SystemExit(f"{folder} has no {SCALE}\n  fix: lab/README.md says what a plan is.")
    table = tomllib.loads((folder / SCALE).read_text("utf-8"))
    if unknown := [name for name in table if name not in {one.name for one in fields(Scale)}]:
        raise SystemExit(f"{folder / SCALE}: there is no {', '.join(unknown)} in a plan")
    plan = Plan(Scale(**{**table, "seeds": tuple(table.get("seeds", ()))}), {})
    for file in sorted(folder.glob("*.toml")):
        table = {"train": []} if file.name == SCALE else tomllib.loads(file.read_text("utf-8"))
        stage, seeds = table.get("stage", 1), tuple(table.get("seeds", plan.scale.seeds))
        for one, seed in product(table["train"], seeds or (None,)):
            made = _experiment(table["family"], copy.deepcopy({**table.get("all", {}), **one}))
            made = made if seed is None else _seeded(made, seed)
            if faults := list(_faults(made, plan)):
                raise SystemExit("\n".join(f"{file}: {made.name}: {fault}" for fault in faults))
            stages = {**plan.stages, made.name: (stage, made.seed)}
            plan = Plan(plan.scale, {**plan.experiments, made.name: made}, stages)
    order = sorted(plan.experiments, key=plan.stages.__getitem__)
    return replace(plan, experiments={name: plan.experiments[name] for name in order})


def _unless_default(scale: Scale) -> dict[str, Any]:
    """What decides what a model becomes; a plan that says nothing new has the recipe that it always had."""
    new = {one.name: one.default for one in fields(Scale) if one.default is not MISSING}
    return {k: v for k, v in asdict(scale).items() if k != "seeds" and (k not in new or v != new[k])}


def seeded(name: str, seed: int) -> str:
    """What an experiment or a setting is called when it is done with a seed."""
    return f"{name}-seed-{seed}"


def _seeded(one: Experiment, seed: int) -> Experiment:
    start = None if one.start is None else seeded(one.start, seed)
    made = replace(one, name=seeded(one.name, seed), start=start, seed=seed)
    settings = (replace(setting, name=seeded(setting.name, seed), model=made.name) for setting in one.settings)
    return replace(made, settings=tuple(settings))


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


def _experiment(family: str, given: dict[str, Any]) -> Experiment:
    runs = given.pop("run", [])
    settings = tuple(
        Setting(
            name=run.pop("name", given["name"]),
            family=run.pop("family", family),
            model=given["name"],
            policy=run.pop("policy"),
            label=run.pop("label"),
            everywhere=run.pop("everywhere", False),
            options=run,
        )
        for run in runs
    )
    return Experiment(**given, settings=settings)
