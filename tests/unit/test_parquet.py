# SPDX-License-Identifier: Apache-2.0
"""Parquet and Arrow: types of columns, nulls, metadata, damaged files; nothing is lost, and lists are not copied."""

from __future__ import annotations

import gzip
import json
import os
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging import Run
from lagging.errors import DataError, MissingExtraError, UsageError
from lagging.formats import FORMATS, parquet, read, scan, segment_rows, validate, write
from lagging.formats.arrow_arrays import to_ragged
from runs import same

ENDINGS = pytest.mark.parametrize("ending", ["parquet", "arrow"])
LISTS = [[1.0, 2.0], [], [2.0]]


def store(path: Path, columns: dict[str, Any], said: dict[str, Any] | bytes | None = None) -> Path:
    table = pa.table(columns)
    if said is not None:
        table = table.replace_schema_metadata({b"lagging": said if isinstance(said, bytes) else json.dumps(said)})
    if path.suffix == ".arrow":
        with pa.ipc.new_file(path, table.schema) as file:
            file.write_table(table)
    else:
        pq.write_table(table, path)
    return path


def told(error: pytest.ExceptionInfo[DataError]) -> list[tuple[object, ...]]:
    return [(f.kind, f.line, f.segment, f.token) for f in error.value.faults]


def small(n: int = 3, **changes: Any) -> Run:
    given = {"source_length": [9.0] * n, "prediction": ["a b"] * n, "reference": ["c", None, ""], "name": "base"}
    return Run.from_delays([[i % 9, i % 9 + 0.5] for i in range(n)], **{**given, **changes})


# ---- nothing is lost --------------------------------------------------------------------------------------------


@pytest.mark.data
def test_a_real_log_through_every_format(data, tmp_path):
    log = data / "omnisteval/examples/short_form_degenerate_policy_example/instances.log"
    names = ["AP", "AL", "LAAL", "DAL", "CW", "BLEU", "AL(clock=elapsed)", "AL(length=reference)"]

    def scores(run: Run) -> list[tuple[str, float, bytes]]:
        every = [s for c in ("paper", "simuleval") for s in lagging.score(run, names, convention=c)]
        return [(str(s.signature), s.value, s.segments.tobytes()) for s in every]

    run = first = read(log)
    assert len(run) == 2580
    for step in ("a.parquet", "b.csv", "c.arrow", "d.tsv", "instances.log"):
        lost = write(run, tmp_path / step)
        assert lost == (["reference_length"] if step == "instances.log" else [])
        run = read(tmp_path / step)
        same(first, run, ("name", *lost))
    assert scores(run) == scores(first)
    assert scores(read(tmp_path / "b.csv")) == scores(first)


@ENDINGS
def test_in_parts(ending, tmp_path, monkeypatch):
    run = replace(small(120, reference=["c", None, ""] * 40), repaired=(("clip", 5),), notes=())
    whole = tmp_path / f"whole.{ending}"
    write(run, whole)
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 50)
    path = tmp_path / f"a.{ending}"
    write(run, path)
    if ending == "parquet":
        assert pq.ParquetFile(path).metadata.num_row_groups == 3
    for stored in (whole, path):
        parts = list(scan(stored))
        assert [len(part) for part in parts] == [50, 50, 20]
        joined = Run.concat(parts)
        same(run, joined, ("name",))
        assert joined.repaired == (("clip", 5),)
        assert joined.line.tolist() == list(range(1, 121))
        assert joined.notes == read(stored).notes


