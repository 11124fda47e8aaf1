# SPDX-License-Identifier: Apache-2.0
"""What goes over the wire: JSON in text messages, samples of speech in binary ones.

    server                      client
    hello                  ──▶             once, when the connection is open
                           ◀──  begin      a sentence; `ready` when an agent has been taken for it, and reset
                           ◀──  (samples)  of speech: what is new of the source, in as many messages as it needs
                           ◀──  step       what else is new, and: what to write now?
    (samples)              ──▶             of output speech
    answer or failed       ──▶
                           ◀──  end        nobody will ask on; so does the next begin

Samples are float32, little-endian, and belong to the next text message that the same end sends. A sentence is over with
an answer that is `finished`, or that is nothing, after the end of the source and for the (`patience` + 1)th time in a
row; and with `failed`.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from types import GeneratorType
from typing import Annotated, Any, Literal, TypeAlias, TypeVar

import msgspec
import numpy as np

from lagging.agents import protocol
from lagging.agents.failures import Failure
from lagging.agents.protocol import Answer, Traits, short
from lagging.agents.sources import as_floats

__all__ = [
    "BUSY",
    "CUT_OFF",
    "NONSENSE",
    "SAMPLES",
    "SUBPROTOCOL",
    "Answered",
    "Begin",
    "Declared",
    "End",
    "Failed",
    "FromClient",
    "FromServer",
    "Garbage",
    "Hello",
    "Ready",
    "Step",
    "decode",
    "drain",
    "encode",
    "is_finished",
    "pack",
    "samples_of",
    "unpack",
]

SUBPROTOCOL = "lagging-agent-1"
"""What both ends speak; they agree on it when the connection is opened (`Sec-WebSocket-Protocol`)."""

NONSENSE, CUT_OFF, BUSY = 1007, 1008, 1013
"""Why a server closes a connection, by the codes of RFC 6455; the words come with them."""

SAMPLES = np.dtype("<f4")
MOST = 100_000
"""How many answers an agent may yield in one step."""
LONGEST_NAME = 4096
"""Characters of the name of an agent, and of its identity."""


class Garbage(Exception):
    """What the other end sent makes no sense."""


class _Message(msgspec.Struct, tag_field="type", omit_defaults=True, forbid_unknown_fields=True):
    """A text message: a JSON object whose `type` says which; what has its default may be left out."""


# ---- from the server --------------------------------------------------------------------------------------------


class Declared(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """What the agent declares of itself; see `lagging.agents.Traits`, which knows the ranges."""

    source: Literal["text", "speech"] = "text"
    target: Literal["text", "speech"] = "text"
    chunkwise: bool = False
    eager: bool = False
    patience: int = 0
    must_finish: bool = False
    sample_rate: int | None = None
    sees_reference: bool = False

    @classmethod
    def of(cls, traits: Traits) -> Declared:
        """Of an agent's traits, all but that it takes many sentences at once, which it cannot do from here."""
        return cls(**{name: getattr(traits, name) for name in cls.__struct_fields__})


class Hello(_Message, tag="hello"):
    """The greeting.

    Attributes:
        agent: its name.
        identity: a text that is another when the agent is another; empty if nobody knows.
        traits: what it declares of itself.
        max_message: bytes that a message to the server may have.
    """

    agent: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)]
    identity: Annotated[str, msgspec.Meta(max_length=LONGEST_NAME)] = ""
    traits: Declared = Declared()
    max_message: Annotated[int, msgspec.Meta(ge=SAMPLES.itemsize)] = 1 << 20


class Ready(_Message, tag="ready"):
    """An agent has been taken for the sentence, and reset."""


class Act(_Message, tag="write"):
    """Write: a text, or tokens, or so many of the samples that came before this message."""

    content: str | list[str] = ""
    samples: Annotated[int, msgspec.Meta(ge=0)] | None = None
    sample_rate: int | float | None = None
    finished: bool = False
    erase: int = 0


class Anew(_Message, tag="revise"):
    """This is the whole translation now."""

    content: str | list[str]
    finished: bool = False


class Answered(_Message, tag="answer"):
    """What to write, one after the other, and the seconds that it took the agent to say so; a text is to be written."""

    seconds: Annotated[float, msgspec.Meta(ge=0)]
    actions: list[str | Act | Anew] = []


class Failed(_Message, tag="failed"):
    """The agent could not go on with the sentence."""

    kind: Literal["raised", "wrong-type", "never-finished", "changed-state"]
    detail: str = ""
    trace: str = ""


# ---- from the client --------------------------------------------------------------------------------------------


class Begin(_Message, tag="begin"):
    """A sentence begins.

    Attributes:
        sentence: its number in the test set, from 0.
        sample_rate: of speech, samples per second; 0 for text.
        reference, source_length: for an agent that sees them; none for all others.
    """

    sentence: int = 0
    sample_rate: int = 0
    reference: str | None = None
    source_length: int | float | None = None


