# SPDX-License-Identifier: Apache-2.0
r"""What programs derived from fairseq's `generate` print of simultaneous translation (`Delay-`, `L-`, `RW-` lines).

    S-7	ein Ha@@ us steht dort
    T-7	there is a house
    Delay-7	-0.41	[2, 3, 5, 6, 6]
    L-7	CW:1.5	AP:0.7333333492279053	AL:2.200000047683716	DAL:2.359999895095825
    H-7	-0.41	there stands a house
    P-7	-0.2 -0.5 -0.3 -0.6 -0.4

The number after the hyphen names the sentence, a tab follows. The lines of a sentence may come in any order, with
others between: whatever else is in the file is skipped, and counted in a note.

    S-, T-      source and reference
    H-, D-      score, tab, hypothesis; D- is H- without tokenization, and is taken where there is no H-
    Delay-      score, tab, delays: how much of the source had been read before each token was written
    RW-         score, tab, actions instead of delays: 0 or R for read, 1 or W for write
    BS-, BT-    source and hypothesis in the tokens of the model, where S- and H- have words
    L-          what the program itself measured: `CW:…`, `AP:…`, `AL:…`, `DAL:…`, separated by tabs

The end of the sentence, `</s>`, is a token on both sides for these programs. On the source side it stays counted, as in
their own scores. On the target side it has the last delay: a hypothesis whose words are one fewer than its delays gets
` </s>` at its end, for the convention to strip or to keep.

The length of the source is, in this order: the number of reads (RW-); what AP must have been divided by,
|x| = Σ g(t) / (AP · |y|), if the log has enough digits of it; the tokens of BS- and one for `</s>`; the tokens of S-,
and one more if a sentence was read that far. AP alone has the length of speech, to 1/16 ms, a sample at 16 kHz.

Sub-words (`Ha@@ us`, `▁Ha us`) are the log's own tokens: the delays count them, level `token`. Texts are joined to
words, and the length of the reference is counted before that.

What we write has in L- `source_length:…`, `unit:…` and `level:…`; where these are, texts and delays are taken as they
are. The order of lines decides nothing until the file has been read to its end: such a log is read at once, not in
parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TextIO

import numpy as np
from msgspec import UNSET

from lagging.data.run import Run
from lagging.data.tokens import EOS, without_eos
from lagging.errors import Fault, Note
from lagging.formats import rw
from lagging.formats.line import Line
from lagging.formats.omissions import lost
from lagging.formats.options import ReadOptions
from lagging.formats.report import ReadReport
from lagging.formats.segment_rows import Rows, collect
from lagging.formats.source import Source
from lagging.formats.tables import parse_list, parse_number

__all__ = ["recognise", "scan", "write"]

TAGGED = re.compile(rb"(Delay|RW|BS|BT|[STHDL])-(\d{1,19})\t")
OTHER = re.compile(rb"[A-Z]+-\d+(_\d+)?\t")
"""Other lines of sentences, which are not read: P- (scores of tokens), A- (alignment), I-, E-, …"""

ACTIONS = bytes.maketrans(b"01", b"RW")
PIECES = re.compile(r"@@( |$)|▁")
GRID = 16
"""Samples per millisecond at 16 kHz: a source length is rounded to whole samples."""


def recognise(head: bytes) -> bool:
    """Whether a line has a sentence's number and a tab after one of the tags."""
    return any(TAGGED.match(_bare(line)) for line in head.split(b"\n"))


def _bare(line: bytes) -> bytes:
    """A line without its end, and without a progress bar before it."""
    return line.rstrip(b"\r\n").rpartition(b"\r")[2]


def scan(source: Source, options: ReadOptions, report: ReadReport) -> Iterator[Run]:
    """The sentences of a file, in the order in which they are first named; faults and notes go to the report."""
    return collect(source, options, report, _Decoder(source, report))


@dataclass
class _Sentence:
    """The content of the lines of one sentence.

    Attributes:
        name: its number.
        line: the line in which its delays are, or the first that names it.
        texts: what follows the tag, by tag.
        delays: delays, from Delay- or RW-.
        reads: number of reads, from RW-.
        latency: entries of L-.
    """

    name: int
    line: int
    texts: dict[str, str] = field(default_factory=dict)
    delays: list[float] | None = None
    reads: float | None = None
    latency: dict[str, str] = field(default_factory=dict)

    @property
    def hypothesis(self) -> str | None:
        """The text that was written."""
        return self.texts.get("H", self.texts.get("D"))

    @property
    def tokens(self) -> int | None:
        """The number of its tokens, without `</s>`."""
        text = self.texts.get("BT", self.hypothesis)
        return None if text is None else len(without_eos(text).split())

    @property
    def literal(self) -> bool:
        """Whether we wrote it, so that nothing has to be inferred."""
        return "source_length" in self.latency


