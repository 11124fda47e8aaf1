# SPDX-License-Identifier: Apache-2.0
"""Writes the example logs in `data/` from the sentences in `data/sentences.tsv`.

    python examples/make_data.py            # rewrites data/; the same bytes every time

No translation system was run. The sentences and their two translations were written by hand: `careful` is good,
`hasty` keeps the German word order, as a system does that cannot wait for the verb. Each example system takes a share
of its output from either, the more careful ones the later it writes, and its delays from a policy. The logs have the
keys, the order of keys and the quirks of SimulEval 1.1, and `broken` has faults for `lagging validate` to find.
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lagging import policies

DATA = Path(__file__).resolve().parent / "data"

RATE = 16_000
"""Samples per second of the sound files that the speech system is said to have heard."""

CHUNK = 500
"""Milliseconds of sound that the speech system hears between two decisions."""

OPENER = re.compile(
    "am|an|aufs?|aus|bevor|das|dass|de[mnrs]|die|eine?[mnr]?|für|im|ins?|mit|nach|ob|obwohl|ohne|seit|sobald|um|und|unter|"
    "von|vor|weil|wenn|zu|zum|zur",
    re.IGNORECASE,
)
"""Words that begin a German phrase: before one of them, a phrase has ended."""


@dataclass(frozen=True)
class Sentence:
    """A source sentence, its translation, and what two translators made of it."""

    source: str
    reference: str
    careful: str
    hasty: str

    @property
    def words(self) -> list[str]:
        """Words of the source."""
        return self.source.split()


Delays = Callable[[Sentence, str], list[int]]
"""The delays of a system's output on a sentence, in source words."""


def sentences() -> list[Sentence]:
    """The sentences, as written by hand."""
    with (DATA / "sentences.tsv").open(encoding="utf-8", newline="") as file:
        return [Sentence(**row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)]


# ---- when: delays ---------------------------------------------------------------------------------------------


def by_policy(name: str) -> Delays:
    """The delays of one of lagging's policies."""
    chosen = policies.policy(name)

    def delays(sentence: Sentence, output: str) -> list[int]:
        return [int(g) for g in chosen.delays(len(sentence.words), len(output.split()))]

    return delays


def phrase_ends(words: list[str]) -> list[int]:
    """After how many words a phrase ends: at punctuation, or before a word that begins one; never after one word."""
    ends: list[int] = []
    for read, word in enumerate(words, 1):
        last = read == len(words)
        ended = last or word.endswith((",", ".", "?")) or OPENER.fullmatch(words[read])
        if ended and (last or read - (ends[-1] if ends else 0) >= 2):
            ends.append(read)
    return ends


def adaptive(sentence: Sentence, output: str) -> list[int]:
    """Reads on to the end of the phrase, then writes what the phrase is worth."""
    x, y = len(sentence.words), len(output.split())
    ends = phrase_ends(sentence.words)
    return [next(end for end in ends if end * y >= t * x) for t in range(1, y + 1)]


# ---- what: translations ---------------------------------------------------------------------------------------


def pick(all_of: list[Sentence], careful: int) -> list[str]:
    """Outputs of which `careful` in ten are careful ones; a larger share includes the smaller ones."""
    return [s.careful if 7 * i % 10 < careful else s.hasty for i, s in enumerate(all_of)]


# ---- logs -----------------------------------------------------------------------------------------------------


def instance(index: int, output: str, delays: list[Any], elapsed: list[Any], **rest: object) -> dict[str, Any]:
    """What SimulEval 1.1 writes about a sentence, in its order."""
    count = len(output.split())
    return {
        "index": index,
        "prediction": output,
        "delays": delays,
        "elapsed": elapsed,
        "prediction_length": count,
        **rest,
    }


def text_log(all_of: list[Sentence], delays: Delays, careful: int) -> list[dict[str, Any]]:
    """A log of text in, text out. SimulEval leaves a newline at the end of a reference."""
    log = []
    for i, (sentence, output) in enumerate(zip(all_of, pick(all_of, careful), strict=True)):
        g = delays(sentence, output)
        rest = {"reference": sentence.reference + "\n", "source": sentence.source, "source_length": len(sentence.words)}
        log.append(instance(i, output, g, [0] * len(g), **rest))
    return log


