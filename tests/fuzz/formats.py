# SPDX-License-Identifier: Apache-2.0
"""Every format of logs, by its name."""

from __future__ import annotations

from fuzz import documents as made
from fuzz.dialects import stream, stream_lines
from fuzz.documents import Document, json_values, table, words

LOGS = {
    "simuleval": Document("instances.log", made.simuleval, json_values(0.1)),
    "jsonl": Document("base.jsonl", made.jsonl, json_values(0.1)),
    "omnisteval": Document("base.resegmented.jsonl", made.omnisteval, json_values(0.1)),
    "s2s": Document("base.resegmented.json", made.s2s, json_values(0.7)),
    "trajectory": Document("base.trajectory.jsonl", made.trajectory, json_values(0.1)),
    "simulstream": Document("metrics.jsonl", made.simulstream, json_values(0.1)),
    "stream": Document("base.stream.jsonl", stream, stream_lines),
    "sltev": Document("base.en.de.slt", made.sltev, words(" ")),
    "rw": Document("base.rw", made.rw, words("")),
    "fairseq": Document("base.out", made.fairseq, words("\t")),
    "text": Document("base.txt", made.text, words("")),
    "csv": Document("base.csv", made.rows, table(",")),
    "tsv": Document("base.tsv", made.rows, table("\t")),
    "parquet": Document("base.parquet", made.columns, made.parquet),
    "arrow": Document("base.arrow", made.columns, made.arrow),
}