class Step(_Message, tag="step"):
    """What is new since the last step: and what to write now?

    Attributes:
        source: tokens that have been read.
        finished: whether that is all of the source.
        erase: how many tokens at the end of the target no longer stand.
        target: those that have been written, after that.
    """

    source: list[str] = []
    finished: bool = False
    erase: Annotated[int, msgspec.Meta(ge=0)] = 0
    target: list[str] = []


class End(_Message, tag="end"):
    """Nobody will ask about the sentence any more."""


Action: TypeAlias = str | Act | Anew
FromServer: TypeAlias = Hello | Ready | Answered | Failed
FromClient: TypeAlias = Begin | Step | End
_M = TypeVar("_M")

_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: value.item())  # numbers of NumPy


def encode(message: FromServer | FromClient) -> bytes:
    """A message as it goes over the wire.

    Example:
        >>> encode(Step(["see", "you"], finished=True))
        b'{"type":"step","source":["see","you"],"finished":true}'
    """
    return _ENCODER.encode(message)


def decode(text: str | bytes, decoder: msgspec.json.Decoder[_M]) -> _M:
    """A text message as what it is.

    Raises:
        Garbage: it is none that the decoder knows.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Garbage(f"not a message: {error}") from None


def samples_of(data: bytes) -> Any:
    """The samples in a binary message.

    Raises:
        Garbage: it has half a sample.
    """
    if len(data) % SAMPLES.itemsize:
        raise Garbage(f"{len(data)} bytes are no samples of float32")
    return np.frombuffer(data, SAMPLES)


# ---- answers ----------------------------------------------------------------------------------------------------


def pack(answer: Answer, speech: bool) -> tuple[list[Action], list[Any]]:
    """An agent's answer as it goes over the wire: what it does, and the samples that go before.

    What may be wrong with it is left to whoever runs the loop, so that it is judged and told as it is without a wire
    between; unless it cannot be sent.

    Raises:
        Failure: it is no answer.

    Example:
        >>> pack(["see", protocol.Write("you", finished=True)], speech=False)
        (['see', Act(content='you', samples=None, sample_rate=None, finished=True, erase=0)], [])
    """
    actions: list[Action] = []
    samples: list[Any] = []
    if answer is not None:
        _pack(answer, speech, actions, samples)
    return actions, samples


def is_finished(actions: Sequence[Action]) -> bool:
    """Whether an answer says that the sentence is finished."""
    return any(not isinstance(action, str) and action.finished for action in actions)


def _pack(answer: Any, speech: bool, actions: list[Action], samples: list[Any]) -> None:
    if isinstance(answer, (list, tuple)):
        for one in answer:
            if one is not None:
                _pack(one, speech, actions, samples)
    elif isinstance(answer, protocol.Revise):
        actions.append(Anew(_text(answer.content), bool(answer.finished)))
    elif isinstance(answer, protocol.Write):
        if not isinstance(answer.erase, int):
            raise Failure("wrong-type", f"erase={short(answer.erase)}")
        if not isinstance(answer.sample_rate, (int, float, np.number, type(None))):
            raise Failure("wrong-type", f"sample_rate={short(answer.sample_rate)}")
        rate: Any = answer.sample_rate
        if speech and not isinstance(answer.content, str):
            samples.append(piece := as_floats(answer.content))
            actions.append(Act("", len(piece), rate, bool(answer.finished), int(answer.erase)))
        else:
            actions.append(Act(_text(answer.content), None, rate, bool(answer.finished), int(answer.erase)))
    elif isinstance(answer, str):
        actions.append(str(answer))
    elif hasattr(answer, "__array__"):
        _pack(protocol.Write(answer), speech, actions, samples)
    else:
        raise Failure("wrong-type", short(answer))


def _text(content: Any) -> str | list[str]:
    if isinstance(content, str):
        return str(content)
    if not isinstance(content, (list, tuple)) or not all(isinstance(piece, str) for piece in content):
        raise Failure("wrong-type", short(content))
    return list(content)


def drain(answer: Any) -> Any:
    """What an agent yields in one step, as a list; not for ever.

    Raises:
        Failure: it yields more than it may.
    """
    if type(answer) is not GeneratorType:
        return answer
    answers = list(islice(answer, MOST + 1))
    if len(answers) > MOST:
        raise Failure("never-finished", f"more than {MOST} answers in one step, which is the server's limit")
    return answers


def unpack(actions: Sequence[Action], samples: Any) -> Answer:
    """What came over the wire, as the agent's answer.

    Args:
        actions: what the answer does.
        samples: all that came before it.

    Raises:
        Garbage: the samples are more or fewer than the actions speak of.
    """
    answers: list[Answer] = []
    at = 0
    for action in actions:
        if isinstance(action, str):
            answers.append(action)
            continue
        if isinstance(action, Anew):
            answers.append(protocol.Revise(action.content, action.finished))
            continue
        content: Any = action.content
        if action.samples is not None:
            content, at = samples[at : at + action.samples], at + action.samples
        rate: Any = action.sample_rate
        answers.append(protocol.Write(content, action.finished, action.erase, rate))
    if at != len(samples):
        raise Garbage(f"an answer about {at} samples, but {len(samples)} came with it")
    return answers[0] if len(answers) == 1 else answers or None