def speech_log(all_of: list[Sentence], careful: int) -> list[dict[str, Any]]:
    """A log of speech in, text out: milliseconds, a source length that is no whole number, and time to compute.

    A word is written at the first chunk that ends a second after the sound that it translates. SimulEval adds all
    computing time so far to the sound heard so far, so `elapsed` runs away from `delays`.
    """
    dice = random.Random(2019)
    log = []
    for i, (sentence, output) in enumerate(zip(all_of, pick(all_of, careful), strict=True)):
        samples = sum(1_100 * len(word) + 900 for word in sentence.words) + dice.randrange(4_000, 9_000)
        length = 1000 * samples / RATE
        y = len(output.split())
        heard = [CHUNK * (1 + int((length * t / y + 1000) // CHUNK)) for t in range(y)]
        delays = [float(g) if g < length else length for g in heard]
        spent, chunk, elapsed = 0.0, 0, []
        for g in delays:
            while chunk < g:  # every chunk costs the encoder, every word the decoder
                chunk += CHUNK
                spent += dice.uniform(40, 70)
            spent += dice.uniform(8, 20)
            elapsed.append(round(g + spent, 2))
        sound = [
            f"talk/{i:03}.wav",
            f"samplerate: {RATE} Hz",
            "channels: 1",
            f"duration: {length / 1000:.3f} s",
            "format: WAV (Microsoft) [WAV]",
            "subtype: Signed 16 bit PCM [PCM_16]",
        ]
        log.append(
            instance(i, output, delays, elapsed, reference=sentence.reference, source=sound, source_length=length)
        )
    return log


def broken_log(whole: list[dict[str, Any]]) -> str:
    """A dozen lines of a log, most of them with a fault of their own kind."""
    lines = [dict(line) for line in whole[:12]]
    lines[1]["delays"] = [*lines[1]["delays"][:4], 2, *lines[1]["delays"][5:]]  # decreasing
    lines[2] |= {key: lines[2][key][:-2] for key in ("delays", "elapsed")}  # fewer than words
    lines[3]["delays"] = [-1, *lines[3]["delays"][1:]]  # negative
    del lines[4]["source_length"]
    lines[5]["delays"] = [str(g) for g in lines[5]["delays"]]  # text for numbers
    lines[6]["delays"] = [*lines[6]["delays"][:-1], float("nan")]
    lines[7]["index"] = 0  # used before
    lines[8]["prediction"] = None
    lines[9]["source_length"] = -14
    lines[10] |= {"prediction": "", "delays": [], "elapsed": [], "prediction_length": 0}  # no fault: a note
    *good, last = map(json.dumps, lines)
    return "\n".join([*good, last[:120]])  # the run was cut off


SCHEDULES = (
    "RRRRWRWWWW",  # Table 2 of Cherry & Foster: wait-4 on five words
    "RRRRWWWWRW",  # and the antagonist, who delays the last read
    "RWRWRWWWW",  # Table 5: wait-1, three words in, six out
    "RWWRWWRWW",  # and with catch-up
)


# ---- files ----------------------------------------------------------------------------------------------------


def written(records: Iterable[dict[str, Any]]) -> str:
    """JSON, one record a line, as Python's json writes it."""
    return "".join(json.dumps(record) + "\n" for record in records)


def config(kind: str) -> str:
    """The config.yaml of SimulEval 1.1.4, which takes the source's type for that of the target too."""
    return f"source_type: {kind}\ntarget_type: {kind}\n"


def make() -> dict[str, str]:
    """Every file that is made, by its path in `data/`."""
    all_of = sentences()
    systems = {
        "wait-1": text_log(all_of, by_policy("wait-1"), careful=0),
        "wait-3": text_log(all_of, by_policy("wait-3"), careful=4),
        "wait-5": text_log(all_of, by_policy("wait-5"), careful=7),
        "antagonist-5": text_log(all_of, by_policy("antagonist-5"), careful=7),
        "adaptive": text_log(all_of, adaptive, careful=8),
        "offline": text_log(all_of, by_policy("offline"), careful=10),
        "speech": speech_log(all_of, careful=8),
    }
    files = {f"{name}/instances.log": written(log) for name, log in systems.items()}
    files |= {f"{name}/config.yaml": config("speech" if name == "speech" else "text") for name in systems}
    files["broken/instances.log"] = broken_log(systems["wait-3"])
    files["broken/config.yaml"] = config("text")
    files["schedules.rw"] = "".join(line + "\n" for line in SCHEDULES)
    files |= {f"{part}.txt": "".join(getattr(s, part) + "\n" for s in all_of) for part in ("source", "reference")}
    return files


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the example logs.")
    parser.add_argument("--output", type=Path, default=DATA, help="where to write them; data/ beside this file")
    to: Path = parser.parse_args().output
    for name, text in make().items():
        path = to / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
