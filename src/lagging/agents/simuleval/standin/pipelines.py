# SPDX-License-Identifier: Apache-2.0
"""Agents one after the other, in a row or in a tree."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from typing import Any, ClassVar, Self

from lagging.agents.simuleval.standin.agents import GenericAgent

__all__ = ["AgentPipeline", "TreeAgentPipeline"]


class AgentPipeline(GenericAgent):
    """Agents in a row: what one writes, the next reads.

    Attributes:
        pipeline: of a subclass, the classes of its modules.
        module_list: the modules.
    """

    pipeline: ClassVar[Any] = ()

    def __init__(self, module_list: Sequence[Any]) -> None:
        self._hold(module_list)
        for one, other in pairwise(module_list):
            _fit(one, other)
        self.source_type, self.target_type = module_list[0].source_type, module_list[-1].target_type

    def _hold(self, modules: Iterable[Any]) -> None:
        self.module_list = [*modules]
        assert self.module_list, f"{type(self).__name__} has no modules"

    @classmethod
    def _classes(cls) -> Iterable[Any]:
        return cls.pipeline  # type: ignore[no-any-return]

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the options of all modules."""
        for one in cls._classes():
            one.add_args(parser)

    @classmethod
    def from_args(cls, args: Any, **others: Any) -> Self:
        """A pipeline of modules that all have these options."""
        return cls([one.from_args(args) for one in cls._classes()], **others)

    def build_states(self) -> Any:
        """Of each module."""
        return [module.build_states() for module in self.module_list]

    def reset(self) -> None:
        """Begin a sentence."""
        for module in self.module_list:
            module.reset()

    def to(self, device: Any, *args: Any, **kwargs: Any) -> None:
        """Go to a device, with all modules."""
        for module in self.module_list:
            module.to(device, *args, **kwargs)

    def push(self, source_segment: Any, states: Any = None, upstream_states: list[Any] | None = None) -> None:
        """Read a segment, and pass on what each module makes of it, up to the last."""
        segment, above = source_segment, [*(upstream_states or ())]
        *before, (last, its) = zip(self.module_list, states or [None] * len(self.module_list), strict=True)
        for module, own in before:
            segment = _through(module, segment, own, above)
            above = [*above, module.states if own is None else own]
        last.push(segment, its, above)

    def pop(self, states: Any = None) -> Any:
        """Ask the last module."""
        return self.module_list[-1].pop(states and states[-1])

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(map(repr, self.module_list))})"


class TreeAgentPipeline(AgentPipeline):
    """Agents in a tree: what one writes, all below it read.

    Attributes:
        pipeline: of a subclass, each class → the classes below it.
        output_index: which leaf's output is meant; None for those of all, in a list.
    """

    pipeline: ClassVar[Any] = {}

    def __init__(self, module_dict: Mapping[Any, Sequence[Any]], args: Any) -> None:
        """Put modules together.

        Args:
            module_dict: module → those below it, or their classes.
            args: options, with output_index.
        """
        self._hold(module_dict)
        of_class = {type(module): module for module in module_dict}
        self._below = {module: [of_class.get(one, one) for one in below] for module, below in module_dict.items()}
        self._root = self._checked()
        self._leaves = [module for module, below in self._below.items() if not below]
        self.output_index: int | None = args.output_index
        chosen = self._leaves
        if self.output_index is not None:
            assert 0 <= self.output_index < len(chosen), f"there is no output {self.output_index}, of {len(chosen)}"
            chosen = [chosen[self.output_index]]
        self.source_type = self._root.source_type
        self.target_type = "_".join(str(leaf.target_type) for leaf in chosen)

    def _checked(self) -> Any:
        """The root, if it is a tree and all modules fit."""
        try:
            TopologicalSorter(self._below).prepare()
        except CycleError as error:
            raise ValueError(f"{error.args[1][0]!r} is below itself") from None
        reached = {*chain(*self._below.values())}
        for one in reached:
            assert one in self._below, f"{one!r} is below another module, but is none of this tree"
        roots = [module for module in self._below if module not in reached]
        assert len(roots) == 1, f"a tree has one root, this has {len(roots)}: {', '.join(map(repr, roots))}"
        for module, below in self._below.items():
            for one in below:
                _fit(module, one)
        return roots[0]

    @classmethod
    def _classes(cls) -> Iterable[Any]:
        return dict.fromkeys([*cls.pipeline, *chain(*cls.pipeline.values())])

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add the options of all modules, and the one for the output."""
        super().add_args(parser)
        parser.add_argument("--output-index", type=int, default=None, help="which leaf's output is meant, from 0")

    @classmethod
    def from_args(cls, args: Any, **others: Any) -> Self:
        """A tree of modules that all have these options."""
        made = {one: one.from_args(args) for one in cls._classes()}
        return cls(
            {module: [made[one] for one in cls.pipeline.get(of, ())] for of, module in made.items()}, args, **others
        )

    def build_states(self) -> Any:
        """Of each module, by the module."""
        return {module: module.build_states() for module in self.module_list}

    def push(self, source_segment: Any, states: Any = None, upstream_states: list[Any] | None = None) -> None:
        """Read a segment, and pass on what each module makes of it, down to the leaves.

        The states that a module sees are those of all that the segment has come to before it, on whatever branch. The
        leaves, which are asked when it has come everywhere, see all.
        """
        self._push(self._root, source_segment, states or {}, [*(upstream_states or ())])

    def _push(self, module: Any, segment: Any, states: Mapping[Any, Any], reached: list[Any]) -> None:
        own, below = states.get(module), self._below[module]
        if below:
            segment = _through(module, segment, own, reached)
        else:
            module.push(segment, own, reached)
        reached.append(module.states if own is None else own)
        for one in below:
            self._push(one, segment, states, reached)

    def pop(self, states: Any = None) -> Any:
        """Ask the leaves."""
        out = [leaf.pop(states and states[leaf]) for leaf in self._leaves]
        return out if self.output_index is None else out[self.output_index]


def _fit(one: Any, other: Any) -> None:
    if one.target_type != other.source_type:
        raise RuntimeError(f"{one!r} writes {one.target_type}, but {other!r}, which follows, reads {other.source_type}")


def _through(module: Any, segment: Any, states: Any, above: list[Any]) -> Any:
    """What a module makes of a segment; the settings go on with it."""
    out = module.pushpop(segment, states, above)
    out.config = {**segment.config, **out.config}
    return out
