# SPDX-License-Identifier: Apache-2.0
"""Strip tokens from a Run, with their delays, elapsed times and steps."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, compress, repeat
from typing import Any

import numpy as np
import numpy.typing as npt

from lagging.data.checks import about, add_counts, check, remark
from lagging.data.ragged import Ints, Ragged
from lagging.data.run import PER_TOKEN, Run, make_texts
from lagging.data.tokens import EOS, as_bytes, count_words, ends_in_eos, has_other_space, in_blocks, without_eos
from lagging.errors import DataError, Faults, Note, UsageError, did_you_mean, merge_notes

__all__ = ["KINDS", "check_kinds", "renoted", "strip"]

KINDS = {
    "eos": "</s>, <eos> or <|endoftext|> at the end",
    "tags": "<…> or […], such as <unk> or [laughter]",
    "punctuation": "nothing but Unicode punctuation and symbols (categories P and S)",
}
"""What can be stripped; the place of a kind, from 1, is its code."""

MARKS = (EOS, "<eos>", "<|endoftext|>")
TAG = re.compile(r"<[^<>\s]++>|\[[^\[\]\s]++\]")
PER_REFERENCE = ("due", "due_partial", "shown")
"""Columns that have an entry per reference token, if the log counts those as we do."""
PIECE = re.compile(r"(?<!\s)(\s*+)(\S++)")

Codes = npt.NDArray[np.int8]
CODE = {kind: code for code, kind in enumerate(KINDS, 1)}
MARK = len(CODE) + 1
"""An end mark, until it is known whether it is at the end."""


def strip(run: Run, kinds: Iterable[str] | str) -> Run:
    """A Run without some kinds of target tokens: with each go its delay, its elapsed time and its step.

    References lose the same kinds, so that both sides are counted alike. The source is left as it is.

    Args:
        run: a Run whose delays count words or characters.
        kinds: any of

            - "eos": `</s>`, `<eos>` or `<|endoftext|>` at the end, once or several times, and the one delay of an empty
              text;
            - "tags": `<…>` or `[…]`, such as `<unk>` or `[laughter]`: a whole word, or characters in a row without
              white space;
            - "punctuation": tokens of nothing but punctuation and symbols (Unicode categories P and S).

    Returns:
        The Run; `run.stripped` says how many tokens of each kind are gone. A segment without other tokens has an empty
        hypothesis.

    Raises:
        UsageError: the tokens cannot be told apart in the text: the log counts its own, or the pieces of a model.

    Example:
        >>> texts = {"prediction": ["well , yes </s>"], "reference": ["yes !"]}
        >>> run = Run.from_delays([[1, 2, 2, 3]], source_length=[3], **texts)
        >>> bare = strip(run, ["eos", "punctuation"])
        >>> bare.delays.tolist(), bare.prediction.tolist(), bare.reference.tolist()
        ([[1.0, 2.0]], ['well yes'], ['yes'])
        >>> bare.stripped
        (('eos', 1), ('punctuation', 2))
    """
    requested = check_kinds([kinds] if isinstance(kinds, str) else kinds)
    if not requested:
        return run
    if "eos" in requested and run.lone.any():
        return strip(_without_lone(run), requested)
    written = _Side(_texts(run, "prediction"), _level(run, requested), requested, run.delays.lengths)
    if not np.array_equal(written.lengths, run.delays.lengths):
        faults = Faults()
        faults.add(*check(run, token_counts=written.lengths))
        raise DataError(faults)
    referred = _Side(_texts(run, "reference"), written.level, requested)
    counts = np.bincount(written.codes, minlength=4) + np.bincount(referred.codes, minlength=4)
    stripped = {kind: int(counts[code]) for kind, code in CODE.items() if counts[code]}
    if not stripped:
        return run
    changed: dict[str, Any] = {
        "delays": _keep(run.delays, written),
        "prediction": written.edited(run.prediction),
        "reference": referred.edited(run.reference),
        **{c: _keep(getattr(run, c), written) for c in PER_TOKEN if getattr(run, c) is not None},
    }
    timed = [column for column in PER_REFERENCE if getattr(run, column) is not None]
    matched = all((getattr(run, c).lengths == referred.lengths)[referred.gone > 0].all() for c in timed)
    changed |= {c: _keep(getattr(run, c), referred) if matched else None for c in timed}
    unknown = np.zeros(len(run), dtype=bool)
    if run.reference_length is not None:
        unknown = np.isin(np.arange(len(run)), referred.known, invert=True) & ~np.isnan(run.reference_length)
        left = np.maximum(run.reference_length - referred.gone, 0)
        changed["reference_length"] = np.where(unknown, np.nan, left)
    after = replace(run, stripped=add_counts(run.stripped, stripped.items()), **changed)
    emptied = (after.delays.lengths == 0) & (run.delays.lengths > 0)
    lost = f"hypotheses that lost tokens, with their delays, to --strip {','.join(requested)}"
    notes = [
        *about(run, "stripped", lost, written.gone > 0),
        *about(run, "emptied", "nothing but stripped tokens was written: an empty hypothesis", emptied),
        *about(run, "unknown length", "no reference text to strip: reference_length is not used", unknown),
    ]
    if not matched:
        notes.append(
            Note("reference times", "left out: they are not one per word of the references that were stripped")
        )
    if run.erased is not None and (run.erased > 0).any():
        notes.append(Note("erased", "tokens that were deleted again are counted with those that are stripped"))
    return renoted(run, after, *notes)


def _without_lone(run: Run) -> Run:
    """The Run without the delays of empty texts, each of which is that of the end."""
    stay = ~np.repeat(run.lone, run.delays.lengths)
    lengths = np.where(run.lone, 0, run.delays.lengths)
    columns = {c: getattr(run, c) for c in ("delays", *PER_TOKEN) if getattr(run, c) is not None}
    same = {c: v for c, v in columns.items() if len(v.values) == len(stay)}
    kept: dict[str, Any] = {c: Ragged.from_lengths(v.values[stay], lengths) for c, v in same.items()}
    after = replace(run, stripped=add_counts(run.stripped, [("eos", int(run.lone.sum()))]), **kept)
    return renoted(
        run, after, *about(run, "stripped", "the delay of an empty text, which is that of its end", run.lone)
    )


def check_kinds(kinds: Iterable[str]) -> tuple[str, ...]:
    """The kinds, each once and in the order of the table; refuse unknown kinds."""
    requested = list(kinds)
    for kind in requested:
        if kind not in KINDS:
            raise UsageError(f"there is no kind of token {kind!r} to strip.{did_you_mean(kind, KINDS)}")
    return tuple(kind for kind in KINDS if kind in requested)


def renoted(before: Run, after: Run, *more: Note) -> Run:
    """`after` with the notes of `before` that still hold, the notes in `more`, and new notes about its columns."""
    automatic = {(note.kind, note.text) for note in remark(before)}
    kept = [note for note in before.notes if (note.kind, note.text) not in automatic]
    return replace(after, notes=merge_notes([*kept, *more, *remark(after)]))


def _level(run: Run, requested: Sequence[str]) -> str:
    """The level, if tokens can be found in the text."""
    if run.level in ("word", "char") and run.prediction is not None and not run.speech_out:
        return run.level
    if not len(run.delays.values):
        return "word"  # a Run in which nothing was written has no level
    where = run.origin.path or run.name
    why = (
        "the delays count pieces of sound"
        if run.speech_out
        else f"there is no text to find {', '.join(requested)} in"
        if run.prediction is None
        else "the delays count the log's own tokens"
        if run.level == "token"
        else "the delays count the pieces of a model"
    )
    raise UsageError(
        f"{where + ': ' if where else ''}nothing can be stripped: {why}\n"
        "  Tokens are matched to the text only where there is one delay per word, or per character.\n"
        "  fix: leave --strip out, or score a log of words or characters."
    )


def _texts(run: Run, column: str) -> list[str | None]:
    values = getattr(run, column)
    return [None] * len(run) if values is None else values.tolist()


def _keep(column: Ragged, side: _Side) -> Ragged:
    """The values of the tokens that stay; a row that does not match the text, which nothing uses, is left alone."""
    keep = np.ones(len(column.values), dtype=bool)
    same = column.lengths == side.lengths
    keep[np.repeat(same, column.lengths)] = side.codes[np.repeat(same, side.lengths)] == 0
    return Ragged(column.values[keep], np.concatenate([[0], np.cumsum(keep)])[column.offsets])


# ---- the tokens of one side ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Side:
    """The tokens of all hypotheses, or of all references, and the kind of each.

    Attributes:
        texts: one per segment; None where there is none.
        level: "word" or "char".
        requested: the kinds that are looked for.
        own: how many tokens a segment without text has; none if not given.
    """

    texts: list[str | None]
    level: str
    requested: tuple[str, ...]
    own: Ints | None = None

    @cached_property
    def known(self) -> list[int]:
        """The segments with a text."""
        return [row for row, text in enumerate(self.texts) if text is not None]

    @cached_property
    def _codes_and_lengths(self) -> tuple[Codes, Ints]:
        """Codes of all tokens, end to end, and how many each segment has."""
        find = _words if self.level == "word" else _characters
        codes, lengths = find([text for text in self.texts if text is not None], self.requested)
        if len(self.known) == len(self.texts):
            return codes, lengths
        whole = np.zeros(len(self.texts), dtype=np.int64) if self.own is None else self.own.copy()
        whole[self.known] = lengths
        out = np.zeros(int(whole.sum()), dtype=np.int8)
        out[np.repeat(np.isin(np.arange(len(whole)), self.known), whole)] = codes
        return out, whole

    @property
    def codes(self) -> Codes:
        """For each token, the code of the kind that it is stripped as, or 0."""
        return self._codes_and_lengths[0]

    @property
    def lengths(self) -> Ints:
        """How many tokens each segment has."""
        return self._codes_and_lengths[1]

    @cached_property
    def offsets(self) -> Ints:
        """Where each segment begins among the codes."""
        return np.concatenate([[0], np.cumsum(self.lengths)])

    @cached_property
    def gone(self) -> Ints:
        """How many tokens each segment loses."""
        return np.diff(np.concatenate([[0], np.cumsum(self.codes > 0)])[self.offsets])

    def edited(self, column: npt.NDArray[np.object_] | None) -> npt.NDArray[np.object_] | None:
        """The texts without what is stripped."""
        rows = np.flatnonzero(self.gone).tolist() if column is not None else []
        if not rows:
            return column
        texts, keep, offsets = list(self.texts), (self.codes == 0).tolist(), self.offsets.tolist()
        for row in rows:
            texts[row] = _only(texts[row] or "", keep[offsets[row] : offsets[row + 1]], self.level)
        return make_texts(texts)


def _code(token: str, requested: Sequence[str]) -> int:
    """The code of a token, as if it were not the last one."""
    if token[0].isalnum():  # as nearly every token begins
        return 0
    if "tags" in requested and TAG.fullmatch(token):
        return CODE["tags"]
    if "punctuation" in requested and all(unicodedata.category(c)[0] in "PS" for c in token):
        return CODE["punctuation"]
    return 0


def _words(texts: list[str], requested: Sequence[str]) -> tuple[Codes, Ints]:
    """Codes of all words. Only texts that may have something to strip are cut; a word that comes again is known."""
    lengths = count_words(texts)
    suspects = in_blocks(lambda block: _suspects(block, requested), texts)
    codes = np.zeros(int(lengths.sum()), dtype=np.int8)
    if suspects.any():
        codes[np.repeat(suspects, lengths)] = _word_codes([*compress(texts, suspects)], lengths[suspects], requested)
    return codes, lengths


PLAIN = np.array([chr(byte).isalnum() and byte < 128 for byte in range(256)])


def _suspects(texts: list[str], requested: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Which texts may have something to strip: a closing bracket, or a word without a plain letter or digit."""
    raw, breaks = as_bytes(texts)
    if len(breaks) != len(texts) or has_other_space(raw):
        return np.ones(len(texts), dtype=bool)
    out = np.zeros(len(texts), dtype=bool)
    if "eos" in requested or "tags" in requested:
        out |= np.logical_or.reduceat((raw == ord(">")) | (raw == ord("]")), breaks)
    if "punctuation" in requested:
        space = raw <= ord(" ")
        begins = np.flatnonzero(space[:-1] > space[1:]) + 1
        strange = begins[~np.logical_or.reduceat(PLAIN[raw], begins)] if len(begins) else begins
        out[np.searchsorted(breaks, strange) - 1] = True
    return out


