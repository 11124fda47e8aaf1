# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

from lagging.metrics import metric, registered

TIMELINE = """\
segment 0    AP 0.840  AL 2.200  DAL 4.000
|x| = 5 tokens, |y| = 5, d = 1
reference: I saw a black cat

t  read         write  g  g'  lag  lag'     0             |x|=5
1  ich sah ei…  I      4   4    4     4  ◀  ·─────────────●
2               saw    4   5    3     4         ·─────────●───○
3               a      4   6    2     4            ·──────●──────○
4               black  4   7    1     4               ·───●─────────○
5  Katze        cat    5   8    1     4                   ·───●─────────○

lag   █▇▅▃▃
lag'  █████
· ideal (t−1)d   ● written g   ○ if writing takes time g'
◀ the largest lag so far; in DAL every later token has at least this lag
AP|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
AL|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
DAL|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:1|v:0.2.0.dev0
"""


def test_inspect(run, logs) -> None:
    code, out, err = run("inspect", "cheat", "-i", "0", "--width", "74")
    assert code == 0
    assert out == TIMELINE
    assert err.startswith("cheat: SimulEval log")
    assert run("inspect", "cheat", "--width", "74", "-q") == (0, TIMELINE, "")


def test_inspect_the_worst_and_the_empty(run, logs) -> None:
    assert run("inspect", "wait", "--worst", "DAL", "-q").out.startswith("segment 0 ")
    assert run("inspect", "wait", "--worst", "BLEU", "-q").out.startswith("segment 2 ")
    both = run("inspect", "cheat", "--worst", "AL", "--top", "2", "-q").out
    assert both.count("segment ") == 2
    assert run("inspect", "wait", "--empty", "-q").out == "2\n"
    assert run("inspect", "cheat", "--empty", "-q").out == "none\n"
    assert "nothing was written" in run("inspect", "wait", "-i", "2").out


def test_inspect_says_which_segments_there_are(run, logs) -> None:
    code, _, err = run("inspect", "wait", "-i", "99", "-q")
    assert (code, err) == (2, "error: there is no segment 99 in wait; it has 3 segments, from 0 to 2\n")


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_inspect_fits_the_terminal(width: int, run, logs) -> None:
    for log in ("cheat", "speech.log", "paper.rw"):
        out = run("inspect", log, "-q", "--width", width).out
        table = [line for line in out.splitlines() if line[:2].strip().isdigit()]
        assert table
        assert max(map(len, table)) <= width


def test_inspect_speech_and_schedules(run, logs) -> None:
    out = run("inspect", "speech.log", "-q", "--width", "80").out
    assert "|x| = 1.42 s" in out
    assert "source: a.wav" in out
    assert "read" not in out.splitlines()[4]
    assert run("inspect", "paper.rw", "-q", "--width", "80").out.splitlines()[3].split()[:3] == ["t", "g", "g'"]


def test_inspect_output_speech(run, logs) -> None:
    line = {"index": 0, "prediction": "0_pred.wav", "delays": [1000.0, 2500.0], "durations": [700.0, 300.0]}
    line |= {"elapsed": [], "source": "a.wav", "source_length": 3000.0}
    Path("sound.log").write_text(json.dumps(line) + "\n", "utf-8")
    out = run("inspect", "sound.log", "-q", "--width", "80").out
    assert "|x| = 3.00 s, |y| = 2" in out
    assert "0_pred.wav" not in out


def test_inspect_is_safe(run, logs) -> None:
    line = {
        "delays": [1, 2],
        "source_length": 2,
        "prediction": "\x1b[31mx <script>",
        "reference": "a\u2028b",
        "source": "قطة x",
    }
    Path("hostile.jsonl").write_text(json.dumps(line) + "\n")
    out = run("inspect", "hostile.jsonl", "-q", "--width", "100").out
    assert "\x1b" not in out
    assert r"\x1b[31mx" in out
    assert r"a\u2028b" in out
    assert "\u2068قطة\u2069" in out


def test_metrics_lists_all(run) -> None:
    code, out, _ = run("metrics")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [m.name for m in registered()]


@pytest.mark.parametrize("name", [m.name for m in registered()])
def test_cards(name: str, run) -> None:
    code, out, _ = run("metrics", name)
    assert code == 0
    assert out.startswith(f"{name}: ")
    known = metric(name).paper.startswith("not from a paper")
    for part in ("edge cases", "better", *(() if known else ("paper", "@"))):
        assert part in out


def test_metrics_that_do_not_exist(run) -> None:
    assert run("metrics", "DALL") == (2, "", "error: no metric is called 'DALL'. Did you mean DAL?\n")


@pytest.fixture
def texts(logs) -> Path:
    Path("s.txt").write_text("ich sah eine schwarze Katze\nja , so war es\n", "utf-8")
    Path("t.txt").write_text("I saw a black cat\nyes , so it was\n", "utf-8")
    return logs


@pytest.mark.parametrize(
    "policy", ["wait-3", "wait-1-catchup", "antagonist-4", "segment-2", "punctuation", "offline", "prescient"]
)
def test_simulate_writes_what_score_reads(policy: str, run, texts) -> None:
    code, out, err = run("simulate", policy, "--source", "s.txt", "--target", "t.txt", "-o", "out.log")
    assert (code, out) == (0, "")
    assert err == f"{policy}: 2 sentences, 10 target words\n"
    found = json.loads(run("score", "out.log", "-m", "AL,DAL,BLEU", "-f", "json").out)["scores"]
    assert [s["n"] for s in found] == [2, 2, 2]
    assert found[2]["score"] == pytest.approx(100)
    if policy == "wait-3":
        assert [s["score"] for s in found[:2]] == [3, 3]
    if policy == "antagonist-4":
        assert [s["score"] for s in found[:2]] == [2.2, 4]


def test_simulate_to_standard_output_and_other_formats(run, texts) -> None:
    out = run("simulate", "wait-3", "--source", "s.txt", "--target", "t.txt").out
    assert json.loads(out.splitlines()[0])["delays"] == [3, 4, 5, 5, 5]
    code, out, err = run("simulate", "wait-3", "--source", "s.txt", "--target", "t.txt", "-o", "-", "--to", "rw")
    assert (code, out) == (0, "RRRWRWRWWW\n" * 2)
    assert "cannot hold: prediction, reference, source" in err


def test_simulate_refuses(run, texts) -> None:
    Path("short.txt").write_text("one\n")
    Path("latin.txt").write_bytes(b"\xe9\n")
    for args, message in (
        (("wait-x", "s.txt", "t.txt"), "no policy is called 'wait-x'"),
        (("wait-3", "s.txt", "short.txt"), "s.txt has 2 lines, but short.txt has 1"),
        (("wait-3", "none.txt", "t.txt"), "cannot read none.txt"),
        (("wait-3", "latin.txt", "t.txt"), "latin.txt is not UTF-8: byte 1"),
    ):
        code, out, err = run("simulate", args[0], "--source", args[1], "--target", args[2], "-o", "out.log")
        assert (code, out) == (2, "")
        assert message in err
        assert not Path("out.log").exists()


def test_inspect_refuses_a_width_that_no_terminal_has(run, logs) -> None:
    for width in (39, 10_001, 10**23):
        done = run("inspect", "wait", "--width", width)
        assert done.code == 2
        assert "is not in the range 40<=x<=10000" in done.err