def test_what_is_said_in_the_metadata(tmp_path):
    write(small(unit="ms", level="word", seg="given"), tmp_path / "a.parquet")
    schema = pq.read_schema(tmp_path / "a.parquet")
    assert json.loads(schema.metadata[b"lagging"]) == {"unit": "ms", "level": "word", "seg": "given", "name": "base"}
    assert schema.names == ["id", "delays", "source_length", "prediction", "reference"]
    assert schema.field("delays").type == pa.list_(pa.float64())
    assert pq.ParquetFile(tmp_path / "a.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_what_is_unknown_is_null(tmp_path):
    run = Run.from_delays([[1]], source_length=[2], due=[[1, 2]], shown=[[np.nan, 2.5]], offset=[np.nan])
    write(run, tmp_path / "a.parquet")
    table = pq.read_table(tmp_path / "a.parquet").to_pydict()
    assert (table["shown"], table["offset"]) == ([[None, 2.5]], [None])


def test_lists_are_not_copied():
    for array in (pa.array([[1.0, 2.0], [], [3.0]]), pa.array([[9.0], [1.0, 2.0], []])[1:]):
        ragged, missing, null = to_ragged(array)
        assert ragged.values.__array_interface__["data"][0] in range(
            array.values.buffers()[1].address, array.values.buffers()[1].address + array.values.buffers()[1].size
        )
        assert not missing.any()
        assert not null.any()


# ---- types ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind",
    [
        pa.list_(pa.float64()),
        pa.list_(pa.float32()),
        pa.list_(pa.float16()),
        pa.list_(pa.int8()),
        pa.list_(pa.uint64()),
        pa.large_list(pa.float64()),
        pa.large_list(pa.int64()),
        pa.list_(pa.decimal128(9, 2)),
    ],
    ids=str,
)
@ENDINGS
def test_kinds_of_lists(kind, ending, tmp_path):
    values = [[Decimal(int(v)) for v in row] for row in LISTS] if "decimal" in str(kind) else LISTS
    values = [[np.float16(v) for v in row] for row in LISTS] if "halffloat" in str(kind) else values
    values = [[int(v) for v in row] for row in LISTS] if "int" in str(kind) else values
    if ending == "parquet" and "halffloat" in str(kind) and int(pa.__version__.split(".")[0]) < 16:
        pytest.skip("this pyarrow cannot write half floats")
    path = store(tmp_path / f"a.{ending}", {"delays": pa.array(values, kind), "source_length": [2, 2, 2]})
    assert read(path).delays.tolist() == LISTS


@ENDINGS
def test_lists_of_one_size(ending, tmp_path):
    kind = pa.list_(pa.float64(), 2)
    delays = pa.array([[1, 2], None, [2, 2]], kind)
    path = store(
        tmp_path / f"a.{ending}", {"delays": delays, "source_length": [2] * 3, "prediction": ["a b", "", "a b"]}
    )
    assert read(path).delays.tolist() == [[1, 2], [], [2, 2]]


def test_a_null_list_with_something_under_it(tmp_path):
    """Arrow lets a list that is null have entries; they do not count."""
    hidden = pa.ListArray.from_arrays(
        pa.array([0, 1, 3, 4], pa.int32()), pa.array([1.0, 7.0, 7.0, 2.0]), mask=pa.array([False, True, False])
    )
    path = store(tmp_path / "a.arrow", {"delays": hidden, "source_length": [2] * 3, "prediction": ["a", "", "b"]})
    assert read(path).delays.tolist() == [[1], [], [2]]


def test_batches_that_are_part_of_another(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 2)
    path = store(tmp_path / "a.arrow", {"delays": [[1], [2, 2], [1, 2, 3], [4], []], "source_length": [5] * 5})
    assert read(path).delays.tolist() == [[1], [2, 2], [1, 2, 3], [4], []]


