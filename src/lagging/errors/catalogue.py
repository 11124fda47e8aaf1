# SPDX-License-Identifier: Apache-2.0
"""Every kind of fault, in words: what is wrong, why it matters, how to mend it. One table, with an entry per kind."""

from __future__ import annotations

from lagging.errors.stream_kinds import STREAM_KINDS
from lagging.errors.word_faults import WORD_KINDS

__all__ = ["KINDS"]

KINDS: dict[str, tuple[str, str, str]] = {
    **STREAM_KINDS,
    "empty-log": (
        "the log holds no segments",
        "There is nothing to score.",
        "check that the run that wrote it has finished.",
    ),
    "nothing-given": (
        "no segments were given",
        "There is nothing to score. An iterator, such as `scan` returns, can be used only once.",
        "call `scan` again, or use `read`.",
    ),
    "nothing-left": (
        "every segment was set aside",
        "Each has a fault, and there is nothing left to score.",
        "mend what the table of faults lists; without `--on-error quarantine` the error says how.",
    ),
    "not-utf8": (
        "not UTF-8",
        "A log is UTF-8 text.",
        "convert the file, e.g. `iconv -f latin1 -t utf8`.",
    ),
    "too-large": (
        "more than is taken into memory",
        "A log is read line by line, and the files beside it whole; what is larger has no lines, or no end.",
        "check that it is the right file, and one object on each line; LAGGING_LONGEST_LINE=BYTES sets another limit.",
    ),
    "not-json": (
        "not valid JSON",
        "Each line of this format is one JSON object.",
        "re-export the line; if it is the last one, the run was cut off: remove it or resume the run.",
    ),
    "truncated": (
        "the last line breaks off",
        "The run that wrote this log was interrupted.",
        "remove the last line, or resume the run; `--repair torn` leaves it out (the signature then says so).",
    ),
    "not-csv": (
        "not a row of the table",
        "A row has one cell per column; a cell with a separator, a quote or a line break in it is in double quotes.",
        "re-export the table with a tool that writes CSV, or convert the log.",
    ),
    "missing-column": (
        "a column is missing",
        "Every segment has `delays` and a `source_length`, and the table names its columns.",
        "name the columns as the page on formats does; in CSV the first line holds their names.",
    ),
    "repeated-column": (
        "two columns have the same name",
        "It cannot be known which of them counts.",
        "remove or rename one of them.",
    ),
    "several-systems": (
        "rows of more than one system",
        "A log is what one system wrote.",
        "write one file per system.",
    ),
    "decimal-comma": (
        "a decimal comma",
        "Numbers have a decimal point; a comma stands between two numbers.",
        "re-export the table with decimal points (a spreadsheet takes them from its locale).",
    ),
    "not-arrow": (
        "not a Parquet or Arrow file that can be read",
        "The end of the file describes its content: a file that was cut off, or changed, cannot be read at all.",
        "write the file again, or name its format with `--format-in`.",
    ),
    "unreadable": (
        "not a log that can be read",
        "Nothing of this file was scored.",
        "write the file again, or leave it out; reading it alone says more.",
    ),
    "repeated-key": (
        "a key occurs twice in one object",
        "It cannot be known which of the two values counts.",
        "remove one of them.",
    ),
    "not-an-object": (
        "the line is not a JSON object",
        'Each line of this format is one object such as {"delays": [1, 2], "source_length": 2}.',
        "write one object per line.",
    ),
    "not-an-action": (
        "not a READ/WRITE action",
        "A line of this format holds only R (read) and W (write).",
        "remove the character, or name the format with `--format-in`.",
    ),
    "not-an-update": (
        "not a line of SLTev's formats",
        "A line of a log is `P` or `C`, display time, start, end, and a text; of an .OStt file, the same without the "
        "display time.",
        "write it so, or remove it.",
    ),
    "never-completed": (
        "lines P that no line C completes",
        "A segment of SLTev's formats ends in a line C, with the final text.",
        "write the line C, or remove the lines P; the run that wrote them may have been interrupted.",
    ),
    "reference-count": (
        "the reference does not have as many lines as the transcript has lines C",
        "SLTev compares them line by line.",
        "correct one of the two files; or move both elsewhere: they are not read then, and SLTevDelay is not computed.",
    ),
    "missing-id": (
        "no `index`",
        "Other lines have one, and segments are matched between systems by it.",
        "give every line an `index` (or `id`), or none.",
    ),
    "extra-id": (
        "an `index`, where the lines before have none",
        "Segments are matched between systems by it, so either all have one, or none.",
        "give every line an `index` (or `id`), or none.",
    ),
    "mixed-unit": (
        "a unit that differs from the one before",
        "Tokens and milliseconds cannot be averaged.",
        "score the two kinds of segments one at a time.",
    ),
    "mixed-level": (
        "tokens that differ from those of the file before",
        "Words and characters cannot be averaged.",
        "score the files one at a time, or name what the delays count with `--level word|char|token`.",
    ),
    "mixed-seg": (
        "segments that were cut in another way than those before",
        "Streams that were cut in two ways cannot be averaged.",
        "score the two kinds of segments one at a time.",
    ),
    "not-whole": (
        "not a whole number of source tokens, up to the end of the source",
        "READ/WRITE strings can hold nothing else, and neither can trajectories.",
        "write another format: jsonl holds everything.",
    ),
    "bad-id": (
        "`index` is not a number or a string",
        "Segments are named by it.",
        "write a whole number or a string.",
    ),
    "duplicate-id": (
        "the index was used before",
        "Two lines for one segment: only one of them can be counted.",
        "`--repair first` or `--repair last` keeps one of them (the signature then says so), or remove one.",
    ),
    "id-in-two-files": (
        "the index was used in another file",
        "Several files given as one path are read as one system.",
        "without quotes around a pattern each file is a system of its own; `lagging convert` merges logs that belong "
        "together; `--repair first` or `--repair last` keeps one of the lines (the signature then says so).",
    ),
    "conflict": (
        "lines of one segment that differ",
        "Only one of them can be counted. Elapsed times count as well: two runs of a sentence are two measurements.",
        "`--repair first` or `--repair last` decides for all of them, or remove one line of each.",
    ),
    "json-array": (
        "a JSON array, but not of objects",
        "A log has one JSON object per segment, on a line each or in an array.",
        "write an object per segment, with `delays` and `source_length`.",
    ),
    "broken-off": (
        "the JSON breaks off",
        "A JSON array, or an object over several lines, can be read only whole; the run that wrote it was interrupted.",
        "write the file again, or close its brackets by hand; a log with an object per line can be cut off anywhere.",
    ),
    "bad-trajectory": (
        "not a trajectory",
        "It has as many chunks of source (`src_trajectory`) as of target (`target_trajectory`), and all are texts.",
        'write "" for a chunk where nothing was read, or nothing written.',
    ),
    "missing-delays": (
        "no `delays`",
        "The hypothesis is not empty, so it was written at some time.",
        "write one delay per target token.",
    ),
    "extra-delays": (
        "`delays`, where the lines before have none",
        "The log was taken for text alone; either all lines have them, or none.",
        "write one delay per target token on every line, or on none.",
    ),
    "line-break": (
        "a line break in a prediction",
        "A file of plain text has a line per segment.",
        "write another format: jsonl holds everything.",
    ),
    "delays-not-a-list": (
        "`delays` is not a list of numbers",
        "There is one delay per target token.",
        "write a list such as [1, 2, 3].",
    ),
    "bad-delay": (
        "a delay is not a number",
        "Delays are source tokens or milliseconds.",
        "write it as a JSON number.",
    ),
    "not-finite": (
        "a delay is not finite",
        "One NaN or infinite delay (beyond 10¹⁸) makes every mean NaN or infinite.",
        "find out why the system wrote it; there is no repair for it.",
    ),
    "decreasing-delays": (
        "delays decrease",
        "AL, LAAL and DAL need non-decreasing delays.",
        "`--repair monotone` clamps them (the signature then says repair:monotone), or re-export the log.",
    ),
    "negative-delay": (
        "a delay is negative",
        "The amount of source that was read cannot be negative.",
        "`--repair clip` raises it to 0 (the signature then says repair:clip), or re-export the log.",
    ),
    "token-count": (
        "the number of delays differs from the number of target tokens",
        "Every target token has one delay.",
        "re-export the log, or name what the delays count with `--level word|char|token`.",
    ),
    "bad-prediction": (
        "`prediction` is not text",
        "The tokens that the system wrote cannot be counted.",
        "write a string; an empty one if nothing was written.",
    ),
    "missing-prediction": (
        "no `prediction`",
        "Other lines have one, and its tokens are checked against the delays.",
        "give every line a `prediction`, or none.",
    ),
    "bad-elapsed": (
        "`elapsed` is not a list of numbers",
        "There is one elapsed time per target token, in milliseconds.",
        "write a list of numbers, or leave the key out.",
    ),
    "elapsed-count": (
        "the number of elapsed times differs from the number of delays",
        "Every target token has one of each.",
        "re-export the log, or leave the key out.",
    ),
    "elapsed-not-finite": (
        "an elapsed time is not finite",
        "One NaN or infinite time (beyond 10¹⁸) makes every mean NaN or infinite.",
        "find out why the system wrote it; there is no repair for it.",
    ),
    "decreasing-elapsed": (
        "elapsed times decrease",
        "Time does not run backwards.",
        "`--repair monotone` clamps them (the signature then says repair:monotone), or leave the key out.",
    ),
    "bad-reference": (
        "`reference` is not text",
        "Its length enters LAAL, and its words BLEU.",
        "write a string, or null if there is none.",
    ),
    "missing-source-length": (
        "no `source_length`",
        "Every latency is measured against the length of the source.",
        "write the number of source tokens, or the milliseconds of source speech.",
    ),
    "bad-reference-length": (
        "`reference_length` is not a number of tokens",
        "It enters LAAL, and every metric with length=reference.",
        "write a number from 10⁻¹⁸ to 10¹⁸, 0 for an empty reference, or leave the key out.",
    ),
    "bad-source-length": (
        "`source_length` is not a number of tokens or milliseconds",
        "Every latency is measured against the length of the source.",
        "write a number from 10⁻¹⁸ to 10¹⁸, or 0 for an empty source.",
    ),
    "bad-column": (
        "a column has values that are not valid numbers",
        "It has one number, or one list of numbers, per segment; times are finite, and counts are not negative.",
        "write such numbers, or leave the key out.",
    ),
    "column-count": (
        "columns that belong together differ in length",
        "`steps`, `durations`, `queue_times`, `omnisteval_times`, `fbk_times`, `fbk1_times` and `first_times` have "
        "an entry per delay, `compute` one per arrival, `shown` one per `due`.",
        "re-export the log, or leave the keys out.",
    ),
    "impossible-step": (
        "the steps of the system make no sense",
        "Source arrives in order, computing times are not negative, and each token belongs to a step that exists.",
        "re-export the log, or leave `arrivals`, `compute` and `steps` out.",
    ),
    "missing-audio": (
        "no `total_audio_processed`",
        "It says when the tokens of the line were written.",
        "write the seconds of audio processed so far.",
    ),
    "impossible-time": (
        "an impossible time",
        "Seconds of audio and of computing are finite and not negative, and the audio of a stream only grows.",
        "re-export the log; a stream that begins anew needs an id of its own.",
    ),
    "other-tokens-deleted": (
        "the deleted tokens are not the last ones written",
        "Only the end of a text is deleted; otherwise it is not known which tokens remain, and when they were written.",
        "re-export the log: `deleted_tokens` repeats the last tokens of the stream, in their order.",
    ),
    "stream-twice": (
        "two streams of one id or of one recording",
        "Joined, their times would be wrong.",
        "remove one of them, or give each an id and a recording of its own.",
    ),
    "bad-value": (
        "a value has the wrong type",
        "It cannot be read.",
        "see the page on formats in the documentation for the type of each key.",
    ),
    "length-mismatch": (
        "columns of different lengths",
        "Every column has one entry per segment.",
        "pass as many entries as there are lists of delays.",
    ),
    "not-scores": (
        "not a score file of a known kind",
        "Known are the score files of SimulEval, OmniSTEval and StreamLAAL, a JSON object of metrics and numbers, and "
        "what `lagging score` prints with `-f json` or `-f tsv`.",
        "name the file that holds the scores; a log is scored with `lagging score`.",
    ),
    "no-scores": (
        "the score file holds no scores",
        "There is nothing to compare.",
        "check that the evaluation that wrote it has finished.",
    ),
    "bad-score": (
        "a score is not a number",
        "A score is one finite number such as 18.2, or nan, or nothing where there is none.",
        "write it with a decimal point, and without a unit.",
    ),
    "repeated-metric": (
        "a metric has two scores",
        "It cannot be known which of them counts.",
        "remove one of them, or write a file per system.",
    ),
    "not-a-column": (
        "not a column of scores",
        "It is one number per line, in the order of the log; or a table, or JSON lines, with a `score` and, if it is "
        "not in that order, an `id`.",
        "write it in one of these ways.",
    ),
    "scores-count": (
        "not as many scores as segments",
        "Line k is the score of segment k.",
        "score the output that is in the log, all of it; or write an `id` beside each score.",
    ),
    "scores-ids": (
        "scores and segments do not have the same ids",
        "Every segment of the log has one score.",
        "score the output that is in the log, all of it; `nan` is the score of a segment that has none.",
    ),
    "no-common-segment": (
        "systems with no segment in common",
        "Segments are matched by their ids, and scores of other sentences cannot be compared.",
        "give logs of one test set, whose segments have the same ids.",
    ),
    "score-cells": (
        "names and scores do not match",
        "Every score has one name, and every name one score.",
        "write the file again, or mend the line.",
    ),
    "several-rows": (
        "more than one row of scores",
        "A score file has one row of values below the names; a table with a row per sentence is not one.",
        "name SimulEval's scores.tsv, not its metrics.tsv.",
    ),
    "elided-scores": (
        "scores were left out where the table was printed",
        "pandas prints `...` instead of the columns that do not fit into the terminal.",
        "name SimulEval's scores.tsv, or score the log with `lagging score --convention simuleval`.",
    ),
    "not-a-segmentation": (
        "not a segmentation that can be read",
        "It is a list of entries with `wav`, `offset` and `duration` in YAML, JSON or JSON lines; or lines such as "
        "`docid=0,segid=0`; or the name of a recording, without spaces, on each line.",
        "write it in one of these ways.",
    ),
    "no-segments": (
        "the segmentation holds no segments",
        "There is nothing to cut the recordings into.",
        "name the file that lists the segments.",
    ),
    "segment-field": (
        "a field of the segment is missing or wrong",
        "A segment has a recording (`wav`), a time at which it begins (`offset`), and a length (`duration`).",
        "write the name of a file and two finite numbers; in YAML and JSON these are seconds.",
    ),
    "segment-time": (
        "a segment at a time that cannot be",
        "A segment begins at 0 or later, and its duration is not negative.",
        "mend the entry; in YAML and JSON offset and duration are seconds.",
    ),
    "segment-twice": (
        "the same segment again",
        "Whatever lies there would be counted twice.",
        "remove one of the two, and its line in the reference and the source.",
    ),
    "segment-lines": (
        "not as many lines as segments",
        "Line k is the text of segment k.",
        "give the text that belongs to this segmentation; an empty text is an empty line.",
    ),
    "recording-twice": (
        "several rows of one recording",
        "Joined, their times would be wrong, unless each row has an `offset`.",
        "write an `offset` for each, or remove all but one; a log that was cut into the segments of the reference "
        "already is scored as it is.",
    ),
    "recording-missing": (
        "a recording that the log does not have",
        "Its segments would be left out of every mean.",
        "translate it as well, take its segments out of the segmentation, or name it alike in both.",
    ),
    "recording-extra": (
        "a recording that the segmentation does not have",
        "There is no reference for it.",
        "take it out of the log, add its segments, or name it alike in both; `--subset` leaves it aside.",
    ),
    "segmentation-unit": (
        "segmentation and log do not measure in the same unit",
        "Offsets are compared with delays: in YAML and JSON they are seconds, beside source sentences source words.",
        "write the offsets and durations of YAML or JSON in seconds; for a log in source tokens give the source "
        "sentences instead.",
    ),
    "no-references": (
        "no references to cut the stream by",
        "A stream is cut where its words are those of a segment's reference.",
        "give the file of references: `--reference FILE`, a line per segment.",
    ),
    "no-text": (
        "no text that could be compared with the references",
        "A stream is cut where its words are those of a segment's reference.",
        "give what was written: `--hypothesis FILE`.",
    ),
    "no-words": (
        "the delays belong to tokens that the log does not show",
        "To cut a stream, it must be known which word each delay belongs to.",
        "say what the tokens are: `--level word`, `--level char`, or `--level spm --spm-model FILE`.",
    ),
    "line-count": (
        "lines that do not fit the rows of the log",
        "A line belongs to the row whose index says so: line 1 to index 0. Without indices, line k belongs to row k.",
        "give one line for every index up to the largest, which may be empty; without indices, one line per row; "
        "whole recordings need `--segmentation`.",
    ),
    **WORD_KINDS,
}
