# SPDX-License-Identifier: Apache-2.0
"""One sentence: READ and WRITE actions in turn, until the agent has finished.

`Sentence.steps()` is the only such loop. It yields a state whenever the agent is to be called, and receives the answer
and how long it took. So a sentence can be run alone, or with others in a batch; the agent may be in this process or on
another machine, and only the agent's own time is counted.

Time is simulated unless it is real: the source of a step arrives when that much of it has been spoken, and what is
measured is how long the agent computed. The queue clock needs both, arrival and computing time.

Every sentence ends: the number of calls, tokens and bytes is limited, and so is the time, both as the agent reports it
and as it passes here.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Real
from types import GeneratorType
from typing import Any, Protocol

from lagging.agents.failures import Failure
from lagging.agents.hypothesis import Hypothesis
from lagging.agents.protocol import SAMPLE_RATES, Answer, Revise, State, Timed, Traits, Write, int_in_range, shorten
from lagging.agents.sources import SpeechSource, TextSource, as_floats

__all__ = ["Limits", "Sentence"]

NS = 1_000_000_000
MS = 1_000_000
WIDEST = 4
"""Largest number of bytes of a character in UTF-8."""
LONGEST = 1e9
"""Largest number of seconds that a remote agent may report for an answer."""
MiB, KiB = 1 << 20, 1 << 10


@dataclass(frozen=True)
class Limits:
    """Limits for an agent.

    The time limits hold for the time that the agent is charged for, which is measured here or reported by a remote
    agent, and also for the time that passes here while answers are awaited.

    Attributes:
        step: seconds for one answer.
        sentence: seconds for all answers of a sentence.
        tokens: largest number of tokens, and of revisions, of a sentence; by default 1000, plus 10 for each source
            token or tenth of a second.
        calls: largest number of calls for a sentence; by default one for each read, plus two for each token that the
            sentence may have.
        bytes: largest size of a translation, and so of one answer; by default 16 MiB of text, or 64 MiB of samples
            plus 64 KiB for each tenth of a second of the source.
    """

    step: float = 300.0
    sentence: float = 3600.0
    tokens: int | None = None
    calls: int | None = None
    bytes: int | None = None

    def max_tokens(self, source: TextSource | SpeechSource) -> int:
        """The largest number of tokens of a translation of this source."""
        return _usual_tokens(source) if self.tokens is None else self.tokens

    def max_calls(self, source: TextSource | SpeechSource) -> int:
        """The largest number of calls for this source; a lower token limit does not lower it, as agents may wait."""
        if self.calls is not None:
            return self.calls
        return source.reads + 2 * max(self.max_tokens(source), _usual_tokens(source))

    def max_bytes(self, source: TextSource | SpeechSource, target: str) -> int:
        """The largest number of bytes of a translation of this source into text or speech."""
        if self.bytes is not None:
            return self.bytes
        return 16 * MiB if target == "text" else 64 * MiB + 64 * KiB * int(source.length / 100)


def _usual_tokens(source: TextSource | SpeechSource) -> int:
    return 1000 + int(10 * source.length if isinstance(source, TextSource) else source.length / 10)


class Heartbeat(Protocol):
    """Where a step notes when it began, for the supervising process: ns, or 0 between steps."""

    def __setitem__(self, index: int, value: int, /) -> None:
        """Set it."""


class RealTime:
    """Real time: reads wait until the source has been spoken."""

    def __init__(self, pace: float = 1.0) -> None:
        """`pace`: ms that a unit of the source lasts; 1 for speech, whose unit is the ms."""
        self.pace = pace
        self.begin = 0

    def start(self) -> None:
        """Note that the source begins now."""
        self.begin = time.perf_counter_ns()

    def wait(self, read: float) -> None:
        """Wait until this much of the source has been spoken."""
        left = self.begin + read * self.pace * MS - time.perf_counter_ns()
        if left > 0:
            time.sleep(left / NS)

    def now(self) -> float:
        """Ms since the source began."""
        return (time.perf_counter_ns() - self.begin) / MS


@dataclass(eq=False)
class Sentence:
    """A sentence in progress, and afterwards the record of it.

    Attributes:
        source: the source sentence.
        traits: what the agent declares.
        limits: limits for the agent.
        index: index in the test set.
        joined_by, level: how the written pieces are joined to a text, and which of its units get a delay.
        reference: for agents that see it.
        real_time: the clock of a run in real time; None if time is simulated.
        state: what the agent sees.
        arrivals: for each step, how much source had been read.
        compute: for each step, how long the agent computed, in ns.
        starts, finishes: for each step, when it began and ended, in ms since the source began; in real time only.
        hypothesis: what has been written.
        pieces: the samples of output speech, with their `rates` and the step that wrote each (`owners`).
        heartbeat: where the beginning of a step is noted until its answer has been applied.
    """

    source: TextSource | SpeechSource
    traits: Traits
    limits: Limits = Limits()
    index: int = 0
    joined_by: str = "word"
    level: str = "word"
    reference: str | None = None
    real_time: RealTime | None = None
    arrivals: list[float] = field(default_factory=list)
    compute: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the state."""
        self.state = State(self.source.seen, self.index, self.source.sample_rate, self.reference)
        self.state.source_length = self.source.length if self.traits.sees_reference else None
        self.hypothesis = Hypothesis(self.state.target, self.joined_by, self.level)
        self.rates: list[int] = []
        self.done = False
        self._max_tokens = self.limits.max_tokens(self.source)
        self._max_bytes = self.limits.max_bytes(self.source, self.traits.target)
        self._bytes = 0
        self.heartbeat: Heartbeat = [0]

    def steps(self) -> Generator[State, tuple[Answer, int], None]:
        """The loop: yields the state when the agent is to be called; is sent the answer and the ns that it took.

        Raises:
            Failure: the agent broke a rule or a limit.
        """
        source, state, real_time = self.source, self.state, self.real_time
        arrivals, compute = self.arrivals, self.compute
        chunkwise, hypothesis, text = self.traits.chunkwise, self.hypothesis, self.traits.target == "text"
        step_ns, sentence_ns = (int(min(limit, LONGEST) * NS) for limit in (self.limits.step, self.limits.sentence))
        max_tokens = self._max_tokens
        calls = self.limits.max_calls(source)
        idle = total_charged_ns = total_wall_ns = acts = 0
        if real_time is not None:
            real_time.start()  # after the agent has been reset
        if not self.traits.eager:
            self._read()
        for step in range(calls):
            if real_time is not None:
                self.starts.append(real_time.now())
            answer, wall_ns = yield state
            charged_ns = wall_ns
            if isinstance(answer, Timed):
                charged_ns = _reported(answer.seconds)
                answer = answer.answer
            compute.append(charged_ns)
            arrivals.append(source.read)
            total_charged_ns += charged_ns
            total_wall_ns += wall_ns
            if real_time is not None:
                self.finishes.append(real_time.now())
            if charged_ns > step_ns or wall_ns > step_ns:
                raise _time_limit_failure("step-limit", self.limits.step, charged_ns > step_ns)
            if total_charged_ns > sentence_ns or total_wall_ns > sentence_ns:
                raise _time_limit_failure("sentence-limit", self.limits.sentence, total_charged_ns > sentence_ns)
            if answer is None:
                wrote = False
            elif text and type(answer) is str:
                self._check_size(answer)
                wrote = hypothesis.write(answer, step)
            elif type(answer) is Write:
                wrote = self._write(answer, step)
            else:
                wrote = self._apply(answer, step)
            if wrote:
                acts += 1
                if len(hypothesis.pieces) > max_tokens or acts > max_tokens:
                    raise _token_limit_failure(max_tokens)
            if self.done:
                return
            if state.finished:
                if wrote:
                    idle = 0
                elif idle == self.traits.patience:
                    if self.traits.must_finish:
                        raise Failure(
                            "never-finished", f"asked {idle + 1} times after the source had ended, it read on"
                        )
                    return
                else:
                    idle += 1
            elif not wrote or chunkwise:
                self._read()
        raise Failure("never-finished", f"{calls} calls, which is the limit (--call-limit)")

    def _read(self) -> None:
        source, state = self.source, self.state
        state.source = source.advance()
        state.finished = source.finished
        if self.real_time is not None:
            self.heartbeat[0] = 0  # waiting for the source does not count as a step
            self.real_time.wait(source.read)

    def _apply(self, answer: Any, step: int) -> bool:
        """Apply any answer; whether it wrote something."""
        if isinstance(answer, Write):
            return self._write(answer, step)
        if isinstance(answer, (list, tuple)):
            wrote = False
            for part in answer:
                if not self.done:
                    wrote |= part is not None and self._apply(part, step)
                elif not _is_nothing(part):
                    raise Failure("after-finish", shorten(part))
            return wrote
        if isinstance(answer, Revise):
            self._check_text(answer.content)
            self._check_size(answer.content, stands=False)
            changed = self.hypothesis.revise(answer.content, step)
            self.done = answer.finished
            return changed
        if _is_content(answer):
            return self._write(Write(answer), step)
        raise Failure("wrong-type", shorten(answer))

    def _write(self, answer: Write, step: int) -> bool:
        content = answer.content
        count: Any = answer.erase  # an agent may give anything
        if count != 0 and (not isinstance(count, Integral) or count < 0):
            raise Failure("wrong-type", f"erase={shorten(count)}")
        if self.traits.target == "speech":
            return self._write_speech(answer, step)
        if type(content) is not str:
            self._check_text(content)
        if count:
            gone = self.hypothesis.pieces[-int(count) :]
            self.hypothesis.erase(int(count), step)
            self._bytes -= sum(map(_n_bytes, gone))
        self._check_size(content)  # type: ignore[arg-type]
        self.done = answer.finished
        return self.hypothesis.write(content, step) or count > 0  # type: ignore[arg-type]

    def _check_size(self, content: str | Sequence[str], stands: bool = True) -> None:
        """Check how long a text is before it is written.

        Bytes are counted as if every character had the largest size, and exactly where that would exceed the limit.

        Args:
            content: the text.
            stands: whether the text that has been written stays.
        """
        letters = len(content) if isinstance(content, str) else sum(map(len, content))
        n_bytes = WIDEST * letters + (self._bytes if stands else 0)
        if n_bytes > self._max_bytes or letters > 2 * self._max_tokens:
            n_bytes = self._measure(content, letters, stands)
        self._bytes = n_bytes

    def _measure(self, content: str | Sequence[str], letters: int, stands: bool) -> int:
        """The bytes of a long text and of the text before it, if they are within the limit."""
        before = sum(map(_n_bytes, self.hypothesis.pieces)) if stands else 0
        texts = (content,) if isinstance(content, str) else content
        if before + letters > self._max_bytes or (n_bytes := before + sum(map(_n_bytes, texts))) > self._max_bytes:
            raise self._byte_limit_failure()
        if any(self.hypothesis.has_more(text, self._max_tokens) for text in texts):
            raise _token_limit_failure(self._max_tokens)
        return n_bytes

    def _byte_limit_failure(self) -> Failure:
        return Failure("never-finished", f"more than {self._max_bytes} bytes, which is the limit (--byte-limit)")

    def _write_speech(self, answer: Write, step: int) -> bool:
        if isinstance(answer.content, str) and answer.content:
            raise Failure("wrong-type", f"{shorten(answer.content)}, from an agent that writes speech")
        if answer.erase:
            raise Failure("erased-too-much", "speech cannot be taken back")
        samples = as_floats(answer.content if not isinstance(answer.content, str) else ())
        self.done = answer.finished
        if not len(samples):
            return False
        if not answer.sample_rate and not self.traits.sample_rate:
            raise Failure("wrong-type", "speech without a sample_rate: give Write(samples, sample_rate=…)")
        if (rate := int_in_range(answer.sample_rate or self.traits.sample_rate, *SAMPLE_RATES)) is None:
            rule = f"a whole number from {SAMPLE_RATES[0]} to {SAMPLE_RATES[1]}"
            raise Failure("wrong-type", f"sample_rate={shorten(answer.sample_rate)}, but it is {rule}")
        if self.rates and rate != self.rates[0]:
            raise Failure("wrong-type", f"speech at {rate} samples a second, after speech at {self.rates[0]}")
        self._bytes += samples.nbytes
        if self._bytes > self._max_bytes:
            raise self._byte_limit_failure()
        self.state.target.append(samples)
        self.hypothesis.owners.append(step)
        self.rates.append(rate)
        return True

    def _check_text(self, content: Any) -> None:
        if self.traits.target == "speech":
            raise Failure("wrong-type", f"{shorten(content)}, from an agent that writes speech")
        if isinstance(content, str):
            return
        if not isinstance(content, (list, tuple)) or not all(isinstance(piece, str) for piece in content):
            raise Failure("wrong-type", shorten(content))

    def collect_answers(self, answers: Any) -> Any:
        """The answers that an agent yields in one step, as a list; what is not yielded stays as it is.

        Raises:
            Failure: they are more than the limit.
        """
        if type(answers) is not GeneratorType:
            return answers
        collected = list(islice(answers, self._max_tokens + 2))
        if len(collected) > self._max_tokens + 1:
            raise Failure("never-finished", f"{self._max_tokens} answers to one question, which is the limit")
        return collected

    def finish(self) -> None:
        """Check the result.

        Raises:
            Failure: nothing was written, though the source is not empty; or the agent has changed `state.target`.
        """
        hypothesis, target = self.hypothesis, self.state.target
        if target is not hypothesis.pieces or len(target) != len(hypothesis.owners):
            raise Failure("changed-state", "`state.target` is for reading; what is to be written is returned")
        if self.traits.target == "speech":
            blank = not target
        else:
            try:
                "".join(target).encode()
                blank = hypothesis.is_blank()
            except UnicodeEncodeError as error:
                character = shorten(error.object[error.start])
                raise Failure(
                    "wrong-type", f"{character} is half a character, or none that pieces are made of"
                ) from None
        if blank and self.source.length:
            raise Failure("nothing-written")


