# SPDX-License-Identifier: Apache-2.0
"""Run a speech processor of simulstream, unchanged, as an agent of `lagging`.

A processor gets the samples of a chunk, and answers the tokens that are new and those that are deleted. At the end of
the stream it is called once more, without samples.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from time import perf_counter_ns
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from lagging.agents.failures import Failure
from lagging.agents.loading import load_module, parse_value, split_name
from lagging.agents.protocol import Answer, State, Timed, Write
from lagging.errors import UsageError, did_you_mean

__all__ = ["Wrapped", "from_name", "import_simulstream"]

RATE = 16_000
LANGUAGES = {"src_lang": "set_source_language", "tgt_lang": "set_target_language"}
"""Options of simulstream's command line, and the methods that take them."""


def import_simulstream() -> ModuleType:
    """The module `simulstream.server.speech_processors`.

    Raises:
        UsageError: simulstream is not installed.
    """
    try:
        return importlib.import_module("simulstream.server.speech_processors")
    except ImportError as error:
        raise UsageError(
            f"speech processors need simulstream's package: {error}\n  fix: pip install --no-deps simulstream"
        ) from None


class Wrapped:
    """A speech processor, as an agent of `lagging`.

    Attributes:
        processor: the speech processor.
        source: "speech".
        chunkwise: True: it is called once for each chunk.
        patience: it is called once more after the end of the source.
    """

    source = "speech"
    chunkwise = True
    patience = 1

    def __init__(self, processor: Any, languages: Mapping[str, str] | None = None) -> None:
        """Wrap a processor; `languages` has `src_lang` and `tgt_lang`, where they are given."""
        self.processor = processor
        self._languages = dict(languages or {})
        self._heard = 0
        self._ended = False

    def reset(self) -> None:
        """Begin a recording."""
        self.processor.clear()
        for name, language in self._languages.items():
            getattr(self.processor, LANGUAGES[name])(language)
        self._heard, self._ended = 0, False

    def policy(self, state: State) -> Answer:
        """Give the new samples to the processor; only its time counts."""
        if self._ended:
            return None
        if state.sample_rate != RATE:
            raise Failure("wrong-type", f"a recording of {state.sample_rate} Hz, where {RATE} Hz are needed")
        chunk = np.array(state.source[self._heard :], dtype=np.float32)
        size = self.processor.speech_chunk_size
        if not state.finished and len(chunk) < size * RATE:
            return None  # more is read first
        self._heard = len(state.source)
        begin = perf_counter_ns()
        outputs = [self.processor.process_chunk(chunk)] if len(chunk) else []
        if state.finished and len(chunk) < size * RATE:
            self._ended = True
            outputs.append(self.processor.end_of_stream())
        seconds = (perf_counter_ns() - begin) / 1e9
        return Timed([self._answer(output, self._ended and output is outputs[-1]) for output in outputs], seconds)

    @staticmethod
    def _answer(output: Any, finished: bool) -> Write:
        tokens, deleted = getattr(output, "new_tokens", None), getattr(output, "deleted_tokens", None)
        if not isinstance(tokens, list) or not isinstance(deleted, list):
            raise Failure("wrong-type", f"a {type(output).__name__}, where an IncrementalOutput was due")
        return Write(list(filter(None, tokens)), finished, erase=len(list(filter(None, deleted))))


def from_name(name: str, options: Mapping[str, str]) -> Wrapped:
    """The speech processor of a name.

    Args:
        name: `module:Class`, or `file.py:Class`.
        options: its configuration, as the YAML file of simulstream has it: `{"speech_chunk_size": "1"}`; JSON values
            are converted. `src-lang` and `tgt-lang` are the languages.

    Raises:
        UsageError: simulstream is not installed, there is no such class, or it has no size of chunks.
    """
    package = import_simulstream()
    path, class_name = split_name(name)
    if class_name is None:
        raise UsageError(f"{name!r} names no speech processor\n  fix: give module:Class, or file.py:Class.")
    if path.endswith(".py"):
        module = load_module(path)
    else:
        try:
            module = importlib.import_module(path)
        except ModuleNotFoundError as error:
            raise UsageError(f"{path} cannot be imported: {error}") from None
    chosen = getattr(module, class_name, None)
    if not (isinstance(chosen, type) and issubclass(chosen, package.SpeechProcessor)):
        processors = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type)
            and issubclass(value, package.SpeechProcessor)
            and value.__module__ == module.__name__
        ]
        raise UsageError(f"{path} has no speech processor {class_name!r}.{did_you_mean(class_name, processors)}")
    given = {key.replace("-", "_"): text for key, text in options.items()}
    languages = {key: given.pop(key) for key in LANGUAGES if key in given}
    config = SimpleNamespace(type=name, **{key: parse_value(text) for key, text in given.items()})
    processor_class: Any = chosen
    processor_class.load_model(config)
    processor = processor_class(config)
    try:
        size = float(processor.speech_chunk_size)
    except (AttributeError, TypeError, ValueError):
        size = 0.0
    if not size > 0:
        raise UsageError(f"{class_name} has no size of chunks\n  fix: give it in seconds, -a speech_chunk_size=1.")
    return Wrapped(processor, languages)
