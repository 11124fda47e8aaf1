# SPDX-License-Identifier: Apache-2.0
"""Tables in LaTeX: they compile, and no line is too long."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lagging.cli import main

DATA = Path(__file__).parents[2] / "examples" / "data"
EIGHT = "AP,AL,LAAL,DAL,HiddenShare,BLEU,chrF,DAL(write_cost=1),AL(length=reference)"
COMMANDS = {
    "score": ("score", "wait-5", "antagonist-5", "offline", "-m", EIGHT),
    "one": ("score", "long-name_of_a%system=wait-5", "-m", "AL,DAL", "--ci"),
    "compare": ("compare", "wait-5", "wait-3", "adaptive", "-m", EIGHT, "--resamples", "100"),
    "transposed": ("compare", "wait-5", "adaptive", "-m", EIGHT, "--resamples", "100", "--transpose", "--digits", "2"),
    "many": ("score", *(f"sys_{i}_name=wait-5" for i in range(12)), "-m", EIGHT),
    "intervals": ("score", *(f"sys_{i}_name=wait-5" for i in range(12)), "-m", "AL,DAL,BLEU", "--ci"),
    "base": ("compare", "wait-5", "wait-3", "--base", "wait-5", "-m", "AL,CW", "--resamples", "100"),
    "curve": ("curve", "wait-k=wait-*", "adaptive", "--at-latency", "4", "--resamples", "100"),
    "ranks": ("curve", "wait-k=wait-*", "adaptive", "--ranks", "AP,AL,DAL", "--resamples", "100"),
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("tables")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(DATA)
        for name, command in COMMANDS.items():
            with pytest.raises(SystemExit) as end:
                main([*command, "-q", "-f", "latex", "-o", str(folder / f"{name}.tex")])
            assert not end.value.code
    return {name: (folder / f"{name}.tex").read_text("utf-8") for name in COMMANDS}


@pytest.mark.parametrize("name", COMMANDS)
def test_every_table_has_caption_and_label(tables, name) -> None:
    text = tables[name]
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 1
    assert re.search(r"^\\caption\{.+\.\}$", text, re.M)
    assert re.search(r"^\\label\{tab:(scores|comparison|curve)\}$", text, re.M)
    assert all(line.startswith("%") for line in text.split(r"\end{table}")[1].splitlines()[1:])


def test_units_are_in_the_head_and_p_is_mathematics(tables) -> None:
    assert r"AL $\downarrow$ (tokens)" in tables["score"]
    assert "$p < 0.05$" in tables["compare"]
    assert re.search(r" & \$p\$( &| \\\\)", tables["curve"])
    assert "$p$ adjusted" in tables["curve"]
    assert r"DAL$^{1}$ $\downarrow$ (tokens)" in tables["score"]
    assert r"$^{1}$\,DAL(write\_cost=1), $^{2}$\,AL(length=reference)" in tables["score"]


def test_what_is_bold_is_the_value_and_no_panel_has_the_counts_alone(tables) -> None:
    assert re.search(r"& \\textbf\{5\.208\} \[5\.126, 5\.324\] &", tables["intervals"])
    assert "$n$" in tables["one"]
    assert "$n$" not in tables["many"]
    assert "of 40 segments" in tables["many"]
    assert r"System & Setting & AL $\downarrow$ (tokens)" in tables["curve"]


def test_digits_and_direction(tables) -> None:
    assert re.search(r"^DAL \$\\downarrow\$ \(tokens\) & +\S*5\.21", tables["transposed"], re.M)
    assert "Metric & " in tables["transposed"]


def test_a_negative_number_with_a_unit_is_a_number_and_a_word(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.jsonl").write_text('{"delays": [0, 0, 0, 1], "source_length": 8}\n')
    Path("b.jsonl").write_text('{"delays": [900.0, 1000.0], "source_length": 1000.0}\n')
    with pytest.raises(SystemExit):
        main(["score", "a.jsonl", "b.jsonl", "-m", "AL", "-f", "latex", "-q"])
    assert re.search(r"a & \$-\$[\d.]+ tokens & 1", capsys.readouterr().out)


def test_a_caption_promises_bold_values_only_where_there_are_some(tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    line = '{"index": %d, "delays": [%d], "source_length": 8}\n'
    Path("a.jsonl").write_text(line % (0, 2) + line % (1, 3))
    Path("b.jsonl").write_text(line % (0, 4) + line % (1, 5))
    Path("c.jsonl").write_text(line % (0, 4))
    for other, bold in (("b.jsonl", True), ("c.jsonl", False)):
        with pytest.raises(SystemExit):
            main(["score", "a.jsonl", other, "-m", "AL", "-f", "latex", "-q"])
        text = capsys.readouterr().out
        assert ("best values are bold" in text) == (r"\textbf" in text) == bold


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="NOT RUN: there is no pdflatex (texlive-latex-base)")
def test_tables_compile_without_a_line_that_is_too_long(tables, tmp_path) -> None:
    for name, text in tables.items():
        (tmp_path / f"{name}.tex").write_text(text, "utf-8")
    inputs = "".join(rf"\input{{{name}}}" for name in tables)
    head = r"\documentclass{article}\usepackage{booktabs}\hbadness=10000\begin{document}"
    (tmp_path / "all.tex").write_text(head + inputs + r"\end{document}", "utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, encoding="latin-1", check=False)
    assert done.returncode == 0, done.stdout[-2000:]
    assert "Overfull" not in done.stdout
    assert (tmp_path / "all.pdf").stat().st_size > 10_000
