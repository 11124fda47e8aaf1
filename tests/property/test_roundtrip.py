# SPDX-License-Identifier: Apache-2.0
"""A Run written in any format and read again is the same Run, but for what the writer said that it could not hold."""

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from tests.runs import runs, same

import lagging
from lagging.errors import DataError, UsageError
from lagging.formats import FORMATS
from lagging.ragged import Ragged

NOT_IN_A_LOG = ("name", "repaired", "stripped")
"""What a table remembers of a whole Run, and a log of lines does not."""

CANNOT = (
    "not a whole number of source tokens",
    "a simulstream log has",
    "the number of delays differs from the number of target tokens",
    "there is no prediction",
)
"""A format that cannot say when, or what, cannot hold the Run at all, and says so when it is written."""


def back(run, format):
    """The Run after a way through a file, and the columns that were said to be lost."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"base{FORMATS[format].suffixes[0]}"
        said = lagging.write(run, path, format=format)
        lost = [re.match(r"\d* *(\w+)", entry)[1] for entry in said]
        again = lagging.read(path, format=format, unit=run.unit, level=run.level)
    return again, (*lost, *(() if FORMATS[format].remembers else NOT_IN_A_LOG))


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
@given(run=runs())
def test_there_and_back(format, run):
    if format == "simuleval" and run.unit == "token" and (run.elapsed is None or not run.elapsed.values.any()):
        run = replace(run, elapsed=Ragged(np.zeros(len(run.delays.values)), run.delays.offsets))  # as SimulEval writes
    try:
        again, lost = back(run, format)
    except (DataError, UsageError) as error:
        assume(not any(word in str(error) for word in CANNOT))
        raise
    if run.document is None and format in ("sltev", "simulstream"):
        lost += ("document",)  # not lost but found: the name of the file
    same(run, again, lost)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(run=runs())
def test_through_all_that_hold_everything(run):
    everything = ("jsonl", "csv", "tsv", "parquet", "arrow")
    again = run
    for format in (*everything, "jsonl"):
        again, lost = back(again, format)
        assert set(lost) <= set(NOT_IN_A_LOG), format
    same(run, again, NOT_IN_A_LOG)
