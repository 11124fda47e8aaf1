# SPDX-License-Identifier: Apache-2.0
"""The agent interface: an agent sees the source so far, and answers what to write now.

    None               READ: wait for more source. After the end of the source: the translation is complete
    "see you"          WRITE: these words; the agent is called again before more source is read
    Write("you", …)    WRITE with more settings: the sentence is finished, or the last n tokens are erased first
    Revise("see you")  replace the whole translation (re-translation)
    several of these   as a list, or one after the other by `yield`

An agent is an object with `policy(state)`, and with `reset()` if it keeps data between calls; a function of the state
is an agent too. Nothing has to be imported to write one.
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
    "int_in_range",
    "shorten",
]

Samples: TypeAlias = "npt.NDArray[np.float32]"

PATIENCE_RANGE = (0, 1000)
"""The range of `patience`."""
SAMPLE_RATES = (1, 10_000_000)
"""The range of `sample_rate`."""
KINDS = ("text", "speech")


class State:
    """What an agent sees when it is called.

    It is the same object for a whole sentence, updated before every call.

    Attributes:
        source: the source so far: a list of words (or characters, or pieces), or for speech a float32 array.
        finished: whether that is the whole source.
        target: the translation so far: a list of tokens, or for output speech a list of arrays. Erased tokens are
            not in it.
        sample_rate: samples per second of the source; 0 for text.
        sentence: the index of the sentence in the test set, from 0.
        memory: data that the agent keeps for this sentence; None when it begins.
        reference: the reference translation, for agents that declare `sees_reference`; None for all others.
        source_length: |x|, for the same agents; None for all others.
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
    """Write a text or samples.

    Attributes:
        content: a text, a list of tokens, or for output speech an array of samples.
        finished: whether the sentence is finished; the rest of the source is then not read.
        erase: how many of the last tokens to erase before.
        sample_rate: samples per second of output speech; by default the `sample_rate` of the agent.

    Example:
        >>> Write("you", finished=True)
        Write(content='you', finished=True, erase=0, sample_rate=None)
    """

    content: str | Sequence[str] | Samples = ""
    finished: bool = False
    erase: int = 0
    sample_rate: int | None = None


class Revise(Struct, frozen=True):
    """Replace the whole translation: the common prefix with the previous one stays, the rest is erased.

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
    """An answer whose computing time was measured where it was computed.

    Attributes:
        answer: the answer.
        seconds: the computing time.
    """

    answer: Answer
    seconds: float


DONE = Write(finished=True)
"""The sentence is finished, and nothing more is written."""

Answer: TypeAlias = Union[
    str, "Samples", Write, Revise, Timed, "list[Any]", "tuple[Answer, ...]", "Generator[Answer, None, None]", None
]
Policy: TypeAlias = Callable[[State], Answer]


@runtime_checkable
class Agent(Protocol):
    """An object with `policy(state)`.

    It may also have:

    - `reset()`, called before each sentence
    - `source = "speech"` and `target = "speech"`, if it is not from text to text
    - `chunkwise = True`, if it is called once for every read, and not again after a write
    - `sample_rate`, of the speech that it writes
    - `eager = True`, if it is called once before the first read
    - `sees_reference = True`, if it needs the reference translation and the length of the source
    """

    def policy(self, state: State) -> Answer:
        """What to write now; None to read more."""


@runtime_checkable
class BatchedAgent(Protocol):
    """An agent that translates many sentences at once; what it keeps of a sentence goes into `state.memory`."""

    def policies(self, states: Sequence[State]) -> Sequence[Answer]:
        """What to write now in each of these sentences."""


@dataclass(frozen=True)
class Traits:
    """What an agent declares, validated.

    Attributes:
        source, target: "text" or "speech".
        chunkwise: whether it is called only after a read.
        eager: whether it is also called before the first read.
        batched: whether it translates many sentences at once.
        patience: how often it may answer None after the end of the source before the sentence ends: 0 to 1000.
        must_finish: whether it must say that it has finished; ending by None is then a failure.
        sample_rate: of the speech that it writes; None if its answers say so.
        sees_reference: whether it sees the reference, and the length of the source.

    Raises:
        UsageError: a declaration is not valid; the message lists all such declarations.
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
        """Validate."""
        faults = []
        for name, field in self.__dataclass_fields__.items():
            value = getattr(self, name)
            if isinstance(field.default, str):
                valid, rule = isinstance(value, str) and value in KINDS, "'text' or 'speech'"
            elif isinstance(field.default, bool):
                valid, rule = isinstance(value, bool), "True or False"
            else:
                low, high = PATIENCE_RANGE if name == "patience" else SAMPLE_RATES
                number = int_in_range(value, low, high)
                valid, rule = number is not None or value is field.default, f"a whole number from {low} to {high}"
                object.__setattr__(self, name, number)  # a NumPy integer becomes an int
            if not valid:
                faults.append(f"{name} = {shorten(value)}, but it is {rule}")
        if faults:
            raise UsageError(
                f"the agent's declarations are not valid: {'; '.join(faults)}\n"
                "  fix: correct these attributes of the agent's class, or leave them out."
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


def int_in_range(value: object, low: int, high: int) -> int | None:
    """A value as an int, if it is an integer in the range; a bool is not.

    Example:
        >>> int_in_range(3, 0, 10), int_in_range(True, 0, 10), int_in_range(3.0, 0, 10), int_in_range(11, 0, 10)
        (3, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    return number if low <= (number := int(value)) <= high else None


def shorten(value: object) -> str:
    """The repr of a value for a message, at most 80 characters long."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"


class _Function:
    """A function of the state as an agent."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        for name in Traits.__dataclass_fields__:
            if hasattr(policy, name):
                setattr(self, name, getattr(policy, name))


def as_agent(agent: Any) -> Any:
    """An agent, from an agent or a function of the state.

    Raises:
        UsageError: it has neither `policy` nor `policies`, and is not callable.

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
