# SPDX-License-Identifier: Apache-2.0
"""What people see on a terminal: the table first, notes once, signatures once, a window of a long segment."""

import json
import re
from pathlib import Path

import pytest

import lagging
from lagging.cli.messages import Messages, print_message
from lagging.errors import Note
from lagging.render import render
from lagging.render.comparison import render_comparison


def printed(capsys, messages: Messages) -> list[str]:
    messages.flush()
    return capsys.readouterr().err.splitlines()


def test_notes_are_grouped_over_systems_and_counted(capsys) -> None:
    messages = Messages()
    for number, system in enumerate("abcde"):
        beyond = Note("beyond the source", "delays larger than source_length", 41 + number, normal="in whole talks")
        messages.print_notes([beyond, Note("empty hypothesis", "nothing was written", 2 * number + 1)], system)
    messages.print_notes([Note("index gap", "7 is missing")], "c")
    assert printed(capsys, messages) == [
        "note: c: index gap: 7 is missing",
        "note: 5 systems: empty hypothesis: 1–9 segments: nothing was written",
        "5 systems: 41–45 segments: delays larger than source_length (normal in whole talks); -v lists them",
    ]
    assert printed(capsys, messages) == []


def test_verbose_lists_every_system(capsys) -> None:
    messages = Messages(verbose=True)
    for system in "ab":
        messages.print_notes([Note("beyond the source", "larger", 2, ("x", "y"), normal="in whole talks")], system)
    assert printed(capsys, messages) == [
        f"{system}: beyond the source: 2 segments (x, y): larger (normal in whole talks)" for system in "ab"
    ]


def test_quiet_hides_the_harmless_only(capsys) -> None:
    messages = Messages(quiet=True)
    messages.print_notes([Note("blank line", "skipped", 2), Note("SCRIPT WITHOUT SPACES", "BLEU means little")], "a")
    messages.print_notes([Note("suspicious unit", "are they seconds?", 3)], "a")
    messages.print_doubt("AL of a and b cannot be compared: level")
    messages.print_later("a: SimulEval log")
    assert printed(capsys, messages) == [
        "note: AL of a and b cannot be compared: level",
        "note: a: SCRIPT WITHOUT SPACES: BLEU means little",
        "note: a: suspicious unit: 3 segments: are they seconds?",
    ]


def test_the_table_comes_first(logs, monkeypatch) -> None:
    import click

    from lagging.cli import main

    order: list[bool] = []
    echo = click.echo
    monkeypatch.setattr(click, "echo", lambda *args, err=False, **rest: order.append(err) or echo(*args, err=err))
    with pytest.raises(SystemExit):
        main(["score", "wait", "cheat"])
    assert order[0] is False
    assert order[1:]
    assert all(order[1:])


def test_messages_are_printed_before_an_error(run, logs) -> None:
    code, out, err = run("score", "wait", "--fail-if", "new:AL>2")
    assert (code, out) == (2, "")
    assert "wait: SimulEval log" in err
    assert err.splitlines()[-1].startswith("error: the gate new:AL>2")


def test_signatures_can_be_left_out_of_the_screen_but_not_of_files(run, logs) -> None:
    for command in (("score", "wait"), ("compare", "wait", "cheat"), ("curve", "a=wait", "b=cheat")):
        assert "|v:0.2.0" in run(*command).out
        assert "|v:0.2.0" not in run(*command, "--no-signatures").out
        for kept in (("-f", "json"), ("-f", "latex"), ("-o", "scores.txt")):
            code, _, err = run(*command, "--no-signatures", *kept)
            assert code == 2
            assert f"{' '.join(kept)} keeps the signatures" in err


@pytest.fixture
def talk(tmp_path: Path, monkeypatch) -> str:
    monkeypatch.chdir(tmp_path)
    delays = [1000.0 * t + (9000 if 200 <= t < 210 else 0) for t in range(300)]
    delays = [max(delays[: t + 1]) for t in range(300)]
    line = {
        "index": 0,
        "delays": delays,
        "elapsed": delays,
        "source_length": 300_000.0,
        "prediction": " ".join(f"w{t}" for t in range(300)),
        "reference": "r " * 300,
        "source": ["talk.wav", "x"],
    }
    Path("talk.log").write_text(json.dumps(line) + "\n")
    return "talk.log"


def test_a_long_segment_is_shown_around_its_worst_lag(run, talk) -> None:
    out = run("inspect", talk, "-q", "--rows", "20", "--width", "80").out
    assert "\n201  w200" in out
    assert out.count("●") == 21  # with the legend
    assert "tokens 191–210 of 300; the worst lag, 9.00 s, is token 201, at 209.00 s of talk.wav" in out
    assert "--at 220.0s shows the next ones, --rows N more of them, --all every token" in out
    assert all(len(line) <= 80 for line in out.splitlines() if "●" in line)


