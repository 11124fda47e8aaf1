# SPDX-License-Identifier: Apache-2.0
"""Messages of the remote protocol: JSON in text messages, samples of speech in binary ones.

    server                      client
    hello                  ──▶             once, when the connection is open
                           ◀──  begin      a sentence; `ready` when an agent has been taken for it, and reset
                           ◀──  (samples)  of speech: the new part of the source, in as many messages as needed
                           ◀──  step       the other changes, and the question what to write now
    (samples)              ──▶             of output speech
    answer or failed       ──▶
                           ◀──  end        no more steps of this sentence; the next begin implies it

Samples are float32, little-endian, and belong to the next text message from the same side. A sentence is over after an
answer that is `finished`; after the (`patience` + 1)th empty answer in a row since the end of the source; and after
`failed`.
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
from lagging.agents.protocol import Answer, Traits, shorten
from lagging.agents.sources import as_floats

__all__ = [
    "BUSY",
    "CUT_OFF",
    "INVALID_DATA",
    "SAMPLES",
    "SUBPROTOCOL",
    "Answered",
    "Begin",
    "Declared",
    "End",
    "Failed",
    "FromClient",
    "FromServer",
    "Hello",
    "ProtocolError",
    "Ready",
    "Step",
    "collect_answers",
    "decode",
    "decode_samples",
    "encode",
    "is_finished",
    "pack",
    "unpack",
]

SUBPROTOCOL = "lagging-agent-1"
"""The name of the protocol; both sides agree on it when the connection is opened (`Sec-WebSocket-Protocol`)."""

INVALID_DATA, CUT_OFF, BUSY = 1007, 1008, 1013
"""Codes of RFC 6455 with which a server closes a connection; the reason is sent with them."""

SAMPLES = np.dtype("<f4")
MAX_ANSWERS = 100_000
"""Largest number of answers that an agent may yield in one step."""
MAX_NAME = 4096
"""Largest number of characters of the name and of the identity of an agent."""


class ProtocolError(Exception):
    """The other side sent an invalid message."""


class _Message(msgspec.Struct, tag_field="type", omit_defaults=True, forbid_unknown_fields=True):
    """A text message: a JSON object whose `type` names it; fields with default values may be left out."""


# ---- from the server --------------------------------------------------------------------------------------------


class Declared(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, frozen=True):
    """What the agent declares; see `lagging.agents.Traits`, which checks the ranges."""

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
        """From the traits of an agent; a served agent does not take batches."""
        return cls(**{name: getattr(traits, name) for name in cls.__struct_fields__})


class Hello(_Message, tag="hello"):
    """The first message.

    Attributes:
        agent: the name of the agent.
        identity: a text that differs between agents; empty if unknown.
        traits: what the agent declares.
        max_message: largest number of bytes of a message to the server.
    """

    agent: Annotated[str, msgspec.Meta(max_length=MAX_NAME)]
    identity: Annotated[str, msgspec.Meta(max_length=MAX_NAME)] = ""
    traits: Declared = Declared()
    max_message: Annotated[int, msgspec.Meta(ge=SAMPLES.itemsize)] = 1 << 20


class Ready(_Message, tag="ready"):
    """An agent has been taken for the sentence, and reset."""


class WriteAction(_Message, tag="write"):
    """Write a text, tokens, or this number of the samples that came before this message."""

    content: str | list[str] = ""
    samples: Annotated[int, msgspec.Meta(ge=0)] | None = None
    sample_rate: int | float | None = None
    finished: bool = False
    erase: int = 0


class ReviseAction(_Message, tag="revise"):
    """Replace the whole translation."""

    content: str | list[str]
    finished: bool = False


class Answered(_Message, tag="answer"):
    """What to write, in order, and the seconds that the agent took; an action that is a text is written."""

    seconds: Annotated[float, msgspec.Meta(ge=0)]
    actions: list[str | WriteAction | ReviseAction] = []


class Failed(_Message, tag="failed"):
    """The agent failed in this sentence."""

    kind: Literal["raised", "wrong-type", "never-finished", "changed-state"]
    detail: str = ""
    trace: str = ""


# ---- from the client --------------------------------------------------------------------------------------------


class Begin(_Message, tag="begin"):
    """A sentence begins.

    Attributes:
        sentence: its index in the test set, from 0.
        sample_rate: samples per second of speech; 0 for text.
        reference, source_length: for an agent that sees them; null for all others.
    """

    sentence: int = 0
    sample_rate: int = 0
    reference: str | None = None
    source_length: int | float | None = None


class Step(_Message, tag="step"):
    """What is new since the last step, and the question what to write now.

    Attributes:
        source: new source tokens.
        finished: whether that is the whole source.
        erase: how many tokens at the end of the target have been erased.
        target: the tokens that have been written after that.
    """

    source: list[str] = []
    finished: bool = False
    erase: Annotated[int, msgspec.Meta(ge=0)] = 0
    target: list[str] = []


class End(_Message, tag="end"):
    """No more steps of this sentence follow."""


Action: TypeAlias = str | WriteAction | ReviseAction
FromServer: TypeAlias = Hello | Ready | Answered | Failed
FromClient: TypeAlias = Begin | Step | End
_M = TypeVar("_M")

_ENCODER = msgspec.json.Encoder(enc_hook=lambda value: value.item())  # NumPy numbers


def encode(message: FromServer | FromClient) -> bytes:
    """A message as bytes.

    Example:
        >>> encode(Step(["see", "you"], finished=True))
        b'{"type":"step","source":["see","you"],"finished":true}'
    """
    return _ENCODER.encode(message)


def decode(text: str | bytes, decoder: msgspec.json.Decoder[_M]) -> _M:
    """A message from its text.

    Raises:
        ProtocolError: the decoder does not know it.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ProtocolError(f"not a message: {error}") from None


