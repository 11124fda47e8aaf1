# SPDX-License-Identifier: Apache-2.0
"""What a log of JSON lines is, found out from its first lines: flavour, unit, level, and which columns it has."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import UNSET

from lagging.data.checks import LONGEST, unmatched_tokens
from lagging.data.run import LISTS, NUMBERS, Origin
from lagging.data.tokens import (
    are_sounds,
    check_level,
    check_untimed_level,
    detect_level,
    ends_in_eos,
    is_sound,
    is_spm,
    noun,
    text_level,
    tokens,
)
from lagging.data.trees import TreeError, read_yaml
from lagging.data.units import is_too_fast
from lagging.errors import Note, UsageError
from lagging.formats.line import Line, name_of
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.sniff import FORMATS
from lagging.formats.source import Source, first_line

__all__ = ["Facts", "counts_space", "find_level", "guess_unit", "recognise", "settle", "wanted"]

SETTINGS = ("unit", "level", "seg")
TELLING = ("durations",)
"""What is looked for in the first rows even where nobody asked for it: it says what kind of output the log has."""
OPTIONAL = ("source", "document", "prediction_spm", *LISTS, *NUMBERS, *SETTINGS)
"""What holds for the whole log: read where its first lines have it, and then the same in every line."""

TITLES = {
    "simuleval": "SimulEval log",
    "omnisteval": "segments that OmniSTEval cut from a stream",
    "jsonl": "JSON lines",
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow",
    "fairseq": "output of fairseq",
    "text": "plain text",
}
KEYS = {
    "omnisteval": {
        "delays": "emission_cu",
        "elapsed": "emission_ca",
        "document": "docid",
        "recording_end": "time_to_recording_end",
    }
}
"""What a flavour calls the fields that have another name in it."""

SHORTEST_SPEECH = 100
"""No log of speech has only sources below a tenth of a second: those are seconds."""

OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])
KEY = re.compile(rb'"([a-z_]+)"[ \t]*:')

SECONDS = "guessed from the numbers, which look like seconds"

SAMPLE = 1000
"""How many rows are looked at before it is settled what the log is."""


def recognise(head: bytes) -> str | None:
    """The kind of JSON lines that the first line that is not blank looks like; None if it does not look like JSON."""
    first = first_line(head)
    if not first.lstrip().startswith(b"{"):
        return None
    keys = _keys(first)
    if not keys & {"delays", "prediction"} and _is_simulstream(keys):
        return "simulstream"
    if "emission_cu" in keys or ({"docid", "segid"} <= keys and "delays" not in keys):
        return "omnisteval"
    if {"seg", "delays"} <= keys:
        return "jsonl"
    if "prediction_length" in keys or {"index", "prediction"} <= keys:
        return "simuleval"
    return "jsonl"


def _keys(line: bytes) -> set[str]:
    """The keys of a line; of one that is no JSON, whatever stands before a colon, so that its faults can be told."""
    try:
        return set(OBJECT.decode(line))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {key.decode() for key in KEY.findall(line)}


def _is_simulstream(keys: set[str]) -> bool:
    return bool(keys & {"model_loading_time", "total_audio_processed"}) or {"metadata", "id"} <= keys


@dataclass(frozen=True)
class Facts:
    """What holds for the whole of a log.

    Attributes:
        origin: path, format, and a description for people.
        unit: of delays and source length; "none" if there are none.
        level: what a target token is.
        seg: how a stream was cut into these segments.
        has_id, has_text, has_reference: whether lines have an index, a prediction that can be counted, a reference.
        speech_out: whether the output is speech: there are durations, or the predictions are names of sound files.
        columns: the other columns to read.
        absent: those that would be read, if the first rows had them.
    """

    origin: Origin
    unit: str
    level: str
    seg: str
    has_id: bool
    has_text: bool
    has_reference: bool
    speech_out: bool
    columns: tuple[str, ...]
    absent: tuple[str, ...]

    @property
    def untimed(self) -> bool:
        """Whether there are no delays, and only the text can be judged."""
        return self.unit == "none"


def settle(source: Source, options: ReadOptions, report: ReadReport, rows: list[Line]) -> Facts:
    """Find out what the log is, from its first rows."""
    flavour = options.format or "jsonl"
    texts = [None if row.prediction is UNSET else row.prediction for row in rows]
    speech_out = any(row.durations not in (UNSET, None) for row in rows) or are_sounds(texts)
    lengths = [len(row.delays) if row.delays else 0 for row in rows]
    untimed = _is_untimed(options, flavour, rows, speech_out)
    said = next((row.level for row in rows if isinstance(row.level, str)), None)
    if said is not None and not (said.startswith("spm") and options.level):
        check_level(said, source.path)
    if said is not None and is_spm(said) and is_spm(options.level or "") and said != options.level:
        raise UsageError(f"{source.path}: its tokens are the pieces of {said}, but the model given is {options.level}")
    level = options.level or said or ("token" if speech_out else "")
    level = level or (text_level(texts) if untimed else find_level(texts, lengths))
    unit, how = ("none", "") if untimed else _unit(source, options, flavour, rows, level)
    if untimed:
        check_untimed_level(level, source.path)
        report.notes.extend(_of_no_use(rows))
    has_text = not speech_out and any(text is not None for text in texts)
    if any(texts) and has_text and level == "token" and options.level is None and said is None:
        report.notes.append(unmatched_tokens(texts, lengths))

    asked = [c for c in OPTIONAL if wanted(c, options, unit) and not (untimed and c in TIMED)]
    report.notes.extend(_not_checked(c for c in LISTS if c not in (*asked, *TIMED * untimed) and _present(c, rows)))
    title = TITLES[flavour]
    kinds = f"{'speech' if unit == 'ms' else 'text'} → {'speech' if speech_out else 'text'}"
    measured = f"{kinds}, delays in {'ms' if unit == 'ms' else 'source tokens'} ({how})"
    described = f"{title}, {'text without delays' if untimed else measured}, target counted in {_counted(level)}"
    has_id = any(name_of(row) is not None for row in rows)
    return Facts(
        origin=Origin(source.path, flavour, described, named=has_id),
        unit=unit,
        level=level,
        seg=next((row.seg for row in rows if isinstance(row.seg, str)), "given" if flavour == "omnisteval" else "none"),
        has_id=has_id,
        has_text=has_text,
        has_reference=any(isinstance(row.reference, str) for row in rows),
        speech_out=speech_out,
        columns=tuple(c for c in asked if _present(c, rows)),
        absent=tuple(c for c in asked if not _present(c, rows)),
    )


def counts_space(text: str | None, delays: int) -> bool:
    r"""Whether there are as many delays as characters, if white space is among them.

    SimulEval leaves out the plain space and no other, OmniSTEval leaves out none.

    Example:
        >>> counts_space("我\u3000用", 3), counts_space("我 用", 3), counts_space("我 用", 2)
        (True, True, False)
    """
    if not text or ends_in_eos(text, "char") or delays == len(tokens(text, "char")):
        return False
    return delays in (len(text), len(text.replace(" ", "")))


def find_level(texts: Sequence[str | None], lengths: Sequence[int]) -> str:
    """What the delays count, as `detect_level` has it, and characters too if white space is among them.

    Example:
        >>> find_level(["我用 B", "guten Tag"], [4, 2]), find_level(["我用 B", "你好"], [4, 2])
        ('token', 'char')
    """
    pairs = zip(texts, lengths, strict=True)
    unspaced = [len(tokens(text or "", "char")) if counts_space(text, n) else n for text, n in pairs]
    return detect_level(texts, lengths, unspaced)


def wanted(column: str, options: ReadOptions, unit: str) -> bool:
    """Elapsed times in ms belong to a log of speech, and are checked with it; the rest is read if asked for."""
    if column == "prediction_spm":
        return is_spm(options.level or "")
    if options.columns is None or column in options.columns:
        return True
    return (column in ("elapsed", "compute") and unit == "ms") or column in (*NUMBERS, *SETTINGS)


def _not_checked(columns: Iterable[str]) -> Iterator[Note]:
    """A note about columns of lists that are not read because no metric needs them.

    Whatever is scored is checked alike, whoever reads it; the rest is checked by whoever reads all. Elapsed times
    beside source tokens are of no use to any metric, and nobody checks them.
    """
    names = [column for column in columns if column != "elapsed"]
    if names:
        yield Note("not checked", f"{', '.join(names)}: no metric here needs them; `lagging validate` checks all")


def _counted(level: str) -> str:
    return f"{noun(level)}s" + (f" of {level}" if is_spm(level) else "")


def _present(column: str, rows: list[Line]) -> bool:
    return any(value not in (UNSET, None, []) for value in (getattr(row, column) for row in rows))


TIMED = (*LISTS, "prediction_spm")
"""What goes with delays."""


def _is_untimed(options: ReadOptions, flavour: str, rows: list[Line], speech_out: bool) -> bool:
    """Whether a log has text, and delays nowhere."""
    said = next((row.unit for row in rows if isinstance(row.unit, str)), None)
    if options.unit is not None or said is not None:
        return options.unit is None and said == "none"
    if speech_out or not FORMATS[flavour].untimed or any(isinstance(row.delays, list) for row in rows):
        return False
    texts = [row.prediction or "" for row in rows if row.prediction is not UNSET]
    # where nothing was written there need not be delays
    return any(map(str.strip, texts)) or (bool(texts) and not _present("source_length", rows))


def _of_no_use(rows: list[Line]) -> Iterator[Note]:
    """A note about what a log without delays has of times all the same."""
    found = [column for column in ("source_length", *LISTS) if _present(column, rows)]
    if found:
        yield Note("column left out", f"{', '.join(found)}: there are no delays")


def _unit(source: Source, options: ReadOptions, flavour: str, rows: list[Line], level: str) -> tuple[str, str]:
    """The unit of the delays, and how it was found out."""
    if options.unit is not None:
        return options.unit, "as given"
    said = next((row.unit for row in rows if isinstance(row.unit, str)), None)
    if said is not None:
        if said not in ("token", "ms"):
            raise UsageError(f"{source.path}: unit must be 'token', 'ms' or 'none', but is {said!r}")
        return said, "says the log"
    if flavour == "omnisteval":
        return "ms", "as OmniSTEval writes"
    configured = configured_type(source) if flavour == "simuleval" else None
    if configured == "text":
        return "token", "says config.yaml"
    texts = [row.source for row in rows if isinstance(row.source, str | list) and row.source]
    sizes = [row.source_length for row in rows if isinstance(row.source_length, float)]
    guess, how = ("ms", "says config.yaml") if configured else guess_unit(texts[0] if texts else None, sizes)
    spoken = _spoken([len(row.delays or ()) for row in rows], [row.source_length for row in rows])
    too_fast = guess == "ms" and is_too_fast(*spoken, level)
    if options.unit_hint is not None and ("guessed" in how or too_fast):
        return options.unit_hint, "as in the signature"
    if guess == "" or too_fast:
        tokens, ms = spoken
        rate = f"; as milliseconds, these would be {1000 * tokens / ms:.0f} {noun(level)}s a second" if too_fast else ""
        raise UsageError(
            f"{source.path}: the unit cannot be told: source lengths of {min(sizes):g} to {max(sizes):g}{rate}\n"
            "  Delays are source tokens or milliseconds, and these look like seconds.\n"
            "  fix: multiply seconds by 1000, or say --unit ms or --unit token."
        )
    return guess, how


def _spoken(lengths: Iterable[int], sizes: Iterable[object]) -> tuple[int, float]:
    """How much was written, in tokens, while how much of the source was spoken, as far as that is known."""
    known = [(n, x) for n, x in zip(lengths, sizes, strict=True) if isinstance(x, float) and 0 < x < math.inf]
    return sum(n for n, _ in known), sum(x for _, x in known)


def guess_unit(source: Any, sizes: list[float]) -> tuple[str, str]:
    """The unit that a log without a word about it is taken to have, by its first source and its source lengths.

    Nothing, if it cannot be told.
    """
    if isinstance(source, list) or (isinstance(source, str) and is_sound(source)):
        return ("", SECONDS) if sizes and 0 < max(sizes) < SHORTEST_SPEECH else ("ms", "the source is sound")
    sizes = [size for size in sizes if math.isfinite(size)]
    if isinstance(source, str) and sizes:
        counts = {len(source.split()), len("".join(source.split())), len(source.strip())}
        if sizes[0] in counts:
            return "token", "source_length is the number of source tokens"
    if all(size == int(size) and size <= LONGEST["token"] for size in sizes):
        return "token", "guessed from the numbers; --unit ms if not"
    if max(sizes) < SHORTEST_SPEECH:
        return "", SECONDS
    return "ms", "guessed from the numbers; --unit token if not"


def configured_type(source: Source) -> str | None:
    """`source_type` of the config.yaml that SimulEval writes beside its log (its `target_type` cannot be trusted)."""
    if source.file is None:
        return None
    config = source.file.with_name("config.yaml")
    if not config.is_file():
        return None
    try:
        found = read_yaml(config.read_text("utf-8"))
        if found.repeated:
            line, _, key = found.repeated[0]
            raise TreeError(f"the key {key} twice, in line {line}")
    except ValueError as error:
        raise UsageError(f"{config} is not readable YAML; mend or remove it, or give --unit\n  {error}") from None
    kind = found.value.get("source_type") if isinstance(found.value, dict) else None
    return kind if kind in ("text", "speech") else None