class _Decoder:
    """Turns lines into rows, all of them at the end of the file."""

    def __init__(self, source: Source, report: ReadReport) -> None:
        self.source, self.report = source, report
        self.skipped = 0

    def only(self, columns: Iterable[str], absent: Iterable[str]) -> None:
        """Do nothing: all columns are read."""

    def chunks(self) -> Iterator[Rows]:
        """All rows."""
        sentences = self._sentences()
        if self.skipped:
            text = f"that tell of no sentence: skipped, in {self.source.path}"
            self.report.notes.append(Note("other lines", text, self.skipped, noun="line"))
        rows = Rows()
        for sentence, line in self._rows(sentences):
            rows.rows.append(line)
            rows.lines.append(sentence.line)
            rows.places.append(len(rows.places))
        yield rows

    # ---- lines to sentences -----------------------------------------------------------------------------------

    def _sentences(self) -> list[_Sentence]:
        sentences: list[_Sentence] = []
        latest: dict[int, _Sentence] = {}
        for batch in self.source.batches():
            for at, line in enumerate(batch.lines, batch.first):
                content = _bare(line)
                tagged = TAGGED.match(content)
                if tagged is None:
                    self.skipped += OTHER.match(content) is None
                    continue
                tag, name = tagged[1].decode(), int(tagged[2])
                # a second line of a kind belongs to a second sentence of that number: a duplicate
                if name not in latest or tag in latest[name].texts:
                    latest[name] = _Sentence(name, at)
                    sentences.append(latest[name])
                self._take(latest[name], tag, content[tagged.end() :], at)
        return sentences

    def _take(self, sentence: _Sentence, tag: str, content: bytes, line: int) -> None:
        """Add the content of a line to its sentence."""
        try:
            text = content.decode("utf-8")
        except UnicodeDecodeError as error:
            self._wrong("not-utf8", f"byte 0x{content[error.start]:02x} in {tag}-", line, sentence)
            text = content.decode("utf-8", "replace")
        if tag in ("H", "D"):  # a score comes first
            text = text.partition("\t")[2] if "\t" in text else text
        sentence.texts[tag] = text
        if tag == "L":
            sentence.latency = {key: value for key, _, value in (p.partition(":") for p in text.split("\t"))}
        if tag in ("Delay", "RW"):
            sentence.line = line
            self._delays(sentence, tag, text.rpartition("\t")[2])

    def _delays(self, sentence: _Sentence, tag: str, text: str) -> None:
        if tag == "RW":
            actions = text.encode().translate(ACTIONS, rw.SPACES + b",")
            strange = actions.translate(None, rw.ACTIONS).decode("utf-8", "replace")
            if strange:
                self._wrong("not-an-action", f"{strange[0]!r} in RW-", sentence.line, sentence)
            else:
                delays, reads = rw.parse(actions)
                sentence.reads = float(reads)
                sentence.delays = delays.tolist() if sentence.delays is None else sentence.delays
            return
        nested = text.strip()
        inner = nested[1:-1].strip() if nested.startswith("[[") and nested.endswith("]]") else nested
        if "][" in re.sub(r"[\s,]", "", inner):
            self._wrong("delays-not-a-list", "several lists in one", sentence.line, sentence)
            return
        values, faults = parse_list(inner, "delays")
        for fault in faults:
            self._wrong(fault.kind, fault.detail, sentence.line, sentence, fault.token)
        sentence.delays = values if values is not None or faults else []

    def _wrong(self, kind: str, detail: str, line: int, sentence: _Sentence, token: int | None = None) -> None:
        self.report.faults.add(Fault(kind, detail, self.source.path, line, sentence.name, token))

    # ---- sentences to rows ------------------------------------------------------------------------------------

    def _rows(self, sentences: list[_Sentence]) -> Iterator[tuple[_Sentence, Line]]:
        """The sentences as rows, once all are known."""
        foreign = [s for s in sentences if not s.literal and s.delays]
        habits = _Habits.from_sentences(foreign)
        if habits.marked:
            self.report.notes.append(Note(EOS, "a token to this log, with the last delay of its own", len(foreign)))
        for sentence in sentences:
            timed = {"Delay", "RW"} & set(sentence.texts)
            length, faults = _length(sentence, habits)
            if faults or (timed and sentence.delays is None):
                self.report.refuse(faults, self.source, sentence.line, sentence.name)
                continue
            row = _as_written(sentence) if sentence.literal else self._row(sentence, habits)
            row.source_length = length
            row.delays = sentence.delays if timed else UNSET
            yield sentence, row

    def _row(self, sentence: _Sentence, habits: _Habits) -> Line:
        """The row of a sentence whose texts are inferred from the habits of the log."""
        row = Line(id=sentence.name, source=sentence.texts.get("S"))
        text, reference = sentence.hypothesis, sentence.texts.get("T")
        alone = sentence.tokens == 0 and len(sentence.delays or ()) == 1  # nothing was written but </s>
        if habits.pieces:
            row.level = "token"
            row.prediction = EOS if alone else sentence.texts.get("D", text and joined(text))
            row.reference = reference and joined(reference)
            row.reference_length = None if reference is None else float(len(reference.split()) + habits.marked)
            count = None if sentence.tokens is None else sentence.tokens + habits.marked
            if sentence.delays and not alone and count not in (None, len(sentence.delays)):
                with_mark = f" with {EOS}" if habits.marked else ""
                detail = f"{len(sentence.delays)} delays, {count} tokens{with_mark}"
                self._wrong("token-count", detail, sentence.line, sentence)
        else:
            counted = habits.marked and "BT" not in sentence.texts and bool(sentence.tokens and sentence.delays)
            row.prediction = EOS if alone else f"{text} {EOS}" if counted else text
            row.reference = reference
        return row