@pytest.mark.parametrize(
    "texts",
    [
        pa.array(["a b", "", "c"]),
        pa.array(["a b", "", "c"], pa.large_string()),
        pa.array([b"a b", b"", b"c"]),
        pa.array(["a b", "", "c"]).dictionary_encode(),
        pa.array(["a b", "", "c"], pa.large_string()).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
@ENDINGS
def test_kinds_of_texts(texts, ending, tmp_path):
    path = store(tmp_path / f"a.{ending}", {"delays": LISTS, "source_length": [2] * 3, "hyp": texts, "docid": texts})
    run = read(path)
    assert (run.prediction.tolist(), run.document.tolist(), run.level) == (["a b", "", "c"], ["a b", "", "c"], "word")


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array([5, 7, 6], pa.int32()), [5, 7, 6]),
        (pa.array([2**63, 1, 2], pa.uint64()), [str(2**63), "1", "2"]),
        (pa.array([5.0, 7.0, 6.0]), [5, 7, 6]),
        (pa.array(["5", "x", "6"]), ["5", "x", "6"]),
        (pa.array(["5", "7", "6"]).dictionary_encode(), ["5", "7", "6"]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_kinds_of_names(ids, expected, tmp_path):
    path = store(tmp_path / "a.parquet", {"index": ids, "delays": LISTS, "source_length": [2] * 3})
    assert read(path).id.tolist() == expected


def test_a_source_that_is_described_by_a_list(tmp_path):
    source = [["a.wav", "22050 Hz"], None, ["b.wav"]]
    path = store(tmp_path / "a.parquet", {"delays": LISTS, "source_length": [2000] * 3, "source": source})
    run = read(path)
    assert (run.source.tolist(), run.unit) == (["a.wav", None, "b.wav"], "ms")


def test_numbers_that_are_not_there(tmp_path):
    columns = {"delays": LISTS, "source_length": pa.array([2, 2, 2], pa.int8()), "ref_len": pa.array([4, None, 5])}
    np.testing.assert_array_equal(read(store(tmp_path / "a.parquet", columns)).reference_length, [4, np.nan, 5])


def test_null_among_the_times_shown(tmp_path):
    columns = {"delays": [[1.0]], "source_length": [2], "due": [[1.0, 2.0]], "shown": [[None, 2.5]]}
    np.testing.assert_array_equal(read(store(tmp_path / "a.parquet", columns)).shown[0], [np.nan, 2.5])


@pytest.mark.parametrize(
    ("column", "values", "kind"),
    [
        ("delays", ["1 2"], "delays-not-a-list"),
        ("delays", [1.0], "delays-not-a-list"),
        ("delays", [["1", "2"]], "delays-not-a-list"),
        ("delays", [[True, False]], "delays-not-a-list"),
        ("delays", [[[1.0], [2.0]]], "delays-not-a-list"),
        ("source_length", ["2"], "bad-source-length"),
        ("elapsed", [1.0], "bad-elapsed"),
        ("due", ["x"], "bad-column"),
        ("erased", [[1]], "bad-column"),
        ("reference_length", ["x"], "bad-reference-length"),
        ("prediction", [1], "bad-prediction"),
        ("reference", [["a"]], "bad-reference"),
        ("source", [{"a": 1}], "bad-value"),
        ("id", [[1]], "bad-id"),
        ("unit", [1], "bad-value"),
    ],
)
@ENDINGS
def test_columns_of_the_wrong_type(column, values, kind, ending, tmp_path):
    columns = {"delays": [[1.0, 2.0]], "source_length": [2.0], column: values}
    with pytest.raises(DataError) as error:
        read(store(tmp_path / f"a.{ending}", columns))
    assert told(error) == [(kind, None, None, None)]
    kind = str(pa.array(values).type).partition("<")[0]  # Parquet calls the entries of a list otherwise
    assert error.value.faults[0].detail.startswith(f"the column {column} is of {kind}")


# ---- rows -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "kind", "token"),
    [
        ({"delays": [[1.0], [1.0, None], [2.0]]}, "bad-delay", 2),
        ({"delays": [[1.0], None, [2.0]]}, "missing-delays", None),
        ({"delays": [[1.0], [2.0, 1.0], [2.0]], "prediction": ["a", "b c", "d"]}, "decreasing-delays", 2),
        ({"delays": [[1.0], [np.nan], [2.0]]}, "not-finite", 1),
        ({"source_length": [2.0, None, 2.0]}, "missing-source-length", None),
        ({"source_length": [2.0, np.nan, 2.0]}, "bad-source-length", None),
        ({"prediction": ["a", None, "c"]}, "missing-prediction", None),
        ({"prediction": ["a", "b b", "c"]}, "token-count", None),
        ({"prediction": pa.array([b"a", b"\xff", b"c"])}, "not-utf8", None),
        ({"due": [[1.0], [None], [1.0]]}, "bad-column", 1),
        ({"unit": ["ms", "token", "ms"]}, "mixed-unit", None),
        ({"seg": ["none", "given", "none"]}, "mixed-seg", None),
        ({"system": ["a", "b", "a"]}, "several-systems", None),
    ],
)
@ENDINGS
def test_rows_that_cannot_be_read(changes, kind, token, ending, tmp_path):
    columns = {"id": [10, 11, 12], "delays": [[1.0]] * 3, "source_length": [2.0] * 3, "prediction": ["a", "b", "c"]}
    with pytest.raises(DataError) as error:
        read(store(tmp_path / f"a.{ending}", {**columns, **changes}))
    assert told(error) == [(kind, 2, 11, token)]


@pytest.mark.parametrize(
    ("ids", "kind"), [([0, None, 2], "missing-id"), ([0.0, 0.5, 2.0], "bad-id"), ([b"a", b"\xff", b"b"], "not-utf8")]
)
def test_names_that_are_none(ids, kind, tmp_path):
    with pytest.raises(DataError) as error:
        read(store(tmp_path / "a.parquet", {"id": ids, "delays": [[1.0]] * 3, "source_length": [2.0] * 3}))
    assert [(f.kind, f.line) for f in error.value.faults] == [(kind, 2)]


def test_a_column_of_nothing(tmp_path):
    columns = {"delays": pa.nulls(2), "source_length": [2.0, 3.0], "prediction": ["", ""]}
    assert read(store(tmp_path / "a.parquet", columns)).delays.tolist() == [[], []]
    found = validate(store(tmp_path / "b.parquet", {**columns, "source_length": pa.nulls(2), "unit": ["token"] * 2}))
    assert found.counts == {"missing-source-length": 2}


def test_a_text_that_is_none(tmp_path):
    """Arrow takes texts at their word."""
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    with pytest.raises(DataError) as error:
        read(store(tmp_path / "a.parquet", {"delays": [[1.0]], "source_length": [2.0], "prediction": text}))
    assert told(error) == [("not-utf8", 1, None, None)]


def test_a_name_used_twice(tmp_path, monkeypatch):
    path = store(tmp_path / "a.parquet", {"id": [5, 6, 5], "delays": LISTS, "source_length": [2.0] * 3})
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("duplicate-id", 3, 5, None)]
    assert read(path, repair=["last"]).delays.tolist() == [[], [2]]
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 2)
    with pytest.raises(DataError) as error:
        read(path)
    assert told(error) == [("duplicate-id", 3, 5, None)]


