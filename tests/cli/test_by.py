# SPDX-License-Identifier: Apache-2.0
"""`lagging score --by`, `--column-map`, `--on-error quarantine`, segment scores as Parquet: any format, any parting."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.formats import scan
from lagging.formats.tables import joined_labels, labels_of

FORMATS = ["parquet", "arrow", "csv", "tsv", "jsonl"]


def rows(n: int = 60, start: int = 0) -> list[dict[str, Any]]:
    dice = np.random.default_rng(9 + start)
    return [
        {
            "id": f"s{start + i}",
            "delays": np.sort(dice.integers(0, 15, dice.integers(0, 9))).tolist(),
            "source_length": float(dice.integers(1, 16)),
            "unit": "token",
            "lang": str(dice.choice(["de", "cs"])),
            "day": int(dice.integers(1, 3)),
        }
        for i in range(n)
    ]


def store(path: Path, segments: list[dict[str, Any]]) -> Path:
    if path.suffix in (".parquet", ".arrow"):
        table = pa.Table.from_pylist(segments)
        if path.suffix == ".parquet":
            pq.write_table(table, path)
        else:
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in segments))
    else:
        with path.open("w", newline="") as file:
            table_of_text = csv.writer(file, delimiter="\t" if path.suffix == ".tsv" else ",")
            table_of_text.writerow(segments[0])
            table_of_text.writerows(
                [json.dumps(v) if isinstance(v, list) else v for v in row.values()] for row in segments
            )
    return path


def lake(folder: Path, ending: str = "parquet", files: int = 3) -> list[dict[str, Any]]:
    every = []
    (folder / "lake").mkdir()
    for part in range(files):
        segments = rows(40, 40 * part)
        store(folder / "lake" / f"part-{part}.{ending}", segments)
        every += segments
    return every


def alone(segments: list[dict[str, Any]], metric: str) -> lagging.scoring.scores.Score:
    """What `lagging.score` says of these rows."""
    columns = {name: [row[name] for row in segments] for name in ("delays", "source_length", "id")}
    return lagging.score(lagging.Run.from_delays(**columns), [metric])[metric]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


# ---- groups -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_groups_of_any_format_are_scored_as_if_alone(here, run, ending):
    every = lake(here, ending)
    outcome = run("score", f"lake/*.{ending}", "--by", "lang,day", "-m", "AL,DAL", "-f", "json", "-q")
    scores = json.loads(outcome.out)["scores"]
    groups = sorted({(row["lang"], row["day"]) for row in every})
    assert [(s["group"]["lang"], s["group"]["day"]) for s in scores[::2]] == [(lang, str(day)) for lang, day in groups]
    for score in scores:
        mine = [row for row in every if (row["lang"], str(row["day"])) == tuple(score["group"].values())]
        expected = alone(mine, score["metric"])
        assert (score["score"], score["n"], score["undefined"]) == (expected.value, len(mine), int(expected.undefined))
        assert score["signature"] == str(expected.signature)
        assert list(score["group"]) == ["lang", "day"]
        assert list(score["percentiles"]) == ["p50", "p90", "p95", "p99"]
        assert (score["system"], score["low"]) == ("lake", None)


def test_how_files_are_given_does_not_matter(here, run):
    every = lake(here)
    ask = ("--by", "lang", "-f", "json", "-q", "--ci", "-m", "AL,DAL")
    quoted = run("score", "lake/*.parquet", *ask).out
    listed = run("score", *(f"lake/part-{part}.parquet" for part in (2, 0, 1)), *ask).out
    store(here / "lake.jsonl", every[::-1])
    as_one = run("score", "lake=lake.jsonl", *ask).out
    assert quoted == listed == as_one
    assert '"ci:95|by:segment|method:poisson|bs:1000|seed:12345' in quoted.replace("segment|ci", 'segment|"ci')


def test_memory_does_not_hold_the_parts(here, run, monkeypatch):
    lake(here)
    whole = run("score", "lake/*.parquet", "--by", "lang", "-f", "json", "-q", "--ci").out
    monkeypatch.setattr("lagging.formats.segment_rows.SEGMENTS_PER_PART", 7)
    assert max(len(part) for part in scan("lake/*.parquet", group_by=["lang"])) == 7
    assert run("score", "lake/*.parquet", "--by", "lang", "-f", "json", "-q", "--ci").out == whole


def test_the_table(here, run):
    segments = [{**row, "lang": "de" if i else None} for i, row in enumerate(rows(4))]
    store(here / "a.parquet", [{**row, "delays": [1, 2, 3], "source_length": 3.0} for row in segments])
    outcome = run("score", "a.parquet", "--by", "lang", "-m", "AL,DAL")
    assert outcome.out.splitlines()[:4] == [
        "system  lang  AL ↓ tokens  DAL ↓ tokens  n",
        "a       –           1.000         1.000  1",
        "a       de          1.000         1.000  3",
        "",
    ]
    assert [line.partition("|")[0] for line in outcome.out.splitlines()[4:]] == ["AL", "DAL"]
    assert outcome.out.splitlines()[-1].endswith("|n:4|v:" + lagging.__version__)
    markdown = run("score", "a.parquet", "--by", "lang", "-m", "AL", "-f", "markdown", "-q").out
    assert markdown.splitlines()[:3] == [
        "| system | lang | AL ↓ tokens | n |",
        "|---|---|---:|---:|",
        "| a | – | 1.000 | 1 |",
    ]
    latex = run("score", "a.parquet", "--by", "lang", "-m", "AL", "-f", "latex", "-q").out
    assert r"\begin{tabular}{llrr}" in latex
    assert r"a & -- & 1.000 & 1 \\" in latex
    tsv = run("score", "a.parquet", "--by", "lang", "-m", "AL", "-f", "tsv", "-q").out.splitlines()
    assert tsv[0].split("\t")[:4] == ["system", "group_lang", "metric", "score"]
    assert tsv[2].split("\t")[:4] == ["a", "de", "AL", "1.0"]


def test_systems_with_names_are_told_apart_and_files_without_are_one_log(here, run):
    store(here / "a.jsonl", rows(20))
    store(here / "b.jsonl", rows(20, 20))
    scores = json.loads(run("score", "x=a.jsonl", "y=b.jsonl", "--by", "lang", "-m", "AL", "-f", "json", "-q").out)
    assert [s["system"] for s in scores["scores"]] == ["x", "x", "y", "y"]
    both = json.loads(run("score", "a.jsonl", "b.jsonl", "--by", "lang", "-m", "AL", "-f", "json", "-q").out)
    assert sum(s["n"] for s in both["scores"]) == 40
    assert len(both["scores"]) == 2


def test_a_column_of_systems_and_a_column_that_is_also_ours(here, run):
    segments = [{**row, "system": "ab"[i % 2], "document": f"talk {i % 2}"} for i, row in enumerate(rows(10))]
    for ending in FORMATS:
        store(here / f"a.{ending}", segments)
        outcome = json.loads(run("score", f"a.{ending}", "--by", "system,document", "-m", "AL", "-f", "json", "-q").out)
        groups = [(s["group"]["system"], s["group"]["document"]) for s in outcome["scores"]]
        assert groups == [("a", "talk 0"), ("b", "talk 1")], ending


def test_lines_that_are_looked_at_one_by_one_keep_their_groups(here, run):
    segments = rows(6)
    text = "".join(json.dumps(row) + "\n\n" for row in segments)  # blank lines
    (here / "a.jsonl").write_text(text)
    outcome = json.loads(run("score", "a.jsonl", "--by", "lang", "-m", "AL", "-f", "json", "-q").out)
    assert {s["group"]["lang"]: s["n"] for s in outcome["scores"]} == {
        lang: sum(row["lang"] == lang for row in segments) for lang in {row["lang"] for row in segments}
    }


def test_gates_are_about_each_group(here, run):
    lake(here)
    outcome = run("score", "lake/*.parquet", "--by", "lang", "-m", "AL", "--fail-if", "AL>-100", "-q")
    assert outcome.code == 3
    assert "AL of lake (cs) is" in outcome.err
    assert "AL of lake (de) is" in outcome.err


def test_a_poisson_interval_is_repeated_by_its_signature(here, run):
    store(here / "a.jsonl", rows(50))
    (here / "b.jsonl").write_text("".join(json.dumps({**row, "lang": "x"}) + "\n" for row in rows(50)))
    (score,) = json.loads(run("score", "b.jsonl", "--by", "lang", "--ci", "-m", "DAL", "-f", "json", "-q").out)[
        "scores"
    ]
    again = json.loads(run("score", "a.jsonl", "--like", score["signature"], "-f", "json", "-q").out)["scores"][0]
    assert {k: again[k] for k in ("score", "low", "high", "signature")} == {
        k: score[k] for k in ("score", "low", "high", "signature")
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--by", ""), "--by takes names of columns"),
        (("--by", "lang,lang"), "'lang' twice"),
        (("--by", "lang", "--ci", "--resample", "document"), "Poisson bootstrap over segments"),
        (("--by", 'a"b'), "--by or --column-map"),
        (("--by", "lang", "--reference", "r.txt"), "leave --segmentation and --reference out"),
        (("--resample", "segment"), "give --ci too"),
        (("--column-map", "delays"), "cannot read --column-map"),
        (("--column-map", "delay=x"), "Did you mean delays?"),
        (("--quarantine", "x.tsv"), "give that too"),
        (("--on-error", "quarantine", "--quarantine", "-"), "standard output holds the scores"),
        (("--on-error", "quarantine", "--repair", "first"), "choose among segments of one id"),
    ],
)
def test_usage(here, run, arguments, message):
    store(here / "a.jsonl", rows(5))
    (here / "r.txt").write_text("x\n" * 5)
    outcome = run("score", "a.jsonl", *arguments)
    assert outcome.code == 2
    assert message in outcome.err
    assert not outcome.out


@pytest.mark.parametrize("ending", FORMATS)
def test_a_column_that_is_not_there(here, run, ending):
    store(here / f"a.{ending}", rows(5))
    outcome = run("score", f"a.{ending}", "--by", "langs", "-q")
    assert outcome.code in (1, 2)
    assert "langs" in outcome.err


def test_formats_without_columns(here, run):
    (here / "a.rw").write_text("RRWW\n")
    outcome = run("score", "a.rw", "--by", "lang")
    assert outcome.code == 2
    assert "rw has none" in outcome.err


def test_a_nested_column_is_nothing_to_group_by(here, run):
    store(here / "a.parquet", [{**row, "tags": ["x"]} for row in rows(5)])
    outcome = run("score", "a.parquet", "--by", "tags")
    assert outcome.code == 1
    assert "segments cannot be grouped by tags" in outcome.err


# ---- columns by other names -------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", FORMATS)
def test_columns_by_other_names(here, run, ending):
    every = rows(30)
    names = {"id": "seg", "delays": "emission_ms", "source_length": "frames"}
    store(here / f"a.{ending}", every)
    store(here / f"b.{ending}", [{names.get(k, k): v for k, v in row.items()} for row in every])
    mapped = ("--column-map", "delays=emission_ms,source_length=frames", "--column-map", "id=seg")
    plain, other = (
        run("score", f"x={name}.{ending}", "-m", "AL,DAL", "-f", "json", "-q", *options)
        for name, options in (("a", ()), ("b", mapped))
    )
    assert other.out == plain.out
    assert json.loads(plain.out)["scores"][0]["n"] == 30
    compared = run("compare", f"x=b.{ending}", f"y=b.{ending}", "-m", "AL", "-f", "json", "-q", *mapped)
    assert json.loads(compared.out)["scores"][0]["score"] == json.loads(plain.out)["scores"][0]["score"]
    assert run("report", f"x=b.{ending}", "-m", "AL", "-o", "r.html", "-q", *mapped).code == 0
    assert run("validate", f"b.{ending}", *mapped).code == 0
    converted = run("convert", f"b.{ending}", "-o", "c.jsonl", "-q", *mapped)
    assert converted.code == 0, converted.err


LABELS = ["a", "", "\x00", "\x1f", " ", "a\x1fb", "a b", "\x1e", "\x1en", "\x1eb", "\x1ee", "\x1b[31m", "n", None]


@pytest.mark.parametrize("ending", ["jsonl", "parquet", "arrow"])
def test_labels_are_told_apart_whatever_is_in_them(here, run, ending):
    segments = [{**row, "lang": LABELS[place % len(LABELS)]} for place, row in enumerate(rows(5 * len(LABELS)))]
    store(here / f"a.{ending}", segments)
    outcome = run("score", f"a.{ending}", "--by", "lang,day", "-m", "AP", "-f", "json", "-q")
    assert outcome.code == 0
    groups = {(score["group"]["lang"], score["group"]["day"]) for score in json.loads(outcome.out)["scores"]}
    assert groups == {(row["lang"], str(row["day"])) for row in segments}


@given(st.lists(st.none() | st.text(st.sampled_from("\x00\x1e\x1fabenäx ")), min_size=1, max_size=4))
def test_labels_that_were_joined_are_those_that_come_apart(labels):
    assert labels_of(joined_labels(labels), len(labels)) == tuple(labels)


# ---- quarantine -------------------------------------------------------------------------------------------------


def poison(folder: Path) -> tuple[list[dict[str, Any]], list[tuple[str, str, str, str]]]:
    """A lake in which some things are wrong: the rows that are not, and what is."""
    every = lake(folder, files=2)
    segments = rows(10, 500)
    segments[2]["delays"] = [5, 3]
    segments[4]["source_length"] = None
    segments[6]["id"] = "s3"  # in part-0, too
    segments[8]["unit"] = "ms"
    store(folder / "lake/part-2.parquet", segments)
    store(folder / "lake/part-3.parquet", [{**row, "unit": "ms", "source_length": 1e4} for row in rows(3, 600)])
    whole = store(folder / "lake/part-4.parquet", rows(30, 700)).read_bytes()
    (folder / "lake/part-4.parquet").write_bytes(whole[: len(whole) // 2])
    (folder / "lake/part-5.parquet").write_bytes(b"what is this?")
    (folder / "lake/part-6.parquet").write_bytes(b"")
    good = every + [row for i, row in enumerate(segments) if i not in (2, 4, 6, 8)]
    faults = [
        ("lake/part-2.parquet", "3", "s502", "decreasing-delays"),
        ("lake/part-2.parquet", "5", "s504", "missing-source-length"),
        ("lake/part-2.parquet", "7", "s3", "id-in-two-files"),
        ("lake/part-2.parquet", "9", "s508", "mixed-unit"),
        *(("lake/part-3.parquet", str(i + 1), f"s{600 + i}", "mixed-unit") for i in range(3)),
        ("lake/part-4.parquet", "", "", "not-arrow"),
        ("lake/part-5.parquet", "", "", "not-arrow"),
        ("lake/part-6.parquet", "", "", "empty-log"),
    ]
    return good, faults


@pytest.mark.parametrize("by", [(), ("--by", "lang")])
def test_rows_with_faults_are_set_aside_and_everything_else_is_scored(here, run, by):
    good, faults = poison(here)
    outcome = run("score", "lake/*.parquet", "-m", "AL", "-f", "json", "--on-error", "quarantine", *by)
    assert outcome.code == 0, outcome.err
    document = json.loads(outcome.out)
    assert sum(score["n"] for score in document["scores"]) == len(good)
    for score in document["scores"]:
        group = score.get("group", {}).get("lang")
        mine = [row for row in good if group in (None, row["lang"])]
        assert score["score"] == alone(mine, "AL").value
    table = [line.split("\t") for line in (here / "quarantine.tsv").read_text().splitlines()]
    assert table[0] == ["file", "row", "id", "kind", "reason"]
    assert sorted(tuple(line[:4]) for line in table[1:]) == sorted(faults)
    assert all(line[4] for line in table[1:])
    assert document["quarantine"]["faults"] == len(faults)
    assert document["quarantine"]["kinds"]["mixed-unit"] == 4
    assert document["quarantine"]["file"] == "quarantine.tsv"


def test_by_default_every_fault_is_named_and_nothing_is_scored(here, run):
    _, faults = poison(here)
    outcome = run("score", "lake/*.parquet", "-m", "AL")
    assert (outcome.code, outcome.out) == (1, "")
    for place in ("lake/part-2.parquet:3", "lake/part-2.parquet:5", "lake/part-2.parquet:7", "lake/part-2.parquet:9"):
        assert place in outcome.err
    assert "lake/part-3.parquet" in outcome.err  # beside another of its kind
    with pytest.raises(lagging.DataError) as error:
        lagging.read("lake/*.parquet")
    places = {(fault.path, fault.line, fault.kind) for fault in error.value.faults}
    of_rows = {(file, int(row) if row else None, kind) for file, row, _, kind in faults if "part-3" not in file}
    assert places == of_rows | {("lake/part-3.parquet", None, "mixed-unit")}
    assert not (here / "quarantine.tsv").exists()


@pytest.mark.parametrize("more", [(), ("--by", "lang"), ("--segment-scores", "s.tsv")], ids=" ".join)
def test_where_every_row_is_bad_the_table_of_faults_is_written_and_told(here, run, more):
    store(here / "a.jsonl", [{**row, "delays": [2, 1]} for row in rows(7)])
    outcome = run("score", "a.jsonl", "-m", "AL", "--on-error", "quarantine", *more)
    assert (outcome.code, outcome.out) == (1, "")
    assert "error: every segment was set aside in a.jsonl" in outcome.err
    assert "set aside: 7 faults in 1 file (decreasing-delays 7): quarantine.tsv" in outcome.err
    assert (here / "quarantine.tsv").read_text().count("decreasing-delays") == 7
    assert not (here / "s.tsv").exists()


def test_where_every_line_is_unreadable_the_table_of_faults_is_written_and_told(here, run):
    (here / "a.jsonl").write_text('{"delays": [1], "source_length": 2\n' * 3)
    for command in ("score", "compare", "report"):
        output = ("-o", "r.html", "--quarantine", "quarantine.tsv") if command == "report" else ()
        outcome = run(command, *["a.jsonl"] * (1 + (command == "compare")), "--on-error", "quarantine", *output)
        assert outcome.code == 1
        assert "every segment was set aside" in outcome.err
        assert (here / "quarantine.tsv").read_text().count("not-json") == 3
        (here / "quarantine.tsv").unlink()


def test_a_log_without_a_line_is_empty_and_not_set_aside(here, run):
    (here / "a.jsonl").write_text("")
    outcome = run("score", "a.jsonl", "--on-error", "quarantine")
    assert outcome.code == 1
    assert "the log holds no segments" in outcome.err


def test_metrics_that_cannot_be_tallied_are_named(here, run):
    store(here / "a.jsonl", rows(5))
    outcome = run("score", "a.jsonl", "--by", "lang", "-m", "AL,LagPercentile")
    assert (outcome.code, outcome.out) == (1, "")
    assert "LagPercentile cannot be tallied" in outcome.err


@pytest.mark.parametrize("ending", FORMATS)
def test_quarantine_in_any_format(here, run, ending):
    segments = rows(12)
    segments[3]["delays"] = [5, 3]
    segments[7]["id"] = segments[1]["id"]
    store(here / f"a.{ending}", segments)
    outcome = run("score", f"a.{ending}", "--by", "lang", "-m", "AL", "-f", "json", "-q", "--on-error", "quarantine")
    good = [row for i, row in enumerate(segments) if i not in (3, 7)]
    assert {s["group"]["lang"]: s["score"] for s in json.loads(outcome.out)["scores"]} == {
        lang: alone([row for row in good if row["lang"] == lang], "AL").value for lang in {r["lang"] for r in good}
    }
    first = 2 if ending in ("csv", "tsv") else 1  # a table of text has a line of names
    lines = [line.split("\t")[1:4] for line in (here / "quarantine.tsv").read_text().splitlines()[1:]]
    assert lines == [[str(3 + first), "s3", "decreasing-delays"], [str(7 + first), "s1", "duplicate-id"]]


def test_more_faults_of_a_kind_than_a_message_keeps(here, run):
    segments = [{**row, "delays": [5, 3]} if i % 2 else row for i, row in enumerate(rows(5000))]
    store(here / "a.jsonl", segments)
    outcome = run("score", "a.jsonl", "-m", "AL", "-f", "json", "-q", "--on-error", "quarantine")
    assert json.loads(outcome.out)["scores"][0]["n"] == 2500
    assert len((here / "quarantine.tsv").read_text().splitlines()) == 2501


def test_segments_without_names_keep_their_places(here, run):
    for part in range(2):
        segments = [{k: v for k, v in row.items() if k != "id"} for row in rows(10, 10 * part)]
        segments[4]["delays"] = [5, 3]
        store(here / f"part-{part}.jsonl", segments)
    outcome = run("score", "part-*.jsonl", "-m", "AL", "-f", "json", "-q", "--on-error", "quarantine",
                "--segment-scores", "s.tsv")  # fmt: skip
    assert json.loads(outcome.out)["scores"][0]["n"] == 18
    ids = [line.split("\t")[1] for line in (here / "s.tsv").read_text().splitlines()[2:]]
    assert ids == [str(i) for i in range(20) if i not in (4, 14)]


def test_where_the_table_is(here, run):
    segments = rows(12)
    segments[3]["delays"] = [5, 3]
    store(here / "a.jsonl", segments)
    (here / "out").mkdir()
    run("score", "a.jsonl", "--on-error", "quarantine", "-o", "out/x.json")
    assert (here / "out/x.quarantine.tsv").exists()
    run("score", "a.jsonl", "--on-error", "quarantine", "--quarantine", "q.parquet", "-q")
    table = pq.read_table(here / "q.parquet").to_pylist()
    assert table == [
        {"file": "a.jsonl", "row": 4, "id": "s3", "kind": "decreasing-delays",
         "reason": "delays decrease: 5 → 3 (token 2)"}
    ]  # fmt: skip
    assert "set aside: 1 fault in 1 file (decreasing-delays 1): q.tsv" in run(
        "score", "a.jsonl", "--on-error", "quarantine", "--quarantine", "q.tsv"
    ).out  # fmt: skip
    store(here / "b.jsonl", rows(3))
    run("score", "b.jsonl", "--on-error", "quarantine", "--quarantine", "q.tsv", "-q")
    assert (here / "q.tsv").read_text() == "file\trow\tid\tkind\treason\n"  # not that of the log before


def test_no_table_is_left_where_the_command_fails(here, run):
    store(here / "a.jsonl", rows(5))
    outcome = run("score", "a.jsonl", "--on-error", "quarantine", "-m", "AL", "--fail-if", "nobody:AL>1")
    assert outcome.code == 2
    assert [file.name for file in here.iterdir()] == ["a.jsonl"]


def test_comparisons_and_reports_set_aside_too(here, run):
    segments = rows(30)
    store(here / "a.parquet", segments)
    segments[3]["delays"] = [5, 3]
    store(here / "b.parquet", segments)
    outcome = run("compare", "a.parquet", "b.parquet", "-m", "AL", "-f", "json", "--on-error", "quarantine")
    assert json.loads(outcome.out)["scores"][0]["n"] == 29
    assert "set aside: 1 fault in 1 file" in outcome.err
    assert (here / "quarantine.tsv").read_text().count("b.parquet") == 1
    outcome = run("report", "a.parquet", "b.parquet", "-m", "AL", "-o", "r.html", "--on-error", "quarantine")
    assert outcome.code == 0, outcome.err
    assert (here / "r.quarantine.tsv").exists()


def test_a_parquet_file_that_is_damaged_in_the_middle(here, run, monkeypatch):
    monkeypatch.setattr("lagging.formats.segment_rows.SEGMENTS_PER_PART", 10)
    table = pa.Table.from_pylist(rows(40))
    pq.write_table(table, "a.parquet", row_group_size=10, compression="zstd", write_page_checksum=True)
    data = bytearray((here / "a.parquet").read_bytes())
    column = pq.ParquetFile("a.parquet").metadata.row_group(2).column(1)
    assert column.path_in_schema.startswith("delays")
    data[column.data_page_offset + column.total_compressed_size // 2] ^= 0xFF
    (here / "a.parquet").write_bytes(bytes(data))
    outcome = run("score", "a.parquet", "-m", "AL")
    assert (outcome.code, outcome.out) == (1, "")
    assert "a.parquet:21: rows 21 to 40" in outcome.err
    outcome = run("score", "a.parquet", "-m", "AL", "-f", "json", "-q", "--on-error", "quarantine")
    score = json.loads(outcome.out)["scores"][0]
    assert (score["n"], score["score"]) == (20, alone(rows(40)[:20], "AL").value)
    assert (here / "quarantine.tsv").read_text().splitlines()[1].startswith("a.parquet\t21\t\tnot-arrow\t")


# ---- scores of segments -----------------------------------------------------------------------------------------


def test_scores_of_segments_as_parquet(here, run):
    every = lake(here)
    outcome = run("score", "lake/*.parquet", "--by", "lang,day", "-m", "AL,DAL", "--segment-scores", "s.parquet", "-q")
    assert outcome.code == 0, outcome.err
    table = pq.read_table("s.parquet")
    assert table.column_names == ["system", "id", "lang", "day", "AL", "DAL", "reasons"]
    assert table.column("id").to_pylist() == [row["id"] for row in every]
    assert table.column("lang").to_pylist() == [row["lang"] for row in every]
    expected = [None if v != v else v for v in alone(every, "DAL").segments.tolist()]
    assert table.column("DAL").to_pylist() == expected
    assert table.column("reasons").null_count == 120 - expected.count(None)
    document = json.loads(pq.ParquetFile("s.parquet").metadata.metadata[b"lagging.signatures"])
    assert [line.partition("|")[0] for line in document] == ["AL", "DAL"]
    run("score", "lake/*.parquet", "-m", "AL,DAL", "--segment-scores", "t.parquet", "-q")
    assert pq.read_table("t.parquet").column("DAL").equals(table.column("DAL"))


def test_scores_of_segments_of_groups_as_text(here, run):
    every = lake(here)
    run("score", "lake/*.parquet", "--by", "lang", "-m", "AL", "--segment-scores", "s.tsv", "-q")
    lines = (here / "s.tsv").read_text().splitlines()
    assert lines[0].split("\t") == ["system", "id", "lang", "AL"]
    values = ["" if v != v else repr(v) for v in alone(every, "AL").segments.tolist()]
    assert [line.split("\t") for line in lines[1:-1]] == [
        ["lake", row["id"], row["lang"], value] for row, value in zip(every, values, strict=True)
    ]
    assert lines[-1].startswith("# AL|")


def test_scores_of_segments_of_systems_with_other_metrics(here, run):
    store(here / "a.parquet", rows(5))
    store(
        here / "b.parquet",
        [{**row, "prediction": " ".join("x" * len(row["delays"])), "reference": "x"} for row in rows(5)],
    )
    outcome = run("score", "a.parquet", "b.parquet", "--segment-scores", "s.parquet", "-q")
    assert outcome.code == 0, outcome.err
    table = pq.read_table("s.parquet")
    assert table.column_names == ["system", "id", "AP", "AL", "LAAL", "DAL", "BLEU", "reasons"]
    assert table.column("BLEU").null_count >= 5
    assert table.column("system").to_pylist() == ["a"] * 5 + ["b"] * 5


def test_groups_without_an_interval_are_named(here, run):
    segments = [{**row, "delays": [1, 2], "lang": "one" if i == 0 else "many"} for i, row in enumerate(rows(20))]
    store(here / "a.jsonl", segments)
    outcome = run("score", "a.jsonl", "--by", "lang", "--ci", "-m", "AL", "-f", "json")
    assert "note: a: interval: a (one): there is none: too few segments, or all alike" in outcome.err
    ends = {score["group"]["lang"]: score["low"] for score in json.loads(outcome.out)["scores"]}
    assert ends["one"] is None
    assert ends["many"] is not None
