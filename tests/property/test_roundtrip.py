# SPDX-License-Identifier: Apache-2.0
"""A Run written in any format and read again is the same Run, but for what the writer said that it could not hold."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lagging
from lagging.data.ragged import Ragged
from lagging.formats import FORMATS
from runs import runs, same, texts

NOT_IN_A_LOG = ("name", "repaired", "stripped")
"""What a table remembers of a whole Run, and a log of lines does not."""

LINES = ("omnisteval", "simuleval", "fairseq", "jsonl")
TABLES = ("csv", "tsv", "parquet", "arrow")
UNTIMED = ("omnisteval", "simuleval", "jsonl", *TABLES, "text")
HOLD = {"jsonl": (), "csv": ("id",), "tsv": ("id",), "parquet": (), "arrow": ()}
"""Formats that hold everything, and what they may say of it all the same."""


def back(run, format):
    """The Run after a way through a file, and the columns that were said to be lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"base{''.join(FORMATS[format].suffixes[:1])}"
        said = lagging.write(run, path, format=format)
        lost = [re.match(r"\d* *(\w+)", entry)[1] for entry in said]
        how = {setting: getattr(run, setting) for setting in ("unit", "level") if setting in lost}
        again = lagging.read(path, format=format, **how)
    return again, (*lost, *(() if FORMATS[format].remembers else NOT_IN_A_LOG))


@pytest.mark.parametrize("format", [*LINES, *TABLES])
@given(run=runs())
def test_there_and_back(format, run):
    if format == "simuleval" and run.unit == "token" and (run.elapsed is None or not run.elapsed.values.any()):
        run = replace(run, elapsed=Ragged(np.zeros(len(run.delays.values)), run.delays.offsets))  # as SimulEval writes
    if run.speech_out and not FORMATS[format].speech:
        with pytest.raises(lagging.UsageError, match="what this Run has written is speech"):
            back(run, format)
        return
    again, lost = back(run, format)
    assert format not in HOLD or set(lost) <= {*HOLD[format], *NOT_IN_A_LOG}
    assert again.speech_out == run.speech_out
    same(run, again, lost)


@given(st.lists(st.lists(st.sampled_from("RW"), max_size=12), min_size=1, max_size=5))
def test_actions(sentences):
    """READ/WRITE strings hold whole source tokens only; simulstream and SLTev have tests of their own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "base.rw"
        path.write_text("".join("".join(actions) + "\n" for actions in sentences), "utf-8")
        run = lagging.read(path, format="rw")
    again, lost = back(run, "rw")
    assert lost == NOT_IN_A_LOG
    same(run, again, lost)


def test_every_format_is_tested():
    elsewhere = ("rw", "s2s", "simulstream", "sltev", "stream", "text", "trajectory")
    assert sorted(UNTIMED) == sorted(name for name, known in FORMATS.items() if known.untimed)
    assert sorted([*LINES, *TABLES, *elsewhere]) == sorted(FORMATS)


@st.composite
def untimed(draw):
    """A Run without times."""
    n = draw(st.integers(1, 5))
    column = st.lists(st.none() | texts | st.just("你好 吗"), min_size=n, max_size=n)
    columns = {name: draw(column) for name in ("reference", "source", "document") if draw(st.booleans())}
    run = lagging.Run.from_texts(draw(column), level=draw(st.sampled_from([None, "word", "char"])), **columns)
    return replace(run, name="base", notes=())


@pytest.mark.parametrize("format", UNTIMED)
@given(run=untimed())
def test_texts_alone_there_and_back(format, run):
    if format == "text":
        lines = ["".join((text or "").replace("\r", "\n").split("\n")) for text in run.prediction]
        run = replace(lagging.Run.from_texts(lines, level=run.level), name="base", notes=())
    again, lost = back(run, format)
    assert format not in HOLD or set(lost) <= {*HOLD[format], *NOT_IN_A_LOG}
    same(run, again, lost)


@settings(max_examples=30)
@given(run=runs())
def test_through_all_that_hold_everything(run):
    again = run
    for format in ("jsonl", *TABLES, "jsonl"):
        again, lost = back(again, format)
        assert set(lost) <= set(NOT_IN_A_LOG), format
    same(run, again, NOT_IN_A_LOG)
