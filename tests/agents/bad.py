# SPDX-License-Identifier: Apache-2.0
"""An agent that does what the first word of a sentence says, however bad."""

import asyncio
import ctypes
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from lagging.agents import DONE, Revise, Write

CHILDREN = "LAGGING_TEST_CHILDREN"
WRONG = {
    "number": 7,
    "bytes": b"word",
    "table": {"a": 1},
    "nested": ["word", [7]],
    "written-number": Write(5),  # type: ignore[arg-type]
    "erased-text": Write("word", erase="all"),  # type: ignore[arg-type]
    "erased-less": Write("word", erase=-1),
    "revised-number": Revise(3),  # type: ignore[arg-type]
}


class Unspeakable(Exception):
    def __str__(self):
        raise ValueError("not even this")


def recurse(depth):
    return recurse(depth + 1) + 1


def without_end():
    while True:
        yield "word"


def child():
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    with Path(os.environ[CHILDREN]).open("a") as file:
        file.write(f"{process.pid}\n")


def act(state):
    what, place = state.source[0], len(state.target)
    if what in WRONG:
        return WRONG[what]
    match what:
        case "forever":
            return "word"
        case "revises-forever":
            state.memory = (state.memory or 0) + 1
            return Revise(f"word {state.memory}")
        case "yields-forever":
            return without_end()
        case "huge":
            return "word " * 2_000_000
        case "silent":
            return None
        case "blank":
            return "  " if state.finished and not place else None
        case "after":
            return [Write("word", finished=True), "more"]
        case "after-yield":
            return (answer for answer in ("word", DONE, "more"))
        case "erases":
            return Write("", erase=1)
        case "erases-more":
            return Write("", erase=2) if place else "word"
        case "changes":
            state.target.append("word")
        case "replaces":
            state.target = ["word"] * len(state.source)
            return None
        case "half":
            return None if place else "\ud800"
        case "raises":
            raise ValueError("no")
        case "unspeakable":
            raise Unspeakable
        case "exits":
            sys.exit("enough")
        case "interrupts":
            raise KeyboardInterrupt
        case "cancels":
            raise asyncio.CancelledError
        case "recurses":
            recurse(0)
        case "memory":
            bytearray(1 << 60)
        case "sleeps":
            time.sleep(600)
        case "regex":
            re.match("(a+)+$", "a" * 64 + "b")  # 2⁶⁴ steps, in native code, with the GIL
        case "native":
            ctypes.PyDLL(None).sleep(600)  # a PyDLL keeps the GIL
        case "slow":
            time.sleep(0.2)
            return "word"
        case "segfaults":
            ctypes.string_at(0)
        case "leaves":
            os._exit(3)
        case "leaves-well":
            os._exit(0)
        case "kills-itself":
            os.kill(os.getpid(), signal.SIGKILL)
        case "aborts-with-child":
            child()
            os.abort()
        case "prints":
            if not place:
                print("PRINTED")
                os.write(1, b"PRINTED\n")
                os.system("echo PRINTED")
        case "child":
            if not place:
                child()
        case "moves":
            os.chdir("/")
        case "long-word":
            return None if place else "w" * 5_000_000
        case "longer-word":
            return "w" * 20_000_000
        case "closes":
            os.closerange(3, 256)
        case "closes-and-opens":
            os.closerange(3, 256)
            state.memory = [os.open(os.devnull, os.O_WRONLY) for _ in range(64)]
    return state.source[place].upper() if place < len(state.source) else None


FAILING = {
    **dict.fromkeys((*WRONG, "half"), "wrong-type"),
    **dict.fromkeys(("forever", "revises-forever", "yields-forever", "huge", "longer-word"), "never-finished"),
    **dict.fromkeys(("silent", "blank"), "nothing-written"),
    **dict.fromkeys(("after", "after-yield"), "after-finish"),
    **dict.fromkeys(("erases", "erases-more"), "erased-too-much"),
    **dict.fromkeys(("changes", "replaces"), "changed-state"),
    **dict.fromkeys(
        ("raises", "unspeakable", "exits", "interrupts", "cancels", "recurses", "memory"),
        "raised",
    ),
    **dict.fromkeys(("sleeps", "regex", "native"), "step-limit"),
    "slow": "sentence-limit",
    **dict.fromkeys(("closes", "closes-and-opens"), "closed-files"),
    **dict.fromkeys(("segfaults", "leaves", "leaves-well", "kills-itself", "aborts-with-child"), "died"),
}
FINE = ("good", "prints", "child", "moves")


class Bad:
    def policy(self, state):
        return act(state)


class BadBatch:
    def policies(self, states):
        return [act(state) for state in states]