def _is_content(answer: Any) -> bool:
    """Whether an answer is a text or samples, rather than several answers."""
    return isinstance(answer, str) or hasattr(answer, "__array__")


def _is_nothing(answer: Any) -> bool:
    """Whether an answer changes nothing, after the agent has finished."""
    content = answer.content if isinstance(answer, Write) and not answer.erase else answer
    return (
        content is None or (isinstance(content, (str, list, tuple)) and not content) or not getattr(content, "size", 1)
    )


def _n_bytes(text: str) -> int:
    """Bytes of a text in UTF-8; half of a surrogate pair counts too."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _reported(seconds: Any) -> int:
    """A time that was measured elsewhere, in ns."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 0 <= float(seconds) <= LONGEST:
        raise Failure("wrong-type", f"seconds={shorten(seconds)}, but they are a number from 0 to {LONGEST:g}")
    return int(float(seconds) * NS)


def _token_limit_failure(max_tokens: int) -> Failure:
    """The failure of a sentence with more tokens than the limit."""
    return Failure("never-finished", f"{max_tokens} tokens or writes, which is the limit (--token-limit)")


def _time_limit_failure(kind: str, seconds: float, charged: bool) -> Failure:
    """The failure of a step or sentence that took too long, by the charged time or by the time that passed here."""
    return Failure(kind, f"more than {seconds:g} s{'' if charged else ' by the clock on the wall'}")