def test_repairs(tmp_path):
    path = store(
        tmp_path / "a.parquet", {"delays": [[2.0, 1.0], [1.0]], "source_length": [2.0] * 2}, {"repaired": {"clip": 4}}
    )
    run = read(path, repair=["monotone"])
    assert run.delays.tolist() == [[2, 2], [1]]
    assert run.repaired == (("clip", 4), ("monotone", 1))


def test_all_faults_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 2)
    columns = {"delays": [[2.0, 1.0], [None], [1.0], None], "source_length": [2.0, 2.0, -1.0, 2.0]}
    found = validate(store(tmp_path / "a.parquet", columns))
    assert [(f.kind, f.line) for f in found.faults] == [
        ("decreasing-delays", 1),
        ("bad-delay", 2),
        ("bad-source-length", 3),
        ("missing-delays", 4),
    ]
    assert found.segments == 2


def test_columns_are_found_by_other_names_and_the_rest_is_named(tmp_path):
    columns = {"Index": [3], "hyp": ["a"], "delays": [[1.0]], "src_len": [2], "wer": [0.1], "ref": ["b"]}
    run = read(store(tmp_path / "a.parquet", columns))
    assert (run.id.tolist(), run.prediction.tolist(), run.reference.tolist()) == ([3], ["a"], ["b"])
    assert [str(note) for note in run.notes] == [f"unknown column: wer: ignored, in {tmp_path / 'a.parquet'}"]


def test_a_column_that_is_missing(tmp_path):
    with pytest.raises(DataError) as error:
        read(store(tmp_path / "a.parquet", {"dealys": [[1.0]], "source_length": [2]}))
    assert told(error) == [("missing-column", None, None, None)]
    assert error.value.faults[0].detail == "no `delays`, but `dealys`. Did you mean delays?"


def test_a_table_that_says_nothing_of_itself(tmp_path):
    run = read(
        store(
            tmp_path / "wait-3.parquet", {"delays": [[100.5, 200.0]], "source_length": [900.5], "prediction": ["a b"]}
        )
    )
    assert (run.unit, run.level, run.name, run.seg) == ("ms", "word", "wait-3", "none")
    assert "guessed from the numbers" in run.origin.description
    assert run.origin.description.startswith("Parquet, speech → text")


