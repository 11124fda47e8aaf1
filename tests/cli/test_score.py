# SPDX-License-Identifier: Apache-2.0
import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

import lagging

SIGNED = "|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|n:2|v:0.2.0.dev0"


def test_table(run, logs) -> None:
    code, out, err = run("score", "wait", "cheat", "-m", "AL,DAL")
    assert code == 0
    assert out == (
        "system  AL ↓ tokens  DAL ↓ tokens  n\n"
        "wait          3.417         3.500  3\n"
        "cheat         1.733         2.667  3\n"
        "\n"
        "wait: AL, DAL undefined in 1 of 3 segments (empty hypothesis 1)\n"
        f"AL{SIGNED}  (wait)\n"
        "  cheat: n:3\n"
        f"DAL{SIGNED}  (wait)\n"
        "  cheat: n:3\n"
    )
    assert err == (
        "wait: SimulEval log, text → text, delays in source tokens (source_length is the number of source tokens), "
        "target counted in words\n"
        "note: wait: empty hypothesis: 1 segment (2): nothing was written, so there is no latency\n"
        "SimulEval's convention gives AL 3.5 tokens (wait), 1.84444 tokens (cheat): --convention simuleval\n"
    )


def test_defaults_include_bleu_where_there_are_references(run, logs) -> None:
    found = json.loads(run("score", "wait", "-f", "json").out)
    assert [s["metric"] for s in found["scores"]] == ["AP", "AL", "LAAL", "DAL", "BLEU"]
    found = json.loads(run("score", "paper.rw", "-f", "json").out)
    assert [s["metric"] for s in found["scores"]] == ["AP", "AL", "LAAL", "DAL"]


def test_json_is_the_contract(run, logs) -> None:
    code, out, _ = run("score", "base=paper.rw", "-m", "AL_CA", "-f", "json")
    assert code == 1  # no elapsed times in this format
    assert out == ""
    found = json.loads(run("score", "base=paper.rw", "-m", "DAL", "-f", "json").out)
    assert found == {
        "schema": 1,
        "scores": [
            {
                "system": "base",
                "metric": "DAL",
                "score": 4.0,
                "low": None,
                "high": None,
                "unit": "token",
                "n": 2,
                "undefined": 0,
                "signature": f"DAL{SIGNED}".replace("word", "token"),
            }
        ],
    }


def test_milliseconds_are_numbers_in_json_and_seconds_in_tables(run, logs) -> None:
    (score,) = json.loads(run("score", "speech.log", "-m", "AL_CA", "-f", "json").out)["scores"]
    assert (score["metric"], score["unit"], score["score"]) == ("AL(clock=elapsed)", "ms", (1100 + 1600 - 710) / 2)
    assert "AL ↓ s" in run("score", "speech.log", "-m", "AL").out


def test_undefined_is_null(run, logs) -> None:
    Path("empty.jsonl").write_text('{"delays": [], "source_length": 3}\n')
    (score,) = json.loads(run("score", "empty.jsonl", "-m", "DAL", "-f", "json").out)["scores"]
    assert (score["score"], score["n"], score["undefined"]) == (None, 1, 1)
    assert "–" in run("score", "empty.jsonl", "-m", "DAL").out
    assert "& -- & 1 \\\\" in run("score", "empty.jsonl", "-m", "DAL", "-f", "latex").out


@pytest.mark.parametrize("form", ["table", "json", "tsv", "markdown", "latex"])
def test_every_format_carries_the_signature(form: str, run, logs) -> None:
    code, out, _ = run("score", "wait", "-m", "AL,DAL", "-f", form)
    assert code == 0
    assert f"AL{SIGNED}" in out
    assert f"DAL{SIGNED}" in out


def test_tsv(run, logs) -> None:
    lines = run("score", "wait", "-m", "AL", "-f", "tsv").out.splitlines()
    assert lines[0].split("\t") == ["system", "metric", "score", "low", "high", "unit", "n", "undefined", "signature"]
    assert lines[1].split("\t") == ["wait", "AL", "3.4166666666666665", "", "", "token", "3", "1", f"AL{SIGNED}"]


