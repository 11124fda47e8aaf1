# SPDX-License-Identifier: Apache-2.0
"""What people write on a command line: signatures, gates, names of metrics."""

from __future__ import annotations

import math
from random import Random

import lagging
from fuzz import hostile
from fuzz.cases import Case
from fuzz.logs import METRICS
from fuzz.mutators import mutate_bytes
from fuzz.oracles import Difference, agree, outcome
from lagging.comparison.gates import gate
from lagging.metrics import metric
from lagging.scoring.signature import Signature, settings

FIELDS = {
    "unit": ("token", "ms", "none"),
    "length": ("hypothesis", "reference"),
    "clock": ("ideal", "elapsed", "queue", "omnisteval", "fbk"),
    "level": ("word", "char", "token", "spm:abc"),
    "empty": ("nan", "0", "source"),
    "seg": ("none", "given", "timed", "mwer"),
    "mean": ("segment", "token"),
    "tol": ("0", "1", "2.5", "nan", "1e999"),
    "eos": ("kept", "stripped"),
    "noref": ("1", "x"),
    "repair": ("clip", "clip+monotone"),
    "strip": ("eos", "tags+eos"),
    "ci": ("95", "0", "100", "nan"),
    "by": ("segment", "document"),
    "method": ("bca", "percentile", "poisson"),
    "bs": ("100", "1000", "0", "-1"),
    "seed": ("0", "12345", "-1"),
    "n": ("5", "0", "x"),
    "v": ("0.1.0", "1"),
}


def damage(random: Random, text: str) -> str:
    """A text with some letters changed, or something hostile in it."""
    for _ in range(random.choice((0, 0, 1, 1, 2))):
        if random.random() < 0.4:
            at = random.randrange(len(text) + 1)
            text = text[:at] + (hostile.long_run(random) if random.random() < 0.2 else hostile.text(random)) + text[at:]
        else:
            text = mutate_bytes(random, text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace")
    return text


def make_metric(random: Random) -> Case:
    """The name of a metric, with parameters."""
    text = random.choice(METRICS)
    if random.random() < 0.6:
        keys = random.sample(("length", "clock", "write_cost", "p", "tok", "empty", "mean"), random.randint(0, 3))
        values = ("reference", "elapsed", "1", "0.5", "nan", "-1", "1e999", "13a", "zh", "char", "x", "None", "")
        text += "(" + ", ".join(f"{key}={random.choice(values)}" for key in keys) + ")"
    return Case("metric", {}, {"text": damage(random, text)})


def check_metric(case: Case) -> None:
    """What a metric is called makes that metric again; it can be computed, or it is said why not."""
    found = outcome(lambda: metric(case.options["text"]))
    if found.error is not None:
        return
    agree("a metric, and the one of its name", repr(metric(repr(found.value))), repr(found.value))
    run = lagging.Run.from_delays(
        [[1, 2, 3], [], [2]], source_length=[4, 2, 3], prediction=["a b c", "", "d"], reference=["a b", "c", "d e"]
    )
    scores = outcome(lambda: lagging.score(run, [found.value]))
    if scores.error is None:
        (one,) = scores.value
        if math.isinf(one.value):
            raise Difference(f"{found.value!r} is {one.value}")
        again = outcome(lambda: settings(str(one.signature)))
        agree("the settings of a signature that was made", again.refusal, None)


def make_signature(random: Random) -> Case:
    """A signature."""
    keys = random.sample(sorted(FIELDS), random.randint(1, 8))
    text = "|".join([random.choice(METRICS), *(f"{key}:{random.choice(FIELDS[key])}" for key in keys)])
    return Case("signature", {}, {"text": damage(random, text)})


def check_signature(case: Case) -> None:
    """What was parsed is written as it was; and is written so that it can be parsed."""
    text = case.options["text"]
    found = outcome(lambda: Signature.parse(text))
    if found.error is not None:
        return
    agree("a signature, and the one it was parsed from", str(found.value), text.strip())
    agree("a signature, and its text parsed", Signature.parse(str(found.value)), found.value)
    outcome(lambda: settings(found.value))


def make_gate(random: Random) -> Case:
    """A gate."""
    system = random.choice(("", "", "base:", "a:b:", " new :"))
    of = random.choice(("", "", ".high", ".low", ".undefined", ".x"))
    limit = random.choice(("5", "-1", "2e3", "0.1", "1e999", "nan", "1_0", "٣", " 7 "))
    text = f"{system}{random.choice(METRICS)}{of}{random.choice(('>', '<', '>=', ' <= ', '=', '>>'))}{limit}"
    return Case("gate", {}, {"text": damage(random, text)})


def check_gate(case: Case) -> None:
    """A gate as it is written is the same gate."""
    found = outcome(lambda: gate(case.options["text"]))
    if found.error is None:
        written = outcome(lambda: gate(str(found.value)))
        agree("why the text of a gate is refused", written.refusal, None)
        again = written.value
        agree("a gate, and its text read", (again.system, again.metric, again.part, again.sign), _parts(found.value))
        agree("the limit of a gate", f"{again.limit:.15g}", f"{found.value.limit:.15g}")


def _parts(one: object) -> tuple[object, ...]:
    return tuple(getattr(one, name) for name in ("system", "metric", "part", "sign"))