def test_what_is_settled_is_settled_by_rows_in_which_something_was_written(tmp_path, monkeypatch):
    monkeypatch.setattr(segment_rows, "SEGMENTS_PER_PART", 2)
    columns = {"delays": [[], [], [], [1.0, 2.0]], "source_length": [2.0] * 4, "prediction": ["", "", "", "a b"]}
    assert {part.level for part in scan(store(tmp_path / "a.parquet", columns))} == {"word"}


def test_only_what_is_asked_for_is_read(tmp_path):
    columns = {"delays": [[1.0]], "source_length": [2], "source": ["a"], "due": [[1.0]], "reference": ["b"]}
    path = store(tmp_path / "a.parquet", columns)
    (run,) = scan(path, columns=())
    assert (run.source, run.due, run.reference.tolist()) == (None, None, ["b"])
    (run,) = scan(path, columns=("source",))
    assert (run.source.tolist(), run.due) == (["a"], None)


def test_two_files_without_names_are_numbered_through(tmp_path):
    paths = [store(tmp_path / n, {"delays": LISTS, "source_length": [2] * 3}) for n in ("a.parquet", "b.parquet")]
    assert read(paths).id.tolist() == list(range(6))


# ---- files ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [b"{", b"[]", b'"x"', {"name": 3}, {"repaired": {"clip": "x"}}, {"repaired": 3}, {"unit": "hours"}, {"level": 7}],
)
def test_metadata_that_make_no_sense(said, tmp_path):
    path = store(tmp_path / "a.parquet", {"delays": [[1.0]], "source_length": [2]}, said)
    with pytest.raises((DataError, UsageError), match=r"a\.parquet"):
        read(path)


def test_all_that_makes_no_sense_in_the_metadata_is_told(tmp_path):
    said = {"name": 3, "repaired": {"clip": "x"}, "stripped": {"eos": 1}}
    path = store(tmp_path / "a.parquet", {"delays": [[2.0, 1.0]], "source_length": [2]}, said)
    found = validate(path)
    assert [fault.kind for fault in found.faults] == ["bad-value", "bad-value", "decreasing-delays"]
    assert [fault.detail for fault in found.faults[:2]] == ["name: 3", 'repaired: {"clip": "x"}']


@ENDINGS
def test_what_comes_late_is_told(ending, tmp_path, monkeypatch):
    monkeypatch.setattr(parquet, "SAMPLE", 1)
    columns = {"delays": [[1.0], [2.0], [3.0]], "source_length": [3, 3, 3], "unit": ["ms"] * 3}
    late = {"elapsed": [None, [2.0], []], "offset": [None, None, 5.0], "document": [None, "d", "e"]}
    run = read(store(tmp_path / f"a.{ending}", {**columns, **late}))
    told = {note.text.partition(":")[0]: note.segments for note in run.notes if note.kind == "column left out"}
    assert told == {"elapsed": (1,), "offset": (2,), "document": (1, 2)}
    assert (run.elapsed, run.offset, run.document) == (None, None, None)


def test_metadata_of_others_are_let_be(tmp_path):
    path = store(tmp_path / "a.parquet", {"delays": [[1.0]], "source_length": [2]}, {"colour": [1], "unit": "ms"})
    assert read(path).unit == "ms"


@ENDINGS
def test_a_file_that_breaks_off(ending, tmp_path):
    path = tmp_path / f"a.{ending}"
    write(small(), path)
    whole = path.read_bytes()
    for size in (8, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(DataError) as error:
            read(path)
        assert told(error) == [("not-arrow", None, None, None)]
        assert not validate(path).ok


@settings(max_examples=150)
@given(st.data())
@ENDINGS
def test_a_damaged_file_is_refused_or_read(ending, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / f"damaged.{ending}"
    write(small(), path)
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(8, len(content) - 1), min_size=1, max_size=3)):
        content[at] ^= data.draw(st.integers(1, 255))
    path.write_bytes(content)
    said = ""
    try:
        read(path)
    except (DataError, UsageError) as error:
        said = str(error)
    assert not said or str(path) in said