def test_markdown_and_latex_mark_the_best_and_escape(run, logs) -> None:
    out = run("score", "a|b_%<x>=wait", "cheat", "-m", "AL,BLEU", "-f", "markdown").out
    assert r"| a\|b\_%\<x\> |" in out
    assert "**1.733**" in out
    out = run("score", "a|b_%<x>=wait", "cheat", "-m", "AL,BLEU", "-f", "latex").out
    assert r"a\textbar{}b\_\%\textless{}x\textgreater{} &" in out
    assert r"\textbf{1.733}" in out
    assert r"AL $\downarrow$ (tokens)" in out
    negative = "neg.jsonl"
    Path(negative).write_text('{"delays": [0, 0, 1], "source_length": 9}\n')
    assert "$-" in run("score", negative, "-m", "AL", "-f", "latex").out


def test_systems_in_different_units_share_a_table(run, logs) -> None:
    _, out, err = run("score", "speech.log", "paper.rw", "-m", "DAL")
    assert out.splitlines()[:3] == ["system         DAL ↓  n", "speech       1.000 s  1", "paper   4.000 tokens  2"]
    assert "note: DAL of speech and paper cannot be compared: level, unit" in err


def test_systems_with_the_same_name_are_called_by_their_paths(run, logs) -> None:
    found = json.loads(run("score", "wait", "wait/instances.log", "-m", "AL", "-f", "json").out)
    assert [s["system"] for s in found["scores"]] == ["wait", "wait/instances.log"]


def test_names(run, logs) -> None:
    Path("a=b").mkdir()
    (Path("a=b") / "instances.log").write_text(Path("wait/instances.log").read_text("utf-8"))
    names = [s["system"] for s in json.loads(run("score", "a=b", "x=a=b", "-m", "AL", "-f", "json").out)["scores"]]
    assert names == ["a=b", "x"]
    code, _, err = run("score", "x=wait", "x=cheat")
    assert (code, err) == (2, "error: two systems are called 'x'\n")
    code, _, err = run("score", "nothing=here")
    assert (code, err) == (2, "error: no such file or directory: here (of nothing=here)\n")


def test_convention(run, logs) -> None:
    found = json.loads(run("score", "wait", "-m", "AL", "--convention", "simuleval", "-f", "json").out)["scores"][0]
    assert found["metric"] == "AL"
    assert "length:reference" in found["signature"]
    assert "count:simuleval" in found["signature"]
    assert found["score"] == 3.5


def test_like_repeats_a_score(run, logs) -> None:
    (first,) = json.loads(run("score", "wait", "-m", "AL", "--convention", "simuleval", "-f", "json").out)["scores"]
    code, out, err = run("score", "wait", "--like", first["signature"], "-f", "json")
    (again,) = json.loads(out)["scores"]
    assert code == 0
    assert (again["score"], again["signature"]) == (first["score"], first["signature"])
    assert "signature given" not in err
    _, _, err = run("score", "cheat", "--like", first["signature"].replace("n:2", "n:9"))
    assert "note: cheat: AL has n:3, the signature given has 9" in err


def test_like_says_what_it_cannot_do(run, logs) -> None:
    assert run("score", "wait", "--like", "AL", "-q").code == 2
    assert "leave -m out" in run("score", "wait", "--like", f"AL{SIGNED}", "-m", "DAL").err
    assert "cannot repeat seg:hand" in run("score", "wait", "--like", f"AL{SIGNED}".replace("seg:none", "seg:hand")).err
    both = ("--like", f"AL{SIGNED}", "--like", f"DAL{SIGNED}".replace("token", "ms"))
    assert "differ in unit" in run("score", "wait", *both).err
    both = ("--like", f"AL{SIGNED}", "--like", f"DAL{SIGNED}".replace("|n:2", "|eos:kept|n:2"))
    assert "one at a time" in run("score", "wait", *both).err
    both = ("--like", f"AL{SIGNED}", "--like", f"DAL{SIGNED}")
    assert run("score", "wait", *both, "-q").out.count("\n") > 4


