# SPDX-License-Identifier: Apache-2.0
"""Text that came from data is printed, and not obeyed: no escape sequence, no forged line, no reordered word."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lagging
from lagging.errors import Fault, Note
from lagging.errors.printable import field, printable, text_of_field

HOSTILE = "x\x1b]0;owned\x07\x1b[31m\r\nerror: forged\n\u202eevil\u2066\x9b2J\u2028\x85note: forged\x00\x7f\U000e0041"
LINE: dict[str, Any] = {"prediction": "a b", "delays": [1, 2], "source_length": 2, "reference": "a b"}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def is_harmless(text: str) -> bool:
    """Whether nothing in a text moves the cursor, or reorders what is beside it."""
    kept = "\n\t\u2068\u2069"
    return all(c in kept or unicodedata.category(c) not in ("Cc", "Cf", "Zl", "Zp", "Cs") for c in text)


def forged(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("error: forged", "note: forged"))]


def log(path: str, *records: dict[str, Any]) -> None:
    Path(path).write_text("".join(json.dumps({**LINE, **record}) + "\n" for record in records))


LOGS: dict[str, list[dict[str, Any]]] = {
    "an id that is used twice": [{"index": HOSTILE}, {"index": HOSTILE}],
    "ids of segments with faults": [{"index": f"{HOSTILE}{k}", "delays": [2, 1]} for k in range(3)],
    "ids in a note": [{"index": HOSTILE, "prediction": "", "delays": []}, {"index": "b", "source_length": 0}],
    "a value of the wrong type": [{"index": 0, "delays": HOSTILE}, {"index": 1, "source_length": HOSTILE}],
    "a prediction that does not fit": [{"index": 0, "prediction": HOSTILE, "level": "word"}],
    "a unit": [{"index": 0, "unit": HOSTILE}],
    "a level": [{"index": 0, "level": HOSTILE}],
    "a kind of failure": [{"index": HOSTILE, "failed": f"{HOSTILE}: why"}, {"index": 1}],
    "a key": [{"index": 0, HOSTILE: 1}],
    "a document": [{"index": k, "document": HOSTILE} for k in range(3)],
}
COMMANDS = (
    ["validate", "a.log"],
    ["validate", "a.log", "-f", "json"],
    ["score", "a.log", "-v"],
    *(["score", "a.log", "-f", form, "--by", "index"] for form in ("table", "json", "tsv", "markdown", "latex")),
    ["score", "a.log", "--on-error", "quarantine"],
    ["score", "a.log", "--unit", "token", "--level", "token", "-f", "json"],
    ["compare", "a.log", "a.log", "--subset"],
    ["inspect", "a.log"],
    ["inspect", "a.log", "--empty"],
    ["report", "a.log", "-o", "r.html"],
    ["convert", "a.log", "-o", "b.csv"],
)


@pytest.mark.parametrize("what", LOGS)
def test_nothing_of_a_log_is_obeyed_by_a_terminal(what: str, run: Run) -> None:
    log("a.log", *LOGS[what])
    for command in COMMANDS:
        _, out, err = run(*command)
        assert is_harmless(out), command
        assert is_harmless(err), command
        assert not forged(out + err), command
        if "json" in command and out:
            json.loads(out)


@pytest.mark.parametrize("name", ["\x1b[31m.log", "a\nerror: forged.log", "\u202egol.a.log", "[red]x[%nothing].log"])
def test_names_of_files_are_not_obeyed(name: str, run: Run) -> None:
    log(name, {"index": 0, "delays": [2, 1]})
    Path("other" + name).write_text("no log\n")
    for command in ("validate", "score", "inspect", "compare"):
        for file in (name, "other" + name, "absent" + name):
            _, out, err = run(command, file)
            assert is_harmless(out + err), command
            assert not forged(out + err), command
    _, out, err = run("score", "--\x1b[31m\nerror: forged")
    assert is_harmless(out + err)


def test_tables_and_segmentations_are_not_obeyed(run: Run) -> None:
    log("a.log", {"index": 0, "document": "a"})
    Path("scores.tsv").write_text("system\tmetric\tscore\n" + f"{printable(HOSTILE)}\x1b[31m\tAL\tx\n")
    Path("column.tsv").write_text("id\tCOMET\n\x1b[31m\t0.5\n")
    Path("s.yaml").write_text('- {wav: "a\\e[31m", offset: 0, duration: "\\e[31m"}\n')
    Path("table.csv").write_text("id,delays,source_length,\x1b[31m\n0,\x1b[31m,2,1\n")
    for command in (
        ["curve", "--published", "scores.tsv"],
        ["compare", "a=a.log", "b=a.log", "--column", "COMET=a:column.tsv", "--column", "COMET=b:column.tsv"],
        ["resegment", "a.log", "--segmentation", "s.yaml", "-o", "o.jsonl"],
        ["validate", "table.csv"],
    ):
        code, out, err = run(*command)
        assert code in (1, 2), command
        assert is_harmless(out + err), command


def test_faults_and_notes_are_lines() -> None:
    fault = Fault("bad-delay", HOSTILE, HOSTILE, 1, HOSTILE)
    assert len(str(fault).splitlines()) == 1
    assert is_harmless(str(lagging.DataError(fault)))
    assert len(str(Note("kind", HOSTILE, 2, (HOSTILE,))).splitlines()) == 1


def test_long_ids_are_shortened_where_they_are_told() -> None:
    fault = Fault("duplicate-id", "", "a.log", 1, "begin" + "9" * 5000 + "end")
    assert str(fault).startswith("a.log:1: segment begin9")
    assert "9end: " in str(fault)
    assert len(str(lagging.DataError(fault))) < 500


def test_the_log_of_a_server_is_not_obeyed(capsys: pytest.CaptureFixture[str]) -> None:
    from lagging.cli.messages import Messages

    Messages().print(f"a client said {HOSTILE}")
    err = capsys.readouterr().err
    assert err.count("\n") == 1
    assert is_harmless(err)


def test_only_few_functions_print() -> None:
    """Whatever is printed goes through one of them, so that nothing is printed as it came."""
    source = Path(lagging.__file__).parent
    printing = {
        path.relative_to(source).as_posix()
        for path in (source / "cli").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("click.echo", "click.secho", "sys.stderr.write")
    }
    assert printing == {"cli/__init__.py", "cli/messages.py", "cli/playground.py"}


# ---- tables of lines and tabs -----------------------------------------------------------------------------------


@given(st.text(), st.text())
def test_no_two_texts_are_one_field(one: str, other: str) -> None:
    assert (field(one) == field(other)) == (one == other)
    assert text_of_field(field(one)) == one
    assert len(field(one).splitlines()) <= 1
    assert "\t" not in field(one)


def test_ids_that_differ_in_white_space_are_told_apart_in_segment_scores(run: Run) -> None:
    names = ["a b", "a\tb", "a\nb", "a\\tb", "a\x0bb", "a\u2028b", "a\x85b", "a\rb"]
    log("a.log", *({"index": name} for name in names))
    assert run("score", "a.log", "-m", "AL", "--segment-scores", "s.tsv")[0] == 0
    rows = [line.split("\t") for line in Path("s.tsv").read_text().split("\n") if line and not line.startswith("#")]
    assert [text_of_field(row[1]) for row in rows[1:]] == names
    assert len({row[1] for row in rows[1:]}) == len(names)


def test_the_names_of_systems_in_our_own_tsv_are_read_back(run: Run) -> None:
    log("a.log", {"index": 0})
    name = "C:\\new\tone"
    _, out, _ = run("score", f"{name}=a.log", "-m", "AL", "-f", "tsv", "-q")
    Path("scores.tsv").write_text(out)
    (score,) = lagging.read_scores("scores.tsv")
    assert score.system == name


def test_cells_that_a_spreadsheet_takes_for_formulas_are_what_they_were(run: Run) -> None:
    """A text that is changed is scored otherwise: it is written as it is, and the page on tables says so."""
    names = ["=1+1", "+1", "-1", "@x", '=HYPERLINK("http://x")']
    log("a.log", *({"index": name, "prediction": f"{name} b"} for name in names))
    for ending in ("csv", "tsv"):
        assert run("convert", "a.log", "-o", f"b.{ending}")[0] == 0
        assert lagging.read(f"b.{ending}").prediction.tolist() == [f"{name} b" for name in names]
    page = (Path(__file__).parents[2] / "docs" / "format-tables.md").read_text("utf-8")
    assert "begins with `=`" in page


def test_workers_say_nothing_that_a_terminal_obeys() -> None:
    code = (
        "import logging; from lagging.agents.runner.worker import _Handler; "
        "log = logging.getLogger('lagging'); log.addHandler(_Handler()); log.warning('a\\x1b[31m\\nb')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "a\\x1b[31m\\x0ab\n"
