# SPDX-License-Identifier: Apache-2.0
"""What is said when a run has ended, and what is not begun at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from running import lines, ran

AGENT = """
class Agent:
    def policy(self, state):
        if state.sentence % 3 == 1:
            raise ValueError("no such word")
        if state.sentence % 3 == 2:
            return None
        return state.source[len(state.target)] if len(state.target) < len(state.source) else None
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "agent.py").write_text(AGENT)
    (tmp_path / "source.txt").write_text("a b\n" * 6)
    return tmp_path


def test_what_an_agent_raised_is_told_with_its_place_and_a_remedy(place: Path) -> None:
    done = ran(place / "agent.py", place / "source.txt", place / "out")
    assert done.returncode == 1
    assert (
        "failed: 2 sentences (1, 4), sentence 1: the agent raised: ValueError: no such word (agent.py:5)" in done.stderr
    )
    assert "fix: its traceback is in the log" in done.stderr
    assert "failed: 2 sentences (2, 5), sentence 2: the agent wrote nothing" in done.stderr


def test_who_is_strict_is_so_when_the_run_goes_on_too_and_who_is_quiet_hears_of_failures(place: Path) -> None:
    for _ in range(2):
        done = ran(place / "agent.py", place / "source.txt", place / "out", "--strict", "-q", "--no-scores")
        assert (done.returncode, done.stderr) == (1, "error: 1 of 6 sentences failed\n")
        assert len(lines(place / "out")) == 2


def test_where_every_sentence_failed_there_are_no_scores(place: Path) -> None:
    (place / "agent.py").write_text("class Agent:\n    def policy(self, state):\n        return 3\n")
    done = ran(place / "agent.py", place / "source.txt", place / "out")
    assert (done.returncode, done.stdout) == (1, "")
    assert "every sentence failed: there are no scores" in done.stderr


def test_metrics_that_cannot_be_had_are_refused_before_the_first_sentence(place: Path) -> None:
    done = ran(place / "agent.py", place / "source.txt", place / "out", "-m", "AL,AL_CA")
    assert done.returncode == 1
    assert "elapsed time in milliseconds" in done.stderr
    assert not (place / "out" / "run.json").exists()
