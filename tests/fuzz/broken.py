# SPDX-License-Identifier: Apache-2.0
"""Targets that fail on purpose: they show that the machine notices."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

from fuzz.cases import Case
from fuzz.oracles import agree
from fuzz.targets import Target


def _make(random: Random) -> Case:
    return Case("well", {"lines": b"".join(b"%d\n" % random.randrange(100) for _ in range(20))})


def _well(case: Case) -> None:
    case.write(Path())


def _raise(case: Case) -> None:
    if b"7" in case.write(Path()).read_bytes():
        raise KeyError("a seven")


def _differ(case: Case) -> None:
    agree("one and two", 1, 2)


def _hang(case: Case) -> None:
    time.sleep(3600)


def _nap(case: Case) -> None:
    time.sleep(1.5)


def _spin(case: Case) -> None:
    while True:
        pass


def _die(case: Case) -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def _eat(case: Case) -> None:
    bytearray(1 << 40)


BROKEN = {
    "well": Target(_make, _well),
    "raise": Target(_make, _raise),
    "differ": Target(_make, _differ),
    "hang": Target(_make, _hang),
    "nap": Target(_make, _nap),
    "spin": Target(_make, _spin),
    "die": Target(_make, _die),
    "eat": Target(_make, _eat),
}
