# SPDX-License-Identifier: Apache-2.0
"""Remedies: keywords in Python, options on the command line."""

from pathlib import Path

import pytest

import lagging
from lagging.cli import main

BROKEN = Path(__file__).parents[2] / "examples" / "data" / "broken"


def test_messages_in_python_name_keywords() -> None:
    with pytest.raises(lagging.DataError) as error:
        lagging.read(BROKEN)
    message = str(error.value)
    assert "fix: `repair=['monotone']` clamps them" in message
    assert "`level='word'|'char'|'token'`" in message
    assert "`lagging.validate(path)` lists them all" in message
    assert "--" not in message
    run = lagging.read(BROKEN.parent / "speech", repair=["monotone"])  # the remedy is one
    assert len(run) > 0


def test_the_command_line_names_options(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["score", str(BROKEN)])
    assert "`--repair monotone` clamps them" in capsys.readouterr().err
    with pytest.raises(lagging.DataError, match=r"repair=\['monotone'\]"):
        lagging.read(BROKEN)