def test_segment_scores(run, logs) -> None:
    code, _, _ = run("score", "wait", "cheat", "-m", "AL,BLEU", "--segment-scores", "each.tsv")
    lines = Path("each.tsv").read_text("utf-8").splitlines()
    assert code == 0
    assert lines[0].startswith("# AL|unit:token|")
    head = next(i for i, line in enumerate(lines) if not line.startswith("#"))
    assert lines[head].split("\t") == ["system", "id", "AL", "BLEU"]
    assert [line.split("\t")[:2] for line in lines[head + 1 :]] == [
        [s, str(i)] for s in ("wait", "cheat") for i in range(3)
    ]
    assert lines[head + 3].split("\t")[2] == ""  # undefined


def test_output_to_a_file(run, logs) -> None:
    code, out, _ = run("score", "wait", "-m", "AL", "-o", "scores.txt")
    assert (code, out) == (0, "")
    assert f"AL{SIGNED}" in Path("scores.txt").read_text("utf-8")


def test_quiet_says_nothing_but_the_result(run, logs) -> None:
    assert run("score", "wait", "cheat", "-q").err == ""


def test_repairs_are_in_the_signature(run, logs) -> None:
    Path("bad.jsonl").write_text('{"delays": [2, 1], "source_length": 2}\n{"delays": [-1, 1], "source_length": 2}\n')
    assert run("score", "bad.jsonl").code == 1
    out = run("score", "bad.jsonl", "--repair", "monotone,clip", "-m", "DAL").out
    assert "|repair:clip+monotone|" in out
    signature = out.splitlines()[-1]
    assert run("score", "bad.jsonl", "--like", signature).out.splitlines()[-1] == signature


def test_wrong_names_are_told_before_a_log_is_read(run, logs) -> None:
    code, out, err = run("score", "missing.log", "-m", "DALL")
    assert (code, out, err) == (2, "", "error: no metric is called 'DALL'. Did you mean DAL?\n")


def test_usage(run) -> None:
    assert run("score").code == 2
    assert run("scor", "x").err.endswith("there is no command 'scor'. Did you mean score?\n")
    assert run("--version").out == f"lagging {lagging.__version__}\n"
    for name in ("score", "inspect", "validate", "convert", "metrics", "simulate"):
        code, out, _ = run(name, "-h")
        assert code == 0
        assert "Usage: lagging" in out


def test_debug_gives_a_traceback(logs) -> None:
    with pytest.raises(lagging.DataError):
        __import__("lagging.cli").cli.main(["score", str(_bad(logs)), "--debug"])


def _bad(logs: Path) -> Path:
    path = logs / "bad.jsonl"
    path.write_text('{"delays": [2, 1], "source_length": 2}\n')
    return path


def test_interrupted(run, logs, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("lagging.scoring.log.scan_log", stop)
    code, _, err = run("score", "wait")
    assert code == 130
    assert err.strip().endswith("interrupted")


def test_a_reader_that_has_seen_enough_is_no_error(logs) -> None:
    command = f"{sys.executable} -m lagging metrics DAL AL AP LAAL YAAL | head -n 1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
    assert done.stdout.splitlines()[1] == "0"
    assert done.stderr == ""


def in_terminal(columns: int, *args: str, **env: str) -> str:
    """What a command shows in a terminal of so many columns."""
    master, slave = pty.openpty()
    subprocess.run(["stty", "cols", str(columns), "rows", "50"], stdin=slave, check=True)
    environment = {**os.environ, "TERM": "xterm", **env}
    environment.pop("COLUMNS", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "lagging", *args], stdout=slave, stderr=slave, stdin=slave, env=environment
    )
    os.close(slave)
    shown = b""
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    process.wait()
    os.close(master)
    return shown.decode().replace("\r\n", "\n")


def test_terminal_widths(logs) -> None:
    args = ("score", "-q", "wait", "cheat", "-m", "AL,DAL,AP,CW,LAAL")
    wide = in_terminal(200, *args)
    assert "\x1b[1m" in wide
    plain = re.sub(r"\x1b\[\d*m", "", wide)
    assert plain.splitlines()[0].split("  ")[0] == "system"
    two = re.sub(r"\x1b\[\d*m", "", in_terminal(60, *args)).splitlines()
    assert two[0].split() == ["system", "AL", "↓", "DAL", "↓", "AP", "↓", "CW", "↓", "LAAL", "↓", "n"]
    assert two[1].split() == ["tokens"] * 4
    tall = in_terminal(40, *args, NO_COLOR="1").splitlines()
    assert "\x1b" not in "".join(tall)
    assert max(map(len, tall[: tall.index("") * 2])) <= 40
    assert tall[0].split() == ["system", "AL", "↓", "tokens", "DAL", "↓", "tokens", "AP", "↓"]
    assert tall[1].split()[:2] == ["wait", "3.417"]
    assert tall[tall.index("") + 1].split()[:2] == ["system", "CW"]