def _word_codes(texts: list[str], lengths: Ints, requested: Sequence[str]) -> Codes:
    flat = "\n".join(texts).split()
    known = {word: code for word in set(flat) if (code := _code(word, requested))}
    marks = dict.fromkeys(MARKS, MARK) if "eos" in requested else {}
    codes = np.fromiter(map((known | marks).get, flat, repeat(0)), np.int8, len(flat))
    marked = codes == MARK
    if marked.any():
        ends = np.repeat(np.cumsum(lengths), lengths)
        before = np.concatenate([[0], np.cumsum(marked)])
        # nothing but marks from here to the end of the segment
        last = marked & (before[ends] - before[:-1] == ends - np.arange(len(flat)))
        codes[marked] = CODE["tags"] if "tags" in requested else 0
        codes[last] = CODE["eos"]
    return codes


def _characters(texts: list[str], requested: Sequence[str]) -> tuple[Codes, Ints]:
    """Codes of all characters other than white space, a final `</s>` being one; each is looked at once."""
    marked = np.array([ends_in_eos(text, "char") for text in texts], dtype=bool)
    bodies = [without_eos(text) if mark else text for text, mark in zip(texts, marked, strict=True)]
    rows = ["".join(body.split()) for body in bodies]
    lengths = np.fromiter(map(len, rows), np.int64, len(rows)) + marked
    joined = "".join(row + "\0" * mark for row, mark in zip(rows, marked.tolist(), strict=True))
    points, places = np.unique(
        np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), np.uint32), return_inverse=True
    )
    codes = np.array([_code(chr(point), requested) for point in points.tolist()], dtype=np.int8)[places]
    ends = np.cumsum(lengths)
    if "tags" in requested or "eos" in requested:
        codes[ends[marked] - 1] = CODE["eos" if "eos" in requested else "tags"]
        for row, body in enumerate(bodies):
            if "<" in body or "[" in body:
                begin = int(ends[row] - lengths[row])
                for start, stop, code in _tag_spans(body, requested):
                    codes[begin + start : begin + stop] = code
    return codes, lengths


