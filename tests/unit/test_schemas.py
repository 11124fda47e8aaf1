# SPDX-License-Identifier: Apache-2.0
"""The JSON Schemas that are published accept what we write, and refuse lines that the readers refuse."""

import json
import tempfile
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings

import lagging
from lagging.formats.line import Line
from runs import runs

SCHEMAS = {
    path.name.partition(".")[0]: json.loads(path.read_text("utf-8"))
    for path in (Path(__file__).parents[2] / "docs" / "schema").glob("*.json")
}


VALIDATORS = {name: jsonschema.Draft202012Validator(schema) for name, schema in SCHEMAS.items()}


def is_valid(line, name):
    return VALIDATORS[name].is_valid(line)


def written(run, format):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"base.{format}"
        lagging.write(run, path, format=format)
        return [json.loads(line) for line in path.read_text("utf-8").removesuffix("\n").split("\n") if line]


@pytest.mark.parametrize("name", ["log", "stream"])
def test_they_are_schemas(name):
    jsonschema.Draft202012Validator.check_schema(SCHEMAS[name])


def test_every_key_of_ours_is_in_the_schema():
    """All that is read of a line, but for what other tools add to theirs."""
    assert set(Line.__struct_fields__) - set(SCHEMAS["log"]["properties"]) == {"prediction_spm", "raw_units"}


@settings(max_examples=100, deadline=None)
@given(runs())
def test_every_line_of_ours_is_valid(run):
    for line in written(run, "jsonl"):
        VALIDATORS["log"].validate(line)


@settings(max_examples=200, deadline=None)
@given(runs())
def test_every_line_of_any_run_as_a_stream_is_valid_and_is_read(run):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.stream.jsonl"
        try:
            lagging.write(run, path)
        except lagging.LaggingError:  # it has no times, or no text
            return
        for line in path.read_text("utf-8").splitlines():
            jsonschema.validate(json.loads(line), SCHEMAS["stream"])
        assert lagging.validate(path).ok


@pytest.mark.parametrize("count", [1e11, float("nan"), 2.5])
def test_counts_that_no_stream_may_have_are_named_and_left_out(count, tmp_path):
    run = lagging.Run.from_delays(
        [[100]], source_length=[300], erased=[count], revisions=[count], prediction=["it"], unit="ms"
    )
    lost = lagging.write(run, tmp_path / "a.stream.jsonl")
    for line in (tmp_path / "a.stream.jsonl").read_text("utf-8").splitlines():
        jsonschema.validate(json.loads(line), SCHEMAS["stream"])
    back = lagging.read(tmp_path / "a.stream.jsonl")
    if count == 2.5:
        assert (back.erased.tolist(), back.revisions.tolist()) == ([2.5], [2.5])
    else:
        assert {"erased", "revisions"} <= set(" ".join(lost).split())


def test_every_line_of_a_stream_is_valid():
    run = lagging.Run.from_delays(
        [[100, 250.5], []],
        source_length=[300, 10],
        elapsed=[[120, 300], []],
        first_times=[[100, 200], []],
        erased=[2, 0],
        revisions=[1, 0],
        prediction=["it is", ""],
        unit="ms",
    )
    lines = written(run, "stream")
    assert len(lines) == 4
    for line in lines:
        VALIDATORS["stream"].validate(line)


LOG = {"index": 0, "delays": [1, 2], "source_length": 3, "prediction": "a b"}
EVENT = {"time": 1, "text": "a", "mode": "append"}


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("log", {"delays": "1 2"}),
        ("log", {"delays": [1, "2"]}),
        ("log", {"source_length": None}),
        ("log", {"source_length": -1}),
        ("log", {"source_length": "3"}),
        ("log", {"prediction": 7}),
        ("log", {"reference": ["x"]}),
        ("log", {"index": 1.5}),
        ("log", {"unit": "s"}),
        ("log", {"erased": -1}),
        ("log", {"first_times": "x"}),
        ("log", {"steps": [-1, 0]}),
        ("stream", {"time": None}),
        ("stream", {"time": -1}),
        ("stream", {"time": "1"}),
        ("stream", {"time": True}),
        ("stream", {"time": 1e12}),
        ("stream", {"audio": -1}),
        ("stream", {"text": None}),
        ("stream", {"text": 7}),
        ("stream", {"mode": "add"}),
        ("stream", {"mode": None}),
        ("stream", {"final": "yes"}),
        ("stream", {"recording": 7}),
        ("stream", {"first": -1}),
    ],
)
def test_what_the_readers_refuse_is_not_valid(name, changes, tmp_path):
    good = LOG if name == "log" else EVENT
    path = tmp_path / f"base.{'jsonl' if name == 'log' else 'stream.jsonl'}"
    assert is_valid(good, name)
    path.write_text(json.dumps(good) + "\n", "utf-8")
    assert lagging.validate(path).ok
    assert not is_valid(good | changes, name)
    path.write_text(json.dumps(good | changes) + "\n", "utf-8")
    try:
        assert not lagging.validate(path).ok
    except lagging.UsageError:  # a unit that is none
        assert "unit" in changes
