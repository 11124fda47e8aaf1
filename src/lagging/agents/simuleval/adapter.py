# SPDX-License-Identifier: Apache-2.0
"""A SimulEval agent, unchanged, as an agent of ours.

SimulEval pushes a segment into an agent and asks it once; every answer, also a write, is followed by the next segment.
So its agents are `chunkwise`. When the source has ended, empty segments that are finished follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.agents.loading import candidates, load, split
from lagging.agents.protocol import Answer, State, Timed, Write
from lagging.agents.simuleval.arguments import NotGiven, parse
from lagging.agents.simuleval.package import Package, import_simuleval
from lagging.agents.sources import lines_of
from lagging.errors import LaggingError, UsageError, did_you_mean

__all__ = ["Wrapped", "from_file"]

STOP = "stop-with-source"
SILENCES_OF_TEXT = 100
SILENCES_OF_A_MODULE = 2


class Wrapped:
    """A SimulEval agent or pipeline, as one of ours.

    Attributes:
        system: the agent.
        source, target: its types.
        chunkwise: yes; it is asked once for each read.
        must_finish: of text, an agent says when it has finished; of speech, it may also fall silent.
        patience: how often it may be silent after the end, as the modules of a pipeline may still pass things on.
    """

    chunkwise = True

    def __init__(self, system: Any, package: Package, language: str | None = None, stop: bool = False) -> None:
        """Wrap an agent.

        Args:
            system: a SimulEval agent.
            package: SimulEval's modules.
            language: what to translate into, or a file with the language of each sentence.
            stop: whether a recording ends with its last chunk, as in SimulEval.
        """
        self.system, self._segments, self._stop = system, package.segments, stop
        self.source, self.target = self._types(system)
        self.must_finish = self.source == "text"
        modules = len(getattr(system, "module_list", (system,)))
        self.patience = SILENCES_OF_TEXT if self.must_finish else SILENCES_OF_A_MODULE * modules
        of_each = language is not None and Path(language).is_file()
        self._languages = lines_of(language) if of_each and language is not None else None
        self._language = None if of_each else language
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
        """Push what is new, and ask; only the time of that counts."""
        *before, last = self._new(state)
        system = self.system
        begin = perf_counter_ns()
        for segment in before:
            system.push(segment)
        out = system.pushpop(last)
        took = perf_counter_ns() - begin
        return Timed(self._answer(out, state), took / 1e9)

    def _new(self, state: State) -> list[Any]:
        """What has been read since it was last asked, as segments."""
        begin, end = self._pushed, len(state.source)
        self._pushed = end
        rate, segments = state.sample_rate, self._segments
        if begin == end:
            return [segments.EmptySegment(index=end * 1000 / rate if rate else end, finished=True)]
        language = self._language_of(state.sentence)
        if not rate:
            return [
                segments.TextSegment(place, state.source[place], state.finished and place == end - 1, tgt_lang=language)
                for place in range(begin, end)
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
        """What came out, as our answer; an agent that has finished before its recording has, goes on with the rest."""
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
    """The SimulEval agent in a file, unchanged.

    Args:
        name: `file.py`, if one class in it is marked by `@entrypoint`, or `file.py:Class`.
        options: what SimulEval's command line would be given: `{"waitk": "3"}` for `--waitk 3`. `device`, `dtype` and
            `fp16` say where it runs; `tgt-lang` is a language, or a file with one for each sentence; with
            `stop-with-source=true` a recording ends where SimulEval ends it.

    Raises:
        UsageError: SimulEval is not installed, the file has no such agent, or its options are wrong.
    """
    package = import_simuleval()
    chosen = _chosen(name, package)
    own = {key: text for key, text in options.items() if key.replace("_", "-") == STOP}
    if any(text.lower() not in ("true", "false") for text in own.values()):
        raise UsageError(f"{STOP} is true or false, not {next(iter(own.values()))!r}")
    args = parse(chosen, {key: text for key, text in options.items() if key not in own})
    try:
        system = chosen.from_args(args)
    except NotGiven as error:
        raise UsageError(str(error)) from None
    system.to(args.device, fp16=args.dtype == "fp16" or (args.dtype is None and args.fp16))
    return Wrapped(system, package, args.tgt_lang, any(text.lower() == "true" for text in own.values()))


def _chosen(name: str, package: Package) -> Any:
    """The class that is meant."""
    path, wanted = split(name)
    before = len(package.systems)
    module = load(path)
    here = list(vars(module).values())
    marked = [one for place, one in enumerate(package.systems) if place >= before or one in here]
    found = {one.__name__: one for one in marked}
    generic = package.agents.GenericAgent
    if wanted is not None:
        chosen = found.get(wanted, getattr(module, wanted, None))
        if not (isinstance(chosen, type) and issubclass(chosen, generic)):
            raise UsageError(f"{path} has no SimulEval agent {wanted!r}.{did_you_mean(wanted, found)}")
        return chosen
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise UsageError(f"{path} has several agents: {', '.join(found)}; say which: {path}:{next(iter(found))}")
    others = [
        one.__name__
        for one in here
        if isinstance(one, type) and issubclass(one, generic) and one.__module__ == module.__name__
    ]
    which = f"; say which class is meant: {path}:{others[-1]}" if others else ""
    if not others and candidates(module):
        which = f", but an agent of ours: {next(iter(candidates(module)))}\n  fix: leave out --simuleval."
    raise UsageError(f"{path} has no class that is marked by @entrypoint{which}")