def test_one_can_move_in_a_long_segment(run, talk) -> None:
    for at in ("50s", "50000ms", "0:50", "50"):
        out = run("inspect", talk, "-q", "--rows", "5", "--at", at).out
        assert "tokens 49–53 of 300" in out
    assert run("inspect", talk, "-q", "--all").out.count("●") == 301
    assert "--at takes a number" in run("inspect", talk, "--at", "soon").err


def test_score_and_compare_say_what_is_degenerate(run, logs) -> None:
    Path("offline.rw").write_text("RRRRRWWWWW\nRRRRWWWW\n")
    Path("wait.rw").write_text("RRWRWRWRWW\nRRWRWRWW\n")
    out = run("score", "wait.rw", "offline.rw", "--audit", "-m", "DAL", "-q", "--no-signatures").out
    assert "\nwait: sound\noffline: degenerate: 100 % of the segments are written after" in out
    out = run("score", "offline.rw", "--audit", "-m", "DAL", "-v", "--no-signatures").out
    assert "(HiddenShare 0, Offline 1, SWF 0)" in out
    out = run("compare", "wait.rw", "offline.rw", "-m", "DAL", "-q", "--resamples", 100).out
    assert "\noffline: degenerate: " in out
    assert "wait: sound" not in out
    assert "--audit judges whole systems" in run("score", "wait.rw", "--audit", "--by", "id").err


def test_a_metric_of_ones_own(run, logs) -> None:
    Path("mine.py").write_text(
        'import lagging\n\n\n@lagging.register("FIRST_SHARE", unit="ratio", per_sentence=True)\n'
        "def first_share(delays, source_length, *, power=1.0):\n    return (delays[0] / source_length) ** power\n"
    )
    out = run("score", "--plugin", "mine.py", "wait", "-m", "FIRST_SHARE,FIRST_SHARE(power=2)", "-f", "json").out
    one, two = json.loads(out)["scores"]
    assert one["score"] == pytest.approx((4 / 5 + 3 / 4) / 2)
    assert two["score"] == pytest.approx((16 / 25 + 9 / 16) / 2)
    assert one["undefined"] == 1
    Path("bad.py").write_text("1 / 0\n")
    code, _, err = run("score", "--plugin", "bad.py", "wait")
    assert code == 2
    assert "bad.py cannot be run: ZeroDivisionError" in err


def test_messages_are_broken_between_words_on_a_terminal(capsys, monkeypatch) -> None:
    text = "note: five systems: the hypothesis ends in it: stripped with its delay"
    print_message(text)
    assert capsys.readouterr().err == f"{text}\n"
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "40")
    print_message(text)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["note: five systems: the hypothesis ends", "  in it: stripped with its delay"]


def test_systems_on_a_narrow_terminal_stay_below_each_other() -> None:
    runs = [lagging.policies.wait_k(k).run(source_lengths=[9], target_lengths=[9], name=f"wait-{k}") for k in (1, 3)]
    scores = [lagging.score(run, ["AP", "AL", "LAAL", "DAL"]) for run in runs]
    assert render(scores, width=36, signed=False).splitlines() == [
        "system   AP ↓  AL ↓ tokens",
        "wait-1  0.556        1.000",
        "wait-3  0.741        3.000",
        "",
        "system  LAAL ↓ tokens  DAL ↓ tokens",
        "wait-1          1.000         1.000",
        "wait-3          3.000         3.000",
        "",
        "system  n",
        "wait-1  1",
        "wait-3  1",
    ]


def test_p_values_read_as_a_sentence_on_a_narrow_terminal() -> None:
    runs = {
        f"a-rather-long-name-{k}": lagging.policies.wait_k(k).run(source_lengths=[9] * 40, target_lengths=[9] * 40)
        for k in (1, 3)
    }
    text = render_comparison(lagging.compare(runs, ["DAL"]), width=60)
    assert "p < 0.0001" in text
    assert "= <" not in text


def test_a_segment_of_a_talk_says_where_it_lies(run, logs) -> None:
    docs = Path(__file__).parents[2] / "docs" / "data"
    cut = ("--segmentation", docs / "talks.yaml", "--reference", docs / "talks.de")
    done = run("inspect", docs / "talks.log", *cut, "-i", "3", "--no-signatures", "-q")
    assert done.code == 0
    assert re.search(r"^recording: \S+, \d+\.\d\d–\d+\.\d\d s$", done.out, re.MULTILINE)
    assert "|v:" not in done.out
    assert run("inspect", docs / "talks.log", "--no-signatures", "-o", "x.txt").code == 2


def test_the_card_of_a_metric_of_ones_own(run, tmp_path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text(
        "import lagging\n\n\n@lagging.register('SHARE', per_sentence=True)\n"
        'def share(delays, source_length):\n    """Mean delay as a share of the source."""\n    return 1.0\n'
    )
    done = run("metrics", "SHARE", "--plugin", plugin)
    assert done.out.splitlines()[:3] == [
        "SHARE: Mean delay as a share of the source.",
        "",
        "  time, in the unit of the log (tokens or milliseconds); lower is better",
    ]
