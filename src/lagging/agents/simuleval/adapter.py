# SPDX-License-Identifier: Apache-2.0
"""Run a SimulEval agent, unchanged, as an agent of `lagging`.

SimulEval pushes a segment into an agent and calls it once; after every answer, also a write, the next segment follows.
So its agents are `chunkwise`. After the end of the source, empty finished segments follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.agents.loading import candidates, load_module, split_name
from lagging.agents.protocol import Answer, State, Timed, Write
from lagging.agents.simuleval.arguments import MissingRunnerOption, parse
from lagging.agents.simuleval.package import Package, import_simuleval
from lagging.agents.sources import read_text_lines
from lagging.errors import LaggingError, UsageError, did_you_mean

__all__ = ["Wrapped", "from_file"]

STOP = "stop-with-source"
TEXT_PATIENCE = 100
MODULE_PATIENCE = 2


class Wrapped:
    """A SimulEval agent or pipeline, as an agent of `lagging`.

    Attributes:
        system: the SimulEval agent.
        source, target: its types.
        chunkwise: True: it is called once for each read.
        must_finish: True for text, where an agent must say that it has finished; a speech agent may also stop writing.
        patience: how often it may answer nothing after the end of the source; modules of a pipeline may pass on late.
    """

    chunkwise = True

    def __init__(self, system: Any, package: Package, language: str | None = None, stop: bool = False) -> None:
        """Wrap an agent.

        Args:
            system: a SimulEval agent.
            package: SimulEval's modules.
            language: the target language, or a file with the language of each sentence.
            stop: whether a recording ends with its last chunk, as in SimulEval.
        """
        self.system, self._segments, self._stop = system, package.segments, stop
        self.source, self.target = self._types(system)
        self.must_finish = self.source == "text"
        modules = len(getattr(system, "module_list", (system,)))
        self.patience = TEXT_PATIENCE if self.must_finish else MODULE_PATIENCE * modules
        per_sentence = language is not None and Path(language).is_file()
        self._languages = read_text_lines(language) if per_sentence and language is not None else None
        self._language = None if per_sentence else language
        self._pushed = 0

    @staticmethod
    def _types(system: Any) -> tuple[str, str]:
        source, target = system.source_type, system.target_type
        kinds = ("text", "speech")
        if source in kinds and target in kinds:
            return source, target
        name = type(system).__name__
        if getattr(system, "output_index", 0) is None:
            raise UsageError(f"{name} has several outputs ({target}): say which is meant, -a output-index=0")
        raise UsageError(f"{name} is from {source} to {target}; what can be run is from text or speech to either")

    def reset(self) -> None:
        """Begin a sentence."""
        self.system.reset()
        self._pushed = 0

    def policy(self, state: State) -> Answer:
        """Push the new source and call the agent; only that time counts."""
        *before, last = self._new(state)
        system = self.system
        begin = perf_counter_ns()
        for segment in before:
            system.push(segment)
        out = system.pushpop(last)
        elapsed = perf_counter_ns() - begin
        return Timed(self._answer(out, state), elapsed / 1e9)

    def _new(self, state: State) -> list[Any]:
        """The source read since the last call, as segments."""
        begin, end = self._pushed, len(state.source)
        self._pushed = end
        rate, segments = state.sample_rate, self._segments
        if begin == end:
            return [segments.EmptySegment(index=end * 1000 / rate if rate else end, finished=True)]
        language = self._language_of(state.sentence)
        if not rate:
            return [
                segments.TextSegment(index, state.source[index], state.finished and index == end - 1, tgt_lang=language)
                for index in range(begin, end)
            ]
        samples, heard = state.source[begin:end].tolist(), end * 1000 / rate
        return [segments.SpeechSegment(heard, samples, state.finished, sample_rate=rate, tgt_lang=language)]

    def _language_of(self, sentence: int) -> str | None:
        if self._languages is None:
            return self._language
        if sentence >= len(self._languages):
            raise LaggingError(f"there is no language for sentence {sentence}: tgt-lang has {len(self._languages)}")
        return self._languages[sentence].strip()

    def _answer(self, out: Any, state: State) -> Write | None:
        """The output as an answer; an agent that finishes before its recording is reset, and continues."""
        if not isinstance(out, self._segments.Segment):
            raise Failure("wrong-type", f"a {type(out).__name__}, where a segment of {self.target} was due")
        finished = bool(out.finished)
        if self.source == "speech":
            if finished and not state.finished:
                self.system.reset()
            finished = state.finished and (finished or self._stop)
        if out.is_empty or not len(out.content):
            return Write(finished=True) if finished else None
        if self.target == "speech":
            rate = getattr(out, "sample_rate", -1)
            return Write(np.asarray(out.content, dtype=np.float32), finished, sample_rate=rate if rate > 0 else None)
        if not isinstance(out.content, str):
            raise Failure("wrong-type", f"{type(out.content).__name__}, where a text was due")
        return Write(out.content.split() if "▁" in out.content else out.content, finished)


def from_file(name: str, options: Mapping[str, str]) -> Wrapped:
    """The SimulEval agent in a file.

    Args:
        name: `file.py`, if one class in it is marked by `@entrypoint`, or `file.py:Class`.
        options: options of SimulEval's command line: `{"waitk": "3"}` for `--waitk 3`. `device`, `dtype` and `fp16`
            say where it runs. `tgt-lang` is a language, or a file with one for each sentence. With
            `stop-with-source=true` a recording ends where SimulEval ends it.

    Raises:
        UsageError: SimulEval is not installed, the file has no such agent, or its options are wrong.
    """
    package = import_simuleval()
    chosen = _find_class(name, package)
    stop_options = {key: text for key, text in options.items() if key.replace("_", "-") == STOP}
    if any(text.lower() not in ("true", "false") for text in stop_options.values()):
        raise UsageError(f"{STOP} is true or false, not {next(iter(stop_options.values()))!r}")
    args = parse(chosen, {key: text for key, text in options.items() if key not in stop_options})
    try:
        system = chosen.from_args(args)
    except MissingRunnerOption as error:
        raise UsageError(str(error)) from None
    system.to(args.device, fp16=args.dtype == "fp16" or (args.dtype is None and args.fp16))
    return Wrapped(system, package, args.tgt_lang, any(text.lower() == "true" for text in stop_options.values()))


def _find_class(name: str, package: Package) -> Any:
    """The class of the agent."""
    path, class_name = split_name(name)
    n_before = len(package.systems)
    module = load_module(path)
    members = list(vars(module).values())
    marked = [system for index, system in enumerate(package.systems) if index >= n_before or system in members]
    agents = {system.__name__: system for system in marked}
    generic = package.agents.GenericAgent
    if class_name is not None:
        chosen = agents.get(class_name, getattr(module, class_name, None))
        if not (isinstance(chosen, type) and issubclass(chosen, generic)):
            raise UsageError(f"{path} has no SimulEval agent {class_name!r}.{did_you_mean(class_name, agents)}")
        return chosen
    if len(agents) == 1:
        return next(iter(agents.values()))
    if agents:
        raise UsageError(f"{path} has several agents: {', '.join(agents)}; say which: {path}:{next(iter(agents))}")
    unmarked = [
        member.__name__
        for member in members
        if isinstance(member, type) and issubclass(member, generic) and member.__module__ == module.__name__
    ]
    hint = f"; say which class is meant: {path}:{unmarked[-1]}" if unmarked else ""
    if not unmarked and candidates(module):
        hint = f", but an agent of lagging: {next(iter(candidates(module)))}\n  fix: leave out --simuleval."
    raise UsageError(f"{path} has no class that is marked by @entrypoint{hint}")
