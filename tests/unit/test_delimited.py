# SPDX-License-Identifier: Apache-2.0
"""CSV and TSV: names of columns, ways to write a list, what is nothing and what is empty, and every broken row."""

from __future__ import annotations

import csv
import io

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging import Run
from lagging.data.checks import is_length
from lagging.data.ragged import Ragged
from lagging.errors import DataError, UsageError
from lagging.formats import delimited, read, scan, segment_rows, tables, validate, write
from runs import same

SMALL = "id,delays,source_length,prediction\n0,[1 2],2,a b\n1,[2],2,c\n"


@pytest.fixture
def table(tmp_path):
    def make(content: str | bytes, name: str = "a.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return make


def told(error: pytest.ExceptionInfo[DataError]) -> list[tuple[object, ...]]:
    return [(f.kind, f.line, f.segment, f.token) for f in error.value.faults]


# ---- columns ----------------------------------------------------------------------------------------------------


def test_the_smallest_table(table):
    run = read(table("delays,source_length\n[4 4 4 4 5],5\n"))
    assert (run.origin.format, run.unit, run.level) == ("csv", "token", "token")
    assert (run.id.tolist(), run.line.tolist()) == ([0], [2])
    assert lagging.dal(run.delays[0], source_length=5) == 4.0
    assert run.prediction is None


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_the_first_line_shows_the_separator(separator, table):
    text = separator.join(["index", "Delays", "Source Length", "hyp", "ref"]) + "\n"
    text += separator.join(["7", "1 2", "3", "a b", "c"]) + "\n"
    run = read(table(text))
    assert run.origin.format == ("tsv" if separator == "\t" else "csv")
    assert (run.id.tolist(), run.delays.tolist(), run.source_length.tolist()) == ([7], [[1, 2]], [3])
    assert (run.prediction.tolist(), run.reference.tolist()) == (["a b"], ["c"])


def test_every_other_name_is_known(table):
    for column, others in tables.ALIASES.items():
        for other in others:
            assert tables.match([other.upper().replace("_", "-")]).places == {column: 0}, other


def test_a_columns_own_name_wins(table):
    run = read(table("index,id,delays,source_length\n0,x,1,1\n1,y,1,1\n"))
    assert run.id.tolist() == ["x", "y"]
    assert [str(note) for note in run.notes] == [f"unknown column: index: ignored, in {run.origin.path}"]


def test_columns_that_nobody_knows_are_named_once(table):
    text = "delays,BLEU,source_length,,my notes\n" + "1,0.5,1,,x\n" * 2000
    (note,) = read(table(text)).notes
    assert str(note).startswith("unknown column: BLEU, (a column without a name), my notes: ignored, in ")


@pytest.mark.parametrize(
    ("header", "detail"),
    [
        ("id,dealys,source_length", "no `delays`, but `dealys`. Did you mean delays?"),
        ("id,delays,source_lenght", "no `source_length`, but `source_lenght`. Did you mean source_length?"),
        ("id,delays,words", "no `source_length` among: id, delays, words"),
    ],
)
def test_a_column_that_is_missing(header, detail, table):
    with pytest.raises(DataError) as error:
        read(table(f"\n{header}\n1,2,3\n"))
    assert told(error) == [("missing-column", 2, None, None)]
    assert error.value.faults[0].detail == detail


def test_a_table_without_names(table):
    path = table("0,[1 2],2\n1,[2],2\n")
    with pytest.raises(UsageError, match="is not recognised"):
        read(path)
    with pytest.raises(DataError) as error:
        read(path, format="csv")
    assert [f.kind for f in error.value.faults] == ["missing-column"] * 2


@pytest.mark.parametrize(
    ("header", "detail"),
    [
        ('delays,source_length,"ref', "a quote that is not closed"),
        ('delays,source_length,"ref"x', "',' expected after '\"'"),
    ],
)
def test_names_that_are_no_row(header, detail, table):
    with pytest.raises(DataError) as error:
        read(table(f"\n{header}\n1,2,3\n"))
    assert told(error) == [("not-csv", 2, None, None)]
    assert error.value.faults[0].detail == detail


def test_two_columns_of_one_name(table):
    with pytest.raises(DataError) as error:
        read(table("delays,delays,source_length\n1,2,3\n"))
    assert told(error) == [("repeated-column", 1, None, None)]


def test_unit_and_level_are_columns(table):
    run = read(table("delays,source_length,prediction,unit,level\n[1 2],2,ab,ms,token\n"))
    assert (run.unit, run.level) == ("ms", "token")
    assert read(table("delays,source_length,unit\n[1],2,\n")).unit == "token"
    for column, value in (("unit", "hours"), ("level", "syllable")):
        with pytest.raises(UsageError, match=f"{column} must be"):
            read(table(f"delays,source_length,{column}\n[1],2,{value}\n"))


@pytest.mark.parametrize(
    ("column", "two"), [("unit", ("ms", "token")), ("level", ("char", "token")), ("seg", ("none", "given"))]
)
def test_what_holds_for_all_rows_is_the_same_in_all(column, two, table):
    with pytest.raises(DataError) as error:
        read(table(f"delays,source_length,{column}\n1,2,{two[0]}\n1,2,{two[1]}\n"))
    assert told(error) == [(f"mixed-{column}", 3, None, None)]


def test_several_systems_in_one_table(table):
    with pytest.raises(DataError) as error:
        read(table("id,system,delays,source_length\n0,a,1,2\n1,b,1,2\n"))
    assert told(error) == [("several-systems", 3, 1, None)]
    assert error.value.faults[0].detail == 'name "b", but "a" before'


def test_the_name_of_the_system(table):
    assert read(table("system,delays,source_length\nbase,1,2\n")).name == "base"
    assert read(table("system,delays,source_length\nbase,1,2\n"), name="other").name == "other"
    assert read(table("delays,source_length\n1,2\n", "wait-3.csv")).name == "wait-3"


@pytest.mark.parametrize("cell", ["x", "[1]", '"{""clip"": true}"', '"{""clip"": ""1""}"', '"{"'])
def test_repairs_that_are_no_counts(cell, table):
    with pytest.raises(DataError) as error:
        read(table(f"delays,source_length,repaired\n1,2,{cell}\n"))
    assert told(error) == [("bad-value", 2, None, None)]


def test_columns_that_are_not_asked_for_are_not_read(table):
    path = table("delays,source_length,source,due\n1,2,a b,nonsense\n")
    (run,) = scan(path, columns=())
    assert run.source is None
    with pytest.raises(DataError):
        read(path)


# ---- cells ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "cell",
    [
        '"[1, 2.5, 3e2]"',
        "1 2.5 300",
        "1;2.5;300",
        '" 1 ; 2.5 ; 300 "',
        "[1. 2.5 300.]",
        "[1.  2.5\t300. ]",
        '"[1,2.5,+300.0]"',
    ],
)
def test_ways_to_write_a_list(cell, table):
    assert read(table(f"delays,source_length\n{cell},300\n")).delays.tolist() == [[1, 2.5, 300]]