@dataclass(frozen=True)
class _Habits:
    """What all sentences of a log have in common.

    Attributes:
        marked: whether the last delay is that of `</s>`, which the hypotheses do not show.
        pieces: whether hypotheses are in sub-words.
        read_on: whether `</s>` of the source is read too, as a delay beyond the tokens of S- shows.
        decimals: digits after the point in the AP that has most of them: 0.5 among long ones is not rounded.
    """

    marked: bool
    pieces: bool
    read_on: bool
    decimals: int

    @classmethod
    def from_sentences(cls, sentences: list[_Sentence]) -> _Habits:
        """The habits of a log; `marked` is decided by most sentences, since a few may have faults."""
        spare = [len(s.delays or ()) - s.tokens for s in sentences if s.tokens is not None]
        return cls(
            marked=2 * spare.count(1) > len(spare),
            pieces=any(PIECES.search(s.hypothesis or "") for s in sentences),
            read_on=any(max(s.delays or [0]) == _words(s) + 1 for s in sentences if "S" in s.texts),
            decimals=max((len(s.latency.get("AP", "").partition(".")[2]) for s in sentences), default=0),
        )


def _as_written(sentence: _Sentence) -> Line:
    """The row of a sentence that we wrote."""
    entries = sentence.latency
    return Line(
        id=sentence.name,
        prediction=sentence.texts.get("H"),
        reference=sentence.texts.get("T"),
        source=sentence.texts.get("S"),
        unit=entries.get("unit", UNSET),
        level=entries.get("level", UNSET),
    )


def _words(sentence: _Sentence) -> int:
    return len(without_eos(sentence.texts["S"]).split())


def _length(sentence: _Sentence, habits: _Habits) -> tuple[float | None, list[Fault]]:
    """|x|; or None, and why it is not known."""
    if sentence.literal:
        return parse_number(sentence.latency["source_length"], "source_length")
    if sentence.reads is not None:
        return sentence.reads, []
    implied = _implied(sentence, habits.decimals)
    if implied is not None:
        return implied, []
    if "BS" in sentence.texts:
        return float(len(without_eos(sentence.texts["BS"]).split()) + 1), []
    if "S" not in sentence.texts:
        return None, [Fault("missing-source-length", "neither S-, RW- nor AP in L-")]
    words, last = _words(sentence) + habits.read_on, max(sentence.delays or [0])
    if last <= words:
        return float(words), []
    why = f"delays go up to {last:g}, but S- has {words} tokens: it is not in the tokens that they count"
    return None, [Fault("missing-source-length", why)]


def _implied(sentence: _Sentence, decimals: int) -> float | None:
    """The source length that AP was divided by; None if AP has too few digits."""
    proportion, faults = parse_number(sentence.latency.get("AP", ""), "AP")
    delays = sentence.delays or []
    if faults or not proportion or not np.isfinite(proportion) or not sum(delays) > 0:
        return None
    length = sum(delays) / (proportion * len(delays))
    unsure = length * max(0.5 * 10.0**-decimals / proportion, 2.0**-24)  # these programs compute in single precision
    return round(length * GRID) / GRID if unsure < 0.5 / GRID else None


def joined(text: str) -> str:
    """Sub-words joined to words.

    Example:
        >>> joined("ein Ha@@ us"), joined("▁ein ▁Ha us")
        ('ein Haus', 'ein Haus')
    """
    if "▁" in text:
        return text.replace(" ", "").replace("▁", " ").strip()
    return re.sub(r"@@( |$)", "", text)


def write(run: Run, file: TextIO) -> list[str]:
    """Write the lines of every segment. Returns what they could not hold."""
    numbers = run.id.dtype != object and bool((run.id >= 0).all())
    broken: dict[str, None] = {}
    for row in range(len(run)):
        name = int(run.id[row]) if numbers else row
        for column, tag, score in (("source", "S", ""), ("reference", "T", ""), ("prediction", "H", "nan\t")):
            values = getattr(run, column)
            if values is not None and values[row] is not None:
                line = re.sub(r"[\r\n]", " ", values[row].rstrip("\r\n"))
                if line != values[row]:
                    broken[column] = None
                file.write(f"{tag}-{name}\t{score}{line}\n")
        file.write(f"Delay-{name}\tnan\t{run.delays[row].tolist()}\n")
        file.write(f"L-{name}\tsource_length:{float(run.source_length[row])!r}\tunit:{run.unit}\tlevel:{run.level}\n")
    kept = {"id", "delays", "source_length", "prediction", "reference", "source"}
    numbered = [] if numbers else ["id (numbered instead)"]
    return lost(run, kept, *numbered, *(f"{column} (without line breaks)" for column in broken), seg="none")
