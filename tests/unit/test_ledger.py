# SPDX-License-Identifier: Apache-2.0
import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

LEDGER = Path(__file__).parents[2] / "tools" / "ledger.py"
sys.path.insert(0, str(LEDGER.parent))
import ledger_commands  # noqa: E402
from ledger import Place, run  # noqa: E402
from ledger_commands import Command  # noqa: E402

pytestmark = pytest.mark.slow


def ledger(*words: object) -> subprocess.CompletedProcess[str]:
    """A process of its own, as people start it: what it imports is not shared with other tests."""
    command = [sys.executable, str(LEDGER), *map(str, words)]
    return subprocess.run(command, capture_output=True, encoding="utf-8", env={**os.environ, "PYTHONUTF8": "1"})


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """The quick part, in one process."""
    file = tmp_path_factory.mktemp("ledger") / "first.jsonl"
    ran = ledger("write", file, "--quick", "--jobs", "1")
    assert ran.returncode == 0, ran.stderr
    return file


def lines(file: Path) -> list[dict]:
    return [json.loads(line) for line in file.read_text("utf-8").splitlines()]


def change(file: Path, copy: Path, name: str, *, entry=lambda entry: None, values=lambda kept: None) -> None:
    """A copy of a ledger in which one command has left something else."""
    header, *entries = lines(file)
    for one in entries:
        if one["name"] == name:
            entry(one)
    copy.write_text("".join(json.dumps(line) + "\n" for line in (header, *entries)), "utf-8")
    with gzip.open(f"{file}.values.gz", "rt", encoding="utf-8") as kept:
        kept_entries = [json.loads(line) for line in kept]
    for one in kept_entries:
        if one["name"] == name:
            values(one)
    with gzip.open(f"{copy}.values.gz", "wt", encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in kept_entries)


def test_two_ledgers_of_the_same_code_are_equal_whoever_runs_the_commands(written, tmp_path):
    again = tmp_path / "again.jsonl"
    assert ledger("write", again, "--quick", "--jobs", "2").returncode == 0
    header, *entries = lines(written)
    assert lines(again) == [header, *entries]
    assert header["commands"] == len(entries) > 100
    assert header["numbers"] == sum(entry["numbers"] for entry in entries) > 5000
    compared = ledger("compare", written, again, "--messages")
    assert compared.returncode == 0, compared.stdout
    assert compared.stdout.endswith("equal\n")
    assert f"{header['commands']} commands, {header['numbers']} numbers compared" in compared.stdout


def test_every_kind_of_command_leaves_numbers(written):
    numbers: dict[str, int] = {}
    for entry in lines(written)[1:]:
        kind = entry["name"].partition("/")[0]
        numbers[kind] = numbers.get(kind, 0) + entry["numbers"]
    without = {kind for kind, count in numbers.items() if not count}
    assert without == {"usage"}
    assert {"score", "score-segments", "compare", "curve-dal", "report", "by", "resegment-jsonl"} < set(numbers)


def test_exit_codes_are_those_of_the_command_line(written):
    exits = {entry["name"]: entry["exit"] for entry in lines(written)[1:]}
    assert exits["score/wait-3/paper/DAL"] == [0]
    assert exits["faults/faulty.jsonl"] == [1]
    assert exits["usage/metric"] == [2]
    assert exits["gate/above"] == [3]
    assert exits["simulate/wait-3"] == [0, 0]


def test_no_path_of_this_machine_and_no_version_is_in_the_values(written):
    with gzip.open(f"{written}.values.gz", "rt", encoding="utf-8") as kept:
        text = kept.read()
    assert str(LEDGER.parents[1]) not in text
    assert "lagging-ledger-" not in text
    assert "v:VERSION" in text
    assert lines(written)[0]["version"] not in text


def test_a_changed_number_is_found_and_shown(written, tmp_path):
    name, copy = "score/wait-3/paper/DAL", tmp_path / "changed.jsonl"

    def values(kept):
        kept["values"]["stdout 0"]["scores"][0]["score"] = 3.25

    change(written, copy, name, entry=lambda entry: entry["hashes"].update({"stdout 0": "0"}), values=values)
    compared = ledger("compare", written, copy)
    assert compared.returncode == 1
    assert f"{name}\n  lagging score examples/data/wait-3 -m DAL" in compared.stdout
    assert "stdout 0.scores[0].score: 3.2177982724874816 → 3.25" in compared.stdout
    assert "DIFFERENT: 1 commands differ" in compared.stdout


def test_another_exit_code_is_a_difference(written, tmp_path):
    copy = tmp_path / "changed.jsonl"
    change(written, copy, "gate/above", entry=lambda entry: entry.update(exit=[0]))
    compared = ledger("compare", written, copy)
    assert compared.returncode == 1
    assert "exit code: [3] → [0]" in compared.stdout


def test_other_messages_are_a_difference_only_if_asked_for(written, tmp_path):
    copy = tmp_path / "changed.jsonl"
    entry = lambda entry: entry.update(stderr="0")  # noqa: E731
    change(written, copy, "usage/path", entry=entry, values=lambda kept: kept.update(stderr=["another message"]))
    compared = ledger("compare", written, copy)
    assert compared.returncode == 0
    assert "words differ in 1 commands" in compared.stdout
    compared = ledger("compare", written, copy, "--messages")
    assert compared.returncode == 1
    assert '→ "another message"' in compared.stdout


def test_ledgers_without_a_common_command_are_not_equal(written, tmp_path):
    copy = tmp_path / "empty.jsonl"
    copy.write_text(json.dumps(lines(written)[0]) + "\n", "utf-8")
    assert ledger("compare", written, copy).returncode == 1


def test_a_command_in_a_spelling_that_is_refused_is_run_in_the_old_one(monkeypatch):
    words = ("score", "examples/data/wait-3", "--measure", "DAL", "-f", "json")
    command, place = Command("score/wait-3/DAL", (words,)), Place(None, "")
    assert run(command, place)["exit"] == [2]
    monkeypatch.setitem(ledger_commands.SPELLINGS, "score/*", {"--measure": "-m"})
    result = run(command, place)
    assert (result["name"], result["exit"]) == ("score/wait-3/DAL", [0])
    assert result["steps"] == [["score", "examples/data/wait-3", "-m", "DAL", "-f", "json"]]
    assert result["values"]["stdout 0"]["scores"][0]["score"] == 3.2177982724874816


def test_what_raises_or_takes_too_long_is_recorded(monkeypatch):
    def broken(words):
        raise ZeroDivisionError

    monkeypatch.setattr("lagging.cli.main", broken)
    result = run(Command("broken", (("score",),)), Place(None, ""))
    assert result["exit"] == ["raised ZeroDivisionError"]
    assert "ZeroDivisionError" in result["stderr"][0]
    monkeypatch.setattr("ledger.LIMIT", 0.05)
    monkeypatch.setattr("lagging.cli.main", lambda words: time.sleep(60))
    assert run(Command("slow", (("score",),)), Place(None, ""))["exit"] == ["took longer than 0.05 s"]