def test_lists_as_numpy_and_pandas_write_them(table, tmp_path):
    values = np.round(np.sort(np.random.default_rng(1).uniform(0, 9, 200)), 3)
    frame = pandas.DataFrame({"delays": [values.tolist(), [1, 2]], "source_length": [10, 10]})
    frame.to_csv(tmp_path / "a.csv")
    assert read(tmp_path / "a.csv").delays.tolist() == [values.tolist(), [1, 2]]
    with np.printoptions(threshold=1000):
        text = str(values)  # over several lines
    frame = pandas.DataFrame({"delays": [text], "source_length": [10]})
    frame.to_csv(tmp_path / "b.csv")
    assert read(tmp_path / "b.csv").delays.tolist() == [values.tolist()]


def test_an_empty_list_an_empty_text_and_none_at_all(table):
    run = read(table('delays,source_length,prediction,reference\n[],2,,\\N\n,2,"",""\n1,2,a,\\\\N\n1,2,b,\\\\\\N\n'))
    assert run.delays.tolist() == [[], [], [1], [1]]
    assert run.prediction.tolist() == ["", "", "a", "b"]
    assert run.reference.tolist() == [None, "", "\\N", "\\\\N"]


def test_an_empty_number_is_none(table):
    run = read(table("delays,source_length,ref_len\n1,2,\n1,2,\\N\n1,2,4\n"))
    np.testing.assert_array_equal(run.reference_length, [np.nan, np.nan, 4])


def test_names_that_are_numbers(table):
    head = "delays,source_length,id\n"
    assert read(table(head + "1,1,7\n1,1,-3\n")).id.tolist() == [7, -3]
    assert read(table(head + "1,1,007\n1,1,8\n")).id.tolist() == ["007", "8"]
    assert read(table(head + "1,1,9223372036854775807\n")).id.tolist() == [2**63 - 1]
    assert read(table(head + "1,1,9223372036854775808\n")).id.tolist() == ["9223372036854775808"]