def test_a_format_that_the_file_is_not_in(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"delays": [1], "source_length": 1}\n')
    with pytest.raises(DataError) as error:
        read(path, format="parquet")
    assert told(error) == [("not-arrow", None, None, None)]
    write(small(), tmp_path / "a.parquet")
    with pytest.raises(DataError) as error:
        read(tmp_path / "a.parquet", format="arrow")
    assert told(error) == [("not-arrow", None, None, None)]


@ENDINGS
def test_a_run_without_segments(ending, tmp_path):
    write(Run.from_delays([], source_length=[]), tmp_path / f"a.{ending}")
    with pytest.raises(DataError, match="the log holds no segments"):
        read(tmp_path / f"a.{ending}")


@ENDINGS
def test_standard_input_and_output(ending, tmp_path):
    """Such a file is read from its end, so what comes through a pipe is taken into memory."""
    write(small(), tmp_path / f"a.{ending}")
    code = "import sys, lagging; run = lagging.read('-'); lagging.write(run, '-', format=sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, ending],
        input=(tmp_path / f"a.{ending}").read_bytes(),
        capture_output=True,
        timeout=60,
        check=True,
    )
    (tmp_path / f"b.{ending}").write_bytes(done.stdout)
    same(small(), read(tmp_path / f"b.{ending}"))


@ENDINGS
def test_compressed_as_a_whole(ending, tmp_path):
    write(small(), tmp_path / f"a.{ending}")
    (tmp_path / f"a.{ending}.gz").write_bytes(gzip.compress((tmp_path / f"a.{ending}").read_bytes()))
    same(small(), read(tmp_path / f"a.{ending}.gz"))


@pytest.mark.skipif(sys.platform == "win32", reason="no pipes with names")
def test_a_pipe_with_a_name(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    write(small(), tmp_path / "pipe", format="parquet")
    reader.join(10)
    (tmp_path / "a.parquet").write_bytes(received[0])
    same(small(), read(tmp_path / "a.parquet"))


@pytest.mark.parametrize("name", ["a.parquet", "a.pq", "A.PARQUET", "a.arrow", "a.feather"])
def test_endings(name, tmp_path):
    write(small(), tmp_path / name)
    assert read(tmp_path / name).origin.format == ("parquet" if "p" in name.rpartition(".")[2].lower() else "arrow")


def test_a_failing_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.parquet"
    path.write_bytes(b"old")
    torn = Run(
        delays=small().delays, source_length=small().source_length, id=np.array(["\ud800", "a", "b"], dtype=object)
    )
    with pytest.raises(UnicodeEncodeError):
        write(torn, path)
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]
    assert path.read_bytes() == b"old"


def test_without_pyarrow(tmp_path, monkeypatch):
    write(small(), tmp_path / "a.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    made = MissingExtraError("pyarrow", "arrow")
    assert str(pickle.loads(pickle.dumps(made))) == str(made)
    with pytest.raises(MissingExtraError, match=r"pip install 'lagging\[arrow\]'"):
        read(tmp_path / "a.parquet")
    with pytest.raises(MissingExtraError):
        write(small(), tmp_path / "b.parquet")
    assert [file.name for file in tmp_path.iterdir()] == ["a.parquet"]


def test_importing_the_formats_loads_no_pyarrow():
    code = "import sys, lagging.formats; assert 'pyarrow' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_other_programs_read_what_we_write(tmp_path):
    import pandas
    import polars

    write(small(), tmp_path / "a.parquet")
    assert polars.read_parquet(tmp_path / "a.parquet")["delays"].to_list() == small().delays.tolist()
    assert pandas.read_parquet(tmp_path / "a.parquet")["reference"].isna().tolist() == [False, True, False]
    small().to_polars().write_parquet(tmp_path / "b.parquet")
    same(small(), read(tmp_path / "b.parquet"), ("name",))
    small().to_pandas().to_parquet(tmp_path / "c.parquet")
    same(small(), read(tmp_path / "c.parquet"), ("name",))
    assert FORMATS["parquet"].binary


def test_progress_is_told(tmp_path):
    write(small(), tmp_path / "a.parquet")
    seen: list[int] = []
    list(scan(tmp_path / "a.parquet", progress=seen.append))
    assert sum(seen) > 0
