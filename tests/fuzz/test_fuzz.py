# SPDX-License-Identifier: Apache-2.0
"""The short part: every finding that was confirmed, and some inputs of every target, the same each time.

`make fuzz MINUTES=60` goes on where this ends.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from fuzz import broken, mutators
from fuzz.__main__ import main
from fuzz.cases import Case, read_seed, seed_files
from fuzz.findings import Findings, minimised
from fuzz.formats import LOGS
from fuzz.oracles import Difference, harmless, read_again, strict_json
from fuzz.parsers import PARSERS
from fuzz.pool import Worker, tried
from fuzz.targets import TARGETS, make
from lagging import read
from lagging.formats import FORMATS

INPUTS = 40
"""Inputs of a target, where one gets one share."""
GUARD = 60.0
"""Seconds for an input: far more than any needs, on whatever machine."""


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    with Worker(GUARD) as one:
        yield one


@pytest.fixture(scope="module")
def impatient() -> Iterator[Worker]:
    """A worker that does not wait long for what hangs."""
    with Worker(guard=2.0, wall=3.0) as one:
        yield one


@pytest.mark.parametrize("file", seed_files(), ids=lambda file: file.stem)
def test_what_was_found_is_mended(file: Path, worker: Worker) -> None:
    result = worker.tried({"case": read_seed(file).to_json()})
    assert result is None, f"{read_seed(file).what}\n{result['kind']}: {result['where']}\n{result['text']}"


@pytest.mark.parametrize("target", TARGETS)
def test_hostile_inputs(target: str, worker: Worker) -> None:
    found = []
    for seed in range(INPUTS * TARGETS[target].share):
        result = worker.tried({"target": target, "seed": seed})
        found += (
            [] if result is None else [f"seed {seed}: {result['kind']}: {result['where']}\n{result['text'][-900:]}"]
        )
    assert not found, f"{len(found)} findings; the first:\n{found[0]}"


# ---- the machine ------------------------------------------------------------------------------------------------


def test_every_format_is_a_target() -> None:
    assert sorted(FORMATS) == sorted(LOGS) == sorted(PARSERS)


@pytest.mark.parametrize("target", TARGETS)
def test_an_input_is_made_from_its_number_alone(target: str) -> None:
    assert make(target, 7) == make(target, 7)
    assert any(make(target, 7) != make(target, seed) for seed in (8, 9))


@pytest.mark.parametrize("target", TARGETS)
def test_a_case_survives_json(target: str) -> None:
    case = make(target, 3)
    assert Case.from_json(json.loads(json.dumps(case.to_json()))) == case


def test_a_seed_may_repeat_what_is_long() -> None:
    case = Case.from_json({"target": "rw", "files": {"a": ["x", ["[", 3], "é"]}})
    assert case.files == {"a": b"x[[[\xe9"}


@pytest.mark.parametrize(
    ("target", "kind", "where"),
    [
        ("raise", "crash", "KeyError in broken.py:_raise"),
        ("differ", "difference", "one and two"),
        ("eat", "memory", "broken.py:_eat"),
        ("die", "killed", "SIGSEGV"),
        ("hang", "hang", ""),
        ("spin", "hang", ""),
    ],
)
def test_what_goes_wrong_is_found(target: str, kind: str, where: str, impatient: Worker) -> None:
    well = broken.BROKEN["well"].make(Random(1)).to_json()
    assert impatient.tried({"case": well}) is None
    result = impatient.tried({"case": well | {"target": target}})
    assert result is not None
    assert (result["kind"], result["where"]) == (kind, where)
    assert impatient.tried({"case": well}) is None  # a worker that is gone is started again


def test_waiting_is_no_hang_before_the_last_deadline() -> None:
    """A machine that is busy lets a process wait."""
    with Worker(guard=0.5, wall=30.0) as patient:
        assert patient.tried({"case": broken.BROKEN["nap"].make(Random(1)).to_json() | {"target": "nap"}}) is None


def test_two_workers_try_everything_once() -> None:
    requests = [{"target": "gate", "seed": seed} for seed in range(20)]
    found = [request for request, _ in tried(iter(requests), 2, GUARD)]
    assert sorted(found, key=str) == sorted(requests, key=str)


def test_a_finding_is_made_smaller_and_written_once(worker: Worker, tmp_path: Path) -> None:
    case = Case("raise", {"lines": b"1\n2\n37\n" + b"4\n" * 50, "other": b"x"})
    result = worker.tried({"case": case.to_json()})
    assert result is not None
    assert minimised(case, result, worker).files == {"lines": b"7"}
    findings = Findings(tmp_path)
    paths = [findings.add({"case": case.to_json()}, result) for _ in range(4)]
    assert [path is not None for path in paths] == [True, True, False, False]
    assert findings.count("crash") == 4
    assert read_seed(paths[0]).files == case.files


def test_the_long_program_counts_and_says_what_it_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["--minutes", "0.05", "--workers", "2", "--target", "gate", "--findings", str(tmp_path)]
    monkeypatch.setattr("sys.argv", ["fuzz", *asked])
    code, printed = main(), capsys.readouterr().out
    assert "inputs: crashes " in printed
    assert code == bool(list(tmp_path.iterdir()))


def test_damage_changes_every_place_of_a_tree() -> None:
    random, tree = Random(0), [mutators.Pairs([("a", [1, "x"]), ("b", 2)])]
    seen = set()
    for _ in range(400):
        copy = [mutators.Pairs([("a", [1, "x"]), ("b", 2)])]
        mutators.mutate_tree(random, copy)
        seen.add(repr(copy))
    assert len(seen) > 100
    assert len(list(mutators.places(tree))) == 5


def test_a_wrong_value_is_noticed(tmp_path: Path) -> None:
    log = tmp_path / "base.jsonl"
    log.write_text('{"id": "a", "delays": [1, 2], "source_length": 3}\n', "utf-8")
    run = read(log)
    (row,) = PARSERS["jsonl"](log, run)
    read_again(run, [row])
    for wrong in ({"delays": [1.0, 3.0]}, {"source_length": 4.0}, {"id": "b"}):
        with pytest.raises(Difference, match=next(iter(wrong))):
            read_again(run, [{**row, **wrong}])


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", ""])
def test_json_is_strict(text: str) -> None:
    with pytest.raises(Difference):
        strict_json(text)


def test_control_characters_are_noticed() -> None:
    harmless("a line", "schön\t\u2028\n")
    for letter in "\x1b\x00\r\x9b":
        with pytest.raises(Difference):
            harmless("a line", f"a{letter}b")
