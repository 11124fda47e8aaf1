# SPDX-License-Identifier: Apache-2.0
"""The kinds of fault of files with word times and word alignments, in words: what, why, and how to mend it."""

__all__ = ["WORD_KINDS"]

WORD_KINDS: dict[str, tuple[str, str, str]] = {
    "not-word-times": (
        "not a line of word times that can be read",
        "Word times are CTM (file, channel, start, duration, word), TextGrid, lines of start, end and word with tabs "
        "or blanks between, JSON with `words` that have `start`, `end` and `word`, or SLTev's OStt.",
        "write the file in one of these formats.",
    ),
    "word-times": (
        "impossible word times",
        "A word ends after it begins, and neither begins nor ends before the word above it.",
        "sort the words by their times, and correct those that end before they begin.",
    ),
    "word-outside": (
        "a word after the end of the recording",
        "A word that was spoken lies within the source of its row.",
        "give the word times of this recording; their unit is seconds. If they are right, correct `source_length`.",
    ),
    "no-recording": (
        "word times of none of the recordings of the log",
        "A recording belongs to the row whose `id`, `document` or sound file has its name.",
        "call the recordings of both files the same.",
    ),
    "recording-twice": (
        "the word times of one recording belong to several rows",
        "Word times are those of whole recordings, and each row must be one.",
        "score the log of whole recordings, or give each row word times of its own, under its `id`.",
    ),
    "not-an-alignment": (
        "not a pair of a word alignment",
        "A line has pairs of a source word and a target token, counted from 0, such as `0-0 1-2`.",
        "write the alignment in this format, which is called Pharaoh's.",
    ),
    "alignment-range": (
        "an index of the word alignment is out of range",
        "Source words are those of the word times, target tokens those that the delays count; both count from 0.",
        "align the same words; give `--aligned-with reference` if the alignment is of the reference.",
    ),
}