def test_progress_only_on_a_terminal_and_only_if_it_takes_long(logs, monkeypatch) -> None:
    from lagging.cli import messages

    monkeypatch.setattr(messages.sys.stderr, "isatty", lambda: True, raising=False)
    clock = iter([0.0, 0.5, *[2.0] * 1000])
    monkeypatch.setattr(messages.time, "monotonic", lambda: next(clock))
    with messages.progress_bar("x", "wait", messages.Messages()) as advance:
        advance(10)
        advance(10)
        advance(10)
    with messages.progress_bar("x", "wait", messages.Messages(quiet=True)) as advance:
        assert advance is None


def test_systems_on_other_sentences_are_not_put_side_by_side_in_silence(run, logs) -> None:
    lines = Path("wait/instances.log").read_text("utf-8").splitlines(keepends=True)
    Path("head.log").write_text("".join(lines[:2]), "utf-8")
    _, out, err = run("score", "wait", "head.log", "-m", "AL", "-f", "markdown")
    assert "note: wait (3 segments) and head (2 segments) share 2: their scores are not about the same sentences" in err
    assert "**" not in out


def test_peers_are_told_only_where_they_differ(run, logs) -> None:
    Path("same.jsonl").write_text('{"delays": [1, 2], "source_length": 2, "prediction": "a b", "reference": "a b"}\n')
    assert "SimulEval's convention" not in run("score", "same.jsonl", "-m", "AL").err
    many = [f"{name}=wait" for name in "abcdef"]
    assert "…" in run("score", *many, "-m", "AL").err


def test_mistakes_on_the_command_line(run, logs) -> None:
    assert "would both write" in run("score", "wait", "-o", "x.tsv", "--segment-scores", "x.tsv").err
    assert "without a metric" in run("score", "wait", "-m", "").err
    assert "only once" in run("score", "a=-", "b=-").err
    assert "leave --convention out" in run("score", "wait", "--like", f"AL{SIGNED}", "--convention", "simuleval").err
    assert run("inspect", "wait", "--worst", "FOO").code == 2
    assert run("score", "x" * 5000).code == 2


def test_the_log_knows_its_unit_better_than_a_signature(run, logs) -> None:
    signature = f"AL{SIGNED}".replace("unit:token", "unit:ms")
    _, out, err = run("score", "wait", "--like", signature)
    assert "AL ↓ tokens" in out
    assert "AL has unit:token, the signature given has ms" in err


def test_errors_name_the_log_and_the_metric(run, logs) -> None:
    assert run("score", "paper.rw", "-m", "BLEU").err.splitlines()[-1] == (
        "error: BLEU of paper.rw: there are no predictions whose text could be judged"
    )
    assert (
        "error: AL(clock=elapsed) of wait/instances.log: the source is counted in tokens"
        in run("score", "wait", "-m", "AL_CA").err
    )


def test_verbose_names_what_is_undefined(run, logs) -> None:
    assert "wait: AL is undefined (empty hypothesis): 2" in run("score", "wait", "-m", "AL", "-v").err


def test_a_full_disk_is_an_error_and_not_a_traceback(logs) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m lagging metrics DAL > /dev/full"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device\n"


def test_repairs_are_told_by_every_command(run, logs) -> None:
    Path("bad.jsonl").write_text('{"delays": [2, 1], "source_length": 2}\n')
    assert "repaired: 1 segment: by --repair monotone" in run("inspect", "bad.jsonl", "--repair", "monotone").err
    assert "will not say so" in run("convert", "bad.jsonl", "-o", "b.jsonl", "--repair", "monotone").err


def test_a_log_is_not_written_over(run, logs) -> None:
    for option in ("-o", "--segment-scores"):
        code, _, err = run("score", "wait", option, "wait/instances.log")
        assert code == 2
        assert "would be written over" in err


