# SPDX-License-Identifier: Apache-2.0
"""Logs that grow, and a Meter: however they are looked at, they come to the numbers of the log as a whole."""

from __future__ import annotations

import math
from pathlib import Path
from random import Random
from typing import Any

import lagging
from fuzz import hostile
from fuzz.cases import Case
from fuzz.dialects import stream, stream_lines
from fuzz.documents import Document, word
from fuzz.logs import damaged
from fuzz.oracles import agree, outcome, short
from fuzz.terminal import ended, run
from lagging.meter.growing import GrowingLog
from lagging.metrics import metric

METRICS = ("AL", "DAL(clock=elapsed)", "TL", "NormalizedErasure", "StartOffset(clock=elapsed)")

# ---- logs that grow -----------------------------------------------------------------------------------------------


def make_growing(random: Random) -> Case:
    """An event stream, and the shares of it that are there at each look."""
    content = damaged(random, Document("live.stream.jsonl", stream, stream_lines))
    looks = sorted(round(random.random(), 3) for _ in range(random.choice((1, 2, 5))))
    return Case("growing", {"live.stream.jsonl": content}, {"looks": looks})


def check_growing(case: Case) -> None:
    """What is seen at the end does not depend on when was looked; `watch` shows it."""
    path = case.write(Path())
    whole = GrowingLog(path)
    whole.read()
    content = path.read_bytes()
    Path("grown").mkdir()
    grown = Path("grown") / path.name
    looked = GrowingLog(grown)
    for share in (0.0, *case.options.get("looks", ()), 1.0):
        grown.write_bytes(content[: math.ceil(share * len(content))])
        looked.read()
        rounded(looked.snapshot())
    agree("what is seen at once, and of a log that grew", *(rounded(log.snapshot()) for log in (whole, looked)))
    arguments = ["watch", str(path), "--once"]
    code, out, err = run(*arguments)
    ended(arguments, code, out, err)


def rounded(value: Any) -> Any:
    """A snapshot without what the order of addition changes."""
    if isinstance(value, dict):
        return {key: rounded(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [rounded(inner) for inner in value]
    if isinstance(value, float):
        if math.isinf(value):
            raise ValueError(f"a snapshot has an infinite number: {short(value)}")
        return f"{value:.9g}"
    return value


# ---- a Meter ------------------------------------------------------------------------------------------------------


def make_meter(random: Random) -> Case:
    """Calls of a Meter, each with the seconds that passed before it."""
    calls: list[Any] = []
    for _ in range(random.randrange(1, 30)):
        kind = random.choice(("heard", "heard", "wrote", "wrote", "shows", "shows", "ended"))
        if kind == "heard":
            value: Any = random.choice((0, 200, 960.5, 960.5, random.choice(hostile.NUMBERS)))
        else:
            value = hostile.text(random) if random.random() < 0.1 else random.choice(("", " ")) + word(random)
        calls.append([round(random.choice((0, 0.25, 0.9)), 3), kind, value, random.random() < 0.2])
    return Case("meter", {}, {"calls": calls, "level": random.choice((None, "word", "char"))})


def check_meter(case: Case) -> None:
    """The log of a Meter is scored as the Meter scored it."""
    now = [0.0]
    made = lagging.Meter(
        "base", log="live.stream.jsonl", level=case.options["level"], metrics=METRICS, clock=lambda: now[0]
    )
    for passed, kind, value, final in case.options["calls"]:
        now[0] += passed
        if kind == "ended":
            made.ended()
        elif kind == "heard":
            outcome(lambda value=value: made.heard(value))
        else:
            outcome(lambda kind=kind, value=value, final=final: getattr(made, kind)(value, final=final))
    made.close()
    seen = made.snapshot()
    rounded(seen)
    if not seen["utterances"] or case.options["level"] is None:
        return  # each utterance decides by itself what a token is
    read = outcome(lambda: lagging.read("live.stream.jsonl", level=case.options["level"]))
    agree("why the log of a Meter is refused", (read.refusal, read.faults), (None, []))
    for name in METRICS:
        scored = outcome(lambda name=name: lagging.score(read.value, [name])[metric(name)].value)
        if scored.error is None:
            own = seen["scores"][repr(metric(name))]["score"]
            other = None if math.isnan(scored.value) else scored.value
            agree(f"{name} of a Meter, and of its log", rounded(own), rounded(other))
