# SPDX-License-Identifier: Apache-2.0
"""What an agent is: something that is shown the source so far, and answers what to write now.

    nothing            READ: go on listening. After the end of the source: there is no more to say
    "see you"          WRITE: these words, and ask again before more source is read
    Write("you", …)    WRITE, and more: that the sentence is finished, that the last n tokens are taken back first
    Revise("see you")  this is the whole translation now, whatever stood there before (re-translation)
    several of these   as a list, or one after the other by `yield`

An agent is an object with `policy(state)`, and `reset()` if it keeps anything from one sentence for the next; a
function of the state is an agent too. Nothing has to be imported to write one.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union, runtime_checkable

from msgspec import Struct

from lagging.errors import UsageError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = [
    "DONE",
    "Agent",
    "Answer",
    "BatchedAgent",
    "Policy",
    "Revise",
    "State",
    "Timed",
    "Traits",
    "Write",
    "as_agent",
    "short",
    "whole",
]

Samples: TypeAlias = "npt.NDArray[np.float32]"

SILENCES = (0, 1000)
"""The range of `patience`."""
RATES = (1, 10_000_000)
"""The range of `sample_rate`."""
KINDS = ("text", "speech")


class State:
    """What an agent sees when it is asked.

    It is the same object for the whole of a sentence, and brought up to date before every call.

    Attributes:
        source: the source so far: a list of words (or characters, or pieces), or of speech an array of float32 samples.
        finished: whether that is all of it.
        target: what stands written: a list of tokens, or of output speech a list of arrays. What an agent wrote, it
            finds here; what it took back is gone.
        sample_rate: samples per second of the source; 0 for text.
        sentence: the number of the sentence in the test set, from 0.
        memory: whatever the agent wants to keep for this sentence; None when it begins.
        reference: the reference translation, for agents that declare `sees_reference`; None for all others.
        source_length: |x|, for them too.
    """

    __slots__ = ("finished", "memory", "reference", "sample_rate", "sentence", "source", "source_length", "target")

    def __init__(self, source: Any, sentence: int = 0, sample_rate: int = 0, reference: str | None = None) -> None:
        self.source: Any = source
        self.finished = False
        self.target: list[Any] = []
        self.sample_rate = sample_rate
        self.sentence = sentence
        self.memory: Any = None
        self.reference = reference
        self.source_length: float | None = None

    def __repr__(self) -> str:
        """`State(source=['a', 'b'], finished=False, target=[])`."""
        return f"State(source={self.source!r}, finished={self.finished}, target={self.target!r})"


class Write(Struct, frozen=True):
    """What to write, and what else there is to say.

    Attributes:
        content: a text, a list of tokens, or of output speech an array of samples.
        finished: whether the sentence is finished; the rest of the source is then not read.
        erase: how many of the last tokens to take back before.
        sample_rate: samples per second of output speech; the agent's own `sample_rate` if not given.

    Example:
        >>> Write("you", finished=True)
        Write(content='you', finished=True, erase=0, sample_rate=None)
    """

    content: str | Sequence[str] | Samples = ""
    finished: bool = False
    erase: int = 0
    sample_rate: int | None = None


class Revise(Struct, frozen=True):
    """The whole translation, anew: what it shares with the one before from its beginning on stays, the rest is erased.

    Attributes:
        content: a text, or a list of tokens.
        finished: whether the sentence is finished.

    Example:
        >>> Revise("see you soon")
        Revise(content='see you soon', finished=False)
    """

    content: str | Sequence[str] = ""
    finished: bool = False


class Timed(Struct, frozen=True):
    """An answer whose computing time was measured elsewhere, where it was computed.

    Attributes:
        answer: the answer.
        seconds: how long it took to compute.
    """

    answer: Answer
    seconds: float


DONE = Write(finished=True)
"""The sentence is finished, and there is nothing more to write."""

Answer: TypeAlias = Union[
    str, "Samples", Write, Revise, Timed, "list[Any]", "tuple[Answer, ...]", "Generator[Answer, None, None]", None
]
Policy: TypeAlias = Callable[[State], Answer]


@runtime_checkable
class Agent(Protocol):
    """Whatever has `policy(state)`.

    What else it may have:

    - `reset()`, called before each sentence
    - `source = "speech"` and `target = "speech"`, if it is not from text to text
    - `chunkwise = True`, if it is to be asked once for every piece of source that is read, and not again after a write
    - `sample_rate`, of the speech that it writes
    - `eager = True`, if it is to be asked once before anything has been read
    - `sees_reference = True`, if it is an oracle that must know the reference translation, and how long the source is
    """

    def policy(self, state: State) -> Answer:
        """What to write now; nothing, to read on."""


@runtime_checkable
class BatchedAgent(Protocol):
    """An agent for many sentences at once, each with its own state; what it keeps of one goes into `state.memory`."""

    def policies(self, states: Sequence[State]) -> Sequence[Answer]:
        """What to write now in each of these sentences."""


@dataclass(frozen=True)
class Traits:
    """What an agent declares of itself, checked.

    Attributes:
        source, target: "text" or "speech".
        chunkwise: whether it is asked only after a read.
        eager: whether it is asked before the first read, too.
        batched: whether it takes many sentences at once.
        patience: how often it may answer nothing after the end of the source before that ends the sentence: 0 to 1000.
        must_finish: whether it has to say that it has finished, so that falling silent is a failure.
        sample_rate: of the speech that it writes; None if its answers say so.
        sees_reference: whether it is shown the reference, and the length of the source.

    Raises:
        UsageError: what it declares makes no sense, with everything that does not.
    """

    source: str = "text"
    target: str = "text"
    chunkwise: bool = False
    eager: bool = False
    batched: bool = False
    patience: int = 0
    must_finish: bool = False
    sample_rate: int | None = None
    sees_reference: bool = False

    def __post_init__(self) -> None:
        """Check them."""
        wrong = []
        for name, field in self.__dataclass_fields__.items():
            value = getattr(self, name)
            if isinstance(field.default, str):
                right, rule = isinstance(value, str) and value in KINDS, "'text' or 'speech'"
            elif isinstance(field.default, bool):
                right, rule = isinstance(value, bool), "True or False"
            else:
                low, high = SILENCES if name == "patience" else RATES
                number = whole(value, low, high)
                right, rule = number is not None or value is field.default, f"a whole number from {low} to {high}"
                object.__setattr__(self, name, number)  # one of NumPy's becomes one of Python's
            if not right:
                wrong.append(f"{name} = {short(value)}, but it is {rule}")
        if wrong:
            raise UsageError(
                f"what the agent declares of itself makes no sense: {'; '.join(wrong)}\n"
                "  fix: mend these attributes of the agent's class, or leave them out."
            )
        if self.source == "text" and self.target == "speech":
            raise UsageError("agents from text to speech cannot be run: the log of their delays would have no unit")

    @classmethod
    def of(cls, agent: object) -> Traits:
        """The traits of an agent.

        Example:
            >>> class Listener:
            ...     source = "speech"
            ...     def policy(self, state): ...
            >>> Traits.of(Listener()).source
            'speech'
        """
        fields = {name: getattr(agent, name) for name in cls.__dataclass_fields__ if hasattr(agent, name)}
        return cls(**{**fields, "batched": callable(getattr(agent, "policies", None))})


def whole(value: object, low: int, high: int) -> int | None:
    """A value as an int, if it is a whole number in a range; a truth value is none.

    Example:
        >>> whole(3, 0, 10), whole(True, 0, 10), whole(3.0, 0, 10), whole(11, 0, 10)
        (3, None, None, None)
    """
    if not isinstance(value, Integral) or isinstance(value, bool):
        return None
    return number if low <= (number := int(value)) <= high else None


def short(value: object) -> str:
    """A value, as a reason shows it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


class _Function:
    """A function of the state, as an agent."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        for name in Traits.__dataclass_fields__:
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))


def as_agent(agent: Any) -> Any:
    """An agent, from an agent or a function of the state.

    Raises:
        UsageError: it has neither `policy` nor `policies`, and cannot be called.

    Example:
        >>> def copy(state):
        ...     unseen = state.source[len(state.target):]
        ...     return unseen[0] if unseen else None
        >>> as_agent(copy).policy is copy
        True
    """
    if isinstance(agent, type):
        raise UsageError(f"{agent.__name__} is a class: give an instance, {agent.__name__}()")
    if callable(getattr(agent, "policy", None)) or callable(getattr(agent, "policies", None)):
        return agent
    if callable(agent):
        return _Function(agent)
    raise UsageError(f"an agent has `policy(state)`, or is a function of the state; {agent!r} is neither")