def decode_samples(data: bytes) -> Any:
    """The samples in a binary message.

    Raises:
        ProtocolError: its length is not a multiple of the size of a sample.
    """
    if len(data) % SAMPLES.itemsize:
        raise ProtocolError(f"{len(data)} bytes are no samples of float32")
    return np.frombuffer(data, SAMPLES)


# ---- answers ----------------------------------------------------------------------------------------------------


def pack(answer: Answer, speech: bool) -> tuple[list[Action], list[Any]]:
    """An agent's answer as actions, and the samples that are sent before.

    The client checks the answer, with the same messages as for a local agent; here only what cannot be sent is refused.

    Raises:
        Failure: it is not an answer.

    Example:
        >>> pack(["see", protocol.Write("you", finished=True)], speech=False)
        (['see', WriteAction(content='you', samples=None, sample_rate=None, finished=True, erase=0)], [])
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
        for part in answer:
            if part is not None:
                _pack(part, speech, actions, samples)
    elif isinstance(answer, protocol.Revise):
        actions.append(ReviseAction(_text(answer.content), bool(answer.finished)))
    elif isinstance(answer, protocol.Write):
        if not isinstance(answer.erase, int):
            raise Failure("wrong-type", f"erase={shorten(answer.erase)}")
        if not isinstance(answer.sample_rate, (int, float, np.number, type(None))):
            raise Failure("wrong-type", f"sample_rate={shorten(answer.sample_rate)}")
        rate: Any = answer.sample_rate
        if speech and not isinstance(answer.content, str):
            samples.append(piece := as_floats(answer.content))
            actions.append(WriteAction("", len(piece), rate, bool(answer.finished), int(answer.erase)))
        else:
            actions.append(WriteAction(_text(answer.content), None, rate, bool(answer.finished), int(answer.erase)))
    elif isinstance(answer, str):
        actions.append(str(answer))
    elif hasattr(answer, "__array__"):
        _pack(protocol.Write(answer), speech, actions, samples)
    else:
        raise Failure("wrong-type", shorten(answer))


def _text(content: Any) -> str | list[str]:
    if isinstance(content, str):
        return str(content)
    if not isinstance(content, (list, tuple)) or not all(isinstance(piece, str) for piece in content):
        raise Failure("wrong-type", shorten(content))
    return list(content)


def collect_answers(answer: Any) -> Any:
    """The answers that an agent yields in one step, as a list.

    Raises:
        Failure: they are more than the limit.
    """
    if type(answer) is not GeneratorType:
        return answer
    answers = list(islice(answer, MAX_ANSWERS + 1))
    if len(answers) > MAX_ANSWERS:
        raise Failure("never-finished", f"more than {MAX_ANSWERS} answers in one step, which is the server's limit")
    return answers


def unpack(actions: Sequence[Action], samples: Any) -> Answer:
    """The agent's answer from actions and samples.

    Args:
        actions: the actions of the answer.
        samples: all samples that came before it.

    Raises:
        ProtocolError: the number of samples is not that of the actions.
    """
    answers: list[Answer] = []
    at = 0
    for action in actions:
        if isinstance(action, str):
            answers.append(action)
            continue
        if isinstance(action, ReviseAction):
            answers.append(protocol.Revise(action.content, action.finished))
            continue
        content: Any = action.content
        if action.samples is not None:
            content, at = samples[at : at + action.samples], at + action.samples
        rate: Any = action.sample_rate
        answers.append(protocol.Write(content, action.finished, action.erase, rate))
    if at != len(samples):
        raise ProtocolError(f"an answer about {at} samples, but {len(samples)} came with it")
    return answers[0] if len(answers) == 1 else answers or None
