# SPDX-License-Identifier: Apache-2.0
"""One sentence: READ and WRITE by turns, until the agent has finished.

`Sentence.steps()` is the loop, and the only one. It gives out a state whenever the agent is to be asked, and takes its
answer and how long that took. So one sentence can be driven alone, or many at once for an agent that takes them in
batches; the agent may be here or on another machine, and nobody else's time is counted but the agent's.

Time is simulated, unless it is real: a step's source arrives when that much of the source has been spoken, and what was
measured is how long the agent computed. Arrival and computing time are what the queue clock needs.

Every sentence ends: its calls, its tokens, their bytes and its time are bounded, by what the agent reports and by the
clock on the wall.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Integral, Real
from typing import Any, Protocol

from lagging.agents.failures import Failure
from lagging.agents.hypothesis import Hypothesis
from lagging.agents.protocol import RATES, Answer, Revise, State, Timed, Traits, Write, short, whole
from lagging.agents.sources import Spoken, Written, as_floats

__all__ = ["Limits", "Sentence"]

NS = 1_000_000_000
MS = 1_000_000
WIDEST = 4
"""Bytes of the widest letter."""
LONGEST = 1e9
"""Seconds that an answer can have taken."""
MiB, KiB = 1 << 20, 1 << 10


@dataclass(frozen=True)
class Limits:
    """How far an agent may go.

    Times are those that the agent is charged for: measured here, or reported by whoever measured them elsewhere. What
    passes here while the answers are waited for is bounded by the same numbers, whatever is reported.

    Attributes:
        step: seconds for one answer.
        sentence: seconds for all answers of a sentence.
        tokens: how many tokens, and revisions, a sentence may have; if not given, 1000 and 10 for each source token or
            tenth of a second.
        calls: how often the agent is asked in a sentence; if not given, once for each read, and twice for each token
            that the sentence may have.
        bytes: of what stands written, and so of one answer; if not given, 16 MiB of text, or 64 MiB of samples and 64
            KiB for each tenth of a second of the source.
    """

    step: float = 300.0
    sentence: float = 3600.0
    tokens: int | None = None
    calls: int | None = None
    bytes: int | None = None

    def of(self, source: Written | Spoken) -> int:
        """How many tokens a translation of this source may have."""
        return _usual_tokens(source) if self.tokens is None else self.tokens

    def calls_of(self, source: Written | Spoken) -> int:
        """How often an agent is asked about this source; not less where it may write less, as it may still wait."""
        if self.calls is not None:
            return self.calls
        return source.reads + 2 * max(self.of(source), _usual_tokens(source))

    def bytes_of(self, source: Written | Spoken, target: str) -> int:
        """How many bytes a translation of this source into text or speech may have."""
        if self.bytes is not None:
            return self.bytes
        return 16 * MiB if target == "text" else 64 * MiB + 64 * KiB * int(source.length / 100)


def _usual_tokens(source: Written | Spoken) -> int:
    return 1000 + int(10 * source.length if isinstance(source, Written) else source.length / 10)


class Pulse(Protocol):
    """Where it is noted that a step has begun, for somebody who watches: when, in ns; 0 if none is under way."""

    def __setitem__(self, place: int, value: int, /) -> None:
        """Set it."""


class Wall:
    """Real time: source that has not been spoken yet is waited for."""

    def __init__(self, pace: float = 1.0) -> None:
        """`pace`: ms that a unit of the source lasts; 1 for speech, whose unit is the ms."""
        self.pace = pace
        self.begin = 0

    def start(self) -> None:
        """The source begins."""
        self.begin = time.perf_counter_ns()

    def wait(self, read: float) -> None:
        """Until so much has been spoken."""
        left = self.begin + read * self.pace * MS - time.perf_counter_ns()
        if left > 0:
            time.sleep(left / NS)

    def now(self) -> float:
        """Ms since the source began."""
        return (time.perf_counter_ns() - self.begin) / MS


@dataclass(eq=False)
class Sentence:
    """A sentence under way, and, when it is over, what happened in it.

    Attributes:
        source: what is listened to.
        traits: of the agent.
        limits: how far it may go.
        place: number in the test set.
        joined_by, level: how what it writes becomes a text, and what of it is counted.
        reference: for agents that must see it.
        wall: real time; None if it is simulated.
        state: what the agent sees.
        arrivals: of each step, how much source had been read.
        compute: how long it took, in ns.
        starts, finishes: when it began and ended, in ms since the source began; in real time only.
        hypothesis: what stands written.
        pieces: of output speech, the samples; with `rates` and the step that wrote each (`owners`).
        pulse: where it is noted when a step began, until its answer has been taken over.
    """

    source: Written | Spoken
    traits: Traits
    limits: Limits = Limits()
    place: int = 0
    joined_by: str = "word"
    level: str = "word"
    reference: str | None = None
    wall: Wall | None = None
    arrivals: list[float] = field(default_factory=list)
    compute: list[int] = field(default_factory=list)
    starts: list[float] = field(default_factory=list)
    finishes: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open the state."""
        self.state = State(self.source.seen, self.place, self.source.sample_rate, self.reference)
        self.state.source_length = self.source.length if self.traits.sees_reference else None
        self.hypothesis = Hypothesis(self.state.target, self.joined_by, self.level)
        self.rates: list[int] = []
        self.done = False
        self._most = self.limits.of(self.source)
        self._most_bytes = self.limits.bytes_of(self.source, self.traits.target)
        self._bytes = 0
        self.pulse: Pulse = [0]

    def steps(self) -> Generator[State, tuple[Answer, int], None]:
        """The loop: gives the state out when the agent is to be asked, takes its answer and the ns that it took.

        Raises:
            Failure: the agent has done what it must not.
        """
        source, state, wall = self.source, self.state, self.wall
        arrivals, compute = self.arrivals, self.compute
        chunkwise, hypothesis, text = self.traits.chunkwise, self.hypothesis, self.traits.target == "text"
        step_ns, sentence_ns = (int(min(limit, LONGEST) * NS) for limit in (self.limits.step, self.limits.sentence))
        most = self._most
        calls = self.limits.calls_of(source)
        idle = spent = passed = acts = 0
        if wall is not None:
            wall.start()  # not before the agent is ready
        if not self.traits.eager:
            self._read()
        for step in range(calls):
            if wall is not None:
                self.starts.append(wall.now())
            answer, waited = yield state
            took = waited
            if isinstance(answer, Timed):
                took = _reported(answer.seconds)
                answer = answer.answer
            compute.append(took)
            arrivals.append(source.read)
            spent += took
            passed += waited
            if wall is not None:
                self.finishes.append(wall.now())
            if took > step_ns or waited > step_ns:
                raise _late("step-limit", self.limits.step, took > step_ns)
            if spent > sentence_ns or passed > sentence_ns:
                raise _late("sentence-limit", self.limits.sentence, spent > sentence_ns)
            if answer is None:
                wrote = False
            elif text and type(answer) is str:
                self._hold(answer)
                wrote = hypothesis.write(answer, step)
            elif type(answer) is Write:
                wrote = self._write(answer, step)
            else:
                wrote = self._act(answer, step)
            if wrote:
                acts += 1
                if len(hypothesis.pieces) > most or acts > most:
                    raise _endless(most)
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
        if self.wall is not None:
            self.pulse[0] = 0  # nobody is late who waits for the source
            self.wall.wait(source.read)

    def _act(self, answer: Any, step: int) -> bool:
        """Take any answer over; whether something was written by it."""
        if isinstance(answer, Write):
            return self._write(answer, step)
        if isinstance(answer, (list, tuple)):
            wrote = False
            for one in answer:
                if not self.done:
                    wrote |= one is not None and self._act(one, step)
                elif not _is_nothing(one):
                    raise Failure("after-finish", short(one))
            return wrote
        if isinstance(answer, Revise):
            self._check_text(answer.content)
            self._hold(answer.content, stands=False)
            changed = self.hypothesis.revise(answer.content, step)
            self.done = answer.finished
            return changed
        if _is_content(answer):
            return self._write(Write(answer), step)
        raise Failure("wrong-type", short(answer))

    def _write(self, answer: Write, step: int) -> bool:
        content, count = answer.content, answer.erase
        if count != 0 and (not isinstance(count, Integral) or count < 0):
            raise Failure("wrong-type", f"erase={short(count)}")
        if self.traits.target == "speech":
            return self._speak(answer, step)
        if type(content) is not str:
            self._check_text(content)
        if count:
            gone = self.hypothesis.pieces[-int(count) :]
            self.hypothesis.erase(int(count), step)
            self._bytes -= sum(map(_size, gone))
        self._hold(content)  # type: ignore[arg-type]
        self.done = answer.finished
        return self.hypothesis.write(content, step) or count > 0  # type: ignore[arg-type]

    def _hold(self, content: str | Sequence[str], stands: bool = True) -> None:
        """Look at how long a text is before it is taken over.

        Bytes are counted as if every letter were the widest, and exactly where that would be too many.

        Args:
            content: the text.
            stands: whether what has been written stays.
        """
        letters = len(content) if isinstance(content, str) else sum(map(len, content))
        held = WIDEST * letters + (self._bytes if stands else 0)
        if held > self._most_bytes or letters > 2 * self._most:
            held = self._measure(content, letters, stands)
        self._bytes = held

    def _measure(self, content: str | Sequence[str], letters: int, stands: bool) -> int:
        """The bytes of a long text and of what stands before it, if it is not too long."""
        before = sum(map(_size, self.hypothesis.pieces)) if stands else 0
        texts = (content,) if isinstance(content, str) else content
        if before + letters > self._most_bytes or (held := before + sum(map(_size, texts))) > self._most_bytes:
            raise self._too_long()
        if any(self.hypothesis.has_more(text, self._most) for text in texts):
            raise _endless(self._most)
        return held

    def _too_long(self) -> Failure:
        return Failure("never-finished", f"more than {self._most_bytes} bytes, which is the limit (--byte-limit)")

    def _speak(self, answer: Write, step: int) -> bool:
        if isinstance(answer.content, str) and answer.content:
            raise Failure("wrong-type", f"{short(answer.content)}, from an agent that writes speech")
        if answer.erase:
            raise Failure("erased-too-much", "speech cannot be taken back")
        samples = as_floats(answer.content if not isinstance(answer.content, str) else ())
        self.done = answer.finished
        if not len(samples):
            return False
        if not answer.sample_rate and not self.traits.sample_rate:
            raise Failure("wrong-type", "speech without a sample_rate: give Write(samples, sample_rate=…)")
        if (rate := whole(answer.sample_rate or self.traits.sample_rate, *RATES)) is None:
            right = f"a whole number from {RATES[0]} to {RATES[1]}"
            raise Failure("wrong-type", f"sample_rate={short(answer.sample_rate)}, but it is {right}")
        if self.rates and rate != self.rates[0]:
            raise Failure("wrong-type", f"speech at {rate} samples a second, after speech at {self.rates[0]}")
        self._bytes += samples.nbytes
        if self._bytes > self._most_bytes:
            raise self._too_long()
        self.state.target.append(samples)
        self.hypothesis.owners.append(step)
        self.rates.append(rate)
        return True

    def _check_text(self, content: Any) -> None:
        if self.traits.target == "speech":
            raise Failure("wrong-type", f"{short(content)}, from an agent that writes speech")
        if isinstance(content, str):
            return
        if not isinstance(content, (list, tuple)) or not all(isinstance(piece, str) for piece in content):
            raise Failure("wrong-type", short(content))

    def drain(self, answers: Iterator[Answer]) -> list[Answer]:
        """What an agent yields in one step.

        Raises:
            Failure: there is no end to it.
        """
        some = list(islice(answers, self._most + 2))
        if len(some) > self._most + 1:
            raise Failure("never-finished", f"{self._most} answers to one question, which is the limit")
        return some

    def finish(self) -> None:
        """Look at what stands in the end.

        Raises:
            Failure: nothing does, though there was something to translate; or somebody else changed it.
        """
        said, target = self.hypothesis, self.state.target
        if target is not said.pieces or len(target) != len(said.owners):
            raise Failure("changed-state", "`state.target` is for reading; what is to be written is returned")
        if self.traits.target == "speech":
            blank = not target
        else:
            try:
                "".join(target).encode()
                blank = said.is_blank()
            except UnicodeEncodeError as error:
                which = short(error.object[error.start])
                raise Failure("wrong-type", f"{which} is half a character, or none that pieces are made of") from None
        if blank and self.source.length:
            raise Failure("nothing-written")


def _is_content(answer: Any) -> bool:
    """A text or samples, and not several answers."""
    return isinstance(answer, str) or hasattr(answer, "__array__")


def _is_nothing(answer: Any) -> bool:
    """Whether an answer, after the agent has finished, changes nothing."""
    content = answer.content if isinstance(answer, Write) and not answer.erase else answer
    return (
        content is None or (isinstance(content, (str, list, tuple)) and not content) or not getattr(content, "size", 1)
    )


def _size(text: str) -> int:
    """Bytes of a text, also of one that cannot be written."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _reported(seconds: Any) -> int:
    """A time that was measured elsewhere, in ns."""
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not 0 <= float(seconds) <= LONGEST:
        raise Failure("wrong-type", f"seconds={short(seconds)}, but they are a number from 0 to {LONGEST:g}")
    return int(float(seconds) * NS)


def _endless(most: int) -> Failure:
    """More tokens than there may be."""
    return Failure("never-finished", f"{most} tokens or writes, which is the limit (--token-limit)")


def _late(kind: str, seconds: float, charged: bool) -> Failure:
    """More time than there is, of what the agent is charged for or else on the wall."""
    return Failure(kind, f"more than {seconds:g} s{'' if charged else ' by the clock on the wall'}")
