# SPDX-License-Identifier: Apache-2.0
"""`lagging watch`: in a pipe, on wide and narrow terminals, while a log grows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[2] / "docs" / "data"
LIVE, CAPTIONS = DATA / "live.stream.jsonl", DATA / "captions.txt"


def test_in_a_pipe_it_prints_once(run):
    done = run("watch", LIVE, CAPTIONS)
    assert done.code == 0
    head, live, captions, _, *notes = done.out.splitlines()
    assert head.replace(" s ", " ").split() == [
        "system",
        "words",
        "now",
        "p50",
        "p90",
        "p99",
        "backlog",
        "erasure",
        "course",
    ]
    assert live.split()[:8] == ["live", "62", "0.828", "0.770", "–", "–", "0.000", "0.177"]
    assert captions.split()[:3] == ["captions", "6", "1.183"]
    assert notes[-1] == "–: too few words; needed: p50 11, p90 64, p99 662"


def test_a_folder_shows_its_logs_one_by_one(run, tmp_path):
    for name in ("a.jsonl", "b.stream.jsonl"):
        (tmp_path / name).write_bytes(LIVE.read_bytes())
    (tmp_path / "notes.md").write_text("no log")
    lines = run("watch", tmp_path).out.splitlines()
    assert [line.split()[0] for line in lines[1:3]] == ["a", "b"]


def test_logs_of_one_name_are_told_apart_by_their_folders(run, tmp_path):
    for folder in ("step_0.1", "step_0.2"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "updates.jsonl").write_bytes(LIVE.read_bytes())
    done = run("watch", tmp_path / "step_0.1", tmp_path / "step_0.2", CAPTIONS)
    assert [line.split()[0] for line in done.out.splitlines()[1:4]] == ["0.1", "0.2", "captions"]
    assert "0.2: 6 utterances" in done.out


def test_lines_of_another_dialect_are_not_read(run, tmp_path):
    other = '{"emission_time": 2.2, "text": " And", "is_final": false}\n'
    (tmp_path / "a.jsonl").write_text(LIVE.read_text() + other)
    done = run("watch", tmp_path / "a.jsonl")
    assert "a: 6 utterances, 1 line not read" in done.out


def test_what_is_no_stream_is_refused(run, tmp_path):
    (tmp_path / "a.txt").write_text("no stream\n")
    done = run("watch", tmp_path / "a.txt")
    assert done.code == 2
    assert "is no event stream" in done.err
    assert run("watch", tmp_path / "b.txt").code == 2
    (tmp_path / "empty.txt").write_text("")
    done = run("watch", tmp_path / "empty.txt")
    assert (done.code, done.out, done.err) == (0, "", "nothing has been written yet\n")
    assert run("watch", LIVE, "--every", "0").code == 2


def test_lines_that_cannot_be_read_are_counted(run, tmp_path):
    (tmp_path / "a.jsonl").write_text(LIVE.read_text() + '{"time": 1}\nwhat\n')
    assert "a: 6 utterances, 2 lines not read" in run("watch", tmp_path / "a.jsonl").out


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width):
    import fcntl
    import pty
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, width, 0, 0))
    command = [sys.executable, "-m", "lagging", "watch", str(LIVE), "--once"]
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"NO_COLOR": "1"}
    process = subprocess.Popen(command, stdout=theirs, env=environment)
    process.wait()
    os.close(theirs)
    out = b""
    try:
        while block := os.read(ours, 65536):
            out += block
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    lines = out.decode().splitlines()
    assert process.returncode == 0
    assert max(map(len, lines)) <= width
    assert any("0.828" in line for line in lines)


def test_a_log_that_grows_is_shown_again(tmp_path):
    log = tmp_path / "live.stream.jsonl"
    first, *rest = LIVE.read_text().splitlines(keepends=True)
    log.write_text(first)
    process = subprocess.Popen(
        [sys.executable, "-m", "lagging", "watch", str(log), "--every", "0.05"], stdout=subprocess.PIPE, text=True
    )
    shown = []
    try:
        for line in process.stdout:
            if line.startswith("live  ") or line.startswith("live "):
                shown.append(int(line.split()[1]))
                if len(shown) == 1:
                    with log.open("a") as file:
                        file.writelines(rest)
            if shown and shown[-1] == 62:
                break
    finally:
        process.terminate()
        process.wait()
        process.stdout.close()
    assert (shown[0], shown[-1]) == (1, 62)
