# SPDX-License-Identifier: Apache-2.0
"""A key that an object has twice is a fault that names it, wherever the object stands, and however it is written."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.errors import DataError, UsageError
from lagging.formats.keys import has_repeated_keys
from lagging.formats.source import Batch
from lagging.longform import read_segmentation
from lagging.scoring.column_files import read_column

GOOD = '{"index": %d, "prediction": "a b", "delays": [1, 2], "source_length": 2, "reference": "a b"}'
TWICE = {
    "a column that is scored": ('"delays": [1, 2], "delays": [2, 2]', '"delays"'),
    "the same value": ('"delays": [1, 2], "delays": [1, 2]', '"delays"'),
    "a key that nobody reads": ('"delays": [1, 2], "comment": 1, "comment": 2', '"comment"'),
    "without spaces": ('"delays":[1,2],"delays":[2,2]', '"delays"'),
    "with spaces before the colon": ('"delays" : [1, 2], "delays"\t: [2, 2]', '"delays"'),
    "one of them with an escape": ('"delays": [1, 2], "del\\u0061ys": [2, 2]', '"delays"'),
    "both with an escape": ('"delays": [1, 2], "x\\"y": 1, "x\\"y": 2', '"x\\"y"'),
    "long keys": (
        '"delays": [1, 2], "more than sixteen bytes": 1, "more than sixteen bytes": 2',
        '"more than sixteen bytes"',
    ),
    "empty keys": ('"delays": [1, 2], "": 1, "": 2', '""'),
    "within an object within": ('"delays": [1, 2], "tags": {"a": {"b": 1, "b": 2}}', '"b"'),
    "not ASCII": ('"delays": [1, 2], "größe": 1, "größe": 2', '"größe"'),
}
ONCE = {
    "a text that looks like a key": '"delays": [1, 2], "comment": "\\"delays\\": [2, 2]"',
    "a text that begins with spaces": '"delays": [1, 2], "comment": "  : x"',
    "the same key in an object within": '"delays": [1, 2], "tags": {"delays": 3, "index": 4}',
    "keys that begin and end alike": '"delays": [1, 2], "beginning_of_1_ending__": 1, "beginning_of_2_ending__": 2',
    "keys of which one is the end of the other": '"delays": [1, 2], "ys": 1, "s": 2, "lays": 3',
}


def line(middle: str, index: int = 1) -> str:
    return (GOOD % index).replace('"delays": [1, 2]', middle)


@pytest.mark.parametrize("what", TWICE)
def test_a_key_twice_is_a_fault_that_names_it(what: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    text, key = TWICE[what]
    log.write_text("\n".join([GOOD % 0, line(text), GOOD % 2, ""]), "utf-8")
    (fault,) = lagging.validate(log).faults
    assert (fault.kind, fault.line, fault.segment, fault.detail) == ("repeated-key", 2, 1, key)
    with pytest.raises(DataError, match="a key occurs twice in one object"):
        lagging.read(log)


@pytest.mark.parametrize("what", ONCE)
def test_what_only_looks_like_a_key_twice_is_none(what: str, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text("\n".join([GOOD % 0, line(ONCE[what]), GOOD % 2, ""]), "utf-8")
    assert lagging.validate(log).ok
    assert lagging.read(log).delays.tolist() == [[1, 2]] * 3


def _batch(text: str) -> Batch:
    raw = text.encode("utf-8")
    ends = np.flatnonzero(np.frombuffer(raw, np.uint8) == ord("\n"))
    return Batch(1, raw, np.concatenate([[0], ends[:-1] + 1]))


class _Object(list[tuple[str, object]]):
    """Keys and values in order, of which two may be the same."""


KEYS = st.sampled_from(
    ["", "a", "b", "ab", "delays", "index", "elapsed", "a" * 20, "a" * 9 + "b" + "a" * 9, "ä", 'q"', "\\"]
)
VALUES = st.recursive(
    st.sampled_from([1, "x", "", " ", '"a": 1', '\\"b\\":', "  :", "[[", "ä: "]),
    lambda inner: st.lists(inner, max_size=2) | st.lists(st.tuples(KEYS, inner), max_size=3).map(_Object),
    max_leaves=5,
)


def _written(value: object, ascii_only: bool, colon: str) -> str:
    if isinstance(value, _Object):
        pairs = (json.dumps(k, ensure_ascii=ascii_only) + colon + _written(v, ascii_only, colon) for k, v in value)
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(_written(one, ascii_only, colon) for one in value) + "]"
    return json.dumps(value, ensure_ascii=ascii_only)


def _has_twice(value: object) -> bool:
    if isinstance(value, _Object):
        keys = [key for key, _ in value]
        return len(set(keys)) < len(keys) or any(_has_twice(inner) for _, inner in value)
    return isinstance(value, list) and any(map(_has_twice, value))


@given(
    st.lists(st.lists(st.tuples(KEYS, VALUES), max_size=5).map(_Object), min_size=1, max_size=4),
    st.booleans(),
    st.sampled_from([":", ": ", " : ", "\t:"]),
)
def test_all_lines_at_once_tell_what_each_by_itself_tells(objects: list[_Object], ascii_only: bool, colon: str) -> None:
    text = "".join(_written(one, ascii_only, colon) + "\n" for one in objects)
    assert has_repeated_keys(_batch(text)) == any(map(_has_twice, objects))


# ---- other files ------------------------------------------------------------------------------------------------


def test_a_key_twice_in_a_log_of_streams(tmp_path: Path) -> None:
    log = tmp_path / "metrics.jsonl"
    log.write_text(
        '{"id": 0, "total_audio_processed": 1.0, "computation_time": 0.1, "generated_tokens": ["▁a"], '
        '"deleted_tokens": [], "generated_tokens": ["▁b"]}\n'
    )
    (fault,) = lagging.validate(log).faults
    assert (fault.kind, fault.detail, fault.line) == ("repeated-key", '"generated_tokens"', 1)


ENTRY = '{"wav": "a.wav", "offset": %d, "duration": 1, "offset": 5}'


@pytest.mark.parametrize(
    ("name", "text", "lines"),
    [
        ("s.jsonl", f"{ENTRY % 0}\n{ENTRY % 1}\n", [1, 2]),
        ("s.json", f"[{ENTRY % 0},\n{ENTRY % 1}]", [1, 2]),
        (
            "s.yaml",
            "- {wav: a.wav, offset: 0, duration: 1, offset: 5}\n- wav: a.wav\n  offset: 1\n  offset: 2\n",
            [1, 4],
        ),
    ],
)
def test_a_key_twice_in_a_segmentation(name: str, text: str, lines: list[int], tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(DataError) as error:
        read_segmentation(tmp_path / name)
    found = [(f.kind, f.detail, f.line, f.segment) for f in error.value.faults if f.kind == "repeated-key"]
    assert found == [("repeated-key", '"offset"', line, place) for place, line in enumerate(lines)]


def test_a_key_twice_in_a_column_of_scores(tmp_path: Path) -> None:
    file = tmp_path / "column.jsonl"
    file.write_text('{"id": 0, "score": 1, "score": 2}\n')
    with pytest.raises(DataError, match="a key occurs twice"):
        read_column(file, "COMET", "base")


def test_a_key_twice_in_the_configuration_beside_a_log(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("source_type: text\nsource_type: speech\n")
    (tmp_path / "instances.log").write_text(GOOD % 0 + "\n")
    with pytest.raises(UsageError, match="the key source_type twice, in line 2"):
        lagging.read(tmp_path)


# ---- depth ------------------------------------------------------------------------------------------------------

DEEP = {
    "brackets": lambda n: "[" * n + "]" * n,
    "brackets that are not closed": lambda n: "[" * n,
    "braces": lambda n: '{"a":' * n + "1" + "}" * n,
    "dashes on one line": lambda n: "- " * n + "a",
    "indented": lambda n: "\n".join(" " * k + "a:" for k in range(min(n, 3000))),
    "question marks": lambda n: "? " * n + "a",
}


@pytest.mark.parametrize("count", [150, 2000, 20_000, 100_000])
@pytest.mark.parametrize("what", DEEP)
@pytest.mark.parametrize("name", ["s.yaml", "s.json", "s.jsonl"])
def test_a_segmentation_that_is_nested_too_deeply_is_refused(name: str, what: str, count: int, tmp_path: Path) -> None:
    text = DEEP[what](count)
    (tmp_path / name).write_text(
        f'{{"wav": "a", "offset": 0, "duration": 1, "x": {text}}}' if name == "s.jsonl" else text
    )
    with pytest.raises(DataError) as error:
        read_segmentation(tmp_path / name)
    kinds = {fault.kind for fault in error.value.faults}
    assert kinds <= {"not-a-segmentation", "segment-field"}
    if name == "s.yaml":
        assert "nested too deeply" in str(error.value)


@pytest.mark.parametrize("what", DEEP)
def test_a_configuration_that_is_nested_too_deeply_is_refused(what: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(DEEP[what](100_000))
    (tmp_path / "instances.log").write_text(GOOD % 0 + "\n")
    with pytest.raises(UsageError, match="is not readable YAML"):
        lagging.read(tmp_path)


def test_a_manifest_that_is_nested_too_deeply_says_nothing_of_the_log(tmp_path: Path) -> None:
    from lagging.agents.runner.manifest import Manifest

    (tmp_path / "instances.log").write_text(GOOD % 0 + "\n")
    (tmp_path / "run.json").write_text("[" * 100_000)
    assert lagging.validate(tmp_path).ok
    with pytest.raises(UsageError, match="nested too deeply"):
        Manifest.read(tmp_path)


@pytest.mark.parametrize("deep", ["[" * 100_000, "[" * 100_000 + "]" * 100_000, '{"a":' * 20_000])
def test_what_a_table_says_of_itself_may_not_be_nested_too_deeply(deep: str, tmp_path: Path) -> None:
    quoted = deep.replace('"', '""')
    table = tmp_path / "log.csv"
    table.write_text(f'id,delays,source_length,repaired\n0,"[1, 2]",2,"{quoted}"\n')
    assert [fault.kind for fault in lagging.validate(table).faults] == ["bad-value"]


def test_metadata_of_parquet_may_not_be_nested_too_deeply(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pa.table({"delays": [[1.0, 2.0]], "source_length": [2.0]})
    parquet.write_table(table.replace_schema_metadata({"lagging": "[" * 100_000}), tmp_path / "log.parquet")
    assert [fault.kind for fault in lagging.validate(tmp_path / "log.parquet").faults] == ["bad-value"]


@pytest.mark.parametrize("depth", [2000, 100_000])
@pytest.mark.parametrize("blank", ["", "\n"])
def test_a_line_of_a_log_that_is_nested_too_deeply_is_refused_whatever_is_beside_it(
    depth: int, blank: str, tmp_path: Path
) -> None:
    log = tmp_path / "log.jsonl"
    deep = line('"delays": [1, 2], "x": ' + "[" * depth + "]" * depth)
    log.write_text("\n".join([GOOD % 0, deep, blank]))
    (fault,) = lagging.validate(log).faults
    assert (fault.kind, fault.line) == ("not-json", 2)
    assert "nested too deeply" in fault.detail


def test_aliases_that_grow_without_bound_are_told_in_a_few_words(tmp_path: Path) -> None:
    """Ten lists, each of ten times the one before: ten thousand million entries, if anybody wrote them out."""
    text = "- &a0 [x]\n" + "".join(f"- &a{k} [{', '.join([f'*a{k - 1}'] * 10)}]\n" for k in range(1, 11))
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(DataError) as error:
        read_segmentation(tmp_path / "s.yaml")
    assert len(str(error.value)) < 5000