@pytest.mark.parametrize(
    ("row", "kind", "token", "detail"),
    [
        ("[1 x],2,a b", "bad-delay", 2, '"x"'),
        ('"[1, ""2""]",2,a b', "bad-delay", 2, '"\\"2\\""'),
        ('"[1, null]",2,a b', "bad-delay", 2, "null"),
        ('"[1, true]",2,a b', "bad-delay", 2, '"true"'),
        ('"[1, [2]]",2,a b', "bad-delay", 2, '"[2]"'),
        ("[1 2,2,a b", "delays-not-a-list", None, '"[1 2"'),
        ("[,2,a b", "delays-not-a-list", None, '"["'),
        ("none,2,a b", "delays-not-a-list", None, '"none"'),
        ("1;;2,2,a b", "bad-delay", 2, '""'),
        ("1_0,2,a", "delays-not-a-list", None, '"1_0"'),
        ('"1,5;2,5",2,a b', "decimal-comma", 1, "delays 1,5"),
        ('"1,5 2",2,a b', "decimal-comma", 1, "delays 1,5"),
        ('1 2,"2,5",a b', "decimal-comma", None, "source_length 2,5"),
        ("1 2,two,a b", "bad-source-length", None, 'source_length "two"'),
        ("1 2,-2,a b", "bad-source-length", None, "-2"),
        ("1 2,nan,a b", "bad-source-length", None, "NaN"),
        ("1 2,,a b", "missing-source-length", None, ""),
        (",2,a b", "missing-delays", None, ""),
        ("1 2,2,\\N", "missing-prediction", None, ""),
        ("2 1,2,a b", "decreasing-delays", 2, "2 → 1"),
        ("1 nan,2,a b", "not-finite", 2, "NaN"),
        ('"[1, 1e400]",2,a b', "not-finite", 2, "Infinity"),
        ("-1 2,2,a b", "negative-delay", 1, "-1"),
        ("1 2 3,3,a b", "token-count", None, "3 delays, 2 words"),
        ("1 2,2", "not-csv", None, "3 cells, but 4 columns"),
        ("1 2,2,a,b", "not-csv", None, "5 cells, but 4 columns"),
        ('1 2,2,"a"b', "not-csv", None, "',' expected after '\"'"),
    ],
)
def test_rows_that_cannot_be_read(row, kind, token, detail, table):
    text = f"id,delays,source_length,prediction\n0,1,2,x\n1,{row}\n2,1 2,2,y z\n3,1 2,2,y z\n"
    with pytest.raises(DataError) as error:
        read(table(text))
    name = None if kind == "not-csv" else 1
    assert told(error) == [(kind, 3, name, token)]
    assert error.value.faults[0].detail == detail


@pytest.mark.parametrize(
    ("column", "cell", "kind"),
    [
        ("elapsed", "x", "bad-elapsed"),
        ("due", "[1 x]", "bad-column"),
        ("due", '"[1, null]"', "bad-column"),
        ("erased", "few", "bad-column"),
        ("reference_length", "few", "bad-reference-length"),
        ("offset", '"1,5"', "decimal-comma"),
    ],
)
def test_other_columns_that_are_no_numbers(column, cell, kind, table):
    with pytest.raises(DataError) as error:
        read(table(f"id,delays,source_length,{column}\n4,1,2,{cell}\n"))
    assert [(f.kind, f.line, f.segment) for f in error.value.faults] == [(kind, 2, 4)]
    assert error.value.faults[0].detail.startswith(column)


def test_speech_is_no_text(table):
    """One piece of sound is not one word, even if there are as many of them."""
    run = read(table("delays,source_length,durations,prediction\n1000.5,2000.5,300,a.wav\n1000.5,2000.5,300,b.wav\n"))
    assert (run.level, run.prediction.tolist(), run.durations.tolist()) == ("token", ["a.wav", "b.wav"], [[300], [300]])
    assert "speech → speech" in run.origin.description


def test_null_among_the_times_shown(table):
    run = read(table('delays,source_length,due,shown\n1,2,"[1, 2]","[null, 2.5]"\n'))
    np.testing.assert_array_equal(run.shown[0], [np.nan, 2.5])


def test_a_name_that_is_missing(table):
    with pytest.raises(DataError) as error:
        read(table("id,delays,source_length\n0,1,2\n\\N,1,2\n"))
    assert told(error) == [("missing-id", 3, None, None)]


def test_a_name_used_twice(table):
    path = table("id,delays,source_length\n5,1,2\n5,2,2\n")
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("duplicate-id", 3, 5, None)]
    assert read(path, repair=["last"]).delays.tolist() == [[2]]


# ---- files ------------------------------------------------------------------------------------------------------


