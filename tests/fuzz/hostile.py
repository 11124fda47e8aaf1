# SPDX-License-Identifier: Apache-2.0
"""Values that programs get wrong."""

from __future__ import annotations

from random import Random
from typing import Any


class Raw(str):
    """What stands in JSON as it is, be it JSON or not."""


class Pairs(list):
    """A JSON object as a list of keys and values, so that a key may occur twice."""


NUMBERS = (
    *(0, 1, -1, 2, 3, 0.5, 1.5, -0.0, 1e-320, 5e-324, 1e18, 1e17, 999999999999999999, 1e308, -1e308, 2**31, 2**53),
    *(2**53 + 1, 2**63, -(2**63) - 1, 2**64, 10**19, 10**30, 10**400, 0.1 + 0.2, 1e-9, 4.9999999999999999),
)
RAW = ("1e999", "-1e999", "NaN", "Infinity", "-Infinity", "-0", "-0.0", "1E5", "01", "1.", ".5", "+1", "0x10", "1_000")
TEXTS = (
    *("", " ", "\t", "a", "0", "-1", "1.5", "1e5", "nan", "null", "None", "true", "\\N", "\\\\N", "N", "NaN", "inf"),
    *("a,b;c\td", 'quo"ted', "it's", "back\\slash", "a\nb", "a\rb", "a\r\nb", "</s>", "<s>", "▁ab", "Ha@@ us"),
    *(
        "你好 吗",
        "こんにちは",
        "Grüße",
        "e\u0301",
        "👩‍👩‍👧",
        "שלום עולם",
        "\u202eevil\u202c",
        "\u2066x\u2069",
        "a\u00a0b",
        "\ufeffx",
    ),
    *("\u2028", "\u2029", "\u0085", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x00", "a\x00b", "\x1c", "\x1d", "\x1f"),
    *("\x7f", "\x9b31m", "\x08\x08", "\ud800", "\udfff", "\uffff", "\U0010ffff", "\ue000id", "=1+1", "@SUM(A1)", "-x"),
    *("<script>alert(1)</script>", "\\input{x}", "$x_1$", "|", "a|b", "a:b", "%s{0}", "../../x", "a.wav", "x" * 300),
    *("delays", "durations", "intervals", "index", "prediction", "emission_cu", "docid", "metadata", "seg", "id"),
)
KEYS = (
    *("index", "id", "delays", "source_length", "prediction", "reference", "elapsed", "source", "document", "unit"),
    *("level", "seg", "durations", "intervals", "arrivals", "compute", "steps", "shown", "due", "due_partial", "gone"),
    *("erased", "revisions", "offset", "recording_end", "reference_length", "prediction_spm", "failed", "name"),
    *("emission_cu", "emission_ca", "docid", "segid", "metadata", "wav_name", "total_audio_processed", "wav"),
    *("generated_tokens", "deleted_tokens", "computation_time", "model_loading_time", "duration", "queue_times"),
    *("repaired", "stripped", "metric", "score", "system", "signature", "scores", "schema", "value", "group", "line"),
)
RUNS = (
    "0",
    "9",
    " ",
    "\t",
    "a",
    "[",
    "{",
    '"',
    "\\",
    ",",
    "-",
    ".",
    "1 ",
    "[]",
    '{"a":',
    "- ",
    "()",
    ":",
    "<",
    "|",
    "'",
)
"""What is repeated to make a long line of."""

BYTES = (
    b"\x00",
    b"\xff",
    b"\x80",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\n",
    b"\r",
)


def number(random: Random) -> Any:
    """A number; now and then what is written like none."""
    return Raw(random.choice(RAW)) if random.random() < 0.3 else random.choice(NUMBERS)


def text(random: Random) -> str:
    """A text."""
    if random.random() < 0.05:
        return long_run(random)
    return " ".join(random.choices(TEXTS, k=random.choice((1, 1, 2, 3))))


def long_run(random: Random) -> str:
    """The same again and again, perhaps with something else at the end."""
    count = random.choice((50, 500, 5_000, 20_000))
    return random.choice(RUNS) * count + random.choice(("", "x", "1", "]", "\\"))


def value(random: Random, depth: int = 0) -> Any:
    """Anything that JSON can hold, and some that it cannot."""
    kind = random.randrange(8 if depth < 2 else 5)
    if kind == 0:
        return random.choice((None, True, False))
    if kind in (1, 2):
        return number(random)
    if kind in (3, 4):
        return text(random)
    if kind == 5:
        return [value(random, depth + 1) for _ in range(random.randrange(4))]
    if kind == 6:
        return Pairs((random.choice(KEYS), value(random, depth + 1)) for _ in range(random.randrange(3)))
    return nested(random)


def nested(random: Random) -> Raw:
    """Brackets within brackets, closed or not."""
    opened, closed = random.choice((("[", "]"), ('{"a":', "}"), ("[[],", "]")))
    depth = random.choice((3, 30, 300, 1_100, 5_000, 20_000))
    return Raw(opened * depth + "1" + closed * random.choice((depth, depth, depth - 1)))
