# SPDX-License-Identifier: Apache-2.0
"""No pattern and no recogniser takes more than linear time on a hostile line.

They run in a process of their own, on lines so long that anything quadratic takes an hour. What is linear takes a few
seconds; the guard is there for what hangs, and says where it hung.
"""

import ast
import importlib
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import lagging
from lagging.errors import UsageError

pytestmark = pytest.mark.slow

GUARD = 240
"""Seconds after which something hangs."""

LONG, LONGEST = 8_000, 500_000
"""Characters: what is worse than quadratic hangs on the one, and what is quadratic on the other."""
METHODS = ("match", "fullmatch", "search", "findall", "finditer", "split", "sub")
ATOMS = (
    *("1", "1.", ".1", "1,", "1e", "-", "--", "+", ".", ",", ";", ":", "=", "<", ">", "<=", "%", "@@", "@@ ", "▁", "|"),
    *(" ", "  ", "\t", " \t", "\u00a0", "a", "a.", "a-", "A", "A-1", "A1", "_", "_s", "é", "我", "0", "\x1d", "\r"),
    *(
        "[",
        "]",
        "[]",
        "(",
        ")",
        "()",
        "a(",
        "a(b=",
        "b=c,",
        "{",
        "}",
        '{"',
        '"',
        '\\"',
        '""',
        "'",
        "\\",
        "…",
        "!",
        '!"',
    ),
    *("<", "<a", "<a>", "[a", "</s>", "</s> ", " </s>", "<eos>", "- ", "P 1 ", "RW", "R W ", "AL ", "AL (CA)", "://"),
    *(",segid=", ", segid", " , ", "wait-3", '  File "', "Caused by: a: "),
)
SIMPLE = ("1", " ", "a", "a.", "1.", ",", ".", "-", "(", "[", "<", "!", '"', '\\"', "</s> ")
STARTS = ("", "x", "P ", "C 1 1 ", "docid=", "docid=a,segid=", "Delay-0\t", '{"delays": ', "a=", "AL", '"', " v1", "a:")


def modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(lagging.__path__, "lagging."):
        if found.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError as error:
            if str(error.name).startswith("lagging"):  # and not of an extra that is not installed
                raise
        except UsageError:
            if not found.name.startswith("lagging.agents.simuleval"):  # which needs SimulEval when it is imported
                raise