def test_line_breaks_in_a_cell_keep_the_line_numbers(table):
    text = 'id,delays,source_length,reference\r\n0,1,2,"a\r\nb\nc"\r\n1,2 1,2,x\r\n'
    with pytest.raises(DataError) as error:
        read(table(text))
    assert told(error) == [("decreasing-delays", 5, 1, 2)]
    assert read(table(text.replace("2 1", "2"))).reference.tolist() == ["a\r\nb\nc", "x"]


def test_blank_lines_are_skipped_and_counted(table):
    run = read(table("\n" + SMALL.replace("\n", "\n\n") + "  \n"))
    assert run.line.tolist() == [4, 6]
    assert [str(note) for note in run.notes] == [f"blank line: 5 lines: skipped, in {run.origin.path}"]


def test_a_byte_order_mark(table):
    run = read(table(b"\xef\xbb\xbf" + SMALL.encode()))
    assert run.id.tolist() == [0, 1]
    assert [note.kind for note in run.notes] == ["byte order mark"]


def test_bytes_that_are_no_text(table):
    with pytest.raises(DataError) as error:
        read(table(b"id,delays,source_length,reference\n0,1,2,ok\n1,1,2,caf\xe9\n"))
    assert told(error) == [("not-utf8", 3, 1, None)]
    assert error.value.faults[0].detail == "reference has the byte 0xe9"
    with pytest.raises(DataError) as error:
        read(table(b"id,delays,source_length,r\xe9f\n0,1,2,ok\n"))
    assert told(error) == [("not-utf8", 1, None, None)]


@pytest.mark.parametrize("end", ["1", "1,[1 2],2", '1,"[1, 2]",2,"a'])
def test_a_last_row_that_breaks_off(end, table):
    path = table("id,delays,source_length,prediction\n0,1,2,x\n" + end)
    with pytest.raises(DataError) as error:
        read(path)
    assert [(f.kind, f.line) for f in error.value.faults] == [("truncated", 3)]
    run = read(path, repair=["torn"])
    assert (run.id.tolist(), run.repaired) == ([0], (("torn", 1),))


def test_a_last_row_without_a_line_break_is_whole(table):
    assert len(read(table(SMALL.rstrip("\n")))) == 2


def test_a_quote_that_is_never_closed(table, monkeypatch):
    path = table('id,delays,source_length,prediction\n0,1,2,x\n1,1,2,"y\n' + "2,1,2,z\n" * 2000)
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("not-csv", 3, None, None)]
    assert error.value.faults[0].detail == "a quote that is not closed"
    monkeypatch.setattr(delimited, "LARGEST_CELL", 1000)
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("not-csv", 3, None, None)]


def test_cells_larger_than_the_csv_module_takes(table):
    usual = csv.field_size_limit()
    delays = " ".join(str(n) for n in range(60_000))
    run = read(table(f"delays,source_length\n{delays},60000\n"), unit="token")
    assert len(delays) > usual
    assert len(run.delays[0]) == 60_000
    assert csv.field_size_limit() == usual


def test_all_faults_at_once(table):
    found = validate(table("id,delays,source_length\n0,x,y\n1,2 1,2\n2,1\n"))
    assert [(f.kind, f.line) for f in found.faults] == [
        ("delays-not-a-list", 2),
        ("bad-source-length", 2),
        ("decreasing-delays", 3),
        ("not-csv", 4),
    ]


def test_in_parts_as_in_one(table, monkeypatch):
    rows = "".join(f"{i},[{i % 5} {i % 5 + 1}],9,a b,{chr(92) + 'N' if i % 3 == 2 else ''},base\n" for i in range(1300))
    path = table("id,delays,source_length,prediction,reference,system\n" + rows)
    whole = read(path)
    monkeypatch.setattr(segment_rows, "SAMPLE", 1)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 100)
    parts = list(scan(path))
    assert len(parts) == 3
    same(whole, Run.concat(parts))
    assert whole.line.tolist() == Run.concat(parts).line.tolist()


def test_two_files_without_names_are_numbered_through(table):
    one, two = table("delays,source_length\n1,2\n1,2\n"), table("delays,source_length\n2,2\n", "b.csv")
    assert read([one, two]).id.tolist() == [0, 1, 2]


def test_a_table_without_rows(table):
    with pytest.raises(DataError, match="the log holds no segments"):
        read(table("delays,source_length\n"))
    with pytest.raises(DataError, match="the log holds no segments"):
        read(table("\n\n"), format="csv")


