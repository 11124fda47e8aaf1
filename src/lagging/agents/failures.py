# SPDX-License-Identifier: Apache-2.0
"""Failures: what an agent can do wrong in a sentence. The run continues with the next sentence."""

from __future__ import annotations

import traceback
from types import TracebackType

from lagging.errors import LaggingError

__all__ = ["FAILURES", "REMEDIES", "Failure", "failure_from", "truncate"]

MAX_CHARS = 20_000
"""Largest number of characters of a traceback."""

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
    "raised": "its traceback is in the log; a corrected agent is another agent, and needs another folder",
    "step-limit": "a larger --step-limit, and --retry-failed",
    "sentence-limit": "a larger --sentence-limit, and --retry-failed",
    "never-finished": "a larger limit and --retry-failed, if it is meant to write so much",
    "died": "--retry-failed, if something else has ended it (too little memory?)",
    "unreadable": "--retry-failed, once it can be read",
    "connection": "--retry-failed",
}
"""Kind of failure → how to fix it, where the agent itself need not change."""


class Failure(LaggingError):
    """The failure of a sentence.

    Attributes:
        kind: a key of FAILURES.
        detail: details of this failure.
        trace: the traceback of the agent's exception.
    """

    def __init__(self, kind: str, detail: str = "", trace: str = "") -> None:
        super().__init__(f"{FAILURES[kind]}: {detail}" if detail else FAILURES[kind])
        self.kind, self.detail, self.trace = kind, detail, trace

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle by kind, detail and trace."""
        return (Failure, (self.kind, self.detail, self.trace))


def failure_from(error: BaseException) -> Failure:
    """The failure for an exception of an agent; the traceback begins in the agent's own code."""
    if isinstance(error, Failure):
        return error
    frame: TracebackType | None = error.__traceback__
    while frame is not None and frame.tb_next is not None and _is_runner(frame):
        frame = frame.tb_next
    parts = traceback.format_exception_only(error), traceback.format_exception(type(error), error, frame)
    detail, trace = (truncate("".join(lines).encode(errors="backslashreplace").decode()) for lines in parts)
    return Failure("raised", detail.strip(), trace)


def truncate(text: str) -> str:
    """A text, with its middle left out if it is too long."""
    half = MAX_CHARS // 2 - 2
    return text if len(text) <= MAX_CHARS else f"{text[:half]}\n…\n{text[-half:]}"


def _is_runner(frame: TracebackType) -> bool:
    """Whether a frame is of the code that calls agents, of lagging or of SimulEval."""
    return str(frame.tb_frame.f_globals.get("__name__", "")).startswith(("lagging.agents.", "simuleval."))