def _tag_spans(body: str, requested: Sequence[str]) -> Iterable[tuple[int, int, int]]:
    """Tags and end marks that are characters in a row: from which to before which, white space not counted; code."""
    place = list(accumulate((not letter.isspace() for letter in body), initial=0))
    for tag in TAG.finditer(body) if "tags" in requested else ():
        yield place[tag.start()], place[tag.end()], CODE["tags"]
    end = len(body.rstrip()) if "eos" in requested else 0
    while mark := next((mark for mark in MARKS if body.endswith(mark, 0, end)), None):
        yield place[end - len(mark)], place[end], CODE["eos"]
        end -= len(mark)
        while end and body[end - 1].isspace():
            end -= 1


def _only(text: str, keep: Sequence[bool], level: str) -> str:
    """A text with only some of its tokens, and without the white space before a word of which nothing is left."""
    end = text[len(text.rstrip()) :]
    words = text.split() if level == "word" else []
    if text == " ".join(words) + end:
        left = " ".join(compress(words, keep))
        return left + end if left else ""
    marked = level == "char" and ends_in_eos(text, level)
    body = without_eos(text) if marked else text
    kept: list[str] = []
    place = 0
    for space, word in PIECE.findall(body):
        units = list(word) if level == "char" else [word]
        left = "".join(compress(units, keep[place:]))
        place += len(units)
        if left:
            kept.append((space if kept else "") + left)
    rest = text[len(body) :] if marked and keep[-1] else end
    return "".join(kept) + rest if kept or rest.strip() else ""
