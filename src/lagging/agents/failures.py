# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with an agent in a sentence, and how it is said. The run goes on with the next one."""

from __future__ import annotations

import traceback
from types import TracebackType

from lagging.errors import LaggingError

__all__ = ["FAILURES", "REMEDIES", "Failure", "raised", "shortened"]

LONGEST = 20_000
"""Characters that are kept of what an agent raised."""

FAILURES = {
    "raised": "the agent raised",
    "wrong-type": "the agent's answer is not one of None, str, Write, Revise, or several of them",
    "nothing-written": "the agent wrote nothing",
    "never-finished": "the agent does not come to an end",
    "after-finish": "the agent wrote after it had said that it was finished",
    "erased-too-much": "the agent took back what it had never written",
    "changed-state": "the agent changed what it was only shown",
    "step-limit": "the agent took longer over a step than it may",
    "sentence-limit": "the agent took longer over the sentence than it may",
    "died": "the agent's process died",
    "closed-files": "the agent closed files that it had not opened, and its process could not go on",
    "unreadable": "the source could not be read",
    "connection": "the connection to the agent broke",
}


REMEDIES = {
    "raised": "its traceback is in the log; a mended agent is another one, and gets another folder",
    "step-limit": "a larger --step-limit, and --retry-failed",
    "sentence-limit": "a larger --sentence-limit, and --retry-failed",
    "never-finished": "a larger limit and --retry-failed, if it is meant to write so much",
    "died": "--retry-failed, if something else has ended it (too little memory?)",
    "unreadable": "--retry-failed, once it can be read",
    "connection": "--retry-failed",
}
"""What may help, where that is not to write another agent."""


class Failure(LaggingError):
    """A sentence that an agent could not translate.

    Attributes:
        kind: a key of FAILURES.
        detail: what it was about.
        trace: the traceback, of what the agent raised.
    """

    def __init__(self, kind: str, detail: str = "", trace: str = "") -> None:
        super().__init__(f"{FAILURES[kind]}: {detail}" if detail else FAILURES[kind])
        self.kind, self.detail, self.trace = kind, detail, trace

    def __reduce__(self) -> tuple[object, ...]:
        """By its parts, so that it can go from one process to another."""
        return (Failure, (self.kind, self.detail, self.trace))


def raised(error: BaseException) -> Failure:
    """What an agent raised, as a failure; its traceback begins in the agent's own code."""
    if isinstance(error, Failure):
        return error
    frame: TracebackType | None = error.__traceback__
    while frame is not None and frame.tb_next is not None and _is_runner(frame):
        frame = frame.tb_next
    told = traceback.format_exception_only(error), traceback.format_exception(type(error), error, frame)
    said, trace = (shortened("".join(lines).encode(errors="backslashreplace").decode()) for lines in told)
    return Failure("raised", said.strip(), trace)


def shortened(text: str) -> str:
    """The beginning and the end of a text that is too long to keep."""
    half = LONGEST // 2 - 2
    return text if len(text) <= LONGEST else f"{text[:half]}\n…\n{text[-half:]}"


def _is_runner(frame: TracebackType) -> bool:
    """Whether a frame is of the code that calls agents, ours or SimulEval's."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).startswith(("lagging.agents.", "simuleval."))