def test_times_of_single_steps_may_decrease_whatever_is_asked_for(run, logs) -> None:
    chunks = [(1.0, 2.0, ["▁a"]), (1.5, 0.1, ["▁b"])]
    lines = [{"id": 0, "metadata": {"wav_name": "a.wav"}}]
    for audio, compute, tokens in chunks:
        step = {"total_audio_processed": audio, "computation_time": compute, "generated_tokens": tokens}
        lines.append({"id": 0, **step, "deleted_tokens": []})
    Path("s.metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    alone = run("score", "s.metrics.jsonl", "-q", "-f", "json", "-m", "AL_CA")
    beside = run("score", "s.metrics.jsonl", "-q", "-f", "json", "-m", "AL_CA,RTF")
    assert alone.code == beside.code == 0
    assert json.loads(alone.out)["scores"][0] == json.loads(beside.out)["scores"][0]


def test_several_files_read_as_one_system_are_announced(run, logs) -> None:
    for name in "ab":
        Path(f"{name}.rw").write_text("RRWW\n", "utf-8")
    assert "several files: 2 files are read as the log of one system" in run("score", "[ab].rw", "-m", "AL").err


@pytest.mark.parametrize("method", ["bca", "poisson"])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("bs:1000000000000", "the resamples of an interval must be from 2 to 1000000, but are 1000000000000"),
        ("bs:0", "the resamples of an interval must be from 2 to 1000000, but are 0"),
        ("ci:100", "the confidence of an interval must be between 0 and 1"),
        ("ci:nan", "the confidence of an interval must be between 0 and 1"),
    ],
)
def test_a_signature_that_asks_for_too_much_is_refused_before_anything_is_read(run, tmp_path, method, wrong, message):
    (tmp_path / "torn.jsonl").write_text("not a log")
    fields = {"ci": "95", "bs": "1000"} | dict([wrong.split(":")])
    interval = f"ci:{fields['ci']}|by:segment|method:{method}|bs:{fields['bs']}|seed:1"
    signature = f"AL|unit:token|length:hypothesis|clock:ideal|level:word|empty:nan|seg:none|mean:segment|{interval}"
    done = run("score", tmp_path / "torn.jsonl", "--like", f"{signature}|n:6|v:0.2.0.dev0")
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize("command", ["compare", "curve", "report"])
def test_resamples_are_bounded_in_every_command(run, logs, command):
    done = run(command, "wait", "cheat", "--resamples", 10**12, "-o", "out.html")
    assert done.code == 2
    assert "is not in the range 100<=x<=1000000" in done.err


FEW = (
    "TOO FEW SEGMENTS: intervals from 2 segments are too narrow: simulated ones of 95 % cover the true mean 47 to 50 %"
)


@pytest.mark.parametrize(
    "command",
    [
        ("score", "a.jsonl", "--ci"),
        ("compare", "a.jsonl", "b.jsonl", "--resamples", "100"),
        ("curve", "a.jsonl", "b.jsonl", "--resamples", "100"),
        ("curve", "a.jsonl", "b.jsonl", "--ranks", "AL,DAL", "--resamples", "100"),
        ("curve", "x=a.jsonl", "x=b.jsonl", "--against", "AL,DAL", "--resamples", "100"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_intervals_from_two_segments_are_noted_in_every_command(run, tmp_path, monkeypatch, command, form):
    monkeypatch.chdir(tmp_path)
    for shift, name in enumerate("ab"):
        lines = [
            {"delays": [1 + shift, 2 + i, 3], "source_length": 4, "prediction": "a b c", "reference": "a b d", "g": i}
            for i in range(2)
        ]
        Path(f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run(*command, "-f", form)
    assert done.code == 0
    assert FEW in done.err


def test_groups_of_few_segments_are_noted(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [
        {"delays": [1, 2 + i % 3, 4], "source_length": 4, "g": "few" if i < 2 else "some" if i < 9 else "many"}
        for i in range(40)
    ]
    Path("a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = run("score", "a.jsonl", "-m", "AL", "--by", "g", "--ci")
    assert done.code == 0
    assert f"note: a: {FEW.replace(': inter', ': a (few): 2 segments, a (some): 7 segments: inter')}" in done.err
    assert "many" not in done.err