@pytest.mark.parametrize(
    "head",
    [
        b"hello\n",
        b"Source, and more\n",
        b'{"delays": [1], "source_length": 1}\n',
        b"RRW\n",
        b"\x00\xff\n",
        b"x" * 200_000,
    ],
)
def test_what_is_no_table(head):
    assert delimited.recognise(head) is None


# ---- writing ----------------------------------------------------------------------------------------------------


def test_layout(tmp_path):
    run = Run.from_delays(
        [[1, 2.5], []],
        source_length=[3, 2],
        prediction=["a, b", ""],
        reference=["x", None],
        reference_length=[1, np.nan],
    )
    assert write(run, tmp_path / "a.csv") == []
    assert (tmp_path / "a.csv").read_bytes().decode() == (
        "id,delays,source_length,prediction,reference,reference_length,unit,level\n"
        '0,"[1, 2.5]",3,"a, b",x,1,token,word\n'
        "1,[],2,,\\N,,token,word\n"
    )
    write(run, tmp_path / "a.tsv")
    assert (tmp_path / "a.tsv").read_bytes().decode().splitlines()[1] == "0\t[1, 2.5]\t3\ta, b\tx\t1\ttoken\tword"


@pytest.mark.parametrize(
    "text", ["a\rb", "a\nb", "\r\n", 'q"', '"', "\t", "\x00", "\u2028\x85", "\\N", "\\\\N", "\\", " "]
)
@pytest.mark.parametrize("name", ["a.csv", "a.tsv"])
def test_texts_survive(text, name, tmp_path):
    run = Run.from_delays([[1], [1]], source_length=[2, 2], reference=[text, None], id=[text, "x"])
    assert write(run, tmp_path / name) == []
    back = read(tmp_path / name)
    assert (back.reference.tolist(), back.id.tolist()) == ([text, None], [text, "x"])


@pytest.mark.parametrize("value", [0.1 + 0.2, 5e-324, -0.0, 2.0**53, 2.0**53 + 2, 1e17, 123456789.123456789, 1 / 3])
def test_numbers_survive_to_the_last_bit(value, tmp_path):
    length = value if is_length(value) else 1 / 3  # a time may be as small as it likes, a length may not
    run = Run.from_delays([[value]], source_length=[length], offset=[value])
    write(run, tmp_path / "a.csv")
    same(Run.concat([run]), read(tmp_path / "a.csv"), ("name",))


def test_names_that_look_like_numbers_are_said_to_be_lost(tmp_path):
    run = Run.from_delays([[1], [1]], source_length=[1, 1], id=["1", "2"])
    (lost,) = write(run, tmp_path / "a.csv")
    assert lost == "id (names that are numbers are read as numbers)"
    assert read(tmp_path / "a.csv").id.tolist() == [1, 2]
    assert write(Run.from_delays([[1], [1]], source_length=[1, 1], id=["1", "b"]), tmp_path / "a.csv") == []


def test_other_programs_read_what_we_write(tmp_path):
    run = Run.from_delays([[1, 2.5], []], source_length=[3, 2], prediction=['say "a"', ""], reference=["x\r\ny", "z"])
    write(run, tmp_path / "a.csv")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["prediction"] for row in rows] == ['say "a"', ""]
    frame = pandas.read_csv(tmp_path / "a.csv", na_values="\\N", keep_default_na=False)
    assert frame["reference"].tolist() == ["x\r\ny", "z"]


def test_a_column_that_is_new_to_a_run_is_written_and_read(tmp_path):
    """Nothing here lists the columns: every one of a Run's is in the table."""
    run = Run.from_delays([[1]], source_length=[1])
    lists = {c: Ragged.from_rows([[1.0]]) for c in ("arrivals", "compute")}
    full = Run(delays=run.delays, source_length=run.source_length, id=run.id, **lists, offset=np.array([2.5]))
    text = io.StringIO()
    assert delimited.write_csv(full, text) == []
    assert text.getvalue().splitlines()[0] == "id,delays,source_length,arrivals,compute,offset,unit,level"


@settings(max_examples=200)
@given(st.data())
def test_a_damaged_table_is_refused_or_read(tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "damaged.csv"
    write(Run.from_delays([[1, 2.5], []], source_length=[3, 2], prediction=["a b", ""], reference=["x, y", None]), path)
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=3)):
        content[at : at + 1] = data.draw(
            st.sampled_from([b"", b'"', b",", b"\n", b"\r", b"[", b"\xff", b"\0", b"nan", b"9"])
        )
    path.write_bytes(content)
    said = ""
    try:
        read(path)
    except (DataError, UsageError) as error:
        said = str(error)
    assert not said or str(path) in said
