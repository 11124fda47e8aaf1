# SPDX-License-Identifier: Apache-2.0
"""What a log is, resolved from its first rows: flavour, unit, level, and which columns it has.

These are resolved in one file because they depend on one another: the unit on the level, the level on the kind of
output, the columns on the unit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from msgspec import UNSET

from lagging.data.checks import LONGEST, unmatched_tokens
from lagging.data.run import LISTS, NUMBERS, Origin
from lagging.data.tokens import (
    are_sounds,
    check_level,
    check_untimed_level,
    count_tokens,
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
from lagging.formats.registry import format_named
from lagging.formats.report import ReadReport
from lagging.formats.source import Source

__all__ = [
    "LogSchema",
    "Sample",
    "counts_space",
    "find_level",
    "guess_unit",
    "is_requested",
    "resolve_schema",
    "spoken_length",
]

SETTINGS = ("unit", "level", "seg")
TELLING = ("durations",)
"""Columns that are read in the first rows even if they are not requested: they show what kind of output the log has."""
OPTIONAL = ("source", "document", "prediction_spm", *LISTS, *NUMBERS, *SETTINGS)
"""Columns that a log may have: read if its first rows have them."""

TITLES = {
    "simuleval": "SimulEval log",
    "omnisteval": "segments that OmniSTEval cut from a stream",
    "jsonl": "JSON lines",
    "s2s": "segments of output speech",
    "trajectory": "chunks of source and target in turn",
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
    },
    "s2s": {"document": "doc_id"},
}
"""The names that a flavour has for fields of ours."""

CUT = ("omnisteval", "s2s")
"""The flavours whose rows were cut from streams."""

SHORTEST_SPEECH = 100
"""No log of speech has only sources shorter than 100 ms: such numbers are seconds."""

SECONDS = "guessed from the numbers, which look like seconds"

SAMPLE = 1000
"""How many rows the schema is resolved from."""


@dataclass(frozen=True)
class LogSchema:
    """What holds for the whole of a log.

    Attributes:
        origin: path, format, and a description for people.
        unit: of delays and source length; "none" if there are none.
        level: what a target token is.
        seg: how a stream was cut into these segments.
        has_id, has_text, has_reference: whether lines have an index, a prediction that can be counted, a reference.
        speech_out: whether the output is speech: there are durations, or the predictions are names of sound files.
        columns: the other columns to read.
        absent: the columns that would be read if the first rows had them.
        units: what the log's own tokens are (`raw_units`), if that is known: references are counted so.
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
    units: str = ""

    @property
    def untimed(self) -> bool:
        """Whether there are no delays, and only the text can be judged."""
        return self.unit == "none"

    def narrow(self, options: ReadOptions) -> LogSchema:
        """The same log, read with other options: only the columns that these request."""
        columns, absent = (
            tuple(c for c in names if is_requested(c, options, self.unit)) for names in (self.columns, self.absent)
        )
        return replace(self, columns=columns, absent=absent)

    def extend(self, sample: Sample) -> LogSchema:
        """The same log with the numbers and texts that these rows have and its first rows do not.

        A null is no value of these, whichever rows are read together. In a column of lists it would be a fault.
        """
        added = tuple(c for c in self.absent if c in sample.present and c in (*NUMBERS, "source", "document"))
        return replace(
            self,
            has_reference=self.has_reference or sample.has_reference,
            columns=(*self.columns, *added),
            absent=tuple(c for c in self.absent if c not in added),
        )


@dataclass(frozen=True)
class Sample:
    """The first rows of a log, by column: what its schema is resolved from.

    Attributes:
        predictions: what was written; UNSET in rows without the column, None for null.
        lengths: the number of delays of each row.
        sources: source texts, or descriptions of sound files.
        source_lengths: source lengths; anything but a float where there is none.
        declared: unit, level and seg, as far as the rows themselves say.
        timed: whether a row has delays, be they an empty list.
        has_durations, has_id, has_reference: whether a row has these.
        present: the columns that have a value in some row.
        units: the tokens that the delays count, where a row has them beside its text.
    """

    predictions: Sequence[Any]
    lengths: Sequence[int]
    sources: Sequence[Any]
    source_lengths: Sequence[Any]
    declared: Mapping[str, str]
    timed: bool
    has_durations: bool
    has_id: bool
    has_reference: bool
    present: frozenset[str]
    units: Sequence[list[Any] | None] = ()

    @classmethod
    def from_rows(cls, rows: Sequence[Line]) -> Sample:
        """The columns of decoded rows."""
        settings = {name: [getattr(row, name) for row in rows] for name in SETTINGS}
        return cls(
            predictions=[row.prediction for row in rows],
            lengths=[0 if not row.delays or _is_lone(row) else len(row.delays) for row in rows],
            units=[row.raw_units if isinstance(row.raw_units, list) else None for row in rows],
            sources=[row.source for row in rows],
            source_lengths=[row.source_length for row in rows],
            declared=first_texts(settings),
            timed=any(isinstance(row.delays, list) for row in rows),
            has_durations=any(row.durations not in (UNSET, None) for row in rows),
            has_id=any(name_of(row) is not None for row in rows),
            has_reference=any(isinstance(row.reference, str) for row in rows),
            present=frozenset(
                column
                for column in ("source_length", *OPTIONAL)
                if any(getattr(row, column) not in (UNSET, None, []) for row in rows)
            ),
        )

    @property
    def unit_level(self) -> str:
        """What the units of the rows are: characters, or words; "" where there are none."""
        written = [str(unit) for units in self.units for unit in units or ()]
        return "" if not written else "char" if all(len(unit) == 1 for unit in written) else "word"

    @property
    def texts(self) -> list[str | None]:
        """What was written; None where nothing is known of it."""
        return [None if text is UNSET else text for text in self.predictions]