def _patterns(value: object) -> list[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        return [value]
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return [one for one in inner if isinstance(one, re.Pattern)]


def uses() -> dict[tuple[re.Pattern[Any], str], str]:
    """Every pattern of the package, with each method by which it is used, and where that is."""
    found: dict[tuple[re.Pattern[Any], str], str] = {}
    for module in modules():
        assert module.__file__ is not None
        tree = ast.parse(Path(module.__file__).read_text("utf-8"))
        used: set[str] = set()
        for call in (node for node in ast.walk(tree) if isinstance(node, ast.Call)):
            function = call.func
            if not isinstance(function, ast.Attribute) or function.attr not in METHODS:
                continue
            of = function.value
            if isinstance(of, ast.Name) and of.id == "re":
                if call.args and isinstance(call.args[0], ast.Constant):
                    flags = re.MULTILINE if "MULTILINE" in ast.unparse(call) else 0
                    pattern = re.compile(call.args[0].value, flags)
                    found.setdefault((pattern, function.attr), f"{module.__name__}:{call.lineno}")
                continue
            name = of.value if isinstance(of, ast.Subscript) else of
            if isinstance(name, ast.Name):
                used.add(name.id)
                for pattern in _patterns(vars(module).get(name.id)):
                    found.setdefault((pattern, function.attr), f"{module.__name__}.{name.id}.{function.attr}")
        for name, value in vars(module).items():
            if name not in used:
                for pattern in _patterns(value):
                    found.setdefault((pattern, "fullmatch"), f"{module.__name__}.{name}")
    return found


def hostile(size: int) -> Iterator[str]:
    for atom, other in zip(ATOMS, (*ATOMS[1:], "a"), strict=True):
        half = size // 2
        yield atom * (size // len(atom))
        yield atom * (size // len(atom)) + "x"
        yield atom * (half // len(atom)) + other * (half // len(other)) + "x"
    for start in STARTS:
        for atom in ("1", " ", "a", ",", "(", "="):
            yield start + atom * size + "x"
    for digits in (200, size // 3):
        yield f"P {'1' * digits} {'1' * digits} {'1' * digits}x"


def run_patterns() -> None:
    found = uses()
    assert len(found) > 50
    found = {use: where for use, where in found.items() if re.search(r"[*+{]", ascii(use[0].pattern))}
    assert len(found) > 30
    longest = [atom * (LONGEST // len(atom)) + end for atom in SIMPLE for end in ("", "x")]
    longest += [start + " " * LONGEST + "x" for start in STARTS]
    for lines in (list(hostile(200)), list(hostile(LONG)), longest):
        for (pattern, method), where in found.items():
            call: Callable[[Any], Any] = getattr(pattern, method)
            for line in lines:
                print(where, method, ascii(pattern.pattern), repr(line[:40]), repr(line[-20:]), flush=True)
                text = line if isinstance(pattern.pattern, str) else line.encode("utf-8")
                if method == "sub":
                    pattern.sub("" if isinstance(text, str) else b"", text)  # type: ignore[arg-type]
                elif method == "finditer":
                    for _ in pattern.finditer(text):
                        pass
                else:
                    call(text)


def run_readers() -> None:
    import tempfile

    from lagging.comparison.gates import gate
    from lagging.comparison.published import read_scores
    from lagging.comparison.published.rows import read_rows
    from lagging.errors import LaggingError
    from lagging.formats import FORMATS
    from lagging.formats.report import ReadReport
    from lagging.formats.tables import parse_list, parse_number
    from lagging.formats.word_times import read_word_times
    from lagging.longform import read_segmentation
    from lagging.metrics import metric, split_names
    from lagging.scoring.column_files import read_column

    file = Path(tempfile.mkdtemp(), "hostile")
    readers: tuple[Callable[[], object], ...] = (
        lambda: read_column(file, "COMET", "base"),
        lambda: read_segmentation(file),
        lambda: read_scores(file),
        lambda: read_rows(file),
        lambda: read_word_times(file, ReadReport()),
        lambda: list(lagging.scan(file, format="stream")),
    )
    texts: tuple[Callable[[str], object], ...] = (gate, metric, split_names, lambda text: parse_number(text, "offset"))
    texts = (*texts, lambda text: parse_list(text, "delays"))
    for size in (200, LONG):
        for line in dict.fromkeys(hostile(size)):
            print("recognise", repr(line[:40]), repr(line[-20:]), flush=True)
            for known in FORMATS.values():
                known.recognises(line.encode("utf-8"))
            file.write_text(f"{line}\n{line}\n", "utf-8")
            for reader in (*readers, *(partial(text, line) for text in texts)):
                try:
                    reader()
                except LaggingError:
                    continue


def _guarded(what: str) -> None:
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_linear; test_linear.{what}()"
    try:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=GUARD)
    except subprocess.TimeoutExpired as error:
        said = (error.stdout or b"").decode("utf-8", "replace").splitlines()
        raise AssertionError(f"hangs: {said[-1] if said else 'at the start'}") from None
    assert done.returncode == 0, done.stderr[-3000:] + done.stdout[-300:]


def test_no_pattern_hangs_on_a_hostile_line() -> None:
    _guarded("run_patterns")


def test_no_recogniser_and_no_reader_hangs_on_a_hostile_line() -> None:
    _guarded("run_readers")


def test_a_line_of_three_long_numbers_is_no_update_at_once(tmp_path: Path) -> None:
    """What a file of 606 bytes did to every command: the last of three numbers of 200 digits ends in a letter."""
    log = tmp_path / "hostile.log"
    log.write_text(f"P {'1' * 200} {'1' * 200} {'1' * 200}x")
    command = [sys.executable, "-m", "lagging", "validate", str(log)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GUARD)
    assert done.returncode == 2
    assert "is not recognised" in done.stderr
