# SPDX-License-Identifier: Apache-2.0
"""Ids that occur again and again: every one is counted, and as many as there are lines take no longer than others."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lagging.formats.ids import _Index

GUARD = 120
"""Seconds after which something hangs; it takes one or two."""

LINES = 60_000


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--repair", "last"], ["--on-error", "quarantine"]], ids=" ".join)
@pytest.mark.parametrize("name", [7, "seven"])
def test_a_log_of_one_id_does_not_hang(name: int | str, more: list[str], tmp_path: Path) -> None:
    line = json.dumps({"index": name, "prediction": "a b", "delays": [1, 2], "source_length": 2}) + "\n"
    (tmp_path / "log.jsonl").write_text(line * LINES)
    command = [sys.executable, "-m", "lagging", "score", "log.jsonl", "-m", "AL", *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD, cwd=tmp_path)
    assert done.returncode == (0 if more else 1), done.stderr
    said = done.stderr + done.stdout
    assert str(LINES - 1) in said or f"{LINES - 2} more with the same fault" in said


HASHES = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2)), max_size=12)


@given(st.lists(HASHES, max_size=6), HASHES)
def test_the_index_finds_the_first_of_each(parts: list[list[tuple[int, int]]], wanted: list[tuple[int, int]]) -> None:
    index, first, start = _Index(), dict[tuple[int, int], int](), 0
    for part in parts:
        index.add(np.array([k for k, _ in part], np.uint64), np.array([c for _, c in part], np.uint32), start)
        for pair in part:
            first.setdefault(pair, start)
            start += 1
    keys, checks = np.array([k for k, _ in wanted], np.uint64), np.array([c for _, c in wanted], np.uint32)
    assert index.find(keys, checks) == [(row, first[pair]) for row, pair in enumerate(wanted) if pair in first]