def _is_lone(row: Line) -> bool:
    """Whether a row has one delay and an empty text, which shows nothing of what is counted."""
    return isinstance(row.prediction, str) and not row.prediction.strip() and bool(row.delays) and len(row.delays) == 1  # type: ignore[arg-type]


def first_texts(columns: Mapping[str, Iterable[Any]]) -> dict[str, str]:
    """The first text of each column that has any."""
    firsts = {name: next((v for v in values if isinstance(v, str)), None) for name, values in columns.items()}
    return {name: text for name, text in firsts.items() if text is not None}


def resolve_schema(source: Source, options: ReadOptions, report: ReadReport, sample: Sample) -> LogSchema:
    """Resolve what the log is: as requested, as it says itself, or as its first rows show; notes go to the report."""
    flavour = options.format or "jsonl"
    texts = sample.texts
    speech_out = sample.has_durations or are_sounds(texts)
    untimed = _is_untimed(options, flavour, sample, speech_out)
    declared = sample.declared.get("level")
    if declared is not None and not (declared.startswith("spm") and options.level):
        check_level(declared, source.path)
    if declared is not None and is_spm(declared) and is_spm(options.level or "") and declared != options.level:
        raise UsageError(
            f"{source.path}: its tokens are the pieces of {declared}, but the model given is {options.level}"
        )
    level = options.level or declared or ("token" if speech_out else "")
    units = "" if level else sample.unit_level
    if units:  # the text may have other words than its units: punctuation, for instance
        level = units if np.array_equal(count_tokens(texts, units, sample.lengths), sample.lengths) else "token"
    level = level or (text_level(texts) if untimed else find_level(texts, sample.lengths))
    unit, evidence = ("none", "") if untimed else _resolve_unit(source, options, flavour, sample, level)
    if untimed:
        check_untimed_level(level, source.path)
        report.notes.extend(_note_useless(sample))
    has_text = not speech_out and any(text is not None for text in texts)
    if any(texts) and has_text and level == "token" and not units and options.level is None and declared is None:
        report.notes.append(unmatched_tokens(texts, sample.lengths))

    requested = [c for c in OPTIONAL if is_requested(c, options, unit) and not (untimed and c in TIMED)]
    # durations make the output speech, also where nothing was written
    present = sample.present | ({"durations"} if sample.has_durations and not untimed else set())
    unread = (c for c in LISTS if c in sample.present and c not in (*requested, *TIMED * untimed))
    report.notes.extend(_note_unchecked(unread))
    kinds = f"{'speech' if unit == 'ms' else 'text'} → {'speech' if speech_out else 'text'}"
    measured = f"{kinds}, delays in {'ms' if unit == 'ms' else 'source tokens'} ({evidence})"
    title = TITLES.get(flavour) or format_named(flavour).title
    described = f"{title}, {'text without delays' if untimed else measured}, target counted in {_tokens_of(level)}"
    return LogSchema(
        origin=Origin(source.path, flavour, described, named=sample.has_id),
        unit=unit,
        level=level,
        seg=sample.declared.get("seg", "given" if flavour in CUT else "none"),
        has_id=sample.has_id,
        has_text=has_text,
        has_reference=sample.has_reference,
        speech_out=speech_out,
        columns=tuple(c for c in requested if c in present),
        absent=tuple(c for c in requested if c not in present),
        units=units if level == "token" else "",
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
    """What the delays count, as `detect_level` finds it; characters also if white space is among them.

    Example:
        >>> find_level(["我用 B", "guten Tag"], [4, 2]), find_level(["我用 B", "你好"], [4, 2])
        ('token', 'char')
    """
    pairs = zip(texts, lengths, strict=True)
    unspaced = [len(tokens(text or "", "char")) if counts_space(text, n) else n for text, n in pairs]
    return detect_level(texts, lengths, unspaced)


def is_requested(column: str, options: ReadOptions, unit: str) -> bool:
    """Whether a column is to be read.

    Elapsed times in ms belong to a log of speech, and are checked with it; other columns are read if requested.
    """
    if column == "prediction_spm":
        return is_spm(options.level or "")
    if options.columns is None or column in options.columns:
        return True
    return (column in ("elapsed", "compute") and unit == "ms") or column in (*NUMBERS, *SETTINGS)


def _note_unchecked(columns: Iterable[str]) -> Iterator[Note]:
    """A note about columns of lists that are not read because no metric needs them.

    What is scored is checked by every command in the same way; the rest is checked by commands that read all columns.
    No metric uses elapsed times beside source tokens, so they are never checked.
    """
    names = [column for column in columns if column != "elapsed"]
    if names:
        yield Note("not checked", f"{', '.join(names)}: no metric here needs them; `lagging validate` checks all")


def _tokens_of(level: str) -> str:
    return f"{noun(level)}s" + (f" of {level}" if is_spm(level) else "")


TIMED = (*LISTS, "prediction_spm")
"""Columns that go with delays."""


def _is_untimed(options: ReadOptions, flavour: str, sample: Sample, speech_out: bool) -> bool:
    """Whether a log has text, and delays nowhere."""
    declared = sample.declared.get("unit")
    if options.unit is not None or declared is not None:
        return options.unit is None and declared == "none"
    if speech_out or not format_named(flavour).untimed or sample.timed:
        return False
    texts = [text or "" for text in sample.predictions if text is not UNSET]
    # where nothing was written there need not be delays
    return any(map(str.strip, texts)) or (bool(texts) and "source_length" not in sample.present)


def _note_useless(sample: Sample) -> Iterator[Note]:
    """A note about the times that a log without delays has nevertheless."""
    columns = [column for column in ("source_length", *LISTS) if column in sample.present]
    if columns:
        yield Note("column left out", f"{', '.join(columns)}: there are no delays")


def _resolve_unit(source: Source, options: ReadOptions, flavour: str, sample: Sample, level: str) -> tuple[str, str]:
    """The unit of the delays, and the evidence for it, in words."""
    if options.unit is not None:
        return options.unit, "as given"
    declared = sample.declared.get("unit")
    if declared is not None:
        if declared not in ("token", "ms"):
            raise UsageError(f"{source.path}: unit must be 'token', 'ms' or 'none', but is {declared!r}")
        return declared, "says the log"
    if flavour == "omnisteval":
        return "ms", "as OmniSTEval writes"
    if flavour == "s2s":
        return "ms", "as Speech-to-Speech-Latency writes"
    configured = configured_type(source) if flavour == "simuleval" else None
    if configured == "text":
        return "token", "says config.yaml"
    first_source = next((text for text in sample.sources if isinstance(text, str | list) and text), None)
    sizes = [size for size in sample.source_lengths if isinstance(size, float)]
    guess, evidence = ("ms", "says config.yaml") if configured else guess_unit(first_source, sizes)
    tokens, ms = spoken_length(sample.lengths, sample.source_lengths)
    too_fast = guess == "ms" and is_too_fast(tokens, ms, level)
    if options.unit_hint is not None and ("guessed" in evidence or too_fast):
        return options.unit_hint, "as in the signature"
    if guess == "" or too_fast:
        rate = f"; as milliseconds, these would be {1000 * tokens / ms:.0f} {noun(level)}s a second" if too_fast else ""
        raise UsageError(
            f"{source.path}: the unit cannot be told: source lengths of {min(sizes):g} to {max(sizes):g}{rate}\n"
            "  Delays are source tokens or milliseconds, and these look like seconds.\n"
            "  fix: multiply seconds by 1000, or say --unit ms or --unit token."
        )
    return guess, evidence


def spoken_length(lengths: Iterable[int], sizes: Iterable[object]) -> tuple[int, float]:
    """How many tokens were written, and during how much of the source, where its length is known."""
    known = [(n, x) for n, x in zip(lengths, sizes, strict=True) if isinstance(x, float) and 0 < x < math.inf]
    return sum(n for n, _ in known), sum(x for _, x in known)


def guess_unit(source: Any, sizes: Sequence[float]) -> tuple[str, str]:
    """Guess the unit of a log from its first source and its source lengths; "" if that is not possible."""
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
        tree = read_yaml(config.read_text("utf-8"))
        if tree.repeated:
            line, _, key = tree.repeated[0]
            raise TreeError(f"the key {key} twice, in line {line}")
    except ValueError as error:
        raise UsageError(f"{config} is not readable YAML; mend or remove it, or give --unit\n  {error}") from None
    kind = tree.value.get("source_type") if isinstance(tree.value, dict) else None
    return kind if kind in ("text", "speech") else None
